#version 450
// SPDX-License-Identifier: MIT
// mul_mat, second launch of a split: adds the number(0) parts of each result, which follow each
// other in src0. An invocation per element.
#include "shaders/common.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)

void main() {
    const uint i = invocation_linear(), n = DST.ne.x * DST.ne.y * DST.ne.z * DST.ne.w;
    if (i >= n) return;
    float sum = 0;
    for (uint part = 0; part < number(0); ++part) sum += src0_f32[(SRC0.at.x >> 2) + part * n + i];
    dst_f32[address(DST, element_at(DST.ne, i)) >> 2] = sum;
}
