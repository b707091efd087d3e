#version 450
// SPDX-License-Identifier: MIT
// ssm_conv: the convolution of each channel's sequence with the channel's own filter, F32;
// result [channels, tokens, sequences]. An invocation per element of the result.
#include "shaders/common.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(x, 2)
GVK_OPERAND(filters, 3)

void main() {
    const uint i = invocation_linear();
    if (i >= DST.ne.x * DST.ne.y * DST.ne.z) return;
    const uvec4 at = element_at(DST.ne, i);
    uint source = address(SRC0, uvec4(at.y, at.x, at.z, 0));
    uint weight = address(SRC1, uvec4(0, at.x, 0, 0));
    float sum = 0;
    for (uint k = 0; k < SRC1.ne.x; ++k) {
        sum += x_f32[source >> 2] * filters_f32[weight >> 2];
        source += SRC0.nb.x;
        weight += SRC1.nb.x;
    }
    dst_f32[address(DST, at) >> 2] = sum;
}
