#version 450
// SPDX-License-Identifier: MIT
// conv_2d and conv_3d as a matrix product by tiles (tile.glsl): rows are filters, columns the
// windows of all images. The elements of a window are taken from the image on the way into
// shared memory, so that no im2col buffer is needed. A tile per group.
#include "shaders/tile.glsl"
layout(constant_id = 3) const uint DST_TYPE = 0;
layout(constant_id = 4) const uint SRC_TYPE = 0;
#include "ops/conv/conv.glsl"
layout(constant_id = 6) const uint FILTER_TYPE = 0;
GVK_OPERAND(dst, 1)
GVK_OPERAND(filters, 2)
GVK_OPERAND(image, 3)
#include "ops/conv/conv_operands.glsl"

uint first_filter, first_window;
// What this invocation loads: a column each.
uvec3 window;
uint plane;

// Elements of a window over all channels: the k of the product.
uint patch_size() {
    return conv_kernel(0) * conv_kernel(1) * (DIMS == 3 ? conv_kernel(2) : 1) * conv_channels();
}

// Position within a filter and channel (w) of element k of a patch.
uvec4 patch_at(const uint k) {
    const uint line = k / conv_kernel(0), slice = line / conv_kernel(1);
    const uint channel = DIMS == 3 ? slice / conv_kernel(2) : slice;
    return uvec4(k - line * conv_kernel(0), line - slice * conv_kernel(1),
                 DIMS == 3 ? slice - channel * conv_kernel(2) : 0, channel);
}

// Elements k to k + 3 of a filter, 0 behind its end.
vec4 load_filter(const uint row, const uint k) {
    vec4 x = vec4(0);
    [[unroll]] for (uint c = 0; c < 4; ++c) {
        const uvec4 at = patch_at(k + c);
        if (k + c < patch_size()) x[c] = filters_load(FILTER_TYPE, conv_weight(row, at.xyz, at.w));
    }
    return x;
}

// Elements k to k + 3 of this invocation's window, 0 outside of the image.
vec4 load_patch(const uint k) {
    vec4 y = vec4(0);
    [[unroll]] for (uint c = 0; c < 4; ++c) {
        const uvec4 at = patch_at(k + c);
        uint source;
        if (k + c < patch_size() && conv_source(window, at.xyz, plane, source))
            y[c] = image_load(SRC_TYPE, source + at.w * conv_nb_channel());
    }
    return y;
}

// Neighbouring invocations load along k of the filters, but along a line of the image.
void load_step(const uint k) {
    const uint i = gl_LocalInvocationID.x;
    [[unroll]] for (uint from = 0; from < ROWS * QUADS; from += GROUP) {
        const uint row = (from + i) / QUADS, quad = (from + i) % QUADS;
        store_a(row, quad,
                load_filter(min(first_filter + row, conv_channels_out() - 1u), k + 4 * quad));
    }
    [[unroll]] for (uint quad = i / COLUMNS; quad < QUADS; quad += GROUP / COLUMNS)
        store_b(i % COLUMNS, quad, load_patch(k + 4 * quad));
}

// Called by tile.glsl for each result; those beyond the edges are dropped.
void store_result(const uint row, const uint column, const float sum) {
    if (first_filter + row < conv_channels_out() &&
        first_window + column < conv_windows() * conv_batch())
        store_pixel(first_window + column, first_filter + row, sum);
}

// A group computes ROWS filters times COLUMNS windows; the shared tile code asks for elements by
// filter, window and position within the patch.
void main() {
    const uint tiles = (conv_channels_out() + ROWS - 1u) / ROWS;
    const uint windows = conv_windows() * conv_batch();
    first_filter = group_linear() % tiles * ROWS;
    first_window = group_linear() / tiles * COLUMNS;
    if (first_window >= windows) return;
    // Invocations beyond the last window compute the last one again.
    const uint mine = min(first_window + gl_LocalInvocationID.x % COLUMNS, windows - 1u);
    window = conv_window_at(mine % conv_windows());
    plane = conv_plane(mine / conv_windows());
    compute_tile(0, patch_size());
}
