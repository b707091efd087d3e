// SPDX-License-Identifier: MIT
// What both kernels for attention share: which queries and keys a block has, and where results go.
// Where there are too few blocks for a GPU the keys are divided, and kernel_attention_merge adds
// the parts up: how many follows from the shapes alone, and so does the order of each sum.
//
// numbers: [0] as attention.h, [1] heads that share one of K and V, [2] keys of a part, [3] parts;
// special: 0 type of K, 1 rows of a block, 2 type of V, 3 how often 128 (vector) or 32 (matrix)
// channels of V are taken.
#ifndef METAL_KERNELS_ATTENTION_PARTS_H
#define METAL_KERNELS_ATTENTION_PARTS_H

#include "attention.h"
#include "gpu_matrix.h"
#include "load_four.h"

enum { ATTENTION_THREADS = 128, ATTENTION_GROUPS = 4, ATTENTION_MAX_PARTS = 64 };

#define K_TYPE(p) GPU_SPECIAL(p, 0)
#define V_TYPE(p) GPU_SPECIAL(p, 2)

// Rows are those of all heads that share K and V, the heads of a query together.
struct attention_block {
    u64 group, batch, kv_head;
    u64 row0, n_rows; // the block's first one, all that there are
    u64 begin, end;   // keys
};

// Blocks: rows, parts of the keys, heads of K and sequences.
GPU_FN attention_block attention_block_of(gpu_thread g, GPU_ARGS gpu_args &p, u32 rows) {
    GPU_ARGS gpu_operand &q = p.operands[1], &k = p.operands[2];
    attention_block o;
    o.group = (u64)p.numbers[1];
    o.batch = gpu_divide(gpu_bid_z(g), (u64)k.ne[2], &o.kv_head);
    o.row0 = (u64)gpu_bid_x(g) * rows;
    o.n_rows = (u64)q.ne[1] * o.group;
    o.begin = (u64)gpu_bid_y(g) * (u64)p.numbers[2];
    o.end = o.begin + (u64)p.numbers[2] < (u64)k.ne[1] ? o.begin + (u64)p.numbers[2] : (u64)k.ne[1];
    return o;
}

// The query (y), head (z) and sequence (w) of a row of the block; of the last one beyond the end.
GPU_FN gpu_at attention_at(attention_block o, u32 row) {
    gpu_at at;
    const u64 i = o.row0 + row < o.n_rows ? o.row0 + row : o.n_rows - 1;
    at.x = 0;
    at.y = gpu_divide(i, o.group, &at.z);
    at.z += o.kv_head * o.group;
    at.w = o.batch;
    return at;
}

// The row of the mask, 0: there is none.
GPU_FN GPU_GLOBAL const u8 *attention_mask(GPU_ARGS gpu_args &p, gpu_at at) {
    GPU_ARGS gpu_operand &mask = p.operands[4];
    if (!mask.data) return 0;
    return gpu_row(mask, at.y, at.z % (u64)mask.ne[2], at.w % (u64)mask.ne[3]);
}

// Of a key that may be seen; minus infinity: it may not, or the row or the key isn't there.
GPU_FN float attention_bias(GPU_ARGS gpu_args &p, attention_block o, u32 row,
                            GPU_GLOBAL const u8 *mask_row, u64 key) {
    GPU_ARGS gpu_operand &mask = p.operands[4];
    if (key >= o.end || o.row0 + row >= o.n_rows) return -GPU_INFINITY;
    return mask_row ? gpu_load(mask.type, mask_row + (i64)key * mask.nb[0]) : 0.0f;
}

// From a product to a score. bias is 0 without a mask.
GPU_FN float attention_score(GPU_ARGS gpu_args &p, float dot, float slope, float bias) {
    const float softcap = gpu_param(p, 2);
    if (bias == -GPU_INFINITY) return -GPU_INFINITY;
    float score = dot * gpu_param(p, 0);
    if (softcap != 0.0f) score = softcap * gpu_tanh(score / softcap);
    return p.operands[4].data ? score + slope * bias : score;
}

// Takes sums that are relative to `before` to a larger score.
GPU_FN float attention_rescale(float before, float largest) {
    return before == largest ? 1.0f : gpu_exp(before - largest);
}

// Where a part's sums lie: the channels, then the largest score and the sum of the weights.
GPU_FN GPU_GLOBAL float *attention_part(GPU_ARGS gpu_args &p, gpu_at at, u64 part) {
    GPU_ARGS gpu_operand &q = p.operands[1];
    const u64 row = (at.w * (u64)q.ne[2] + at.z) * (u64)q.ne[1] + at.y;
    return (GPU_GLOBAL float *)p.operands[7].data +
           (row * (u64)p.numbers[3] + part) * ((u64)p.operands[0].ne[0] + 2);
}

// Of a row: where its channels go, how many bytes are between them, and by what they are
// multiplied.
struct attention_result {
    GPU_GLOBAL u8 *to;
    i64 stride;
    float factor;
};
GPU_FN attention_result attention_result_of(gpu_thread g, GPU_ARGS gpu_args &p, gpu_at at,
                                            attention_sum s) {
    GPU_ARGS gpu_operand &y = p.operands[0];
    if (p.numbers[3] > 1) return {(GPU_GLOBAL u8 *)attention_part(p, at, gpu_bid_y(g)), 4, 1.0f};
    return {gpu_row(y, at.z, at.y, at.w), y.nb[0], attention_factor(p, at.z, s)};
}
// What is kept of a part beside its channels; one thread calls it.
GPU_FN void attention_keep(gpu_thread g, GPU_ARGS gpu_args &p, gpu_at at, attention_sum s) {
    if (p.numbers[3] <= 1) return;
    GPU_GLOBAL float *part = attention_part(p, at, gpu_bid_y(g));
    part[p.operands[0].ne[0]] = s.largest;
    part[p.operands[0].ne[0] + 1] = s.sum;
}

#endif
