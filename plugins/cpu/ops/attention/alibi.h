// SPDX-License-Identifier: MIT
// Slopes of the mask by head (ALiBi).
#ifndef CPU_ALIBI_H
#define CPU_ALIBI_H

#include <math.h>
#include <stdint.h>

// ALiBi (Press et al., 2022): the slope of head h is 2^(-max_bias (h + 1) / n). For a number of
// heads that is no power of two, the further heads take the odd steps of the next power.
static inline float cpu_alibi_slope(float max_bias, int64_t n_heads, int64_t head) {
    if (!(max_bias > 0.0f)) return 1.0f;
    int64_t below = 1; // largest power of two within n_heads
    while (below * 2 <= n_heads)
        below *= 2;
    const double exponent =
        head < below ? -(double)max_bias / (double)below * (double)(head + 1)
                     : -(double)max_bias / (2.0 * (double)below) * (double)(2 * (head - below) + 1);
    return (float)exp2(exponent);
}

#endif
