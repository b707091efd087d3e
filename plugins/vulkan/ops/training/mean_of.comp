#version 450
// SPDX-License-Identifier: MIT
// Mean of number(0) floats in scratch memory, the second launch of cross_entropy_loss. One
// group.
#include "shaders/common.glsl"
#include "shaders/reduce.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(terms, 2)

void main() {
    float sum = 0;
    for (uint i = gl_LocalInvocationID.x; i < number(0); i += gl_WorkGroupSize.x)
        sum += terms_f32[(SRC0.at.x >> 2) + i];
    sum = group_sum(sum);
    if (gl_LocalInvocationID.x == 0)
        dst_f32[DST.at.x >> 2] = number(0) > 0 ? sum / float(number(0)) : 0;
}
