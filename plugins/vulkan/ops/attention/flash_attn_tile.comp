#version 450
// SPDX-License-Identifier: MIT
// flash_attn_ext for GPUs: a group takes a tile of query rows that share a head of K and V, with
// the queries in shared memory, through which blocks of K and then of V go as floats, so that each
// is unpacked once per tile. The invocations are lines of 16: a line has ROWS query rows, a lane
// KEYS keys of a block and every 16th quad of channels of the sums. Blocks that the mask hides from
// the whole tile are left out. number(1): query heads that share one of K and one of V.
#include "ops/attention/attention.glsl"
#define UNPACK_FROM src1
#include "shaders/unpack.glsl"
#define UNPACK_FROM src2
#include "shaders/unpack.glsl"
layout(constant_id = 9) const bool SPLIT = false; // keys over several groups
layout(constant_id = 10) const uint K_QUADS = 16; // of a row
layout(constant_id = 11) const uint V_QUADS = 16;
layout(constant_id = 12) const uint ROWS = 1;
layout(constant_id = 13) const uint KEYS = 1;
layout(constant_id = 14) const bool K_WIDE = false; // rows can be read 16 bytes at a time
layout(constant_id = 15) const bool V_WIDE = false;

const uint LANES = 16;
const uint GROUP = gl_WorkGroupSize.x;
const uint TILE = GROUP / LANES * ROWS, BLOCK = LANES * KEYS;
const uint SUMS = (V_QUADS + LANES - 1) / LANES; // quads of a lane
// Odd, so that lanes which read one quad of neighbouring rows meet different banks.
const uint Q_PITCH = K_QUADS | 1u, PITCH = (K_QUADS > V_QUADS ? K_QUADS : V_QUADS) | 1u;

shared vec4 queries[TILE * Q_PITCH];
shared vec4 block[BLOCK * PITCH];
shared vec4 weights[TILE * BLOCK / 4];
shared vec4 reduced[TILE * LANES / 4]; // what the lanes of a line have to say of a row
shared uint visible; // 1 + first key of the last block that a row sees
shared uint unusual; // 1 + first key of the last block with values that are not finite

// Of this tile: first of its rows, how many exist for its head, batch and first query head.
uint first_row, n_rows, batch, first_head;
float largest[ROWS];
float totals[ROWS]; // of this lane's keys
float slopes[ROWS];
uint masks[ROWS];
vec4 sums[ROWS * SUMS];
float scores[ROWS * KEYS]; // of a block; masks at first

// Lane within its line of threads, which share rows.
uint lane() { return gl_LocalInvocationID.x % LANES; }
// Within the tile, of the r-th row of this line.
uint line_row(const uint r) { return gl_LocalInvocationID.x / LANES * ROWS + r; }

// Token, head, batch.
uvec3 row_of(const uint within) {
    const uint row = min(first_row + within, n_rows - 1u);
    const uint token = row / number(1);
    return uvec3(token, first_head + row - token * number(1), batch);
}

// Channels 4 i to 4 i + 3 of a row of K.
vec4 load_k(const uint row, const uint i) {
    if (K_WIDE && K_TYPE == TYPE_F32) return src1_vec4[(row >> 4) + i];
    if (K_WIDE && (K_TYPE == TYPE_F16 || K_TYPE == TYPE_BF16)) {
        const uint at = (row >> 2) + 2 * i;
        return floats_of(K_TYPE, uvec2(src1_u32[at], src1_u32[at + 1]));
    }
    return src1_unpack4(K_TYPE, row, 4 * i);
}
// Channels 4 i to 4 i + 3 of a row of V.
vec4 load_v(const uint row, const uint i) {
    if (V_WIDE && V_TYPE == TYPE_F32) return src2_vec4[(row >> 4) + i];
    if (V_WIDE && (V_TYPE == TYPE_F16 || V_TYPE == TYPE_BF16)) {
        const uint at = (row >> 2) + 2 * i;
        return floats_of(V_TYPE, uvec2(src2_u32[at], src2_u32[at + 1]));
    }
    return src2_unpack4(V_TYPE, row, 4 * i);
}

// Brings the tile's queries into shared memory, once for all keys.
void load_queries() {
    for (uint i = gl_LocalInvocationID.x; i < TILE * K_QUADS; i += GROUP) {
        const uint row = i / K_QUADS, quad = i - row * K_QUADS;
        const uint q = (q_address(row_of(row)) >> 2) + 4 * quad;
        queries[row * Q_PITCH + quad] =
            vec4(src0_f32[q], src0_f32[q + 1], src0_f32[q + 2], src0_f32[q + 3]);
    }
}

