// SPDX-License-Identifier: MIT
// rope, soft_max and flash_attn_ext in double precision.
#include <math.h>
#include <string.h>

#include "oracle.h"

static double float_param(const struct ggml_tensor *node, int slot) {
    float value;
    memcpy(&value, &node->op_params[slot], sizeof(value));
    return value;
}

// --- rope ----------------------------------------------------------------------------------------

// Which of (t, h, w, e) turns the pair, and which power of the base its frequency has.
static int select_position(const struct ggml_tensor *node, int64_t pair, int64_t *exponent) {
    const int32_t *sections = node->op_params + 11;
    const int mode = node->op_params[2];
    *exponent = pair;
    if (mode < GGML_ROPE_TYPE_MROPE) return 0;
    const int64_t sector = pair % (sections[0] + sections[1] + sections[2] + sections[3]);
    if (mode == GGML_ROPE_TYPE_IMROPE) {
        if (sector % 3 == 1 && sector < 3 * sections[1]) return 1;
        if (sector % 3 == 2 && sector < 3 * sections[2]) return 2;
        if (sector % 3 == 0 && sector < 3 * sections[0]) return 0;
        return 3;
    }
    int64_t start = 0;
    int which = 0;
    while (which < 3 && sector >= start + sections[which])
        start += sections[which++];
    if (mode == GGML_ROPE_TYPE_VISION) *exponent = sector - start;
    return which;
}

static double yarn_bound(const struct ggml_tensor *node, double beta) {
    return node->op_params[1] * log(node->op_params[4] / (beta * 2 * acos(-1.0))) /
           (2 * log(float_param(node, 5)));
}

// Angle and magnitude of a pair of the token.
static void turn_of(const struct ggml_tensor *node, int64_t pair, int64_t token, double *angle,
                    double *magnitude) {
    int64_t exponent;
    const int which = select_position(node, pair, &exponent);
    const int n_dims = node->op_params[1];
    const double position = oracle_value(node->src[1], which * node->ne[2] + token, 0, 0, 0);
    double theta = position * pow(float_param(node, 5), -2.0 * (double)exponent / n_dims);
    if (node->src[2]) theta /= oracle_value(node->src[2], pair, 0, 0, 0);
    const double scale = float_param(node, 6);
    const double ext = float_param(node, 7);
    *angle = scale * theta;
    *magnitude = float_param(node, 8);
    if (ext == 0) return;
    const double low = fmax(0, floor(yarn_bound(node, float_param(node, 9))));
    const double high = fmin(n_dims - 1, ceil(yarn_bound(node, float_param(node, 10))));
    const double ramp = 1 - fmin(1, fmax(0, ((double)pair - low) / fmax(0.001, high - low)));
    *angle = scale * theta * (1 - ramp * ext) + theta * ramp * ext;
    *magnitude *= 1 + 0.1 * log(1 / scale);
}

// The pair that channel c belongs to and its two channels; false if it is not turned.
static bool pair_of(const struct ggml_tensor *node, int64_t c, int64_t *pair, int64_t *first,
                    int64_t *second) {
    const int mode = node->op_params[2];
    const int64_t n_dims = node->op_params[1];
    const int64_t offset = node->op_params[15];
    const int64_t width = mode == GGML_ROPE_TYPE_VISION ? 2 * n_dims : n_dims;
    if (c < offset || c >= offset + width) return false;
    if (mode == GGML_ROPE_TYPE_NORMAL) {
        *pair = (c - offset) / 2;
        *first = offset + 2 * *pair;
        *second = *first + 1;
    } else {
        *pair = (c - offset) % (width / 2);
        *first = offset + *pair;
        *second = *first + width / 2;
    }
    return true;
}

void oracle_rope(const struct ggml_tensor *node, double *out) {
    for (int64_t i = 0; i < ggml_nelements(node); ++i) {
        int64_t c, i1, token, i3, pair, first, second;
        double angle, magnitude;
        ggml_unravel_index(node, i, &c, &i1, &token, &i3);
        out[i] = oracle_value(node->src[0], c, i1, token, i3);
        if (!pair_of(node, c, &pair, &first, &second)) continue;
        const double x0 = oracle_value(node->src[0], first, i1, token, i3);
        const double x1 = oracle_value(node->src[0], second, i1, token, i3);
        turn_of(node, pair, token, &angle, &magnitude);
        if (node->op == GGML_OP_ROPE_BACK) angle = -angle;
        out[i] = magnitude * (c == first ? x0 * cos(angle) - x1 * sin(angle)
                                         : x0 * sin(angle) + x1 * cos(angle));
    }
}

