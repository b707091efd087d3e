// SPDX-License-Identifier: MIT
// Scales of groups that are encoded as scale * level, with a fixed set of levels.
//
// One group: alternating minimisation from QUANT_TRIALS starts, as in encode_range.c, and at last
// the one of the scales, rounded to F16, with the least error. A block of groups, whose scales are
// whole multiples of the block's d: each takes the best of the QUANT_TRIALS multiples around its
// own optimum, then d is refitted by least squares and they choose again.
#include <float.h>

#include "quant/encode_search.h"
#include "quant/quant_block.h"

// The nearest level; neither it nor its likes may branch. low and high are those of struct
// quant_levels.
typedef float (*nearest_function)(float value, float low, float high);

// For each trial, the sums that least squares needs: w * l * l and w * x * l, with l the level
// nearest to x * inverse. Inlined into each set of levels, so that the loop is vectorised.
static inline void sum_nearest(nearest_function nearest, const struct quant_levels *levels,
                               const struct quant_group *g, const float *restrict inverse,
                               int n_trials, struct quant_level_sums *restrict out) {
    const float *restrict x = g->x;
    const float *restrict w = g->w;
    const int n = g->n;
    const float low = levels->low;
    const float high = levels->high;
    for (int k = 0; k < n_trials; ++k) {
        float sum_l2 = 0.0f;
        float sum_xl = 0.0f;
        int i = 0;
        do {
            const float l = nearest(x[i] * inverse[k], low, high);
            const float wl = w[i] * l;
            sum_l2 += wl * l;
            sum_xl += wl * x[i];
        } while (++i < n);
        out->l2[k] = sum_l2;
        out->xl[k] = sum_xl;
    }
}

// The error of each trial scale with the levels nearest to x / scale. A scale of 0 makes every
// product infinite or NaN; nearest() still returns one of the levels, and the error is that of
// zeros.
static inline void error_nearest(nearest_function nearest, const struct quant_levels *levels,
                                 const struct quant_group *g, const float *restrict scale,
                                 int n_trials, float *restrict out_error) {
    const float *restrict x = g->x;
    const float *restrict w = g->w;
    const int n = g->n;
    const float low = levels->low;
    const float high = levels->high;
    for (int k = 0; k < n_trials; ++k) {
        const float inverse = 1.0f / scale[k];
        float sum = 0.0f;
        int i = 0;
        do {
            const float diff = nearest(x[i] * inverse, low, high) * scale[k] - x[i];
            sum += w[i] * diff * diff;
        } while (++i < n);
        out_error[k] = sum;
    }
}

