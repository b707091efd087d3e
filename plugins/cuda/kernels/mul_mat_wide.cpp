// SPDX-License-Identifier: MIT
// Products with many columns on sm_90a: 128 rows by 128 or 256 columns of the result per block, by
// two groups of four warps (wgmma), each of which has 64 of the rows. A third group copies: weights
// as they are, which the warps decode into registers, the left operand; columns as a launch before,
// kernel_wide_columns, has put them into scratch memory, rounded and in the order that the right
// operand has in shared memory, so that one instruction of one thread copies a step of all.
//
// Copying runs ahead of computing by several steps. Two barriers of each step's memory say that it
// is full and that it is empty again.
#include "fragments.h"
#include "gpu_warpgroup.h"
#include "launch/products.h"

enum { WIDE_COPIERS = 64, WIDE_CONSUMERS = 256, WIDE_WARPS = 8 }; // warps that compute

// --- columns -------------------------------------------------------------------------------------

#if GPU_HAS_TENSOR_CORES

// What a column's steps lie at: WIDE_COLUMNS rows of 128 bytes for each step of a tile.
GPU_FN u8 *wide_row(GPU_ARGS gpu_args &p, u64 plane, u64 column, u64 step) {
    const u64 columns = (u64)p.numbers[WIDE_COLUMNS];
    u64 in_tile;
    const u64 tile = gpu_divide(column, columns, &in_tile) + plane * (u64)p.numbers[WIDE_TILES];
    return (u8 *)p.operands[7].data +
           ((tile * (u64)p.numbers[WIDE_STEPS] + step) * columns + in_tile) * 2 * WIDE_STEP;
}

GPU_FN u32 *wide_exponent(GPU_ARGS gpu_args &p, u64 plane, u64 column) {
    return (u32 *)(p.operands[7].data + (u64)p.numbers[WIDE_EXPONENTS]) +
           plane * (u64)(p.numbers[WIDE_TILES] * p.numbers[WIDE_COLUMNS]) + column;
}

// Elements k to k + 3 of the column are two words of neighbours of the fragment's order; lanes in
// pairs exchange one, so that each stores eight bytes that lie together; row 0: it stores none.
GPU_FN void store_wide(gpu_thread g, u8 *row, u64 column, u64 k, const u32 *words) {
    const u32 c = gpu_tid(g) % 4, odd = c % 2;
    const u32 other = gpu_bits(gpu_shfl_xor(gpu_float(odd ? words[0] : words[1]), 1));
    const u32 piece = (u32)(k % WIDE_STEP) / 16 * 2 + odd;
    const gpu_words2 both = {odd ? other : words[0], odd ? words[1] : other};
    if (row) gpu_store_8(row + 16 * (piece ^ (u32)(column % 8)) + 8 * (c / 2), both);
}

// Two passes over the column: the largest element decides on the scale, by which all are rounded.
// Zeros fill the last step, and columns behind the last.
GPU_FN void wide_columns(gpu_thread g, const gpu_args &p, float *parts) {
    const gpu_operand &b = p.operands[2];
    const u64 column = gpu_bid_x(g), plane = gpu_bid_y(g), depth = (u64)b.ne[0];
    const bool inside = column < (u64)b.ne[1], as_bf16 = p.numbers[WIDE_AS_BF16] != 0;
    u64 z;
    const u64 w = gpu_divide(plane, (u64)b.ne[2], &z);
    const u8 *from = gpu_row(b, inside ? column : 0, z, w);
    float largest = 0.0f, x[4];
    for (u64 k = 4 * gpu_tid(g); k < depth && inside && !as_bf16; k += 4 * WIDE_COLUMN_THREADS) {
        load_four(b.type, from, k, x);
        largest = larger_of_four(largest, x);
    }
    const u32 e = scale_exponent(gpu_block_max(g, parts, largest));
    const float scale = power_of_exponent(e);
    if (gpu_tid(g) == 0) *wide_exponent(p, plane, column) = e;
    const u64 end = (u64)p.numbers[WIDE_STEPS] * WIDE_STEP;
    for (u64 first = 0; first < end; first += 4 * WIDE_COLUMN_THREADS) { // all lanes together
        const u64 k = first + 4 * gpu_tid(g);
        u32 words[2];
        GPU_UNROLL
        for (u32 i = 0; i < 4; ++i)
            x[i] = 0.0f;
        if (k < depth && inside) load_four(b.type, from, k, x);
        if (as_bf16) {
            words[0] = gpu_pack_bf16(x[0], x[1]);
            words[1] = gpu_pack_bf16(x[2], x[3]);
        } else {
            words[0] = gpu_pack_f16(x[0] * scale, x[1] * scale);
            words[1] = gpu_pack_f16(x[2] * scale, x[3] * scale);
        }
        store_wide(g, k < end ? wide_row(p, plane, column, k / WIDE_STEP) : 0, column, k, words);
    }
}
#endif

