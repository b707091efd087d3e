// SPDX-License-Identifier: MIT
// Products of weights of any type with columns of floats, in F32. A SIMD group per row where there
// are few columns; else tiles that are decoded into shared memory and multiplied as matrices of
// 8 x 8. Rows have a multiple of four elements, and lie as four.h asks for.
#include "glu.h"
#include "gpu_matrix.h"
#include "load_four.h"

enum {
    VECTOR_ROWS = 4, // of a block of threads
    VECTOR_COLUMNS = 8,
    MATRIX_THREADS = 128,
    MATRIX_M = 64, // the tile: rows of a, columns of b, depth
    MATRIX_N = 32,
    MATRIX_K = 32,
    MATRIX_PITCH = MATRIX_K + 4,
    MATRIX_OUT_PITCH = MATRIX_M + 4,
};

// The type of the weights; the columns of a vector product.
#define WEIGHT_TYPE(p) GPU_SPECIAL(p, 0)
#define COLUMN_COUNT(p) ((u32)GPU_SPECIAL(p, 1))

// --- few columns ---------------------------------------------------------------------------------

// A row by the columns that begin at `columns`; every lane gets the sums.
// A lane decodes four neighbours of the row for all columns: weights, which are most of the bytes,
// are read once.
GPU_FN void vector_sums(gpu_thread g, GPU_ARGS gpu_args &p, GPU_GLOBAL const u8 *row,
                        GPU_GLOBAL const u8 *columns, GPU_PRIVATE float *sums) {
    GPU_ARGS gpu_operand &b = p.operands[2];
    const u64 depth = (u64)p.operands[1].ne[0];
    for (u64 k = 4 * (gpu_tid(g) % 32); k < depth; k += 128) {
        float a[4];
        four_weights(WEIGHT_TYPE(p), row, k, a);
        for (u32 j = 0; j < COLUMN_COUNT(p); ++j) {
            float x[4];
            four_floats(b.type, columns + (i64)j * b.nb[1], k, x);
            for (u32 i = 0; i < 4; ++i)
                sums[j] = gpu_fma(a[i], x[i], sums[j]);
        }
    }
    for (u32 j = 0; j < COLUMN_COUNT(p); ++j)
        sums[j] = gpu_warp_sum(sums[j]);
}

// The matrices of a and b for matrix `plane` of the result.
struct vector_planes {
    u64 z, w, az, aw;
};
GPU_FN vector_planes planes_of(GPU_ARGS gpu_args &p, u64 plane) {
    GPU_ARGS gpu_operand &a = p.operands[1], &b = p.operands[2];
    vector_planes at;
    at.w = gpu_divide(plane, (u64)p.operands[0].ne[2], &at.z);
    at.az = at.z / (u64)(b.ne[2] / a.ne[2]);
    at.aw = at.w / (u64)(b.ne[3] / a.ne[3]);
    return at;
}
// What is added to column j: a row of operand 4, which is repeated.
GPU_FN GPU_GLOBAL const u8 *bias_of(GPU_ARGS gpu_args &p, u64 j, u64 z, u64 w) {
    GPU_ARGS gpu_operand &t = p.operands[4];
    return gpu_row(t, j % (u64)t.ne[1], z % (u64)t.ne[2], w % (u64)t.ne[3]);
}

// Blocks: rows, matrices. Operand 4, if there is one, is added.
GPU_KERNEL(kernel_vector, 128, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &a = p.operands[1], &bias = p.operands[4];
    const u64 m = (u64)gpu_bid_x(g) * VECTOR_ROWS + gpu_tid(g) / 32;
    if (m >= (u64)a.ne[1]) return;
    float sums[VECTOR_COLUMNS] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
    const vector_planes o = planes_of(p, gpu_bid_y(g));
    vector_sums(g, p, gpu_row(a, m, o.az, o.aw), gpu_row(p.operands[2], 0, o.z, o.w), sums);
    if (gpu_tid(g) % 32 != 0) return;
    for (u32 j = 0; j < COLUMN_COUNT(p); ++j) {
        const gpu_at at = {m, j, o.z, o.w};
        if (bias.data)
            sums[j] += *(GPU_GLOBAL const float *)(bias_of(p, j, o.z, o.w) + (i64)m * bias.nb[0]);
        *(GPU_GLOBAL float *)gpu_address(y, at) = sums[j];
    }
}

