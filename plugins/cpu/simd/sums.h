// SPDX-License-Identifier: MIT
// Sums over rows in double precision, in a fixed order.
#ifndef CPU_SUMS_H
#define CPU_SUMS_H

#include "base/kernel.h"

enum { CPU_SUM_LANES = 16 };

// In the order of lanes, so that the result is the same with any vector width.
static inline double cpu_sum_lanes(const double *lanes) {
    double sum = 0.0;
    for (int l = 0; l < CPU_SUM_LANES; ++l)
        sum += lanes[l];
    return sum;
}

// Sum of the x.
static inline double cpu_sum(const float *x, int64_t n) {
    double lanes[CPU_SUM_LANES] = {0.0};
    int64_t i = 0;
    for (; i + CPU_SUM_LANES <= n; i += CPU_SUM_LANES) {
        for (int l = 0; l < CPU_SUM_LANES; ++l)
            lanes[l] += (double)x[i + l];
    }
    for (int l = 0; i < n; ++i, ++l)
        lanes[l] += (double)x[i];
    return cpu_sum_lanes(lanes);
}

// Sum of the squares of x - offset.
static inline double cpu_sum_squares(const float *x, double offset, int64_t n) {
    double lanes[CPU_SUM_LANES] = {0.0};
    int64_t i = 0;
    for (; i + CPU_SUM_LANES <= n; i += CPU_SUM_LANES) {
        for (int l = 0; l < CPU_SUM_LANES; ++l) {
            const double d = (double)x[i + l] - offset;
            lanes[l] += d * d;
        }
    }
    for (int l = 0; i < n; ++i, ++l) {
        const double d = (double)x[i] - offset;
        lanes[l] += d * d;
    }
    return cpu_sum_lanes(lanes);
}

// Sum of the products of x and y.
static inline double cpu_sum_products(const float *x, const float *y, int64_t n) {
    double lanes[CPU_SUM_LANES] = {0.0};
    int64_t i = 0;
    for (; i + CPU_SUM_LANES <= n; i += CPU_SUM_LANES) {
        for (int l = 0; l < CPU_SUM_LANES; ++l)
            lanes[l] += (double)x[i + l] * (double)y[i + l];
    }
    for (int l = 0; i < n; ++i, ++l)
        lanes[l] += (double)x[i] * (double)y[i];
    return cpu_sum_lanes(lanes);
}

#endif
