// SPDX-License-Identifier: MIT
// Products of matrices of any types, in F32: a tile of the result per block of threads, or a warp
// per element where there are few columns.
#include "tensor.h"

enum { TILE = 32, DEPTH = 32, THREADS = 256 };

// A tile of rows of a by columns of b, given by their addresses; 0: none. Four results per
// thread.
// Lines are DEPTH + 1 floats apart: a warp reads one k of 32 rows, which lie in 32 banks, and of
// one column, which all its lanes get at once. Each element of a and b is read from device memory
// once per tile, for 32 products.
GPU_FN void tile_product(gpu_thread g, GPU_ARGS gpu_operand &a, GPU_ARGS gpu_operand &b,
                         GPU_LOCAL const u64 *rows, GPU_LOCAL const u64 *columns,
                         GPU_LOCAL float *a_tile, GPU_LOCAL float *b_tile, u64 depth,
                         GPU_PRIVATE float *sums) {
    const u32 t = gpu_tid(g);
    for (u64 k0 = 0; k0 < depth; k0 += DEPTH) {
        for (u32 i = t; i < TILE * DEPTH; i += THREADS) {
            const u32 line = i / DEPTH, k = i % DEPTH;
            const bool inside = k0 + k < depth;
            a_tile[line * (DEPTH + 1) + k] =
                inside && rows[line] ? gpu_element(a, (GPU_GLOBAL const u8 *)rows[line], k0 + k)
                                     : 0.0f;
            b_tile[line * (DEPTH + 1) + k] =
                inside && columns[line]
                    ? gpu_element(b, (GPU_GLOBAL const u8 *)columns[line], k0 + k)
                    : 0.0f;
        }
        gpu_sync(g);
        // Thread t has row t % 32 and the columns t / 32, that + 8, + 16 and + 24.
        for (u32 k = 0; k < DEPTH; ++k) {
            for (u32 s = 0; s < 4; ++s)
                sums[s] = gpu_fma(a_tile[(t % TILE) * (DEPTH + 1) + k],
                                  b_tile[(t / TILE + 8 * s) * (DEPTH + 1) + k], sums[s]);
        }
        gpu_sync(g);
    }
}

// Blocks: tiles of rows, of columns, and matrices.
GPU_KERNEL(kernel_mul_mat, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, a_tile, TILE *(DEPTH + 1));
    GPU_SHARED(float, b_tile, TILE *(DEPTH + 1));
    GPU_SHARED(u64, rows, TILE);
    GPU_SHARED(u64, columns, TILE);
    GPU_ARGS gpu_operand &y = p.operands[0], &a = p.operands[1], &b = p.operands[2];
    const u32 t = gpu_tid(g);
    const u64 m0 = (u64)gpu_bid_x(g) * TILE, n0 = (u64)gpu_bid_y(g) * TILE;
    for (u64 matrix = gpu_bid_z(g); matrix < (u64)(y.ne[2] * y.ne[3]);
         matrix += (u64)p.numbers[0]) {
        u64 z;
        const u64 w = gpu_divide(matrix, (u64)y.ne[2], &z);
        // Several matrices of b, along dimensions 2 and 3, may share one of a.
        if (t < TILE) {
            const u64 az = z / (u64)(b.ne[2] / a.ne[2]), aw = w / (u64)(b.ne[3] / a.ne[3]);
            rows[t] = m0 + t < (u64)a.ne[1] ? (u64)gpu_row(a, m0 + t, az, aw) : 0;
            columns[t] = n0 + t < (u64)b.ne[1] ? (u64)gpu_row(b, n0 + t, z, w) : 0;
        }
        gpu_sync(g);
        float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        tile_product(g, a, b, rows, columns, a_tile, b_tile, (u64)a.ne[0], sums);
        for (u32 s = 0; s < 4; ++s) {
            const u64 m = m0 + t % TILE, n = n0 + t / TILE + 8 * s;
            const gpu_at at = {m, n, z, w};
            if (m < (u64)y.ne[0] && n < (u64)y.ne[1])
                *(GPU_GLOBAL float *)gpu_address(y, at) = sums[s];
        }
        gpu_sync(g);
    }
}

// A warp per element of the result.
// Lane l takes k = l, l + 32, ...: the warp reads neighbouring elements, and the lanes' sums are
// added at the end.
GPU_FN float warp_product(gpu_thread g, GPU_ARGS gpu_operand &a, GPU_GLOBAL const u8 *row,
                          GPU_ARGS gpu_operand &b, GPU_GLOBAL const u8 *column) {
    float sum = 0.0f;
    for (u64 k = gpu_tid(g) % 32; k < (u64)a.ne[0]; k += 32)
        sum = gpu_fma(gpu_element(a, row, k), gpu_element(b, column, k), sum);
    return gpu_warp_sum(sum);
}

GPU_KERNEL(kernel_mul_mat_vec, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &a = p.operands[1], &b = p.operands[2];
    const u64 i = gpu_index(g) / 32;
    if (i >= gpu_count(y)) return;
    const gpu_at at = gpu_element_at(y, i);
    const u64 az = at.z / (u64)(b.ne[2] / a.ne[2]), aw = at.w / (u64)(b.ne[3] / a.ne[3]);
    const float sum = warp_product(g, a, gpu_row(a, at.x, az, aw), b, gpu_row(b, at.y, at.z, at.w));
    if (gpu_tid(g) % 32 == 0) *(GPU_GLOBAL float *)gpu_address(y, at) = sum;
}

// y[:, u, t] = a[:, :, ids[u, t]] b[:, u, t]; b may have one column for several u. An index that a
// does not have gives NaN.
GPU_KERNEL(kernel_mul_mat_id, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &a = p.operands[1], &b = p.operands[2],
                         &ids = p.operands[3];
    const u64 i = gpu_index(g) / 32;
    if (i >= gpu_count(y)) return;
    const gpu_at at = gpu_element_at(y, i), id_at = {at.y, at.z, 0, 0};
    const i32 id = *(GPU_GLOBAL const i32 *)gpu_address(ids, id_at);
    const bool known = id >= 0 && id < a.ne[2];
    const float sum = warp_product(g, a, gpu_row(a, at.x, known ? (u64)id : 0, 0), b,
                                   gpu_row(b, at.y % (u64)b.ne[1], at.z, 0));
    if (gpu_tid(g) % 32 == 0) *(GPU_GLOBAL float *)gpu_address(y, at) = known ? sum : GPU_NAN;
}

// y[i, j] = sum over k of a[i, k] b[j, k]; a thread per element.
GPU_KERNEL(kernel_out_prod, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &a = p.operands[1], &b = p.operands[2];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at at = gpu_element_at(y, i);
    const u64 az = at.z / (u64)(b.ne[2] / a.ne[2]), aw = at.w / (u64)(b.ne[3] / a.ne[3]);
    float sum = 0.0f;
    for (u64 k = 0; k < (u64)a.ne[1]; ++k)
        sum = gpu_fma(gpu_element(a, gpu_row(a, k, az, aw), at.x),
                      gpu_element(b, gpu_row(b, k, at.z, at.w), at.y), sum);
    *(GPU_GLOBAL float *)gpu_address(y, at) = sum;
}
