// SPDX-License-Identifier: MIT
// Vectors of this level's width, in the vector language of gcc and clang: one source for every
// level.
#ifndef CPU_SIMD_H
#define CPU_SIMD_H

#include "base/kernel.h"
#if defined(__AVX__)
#include <immintrin.h>
#endif

// Floats and bytes in a vector, and vector registers, of each level, and of the one that is
// compiled.
enum {
#define CPU_LEVEL_ROW(name, text, lanes, bytes, registers, features, optional)                     \
    CPU_LANES_##name = (lanes), CPU_BYTES_##name = (bytes), CPU_VECTORS_##name = (registers),
#include "runtime/level_list.inl"
    LANES = CPU_PASTE(CPU_LANES, CPU_LEVEL),
    BYTES = CPU_PASTE(CPU_BYTES, CPU_LEVEL),
    VECTORS = CPU_PASTE(CPU_VECTORS, CPU_LEVEL),
};

typedef float vf __attribute__((vector_size(4 * LANES)));
typedef int32_t vi __attribute__((vector_size(4 * LANES)));

enum { QUAD = 4 };
typedef float quad __attribute__((vector_size(4 * QUAD)));

#define CPU_INLINE static inline __attribute__((always_inline))

CPU_INLINE vf vf_load(const float *p) {
    vf v;
    memcpy(&v, p, sizeof(v));
    return v;
}

CPU_INLINE void vf_store(float *p, vf v) {
    memcpy(p, &v, sizeof(v));
}

CPU_INLINE vf vf_set(float x) {
    return x - (vf){0};
}

// The first n < LANES floats, the others 0.
CPU_INLINE vf vf_load_part(const float *p, int64_t n) {
    vf v = {0};
    memcpy(&v, p, (size_t)n * sizeof(float));
    return v;
}

CPU_INLINE void vf_store_part(float *p, vf v, int64_t n) {
    memcpy(p, &v, (size_t)n * sizeof(float));
}

// The same where n may be more than there are.
CPU_INLINE vf vf_load_most(const float *p, int64_t n) {
    return n >= LANES ? vf_load(p) : vf_load_part(p, n);
}

CPU_INLINE void vf_store_most(float *p, vf v, int64_t n) {
    if (n >= LANES)
        vf_store(p, v);
    else
        vf_store_part(p, v, n);
}

CPU_INLINE vf vf_select(vi mask, vf yes, vf no) {
    return (vf)((mask & (vi)yes) | (~mask & (vi)no));
}

// Lanes from the first on.
CPU_INLINE vi vi_from(int32_t first) {
    static const int32_t lanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    vi v;
    memcpy(&v, lanes, sizeof(v));
    return v >= first;
}

// b where it is larger; NaN in a stays. Compilers don't see that this is one instruction.
CPU_INLINE vf vf_max(vf a, vf b) {
#if defined(__AVX512F__)
    return _mm512_max_ps(b, a);
#elif defined(__AVX__)
    return _mm256_max_ps(b, a);
#else
    return vf_select(b > a, b, a);
#endif
}

CPU_INLINE quad quad_load(const float *p) {
    quad v;
    memcpy(&v, p, sizeof(v));
    return v;
}

CPU_INLINE void quad_store(float *p, quad v) {
    memcpy(p, &v, sizeof(v));
}

// Adds the vector's groups of QUAD lanes, halves of it first; one group is left.
CPU_INLINE quad vf_sum_quads(vf v) {
    quad part[LANES / QUAD + 1];
    memcpy(part, &v, sizeof(v));
    for (int n = LANES / QUAD / 2; n > 0; n /= 2) {
        for (int i = 0; i < n; ++i)
            part[i] += part[i + n];
    }
    return part[0];
}

