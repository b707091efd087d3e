// SPDX-License-Identifier: MIT
// Products with many columns, also those with experts: 128 rows by 64 columns of the result per
// block on the tensor cores; each of the four warps has 32 of the rows. Weights are decoded by the
// warp that needs them, once; activations are rounded by the block when they are stored to shared
// memory, and those of the next step are on the way meanwhile.
#include "fragments.h"

enum {
    TILE_ROWS = 128,
    TILE_COLUMNS = 64,
    TILE_THREADS = 128,
    TILE_STEP = 64,                  // elements of k for which activations are in shared memory
    TILE_PITCH = 2 * TILE_STEP + 32, // bytes between their columns
    TILE_LOADS = TILE_COLUMNS * TILE_STEP / 4 / TILE_THREADS, // of four activations, per thread
};

// Elements of a row that are copied at a time, a multiple of TILE_STEP and of a block.
// Where 256 elements have more than 210 bytes, TILE_ROWS rows of half as many share 48 KB with the
// activations.
template <int ELEMENTS, int BYTES> struct tile_depth {
    enum { DEPTH = ELEMENTS == 1 ? 64 : 256 / ELEMENTS * BYTES > 210 ? 128 : 256 };
};

#if GPU_HAS_TENSOR_CORES

// Where a block finds its operands, and its shared memory.
struct tile_operands {
    const u8 *rows, *bias; // bias 0: none
    u32 m_left;
    u64 *sources, *results; // addresses of columns; 0: none
    u8 *weights, *activations;
    u32 *exponents;
};

// Activations between device and shared memory; of each column the largest so far, and its scale.
struct tile_registers {
    float x[TILE_LOADS][4], largest[TILE_LOADS], scale[TILE_LOADS];
};

// Of the columns t / 16 + 8 i elements 4 (t % 16) to the next three from k on.
GPU_FN void load_activations(gpu_thread g, const gpu_args &p, const tile_operands &o, u64 k,
                             tile_registers &r) {
    const u32 t = gpu_tid(g);
    const u64 at = k + 4 * (t % 16);
    GPU_UNROLL
    for (u32 i = 0; i < TILE_LOADS; ++i) {
        const u64 column = o.sources[t / 16 + 8 * i];
        GPU_UNROLL
        for (u32 e = 0; e < 4; ++e)
            r.x[i][e] = 0.0f;
        if (column && at < (u64)p.operands[2].ne[0])
            load_four(p.operands[2].type, (const u8 *)column, at, r.x[i]);
    }
}

template <class W>
GPU_FN void store_activations(gpu_thread g, const tile_operands &o, tile_registers &r) {
    const u32 t = gpu_tid(g);
    GPU_UNROLL
    for (u32 i = 0; i < TILE_LOADS; ++i) {
        u32 words[2];
        if (!W::AS_BF16) r.largest[i] = larger_of_four(r.largest[i], r.x[i]);
        pack_four<W>(r.x[i], r.scale[i], words);
        gpu_store_8(o.activations + (t / 16 + 8 * i) * TILE_PITCH + 8 * (t % 16),
                    {words[0], words[1]});
    }
}

template <class W>
GPU_FN void multiply_step(gpu_thread g, const tile_operands &o, const u32 *shifts, u32 k, u32 n,
                          float (&sums)[2][8][4]) {
    const u32 lane = gpu_tid(g) % 32, row = gpu_tid(g) / 32 * 32 + lane / 4, c = lane % 4;
    const u8 *rows = o.weights + row * W::PITCH;
    const u8 *columns = o.activations + lane / 4 * TILE_PITCH + 8 * c;
    GPU_UNROLL
    for (u32 s = 0; s < TILE_STEP; s += 16) {
        if (s >= n) break;
        // A warp's 32 rows are two fragments: each is decoded once and multiplied with eight
        // fragments of 8 columns, each of which serves both.
        u32 a[2][4];
        GPU_UNROLL
        for (u32 i = 0; i < 2; ++i)
            decode_fragment<W>(rows + 16 * i * W::PITCH + shifts[2 * i],
                               rows + (16 * i + 8) * W::PITCH + shifts[2 * i + 1], k + s, c, a[i]);
        GPU_UNROLL
        for (u32 j = 0; j < 8; ++j) {
            const gpu_words2 words = gpu_load_8(columns + 8 * j * TILE_PITCH + 2 * s);
            const u32 b[2] = {words.x, words.y};
            multiply_fragments<W>(sums[0][j], a[0], b);
            multiply_fragments<W>(sums[1][j], a[1], b);
        }
    }
}

