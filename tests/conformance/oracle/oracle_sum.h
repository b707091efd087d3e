// SPDX-License-Identifier: MIT
// Results that are sums of terms: their values, and what their terms amount to without signs, which
// is what a rounding error is relative to.
#ifndef ORACLE_SUM_H
#define ORACLE_SUM_H

#include <math.h>

#include "oracle.h"

struct oracle_sum {
    double value;
    double size;
};

static inline void oracle_add(struct oracle_sum *sum, double term) {
    sum->value += term;
    sum->size += fabs(term);
}

// The element of the node at these indices; the sum is 0 before.
typedef void (*oracle_sum_fn)(const struct ggml_tensor *node, const int64_t i[4],
                              struct oracle_sum *sum);

// Every element of the node; values or sizes may be NULL.
static inline void oracle_sums(const struct ggml_tensor *node, oracle_sum_fn at, double *values,
                               double *sizes) {
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        struct oracle_sum sum = {0, 0};
        int64_t i[4];
        ggml_unravel_index(node, n, &i[0], &i[1], &i[2], &i[3]);
        at(node, i, &sum);
        if (values) values[n] = sum.value;
        if (sizes) sizes[n] = sum.size;
    }
}

// Defines oracle_<name> and magnitude_<name> from <name>_at.
#define ORACLE_SUM(name)                                                                           \
    static void oracle_##name(const struct ggml_tensor *node, double *out) {                       \
        oracle_sums(node, name##_at, out, NULL);                                                   \
    }                                                                                              \
    static void magnitude_##name(const struct ggml_tensor *node, double *out) {                    \
        oracle_sums(node, name##_at, NULL, out);                                                   \
    }

// Largest mean square error when each element may be off by so many rounding units of its size.
static inline double oracle_units(double n) {
    return n * n * 0x1p-48;
}

#endif