// Blocks: columns, also those after the last one of a tile; planes.
GPU_KERNEL(kernel_wide_columns, WIDE_COLUMN_THREADS, gpu_args, p) {
#if GPU_HAS_TENSOR_CORES
    GPU_THREAD(g);
    GPU_SHARED(float, parts, GPU_MAX_WARPS);
    wide_columns(g, p, parts);
#else
    (void)p;
#endif
}

// --- products ------------------------------------------------------------------------------------

#if GPU_HAS_WARPGROUPS

template <int TYPE_, int ELEMENTS_, int BYTES_, int COLUMNS_> struct wide_tile {
    enum {
        TYPE = TYPE_,
        ELEMENTS = ELEMENTS_,
        BYTES = BYTES_,
        COLUMNS = COLUMNS_,
        DEPTH = WIDE_DEPTH(ELEMENTS),
        USED = WIDE_USED(ELEMENTS, BYTES),
        PITCH = WIDE_PITCH(ELEMENTS, BYTES),
        A_BYTES = WIDE_ROWS * PITCH,
        A_STAGES = WIDE_A_STAGES(ELEMENTS),
        B_BYTES = COLUMNS * 2 * WIDE_STEP,
        AS_BF16 = TYPE == TYPE_BF16,
        HAS_OFFSET = TYPE == TYPE_Q4_K,
        PIECES = ELEMENTS == 1 ? 8 : PITCH / 16, // of 16 bytes
        LANES = PIECES <= 8    ? 8
                : PIECES <= 16 ? 16
                               : 32,
    };
};

struct wide_block {
    const u8 *rows, *columns; // of the tile; of its first step
    u64 m0, depth, steps;
    u32 last;  // row of the tile
    u8 *a, *b; // stages
    u64 *full_a, *empty_a, *full_b, *empty_b;
};

// Blocks of rows begin anywhere: what is copied begins at a multiple of 32 bytes before.
template <class W>
GPU_FN u32 wide_shift(const gpu_args &p, const wide_block &o, u32 row, u64 chunk) {
    const u32 r = row < o.last ? row : o.last;
    return W::ELEMENTS == 1
               ? 0
               : (u32)((u64)(o.rows + (i64)r * p.operands[1].nb[1]) + chunk * W::USED) % SECTOR;
}

template <class W> GPU_FN void copy_weights(gpu_thread g, const gpu_args &p, const wide_block &o) {
    const u32 t = gpu_tid(g) - WIDE_CONSUMERS, piece = t % W::LANES;
    const i64 row_bytes = (i64)(o.depth / W::ELEMENTS * W::BYTES);
    const u64 n = (o.depth + W::DEPTH - 1) / W::DEPTH;
    for (u64 i = 0; i < n; ++i) {
        const u32 stage = (u32)(i % W::A_STAGES);
        // Use u = i / stages of a stage is phase u of both its barriers; what is waited for is the
        // end of use u - 1, whose parity is that of u + 1.
        if (i >= W::A_STAGES) gpu_barrier_wait(&o.empty_a[stage], (u32)(i / W::A_STAGES + 1) & 1);
        u8 *to = o.a + stage * W::A_BYTES + 16 * piece;
        for (u32 r = t / W::LANES; r < WIDE_ROWS; r += WIDE_COPIERS / W::LANES) {
            const u8 *row = o.rows + (i64)(r < o.last ? r : o.last) * p.operands[1].nb[1];
            const u64 begin = (u64)row + i * W::USED, end = (u64)(row + row_bytes);
            const u64 from = begin - wide_shift<W>(p, o, r, i) + 16 * piece;
            const bool used = from < end && from < begin + W::USED;
            if (piece >= W::PIECES) continue;
            gpu_copy_16(to + r * W::PITCH, (const void *)(used ? from : from - 16 * piece),
                        !used             ? 0u
                        : end - from < 16 ? (u32)(end - from)
                                          : 16u);
        }
        gpu_copy_arrive(&o.full_a[stage]);
    }
}