// Two products of the same columns, by operands 1 and 3, and the function of a gated unit of them.
// Blocks: rows, matrices.
GPU_KERNEL(kernel_vector_glu, 128, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &a = p.operands[1], &gate = p.operands[3];
    const u64 m = (u64)gpu_bid_x(g) * VECTOR_ROWS + gpu_tid(g) / 32;
    if (m >= (u64)a.ne[1]) return;
    float sums[VECTOR_COLUMNS] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
    float gates[VECTOR_COLUMNS] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
    const vector_planes o = planes_of(p, gpu_bid_y(g));
    GPU_GLOBAL const u8 *columns = gpu_row(p.operands[2], 0, o.z, o.w);
    vector_sums(g, p, gpu_row(a, m, o.az, o.aw), columns, sums);
    vector_sums(g, p, gpu_row(gate, m, o.az, o.aw), columns, gates);
    if (gpu_tid(g) % 32 != 0) return;
    for (u32 j = 0; j < COLUMN_COUNT(p); ++j) {
        const gpu_at at = {m, j, o.z, o.w};
        *(GPU_GLOBAL float *)gpu_address(y, at) = gpu_glu(p, sums[j], gates[j]);
    }
}

// The expert of a pair, a column of the result; as many as there are: it has none.
GPU_FN u32 expert_of(GPU_ARGS gpu_args &p, u64 pair) {
    GPU_ARGS gpu_operand &ids = p.operands[3];
    u64 u;
    const u64 t = gpu_divide(pair, (u64)p.operands[0].ne[1], &u);
    const gpu_at at = {u, t, 0, 0};
    const i32 id = *(GPU_GLOBAL const i32 *)gpu_address(ids, at);
    const u32 n = (u32)p.operands[1].ne[2];
    return id >= 0 && (u32)id < n ? (u32)id : n;
}
GPU_FN u64 column_of(GPU_ARGS gpu_args &p, u64 pair) {
    GPU_ARGS gpu_operand &b = p.operands[2];
    u64 u;
    const u64 t = gpu_divide(pair, (u64)p.operands[0].ne[1], &u);
    return (u64)gpu_row(b, u % (u64)b.ne[1], t, 0);
}
GPU_FN u64 result_of(GPU_ARGS gpu_args &p, u64 pair) {
    u64 u;
    const u64 t = gpu_divide(pair, (u64)p.operands[0].ne[1], &u);
    return (u64)gpu_row(p.operands[0], u, t, 0);
}

// Blocks: rows, pairs. A pair without an expert gets NaN.
GPU_KERNEL(kernel_vector_id, 128, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &a = p.operands[1];
    const u64 m = (u64)gpu_bid_x(g) * VECTOR_ROWS + gpu_tid(g) / 32, pair = gpu_bid_y(g);
    if (m >= (u64)a.ne[1]) return;
    float sums[VECTOR_COLUMNS] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
    const u32 expert = expert_of(p, pair);
    const bool known = expert < (u32)a.ne[2];
    vector_sums(g, p, gpu_row(a, m, known ? expert : 0, 0),
                (GPU_GLOBAL const u8 *)column_of(p, pair), sums);
    GPU_GLOBAL u8 *to = (GPU_GLOBAL u8 *)result_of(p, pair) + (i64)m * y.nb[0];
    if (gpu_tid(g) % 32 == 0) *(GPU_GLOBAL float *)to = known ? sums[0] : GPU_NAN;
}

// --- tiles ---------------------------------------------------------------------------------------

