// SPDX-License-Identifier: MIT
// The cross-entropy loss and the steps of optimisers.
#include "case.h"
#include "oracle/oracle_sum.h"

// --- cross_entropy_loss --------------------------------------------------------------------------

static const char why_loss[] = "per term the logarithm's 8 units and one sum of n, then one sum "
                               "per row: n + rows + 12 units of the terms";

// Largest element of a row, and the logarithm of its sum of e^(x - largest).
static void log_sum(const struct ggml_tensor *a, const int64_t i[4], double *max, double *log_of) {
    double sum = 0;
    *max = -INFINITY;
    for (int64_t k = 0; k < a->ne[0]; ++k)
        *max = fmax(*max, oracle_value(a, k, i[1], i[2], i[3]));
    for (int64_t k = 0; k < a->ne[0]; ++k)
        sum += exp(oracle_value(a, k, i[1], i[2], i[3]) - *max);
    *log_of = log(sum);
}

static void loss_at(const struct ggml_tensor *node, const int64_t at[4], struct oracle_sum *sum) {
    const struct ggml_tensor *a = node->src[0], *b = node->src[1];
    const int64_t rows = ggml_nrows(a);
    (void)at;
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t i[4] = {0, row % a->ne[1], row / a->ne[1] % a->ne[2],
                              row / a->ne[1] / a->ne[2]};
        double max, log_of;
        log_sum(a, i, &max, &log_of);
        for (int64_t k = 0; k < a->ne[0]; ++k) {
            const double share = oracle_value(b, k, i[1], i[2], i[3]) / (double)rows;
            oracle_add(sum, -share * (oracle_value(a, k, i[1], i[2], i[3]) - max));
            oracle_add(sum, share * log_of);
        }
    }
}
ORACLE_SUM(loss)

static const struct conformance_extents loss_shapes[] = {
    {{33, 5, 3, 2}},   {{1, 1, 1, 1}},    {{64, 4, 2, 1}}, {{257, 3, 1, 1}}, {{7, 1, 1, 1}},
    {{10, 130, 1, 1}}, {{1031, 7, 1, 1}}, {{2, 9, 1, 1}},  {{32, 33, 1, 1}}, {{4099, 3, 1, 1}}};
enum { N_LOSS_SHAPES = sizeof(loss_shapes) / sizeof(loss_shapes[0]) };

static void cases_loss(struct conformance *c) {
    for (int m = 0; m < 4 * N_LOSS_SHAPES; ++m) {
        const struct conformance_extents ne = loss_shapes[m / 4];
        const double range = m % 2 ? 30 : 1;
        const enum conformance_layout layout = m % 4 < 2 ? PACKED : GAPS;
        if (!conformance_case(c, "f32/range=%g/%s/%s", range, conformance_shape(c, ne),
                              conformance_layout_name(layout))) {
            continue;
        }
        struct ggml_tensor *a = conformance_range(c, GGML_TYPE_F32, ne, layout, -range, range);
        struct ggml_tensor *b = conformance_range(c, GGML_TYPE_F32, ne, layout, 0, 1);
        conformance_bound(
            c, oracle_units((double)ne.ne[0] + (double)(ne.ne[1] * ne.ne[2] * ne.ne[3]) + 12));
        conformance_check(c, ggml_cross_entropy_loss(c->ctx, a, b));
    }
}

CONFORMANCE_OP(CROSS_ENTROPY_LOSS, oracle_loss, cases_loss, 1, why_loss,
               .magnitude = magnitude_loss);

// --- cross_entropy_loss_back ---------------------------------------------------------------------

static const char why_loss_back[] =
    "x - max is off by 2 units of 2 |x|, which exp makes relative; exp, sum, quotient, difference "
    "and two products add 12 units";

static void loss_back_at(const struct ggml_tensor *node, const int64_t i[4],
                         struct oracle_sum *sum) {
    const struct ggml_tensor *b = node->src[1];
    const double factor = oracle_value(node->src[0], 0, 0, 0, 0) / (double)ggml_nrows(b);
    static int64_t row[4] = {-1, -1, -1, -1};
    static double max, log_of;
    if (i[0] == 0 || memcmp(row + 1, i + 1, 3 * sizeof(i[0])) != 0) log_sum(b, i, &max, &log_of);
    memcpy(row, i, sizeof(row));
    oracle_add(sum, factor * exp(oracle_value(b, i[0], i[1], i[2], i[3]) - max - log_of));
    oracle_add(sum, -factor * oracle_value(node->src[2], i[0], i[1], i[2], i[3]));
}
ORACLE_SUM(loss_back)

static void cases_loss_back(struct conformance *c) {
    for (int m = 0; m < 2 * N_LOSS_SHAPES; ++m) {
        const struct conformance_extents ne = loss_shapes[m / 2];
        const double range = m % 2 ? 30 : 1;
        if (!conformance_case(c, "f32/range=%g/%s", range, conformance_shape(c, ne))) continue;
        struct ggml_tensor *a =
            conformance_range(c, GGML_TYPE_F32, extents(1, 1, 1, 1), PACKED, -2, 2);
        struct ggml_tensor *b = conformance_range(c, GGML_TYPE_F32, ne, PACKED, -range, range);
        struct ggml_tensor *targets = conformance_range(c, GGML_TYPE_F32, ne, PACKED, 0, 1);
        conformance_bound(c, oracle_units(2 * 2 * range + 12));
        conformance_check(c, ggml_cross_entropy_loss_back(c->ctx, a, b, targets));
    }
}