template <class W> GPU_FN void copy_columns(const wide_block &o) {
    for (u64 i = 0; i < o.steps; ++i) {
        const u32 stage = (u32)(i % WIDE_B_STAGES);
        if (i >= WIDE_B_STAGES)
            gpu_barrier_wait(&o.empty_b[stage], (u32)(i / WIDE_B_STAGES + 1) & 1);
        // This thread's is the only arrival: the phase ends when the bytes are there as well.
        gpu_barrier_expect(&o.full_b[stage], W::B_BYTES);
        gpu_bulk_copy(o.b + stage * W::B_BYTES, o.columns + i * W::B_BYTES, W::B_BYTES,
                      &o.full_b[stage]);
    }
}

template <class W>
GPU_FN void wide_step(gpu_thread g, const wide_block &o, const u8 *row, const u8 *row_8, u32 k,
                      u64 step, float (&sums)[W::COLUMNS / 2]) {
    const u32 stage = (u32)(step % WIDE_B_STAGES), lane = gpu_tid(g) % 32;
    // Weights are decoded while the columns may still be on their way.
    u32 a[4][4];
    GPU_UNROLL
    for (u32 i = 0; i < 4; ++i)
        decode_fragment<W>(row, row_8, k + 16 * i, lane % 4, a[i]);
    gpu_barrier_wait(&o.full_b[stage], (u32)(step / WIDE_B_STAGES) & 1);
    const u64 operand = gpu_wgmma_operand(o.b + stage * W::B_BYTES);
    gpu_wgmma_begin();
    GPU_UNROLL
    for (u32 i = 0; i < 4; ++i)
        gpu_wgmma<W::COLUMNS, W::AS_BF16 != 0>(sums, a[i], operand + 2 * i);
    gpu_wgmma_commit();
    gpu_wgmma_finish(sums);
    if (lane == 0) gpu_barrier_arrive(&o.empty_b[stage]);
}

template <class W>
GPU_FN void wide_sums(gpu_thread g, const gpu_args &p, const wide_block &o, u32 own,
                      float (&sums)[W::COLUMNS / 2]) {
    const u64 n = (o.depth + W::DEPTH - 1) / W::DEPTH;
    u64 step = 0;
    for (u64 i = 0; i < n; ++i) {
        const u32 stage = (u32)(i % W::A_STAGES);
        const u8 *rows = o.a + stage * W::A_BYTES;
        const u8 *row = rows + own * W::PITCH + wide_shift<W>(p, o, own, i);
        const u8 *row_8 = rows + (own + 8) * W::PITCH + wide_shift<W>(p, o, own + 8, i);
        gpu_barrier_wait(&o.full_a[stage], (u32)(i / W::A_STAGES) & 1);
        for (u32 k = 0; k < W::DEPTH && step < o.steps; k += WIDE_STEP)
            wide_step<W>(g, o, row, row_8, k, step++, sums);
        // All lanes have decoded what one of them gives back.
        gpu_sync_warp(g);
        if (gpu_tid(g) % 32 == 0) gpu_barrier_arrive(&o.empty_a[stage]);
    }
}

template <class W>
GPU_FN void store_wide_sums(gpu_thread g, const gpu_args &p, const wide_block &o, u32 own,
                            const float (&sums)[W::COLUMNS / 2]) {
    const gpu_operand &y = p.operands[0];
    const u64 plane = gpu_bid_z(g), first = (u64)gpu_bid_y(g) * W::COLUMNS;
    u64 z;
    const u64 w = gpu_divide(plane, (u64)y.ne[2], &z);
    GPU_UNROLL
    for (u32 i = 0; i < W::COLUMNS / 2; ++i) {
        const u32 m = own + i / 2 % 2 * 8;
        const u64 n = first + i / 4 * 8 + 2 * (gpu_tid(g) % 4) + i % 2;
        if (n >= (u64)y.ne[1] || m > o.last) continue;
        const float factor =
            W::AS_BF16 ? 1.0f : power_of_exponent(254u - *wide_exponent(p, plane, n));
        *(float *)(gpu_row(y, n, z, w) + (i64)(o.m0 + m) * y.nb[0]) = sums[i] * factor;
    }
}