// Keys from `end` on are zero.
void load_keys(const uint k, const uint first, const uint end) {
    [[unroll]] for (uint i = 0; i < BLOCK * K_QUADS; i += GROUP) {
        const uint item = i + gl_LocalInvocationID.x;
        const uint key = item / K_QUADS, quad = item - key * K_QUADS;
        if (key >= BLOCK) continue;
        block[key * PITCH + quad] =
            first + key < end ? load_k(k + (first + key) * SRC1.nb.y, quad) : vec4(0);
    }
}

bool is_finite(const vec4 x) {
    const uvec4 size = floatBitsToUint(x) & 0x7fffffffu;
    return max(max(size.x, size.y), max(size.z, size.w)) < 0x7f800000u;
}

// Brings a block of V into shared memory. One that has infinities or NaN is noted: keys without
// weight then have to be left out of its sums, as 0 times these is NaN.
void load_values(const uint v, const uint first, const uint end) {
    [[unroll]] for (uint i = 0; i < BLOCK * V_QUADS; i += GROUP) {
        const uint item = i + gl_LocalInvocationID.x;
        const uint key = item / V_QUADS, quad = item - key * V_QUADS;
        if (key >= BLOCK) continue;
        const vec4 x = first + key < end ? load_v(v + (first + key) * SRC2.nb.y, quad) : vec4(0);
        if (!is_finite(x)) unusual = first + 1;
        block[key * PITCH + quad] = x;
    }
}

// The mask of this invocation's keys for its rows; whether one of them sees one.
bool load_mask(const uint first, const uint end) {
    bool sees = false;
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        [[unroll]] for (uint j = 0; j < KEYS; ++j) {
            const uint key = first + lane() + LANES * j;
            const float mask = key < end ? mask_at(masks[r], key) : -FLT_INFINITY;
            sees = sees || mask != -FLT_INFINITY;
            scores[r * KEYS + j] = mask;
        }
    }
    return sees;
}

// From masks to scores.
void score() {
    vec4 products[ROWS * KEYS];
    [[unroll]] for (uint i = 0; i < ROWS * KEYS; ++i) products[i] = vec4(0);
    for (uint i = 0; i < K_QUADS; ++i) {
        vec4 x[KEYS];
        [[unroll]] for (uint j = 0; j < KEYS; ++j) x[j] = block[(lane() + LANES * j) * PITCH + i];
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
            const vec4 q = queries[line_row(r) * Q_PITCH + i];
            [[unroll]] for (uint j = 0; j < KEYS; ++j) products[r * KEYS + j] += q * x[j];
        }
    }
    [[unroll]] for (uint i = 0; i < ROWS * KEYS; ++i) {
        const vec4 p = products[i];
        const float product = (p.x + p.y) + (p.z + p.w);
        scores[i] = scores[i] == -FLT_INFINITY ? -FLT_INFINITY
                                               : score_of(product, scores[i], slopes[i / KEYS]);
    }
}

void say(const uint r, const float x) {
    const uint at = line_row(r) * LANES + lane();
    reduced[at / 4][at & 3u] = x;
}

// Weights relative to the largest scores so far, to which former sums are adapted.
void weigh() {
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        const uint at = line_row(r) * LANES / 4;
        const vec4 most = max(max(reduced[at], reduced[at + 1]),
                              max(reduced[at + 2], reduced[at + 3]));
        const float now = max(max(max(most.x, most.y), max(most.z, most.w)), largest[r]);
        const float factor = rescale(largest[r], now);
        largest[r] = now;
        totals[r] *= factor;
        [[unroll]] for (uint j = 0; j < KEYS; ++j) {
            const float x = scores[r * KEYS + j];
            const float weight = x == -FLT_INFINITY ? 0.0 : exp_accurate(x - now);
            const uint to = line_row(r) * BLOCK + lane() + LANES * j;
            weights[to / 4][to & 3u] = weight;
            totals[r] += weight;
        }
        [[unroll]] for (uint i = 0; i < SUMS; ++i) sums[r * SUMS + i] *= factor;
    }
}

