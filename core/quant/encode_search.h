// SPDX-License-Identifier: MIT
// Searches for scales that leave the least weighted squared error, sum(w * (value - x)^2).
//
// Every search evaluates QUANT_TRIALS trial scales side by side: the loops over trials are the
// outer ones and have no branches, so that a compiler vectorises them, and each trial still adds
// its elements up in their order. One evaluation is O(n * QUANT_TRIALS). All functions are
// [any-thread].
#ifndef GGML_QUANT_ENCODE_SEARCH_H
#define GGML_QUANT_ENCODE_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "ggml-common.h"
#include "ggml-impl.h"

enum { QUANT_TRIALS = 16, QUANT_MAX_GROUPS = QK_K / 16 };

// What a block's encoder works on: numbers no arithmetic below overflows with.
struct quant_elements {
    float x[QK_K]; // |x| <= 2^30
    float w[QK_K]; // 0 .. 1, not all 0
};

// Copies n <= QK_K elements; what isn't a number counts as 0. Without importance all weights are 1.
// With it they are importance + 5 % of its mean, scaled: importance is an estimate from a sample,
// and without a floor elements that the sample hardly used get any error. Importance that is
// negative or not finite counts as 0; where nothing is left all weights are 1.
void quant_load(const float *x, const float *importance, int n, struct quant_elements *out);

// n elements with their weights; n >= 1.
struct quant_group {
    int n;
    const float *x;
    const float *w;
};

// The scale as F16, and what that stands for: never 0 for d != 0, never infinite.
ggml_half quant_half_scale(float d, float *out_rounded);

// --- value = scale * q - min, 0 <= q <= top ------------------------------------------------------

struct quant_range {
    float scale; // >= 0
    float min;
};

// The best scale and minimum found for one group; the minimum may be negative.
struct quant_range quant_fit_range(const struct quant_group *g, int top);
// The nearest quants.
void quant_put_range(const struct quant_group *g, int top, struct quant_range range, uint8_t *q);

// A block of 256 elements in groups: value = d * scale * q - dmin * min.
struct quant_range_format {
    int n;         // elements per group: 16 or 32
    int top;       // of the quants
    int scale_top; // of scales and minima
};

// output of quant_encode_ranges(): the multiples per group and the quants, not packed
struct quant_range_block {
    ggml_half d;
    ggml_half dmin;
    uint8_t scales[QUANT_MAX_GROUPS];
    uint8_t mins[QUANT_MAX_GROUPS];
    uint8_t q[QK_K];
};

// Encodes 256 elements; the caller packs the result in the layout of its type. O(256 QUANT_TRIALS).
void quant_encode_ranges(const struct quant_range_format *f, const struct quant_elements *e,
                         struct quant_range_block *out);

// --- value = scale * level -----------------------------------------------------------------------

struct quant_levels;

// Weighted sums over the levels l of each trial.
struct quant_level_sums {
    float l2[QUANT_TRIALS];
    float xl[QUANT_TRIALS];
};

// A set of levels; n_trials is QUANT_TRIALS, or a lesser multiple of 4.
struct quant_level_set {
    // Sums over the levels nearest to x * inverse[k].
    void (*sum)(const struct quant_levels *levels, const struct quant_group *g,
                const float *inverse, int n_trials, struct quant_level_sums *out);
    // The errors with the levels nearest to x / scale[k].
    void (*error)(const struct quant_levels *levels, const struct quant_group *g,
                  const float *scale, int n_trials, float *out_error);
};

extern const struct quant_level_set quant_whole; // low .. high
extern const struct quant_level_set quant_iq4;   // QUANT_IQ4
extern const struct quant_level_set quant_fp4;   // QUANT_FP4

struct quant_levels {
    const struct quant_level_set *set;
    float low;
    float high;
    // The first two starts bring the largest magnitude to this level and to minus it, each further
    // two to `ratio` times it. The level of largest magnitude comes first, for the finest scale.
    float first;
    float ratio;
    int passes;
};

// The best scale found for one group, as F16 and what that stands for; 0 if all elements are.
ggml_half quant_fit_levels(const struct quant_levels *levels, const struct quant_group *g,
                           float *out_scale);
// The number of the scale with the least error.
int quant_best_scale(const struct quant_levels *levels, const struct quant_group *g,
                     const float *scale, int n_trials);

// Encodes n <= QK_K elements with whole numbers as levels: q = level - low. Returns the scale.
ggml_half quant_encode_group(const struct quant_levels *levels, const float *x, const float *w,
                             int n, uint8_t *q);

// A block of 256 elements in groups: value = d * scale * level.
struct quant_level_format {
    int n; // elements per group
    int scale_low;
    int scale_high;
    struct quant_levels levels;
};

// Returns d, and its value in *out_d.
ggml_half quant_encode_levels(const struct quant_level_format *f, const struct quant_elements *e,
                              int8_t *out_scales, float *out_d);

#endif
