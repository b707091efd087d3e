// SPDX-License-Identifier: MIT
// Scales and minima of groups that are encoded as scale * q - min with whole q >= 0.
//
// One group: alternating minimisation (Lloyd's algorithm) from QUANT_TRIALS starts. Given the
// quants, the best scale and minimum follow from linear least squares; given those, the nearest
// quants are best; neither step raises the error. It ends in a local minimum, hence the starts,
// which clip more or less off either end of the range.
//
// Blocks of groups: scales and minima must be whole multiples of the block's d and dmin. Each group
// takes the best of QUANT_TRIALS pairs of multiples around its own optimum, by exact error; d and
// dmin are then refitted by least squares to what was chosen, and the groups choose again; the
// better one of both stays. Rounding scale and minimum each by itself, which is simpler, leaves 3 %
// more error in Q4_K and 9 % more in Q5_K, with importance 14 and 43 %.
#include <float.h>

#include "quant/encode_search.h"
#include "quant/quant_block.h"

enum { T = QUANT_TRIALS, PASSES = 2 };

struct trials { // T trial ranges side by side, as arrays so that loops over trials are vectorised
    float scale[T];
    float min[T];
};

// Weighted sums over a group's elements.
struct moments {
    float w;
    float x;
};

// The same over the quants l of each trial.
struct trial_sums {
    float l[T];
    float l2[T];
    float xl[T];
};

// Constant for all trials of a group, so computed once.
static struct moments sum_moments(const struct quant_group *g) {
    struct moments sum = {0};
    for (int i = 0; i < g->n; ++i) {
        sum.w += g->w[i];
        sum.x += g->w[i] * g->x[i];
    }
    return sum;
}

// q + 0.5 truncates to the nearest quant.
static inline float clamp_quant(float q, float top) {
    q = q > 0.0f ? q : 0.0f;
    q = q < top ? q : top;
    return (float)(int)q;
}

// The sums that least squares needs for each trial: O(n T).
static void sum_trials(const struct quant_group *g, float top, const struct trials *restrict t,
                       struct trial_sums *restrict out) {
    const float *restrict x = g->x;
    const float *restrict w = g->w;
    const int n = g->n;
    for (int k = 0; k < T; ++k) {
        const float inverse = 1.0f / t->scale[k];
        const float shift = t->min[k] * inverse + 0.5f;
        float sum_l = 0.0f;
        float sum_l2 = 0.0f;
        float sum_xl = 0.0f;
        int i = 0;
        do {
            const float l = clamp_quant(x[i] * inverse + shift, top);
            const float wl = w[i] * l;
            sum_l += wl;
            sum_l2 += wl * l;
            sum_xl += wl * x[i];
        } while (++i < n);
        out->l[k] = sum_l;
        out->l2[k] = sum_l2;
        out->xl[k] = sum_xl;
    }
}

// The exact weighted error of each trial: O(n T).
static void sum_errors(const struct quant_group *g, float top, const struct trials *restrict t,
                       float *restrict out) {
    const float *restrict x = g->x;
    const float *restrict w = g->w;
    const int n = g->n;
    for (int k = 0; k < T; ++k) {
        const float scale = t->scale[k];
        const float min = t->min[k];
        const float inverse = 1.0f / scale;
        const float shift = min * inverse + 0.5f;
        float sum = 0.0f;
        int i = 0;
        do {
            const float diff = clamp_quant(x[i] * inverse + shift, top) * scale - min - x[i];
            sum += w[i] * diff * diff;
        } while (++i < n);
        out[k] = sum;
    }
}

// Replaces each trial by the least-squares fit to its quants; *out_gain is by how much that lowers
// the error of encoding everything as 0.
static void fit_trials(const struct moments *m, const struct trial_sums *restrict s, float low_min,
                       struct trials *restrict t, float *restrict out_gain) {
    const float w = m->w;
    const float x = m->x;
    const float inverse_w = 1.0f / w;
    for (int k = 0; k < T; ++k) {
        const float product = w * s->l2[k];
        const float det = product - s->l[k] * s->l[k];
        // Where all quants are equal the system is singular: the scale becomes 0.
        const float divisor = det > 1e-5f * product ? det : FLT_MAX;
        const float free_scale = (w * s->xl[k] - x * s->l[k]) / divisor;
        const float free_min = (free_scale * s->l[k] - x) * inverse_w;
        const float allowed = free_scale > 0.0f ? free_min : -INFINITY;
        // A minimum below the limit is replaced by 0, and the scale fitted again with that.
        const float min = allowed < low_min ? 0.0f : free_min;
        const float scale = (s->xl[k] + min * s->l[k]) / (s->l2[k] > FLT_MIN ? s->l2[k] : FLT_MIN);
        out_gain[k] = scale * s->xl[k] - min * x;
        t->scale[k] = scale > FLT_MIN ? scale : FLT_MIN;
        t->min[k] = min;
    }
}