// Groups of four are added first, then the four lanes in pairs.
CPU_INLINE float vf_sum(vf v) {
    if (LANES == 1) return v[0];
    const quad sum = vf_sum_quads(v);
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

// The sums of four quads, lanes added in pairs.
CPU_INLINE quad quad_sum_each(quad a, quad b, quad c, quad d) {
    const quad ac =
        __builtin_shufflevector(a, c, 0, 4, 1, 5) + __builtin_shufflevector(a, c, 2, 6, 3, 7);
    const quad bd =
        __builtin_shufflevector(b, d, 0, 4, 1, 5) + __builtin_shufflevector(b, d, 2, 6, 3, 7);
    return __builtin_shufflevector(ac, bd, 0, 4, 1, 5) +
           __builtin_shufflevector(ac, bd, 2, 6, 3, 7);
}

// The sums of four vectors, each as vf_sum adds it. LANES > 1.
CPU_INLINE quad vf_sum_each(const vf *v) {
    return quad_sum_each(vf_sum_quads(v[0]), vf_sum_quads(v[1]), vf_sum_quads(v[2]),
                         vf_sum_quads(v[3]));
}

// y[i] = vf_sum() of each of eight vectors.
CPU_INLINE void vf_sum_eight(const vf *v, float *y) {
#if defined(__AVX2__) && !defined(__AVX512F__)
    __m256 pairs[4]; // of v[i] and v[i + 4], half a vector each
    for (int i = 0; i < 4; ++i)
        pairs[i] = _mm256_permute2f128_ps(v[i], v[i + 4], 0x20) +
                   _mm256_permute2f128_ps(v[i], v[i + 4], 0x31);
    const __m256 ac =
        _mm256_unpacklo_ps(pairs[0], pairs[2]) + _mm256_unpackhi_ps(pairs[0], pairs[2]);
    const __m256 bd =
        _mm256_unpacklo_ps(pairs[1], pairs[3]) + _mm256_unpackhi_ps(pairs[1], pairs[3]);
    vf_store(y, _mm256_unpacklo_ps(ac, bd) + _mm256_unpackhi_ps(ac, bd));
#elif defined(__AVX512F__)
    __m512 halves[4], quads[2]; // of v[i] and v[i + 4]; of those and v[i + 1] and v[i + 5]
    for (int i = 0; i < 4; ++i)
        halves[i] =
            _mm512_shuffle_f32x4(v[i], v[i + 4], 0x44) + _mm512_shuffle_f32x4(v[i], v[i + 4], 0xEE);
    for (int i = 0; i < 2; ++i)
        quads[i] = _mm512_shuffle_f32x4(halves[2 * i], halves[2 * i + 1], 0x88) +
                   _mm512_shuffle_f32x4(halves[2 * i], halves[2 * i + 1], 0xDD);
    const __m512 pairs =
        _mm512_unpacklo_ps(quads[0], quads[1]) + _mm512_unpackhi_ps(quads[0], quads[1]);
    const __m512 sums = pairs + _mm512_permute_ps(pairs, 0x4E);
    const __m512i lanes = _mm512_setr_epi32(0, 8, 1, 9, 4, 12, 5, 13, 0, 0, 0, 0, 0, 0, 0, 0);
    _mm256_storeu_ps(y, _mm512_castps512_ps256(_mm512_permutexvar_ps(lanes, sums)));
#else
    for (int i = 0; i<8; i += LANES> 1 ? QUAD : 1) {
        if (LANES > 1)
            quad_store(y + i, vf_sum_each(v + i));
        else
            y[i] = vf_sum(v[i]);
    }
#endif
}

// y[r] = vf_sum() of each of 1 or QUAD rows.
CPU_INLINE void vf_sum_rows(const vf *v, float *y, const int rows) {
    if (rows == QUAD && LANES > 1) {
        quad_store(y, vf_sum_each(v));
        return;
    }
    for (int r = 0; r < rows; ++r)
        y[r] = vf_sum(v[r]);
}

// NaN is ignored unless it is in lane 0.
CPU_INLINE float vf_largest(vf v) {
    float lane[LANES];
    vf_store(lane, v);
    for (int i = 1; i < LANES; ++i)
        lane[0] = lane[i] > lane[0] ? lane[i] : lane[0];
    return lane[0];
}

// Sum of a row, by lanes and then across them: the order of additions depends on the width of
// vectors, so that results of different levels differ in the last bits.
CPU_INLINE float vf_sum_row(const float *x, int64_t n) {
    vf sum = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        sum += vf_load(x + i);
    // Lanes beyond the row are 0.
    return vf_sum(sum + vf_load_part(x + i, n - i));
}

#endif
