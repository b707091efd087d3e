// SPDX-License-Identifier: MIT
// Elements of a tensor as doubles, and the normalised mean square error between results.
#include "oracle.h"

#include <math.h>

static int64_t block_of(enum ggml_type type) {
    return ggml_blck_size(type);
}

double oracle_value(const struct ggml_tensor *t, int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
    const int64_t block = block_of(t->type);
    const size_t offset = (size_t)(i0 / block) * t->nb[0] + (size_t)i1 * t->nb[1] +
                          (size_t)i2 * t->nb[2] + (size_t)i3 * t->nb[3];
    return oracle_element(t->type, (const char *)t->data + offset, i0 % block);
}

void oracle_read(const struct ggml_tensor *t, double *out) {
    for (int64_t i3 = 0; i3 < t->ne[3]; ++i3) {
        for (int64_t i2 = 0; i2 < t->ne[2]; ++i2) {
            for (int64_t i1 = 0; i1 < t->ne[1]; ++i1) {
                for (int64_t i0 = 0; i0 < t->ne[0]; ++i0)
                    *out++ = oracle_value(t, i0, i1, i2, i3);
            }
        }
    }
}

double oracle_nmse(const double *actual, const double *expected, int64_t n) {
    double error = 0;
    double power = 0;
    for (int64_t i = 0; i < n; ++i) {
        if (!isfinite(expected[i]) || !isfinite(actual[i])) {
            const bool same = isnan(expected[i]) ? isnan(actual[i]) : actual[i] == expected[i];
            if (!same) return INFINITY;
            continue;
        }
        error += (actual[i] - expected[i]) * (actual[i] - expected[i]);
        power += expected[i] * expected[i];
    }
    return error == 0 ? 0 : error / power;
}
