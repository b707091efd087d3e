// SPDX-License-Identifier: MIT
// Addresses of what conv_2d and conv_3d read and write.
#ifndef CONV_OPERANDS_GLSL
#define CONV_OPERANDS_GLSL

// Bytes between filters, between the channels of one.
uint filter_nb_out() { return DIMS == 3 ? SRC0.nb.w * conv_channels() : SRC0.nb.w; }
uint filter_nb_in() { return DIMS == 3 ? SRC0.nb.w : SRC0.nb.z; }

uint conv_windows() { return conv_out(0) * conv_out(1) * (DIMS == 3 ? conv_out(2) : 1); }

// Where a window of a batch lies in the result.
uvec3 conv_window_at(const uint window) {
    const uint line = window / conv_out(0), plane = line / conv_out(1);
    return uvec3(window - line * conv_out(0), line - plane * conv_out(1), plane);
}

uint conv_plane(const uint batch) { return SRC1.at.x + batch * conv_nb_batch(); }

// Address within a plane of what element `at` of a filter meets; false, and that of the plane,
// outside of the image.
bool conv_source(const uvec3 window, const uvec3 at, const uint plane, out uint source) {
    uvec3 i = uvec3(0);
    bool inside = conv_position(0, window.x, at.x, i.x);
    inside = conv_position(1, window.y, at.y, i.y) && inside;
    if (DIMS == 3) inside = conv_position(2, window.z, at.z, i.z) && inside;
    const uint offset = i.x * SRC1.nb.x + i.y * SRC1.nb.y + (DIMS == 3 ? i.z * SRC1.nb.z : 0);
    source = plane + (inside ? offset : 0);
    return inside;
}

uint conv_weight(const uint filter_, const uvec3 at, const uint channel) {
    return SRC0.at.x + filter_ * filter_nb_out() + at.x * SRC0.nb.x + at.y * SRC0.nb.y +
           (DIMS == 3 ? at.z * SRC0.nb.z : 0) + channel * filter_nb_in();
}

// A 3-D result has channel and batch in one dimension.
void store_pixel(const uint window, const uint channel, const float sum) {
    const uint batch = window / conv_windows();
    const uvec3 at = conv_window_at(window - batch * conv_windows());
    uint to = DST.at.x + at.x * DST.nb.x + at.y * DST.nb.y;
    if (DIMS == 3) to += at.z * DST.nb.z + (batch * conv_channels_out() + channel) * DST.nb.w;
    else to += channel * DST.nb.z + batch * DST.nb.w;
    dst_store(DST_TYPE, to, sum);
}

#endif
