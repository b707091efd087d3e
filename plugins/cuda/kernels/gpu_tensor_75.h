// SPDX-License-Identifier: MIT
// What capability 7.5 does by other wrappers of gpu_tensor.h, also on the emulator of such a
// device: it has products of half the depth alone, and no copies that go on meanwhile.
#ifndef CUDA_KERNELS_GPU_TENSOR_75_H
#define CUDA_KERNELS_GPU_TENSOR_75_H

GPU_FN void gpu_mma_f16_by_halves(float *d, const u32 *a, const u32 *b) {
    gpu_mma_f16_8(d, a, b);
    gpu_mma_f16_8(d, a + 2, b + 1);
}

// Where a row ends.
GPU_FAR gpu_words4 gpu_load_part(const u8 *from, u32 n) {
    u32 words[4] = {0, 0, 0, 0};
    GPU_UNROLL
    for (u32 i = 0; i < 16; ++i) {
        if (i < n) words[i / 4] |= (u32)from[i] << (8 * (i % 4));
    }
    return {words[0], words[1], words[2], words[3]};
}
GPU_FN void gpu_copy_16_at_once(void *to, const void *from, u32 n) {
    gpu_store_16(to, n == 16 ? gpu_load_16(from) : gpu_load_part((const u8 *)from, n));
}

#endif
