// SPDX-License-Identifier: MIT
// Groups of a column rounded to whole numbers of a byte.
#ifndef CPU_ROUND_GROUP_H
#define CPU_ROUND_GROUP_H

#include <math.h>

#include "ops/mul_mat/rounded/rounded.h"
#include "simd/bytes.h"

// By comparing bit patterns without the sign, which order like the magnitudes of the numbers: no
// branch for NaN, which ends up above infinity.
static inline float largest_magnitude(const float *x) {
    int32_t largest = 0; // NaN is above infinity
    for (int j = 0; j < ROUNDED_GROUP; ++j) {
        int32_t bits;
        memcpy(&bits, x + j, sizeof(bits));
        largest = MAX(largest, bits & INT32_MAX);
    }
    float value;
    memcpy(&value, &largest, sizeof(value));
    return value;
}

// What the quick way can't: infinities and NaN, which make the group NaN, and magnitudes whose
// reciprocal is no float.
static inline float round_unusual(const float *x, float largest, int8_t *numbers) {
    const bool finite = isfinite(largest) != 0;
    for (int j = 0; j < ROUNDED_GROUP; ++j) {
        const bool any = finite && largest > 0;
        numbers[j] = (int8_t)(any ? lrint((double)x[j] / (double)largest * 127) : 0);
    }
    return finite ? (float)((double)largest / 127) : NAN;
}

// Numbers of -127 to 127, and what they are to be scaled by. A product is rounded before anything
// is added, at every level.
static inline float round_group(const float *x, int8_t *numbers) {
    enum { TO_WHOLE = 0x4B400000 }; // bits of 1.5 * 2^23: the last one stands for 1
    const float largest = largest_magnitude(x);
    if (!(largest >= 0x1p-100f && largest <= 0x1p127f)) return round_unusual(x, largest, numbers);
    const float inverse = 127 / largest;
    float scaled[ROUNDED_GROUP];
    for (int j = 0; j < ROUNDED_GROUP; ++j)
        scaled[j] = x[j] * inverse;
    CPU_IN_MEMORY(scaled);
    for (int j = 0; j < ROUNDED_GROUP; ++j) {
        const float shifted = scaled[j] + 0x1.8p23f;
        int32_t bits;
        memcpy(&bits, &shifted, sizeof(bits));
        numbers[j] = (int8_t)(bits - TO_WHOLE);
    }
    return largest / 127;
}

#endif
