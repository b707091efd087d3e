// SPDX-License-Identifier: MIT
// Matrices of 8 x 8 floats that a SIMD group of 32 lanes holds together; which lane has which
// element is nobody's business. Apple's GPUs have them from family 7 on. All lanes call each
// function together; nothing here orders what lanes do with shared memory.
//   gpu_matrix_zero                    fills with zeros
//   gpu_matrix_load, _load_turned      rows, or columns, of the matrix are `pitch` floats apart
//   gpu_matrix_store                   likewise
//   gpu_matrix_multiply(sums, a, b)    sums += a b
#ifndef METAL_KERNELS_GPU_MATRIX_H
#define METAL_KERNELS_GPU_MATRIX_H

#include "gpu.h"

// GPU_SPECIAL(p, i): what a pipeline is specialised for, value i of four: the kernel says what each
// is.
#if defined(GPU_EMULATED)
#include "gpu_matrix_emulated.h"
#else
typedef metal::simdgroup_float8x8 gpu_matrix;

constant int gpu_special_0 METAL_ATTRIBUTE(function_constant(0));
constant int gpu_special_1 METAL_ATTRIBUTE(function_constant(1));
constant int gpu_special_2 METAL_ATTRIBUTE(function_constant(2));
constant int gpu_special_3 METAL_ATTRIBUTE(function_constant(3));
#define GPU_SPECIAL(p, i) ((void)(p), gpu_special_##i)

GPU_FN void gpu_matrix_zero(GPU_PRIVATE gpu_matrix &m) {
    m = metal::make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
}
GPU_FN void gpu_matrix_load(GPU_PRIVATE gpu_matrix &m, GPU_LOCAL const float *p, u32 pitch) {
    metal::simdgroup_load(m, p, pitch);
}
GPU_FN void gpu_matrix_load_turned(GPU_PRIVATE gpu_matrix &m, GPU_LOCAL const float *p, u32 pitch) {
    metal::simdgroup_load(m, p, pitch, ulong2(0), true);
}
GPU_FN void gpu_matrix_store(GPU_PRIVATE gpu_matrix &m, GPU_LOCAL float *p, u32 pitch) {
    metal::simdgroup_store(m, p, pitch);
}
GPU_FN void gpu_matrix_multiply(GPU_PRIVATE gpu_matrix &sums, GPU_PRIVATE gpu_matrix &a,
                                GPU_PRIVATE gpu_matrix &b) {
    metal::simdgroup_multiply_accumulate(sums, a, b, sums);
}
#endif

#endif
