#version 450
// SPDX-License-Identifier: MIT
// flash_attn_ext, a query row per group: each invocation takes the score of one key of a block of
// keys, then a few channels of the weighted sum. For all types and layouts. SPLIT: a group takes
// one of the parts of the keys, of number(5) rows from row number(4) on.
#include "ops/attention/attention.glsl"
#include "shaders/reduce.glsl"
#define UNPACK_FROM src1
#include "shaders/unpack.glsl"
#define UNPACK_FROM src2
#include "shaders/unpack.glsl"
layout(constant_id = 9) const bool SPLIT = false;

shared vec4 query[256];
shared vec4 sums[256];
shared float weights[gl_WorkGroupSize.x];

// Channels 4 i to 4 i + 3, zero behind the end.
vec4 load_q(const uint row, const uint i) {
    vec4 x = vec4(0);
    for (uint c = 4 * i; c < min(4 * i + 4, SRC0.ne.x); ++c) x[c & 3u] = src0_f32[(row >> 2) + c];
    return x;
}
// Four channels of a key from 4 i on; channels beyond the row are 0.
vec4 load_k(const uint row, const uint i) {
    if (4 * i + 4 <= SRC1.ne.x) return src1_unpack4(K_TYPE, row, 4 * i);
    vec4 x = vec4(0);
    for (uint c = 4 * i; c < SRC1.ne.x; ++c) x[c & 3u] = src1_load(K_TYPE, row + c * SRC1.nb.x);
    return x;
}
// As load_k(), of a value.
vec4 load_v(const uint row, const uint i) {
    if (4 * i + 4 <= SRC2.ne.x) return src2_unpack4(V_TYPE, row, 4 * i);
    vec4 x = vec4(0);
    for (uint c = 4 * i; c < SRC2.ne.x; ++c) x[c & 3u] = src2_load(V_TYPE, row + c * SRC2.nb.x);
    return x;
}

// Score of one key, by this invocation alone; hidden keys are not read.
float score_at(const uint k, const uint mask, const float slope, const uint key) {
    const float hidden = mask_at(mask, key);
    if (hidden == -FLT_INFINITY) return -FLT_INFINITY;
    const uint row = k + key * SRC1.nb.y;
    vec4 product = vec4(0);
    for (uint i = 0; i < (SRC1.ne.x + 3) / 4; ++i) product += query[i] * load_k(row, i);
    return score_of((product.x + product.y) + (product.z + product.w), hidden, slope);
}

// Adds a block of weighted values: each invocation sums some channels over all keys of the
// block, after scaling what it has by `factor`.
void add_values(const uint v, const uint n_keys, const float factor) {
    for (uint i = gl_LocalInvocationID.x; i < (SRC2.ne.x + 3) / 4; i += gl_WorkGroupSize.x) {
        vec4 sum = factor == 1.0 ? sums[i] : sums[i] * factor;
        for (uint j = 0; j < n_keys; ++j) {
            if (weights[j] != 0.0) sum += weights[j] * load_v(v + j * SRC2.nb.y, i);
        }
        sums[i] = sum;
    }
}

// Divides by the total and stores the row, or stores the part as flash_attn_merge.comp reads it.
void close_row(const uvec3 row, const uint part, const float largest, const float total) {
    const uint lane = gl_LocalInvocationID.x;
    const float closing = SPLIT ? 1.0 : closing_factor(largest, total, row.y);
    const uint to = (SPLIT ? part_address(row, part) : dst_address(row)) >> 2;
    barrier();
    for (uint c = lane; c < SRC2.ne.x; c += gl_WorkGroupSize.x)
        dst_f32[to + c] = sums[c / 4][c & 3u] * closing;
    if (SPLIT && lane == 0u) {
        dst_f32[to + part_size() - 4] = largest;
        dst_f32[to + part_size() - 3] = total;
    }
}

// One group per query row. Online softmax (Milakov and Gimelshein, 2018): running maximum and sum
// of weights are rescaled when a larger score comes, so that one pass over the keys is enough. A
// split launch computes a range of keys per group, which flash_attn_merge combines.
void main() {
    const uint parts = SPLIT ? number(2) : 1, number_of_row = group_linear() / parts;
    const uint part = group_linear() - number_of_row * parts;
    if (number_of_row >= number(5)) return;
    const uvec3 row = row_at(SRC0.ne, number(4) + number_of_row).yzw;
    const uint lane = gl_LocalInvocationID.x;
    const uint begin = SPLIT ? part * number(3) : 0;
    const uint end = SPLIT ? min(begin + number(3), SRC1.ne.y) : SRC1.ne.y;
    const uint q = q_address(row), k = k_address(row), v = v_address(row);
    const uint mask = MASK ? mask_address(row) : 0;
    const float slope = slope_of(row.y);
    for (uint i = lane; i < 256; i += gl_WorkGroupSize.x) {
        query[i] = load_q(q, i);
        sums[i] = vec4(0);
    }
    barrier();
    float largest = -FLT_INFINITY;
    float total = 0;
    // As many keys at a time as the group has lanes: each lane scores one key, then all add up the
    // values.
    for (uint first = begin; first < end; first += gl_WorkGroupSize.x) {
        const uint key = first + lane;
        const float score = key < end ? score_at(k, mask, slope, key) : -FLT_INFINITY;
        const float now = max(largest, group_max(score));
        // All keys so far are masked.
        if (now == -FLT_INFINITY) continue;
        const float weight = score == -FLT_INFINITY ? 0.0 : exp_accurate(score - now);
        const float factor = rescale(largest, now);
        weights[lane] = weight;
        total = total * factor + group_sum(weight);
        add_values(v + first * SRC2.nb.y, min(gl_WorkGroupSize.x, end - first), factor);
        largest = now;
        barrier();
    }
    close_row(row, part, largest, total);
}