// Clips -0.7, 0, 0.7 or 1.4 steps between quants off either end: full precision in the middle is
// worth more than the ends where elements are many or unimportant.
static void start_trials(float low, float high, float top, struct trials *t) {
    const float step = 0.7f * (high - low) / top;
    for (int k = 0; k < T; ++k) {
        const float from = low + (float)(k % 4 - 1) * step;
        const float to = high - (float)(k / 4 - 1) * step;
        t->scale[k] = MAX(to - from, 0.1f * (high - low)) / top;
        t->min[k] = -from;
    }
}

// Runs PASSES rounds of alternating minimisation for one group. Without any_min the minimum is at
// most 0 in value (-min <= 0): K-quants store it without a sign.
static struct quant_range fit_range(const struct quant_group *g, const struct moments *m, int top,
                                    bool any_min) {
    float low = g->x[0];
    float high = g->x[0];
    for (int i = 1; i < g->n; ++i) {
        low = MIN(low, g->x[i]);
        high = MAX(high, g->x[i]);
    }
    if (!any_min) low = MIN(low, 0.0f);
    struct quant_range best = {0.0f, -low};
    if (!(high > low) || !(m->w > 0.0f)) return best;
    struct trials t;
    struct trial_sums sums;
    float gain[T];
    float best_gain = -FLT_MAX;
    start_trials(low, high, (float)top, &t);
    for (int pass = 0; pass < PASSES; ++pass) {
        sum_trials(g, (float)top, &t, &sums);
        fit_trials(m, &sums, any_min ? -FLT_MAX : 0.0f, &t, gain);
        for (int k = 0; k < T; ++k) {
            if (!(gain[k] > best_gain)) continue;
            best_gain = gain[k];
            best = (struct quant_range){t.scale[k], t.min[k]};
        }
    }
    return best;
}

// For types that store the minimum of each block as F16, with a sign.
struct quant_range quant_fit_range(const struct quant_group *g, int top) {
    const struct moments m = sum_moments(g);
    return fit_range(g, &m, top, true);
}

// quant = (x + min) / scale, rounded and clamped.
void quant_put_range(const struct quant_group *g, int top, struct quant_range range, uint8_t *q) {
    const float inverse = range.scale > 0.0f ? 1.0f / range.scale : 0.0f;
    const float shift = range.min * inverse + 0.5f;
    for (int i = 0; i < g->n; ++i)
        q[i] = (uint8_t)clamp_quant(g->x[i] * inverse + shift, (float)top);
}

// A group of a block with its own optimum.
struct fitted_group {
    struct quant_group g;
    struct moments m;
    struct quant_range own;
    float mean_q; // with that optimum
};

// Optimum of group i by itself; mean_q tells how the best minimum moves when the scale is rounded.
static void fit_group(const struct quant_range_format *f, const struct quant_elements *e, int i,
                      struct fitted_group *out) {
    out->g = (struct quant_group){f->n, e->x + f->n * i, e->w + f->n * i};
    out->m = sum_moments(&out->g);
    out->own = fit_range(&out->g, &out->m, f->top, false);
    const float mean = out->m.x / MAX(out->m.w, FLT_MIN);
    out->mean_q = out->own.scale > 0.0f ? (mean + out->own.min) / out->own.scale : 0.0f;
}

static int clamp_int(int value, int high) {
    return value < 0 ? 0 : MIN(value, high);
}