// Sums of a tile: each SIMD group has 16 columns by 32 rows, as 2 x 4 matrices whose rows are
// columns of b. A thread decodes 16 elements of `row` and 8 of `column`; 0: zeros.
GPU_FN void matrix_sums(gpu_thread g, GPU_ARGS gpu_args &p, u64 row, u64 column,
                        GPU_LOCAL float *a_tile, GPU_LOCAL float *b_tile,
                        GPU_PRIVATE gpu_matrix *sums) {
    const u32 t = gpu_tid(g), m0 = t / 32 % 2 * 32, n0 = t / 64 * 16;
    const u32 a_at = t % 2 * 16, b_at = t % 4 * 8;
    const u64 depth = (u64)p.operands[1].ne[0];
    const int b_type = p.operands[2].type;
    for (u64 k0 = 0; k0 < depth; k0 += MATRIX_K) {
        for (u32 i = 0; i < 16; i += 4) {
            float x[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            const u64 k = k0 + a_at + i;
            if (row && k < depth) four_weights(WEIGHT_TYPE(p), (GPU_GLOBAL const u8 *)row, k, x);
            for (u32 e = 0; e < 4; ++e)
                a_tile[t / 2 * MATRIX_PITCH + a_at + i + e] = x[e];
        }
        for (u32 i = 0; i < 8; i += 4) {
            float x[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            const u64 k = k0 + b_at + i;
            if (column && k < depth) four_floats(b_type, (GPU_GLOBAL const u8 *)column, k, x);
            for (u32 e = 0; e < 4; ++e)
                b_tile[t / 4 * MATRIX_PITCH + b_at + i + e] = x[e];
        }
        gpu_sync(g);
        for (u32 k = 0; k < MATRIX_K; k += 8) {
            // Six loads of 8 x 8 for eight products.
            gpu_matrix a[4], b[2];
            for (u32 i = 0; i < 4; ++i)
                gpu_matrix_load_turned(a[i], a_tile + (m0 + 8 * i) * MATRIX_PITCH + k,
                                       MATRIX_PITCH);
            for (u32 j = 0; j < 2; ++j)
                gpu_matrix_load(b[j], b_tile + (n0 + 8 * j) * MATRIX_PITCH + k, MATRIX_PITCH);
            for (u32 i = 0; i < 8; ++i)
                gpu_matrix_multiply(sums[i], b[i / 4], a[i % 4]);
        }
        gpu_sync(g);
    }
}

// Where the columns of a tile begin: of b, of the result, and of what is added; 0: there is none.
struct matrix_columns {
    GPU_LOCAL u64 *from, *to, *bias;
};

// Writes a tile through the memory of a's.
// Which lane has which element of a matrix is not specified: it is stored whole, and read back by
// place.
GPU_FN void matrix_store(gpu_thread g, GPU_ARGS gpu_args &p, u64 first, matrix_columns columns,
                         GPU_LOCAL float *out, GPU_PRIVATE gpu_matrix *sums) {
    GPU_ARGS gpu_operand &y = p.operands[0];
    const u32 t = gpu_tid(g), m0 = t / 32 % 2 * 32, n0 = t / 64 * 16;
    for (u32 i = 0; i < 8; ++i)
        gpu_matrix_store(sums[i], out + (n0 + i / 4 * 8) * MATRIX_OUT_PITCH + m0 + i % 4 * 8,
                         MATRIX_OUT_PITCH);
    gpu_sync(g);
    for (u32 i = t; i < MATRIX_M * MATRIX_N; i += MATRIX_THREADS) {
        const u32 n = i / MATRIX_M;
        const u64 m = first + i % MATRIX_M;
        if (!columns.to[n] || m >= (u64)y.ne[0]) continue;
        float sum = out[n * MATRIX_OUT_PITCH + i % MATRIX_M];
        if (columns.bias[n])
            sum += *(GPU_GLOBAL const float *)((GPU_GLOBAL const u8 *)columns.bias[n] +
                                               (i64)m * p.operands[4].nb[0]);
        *(GPU_GLOBAL float *)((GPU_GLOBAL u8 *)columns.to[n] + (i64)m * y.nb[0]) = sum;
    }
    gpu_sync(g);
}

// A tile of the rows of one matrix of a.
GPU_FN void matrix_tile(gpu_thread g, GPU_ARGS gpu_args &p, u64 az, u64 aw, matrix_columns columns,
                        GPU_LOCAL float *a_tile, GPU_LOCAL float *b_tile) {
    GPU_ARGS gpu_operand &a = p.operands[1];
    const u64 first = (u64)gpu_bid_x(g) * MATRIX_M, m = first + gpu_tid(g) / 2;
    gpu_matrix sums[8];
    for (u32 i = 0; i < 8; ++i)
        gpu_matrix_zero(sums[i]);
    matrix_sums(g, p, m < (u64)a.ne[1] ? (u64)gpu_row(a, m, az, aw) : 0,
                columns.from[gpu_tid(g) / 4], a_tile, b_tile, sums);
    matrix_store(g, p, first, columns, a_tile, sums);
}

// Blocks: tiles of rows, of columns, and matrices. Operand 4, if there is one, is added.
GPU_KERNEL(kernel_matrix, 128, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, a_tile, MATRIX_M *MATRIX_PITCH);
    GPU_SHARED(float, b_tile, MATRIX_N *MATRIX_PITCH);
    GPU_SHARED(u64, addresses, 3 * MATRIX_N);
    const matrix_columns columns = {addresses, addresses + MATRIX_N, addresses + 2 * MATRIX_N};
    const vector_planes o = planes_of(p, gpu_bid_z(g));
    if (gpu_tid(g) < MATRIX_N) {
        const u64 n = (u64)gpu_bid_y(g) * MATRIX_N + gpu_tid(g);
        const bool inside = n < (u64)p.operands[2].ne[1], has_bias = p.operands[4].data != 0;
        columns.from[gpu_tid(g)] = inside ? (u64)gpu_row(p.operands[2], n, o.z, o.w) : 0;
        columns.to[gpu_tid(g)] = inside ? (u64)gpu_row(p.operands[0], n, o.z, o.w) : 0;
        columns.bias[gpu_tid(g)] = inside && has_bias ? (u64)bias_of(p, n, o.z, o.w) : 0;
    }
    gpu_sync(g);
    matrix_tile(g, p, o.az, o.aw, columns, a_tile, b_tile);
}

// --- tiles of experts ----------------------------------------------------------------------------

// Up to MATRIX_N pairs of an expert from its number `skip` on: the beginnings of their columns and
// results. Returns how many pairs of it were met, which is at most `skip` where there are none. A
// thread looks at one pair in MATRIX_THREADS and counts those before it.
GPU_FN u64 matrix_collect(gpu_thread g, GPU_ARGS gpu_args &p, u32 expert, u64 skip,
                          GPU_LOCAL u32 *flags, matrix_columns columns) {
    const u64 pairs = (u64)(p.operands[0].ne[1] * p.operands[0].ne[2]);
    const u32 t = gpu_tid(g);
    u64 met = 0;
    if (t < MATRIX_N) columns.from[t] = columns.to[t] = columns.bias[t] = 0;
    for (u64 base = 0; base < pairs && met < skip + MATRIX_N; base += MATRIX_THREADS) {
        const u64 pair = base + t;
        // The flags of the turn before have been read behind the first barrier, those of this one
        // are there behind the second.
        const bool mine = pair < pairs && expert_of(p, pair) == expert;
        gpu_sync(g);
        flags[t] = mine;
        gpu_sync(g);
        u32 before = 0, all = 0;
        for (u32 i = 0; i < MATRIX_THREADS; ++i) {
            before += i < t ? flags[i] : 0;
            all += flags[i];
        }
        const u64 rank = met + before;
        if (mine && rank >= skip && rank < skip + MATRIX_N) {
            columns.from[rank - skip] = column_of(p, pair);
            columns.to[rank - skip] = result_of(p, pair);
        }
        met += all;
    }
    gpu_sync(g);
    return met;
}

GPU_FN void matrix_nan(gpu_thread g, GPU_ARGS gpu_args &p, GPU_LOCAL const u64 *results) {
    GPU_ARGS gpu_operand &y = p.operands[0];
    for (u32 i = gpu_tid(g); i < MATRIX_M * MATRIX_N; i += MATRIX_THREADS) {
        const u64 n = i / MATRIX_M, m = (u64)gpu_bid_x(g) * MATRIX_M + i % MATRIX_M;
        if (results[n] && m < (u64)y.ne[0])
            *(GPU_GLOBAL float *)((GPU_GLOBAL u8 *)results[n] + (i64)m * y.nb[0]) = GPU_NAN;
    }
}

// Blocks: tiles of rows; tiles of an expert's columns, every numbers[1]-th of them; experts, and
// last the columns without one.
GPU_KERNEL(kernel_matrix_id, 128, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, a_tile, MATRIX_M *MATRIX_PITCH);
    GPU_SHARED(float, b_tile, MATRIX_N *MATRIX_PITCH);
    GPU_SHARED(u64, addresses, 3 * MATRIX_N);
    GPU_SHARED(u32, flags, MATRIX_THREADS);
    const matrix_columns columns = {addresses, addresses + MATRIX_N, addresses + 2 * MATRIX_N};
    const u32 expert = gpu_bid_z(g);
    for (u64 skip = (u64)gpu_bid_y(g) * MATRIX_N;; skip += (u64)p.numbers[1] * MATRIX_N) {
        if (matrix_collect(g, p, expert, skip, flags, columns) <= skip) return;
        if (expert < (u32)p.operands[1].ne[2])
            matrix_tile(g, p, expert, 0, columns, a_tile, b_tile);
        else
            matrix_nan(g, p, columns.to);
        gpu_sync(g);
    }
}