template <class W>
GPU_FN void tile_sums(gpu_thread g, const gpu_args &p, const tile_operands &o, tile_registers &r,
                      float (&sums)[2][8][4]) {
    const gpu_operand &a = p.operands[1];
    const u32 last = o.m_left - 1, own = gpu_tid(g) / 32 * 32 + gpu_tid(g) % 32 / 4;
    const u64 depth = (u64)a.ne[0];
    const i64 row_bytes = (i64)(depth / W::ELEMENTS * W::BYTES);
    // Registers are the second buffer of the activations: while a step is multiplied, those of the
    // next are on their way into them. Rows behind the last are copies of it, and are not stored.
    load_activations(g, p, o, 0, r);
    for (u64 k = 0; k < depth; k += TILE_STEP) {
        const u64 chunk = k / W::DEPTH;
        gpu_sync(g); // the step before has been read
        store_activations<W>(g, o, r);
        if (k % W::DEPTH == 0)
            copy_rows<W>(g, o.weights, o.rows, a.nb[1], TILE_ROWS, last, (i64)(chunk * W::USED),
                         row_bytes);
        gpu_copy_group();
        load_activations(g, p, o, k + TILE_STEP, r);
        u32 shifts[4];
        GPU_UNROLL
        for (u32 i = 0; i < 4; ++i) {
            const u32 row = own + 8 * i < last ? own + 8 * i : last;
            shifts[i] = (u32)((u64)(o.rows + (i64)row * a.nb[1]) + chunk * W::USED) % SECTOR;
        }
        // All threads' copies and stores are there behind the barrier.
        gpu_copy_wait<0>();
        gpu_sync(g);
        const u32 n = depth - k < TILE_STEP ? (u32)(depth - k) : (u32)TILE_STEP;
        multiply_step<W>(g, o, shifts, (u32)(k % W::DEPTH), n, sums);
    }
}

// As in mul_mat_few.cpp: the exponent of each column, and whether any is not NO_SCALE.
GPU_FN bool tile_needs_scales(gpu_thread g, const tile_operands &o, tile_registers &r) {
    const u32 t = gpu_tid(g);
    for (u32 i = 0; i < TILE_LOADS; ++i) {
        float largest = r.largest[i];
        for (int mask = 8; mask > 0; mask >>= 1)
            largest = gpu_larger(largest, gpu_shfl_xor(largest, mask));
        if (t % 16 == 0) o.exponents[t / 16 + 8 * i] = scale_exponent(largest);
    }
    gpu_sync(g);
    bool needed = false;
    for (u32 j = 0; j < TILE_COLUMNS; ++j)
        needed = needed || o.exponents[j] != NO_SCALE;
    GPU_UNROLL
    for (u32 i = 0; i < TILE_LOADS; ++i)
        r.scale[i] = power_of_exponent(o.exponents[t / 16 + 8 * i]);
    return needed;
}

