// SPDX-License-Identifier: MIT
// Sums, means, running sums, largest elements, equal elements, repetition, joining.
#include <math.h>

#include "case.h"

// Rounding errors of n additions add up like a random walk; four standard deviations.
static const char why_sum[] = "n additions, errors as in a random walk: 16 n units squared";
static const char why_move[] = "moves or counts only";

static double sum_bound(int64_t n) {
    return 16 * (double)(n + 4) * UNIT_F32 * UNIT_F32;
}

static void index_of(const struct ggml_tensor *t, int64_t n, int64_t i[4]) {
    ggml_unravel_index(t, n, &i[0], &i[1], &i[2], &i[3]);
}

// --- sums ----------------------------------------------------------------------------------------

static double row_sum(const struct ggml_tensor *a, const int64_t i[4], bool squares) {
    double sum = 0;
    for (int64_t k = 0; k < a->ne[0]; ++k) {
        const double x = oracle_value(a, k, i[1], i[2], i[3]);
        sum += squares ? x * x : x;
    }
    return sum;
}

static double whole_sum(const struct ggml_tensor *a, bool squares) {
    double sum = 0;
    for (int64_t row = 0; row < ggml_nrows(a); ++row) {
        const int64_t i[4] = {0, row % a->ne[1], row / a->ne[1] % a->ne[2],
                              row / a->ne[1] / a->ne[2]};
        sum += row_sum(a, i, squares);
    }
    return sum;
}

static void oracle_sum(const struct ggml_tensor *node, double *out) {
    out[0] = whole_sum(node->src[0], false);
}

static void sum_magnitude(const struct ggml_tensor *node, double *out) {
    out[0] = sqrt(whole_sum(node->src[0], true));
}

static void rows_of(const struct ggml_tensor *node, double *out, bool squares) {
    const double divisor = node->op == GGML_OP_MEAN ? (double)node->src[0]->ne[0] : 1;
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t i[4];
        index_of(node, n, i);
        const double sum = row_sum(node->src[0], i, squares);
        out[n] = (squares ? sqrt(sum) : sum) / divisor;
    }
}

static void oracle_rows(const struct ggml_tensor *node, double *out) {
    rows_of(node, out, false);
}

static void rows_magnitude(const struct ggml_tensor *node, double *out) {
    rows_of(node, out, true);
}

static void oracle_cumsum(const struct ggml_tensor *node, double *out) {
    oracle_read(node->src[0], out);
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        if (n % node->ne[0] != 0) out[n] += out[n - 1];
    }
}

static void cumsum_magnitude(const struct ggml_tensor *node, double *out) {
    oracle_read(node->src[0], out);
    for (int64_t n = 0; n < ggml_nelements(node); ++n)
        out[n] = n % node->ne[0] == 0 ? fabs(out[n]) : hypot(out[n], out[n - 1]);
}

typedef struct ggml_tensor *(*reduce_fn)(struct ggml_context *, struct ggml_tensor *);

static void reduce_case(struct conformance *c, reduce_fn build, enum ggml_type type,
                        struct conformance_extents ne, enum conformance_layout layout) {
    if (!conformance_case(c, "%s/%s/%s", ggml_type_name(type), conformance_shape(c, ne),
                          conformance_layout_name(layout))) {
        return;
    }
    struct ggml_tensor *a = conformance_range(c, type, ne, layout, layout == GAPS ? 0 : -1, 1);
    conformance_bound(c, sum_bound(build == ggml_sum ? ggml_nelements(a) : ne.ne[0]));
    conformance_check(c, build(c->ctx, a));
}

static void reduce_cases(struct conformance *c, reduce_fn build, int n_types) {
    const int last = build == ggml_cumsum ? ROTATED : TRANSPOSED;
    for (int s = 0; s < conformance_n_long_rows; ++s)
        reduce_case(c, build, GGML_TYPE_F32, conformance_long_rows[s], PACKED);
    for (int t = 0; t < n_types; ++t) {
        for (int s = 0; s < conformance_n_shapes; ++s) {
            for (int l = PACKED; l <= last; ++l)
                reduce_case(c, build, conformance_floats[t], conformance_shapes[s],
                            (enum conformance_layout)l);
        }
    }
}

