#version 450
// SPDX-License-Identifier: MIT
// conv_2d and conv_3d without patches. An invocation computes a pixel of FILTERS channels, so that
// each pixel that it reads is used as often; the filters' elements are the same for a whole group.
#include "common.glsl"
layout(constant_id = 3) const uint DST_TYPE = 0;
layout(constant_id = 4) const uint SRC_TYPE = 0;
#include "conv.glsl"
layout(constant_id = 6) const uint FILTER_TYPE = 0;
VK_OPERAND(dst, 1)
VK_OPERAND(filters, 2)
VK_OPERAND(image, 3)

const uint FILTERS = 8;

// Bytes between filters, between the channels of one.
uint filter_nb_out() { return DIMS == 3 ? SRC0.nb.w * conv_channels() : SRC0.nb.w; }
uint filter_nb_in() { return DIMS == 3 ? SRC0.nb.w : SRC0.nb.z; }

void main() {
    uint window = gl_WorkGroupID.x * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    const uint windows = conv_out(0) * conv_out(1) * conv_out(2);
    if (window >= windows * conv_batch()) return;
    const uint n = window / windows;
    window %= windows;
    const uvec3 o = uvec3(window % conv_out(0), window / conv_out(0) % conv_out(1),
                          window / conv_out(0) / conv_out(1));
    const uint first = gl_WorkGroupID.y * FILTERS;
    const uint count = min(FILTERS, conv_channels_out() - first);
    const uint plane0 = SRC1.at.x + n * conv_nb_batch();
    float sums[FILTERS] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (uint kz = 0; kz < conv_kernel(2); ++kz) {
        uint z = 0;
        if (DIMS == 3 && !conv_position(2, o.z, kz, z)) continue;
        for (uint ky = 0; ky < conv_kernel(1); ++ky) {
            uint y;
            if (!conv_position(1, o.y, ky, y)) continue;
            for (uint kx = 0; kx < conv_kernel(0); ++kx) {
                uint x;
                if (!conv_position(0, o.x, kx, x)) continue;
                uint source = plane0 + x * SRC1.nb.x + y * SRC1.nb.y + (DIMS == 3 ? z * SRC1.nb.z : 0);
                uint weight = SRC0.at.x + kx * SRC0.nb.x + ky * SRC0.nb.y +
                              (DIMS == 3 ? kz * SRC0.nb.z : 0) + first * filter_nb_out();
                for (uint c = 0; c < conv_channels(); ++c) {
                    const float pixel = image_load(SRC_TYPE, source);
                    [[unroll]] for (uint f = 0; f < FILTERS; ++f) {
                        if (f < count)
                            sums[f] += pixel * filters_load(FILTER_TYPE, weight + f * filter_nb_out());
                    }
                    source += conv_nb_channel();
                    weight += filter_nb_in();
                }
            }
        }
    }
    uint to = DST.at.x + o.x * DST.nb.x + o.y * DST.nb.y;
    if (DIMS == 3) to += o.z * DST.nb.z + (n * conv_channels_out() + first) * DST.nb.w;
    else to += first * DST.nb.z + n * DST.nb.w;
    [[unroll]] for (uint f = 0; f < FILTERS; ++f) {
        if (f < count) dst_store(DST_TYPE, to + f * (DIMS == 3 ? DST.nb.w : DST.nb.z), sums[f]);
    }
}
