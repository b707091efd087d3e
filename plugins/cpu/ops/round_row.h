// SPDX-License-Identifier: MIT
// Floats rounded to whole numbers with one scale.
#ifndef CPU_ROUND_ROW_H
#define CPU_ROUND_ROW_H

#include <math.h>

#include "simd/bytes.h"

// Elements are rounded by so many at a time, and a row is a multiple of them.
enum { ROUND_STEP = 32 };

// By comparing bit patterns without the sign, which order like the magnitudes of the numbers: no
// branch for NaN, which ends up above infinity.
CPU_INLINE float largest_magnitude(const float *x, int64_t n) {
    int32_t largest = 0;
    for (int64_t i = 0; i < n; ++i)
        largest = MAX(largest, (int32_t)(cpu_float_bits(x[i]) & INT32_MAX));
    return cpu_bits_float((uint32_t)largest);
}

// Where rounded numbers go: int8_t or int16_t, a constant where this is inlined.
CPU_INLINE void store_rounded(void *y, int64_t i, int32_t number, const size_t size) {
    if (size == sizeof(int8_t))
        ((int8_t *)y)[i] = (int8_t)number;
    else
        ((int16_t *)y)[i] = (int16_t)number;
}

// What the quick way can't: infinities and NaN, which make the row NaN, and magnitudes whose
// reciprocal is no float.
CPU_INLINE float round_unusual(const float *x, int64_t n, float largest, void *y,
                               const size_t size) {
    const int limit = size == sizeof(int8_t) ? INT8_MAX : INT16_MAX;
    const bool finite = isfinite(largest) != 0, any = finite && largest > 0;
    for (int64_t i = 0; i < n; ++i) {
        const long number = any ? lrint((double)x[i] / (double)largest * limit) : 0;
        store_rounded(y, i, (int32_t)number, size);
    }
    return finite ? (float)((double)largest / limit) : NAN;
}

// Whole numbers of `size` bytes, of both signs up to the largest one, and what they are to be
// scaled by. A product is rounded before anything is added, at every level.
CPU_INLINE float round_row(const float *x, int64_t n, void *y, const size_t size) {
    enum { TO_WHOLE = 0x4B400000 }; // bits of 1.5 * 2^23: the last one stands for 1
    const float limit = size == sizeof(int8_t) ? INT8_MAX : INT16_MAX;
    const float largest = largest_magnitude(x, n);
    if (!(largest >= 0x1p-100f && largest <= 0x1p127f))
        return round_unusual(x, n, largest, y, size);
    const float inverse = limit / largest;
    for (int64_t i = 0; i < n; i += ROUND_STEP) {
        float scaled[ROUND_STEP];
        for (int j = 0; j < ROUND_STEP; ++j)
            scaled[j] = x[i + j] * inverse;
        CPU_IN_MEMORY(scaled);
        for (int j = 0; j < ROUND_STEP; ++j) {
            const int32_t bits = (int32_t)cpu_float_bits(scaled[j] + 0x1.8p23f);
            store_rounded(y, i + j, bits - TO_WHOLE, size);
        }
    }
    return largest / limit;
}

#endif
