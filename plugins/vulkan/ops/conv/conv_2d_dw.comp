#version 450
// SPDX-License-Identifier: MIT
// conv_2d_dw, a depthwise convolution: each channel of the image has a filter of its own; F32
// result. An invocation per element of the result.
#include "shaders/common.glsl"
layout(constant_id = 3) const uint DST_TYPE = 0;
layout(constant_id = 4) const uint SRC_TYPE = 0;
#include "ops/conv/conv.glsl"
layout(constant_id = 6) const uint FILTER_TYPE = 0;
GVK_OPERAND(dst, 1)
GVK_OPERAND(filters, 2)
GVK_OPERAND(image, 3)

// Depthwise: one filter per channel. Positions outside of the image are padding, and skipped.
void main() {
    const uint i = invocation_linear();
    if (i >= DST.ne.x * DST.ne.y * DST.ne.z * DST.ne.w) return;
    const uvec4 at = element_at(DST.ne, i);
    float sum = 0;
    for (uint ky = 0; ky < conv_kernel(1); ++ky) {
        uint y;
        if (!conv_position(1, at.y, ky, y)) continue;
        for (uint kx = 0; kx < conv_kernel(0); ++kx) {
            uint x;
            if (!conv_position(0, at.x, kx, x)) continue;
            sum += image_load(SRC_TYPE, address(SRC1, uvec4(x, y, at.zw))) *
                   filters_load(FILTER_TYPE, address(SRC0, uvec4(kx, ky, 0, at.z)));
        }
    }
    dst_store(DST_TYPE, address(DST, at), sum);
}