static void cases_sum(struct conformance *c) {
    reduce_cases(c, ggml_sum, 3);
}

static void cases_sum_rows(struct conformance *c) {
    reduce_cases(c, ggml_sum_rows, 1);
}

static void cases_mean(struct conformance *c) {
    reduce_cases(c, ggml_mean, 1);
}

static void cases_cumsum(struct conformance *c) {
    reduce_cases(c, ggml_cumsum, 1);
}

CONFORMANCE_OP(SUM, oracle_sum, cases_sum, 1, why_sum, .magnitude = sum_magnitude);
CONFORMANCE_OP(SUM_ROWS, oracle_rows, cases_sum_rows, 1, why_sum, .magnitude = rows_magnitude);
CONFORMANCE_OP(MEAN, oracle_rows, cases_mean, 1, why_sum, .magnitude = rows_magnitude);
CONFORMANCE_OP(CUMSUM, oracle_cumsum, cases_cumsum, 1, why_sum, .magnitude = cumsum_magnitude);

// --- largest element -----------------------------------------------------------------------------

static void oracle_argmax(const struct ggml_tensor *node, double *out) {
    for (int64_t row = 0; row < node->ne[0]; ++row) {
        out[row] = -INFINITY;
        for (int64_t k = 0; k < node->src[0]->ne[0]; ++k)
            out[row] = fmax(out[row], oracle_value(node->src[0], k, row, 0, 0));
    }
}

// Any of several equal elements may be named: compares what the index refers to.
static void argmax_canonical(const struct ggml_tensor *node, double *actual) {
    for (int64_t row = 0; row < node->ne[0]; ++row) {
        const bool valid = actual[row] >= 0 && actual[row] < (double)node->src[0]->ne[0];
        actual[row] = valid ? oracle_value(node->src[0], (int64_t)actual[row], row, 0, 0) : NAN;
    }
}

static void long_argmax(struct conformance *c, struct conformance_extents ne) {
    if (!conformance_case(c, "f32/%s/packed/random", conformance_shape(c, ne))) return;
    conformance_check(c,
                      ggml_argmax(c->ctx, conformance_range(c, GGML_TYPE_F32, ne, PACKED, -3, -1)));
}

static void cases_argmax(struct conformance *c) {
    static const int64_t widths[] = {1, 2, 7, 31, 32, 33, 64, 100, 257, 1024, 4099};
    static const int64_t heights[] = {1, 3, 64, 0};
    for (int s = 0; s < conformance_n_long_rows; ++s)
        long_argmax(c, conformance_long_rows[s]);
    for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); ++w) {
        for (int h = 0; h < 4; ++h) {
            for (int l = PACKED; l <= TRANSPOSED; l += l == GAPS ? 3 : 1) {
                for (int ties = 0; ties < 2; ++ties) {
                    const struct conformance_extents ne = extents(widths[w], heights[h], 1, 1);
                    const enum conformance_layout layout = (enum conformance_layout)l;
                    if (!conformance_case(c, "f32/%s/%s/%s", conformance_shape(c, ne),
                                          conformance_layout_name(layout),
                                          ties ? "ties" : "random")) {
                        continue;
                    }
                    struct ggml_tensor *a =
                        ties ? conformance_indices(c, GGML_TYPE_F32, ne, layout, 4)
                             : conformance_range(c, GGML_TYPE_F32, ne, layout, -3, -1);
                    conformance_check(c, ggml_argmax(c->ctx, a));
                }
            }
        }
    }
}
CONFORMANCE_OP(ARGMAX, oracle_argmax, cases_argmax, 0, why_move, .canonical = argmax_canonical);

static void oracle_count_equal(const struct ggml_tensor *node, double *out) {
    out[0] = 0;
    for (int64_t n = 0; n < ggml_nelements(node->src[0]); ++n) {
        int64_t i[4];
        index_of(node->src[0], n, i);
        out[0] += oracle_value(node->src[0], i[0], i[1], i[2], i[3]) ==
                  oracle_value(node->src[1], i[0], i[1], i[2], i[3]);
    }
}

