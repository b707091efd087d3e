#version 450
// SPDX-License-Identifier: MIT
// sum_rows and mean (the row's sum divided by number(0), a float), and argmax (the index of the
// largest element, the last of equal ones). A row per group.
#include "shaders/math.glsl"
#include "shaders/reduce.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
layout(constant_id = 3) const bool ARGMAX = false;

shared uint reduce_indices[gl_WorkGroupSize.x];

// Each invocation adds every n-th element; the group adds these sums.
void sum_row(const uint row) {
    const uvec4 at = row_at(SRC0.ne, row);
    const uint x = address(SRC0, at);
    float sum = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < SRC0.ne.x; i += gl_WorkGroupSize.x)
        sum += src0_f32[(x + i * SRC0.nb.x) >> 2];
    sum = group_sum(sum);
    if (gl_LocalInvocationID.x == 0)
        dst_f32[address(DST, at) >> 2] = sum / uintBitsToFloat(number(0));
}

// A tree of comparisons by pairs of value and index, log2(group) steps. Of equal values the
// higher index wins at each step, so that the order of the tree doesn't matter.
void argmax_row(const uint row) {
    const uint x = SRC0.at.x + row * SRC0.nb.y, id = gl_LocalInvocationID.x;
    float largest = -FLT_INFINITY;
    uint index = 0;
    for (uint i = id; i < SRC0.ne.x; i += gl_WorkGroupSize.x) {
        const float v = src0_f32[(x + i * SRC0.nb.x) >> 2];
        if (v >= largest) {
            largest = v;
            index = i;
        }
    }
    reduce_values[id] = largest;
    reduce_indices[id] = index;
    barrier();
    for (uint step = gl_WorkGroupSize.x / 2; step > 0; step /= 2) {
        if (id < step) {
            const float other = reduce_values[id + step];
            const uint other_index = reduce_indices[id + step];
            if (other > reduce_values[id] ||
                (other == reduce_values[id] && other_index > reduce_indices[id])) {
                reduce_values[id] = other;
                reduce_indices[id] = other_index;
            }
        }
        barrier();
    }
    if (id == 0) dst_u32[(DST.at.x + row * DST.nb.x) >> 2] = reduce_indices[0];
}

// One group per row.
void main() {
    const uint row = group_linear();
    if (row >= SRC0.ne.y * SRC0.ne.z * SRC0.ne.w) return;
    if (ARGMAX)
        argmax_row(row);
    else
        sum_row(row);
}
