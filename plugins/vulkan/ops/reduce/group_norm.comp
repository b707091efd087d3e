#version 450
// SPDX-License-Identifier: MIT
// group_norm of strided planes, F32: a group of invocations normalises number(0) neighbouring
// channels (dimension 2), one of number(1) groups of a plane of dimension 3. y may be x.
#include "shaders/reduce.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)

uvec4 at_of(const uint i, const uint first, const uint i3) {
    const uint row = i / DST.ne.x;
    return uvec4(i % DST.ne.x, row % DST.ne.y, first + row / DST.ne.y, i3);
}

// A group of invocations normalises a group of channels: mean, then variance around it.
void main() {
    const uint groups = number(1), group = group_linear();
    if (group >= groups * DST.ne.w) return;
    const uint first = group % groups * number(0), i3 = group / groups;
    if (first >= DST.ne.z) return;
    const uint n = DST.ne.x * DST.ne.y * min(number(0), DST.ne.z - first);
    const uint step = gl_WorkGroupSize.x;
    float sum = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < n; i += step)
        sum += src0_f32[address(SRC0, at_of(i, first, i3)) >> 2];
    const float mean = group_sum(sum) / float(n);
    float squares = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < n; i += step) {
        const float v = src0_f32[address(SRC0, at_of(i, first, i3)) >> 2] - mean;
        squares += v * v;
    }
    const float scale = 1.0 / sqrt(group_sum(squares) / float(n) + op_param_f32(1));
    for (uint i = gl_LocalInvocationID.x; i < n; i += step) {
        const uvec4 at = at_of(i, first, i3);
        dst_f32[address(DST, at) >> 2] = (src0_f32[address(SRC0, at) >> 2] - mean) * scale;
    }
}
