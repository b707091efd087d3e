// SPDX-License-Identifier: MIT
// Each wrapper of plugins/cuda/kernels/gpu_tensor.h and gpu_warpgroup.h by itself, from memory to
// memory, so that the host can compare it with its definition. The same source compiles for the
// emulator and for a GPU.
#include "gpu_warpgroup.h"
#include "primitives.h"

// The two neighbours in k at x[row][k], rows of 16.
GPU_FN u32 pair_of(const u16 *x, u32 row, u32 k) {
    return (u32)x[row * 16 + k] | (u32)x[row * 16 + k + 1] << 16;
}

// out[16][8] += x[16][16] times y[8][16] transposed, or what the first 8 columns of both add to it,
// by the fragments as gpu_tensor.h has them.
enum product_kind { PRODUCT_F16, PRODUCT_F16_8, PRODUCT_BF16 };
GPU_FN void product(gpu_thread g, const primitive_args &p, product_kind kind) {
    const u16 *x = (const u16 *)p.x, *y = (const u16 *)p.y;
    float *out = (float *)p.out, d[4];
    const u32 row = gpu_tid(g) / 4, c = gpu_tid(g) % 4;
    const u32 a[4] = {pair_of(x, row, 2 * c), pair_of(x, row + 8, 2 * c),
                      pair_of(x, row, 2 * c + 8), pair_of(x, row + 8, 2 * c + 8)};
    const u32 b[2] = {pair_of(y, row, 2 * c), pair_of(y, row, 2 * c + 8)};
    for (u32 i = 0; i < 4; ++i)
        d[i] = out[(row + i / 2 * 8) * 8 + 2 * c + i % 2];
    if (kind == PRODUCT_BF16)
        gpu_mma_bf16(d, a, b);
    else if (kind == PRODUCT_F16_8)
        gpu_mma_f16_8(d, a, b);
    else
        gpu_mma_f16(d, a, b);
    for (u32 i = 0; i < 4; ++i)
        out[(row + i / 2 * 8) * 8 + 2 * c + i % 2] = d[i];
}
GPU_KERNEL(primitive_mma_f16, 32, primitive_args, p) {
    GPU_THREAD(g);
    product(g, p, PRODUCT_F16);
}
GPU_KERNEL(primitive_mma_f16_8, 32, primitive_args, p) {
    GPU_THREAD(g);
    product(g, p, PRODUCT_F16_8);
}
GPU_KERNEL(primitive_mma_bf16, 32, primitive_args, p) {
    GPU_THREAD(g);
    product(g, p, PRODUCT_BF16);
}

// Four matrices of 8 x 8 halves from x through shared memory, a row per lane; out: what each lane
// got of each.
GPU_FN void matrices(gpu_thread g, const primitive_args &p, u16 *rows, bool turned) {
    u32 r[4];
    const u32 lane = gpu_tid(g);
    gpu_copy_16(rows + lane * 8, (const u16 *)p.x + lane * 8, 16);
    gpu_copy_group();
    gpu_copy_wait<0>();
    gpu_sync_warp(g);
    if (turned)
        gpu_load_matrices_turned(r, rows + lane * 8);
    else
        gpu_load_matrices(r, rows + lane * 8);
    for (u32 m = 0; m < 4; ++m)
        ((u32 *)p.out)[m * 32 + lane] = r[m];
}
GPU_KERNEL(primitive_matrices, 32, primitive_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(gpu_words4, rows, 32);
    matrices(g, p, (u16 *)rows, false);
}
GPU_KERNEL(primitive_matrices_turned, 32, primitive_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(gpu_words4, rows, 32);
    matrices(g, p, (u16 *)rows, true);
}

