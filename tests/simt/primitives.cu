// SPDX-License-Identifier: MIT
// Each wrapper of plugins/cuda/kernels/gpu_tensor.h by itself, from memory to memory, so that the
// host can compare it with its definition. The same source compiles for the emulator and for a GPU.
#include "primitives.h"

#include "gpu_tensor.h"

// The two neighbours in k at x[row][k], rows of 16.
GPU_FN u32 pair_of(const u16 *x, u32 row, u32 k) {
    return (u32)x[row * 16 + k] | (u32)x[row * 16 + k + 1] << 16;
}

// out[16][8] += x[16][16] times y[8][16] transposed, by the fragments as gpu_tensor.h has them.
GPU_FN void product(gpu_thread g, const primitive_args &p, bool is_bf16) {
    const u16 *x = (const u16 *)p.x, *y = (const u16 *)p.y;
    float *out = (float *)p.out, d[4];
    const u32 row = gpu_tid(g) / 4, c = gpu_tid(g) % 4;
    const u32 a[4] = {pair_of(x, row, 2 * c), pair_of(x, row + 8, 2 * c),
                      pair_of(x, row, 2 * c + 8), pair_of(x, row + 8, 2 * c + 8)};
    const u32 b[2] = {pair_of(y, row, 2 * c), pair_of(y, row, 2 * c + 8)};
    for (u32 i = 0; i < 4; ++i)
        d[i] = out[(row + i / 2 * 8) * 8 + 2 * c + i % 2];
    if (is_bf16)
        gpu_mma_bf16(d, a, b);
    else
        gpu_mma_f16(d, a, b);
    for (u32 i = 0; i < 4; ++i)
        out[(row + i / 2 * 8) * 8 + 2 * c + i % 2] = d[i];
}
GPU_KERNEL(primitive_mma_f16, 32, primitive_args, p) {
    GPU_THREAD(g);
    product(g, p, false);
}
GPU_KERNEL(primitive_mma_bf16, 32, primitive_args, p) {
    GPU_THREAD(g);
    product(g, p, true);
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

// What is done on words: x, y and z are arrays of them; out has eight results of each.
GPU_KERNEL(primitive_words, 32, primitive_args, p) {
    GPU_THREAD(g);
    for (u64 i = gpu_tid(g); i < (u64)p.n; i += 32) {
        const u32 a = ((const u32 *)p.x)[i], b = ((const u32 *)p.y)[i], c = ((const u32 *)p.z)[i];
        u32 *out = (u32 *)p.out + 8 * i;
        out[0] = gpu_pack_f16(gpu_float(a), gpu_float(b));
        out[1] = gpu_pack_bf16(gpu_float(a), gpu_float(b));
        out[2] = gpu_sub_f16(a, b);
        out[3] = gpu_fma_f16(a, b, c);
        out[4] = gpu_fma_bf16(a, b, c);
        out[5] = gpu_bytes(a, b, c & 0x7777u);
        const gpu_words2 two = gpu_load_8((const u32 *)p.x + (i & ~(u64)1));
        gpu_store_8(&out[6], two);
    }
}
