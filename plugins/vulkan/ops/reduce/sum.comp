#version 450
// SPDX-License-Identifier: MIT
// sum of all elements, and count_equal of two operands, in two launches: the first (PARTS)
// writes one number per group to scratch memory, the second adds these.
#include "shaders/reduce.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
GVK_OPERAND(src1, 3)
layout(constant_id = 3) const bool PARTS = false;
layout(constant_id = 4) const bool COUNT = false;
layout(constant_id = 5) const uint TYPE = 0;

shared uint counts[gl_WorkGroupSize.x];

// Sum of integers over the group, by halves; all invocations have to call it.
uint group_count(const uint x) {
    const uint i = gl_LocalInvocationID.x;
    counts[i] = x;
    barrier();
    for (uint step = gl_WorkGroupSize.x / 2; step > 0; step /= 2) {
        if (i < step) counts[i] += counts[i + step];
        barrier();
    }
    return counts[0];
}

// number(0) groups share the elements; scratch memory is operand 0.
void write_part() {
    const uint n = SRC0.ne.x * SRC0.ne.y * SRC0.ne.z * SRC0.ne.w;
    const uint step = number(0) * gl_WorkGroupSize.x;
    float sum = 0.0;
    uint count = 0;
    for (uint i = invocation_linear(); i < n; i += step) {
        const uvec4 at = element_at(SRC0.ne, i);
        if (COUNT)
            count += uint(src0_u32[address(SRC0, at) >> 2] == src1_u32[address(SRC1, at) >> 2]);
        else
            sum += src0_load(TYPE, address(SRC0, at));
    }
    const uint part = COUNT ? group_count(count) : floatBitsToUint(group_sum(sum));
    if (gl_LocalInvocationID.x == 0) dst_u32[(DST.at.x >> 2) + group_linear()] = part;
}

// The parts are operand 1.
void add_parts() {
    float sum = 0.0;
    uint count = 0;
    for (uint i = gl_LocalInvocationID.x; i < number(0); i += gl_WorkGroupSize.x) {
        const uint part = src0_u32[(SRC0.at.x >> 2) + i];
        count += part;
        sum += uintBitsToFloat(part);
    }
    if (COUNT) {
        count = group_count(count);
        if (gl_LocalInvocationID.x != 0) return;
        dst_u32[DST.at.x >> 2] = count;
        dst_u32[(DST.at.x >> 2) + 1] = 0;
    } else {
        sum = group_sum(sum);
        if (gl_LocalInvocationID.x == 0) dst_store(TYPE, DST.at.x, sum);
    }
}

// Two launches: sums of parts, then their sum, in an order that doesn't depend on the device.
void main() {
    if (PARTS) {
        if (group_linear() < number(0)) write_part();
    } else {
        add_parts();
    }
}