#define LEVEL_SET(name)                                                                            \
    static void sum_##name(const struct quant_levels *levels, const struct quant_group *g,         \
                           const float *inverse, int n_trials, struct quant_level_sums *out) {     \
        sum_nearest(nearest_##name, levels, g, inverse, n_trials, out);                            \
    }                                                                                              \
    static void error_##name(const struct quant_levels *levels, const struct quant_group *g,       \
                             const float *scale, int n_trials, float *out_error) {                 \
        error_nearest(nearest_##name, levels, g, scale, n_trials, out_error);                      \
    }                                                                                              \
    const struct quant_level_set quant_##name = {sum_##name, error_##name};

// Rounds to the nearest level of low .. high, which are whole numbers, without branches.
static inline float nearest_whole(float value, float low, float high) {
    float l = value - low + 0.5f;
    const float top = high - low + 0.5f;
    l = l > 0.0f ? l : 0.0f;
    l = l < top ? l : top;
    return (float)(int)l + low;
}

LEVEL_SET(whole)

// Adds the steps between the table's entries whose middles are reached.
static inline float nearest_iq4(float value, float low, float high) {
    (void)high;
    float l = low;
#pragma GCC unroll 16
    for (int i = 1; i < 16; ++i) {
        const float middle = 0.5f * (float)(QUANT_IQ4[i - 1] + QUANT_IQ4[i]);
        l += value >= middle ? (float)(QUANT_IQ4[i] - QUANT_IQ4[i - 1]) : 0.0f;
    }
    return l;
}

LEVEL_SET(iq4)

// The doubled values of QUANT_FP4: thresholds lie halfway between neighbours.
static inline float nearest_fp4(float value, float low, float high) {
    const float magnitude = fabsf(value);
    (void)low;
    (void)high;
    float l = magnitude > 0.5f ? 1.0f : 0.0f;
    l = magnitude > 1.5f ? 2.0f : l;
    l = magnitude > 2.5f ? 3.0f : l;
    l = magnitude > 3.5f ? 4.0f : l;
    l = magnitude > 5.0f ? 6.0f : l;
    l = magnitude > 7.0f ? 8.0f : l;
    l = magnitude > 10.0f ? 12.0f : l;
    return value < 0.0f ? -l : l;
}

LEVEL_SET(fp4)

// Scales fitted to what QUANT_TRIALS starts lead to in `passes` passes; returns the best one's
// number.
static int fit_trials(const struct quant_levels *levels, const struct quant_group *g, int passes,
                      float *scale) {
    const float max = quant_signed_max(g->x, g->n);
    float inverse[QUANT_TRIALS];
    float level = levels->first;
    for (int k = 0; k < QUANT_TRIALS; k += 2) {
        inverse[k] = quant_inverse(max) * level;
        inverse[k + 1] = -inverse[k];
        level *= levels->ratio;
    }
    const float rounding = 1.0f + 4.0f * FLT_EPSILON;
    int best = 0;
    for (int pass = 0; pass < passes; ++pass) {
        struct quant_level_sums sums;
        float best_gain = 0.0f;
        levels->set->sum(levels, g, inverse, QUANT_TRIALS, &sums);
        for (int k = 0; k < QUANT_TRIALS; ++k) {
            scale[k] = sums.xl[k] / MAX(sums.l2[k], FLT_MIN);
            inverse[k] = quant_inverse(scale[k]);
            if (scale[k] * sums.xl[k] > best_gain * rounding) {
                best_gain = scale[k] * sums.xl[k];
                best = k;
            }
        }
    }
    return best;
}

// The index of the least error, the first of equals.
static int least(const float *error, int n) {
    int best = 0;
    for (int k = 1; k < n; ++k)
        best = error[k] < error[best] ? k : best;
    return best;
}

int quant_best_scale(const struct quant_levels *levels, const struct quant_group *g,
                     const float *scale, int n_trials) {
    float error[QUANT_TRIALS];
    levels->set->error(levels, g, scale, n_trials, error);
    return least(error, n_trials);
}

// All trials are compared by the error with the scale as stored: rounding to F16 may change which
// is best.
ggml_half quant_fit_levels(const struct quant_levels *levels, const struct quant_group *g,
                           float *out_scale) {
    float scale[QUANT_TRIALS];
    ggml_half half[QUANT_TRIALS];
    fit_trials(levels, g, levels->passes, scale);
    for (int k = 0; k < QUANT_TRIALS; ++k)
        half[k] = quant_half_scale(scale[k], &scale[k]);
    const int best = quant_best_scale(levels, g, scale, QUANT_TRIALS);
    *out_scale = scale[best];
    return half[best];
}

// The encoder of types with one scale per block.
ggml_half quant_encode_group(const struct quant_levels *levels, const float *x, const float *w,
                             int n, uint8_t *q) {
    struct quant_elements e;
    const struct quant_group g = {n, e.x, e.w};
    float d;
    quant_load(x, w, n, &e);
    const ggml_half half = quant_fit_levels(levels, &g, &d);
    const float inverse = quant_inverse(d);
    const int low = (int)levels->low;
    const int high = (int)levels->high;
    for (int i = 0; i < n; ++i)
        q[i] = (uint8_t)(quant_nearest(e.x[i] * inverse, low, high) - low);
    return half;
}

// The multiple of d, among those next to the best one, that leaves the least error.
static int choose_multiple(const struct quant_level_format *f, const struct quant_group *g,
                           float own, float d, float *out_error) {
    const int first =
        quant_nearest(own * quant_inverse(d), f->scale_low, f->scale_high) - QUANT_TRIALS / 2;
    float scale[QUANT_TRIALS];
    float error[QUANT_TRIALS];
    for (int k = 0; k < QUANT_TRIALS; ++k)
        scale[k] = d * (float)MIN(MAX(first + k, f->scale_low), f->scale_high);
    f->levels.set->error(&f->levels, g, scale, QUANT_TRIALS, error);
    const int best = least(error, QUANT_TRIALS);
    *out_error = error[best];
    return MIN(MAX(first + best, f->scale_low), f->scale_high);
}

// Group i of a block.
static struct quant_group group_of(const struct quant_level_format *f,
                                   const struct quant_elements *e, int i) {
    return (struct quant_group){f->n, e->x + f->n * i, e->w + f->n * i};
}

// Chooses the groups' multiples of d; returns the error.
static float choose_groups(const struct quant_level_format *f, const struct quant_elements *e,
                           const float *own, float d, int8_t *scales) {
    float sum = 0.0f;
    for (int i = 0; i < QK_K / f->n; ++i) {
        const struct quant_group g = group_of(f, e, i);
        float error;
        scales[i] = (int8_t)choose_multiple(f, &g, own[i], d, &error);
        sum += error;
    }
    return sum;
}

// Least-squares d for the multiples and the levels that go with them.
static float refit(const struct quant_level_format *f, const struct quant_elements *e, float d,
                   const int8_t *scales) {
    float aa = 0.0f;
    float ax = 0.0f;
    for (int i = 0; i < QK_K / f->n; ++i) {
        const struct quant_group g = group_of(f, e, i);
        const float scale = (float)scales[i];
        const float inverse[4] = {quant_inverse(d * scale)};
        struct quant_level_sums sums;
        f->levels.set->sum(&f->levels, &g, inverse, 4, &sums);
        aa += scale * scale * sums.l2[0];
        ax += scale * sums.xl[0];
    }
    return aa > 0.0f ? ax / aa : 0.0f;
}

// The least d of which all groups' scales are multiples within the limits, but for rounding. The
// largest scale takes the lower limit, of larger magnitude.
static float first_d(const struct quant_level_format *f, const float *own) {
    const float largest = quant_signed_max(own, QK_K / f->n);
    float d = fabsf(largest / (float)f->scale_low);
    for (int i = 0; i < QK_K / f->n; ++i) {
        if ((own[i] < 0.0f) != (largest < 0.0f)) d = MAX(d, fabsf(own[i] / (float)f->scale_high));
    }
    return largest > 0.0f ? -d : d;
}

// own[i] is each group's optimum by itself. The loop of choose_groups() and refit() runs twice, and
// the second result is only taken if its error is less.
ggml_half quant_encode_levels(const struct quant_level_format *f, const struct quant_elements *e,
                              int8_t *out_scales, float *out_d) {
    float own[QUANT_MAX_GROUPS];
    for (int i = 0; i < QK_K / f->n; ++i) {
        const struct quant_group g = group_of(f, e, i);
        float scale[QUANT_TRIALS];
        own[i] = scale[fit_trials(&f->levels, &g, f->levels.passes, scale)];
    }
    const ggml_half half = quant_half_scale(first_d(f, own), out_d);
    const float error = choose_groups(f, e, own, *out_d, out_scales);
    int8_t next_scales[QUANT_MAX_GROUPS];
    float next_d;
    const ggml_half next = quant_half_scale(refit(f, e, *out_d, out_scales), &next_d);
    if (!(choose_groups(f, e, own, next_d, next_scales) < error)) return half;
    *out_d = next_d;
    memcpy(out_scales, next_scales, sizeof(next_scales));
    return next;
}