// A value without weight may be anything.
void add_values(const bool are_finite) {
    for (uint key = 0; key < BLOCK; key += 4) {
        vec4 w[ROWS];
        [[unroll]] for (uint r = 0; r < ROWS; ++r)
            w[r] = weights[(line_row(r) * BLOCK + key) / 4];
        [[unroll]] for (uint i = 0; i < SUMS; ++i) {
            const uint quad = min(lane() + LANES * i, V_QUADS - 1);
            [[unroll]] for (uint c = 0; c < 4; ++c) {
                const vec4 x = block[(key + c) * PITCH + quad];
                [[unroll]] for (uint r = 0; r < ROWS; ++r) {
                    if (are_finite || w[r][c] != 0.0) sums[r * SUMS + i] += w[r][c] * x;
                }
            }
        }
    }
}

// One block of keys: mask, scores, weights by an online softmax, sums. The branches are uniform:
// `visible` and `unusual` are shared and name the block.
void add_block(const uint k, const uint v, const uint first, const uint end) {
    if (load_mask(first, end)) visible = first + 1;
    barrier(); // nobody reads the former block any more
    if (visible != first + 1) return;
    load_keys(k, first, end);
    barrier();
    score();
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        float most = scores[r * KEYS];
        [[unroll]] for (uint j = 1; j < KEYS; ++j) most = max(most, scores[r * KEYS + j]);
        say(r, most);
    }
    barrier();
    weigh();
    load_values(v, first, end);
    barrier();
    add_values(unusual != first + 1);
}

// Divides each sum by its total, or stores sum, largest score and total of a part.
void close_rows(const uint part) {
    barrier();
    [[unroll]] for (uint r = 0; r < ROWS; ++r) say(r, totals[r]);
    barrier();
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        if (first_row + line_row(r) >= n_rows) break;
        const uint at = line_row(r) * LANES / 4;
        const vec4 x = (reduced[at] + reduced[at + 1]) + (reduced[at + 2] + reduced[at + 3]);
        const float total = (x.x + x.y) + (x.z + x.w);
        const uvec3 row = row_of(line_row(r));
        const float closing = SPLIT ? 1.0 : closing_factor(largest[r], total, row.y);
        const uint to = (SPLIT ? part_address(row, part) : dst_address(row)) >> 2;
        [[unroll]] for (uint i = 0; i < SUMS; ++i) {
            const uint quad = lane() + LANES * i;
            if (quad >= V_QUADS) continue;
            const vec4 sum = sums[r * SUMS + i] * closing;
            [[unroll]] for (uint c = 0; c < 4; ++c) dst_f32[to + 4 * quad + c] = sum[c];
        }
        if (SPLIT && lane() == 0u) {
            dst_f32[to + part_size() - 4] = largest[r];
            dst_f32[to + part_size() - 3] = total;
        }
    }
}

// Rows of this tile: row, head and batch from the group's number.
void open_rows(const uint tile) {
    const uint tiles = (n_rows + TILE - 1u) / TILE, heads = SRC0.ne.z / number(1);
    first_row = tile % tiles * TILE;
    first_head = tile / tiles % heads * number(1);
    batch = tile / tiles / heads;
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        const uvec3 row = row_of(line_row(r));
        slopes[r] = slope_of(row.y);
        masks[r] = MASK ? mask_address(row) : 0;
        largest[r] = -FLT_INFINITY;
        totals[r] = 0;
        [[unroll]] for (uint i = 0; i < SUMS; ++i) sums[r * SUMS + i] = vec4(0);
    }
}

// A tile of query rows that share their keys, against blocks of keys that the group loads into
// shared memory once for all rows of the tile.
void main() {
    const uint parts = SPLIT ? number(2) : 1, tile = group_linear() / parts;
    const uint part = group_linear() - tile * parts;
    n_rows = SRC0.ne.y * number(1);
    if (tile >= (n_rows + TILE - 1u) / TILE * (SRC0.ne.z / number(1)) * SRC0.ne.w) return;
    open_rows(tile);
    load_queries();
    if (gl_LocalInvocationID.x == 0u) visible = unusual = 0;
    barrier();
    const uvec3 row = row_of(0);
    const uint k = k_address(row), v = v_address(row);
    const uint begin = SPLIT ? part * number(3) : 0;
    const uint end = SPLIT ? min(begin + number(3), SRC1.ne.y) : SRC1.ne.y;
    for (uint first = begin; first < end; first += BLOCK) add_block(k, v, first, end);
    close_rows(part);
}