static void cases_count_equal(struct conformance *c) {
    for (int s = 0; s < conformance_n_shapes; ++s) {
        for (int l = PACKED; l <= ROTATED; ++l) {
            const struct conformance_extents ne = conformance_shapes[s];
            const enum conformance_layout layout = (enum conformance_layout)l;
            if (!conformance_case(c, "i32/%s/%s", conformance_shape(c, ne),
                                  conformance_layout_name(layout))) {
                continue;
            }
            struct ggml_tensor *a = conformance_indices(c, GGML_TYPE_I32, ne, layout, 3);
            struct ggml_tensor *b = conformance_indices(c, GGML_TYPE_I32, ne, PACKED, 3);
            conformance_check(c, ggml_count_equal(c->ctx, a, b));
        }
    }
}
CONFORMANCE_OP(COUNT_EQUAL, oracle_count_equal, cases_count_equal, 0, why_move, PLAIN);

// --- repetition ----------------------------------------------------------------------------------

static void oracle_repeat(const struct ggml_tensor *node, double *out) {
    const struct ggml_tensor *a = node->src[0];
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t i[4];
        index_of(node, n, i);
        out[n] =
            oracle_value(a, i[0] % a->ne[0], i[1] % a->ne[1], i[2] % a->ne[2], i[3] % a->ne[3]);
    }
}

static const struct conformance_extents times[] = {
    {{1, 1, 1, 1}}, {{2, 1, 1, 1}}, {{1, 3, 1, 1}}, {{1, 1, 2, 1}}, {{1, 1, 1, 3}}, {{3, 2, 2, 2}},
};
enum { N_TIMES = sizeof(times) / sizeof(times[0]) };

static struct conformance_extents multiplied(struct conformance_extents ne,
                                             struct conformance_extents factors) {
    for (int d = 0; d < GGML_MAX_DIMS; ++d)
        ne.ne[d] *= factors.ne[d];
    return ne;
}

static void repeat_case(struct conformance *c, enum ggml_type type, struct conformance_extents ne,
                        struct conformance_extents factors, enum conformance_layout layout,
                        bool extents_given) {
    if (!conformance_case(c, "%s/%s/by-%s/%s/%s", ggml_type_name(type), conformance_shape(c, ne),
                          conformance_shape(c, factors), conformance_layout_name(layout),
                          extents_given ? "4d" : "like")) {
        return;
    }
    const struct conformance_extents to = multiplied(ne, factors);
    struct ggml_tensor *a = conformance_range(c, type, ne, layout, -100, 100);
    if (extents_given) {
        conformance_check(c, ggml_repeat_4d(c->ctx, a, to.ne[0], to.ne[1], to.ne[2], to.ne[3]));
    } else {
        struct ggml_tensor *b = conformance_input(c, GGML_TYPE_F32, to, PACKED);
        conformance_check(c, ggml_repeat(c->ctx, a, b));
    }
}

static void cases_repeat(struct conformance *c) {
    static const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16,
                                           GGML_TYPE_I32, GGML_TYPE_I16};
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); ++t) {
        for (int s = 0; s < 8; ++s) {
            for (int f = 0; f < N_TIMES; ++f)
                repeat_case(c, types[t], conformance_shapes[s], times[f],
                            (enum conformance_layout)((s + f) % 4), f % 2 == 0);
        }
    }
}
CONFORMANCE_OP(REPEAT, oracle_repeat, cases_repeat, 0, why_move, PLAIN);

