#version 450
// SPDX-License-Identifier: MIT
// flash_attn_ext for drivers that run on the CPU, a subgroup per ROWS query rows that share a
// head of K and V: each invocation takes every n-th pair of keys with an online softmax of its
// own, and they are merged at the end. Queries and sums stay in registers or on the stack, loads
// are wide and serve all rows, and nothing is exchanged within the loop. number(1): query heads
// that share one of K and one of V.
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "ops/attention/attention.glsl"
#ifdef BLOCKS
#define UNPACK_SMALL
#define UNPACK_FROM src1
#include "shaders/unpack.glsl"
#define UNPACK_FROM src1
#include "shaders/unpack_group.glsl"
#define UNPACK_FROM src2
#include "shaders/unpack.glsl"
#define UNPACK_FROM src2
#include "shaders/unpack_group.glsl"
const uint QUADS = 8; // of a load
#else
const uint QUADS = 2;
#endif
layout(constant_id = 9) const uint K_QUADS = 16;
layout(constant_id = 10) const uint V_QUADS = 16;
layout(constant_id = 11) const uint ROWS = 1;
const uint KEYS = 2;

#define LOAD_PLAIN(name, type)                                                                     \
    [[unroll]] for (uint i = 0; i < QUADS; i += 2) {                                               \
        const uint quad = g * QUADS + i;                                                           \
        if (type == TYPE_F32) {                                                                    \
            x[i] = name##_vec4[(row >> 4) + quad];                                                 \
            x[i + 1] = name##_vec4[(row >> 4) + quad + 1];                                         \
        } else {                                                                                   \
            const uvec4 words = name##_uvec4[(row >> 4) + quad / 2];                               \
            x[i] = floats_of(type, words.xy);                                                      \
            x[i + 1] = floats_of(type, words.zw);                                                  \
        }                                                                                          \
    }

// Group g of a row of K: 32 elements of blocks, 8 of floats.
void load_k(const uint row, const uint g, out vec4 x[8]) {
#ifdef BLOCKS
    if (K_TYPE != TYPE_F32 && K_TYPE != TYPE_F16 && K_TYPE != TYPE_BF16) {
        src1_group_unpack(K_TYPE, true, row, g, x);
        return;
    }
#endif
    LOAD_PLAIN(src1, K_TYPE)
}

// Group g of a row of V.
void load_v(const uint row, const uint g, out vec4 x[8]) {
#ifdef BLOCKS
    if (V_TYPE != TYPE_F32 && V_TYPE != TYPE_F16 && V_TYPE != TYPE_BF16) {
        src2_group_unpack(V_TYPE, true, row, g, x);
        return;
    }
#endif
    LOAD_PLAIN(src2, V_TYPE)
}

uvec3 rows[ROWS]; // token, head, batch
vec4 query[ROWS * K_QUADS];
vec4 sums[ROWS * V_QUADS];
float largest[ROWS];
float totals[ROWS];
float slopes[ROWS];
uint masks[ROWS];

// Returns how many rows there are.
uint open_rows() {
    const uint per_head = SRC0.ne.y * number(1);
    const uint tiles = (per_head + ROWS - 1u) / ROWS;
    const uint heads = SRC0.ne.z / number(1);
    const uint tile = group_linear();
    if (tile >= tiles * heads * SRC0.ne.w) return 0;
    const uint first = tile % tiles * ROWS;
    const uint head = tile / tiles % heads * number(1);
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        const uint row = min(first + r, per_head - 1u);
        rows[r] = uvec3(row / number(1), head + row % number(1), tile / tiles / heads);
        slopes[r] = slope_of(rows[r].y);
        masks[r] = MASK ? mask_address(rows[r]) : 0;
        largest[r] = -FLT_INFINITY;
        totals[r] = 0;
        const uint q = q_address(rows[r]) >> 4;
        [[unroll]] for (uint i = 0; i < K_QUADS; ++i) query[r * K_QUADS + i] = src0_vec4[q + i];
        [[unroll]] for (uint i = 0; i < V_QUADS; ++i) sums[r * V_QUADS + i] = vec4(0);
    }
    return min(ROWS, per_head - first);
}