// Two groups of copies, of which the first is waited for alone; of its 16 bytes n are read.
GPU_KERNEL(primitive_copies, 32, primitive_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(gpu_words4, first, 32);
    GPU_SHARED(gpu_words4, second, 32);
    const u32 lane = gpu_tid(g);
    gpu_copy_16(&first[lane], (const gpu_words4 *)p.x + lane, (u32)p.n);
    gpu_copy_group();
    gpu_copy_16(&second[lane], (const gpu_words4 *)p.y + lane, 16);
    gpu_copy_group();
    gpu_copy_wait<1>();
    ((gpu_words4 *)p.out)[lane] = gpu_load_16(&first[lane]);
    gpu_copy_wait<0>();
    ((gpu_words4 *)p.out)[32 + lane] = gpu_load_16(&second[lane]);
}
// Defects: a group is not waited for; a row of another lane is read without a barrier.
GPU_KERNEL(primitive_copies_not_waited, 32, primitive_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(gpu_words4, first, 32);
    gpu_copy_16(&first[gpu_tid(g)], (const gpu_words4 *)p.x + gpu_tid(g), 16);
    gpu_copy_group();
    gpu_copy_wait<1>();
    ((gpu_words4 *)p.out)[gpu_tid(g)] = gpu_load_16(&first[gpu_tid(g)]);
}
GPU_KERNEL(primitive_copies_no_barrier, 32, primitive_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(gpu_words4, first, 32);
    gpu_copy_16(&first[gpu_tid(g)], (const gpu_words4 *)p.x + gpu_tid(g), 16);
    gpu_copy_group();
    gpu_copy_wait<0>();
    ((gpu_words4 *)p.out)[gpu_tid(g)] = gpu_load_16(&first[(gpu_tid(g) + 1) % 32]);
}

// What is done on words: x, y and z are arrays of them; out has eight results of each, of which
// those of BF16 are another kernel's.
GPU_KERNEL(primitive_words, 32, primitive_args, p) {
    GPU_THREAD(g);
    for (u64 i = gpu_tid(g); i < (u64)p.n; i += 32) {
        const u32 a = ((const u32 *)p.x)[i], b = ((const u32 *)p.y)[i], c = ((const u32 *)p.z)[i];
        u32 *out = (u32 *)p.out + 8 * i;
        out[0] = gpu_pack_f16(gpu_float(a), gpu_float(b));
        out[2] = gpu_sub_f16(a, b);
        out[3] = gpu_fma_f16(a, b, c);
        out[5] = gpu_bytes(a, b, c & 0x7777u);
        const gpu_words2 two = gpu_load_8((const u32 *)p.x + (i & ~(u64)1));
        gpu_store_8(&out[6], two);
    }
}
GPU_KERNEL(primitive_words_bf16, 32, primitive_args, p) {
    GPU_THREAD(g);
    for (u64 i = gpu_tid(g); i < (u64)p.n; i += 32) {
        const u32 a = ((const u32 *)p.x)[i], b = ((const u32 *)p.y)[i], c = ((const u32 *)p.z)[i];
        u32 *out = (u32 *)p.out + 8 * i;
        out[1] = gpu_pack_bf16(gpu_float(a), gpu_float(b));
        out[4] = gpu_fma_bf16(a, b, c);
    }
}

// --- what warpgroups have ------------------------------------------------------------------------

#if GPU_HAS_WARPGROUPS

// out (64 rows of N) += x (64 rows of 64 halves) y, which lies as a tile does.
template <int N, bool BF16>
GPU_FN void wide_primitive(gpu_thread g, const primitive_args &p, u8 *tile, u64 *full) {
    const u32 t = gpu_tid(g), row = t / 32 * 16 + t % 32 / 4, c = t % 4;
    float *out = (float *)p.out, d[N / 2];
    if (t == 0) {
        gpu_barrier_init(full, 1);
        gpu_barrier_publish();
    }
    gpu_sync(g);
    if (t == 0) {
        gpu_barrier_expect(full, N * 128);
        gpu_bulk_copy(tile, (const void *)p.y, N * 128, full);
    }
    GPU_UNROLL
    for (u32 i = 0; i < N / 2; ++i)
        d[i] = out[(row + i / 2 % 2 * 8) * N + i / 4 * 8 + 2 * c + i % 2];
    u32 a[4][4];
    GPU_UNROLL
    for (u32 i = 0; i < 16; ++i) {
        const u32 k = i / 4 * 16 + i % 4 / 2 * 8 + 2 * c;
        a[i / 4][i % 4] = *(const u32 *)((const u16 *)p.x + (row + i % 2 * 8) * 64 + k);
    }
    gpu_barrier_wait(full, 0);
    const u64 operand = gpu_wgmma_operand(tile);
    gpu_wgmma_begin();
    GPU_UNROLL
    for (u32 i = 0; i < 4; ++i)
        gpu_wgmma<N, BF16>(d, a[i], operand + 2 * i);
    gpu_wgmma_commit();
    if (!p.n) gpu_wgmma_finish(d); // n: a defect
    GPU_UNROLL
    for (u32 i = 0; i < N / 2; ++i)
        out[(row + i / 2 % 2 * 8) * N + i / 4 * 8 + 2 * c + i % 2] = d[i];
    gpu_wgmma_finish(d);
}

