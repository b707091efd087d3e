// SPDX-License-Identifier: MIT
// Searches for the scale of a group of elements by weighted least squares over trial scales.
#ifndef GGML_QUANT_ENCODE_SEARCH_H
#define GGML_QUANT_ENCODE_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

// value = scale * q + min with 0 <= q <= n_max. Trial k uses (first + 0.1 * k + n_max) / range.
struct quant_range_search {
    int n; // elements, at most 32
    int n_max;
    float first;
    int last_trial;
    bool absolute_error; // else squared
    bool any_min;        // else min <= 0
};

// value = d * q with low <= q <= high. Trial k brings the largest element to first + step * k, or
// to minus that.
struct quant_level_search {
    int n;
    int low;
    int high;
    float first;
    float step;
    int n_trials;
};

// Fills q; answers the scale and the negated minimum. [any-thread]
float quant_search_range(const struct quant_range_search *s, const float *x, const float *w,
                         uint8_t *q, float *out_min);
// Fills q; answers d, 0 if every weighted element is 0. [any-thread]
float quant_search_levels(const struct quant_level_search *s, const float *x, const float *w,
                          int8_t *q);

#endif