// --- softmax -------------------------------------------------------------------------------------

static double slope_of(double max_bias, int64_t n_heads, int64_t head) {
    if (max_bias <= 0) return 1;
    const double below = pow(2, floor(log2((double)n_heads)));
    if ((double)head < below) return pow(pow(2, -max_bias / below), (double)head + 1);
    return pow(pow(2, -max_bias / 2 / below), 2 * ((double)head - below) + 1);
}

// x becomes its softmax; the sink, if any, counts in the sum. False if there is nothing to divide
// by.
static bool soft_max(double *x, int64_t n, const struct ggml_tensor *sinks, int64_t head) {
    const double sink = sinks ? oracle_value(sinks, head, 0, 0, 0) : -INFINITY;
    double max = sink;
    double sum = 0;
    for (int64_t i = 0; i < n; ++i)
        max = fmax(max, x[i]);
    if (max == -INFINITY) return false;
    for (int64_t i = 0; i < n; ++i) {
        x[i] = exp(x[i] - max);
        sum += x[i];
    }
    sum += exp(sink - max);
    for (int64_t i = 0; i < n; ++i)
        x[i] /= sum;
    return true;
}

static double mask_at(const struct ggml_tensor *mask, int64_t i0, int64_t i1, int64_t i2,
                      int64_t i3) {
    return oracle_value(mask, i0, i1, i2 % mask->ne[2], i3 % mask->ne[3]);
}

void oracle_soft_max(const struct ggml_tensor *node, double *out) {
    const struct ggml_tensor *mask = node->src[1];
    const double scale = float_param(node, 0);
    const double max_bias = float_param(node, 1);
    const int64_t n = node->ne[0];
    for (int64_t row = 0; row < ggml_nrows(node); ++row, out += n) {
        const int64_t i1 = row % node->ne[1];
        const int64_t i2 = row / node->ne[1] % node->ne[2];
        const int64_t i3 = row / node->ne[1] / node->ne[2];
        const double slope = slope_of(max_bias, node->ne[2], i2);
        for (int64_t i = 0; i < n; ++i) {
            out[i] = scale * oracle_value(node->src[0], i, i1, i2, i3);
            if (mask) out[i] += slope * mask_at(mask, i, i1, i2, i3);
        }
        if (soft_max(out, n, node->src[2], i2)) continue;
        for (int64_t i = 0; i < n; ++i)
            out[i] = NAN;
    }
}

// --- attention -----------------------------------------------------------------------------------

enum { MAX_KEYS = 32768 };

static void attend(const struct ggml_tensor *node, int64_t head, int64_t token, int64_t batch,
                   double *out) {
    const struct ggml_tensor *q = node->src[0];
    const struct ggml_tensor *k = node->src[1];
    const struct ggml_tensor *v = node->src[2];
    const double softcap = float_param(node, 2);
    const double slope = slope_of(float_param(node, 1), q->ne[2], head);
    static double w[MAX_KEYS];
    for (int64_t j = 0; j < k->ne[1]; ++j) {
        double dot = 0;
        for (int64_t c = 0; c < q->ne[0]; ++c)
            dot += oracle_value(q, c, token, head, batch) *
                   oracle_value(k, c, j, head / (q->ne[2] / k->ne[2]), batch);
        w[j] = float_param(node, 0) * dot;
        if (softcap != 0) w[j] = softcap * tanh(w[j] / softcap);
        if (node->src[3]) w[j] += slope * mask_at(node->src[3], j, token, head, batch);
    }
    const bool any = soft_max(w, k->ne[1], node->src[4], head);
    for (int64_t c = 0; c < v->ne[0]; ++c) {
        out[c] = 0;
        for (int64_t j = 0; j < k->ne[1] && any; ++j)
            out[c] += w[j] * oracle_value(v, c, j, head / (q->ne[2] / v->ne[2]), batch);
    }
}

void oracle_flash_attn_ext(const struct ggml_tensor *node, double *out) {
    for (int64_t row = 0; row < ggml_nrows(node); ++row) {
        const int64_t head = row % node->ne[1];
        const int64_t token = row / node->ne[1] % node->ne[2];
        attend(node, head, token, row / node->ne[1] / node->ne[2], out + row * node->ne[0]);
    }
}
