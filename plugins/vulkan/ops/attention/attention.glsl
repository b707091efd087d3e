// SPDX-License-Identifier: MIT
// What the kernels of flash_attn_ext share: softmax(scale Q K^T + slope mask) V.
#ifndef ATTENTION_GLSL
#define ATTENTION_GLSL

#include "shaders/common.glsl"
#include "shaders/math.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2) // Q
GVK_OPERAND(src1, 3) // K
GVK_OPERAND(src2, 4) // V
GVK_OPERAND(src3, 5) // mask
GVK_OPERAND(src4, 6) // sinks
layout(constant_id = 3) const uint K_TYPE = 0;
layout(constant_id = 4) const uint V_TYPE = 0;
layout(constant_id = 5) const uint MASK_TYPE = 0;
layout(constant_id = 6) const bool MASK = false;
layout(constant_id = 7) const bool SOFTCAP = false;
layout(constant_id = 8) const bool SINKS = false;

#define SRC_MASK tensors[4]
#define SRC_SINKS tensors[5]

// The mask's slope for a head (ALiBi); number(0): largest power of two within the heads.
float slope_of(const uint head) {
    const float max_bias = op_param_f32(1), below = float(number(0));
    if (!(max_bias > 0.0)) return 1.0;
    const float exponent = head < number(0)
                               ? -max_bias / below * float(head + 1)
                               : -max_bias / (2.0 * below) * float(2 * (head - number(0)) + 1);
    return exp_accurate(exponent * 0.69314718055994530942);
}

// Of a query row: token, head, batch.
uint mask_address(const uvec3 row) {
    const uvec2 at = row.yz % SRC_MASK.ne.zw;
    return SRC_MASK.at.x + row.x * SRC_MASK.nb.y + at.x * SRC_MASK.nb.z + at.y * SRC_MASK.nb.w;
}

float mask_at(const uint mask, const uint key) {
    if (!MASK) return 0.0;
    return src3_load(MASK_TYPE, mask + key * (MASK_TYPE == TYPE_F32 ? 4 : 2));
}

// A hidden key counts for nothing, not even as a NaN; any other NaN spoils the row.
float score_of(const float product, const float mask, const float slope) {
    float score = product * op_param_f32(0);
    if (SOFTCAP) score = op_param_f32(2) * tanh_accurate(score / op_param_f32(2));
    if (MASK) score += slope * mask;
    if (is_nan(score)) score = FLT_INFINITY;
    return mask == -FLT_INFINITY ? -FLT_INFINITY : score;
}

// What makes former sums relative to a new largest score.
float rescale(const float before, const float now) {
    return before == now ? 1.0 : exp_accurate(before - now);
}

// What turns sums relative to `largest` into the result; the sink counts, but has no value.
float closing_factor(const float largest, float sum, const uint head) {
    float factor = 1.0;
    if (SINKS) {
        const float sink = src4_f32[(SRC_SINKS.at.x >> 2) + head];
        const float now = sink > largest ? sink : largest;
        factor = rescale(largest, now);
        sum = sum * factor + (sink == now ? 1.0 : exp_accurate(sink - now));
    }
    return sum == 0.0 ? factor : factor / sum;
}

uint q_address(const uvec3 row) {
    return SRC0.at.x + row.x * SRC0.nb.y + row.y * SRC0.nb.z + row.z * SRC0.nb.w;
}
uint k_address(const uvec3 row) {
    return SRC1.at.x + row.y / (SRC0.ne.z / SRC1.ne.z) * SRC1.nb.z + row.z * SRC1.nb.w;
}
uint v_address(const uvec3 row) {
    return SRC2.at.x + row.y / (SRC0.ne.z / SRC2.ne.z) * SRC2.nb.z + row.z * SRC2.nb.w;
}
uint dst_address(const uvec3 row) {
    return DST.at.x + row.y * DST.nb.y + row.x * DST.nb.z + row.z * DST.nb.w;
}

// Where a part of the keys leaves what it found for a query row: sums, largest score, sum of the
// weights; number(2) parts per row, of number(3) keys each. Rows are counted from row number(4) on,
// the first of the launch.
uint part_size() { return (SRC2.ne.x + 3) / 4 * 4 + 4; } // numbers
uint part_index(const uvec3 row, const uint part) {
    const uint number_of_row = (row.z * SRC0.ne.z + row.y) * SRC0.ne.y + row.x;
    return (number_of_row - number(4)) * number(2) + part;
}
uint part_address(const uvec3 row, const uint part) {
    return DST.at.x + 4 * part_index(row, part) * part_size();
}

#endif