#define WIDE_PRIMITIVE(name, n, is_bf16)                                                           \
    GPU_KERNEL(primitive_wgmma_##name, 128, primitive_args, p) {                                   \
        GPU_THREAD(g);                                                                             \
        GPU_SHARED_LARGE(u8, tile, n * 128 + 8);                                                   \
        wide_primitive<n, is_bf16>(g, p, tile, (u64 *)(tile + n * 128));                           \
    }
WIDE_PRIMITIVE(32_F16, 32, false)
WIDE_PRIMITIVE(48_F16, 48, false)
WIDE_PRIMITIVE(48_BF16, 48, true)
WIDE_PRIMITIVE(64_F16, 64, false)
WIDE_PRIMITIVE(64_BF16, 64, true)
WIDE_PRIMITIVE(128_F16, 128, false)
WIDE_PRIMITIVE(128_BF16, 128, true)
WIDE_PRIMITIVE(256_F16, 256, false)
WIDE_PRIMITIVE(256_BF16, 256, true)

// out (64 rows of N) += x (64 rows of 64 halves) y, of 64 rows of N halves, which the threads copy
// to where a tile has them. n: defects: 1: no fence, 2: no barrier, 4: copies are not waited for, 8:
// the last row is not copied.
template <int N, bool BF16>
GPU_FN void turned_primitive(gpu_thread g, const primitive_args &p, u8 *tile) {
    const u32 t = gpu_tid(g), row = t / 32 * 16 + t % 32 / 4, c = t % 4;
    float *out = (float *)p.out, d[N / 2];
    for (u32 i = t; i < (p.n & 8 ? 63 * N / 8 : 8 * N); i += 128) {
        const u32 k = i / (N / 8), piece = i % (N / 8);
        gpu_copy_16(tile + piece / 8 * 8192 + k * 128 + 16 * (piece % 8 ^ k % 8),
                    (const u8 *)p.y + 16 * i, 16);
    }
    gpu_copy_group();
    if (!(p.n & 4)) gpu_copy_wait<0>();
    if (!(p.n & 1)) gpu_fence_async();
    if (!(p.n & 2)) gpu_sync(g);
    GPU_UNROLL
    for (u32 i = 0; i < N / 2; ++i)
        d[i] = out[(row + i / 2 % 2 * 8) * N + i / 4 * 8 + 2 * c + i % 2];
    const u64 operand = gpu_wgmma_operand_turned(tile, 8192);
    gpu_wgmma_begin();
    GPU_UNROLL
    for (u32 i = 0; i < 4; ++i) {
        u32 a[4];
        GPU_UNROLL
        for (u32 e = 0; e < 4; ++e)
            a[e] = *(const u32 *)((const u16 *)p.x + (row + e % 2 * 8) * 64 + i * 16 + e / 2 * 8 +
                                  2 * c);
        gpu_wgmma_turned<N, BF16>(d, a, operand + 128 * i);
    }
    gpu_wgmma_commit();
    gpu_wgmma_finish(d);
    GPU_UNROLL
    for (u32 i = 0; i < N / 2; ++i)
        out[(row + i / 2 % 2 * 8) * N + i / 4 * 8 + 2 * c + i % 2] = d[i];
}
#define TURNED_PRIMITIVE(name, n, is_bf16)                                                         \
    GPU_KERNEL(primitive_wgmma_turned_##name, 128, primitive_args, p) {                            \
        GPU_THREAD(g);                                                                             \
        GPU_SHARED_LARGE(u8, tile, n * 128);                                                       \
        turned_primitive<n, is_bf16>(g, p, tile);                                                  \
    }