template <class W>
GPU_FN void tile_product(gpu_thread g, const gpu_args &p, const tile_operands &o) {
    const u32 t = gpu_tid(g), lane = t % 32;
    float sums[2][8][4];
    tile_registers r;
    GPU_UNROLL
    for (u32 i = 0; i < TILE_LOADS; ++i) {
        r.largest[i] = 0.0f;
        r.scale[i] = 1.0f;
    }
    // Optimistic: products are made unscaled while the largest elements are found. Only where a
    // column does not fit F16 are they made once more, scaled.
    bool again = false;
    do {
        GPU_UNROLL
        for (u32 j = 0; j < 8; ++j) {
            GPU_UNROLL
            for (u32 e = 0; e < 4; ++e)
                sums[0][j][e] = sums[1][j][e] = 0.0f;
        }
        tile_sums<W>(g, p, o, r, sums);
        again = !W::AS_BF16 && !again && tile_needs_scales(g, o, r);
    } while (again);
    GPU_UNROLL
    for (u32 j = 0; j < 8; ++j) {
        GPU_UNROLL
        for (u32 e = 0; e < 4; ++e) {
            const u32 column = 8 * j + 2 * (lane % 4) + e % 2;
            const u64 to = o.results[column];
            const u8 *bias = o.bias ? o.bias + (i64)column * bias_pitch(p) : 0;
            const float factor = W::AS_BF16 ? 1.0f : power_of_exponent(254u - o.exponents[column]);
            GPU_UNROLL
            for (u32 i = 0; i < 2; ++i) {
                const u32 m = t / 32 * 32 + 16 * i + lane / 4 + e / 2 * 8;
                if (!to || m >= o.m_left) continue;
                const float sum = sums[i][j][e] * factor;
                *(float *)((u8 *)to + (i64)m * p.operands[0].nb[0]) =
                    bias ? sum + *(const float *)(bias + 4 * m) : sum;
            }
        }
    }
    gpu_sync(g); // before shared memory has other columns
}

// Blocks: tiles of rows, of columns; matrices.
GPU_FN void find_columns(gpu_thread g, const gpu_args &p, u64 m0, tile_operands &o) {
    const gpu_operand &y = p.operands[0], &a = p.operands[1], &b = p.operands[2];
    const u32 t = gpu_tid(g);
    const u64 n = (u64)gpu_bid_y(g) * TILE_COLUMNS + t;
    u64 z;
    const u64 w = gpu_divide(gpu_bid_z(g), (u64)y.ne[2], &z);
    o.rows = gpu_row(a, m0, z / (u64)(b.ne[2] / a.ne[2]), w / (u64)(b.ne[3] / a.ne[3]));
    o.bias = bias_at(p, m0, (u64)gpu_bid_y(g) * TILE_COLUMNS, z, w);
    if (t < TILE_COLUMNS) {
        const bool inside = n < (u64)b.ne[1];
        o.sources[t] = inside ? (u64)gpu_row(b, n, z, w) : 0;
        o.results[t] = inside ? (u64)gpu_row(y, n, z, w) + m0 * (u64)y.nb[0] : 0;
    }
    gpu_sync(g);
}

// --- with experts --------------------------------------------------------------------------------

GPU_FN i64 expert_of(const gpu_args &p, u64 pair, u64 *out_u, u64 *out_t) {
    const gpu_operand &y = p.operands[0], &a = p.operands[1], &ids = p.operands[3];
    *out_t = gpu_divide(pair, (u64)y.ne[1], out_u);
    const i32 id = *(const i32 *)(gpu_row(ids, *out_t, 0, 0) + (i64)*out_u * ids.nb[0]);
    return id >= 0 && id < a.ne[2] ? id : a.ne[2];
}

// Columns [first, first + 64) of those with this expert, in their order; the thread looks at pairs
// [begin, end), of which those before it have `rank`.
GPU_FN void find_expert_columns(const gpu_args &p, const tile_operands &o, u64 m0, u64 first,
                                u64 begin, u64 end, u64 rank) {
    const gpu_operand &y = p.operands[0], &b = p.operands[2];
    for (u64 pair = begin; pair < end; ++pair) {
        u64 u, t;
        if (expert_of(p, pair, &u, &t) != (i64)gpu_bid_z(gpu_thread())) continue;
        const u64 at = rank++ - first;
        if (at >= TILE_COLUMNS) continue; // also of those before
        o.sources[at] = (u64)gpu_row(b, u % (u64)b.ne[1], t, 0);
        o.results[at] = (u64)gpu_row(y, u, t, 0) + m0 * (u64)y.nb[0];
    }
}

// As the plain kernel: not a number.
GPU_FN void no_experts(gpu_thread g, const gpu_args &p, const tile_operands &o) {
    for (u32 j = 0; j < TILE_COLUMNS; ++j) {
        if (o.results[j] && gpu_tid(g) < o.m_left)
            *(float *)((u8 *)o.results[j] + (i64)gpu_tid(g) * p.operands[0].nb[0]) = GPU_NAN;
    }
    gpu_sync(g);
}

