#version 450
// SPDX-License-Identifier: MIT
// soft_max of scale x + slope mask, a row per group, with a sink in the denominator. y may be x.
#include "math.glsl"
#include "reduce.glsl"
VK_OPERAND(dst, 1)
VK_OPERAND(src0, 2)
VK_OPERAND(src1, 3)
VK_OPERAND(src2, 4)
layout(constant_id = 3) const bool MASK = false;
layout(constant_id = 4) const uint MASK_TYPE = 0;
layout(constant_id = 5) const bool SINKS = false;

// The mask's slope for a head (ALiBi); number(0): largest power of two within the heads.
float slope_of(const uint head) {
    const float max_bias = op_param_f32(1), below = float(number(0));
    if (!(max_bias > 0.0)) return 1.0;
    const float exponent = head < number(0)
                               ? -max_bias / below * float(head + 1)
                               : -max_bias / (2.0 * below) * float(2 * (head - number(0)) + 1);
    return exp_accurate(exponent * 0.69314718055994530942);
}

float scaled(const uint x, const uint mask, const float slope, const uint i) {
    const float z = src0_f32[(x >> 2) + i] * op_param_f32(0);
    return MASK ? z + slope * src1_load(MASK_TYPE, mask + i * SRC1.nb.x) : z;
}

void main() {
    const uint row = group_linear();
    if (row >= DST.ne.y * DST.ne.z * DST.ne.w) return;
    const uvec4 at = row_at(DST.ne, row);
    const uint x = address(SRC0, at), y = address(DST, at) >> 2;
    const uint n = DST.ne.x, step = gl_WorkGroupSize.x;
    const uint mask =
        MASK ? address(SRC1, uvec4(0, at.y, at.z % SRC1.ne.z, at.w % SRC1.ne.w)) : 0u;
    const float slope = slope_of(at.z);
    const float sink = SINKS ? src2_f32[(SRC2.at.x >> 2) + at.z] : -FLT_INFINITY;
    float largest = sink;
    for (uint i = gl_LocalInvocationID.x; i < n; i += step) {
        const float z = scaled(x, mask, slope, i);
        largest = z > largest ? z : largest;
    }
    largest = group_max(largest);
    float sum = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < n; i += step) {
        const float e = exp_accurate(scaled(x, mask, slope, i) - largest);
        dst_f32[y + i] = e;
        sum += e;
    }
    sum = group_sum(sum);
    const float inverse = 1.0 / (SINKS ? sum + exp_accurate(sink - largest) : sum);
    for (uint i = gl_LocalInvocationID.x; i < n; i += step)
        dst_f32[y + i] *= inverse;
}