TURNED_PRIMITIVE(128_F16, 128, false)
TURNED_PRIMITIVE(128_BF16, 128, true)
TURNED_PRIMITIVE(256_F16, 256, false)
TURNED_PRIMITIVE(256_BF16, 256, true)

// A warp fills a tile with ones, and with zeros when it is given back; out: what the other four
// have multiplied with ones, 16 for each of a thread's 32 sums. n: a defect: it is given back before
// the product is done.
GPU_KERNEL(primitive_given_back, 160, primitive_args, p) {
    GPU_THREAD(g);
    GPU_SHARED_LARGE(u8, tile, 64 * 128 + 16);
    const u32 t = gpu_tid(g), ones = 0x3c003c00u, a[4] = {ones, ones, ones, ones};
    u64 *full = (u64 *)(tile + 64 * 128), *empty = full + 1;
    if (t == 0) {
        gpu_barrier_init(full, 32);
        gpu_barrier_init(empty, 4);
        gpu_barrier_publish();
    }
    gpu_sync(g);
    if (t >= 128) {
        for (u32 i = t - 128; i < 64 * 16; i += 32)
            gpu_store_8(tile + 8 * i, {ones, ones});
        gpu_fence_async();
        gpu_barrier_arrive(full);
        gpu_barrier_wait(empty, 0);
        for (u32 i = t - 128; i < 64 * 16; i += 32)
            gpu_store_8(tile + 8 * i, {0, 0});
        return;
    }
    float d[32];
    GPU_UNROLL
    for (u32 i = 0; i < 32; ++i)
        d[i] = 0.0f;
    gpu_barrier_wait(full, 0);
    if (p.n && t % 32 == 0) gpu_barrier_arrive(empty);
    gpu_wgmma_begin();
    gpu_wgmma<64, false>(d, a, gpu_wgmma_operand(tile));
    gpu_wgmma_commit();
    gpu_wgmma_finish(d);
    if (!p.n && t % 32 == 0) gpu_barrier_arrive(empty);
    GPU_UNROLL
    for (u32 i = 0; i < 32; ++i)
        ((float *)p.out)[t * 32 + i] = d[i];
}

enum { NO_FULL = 1, NO_EMPTY = 2, NO_ARRIVAL = 4 }; // of n: defects

// One warp copies pieces of 512 bytes into two buffers in turn, another adds up what its lanes find
// in them: out has eight sums of each lane.
GPU_KERNEL(primitive_pipeline, 64, primitive_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(gpu_words4, buffers, 2 * 32);
    GPU_SHARED(u64, barriers, 4);
    const u32 lane = gpu_tid(g) % 32, pieces = 8;
    u64 *full = barriers, *empty = barriers + 2;
    if (gpu_tid(g) == 0) {
        for (u32 i = 0; i < 2; ++i) {
            gpu_barrier_init(&full[i], 32);
            gpu_barrier_init(&empty[i], 1);
        }
        gpu_barrier_publish();
    }
    gpu_sync(g);
    for (u32 i = 0; i < pieces; ++i) {
        gpu_words4 *at = &buffers[i % 2 * 32];
        if (gpu_tid(g) < 32) {
            if (i >= 2 && !(p.n & NO_EMPTY)) gpu_barrier_wait(&empty[i % 2], (i / 2 + 1) & 1);
            gpu_copy_16(&at[lane], (const gpu_words4 *)p.x + i * 32 + lane, 16);
            gpu_copy_arrive(&full[i % 2]);
        } else {
            if (!(p.n & NO_FULL)) gpu_barrier_wait(&full[i % 2], i / 2 & 1);
            const gpu_words4 w = gpu_load_16(&at[31 - lane]);
            ((u32 *)p.out)[i * 32 + lane] = w.x + w.y + w.z + w.w;
            gpu_sync_warp(g);
            if (lane == 0 && !(p.n & NO_ARRIVAL)) gpu_barrier_arrive(&empty[i % 2]);
        }
    }
}
#endif
