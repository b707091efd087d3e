// SPDX-License-Identifier: MIT
// Small matrices transposed in registers.
#ifndef CPU_TRANSPOSE_H
#define CPU_TRANSPOSE_H

#include "simd/simd.h"

// y[j][i] = x[i][j] of QUAD rows of as many floats; those of x lie `stride` floats apart.
CPU_INLINE void transpose_quads(const float *x, int64_t stride, quad *y) {
    const quad a = quad_load(x), b = quad_load(x + stride);
    const quad c = quad_load(x + 2 * stride), d = quad_load(x + 3 * stride);
    const quad ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const quad ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const quad cd0 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const quad cd1 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    y[0] = __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5);
    y[1] = __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7);
    y[2] = __builtin_shufflevector(ab1, cd1, 0, 1, 4, 5);
    y[3] = __builtin_shufflevector(ab1, cd1, 2, 3, 6, 7);
}

#endif
