// SPDX-License-Identifier: MIT
// Rows of floats laid side by side.
#ifndef CPU_INTERLEAVE_H
#define CPU_INTERLEAVE_H

#include "simd/simd.h"

typedef float four_quads __attribute__((vector_size(64)));

// y[t * stride + i] = x[i][t]
static inline void interleave_4(const float *const x[QUAD], int64_t k, float *y, int64_t stride) {
    int64_t t = 0;
    for (; t + QUAD <= k; t += QUAD, y += QUAD * stride) {
        const quad a = quad_load(x[0] + t);
        const quad b = quad_load(x[1] + t);
        const quad c = quad_load(x[2] + t);
        const quad d = quad_load(x[3] + t);
        const quad ac0 = __builtin_shufflevector(a, c, 0, 4, 1, 5);
        const quad ac2 = __builtin_shufflevector(a, c, 2, 6, 3, 7);
        const quad bd0 = __builtin_shufflevector(b, d, 0, 4, 1, 5);
        const quad bd2 = __builtin_shufflevector(b, d, 2, 6, 3, 7);
        quad_store(y, __builtin_shufflevector(ac0, bd0, 0, 4, 1, 5));
        quad_store(y + stride, __builtin_shufflevector(ac0, bd0, 2, 6, 3, 7));
        quad_store(y + 2 * stride, __builtin_shufflevector(ac2, bd2, 0, 4, 1, 5));
        quad_store(y + 3 * stride, __builtin_shufflevector(ac2, bd2, 2, 6, 3, 7));
    }
    for (; t < k; ++t, y += stride)
        quad_store(y, (quad){x[0][t], x[1][t], x[2][t], x[3][t]});
}

// Elements t to t + 3 of rows 0, 4, 8 and 12.
CPU_INLINE void load_four_quads(const float *const *x, int64_t t, four_quads *out) {
    typedef float two_quads __attribute__((vector_size(32)));
    const quad a = quad_load(x[0] + t);
    const quad b = quad_load(x[4] + t);
    const quad c = quad_load(x[8] + t);
    const quad d = quad_load(x[12] + t);
    const two_quads ab = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
    const two_quads cd = __builtin_shufflevector(c, d, 0, 1, 2, 3, 4, 5, 6, 7);
    *out = __builtin_shufflevector(ab, cd, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

// Pairs of the lower and of the upper halves of each quad.
#define LOWER_PAIRS 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29
#define UPPER_PAIRS 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31

// The same of sixteen rows: four transpositions at a time, where vectors are that wide.
static inline void interleave_16(const float *const x[16], int64_t k, float *y, int64_t stride) {
    int64_t t = 0;
    for (; t + QUAD <= k; t += QUAD) {
        four_quads in[QUAD], out[QUAD];
        for (int i = 0; i < QUAD; ++i)
            load_four_quads(x + i, t, &in[i]);
        const four_quads ac0 = __builtin_shufflevector(in[0], in[2], LOWER_PAIRS);
        const four_quads ac2 = __builtin_shufflevector(in[0], in[2], UPPER_PAIRS);
        const four_quads bd0 = __builtin_shufflevector(in[1], in[3], LOWER_PAIRS);
        const four_quads bd2 = __builtin_shufflevector(in[1], in[3], UPPER_PAIRS);
        out[0] = __builtin_shufflevector(ac0, bd0, LOWER_PAIRS);
        out[1] = __builtin_shufflevector(ac0, bd0, UPPER_PAIRS);
        out[2] = __builtin_shufflevector(ac2, bd2, LOWER_PAIRS);
        out[3] = __builtin_shufflevector(ac2, bd2, UPPER_PAIRS);
        for (int i = 0; i < QUAD; ++i)
            memcpy(y + (t + i) * stride, &out[i], sizeof(out[i]));
    }
    for (; t < k; ++t) {
        for (int i = 0; i < 16; ++i)
            y[t * stride + i] = x[i][t];
    }
}

#endif
