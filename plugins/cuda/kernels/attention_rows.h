// SPDX-License-Identifier: MIT
// What attention on tensor cores does with rows: queries on their way to shared memory, and where
// results go, or the parts of them that several blocks make.
#ifndef CUDA_KERNELS_ATTENTION_ROWS_H
#define CUDA_KERNELS_ATTENTION_ROWS_H

#include "attention_tiles.h"

// Where a part's sums lie: of each row and part the channels, then of each the largest and the sum.
GPU_FN float *attention_part(GPU_ARGS gpu_args &p, gpu_at at, u64 part) {
    const gpu_operand &q = p.operands[1];
    const u64 row = (at.w * (u64)q.ne[2] + at.z) * (u64)q.ne[1] + at.y;
    return (float *)p.operands[7].data +
           (row * (u64)p.numbers[3] + part) * (u64)p.operands[0].ne[0];
}
GPU_FN float *attention_part_sum(GPU_ARGS gpu_args &p, gpu_at at, u64 part) {
    const gpu_operand &y = p.operands[0], &q = p.operands[1];
    const u64 row = (at.w * (u64)q.ne[2] + at.z) * (u64)q.ne[1] + at.y;
    const u64 n = (u64)(q.ne[1] * q.ne[2] * q.ne[3]) * (u64)p.numbers[3];
    return (float *)p.operands[7].data + n * (u64)y.ne[0] + 2 * (row * (u64)p.numbers[3] + part);
}

#if GPU_HAS_TENSOR_CORES

// The query, head and sequence of a row of the block.
GPU_FN gpu_at attention_at(const attention_block &o, u32 row) {
    u64 head;
    const u64 query = gpu_divide(o.row0 + row, o.group, &head);
    return {0, query, o.head0 + head, o.batch};
}

// Queries as two halves each, after a power of two has taken the largest of a row to [2^14, 2^15)
// in F16; a warp per row.
template <class A>
GPU_FN void load_queries(gpu_thread g, const gpu_args &p, const attention_block &o) {
    const gpu_operand &q = p.operands[1];
    const u32 lane = gpu_tid(g) % 32, n = (u32)q.ne[0];
    for (u32 r = gpu_tid(g) / 32; r < A::ROWS; r += A::WARPS) {
        const bool inside = o.row0 + r < o.n_rows; // the same for the warp
        const gpu_at at = attention_at(o, inside ? r : 0);
        const u8 *row = gpu_row(q, at.y, at.z, at.w);
        float largest = 0.0f, factor = 1.0f, inverse = 1.0f, x[4];
        // Two passes over the row: its largest element, then both halves of each. BF16 has the
        // range of F32 and needs no factor.
        for (u32 c = 4 * lane; c < n && inside && !A::AS_BF16; c += 128) {
            load_four(TYPE_F32, row, c, x);
            largest = larger_of_four(largest, x);
        }
        for (int mask = 16; mask > 0; mask >>= 1)
            largest = gpu_larger(largest, gpu_shfl_xor(largest, mask));
        if (!A::AS_BF16 && largest > 0.0f) {
            const i32 wanted = 127 + 14 - ((i32)(gpu_bits(largest) >> 23 & 255u) - 127);
            const u32 e = (u32)(wanted > 253 ? 253 : wanted < 1 ? 1 : wanted);
            factor = power_of_exponent(e);
            inverse = power_of_exponent(254u - e);
        }
        for (u32 c = 4 * lane; c < (n + A::QUERY_UNIT - 1) / A::QUERY_UNIT * A::QUERY_UNIT;
             c += 128) {
            u32 high[2], low[2];
            GPU_UNROLL
            for (u32 e = 0; e < 4; ++e)
                x[e] = 0.0f;
            if (c < n && inside) load_four(TYPE_F32, row, c, x);
            split_pair<A>(x[0] * factor, x[1] * factor, &high[0], &low[0]);
            split_pair<A>(x[2] * factor, x[3] * factor, &high[1], &low[1]);
            u8 *at = o.queries + r * A::QUERY_PITCH + (2 * c ^ A::QUERY_SWIZZLE * (r % 8));
            gpu_store_8(at, {high[0], high[1]});
            gpu_store_8(at + A::QUERY_BYTES, {low[0], low[1]});
        }
        if (lane == 0) {
            o.scales[r] = gpu_param(p, 0) * inverse;
            o.slopes[r] = gpu_alibi_slope(p, at.z);
        }
    }
}

// Of a row: the result, or the block's part of it, and what its sums are multiplied by.
GPU_FN float *find_result(const gpu_args &p, gpu_at at, attention_sum s, bool is_first,
                          float *out_factor) {
    const bool has_parts = p.numbers[3] > 1;
    const u64 part = gpu_bid_y(gpu_thread());
    *out_factor = has_parts ? 1.0f : attention_factor(p, at.z, s);
    if (has_parts && is_first) {
        float *sum = attention_part_sum(p, at, part);
        sum[0] = s.largest;
        sum[1] = s.sum;
    }
    return has_parts ? attention_part(p, at, part)
                     : (float *)gpu_row(p.operands[0], at.z, at.y, at.w);
}

// A row with something in it that is not finite, which may belong to a key that the row doesn't
// see: as the plain kernel does it.
GPU_FAR void attend_plainly(const gpu_args &p, u64 query, u64 head, u64 batch, u64 begin, u64 end,
                            float *memory) {
    const gpu_thread g = gpu_thread();
    const u32 n = (u32)p.operands[2].ne[0], n_v = (u32)p.operands[3].ne[0];
    const attention_memory m = {memory, memory + GPU_MAX_WARPS + ATTENTION_KEYS,
                                memory + GPU_MAX_WARPS + ATTENTION_KEYS + n,
                                memory + GPU_MAX_WARPS};
    const gpu_at at = {0, query, head, batch};
    const attention_sum s = attention_row(g, p, at, begin, end, m);
    float factor;
    float *to = find_result(p, at, s, gpu_tid(g) == 0, &factor);
    for (u32 c = gpu_tid(g); c < n_v; c += gpu_ntid(g))
        to[c] = m.out[c] * factor;
    gpu_sync(g);
}

// Blocks: rows, parts of the keys, heads of K and sequences.
GPU_FN void find_block(gpu_thread g, const gpu_args &p, u32 rows, attention_block &o) {
    const gpu_operand &q = p.operands[1], &k = p.operands[2];
    o.group = (u64)p.numbers[1];
    o.batch = gpu_divide(gpu_bid_z(g), (u64)k.ne[2], &o.kv_head);
    o.head0 = o.kv_head * o.group;
    o.row0 = (u64)gpu_bid_x(g) * rows;
    o.n_rows = (u64)q.ne[1] * o.group;
    o.begin = (u64)gpu_bid_y(g) * (u64)p.numbers[2];
    o.end = o.begin + (u64)p.numbers[2] < (u64)k.ne[1] ? o.begin + (u64)p.numbers[2] : (u64)k.ne[1];
}

#endif
#endif
