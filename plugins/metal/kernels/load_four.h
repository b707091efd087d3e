// SPDX-License-Identifier: MIT
// Four consecutive elements of a row of any type as floats. Rows lie as four.h asks for, and have a
// multiple of four elements.
#ifndef METAL_KERNELS_LOAD_FOUR_H
#define METAL_KERNELS_LOAD_FOUR_H

#include "four.h"
#include "tensor.h"

GPU_FN void four_floats(int type, GPU_GLOBAL const u8 *row, u64 k, GPU_PRIVATE float *x) {
    const u32 size = type == TYPE_F32 ? 4 : 2;
    for (u32 i = 0; i < 4; ++i)
        x[i] = gpu_load(type, row + (k + i) * size);
}
// Elements k to k + 3 of a row of weights, k a multiple of 4.
GPU_FN void four_weights(int type, GPU_GLOBAL const u8 *row, u64 k, GPU_PRIVATE float *x) {
    const u32 n = gpu_block_elements(type);
    if (n == 1) {
        four_floats(type, row, k, x);
        return;
    }
    const gpu_four f = gpu_four_at(type, row + k / n * gpu_block_bytes(type), (u32)(k % n));
    for (u32 i = 0; i < 4; ++i)
        x[i] = gpu_four_element(type, f, i);
}

#endif