// Sets the group's multiples of d and dmin; returns the error. Of each of the four nearest scales
// the four minima are tried that are nearest to the best one with that scale.
static float choose_multiples(const struct quant_range_format *f, const struct fitted_group *group,
                              float d, float dmin, uint8_t *out_scale, uint8_t *out_min) {
    const int top = f->scale_top;
    const float own_scale = group->own.scale;
    const int first_scale = quant_truncate(own_scale * quant_inverse(d), 0, top) - 1;
    struct trials t;
    int scales[T];
    int mins[T];
    for (int k = 0; k < T; ++k) {
        scales[k] = clamp_int(first_scale + k / 4, top);
        t.scale[k] = MAX(d * (float)scales[k], FLT_MIN);
        const float min = group->own.min + (t.scale[k] - own_scale) * group->mean_q;
        const int first_min = quant_truncate(min * quant_inverse(dmin), 0, top) - 1;
        mins[k] = clamp_int(first_min + k % 4, top);
        t.min[k] = dmin * (float)mins[k];
    }
    float error[T];
    sum_errors(&group->g, (float)f->top, &t, error);
    int best = 0;
    for (int k = 1; k < T; ++k)
        best = error[k] < error[best] ? k : best;
    *out_scale = (uint8_t)scales[best];
    *out_min = (uint8_t)mins[best];
    return error[best];
}

// Chooses multiples and quants for the block's d and dmin; returns the error.
static float choose_groups(const struct quant_range_format *f, const struct fitted_group *groups,
                           float d, float dmin, struct quant_range_block *b) {
    float sum = 0.0f;
    for (int i = 0; i < QK_K / f->n; ++i) {
        sum += choose_multiples(f, &groups[i], d, dmin, &b->scales[i], &b->mins[i]);
        const struct quant_range range = {d * b->scales[i], dmin * b->mins[i]};
        quant_put_range(&groups[i].g, f->top, range, b->q + f->n * i);
    }
    return sum;
}

// Least-squares d and dmin for the block's multiples and quants.
static void refit(const struct quant_range_format *f, const struct fitted_group *groups,
                  const struct quant_range_block *b, float *out_d, float *out_dmin) {
    double aa = 0.0, ab = 0.0, bb = 0.0, ax = 0.0, bx = 0.0;
    for (int i = 0; i < QK_K / f->n; ++i) {
        const struct quant_group *g = &groups[i].g;
        float sum_l = 0.0f, sum_l2 = 0.0f, sum_xl = 0.0f;
        for (int j = 0; j < f->n; ++j) {
            const float l = (float)b->q[f->n * i + j];
            sum_l += g->w[j] * l;
            sum_l2 += g->w[j] * l * l;
            sum_xl += g->w[j] * l * g->x[j];
        }
        const double scale = b->scales[i];
        const double min = -(double)b->mins[i];
        aa += scale * scale * sum_l2;
        ab += scale * min * sum_l;
        bb += min * min * groups[i].m.w;
        ax += scale * sum_xl;
        bx += min * groups[i].m.x;
    }
    const double det = aa * bb - ab * ab;
    const bool is_regular = det > 1e-9 * aa * bb;
    const double d = is_regular ? (ax * bb - bx * ab) / det : aa > 0.0 ? ax / aa : 0.0;
    const double dmin = is_regular ? (bx * aa - ax * ab) / det : 0.0;
    *out_d = d > 0.0 ? (float)d : 0.0f;
    *out_dmin = dmin > 0.0 ? (float)dmin : 0.0f;
}

// The first d and dmin make the largest scale and minimum the largest multiples. Two rounds; the
// better one stays.
void quant_encode_ranges(const struct quant_range_format *f, const struct quant_elements *e,
                         struct quant_range_block *out) {
    struct fitted_group groups[QUANT_MAX_GROUPS];
    struct quant_range largest = {0.0f, 0.0f};
    for (int i = 0; i < QK_K / f->n; ++i) {
        fit_group(f, e, i, &groups[i]);
        largest.scale = MAX(largest.scale, groups[i].own.scale);
        largest.min = MAX(largest.min, groups[i].own.min);
    }
    float d;
    float dmin;
    out->d = quant_half_scale(largest.scale / (float)f->scale_top, &d);
    out->dmin = quant_half_scale(largest.min / (float)f->scale_top, &dmin);
    const float error = choose_groups(f, groups, d, dmin, out);
    struct quant_range_block next;
    refit(f, groups, out, &d, &dmin);
    next.d = quant_half_scale(d, &d);
    next.dmin = quant_half_scale(dmin, &dmin);
    if (choose_groups(f, groups, d, dmin, &next) < error) *out = next;
}
