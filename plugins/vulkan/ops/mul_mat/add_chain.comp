#version 450
// SPDX-License-Identifier: MIT
// add, two to seven terms fused: y = a + b + c + ..., F32 of the same shape, all dense, added in
// order. An invocation per four elements.
#include "shaders/common.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
GVK_OPERAND(src1, 3)
GVK_OPERAND(src2, 4)
GVK_OPERAND(src3, 5)
GVK_OPERAND(src4, 6)
GVK_OPERAND(src5, 7)
GVK_OPERAND(src6, 8)
layout(constant_id = 3) const uint TERMS = 3;

// Four elements per invocation. The number of terms is a constant of the pipeline; terms are added
// in the order of the fused nodes, so that results equal those of separate launches.
void main() {
    const uint n = DST.ne.x * DST.ne.y * DST.ne.z * DST.ne.w;
    const uint first = 4 * invocation_linear();
    for (uint i = first; i < min(first + 4, n); ++i) {
        float sum = src0_f32[(tensors[1].at.x >> 2) + i] + src1_f32[(tensors[2].at.x >> 2) + i];
        if (TERMS > 2) sum += src2_f32[(tensors[3].at.x >> 2) + i];
        if (TERMS > 3) sum += src3_f32[(tensors[4].at.x >> 2) + i];
        if (TERMS > 4) sum += src4_f32[(tensors[5].at.x >> 2) + i];
        if (TERMS > 5) sum += src5_f32[(tensors[6].at.x >> 2) + i];
        if (TERMS > 6) sum += src6_f32[(tensors[7].at.x >> 2) + i];
        dst_f32[(DST.at.x >> 2) + i] = sum;
    }
}
