// SPDX-License-Identifier: MIT
#include "quant/encode_search.h"

#include "quant/quant_block.h"

static float range_error(const struct quant_range_search *s, const float *x, const float *w,
                         const uint8_t *q, float scale, float min) {
    float sum = 0.0f;
    for (int i = 0; i < s->n; ++i) {
        const float diff = scale * (float)q[i] + min - x[i];
        sum += w[i] * (s->absolute_error ? fabsf(diff) : diff * diff);
    }
    return sum;
}

// Least-squares scale and minimum for given quants; false if they do not determine one.
static bool fit_range(const struct quant_range_search *s, const float *x, const float *w,
                      const uint8_t *q, float *out_scale, float *out_min) {
    float sum_w = 0.0f, sum_x = 0.0f, sum_l = 0.0f, sum_l2 = 0.0f, sum_xl = 0.0f;
    for (int i = 0; i < s->n; ++i) {
        const float l = (float)q[i];
        sum_w += w[i];
        sum_x += w[i] * x[i];
        sum_l += w[i] * l;
        sum_l2 += w[i] * l * l;
        sum_xl += w[i] * l * x[i];
    }
    const float det = sum_w * sum_l2 - sum_l * sum_l;
    if (!(det > 0.0f)) return false;
    *out_scale = (sum_w * sum_xl - sum_x * sum_l) / det;
    *out_min = (sum_l2 * sum_x - sum_l * sum_xl) / det;
    if (*out_min > 0.0f && !s->any_min) {
        *out_min = 0.0f;
        *out_scale = sum_xl / sum_l2;
    }
    return true;
}

static void quantise_range(const struct quant_range_search *s, const float *x, float iscale,
                           float min, uint8_t *q) {
    for (int i = 0; i < s->n; ++i)
        q[i] = (uint8_t)quant_nearest(iscale * (x[i] - min), 0, s->n_max);
}

float quant_search_range(const struct quant_range_search *s, const float *x, const float *w,
                         uint8_t *q, float *out_min) {
    float min = x[0];
    float max = x[0];
    for (int i = 1; i < s->n; ++i) {
        if (x[i] < min) min = x[i];
        if (x[i] > max) max = x[i];
    }
    if (min > 0.0f && !s->any_min) min = 0.0f;
    *out_min = -min;
    if (!(max > min)) {
        memset(q, 0, (size_t)s->n);
        return 0.0f;
    }
    const float range = max - min;
    const float iscale = (float)s->n_max / range;
    float scale = 1.0f / iscale;
    quantise_range(s, x, iscale, min, q);
    float best = range_error(s, x, w, q, scale, min);
    const float low = min;
    for (int k = 0; k <= s->last_trial; ++k) {
        uint8_t trial[32];
        float trial_scale;
        float trial_min;
        quantise_range(s, x, (s->first + 0.1f * (float)k + (float)s->n_max) / range, low, trial);
        if (!fit_range(s, x, w, trial, &trial_scale, &trial_min)) continue;
        const float error = range_error(s, x, w, trial, trial_scale, trial_min);
        if (error < best) {
            best = error;
            scale = trial_scale;
            min = trial_min;
            memcpy(q, trial, (size_t)s->n);
        }
    }
    *out_min = -min;
    return scale;
}

float quant_search_levels(const struct quant_level_search *s, const float *x, const float *w,
                          int8_t *q) {
    const float max = quant_signed_max(x, s->n);
    float best = 0.0f;
    float best_id = 0.0f;
    float d = 0.0f;
    for (int k = 0; k < 2 * s->n_trials; ++k) {
        const float factor = s->first + s->step * (float)(k / 2);
        const float id = (k % 2 ? factor : -factor) * quant_inverse(max);
        float xl = 0.0f;
        float l2 = 0.0f;
        for (int i = 0; i < s->n; ++i) {
            const float l = (float)quant_nearest(id * x[i], s->low, s->high);
            xl += w[i] * x[i] * l;
            l2 += w[i] * l * l;
        }
        if (l2 > 0.0f && xl * xl > best * l2) {
            d = xl / l2;
            best = d * xl;
            best_id = id;
        }
    }
    for (int i = 0; i < s->n; ++i)
        q[i] = (int8_t)quant_nearest(best_id * x[i], s->low, s->high);
    return d;
}
