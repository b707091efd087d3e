// SPDX-License-Identifier: MIT
// flash_attn_ext for prompts, with matrices of SIMD groups: a block of threads has 32 rows, eight
// for each SIMD group, and 32 keys at a time with the softmax taken online. Q, K and V pass through
// shared memory 32 channels at a time, K and V decoded on the way; scores, weights and sums are
// F32. Tiles of keys that no row sees are left out.
#include "attention_parts.h"

enum {
    ATTENTION_TILE = 32, // rows, keys, channels at a time
    TILE_PITCH = ATTENTION_TILE + 4,
    TILE_FLOATS = ATTENTION_TILE * TILE_PITCH,
    TILE_CHUNKS = 8, // most channels of V, by 32
};

#define CHUNKS(p) ((u32)GPU_SPECIAL(p, 3))

// Shared memory, and what a thread has of the row that it shares with three others.
struct matrix_state {
    GPU_LOCAL float *left, *right, *scores, *scales, *parts;
    float slope, largest, sum;
    float biases[8];
    gpu_matrix values[4 * TILE_CHUNKS]; // of the SIMD group's rows: eight channels each
};

// Eight elements of a row from channel c on into a tile; zeros where there is no row, or no such
// channel.
GPU_FN void tile_eight(int type, GPU_GLOBAL const u8 *row, u64 c, u64 n, GPU_LOCAL float *to) {
    for (u32 i = 0; i < 8; i += 4) {
        float x[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (row && c + i < n) four_weights(type, row, c + i, x);
        for (u32 e = 0; e < 4; ++e)
            to[i + e] = x[e];
    }
}

// Whether any row sees any of the keys, for all threads alike.
GPU_FN bool tile_biases(gpu_thread g, GPU_ARGS gpu_args &p, attention_block o, u64 first,
                        GPU_PRIVATE matrix_state &s) {
    const u32 t = gpu_tid(g);
    GPU_GLOBAL const u8 *mask_row = attention_mask(p, attention_at(o, t / 4));
    float seen = 0.0f;
    for (u32 i = 0; i < 8; ++i) {
        s.biases[i] = attention_bias(p, o, t / 4, mask_row, first + t % 4 * 8 + i);
        if (s.biases[i] != -GPU_INFINITY) seen = 1.0f;
    }
    return !mask_row || gpu_block_max(g, s.parts, seen) > 0.0f;
}

// Products of all rows and keys.
GPU_FN void tile_products(gpu_thread g, GPU_ARGS gpu_args &p, attention_block o, u64 first,
                          GPU_PRIVATE matrix_state &s) {
    GPU_ARGS gpu_operand &q = p.operands[1], &k = p.operands[2];
    const u32 t = gpu_tid(g), group = t / 32, at = t / 4 * TILE_PITCH + t % 4 * 8;
    const gpu_at row = attention_at(o, t / 4);
    const u64 n = (u64)k.ne[0], key = first + t / 4;
    GPU_GLOBAL const u8 *q_row = o.row0 + t / 4 < o.n_rows ? gpu_row(q, row.y, row.z, row.w) : 0;
    GPU_GLOBAL const u8 *k_row = key < o.end ? gpu_row(k, key, o.kv_head, o.batch) : 0;
    gpu_matrix sums[4];
    for (u32 i = 0; i < 4; ++i)
        gpu_matrix_zero(sums[i]);
    for (u64 c = 0; c < n; c += ATTENTION_TILE) {
        // A thread loads eight channels of a row and of a key; a SIMD group multiplies 8 rows by 32
        // keys.
        tile_eight(TYPE_F32, q_row, c + t % 4 * 8, n, s.left + at);
        tile_eight(K_TYPE(p), k_row, c + t % 4 * 8, n, s.right + at);
        gpu_sync(g);
        for (u32 e = 0; e < ATTENTION_TILE; e += 8) {
            gpu_matrix a, b;
            gpu_matrix_load(a, s.left + 8 * group * TILE_PITCH + e, TILE_PITCH);
            for (u32 i = 0; i < 4; ++i) {
                gpu_matrix_load_turned(b, s.right + 8 * i * TILE_PITCH + e, TILE_PITCH);
                gpu_matrix_multiply(sums[i], a, b);
            }
        }
        gpu_sync(g);
    }
    for (u32 i = 0; i < 4; ++i)
        gpu_matrix_store(sums[i], s.scores + 8 * group * TILE_PITCH + 8 * i, TILE_PITCH);
    gpu_sync(g);
}

// From products to weights. scales: of each SIMD group a matrix with its rows' factors in the
// diagonal. Whether any of them is not 1.
GPU_FN bool tile_weights(gpu_thread g, GPU_ARGS gpu_args &p, GPU_PRIVATE matrix_state &s) {
    const u32 t = gpu_tid(g), lane = t % 32, row = lane / 4;
    GPU_LOCAL float *mine = s.scores + t / 4 * TILE_PITCH + t % 4 * 8;
    float scores[8], largest = s.largest, sum = 0.0f;
    for (u32 i = 0; i < 8; ++i) {
        // A thread has eight keys of a row; four neighbouring lanes have the row.
        scores[i] = attention_score(p, mine[i], s.slope, s.biases[i]);
        largest = gpu_larger(largest, scores[i]);
    }
    largest = gpu_larger(largest, gpu_shfl_xor(largest, 1));
    largest = gpu_larger(largest, gpu_shfl_xor(largest, 2));
    for (u32 i = 0; i < 8; ++i) {
        mine[i] = scores[i] == -GPU_INFINITY ? 0.0f : gpu_exp(scores[i] - largest);
        sum += mine[i];
    }
    sum += gpu_shfl_xor(sum, 1);
    sum += gpu_shfl_xor(sum, 2);
    const float factor = attention_rescale(s.largest, largest);
    s.largest = largest;
    s.sum = s.sum * factor + sum;
    for (u32 e = 0; e < 2; ++e) {
        const u32 column = 2 * (lane % 4) + e;
        s.scales[t / 32 * 64 + 8 * row + column] = column == row ? factor : 0.0f;
    }
    const float changed = gpu_warp_sum(factor == 1.0f ? 0.0f : 1.0f);
    gpu_sync(g);
    return changed > 0.0f;
}

// Which lane holds which element of a matrix is not specified, so that rows are scaled by a product
// with the diagonal matrix of their factors.
GPU_FN void tile_rescale(gpu_thread g, GPU_ARGS gpu_args &p, GPU_PRIVATE matrix_state &s) {
    gpu_matrix scales, scaled;
    gpu_matrix_load(scales, s.scales + gpu_tid(g) / 32 * 64, 8);
    for (u32 i = 0; i < 4 * CHUNKS(p); ++i) {
        gpu_matrix_zero(scaled);
        gpu_matrix_multiply(scaled, scales, s.values[i]);
        s.values[i] = scaled;
    }
}

GPU_FN void tile_values(gpu_thread g, GPU_ARGS gpu_args &p, attention_block o, u64 first,
                        GPU_PRIVATE matrix_state &s) {
    GPU_ARGS gpu_operand &v = p.operands[3];
    const u32 t = gpu_tid(g), group = t / 32;
    const u64 key = first + t / 4;
    GPU_GLOBAL const u8 *row = key < o.end ? gpu_row(v, key, o.kv_head, o.batch) : 0;
    for (u32 i = 0; i < CHUNKS(p); ++i) {
        tile_eight(V_TYPE(p), row, i * ATTENTION_TILE + t % 4 * 8, (u64)v.ne[0],
                   s.right + t / 4 * TILE_PITCH + t % 4 * 8);
        gpu_sync(g);
        for (u32 e = 0; e < ATTENTION_TILE; e += 8) {
            gpu_matrix a, b;
            gpu_matrix_load(a, s.scores + 8 * group * TILE_PITCH + e, TILE_PITCH);
            for (u32 j = 0; j < 4; ++j) {
                gpu_matrix_load(b, s.right + e * TILE_PITCH + 8 * j, TILE_PITCH);
                gpu_matrix_multiply(s.values[4 * i + j], a, b);
            }
        }
        gpu_sync(g);
    }
}

// Writes the results, or the block's part of them. Whether all are finite, for all threads alike.
GPU_FN bool tile_store(gpu_thread g, GPU_ARGS gpu_args &p, attention_block o,
                       GPU_PRIVATE matrix_state &s) {
    const u32 t = gpu_tid(g);
    const gpu_at at = attention_at(o, t / 4);
    const attention_sum all = {s.largest, s.sum};
    const attention_result result = attention_result_of(g, p, at, all);
    const bool inside = o.row0 + t / 4 < o.n_rows;
    float wrong = inside && s.sum - s.sum != 0.0f ? 1.0f : 0.0f;
    for (u32 i = 0; i < CHUNKS(p); ++i) {
        for (u32 j = 0; j < 4; ++j)
            gpu_matrix_store(s.values[4 * i + j], s.left + 8 * (t / 32) * TILE_PITCH + 8 * j,
                             TILE_PITCH);
        gpu_sync(g);
        for (u32 e = 0; e < 8; ++e) {
            const u32 c = i * ATTENTION_TILE + t % 4 * 8 + e;
            const float x = s.left[t / 4 * TILE_PITCH + t % 4 * 8 + e];
            if (!inside || c >= (u32)p.operands[0].ne[0]) continue;
            // x - x is 0 unless x is infinite or not a number.
            if (x - x != 0.0f) wrong = 1.0f;
            *(GPU_GLOBAL float *)(result.to + (i64)c * result.stride) = x * result.factor;
        }
        gpu_sync(g);
    }
    if (t % 4 == 0 && inside) attention_keep(g, p, at, all);
    return gpu_block_max(g, s.parts, wrong) == 0.0f;
}

// A row again as the plain kernel does it: what is not finite may belong to a key that the row
// doesn't see, which its weight of 0 does not take out of a product of matrices.
GPU_FAR void attend_plainly(gpu_thread g, GPU_ARGS gpu_args &p, attention_block o, u32 row,
                            attention_memory memory) {
    const gpu_at at = attention_at(o, row);
    const attention_sum s = attention_row(g, p, at, o.begin, o.end, memory);
    const attention_result result = attention_result_of(g, p, at, s);
    for (u32 c = gpu_tid(g); c < (u32)p.operands[0].ne[0]; c += ATTENTION_THREADS)
        *(GPU_GLOBAL float *)(result.to + (i64)c * result.stride) = memory.out[c] * result.factor;
    if (gpu_tid(g) == 0) attention_keep(g, p, at, s);
    gpu_sync(g);
}

GPU_KERNEL(kernel_attention_matrix, 128, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, memory, 3 * TILE_FLOATS);
    GPU_SHARED(float, scales, 64 * ATTENTION_GROUPS);
    GPU_SHARED(float, parts, GPU_MAX_WARPS);
    const attention_block o = attention_block_of(g, p, ATTENTION_TILE);
    matrix_state s;
    s.left = memory;
    s.right = memory + TILE_FLOATS;
    s.scores = memory + 2 * TILE_FLOATS;
    s.scales = scales;
    s.parts = parts;
    s.slope = gpu_alibi_slope(p, attention_at(o, gpu_tid(g) / 4).z);
    s.largest = -GPU_INFINITY;
    s.sum = 0.0f;
    for (u32 i = 0; i < 4 * CHUNKS(p); ++i)
        gpu_matrix_zero(s.values[i]);
    for (u64 first = o.begin; first < o.end; first += ATTENTION_TILE) {
        if (!tile_biases(g, p, o, first, s)) continue;
        tile_products(g, p, o, first, s);
        if (tile_weights(g, p, s)) tile_rescale(g, p, s);
        tile_values(g, p, o, first, s);
    }
    if (tile_store(g, p, o, s)) return;
    gpu_sync_global(g); // other threads write the same elements again
    const u32 n = (u32)p.operands[2].ne[0];
    const attention_memory plain = {parts, memory + ATTENTION_KEYS, memory + ATTENTION_KEYS + n,
                                    memory};
    for (u32 row = 0; row < ATTENTION_TILE && o.row0 + row < o.n_rows; ++row)
        attend_plainly(g, p, o, row, plain);
}