// Arrivals of a phase: full when the copies of each copier are done, or when one thread has
// announced bytes and they are there; empty when a lane of each computing warp says so.
GPU_FN void begin_barriers(gpu_thread g, const wide_block &o, u32 n_a) {
    if (gpu_tid(g) == 0) {
        for (u32 i = 0; i < n_a; ++i) {
            gpu_barrier_init(&o.full_a[i], WIDE_COPIERS);
            gpu_barrier_init(&o.empty_a[i], WIDE_WARPS);
        }
        for (u32 i = 0; i < WIDE_B_STAGES; ++i) {
            gpu_barrier_init(&o.full_b[i], 1);
            gpu_barrier_init(&o.empty_b[i], WIDE_WARPS);
        }
        gpu_barrier_publish();
    }
    gpu_sync(g);
}

// Blocks: tiles of rows, of columns; planes.
template <class W> GPU_FN void wide_product(gpu_thread g, const gpu_args &p, u8 *memory) {
    const gpu_operand &a = p.operands[1], &b = p.operands[2];
    const u32 t = gpu_tid(g), lane = t % 32;
    wide_block o;
    u64 z;
    const u64 w = gpu_divide(gpu_bid_z(g), (u64)b.ne[2], &z);
    o.m0 = (u64)gpu_bid_x(g) * WIDE_ROWS;
    o.last = (u64)a.ne[1] - o.m0 < WIDE_ROWS ? (u32)((u64)a.ne[1] - o.m0) - 1 : WIDE_ROWS - 1;
    o.depth = (u64)a.ne[0];
    o.steps = (u64)p.numbers[WIDE_STEPS];
    o.rows = gpu_row(a, o.m0, z / (u64)(b.ne[2] / a.ne[2]), w / (u64)(b.ne[3] / a.ne[3]));
    o.columns = wide_row(p, gpu_bid_z(g), (u64)gpu_bid_y(g) * W::COLUMNS, 0);
    o.b = memory;
    o.a = memory + WIDE_B_STAGES * W::B_BYTES;
    o.full_a = (u64 *)(o.a + W::A_STAGES * W::A_BYTES);
    o.empty_a = o.full_a + W::A_STAGES;
    o.full_b = o.empty_a + W::A_STAGES;
    o.empty_b = o.full_b + WIDE_B_STAGES;
    begin_barriers(g, o, W::A_STAGES);
    if (t < WIDE_CONSUMERS) {
        const u32 own = t / 32 * 16 + lane / 4;
        float sums[W::COLUMNS / 2];
        // Of a launch with 168 registers per thread the copiers keep 64: 2 x 216 + 64 <= 3 x 168.
        gpu_registers_more<216>();
        GPU_UNROLL
        for (u32 i = 0; i < W::COLUMNS / 2; ++i)
            sums[i] = 0.0f;
        wide_sums<W>(g, p, o, own, sums);
        store_wide_sums<W>(g, p, o, own, sums);
        return;
    }
    gpu_registers_fewer<64>();
    if (t - WIDE_CONSUMERS < WIDE_COPIERS) copy_weights<W>(g, p, o);
    if (t == WIDE_THREADS - 1) copy_columns<W>(o);
}

#define WIDE_BODY(name, elements, bytes, columns)                                                  \
    GPU_THREAD(g);                                                                                 \
    GPU_SHARED_LARGE(u8, memory, WIDE_BYTES(elements, bytes, columns));                            \
    wide_product<wide_tile<TYPE_##name, elements, bytes, columns>>(g, p, memory);
#else
#define WIDE_BODY(name, elements, bytes, columns) (void)p;
#endif

#define WIDE_TYPE(name, elements, bytes)                                                           \
    GPU_KERNEL_FOR(kernel_wide_128_##name, WIDE_THREADS, 1, gpu_args, p){                          \
        WIDE_BODY(name, elements, bytes, 128)} GPU_KERNEL_FOR(kernel_wide_256_##name,              \
                                                              WIDE_THREADS, 1, gpu_args, p) {      \
        WIDE_BODY(name, elements, bytes, 256)                                                      \
    }
WIDE_TYPES(WIDE_TYPE)