CONFORMANCE_OP(CROSS_ENTROPY_LOSS_BACK, oracle_loss_back, cases_loss_back, 1, why_loss_back,
               .magnitude = magnitude_loss_back);

// --- opt_step_adamw ------------------------------------------------------------------------------

static const char why_step[] = "up to 12 operations on the way to an element round once each";
static const double step_bound = 144 * UNIT_F32 * UNIT_F32;

enum { ALPHA, BETA1, BETA2, EPS, DECAY, BETA1H, BETA2H, N_ADAMW };

static double param(const struct ggml_tensor *node, int source, int k) {
    return oracle_value(node->src[source], k, 0, 0, 0);
}

static double moment(const struct ggml_tensor *node, int source, const int64_t i[4]) {
    const double g = oracle_value(node->src[1], i[0], i[1], i[2], i[3]);
    const double beta = param(node, 4, source == 2 ? BETA1 : BETA2);
    return oracle_value(node->src[source], i[0], i[1], i[2], i[3]) * beta +
           (source == 2 ? g : g * g) * (1 - beta);
}

static void adamw_moments(const struct ggml_tensor *node, int source, double *out) {
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t i[4];
        ggml_unravel_index(node, n, &i[0], &i[1], &i[2], &i[3]);
        out[n] = moment(node, source, i);
    }
}

static void adamw_at(const struct ggml_tensor *node, const int64_t i[4], struct oracle_sum *sum) {
    const double alpha = param(node, 4, ALPHA);
    const double m = moment(node, 2, i) * param(node, 4, BETA1H);
    const double v = moment(node, 3, i) * param(node, 4, BETA2H);
    oracle_add(sum, oracle_value(node->src[0], i[0], i[1], i[2], i[3]) *
                        (1 - alpha * param(node, 4, DECAY)));
    oracle_add(sum, -alpha * m / (sqrt(v) + param(node, 4, EPS)));
}
ORACLE_SUM(adamw)

// Operands of a step: parameter, gradient, moments.
static struct ggml_tensor *parameter(struct conformance *c, struct conformance_extents ne) {
    struct ggml_tensor *a = conformance_input(c, GGML_TYPE_F32, ne, PACKED);
    ggml_set_param(a);
    return a;
}

static struct ggml_tensor *numbers(struct conformance *c, const double *values, int n) {
    return conformance_filled(c, GGML_TYPE_F32, extents(n, 1, 1, 1), PACKED,
                              (struct conformance_fill){FILL_CYCLE, 0, 0, values, n});
}

static void cases_adamw(struct conformance *c) {
    static const double params[][N_ADAMW] = {
        {0.001, 0.9, 0.999, 1e-8, 0.01, 10, 1000},
        {0.1, 0.5, 0.75, 0.01, 0, 1.25, 1.125},
        {1, 0, 0, 0.5, 0.5, 1, 1},
    };
    for (int p = 0; p < 3; ++p) {
        for (int s = 0; s < conformance_n_shapes; ++s) {
            const struct conformance_extents ne = conformance_shapes[s];
            if (!conformance_case(c, "f32/params=%d/%s", p, conformance_shape(c, ne))) continue;
            struct ggml_tensor *a = parameter(c, ne);
            struct ggml_tensor *g = conformance_input(c, GGML_TYPE_F32, ne, PACKED);
            struct ggml_tensor *m = conformance_input(c, GGML_TYPE_F32, ne, PACKED);
            struct ggml_tensor *v = conformance_range(c, GGML_TYPE_F32, ne, PACKED, 0, 1);
            conformance_check(
                c, ggml_opt_step_adamw(c->ctx, a, g, m, v, numbers(c, params[p], N_ADAMW)));
        }
    }
}

CONFORMANCE_OP(OPT_STEP_ADAMW, oracle_adamw, cases_adamw, step_bound, why_step,
               .magnitude = magnitude_adamw, .written_sources = 1 << 2 | 1 << 3,
               .source_oracle = adamw_moments);

// --- opt_step_sgd --------------------------------------------------------------------------------

static void sgd_at(const struct ggml_tensor *node, const int64_t i[4], struct oracle_sum *sum) {
    const double alpha = param(node, 2, 0), decay = param(node, 2, 1);
    oracle_add(sum, oracle_value(node->src[0], i[0], i[1], i[2], i[3]) * (1 - alpha * decay));
    oracle_add(sum, -alpha * oracle_value(node->src[1], i[0], i[1], i[2], i[3]));
}
ORACLE_SUM(sgd)

static void cases_sgd(struct conformance *c) {
    static const double params[][2] = {{0.01, 0}, {0.5, 0.1}, {1, 1}, {0, 0}};
    for (int p = 0; p < 4; ++p) {
        for (int s = 0; s < conformance_n_shapes; ++s) {
            const struct conformance_extents ne = conformance_shapes[s];
            if (!conformance_case(c, "f32/params=%d/%s", p, conformance_shape(c, ne))) continue;
            struct ggml_tensor *a = parameter(c, ne);
            struct ggml_tensor *g = conformance_input(c, GGML_TYPE_F32, ne, PACKED);
            conformance_check(c, ggml_opt_step_sgd(c->ctx, a, g, numbers(c, params[p], 2)));
        }
    }
}

CONFORMANCE_OP(OPT_STEP_SGD, oracle_sgd, cases_sgd, step_bound, why_step,
               .magnitude = magnitude_sgd);