// Scores of a key, by row.
void score_key(const uint k, const uint key, out float scores[ROWS]) {
    vec4 products[ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; ++r) products[r] = vec4(0);
    [[unroll]] for (uint g = 0; g < K_QUADS / QUADS; ++g) {
        vec4 x[8];
        load_k(k + key * SRC1.nb.y, g, x);
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
            [[unroll]] for (uint i = 0; i < QUADS; ++i)
                products[r] += query[r * K_QUADS + g * QUADS + i] * x[i];
        }
    }
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        const vec4 p = products[r];
        scores[r] = score_of((p.x + p.y) + (p.z + p.w), mask_at(masks[r], key), slopes[r]);
    }
}

// The weight of a key relative to the largest score so far; 0 for a hidden one.
float weigh(const float score, const float now) {
    return score == -FLT_INFINITY ? 0.0 : exp_accurate(score - now);
}

// The second of the keys may be behind the end; it is then hidden.
void add_keys(const uint k, const uint v, const uint key, const uint n_keys) {
    float weights[KEYS * ROWS];
    float factors[ROWS];
    uint keys[KEYS];
    [[unroll]] for (uint j = 0; j < KEYS; ++j) {
        float scores[ROWS];
        keys[j] = min(key + j, n_keys - 1);
        score_key(k, keys[j], scores);
        [[unroll]] for (uint r = 0; r < ROWS; ++r)
            weights[j * ROWS + r] = key + j < n_keys ? scores[r] : -FLT_INFINITY;
    }
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        const float now = max(max(weights[r], weights[ROWS + r]), largest[r]);
        factors[r] = rescale(largest[r], now);
        weights[r] = weigh(weights[r], now);
        weights[ROWS + r] = weigh(weights[ROWS + r], now);
        totals[r] = totals[r] * factors[r] + (weights[r] + weights[ROWS + r]);
        largest[r] = now;
    }
    [[unroll]] for (uint g = 0; g < V_QUADS / QUADS; ++g) {
        vec4 values[8 * KEYS];
        [[unroll]] for (uint j = 0; j < KEYS; ++j) {
            vec4 x[8];
            load_v(v + keys[j] * SRC2.nb.y, g, x);
            [[unroll]] for (uint i = 0; i < QUADS; ++i) values[8 * j + i] = x[i];
        }
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
            [[unroll]] for (uint i = 0; i < QUADS; ++i) {
                const uint at = r * V_QUADS + g * QUADS + i;
                vec4 sum = sums[at] * factors[r];
                // A value without weight may be anything.
                [[unroll]] for (uint j = 0; j < KEYS; ++j) {
                    const float weight = weights[j * ROWS + r];
                    sum += weight == 0.0 ? vec4(0) : weight * values[8 * j + i];
                }
                sums[at] = sum;
            }
        }
    }
}

// Merges the softmaxes of all lanes, which saw different keys, and stores the row.
void close_row(const uint r) {
    const uint lane = gl_SubgroupInvocationID;
    const float all = subgroupMax(largest[r]);
    const float factor = largest[r] == -FLT_INFINITY ? 0.0 : rescale(largest[r], all);
    const float total = subgroupAdd(totals[r] * factor);
    const float closing = closing_factor(all, total, rows[r].y);
    const uint to = dst_address(rows[r]) >> 2;
    [[unroll]] for (uint i = 0; i < V_QUADS; i += 2) {
        float mine = 0;
        [[unroll]] for (uint c = 0; c < 8; ++c) {
            const float sum = subgroupAdd(sums[r * V_QUADS + i + c / 4][c & 3u] * factor);
            if (lane == c) mine = sum * closing;
        }
        if (lane < 8u) dst_f32[to + 4 * i + lane] = mine;
    }
}

// A lane goes through every KEYS * subgroup size-th key for all its rows; the lanes' results are
// combined when a row is closed.
void main() {
    const uint n_rows = open_rows();
    if (n_rows == 0u) return;
    const uint k = k_address(rows[0]), v = v_address(rows[0]);
    const uint n_keys = SRC1.ne.y;
    for (uint key = KEYS * gl_SubgroupInvocationID; key < n_keys; key += KEYS * gl_SubgroupSize)
        add_keys(k, v, key, n_keys);
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        if (r < n_rows) close_row(r);
    }
}