static void fold(const struct ggml_tensor *node, double *out, bool squares) {
    const struct ggml_tensor *a = node->src[0];
    const int64_t *ne = node->ne;
    for (int64_t n = 0; n < ggml_nelements(node); ++n)
        out[n] = 0;
    for (int64_t n = 0; n < ggml_nelements(a); ++n) {
        int64_t i[4];
        index_of(a, n, i);
        const double x = oracle_value(a, i[0], i[1], i[2], i[3]);
        out[i[0] % ne[0] +
            ne[0] * (i[1] % ne[1] + ne[1] * (i[2] % ne[2] + ne[2] * (i[3] % ne[3])))] +=
            squares ? x * x : x;
    }
    for (int64_t n = 0; n < ggml_nelements(node) && squares; ++n)
        out[n] = sqrt(out[n]);
}

static void oracle_repeat_back(const struct ggml_tensor *node, double *out) {
    fold(node, out, false);
}

static void repeat_back_magnitude(const struct ggml_tensor *node, double *out) {
    fold(node, out, true);
}

static void cases_repeat_back(struct conformance *c) {
    for (int s = 0; s < 8; ++s) {
        for (int f = 0; f < N_TIMES; ++f) {
            const struct conformance_extents ne = conformance_shapes[s];
            const enum conformance_layout layout = (enum conformance_layout)((s + f) % 4);
            if (!conformance_case(c, "f32/%s/by-%s/%s", conformance_shape(c, ne),
                                  conformance_shape(c, times[f]),
                                  conformance_layout_name(layout))) {
                continue;
            }
            struct ggml_tensor *a =
                conformance_input(c, GGML_TYPE_F32, multiplied(ne, times[f]), layout);
            struct ggml_tensor *b = conformance_input(c, GGML_TYPE_F32, ne, PACKED);
            conformance_check(c, ggml_repeat_back(c->ctx, a, b));
        }
    }
}
CONFORMANCE_OP(REPEAT_BACK, oracle_repeat_back, cases_repeat_back,
               16 * (24 + 4) * UNIT_F32 * UNIT_F32, why_sum, .magnitude = repeat_back_magnitude);

// --- joining -------------------------------------------------------------------------------------

static void oracle_concat(const struct ggml_tensor *node, double *out) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    const int dim = node->op_params[0];
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t i[4];
        index_of(node, n, i);
        const bool second = i[dim] >= a->ne[dim];
        if (second) i[dim] -= a->ne[dim];
        out[n] = oracle_value(second ? b : a, i[0], i[1], i[2], i[3]);
    }
}

static void concat_case(struct conformance *c, enum ggml_type type, struct conformance_extents ne,
                        int dim, enum conformance_layout layout) {
    struct conformance_extents ne_b = ne;
    ne_b.ne[dim] = dim == 0 ? 2 * ggml_blck_size(type) : 3;
    if (!conformance_can_lay_out(type, ne, layout)) return;
    if (!conformance_case(c, "%s/%s/dim%d/%s", ggml_type_name(type), conformance_shape(c, ne), dim,
                          conformance_layout_name(layout))) {
        return;
    }
    struct ggml_tensor *a = conformance_range(c, type, ne, layout, -100, 100);
    struct ggml_tensor *b = conformance_range(c, type, ne_b, layout, -100, 100);
    conformance_check(c, ggml_concat(c->ctx, a, b, dim));
}

static void cases_concat(struct conformance *c) {
    static const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16,
                                           GGML_TYPE_I32, GGML_TYPE_I8,  GGML_TYPE_I16,
                                           GGML_TYPE_I64, GGML_TYPE_F64};
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); ++t) {
        for (int s = 0; s < 7; ++s) {
            for (int dim = 0; dim < GGML_MAX_DIMS; ++dim)
                concat_case(c, types[t], conformance_shapes[s], dim,
                            (enum conformance_layout)((s + dim) % N_LAYOUTS));
        }
    }
    for (int q = 0; q < conformance_n_quants; ++q) {
        for (int dim = 0; dim < GGML_MAX_DIMS; ++dim) {
            concat_case(c, conformance_quants[q], extents(256, 3, 2, 1), dim, PACKED);
            concat_case(c, conformance_quants[q], extents(512, 2, 2, 1), dim, GAPS);
        }
    }
}
CONFORMANCE_OP(CONCAT, oracle_concat, cases_concat, 0, why_move, PLAIN);