// Blocks: tiles of rows; some of the tiles of columns, of which every numbers[1]-th is this
// block's; experts, the last of them for indices that have none. counts: of each thread's pairs.
template <class W>
GPU_FN void expert_products(gpu_thread g, const gpu_args &p, u64 m0, tile_operands &o,
                            u32 *counts) {
    const gpu_operand &y = p.operands[0], &a = p.operands[1];
    const u32 t = gpu_tid(g), expert = gpu_bid_z(g);
    const u64 n = (u64)(y.ne[1] * y.ne[2]), share = (n + TILE_THREADS - 1) / TILE_THREADS;
    const u64 begin = t * share < n ? t * share : n, end = begin + share < n ? begin + share : n;
    const bool known = expert < (u64)a.ne[2];
    // A block finds the columns of its expert by itself, without atomics or a launch before: each
    // thread counts in its share of the pairs, and the sum of the counts before its own is the rank
    // of its first. The order of columns is always the same. Time: n / 128 + 128 steps of a thread,
    // and n / 128 more for each tile.
    u32 own = 0, rank = 0, total = 0;
    o.bias = 0;
    o.rows = gpu_row(a, m0, known ? expert : 0, 0);
    for (u64 pair = begin; pair < end; ++pair) {
        u64 u, token;
        own += expert_of(p, pair, &u, &token) == (i64)expert;
    }
    counts[t] = own;
    gpu_sync(g);
    for (u32 i = 0; i < TILE_THREADS; ++i) {
        rank += i < t ? counts[i] : 0;
        total += counts[i];
    }
    for (u64 first = (u64)gpu_bid_y(g) * TILE_COLUMNS; first < total;
         first += (u64)p.numbers[1] * TILE_COLUMNS) {
        if (t < TILE_COLUMNS) o.sources[t] = o.results[t] = 0;
        gpu_sync(g);
        find_expert_columns(p, o, m0, first, begin, end, rank);
        gpu_sync(g);
        if (known)
            tile_product<W>(g, p, o);
        else
            no_experts(g, p, o);
    }
}

#define TILE_BODY(name, elements, bytes)                                                           \
    GPU_THREAD(g);                                                                                 \
    typedef weights<TYPE_##name, elements, bytes, tile_depth<elements, bytes>::DEPTH> W;           \
    GPU_SHARED(gpu_words4, rows, TILE_ROWS *W::PITCH / 16);                                        \
    GPU_SHARED(gpu_words4, columns, TILE_COLUMNS *TILE_PITCH / 16);                                \
    GPU_SHARED(u64, sources, TILE_COLUMNS);                                                        \
    GPU_SHARED(u64, results, TILE_COLUMNS);                                                        \
    GPU_SHARED(u32, exponents, TILE_COLUMNS);                                                      \
    GPU_SHARED(u32, counts, TILE_THREADS);                                                         \
    const u64 m0 = (u64)gpu_bid_x(g) * TILE_ROWS;                                                  \
    tile_operands o;                                                                               \
    o.m_left = (u32)((u64)p.operands[1].ne[1] - m0);                                               \
    o.sources = sources;                                                                           \
    o.results = results;                                                                           \
    o.weights = (u8 *)rows;                                                                        \
    o.activations = (u8 *)columns;                                                                 \
    o.exponents = exponents;                                                                       \
    if (p.numbers[0]) {                                                                            \
        expert_products<W>(g, p, m0, o, counts);                                                   \
        return;                                                                                    \
    }                                                                                              \
    find_columns(g, p, m0, o);                                                                     \
    tile_product<W>(g, p, o);
#else
#define TILE_BODY(name, elements, bytes) (void)p;
#endif

// numbers[0]: with experts.
#define TENSOR_TYPE(name, elements, bytes)                                                         \
    GPU_KERNEL(kernel_tile_##name, TILE_THREADS, gpu_args, p) {                                    \
        TILE_BODY(name, elements, bytes)                                                           \
    }
#include "tensor_types.inl"
