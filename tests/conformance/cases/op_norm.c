// SPDX-License-Identifier: MIT
// Normalisation of rows and of groups of channels.
#include <math.h>

#include "case.h"

static const char why_norm[] =
    "sums of n, errors as in a random walk, and a root: 16 (n + 16) units squared";

static double norm_bound(int64_t n) {
    return 16 * (double)(n + 16) * UNIT_F32 * UNIT_F32;
}

// What a group of numbers is: its size, sum and sum of squares around `centre`.
struct moments {
    double n, sum, squares;
};

static void add_row(struct moments *m, const struct ggml_tensor *a, int64_t i1, int64_t i2,
                    int64_t i3, double centre) {
    for (int64_t k = 0; k < a->ne[0]; ++k) {
        const double x = oracle_value(a, k, i1, i2, i3) - centre;
        m->n += 1;
        m->sum += x;
        m->squares += x * x;
    }
}

static struct moments row_moments(const struct ggml_tensor *a, const int64_t i[4], double centre) {
    struct moments m = {0, 0, 0};
    add_row(&m, a, i[1], i[2], i[3], centre);
    return m;
}

static struct moments group_moments(const struct ggml_tensor *node, const int64_t i[4],
                                    double centre) {
    const struct ggml_tensor *a = node->src[0];
    const int64_t n_groups = node->op_params[0];
    const int64_t channels = (a->ne[2] + n_groups - 1) / n_groups;
    const int64_t first = i[2] / channels * channels;
    struct moments m = {0, 0, 0};
    for (int64_t i2 = first; i2 < first + channels && i2 < a->ne[2]; ++i2) {
        for (int64_t i1 = 0; i1 < a->ne[1]; ++i1)
            add_row(&m, a, i1, i2, i[3], centre);
    }
    return m;
}

// Mean and divisor of the numbers that x belongs to.
static void statistics(const struct ggml_tensor *node, const int64_t i[4], double *mean,
                       double *divisor) {
    const bool grouped = node->op == GGML_OP_GROUP_NORM;
    const double eps = conformance_param_f32(node, grouped ? 1 : 0);
    struct moments m = grouped ? group_moments(node, i, 0) : row_moments(node->src[0], i, 0);
    *mean = 0;
    if (node->op == GGML_OP_L2_NORM) {
        *divisor = fmax(sqrt(m.squares), eps);
        return;
    }
    if (node->op != GGML_OP_RMS_NORM) {
        *mean = m.sum / m.n;
        m = grouped ? group_moments(node, i, *mean) : row_moments(node->src[0], i, *mean);
    }
    *divisor = sqrt(m.squares / m.n + eps);
}

static void norm(const struct ggml_tensor *node, double *out, bool magnitude) {
    double mean = 0, divisor = 0;
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t i[4];
        ggml_unravel_index(node, n, &i[0], &i[1], &i[2], &i[3]);
        const bool new_group = node->op == GGML_OP_GROUP_NORM ? i[0] + i[1] == 0 : i[0] == 0;
        if (new_group) statistics(node, i, &mean, &divisor);
        const double x = oracle_value(node->src[0], i[0], i[1], i[2], i[3]);
        out[n] = magnitude ? (fabs(x) + fabs(mean)) / divisor : (x - mean) / divisor;
    }
}

static void oracle_norm(const struct ggml_tensor *node, double *out) {
    norm(node, out, false);
}

static void norm_magnitude(const struct ggml_tensor *node, double *out) {
    norm(node, out, true);
}

typedef struct ggml_tensor *(*norm_fn)(struct ggml_context *, struct ggml_tensor *, float);

static void norm_case(struct conformance *c, norm_fn build, struct conformance_extents ne,
                      enum conformance_layout layout, float eps, double low, const char *form) {
    if (!conformance_case(c, "f32/%s/%s/eps=%g/from%g/%s", conformance_shape(c, ne),
                          conformance_layout_name(layout), (double)eps, low, form)) {
        return;
    }
    struct ggml_tensor *a = conformance_range(c, GGML_TYPE_F32, ne, layout, low, 1);
    conformance_bound(c, norm_bound(ne.ne[0]));
    conformance_check(c, build(c->ctx, a, eps));
}

static void norm_cases(struct conformance *c, norm_fn build, norm_fn in_place, int last_layout) {
    static const float epsilons[] = {1e-6f, 1e-5f, 0.1f};
    for (int s = 0; s < conformance_n_long_rows; ++s)
        norm_case(c, build, conformance_long_rows[s], PACKED, 1e-6f, -1, "new");
    for (int s = 0; s < conformance_n_shapes; ++s) {
        for (int l = PACKED; l <= last_layout; ++l) {
            const enum conformance_layout layout = (enum conformance_layout)l;
            const float eps = epsilons[(s + l) % 3];
            norm_case(c, build, conformance_shapes[s], layout, eps, -1, "new");
            norm_case(c, build, conformance_shapes[s], layout, eps, 0.25, "new");
            if (l <= ROTATED)
                norm_case(c, in_place, conformance_shapes[s], layout, eps, -1, "inplace");
        }
    }
    norm_case(c, build, extents(64, 3, 1, 1), PACKED, 0, -1, "new");
}

static void cases_norm(struct conformance *c) {
    norm_cases(c, ggml_norm, ggml_norm_inplace, TRANSPOSED);
}

static void cases_rms_norm(struct conformance *c) {
    norm_cases(c, ggml_rms_norm, ggml_rms_norm_inplace, ROTATED);
}

static void cases_l2_norm(struct conformance *c) {
    norm_cases(c, ggml_l2_norm, ggml_l2_norm_inplace, TRANSPOSED);
}

CONFORMANCE_OP(NORM, oracle_norm, cases_norm, 1, why_norm, .magnitude = norm_magnitude);
CONFORMANCE_OP(RMS_NORM, oracle_norm, cases_rms_norm, 1, why_norm, PLAIN);
CONFORMANCE_OP(L2_NORM, oracle_norm, cases_l2_norm, 1, why_norm, PLAIN);

static void cases_group_norm(struct conformance *c) {
    static const struct conformance_extents shapes[] = {
        {{1, 1, 4, 1}},   {{7, 3, 6, 2}},  {{16, 16, 8, 1}}, {{5, 1, 7, 3}},
        {{33, 4, 12, 1}}, {{64, 2, 1, 2}}, {{0, 3, 4, 1}},   {{1031, 1067, 2, 1}},
    };
    static const int groups[] = {1, 2, 3, 4};
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); ++s) {
        for (int g = 0; g < 4; ++g) {
            const bool large = shapes[s].ne[0] > 1000;
            for (int l = 0; l < 4 && !(large && g + l > 0); ++l) {
                const enum conformance_layout layout = (enum conformance_layout)l;
                for (int in_place = 0; in_place < 2; ++in_place) {
                    if (!conformance_case(
                            c, "f32/%s/%d-groups/%s/%s", conformance_shape(c, shapes[s]), groups[g],
                            conformance_layout_name(layout), in_place ? "inplace" : "new")) {
                        continue;
                    }
                    struct ggml_tensor *a =
                        conformance_range(c, GGML_TYPE_F32, shapes[s], layout, -1, 2);
                    conformance_bound(c, norm_bound(ggml_nelements(a)));
                    conformance_check(c, in_place
                                             ? ggml_group_norm_inplace(c->ctx, a, groups[g], 1e-5f)
                                             : ggml_group_norm(c->ctx, a, groups[g], 1e-5f));
                }
            }
        }
    }
}
CONFORMANCE_OP(GROUP_NORM, oracle_norm, cases_group_norm, 1, why_norm, .magnitude = norm_magnitude);

static void rms_norm_back(const struct ggml_tensor *node, double *out, bool magnitude) {
    const struct ggml_tensor *dy = node->src[0];
    const struct ggml_tensor *x = node->src[1];
    const double eps = conformance_param_f32(node, 0);
    const double width = (double)node->ne[0];
    double squares = 0, product = 0;
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t i[4];
        ggml_unravel_index(node, n, &i[0], &i[1], &i[2], &i[3]);
        for (int64_t k = 0; k < node->ne[0] && i[0] == 0; ++k) {
            const double value = oracle_value(x, k, i[1], i[2], i[3]);
            squares = value * value + (k == 0 ? 0 : squares);
            product = value * oracle_value(dy, k, i[1], i[2], i[3]) + (k == 0 ? 0 : product);
        }
        const double first = oracle_value(dy, i[0], i[1], i[2], i[3]);
        const double second =
            oracle_value(x, i[0], i[1], i[2], i[3]) * product / (squares + width * eps);
        out[n] =
            (magnitude ? fabs(first) + fabs(second) : first - second) / sqrt(squares / width + eps);
    }
}

static void oracle_rms_norm_back(const struct ggml_tensor *node, double *out) {
    rms_norm_back(node, out, false);
}

static void rms_norm_back_magnitude(const struct ggml_tensor *node, double *out) {
    rms_norm_back(node, out, true);
}

static void cases_rms_norm_back(struct conformance *c) {
    for (int s = 0; s < conformance_n_shapes; ++s) {
        for (int l = 0; l < 4; ++l) {
            const struct conformance_extents ne = conformance_shapes[s];
            const enum conformance_layout layout = (enum conformance_layout)l;
            if (!conformance_case(c, "f32/%s/%s", conformance_shape(c, ne),
                                  conformance_layout_name(layout))) {
                continue;
            }
            struct ggml_tensor *dy = conformance_input(c, GGML_TYPE_F32, ne, layout);
            struct ggml_tensor *x = conformance_input(c, GGML_TYPE_F32, ne, layout);
            conformance_bound(c, norm_bound(ne.ne[0]));
            conformance_check(c, ggml_rms_norm_back(c->ctx, dy, x, l == 1 ? 0.1f : 1e-6f));
        }
    }
}
CONFORMANCE_OP(RMS_NORM_BACK, oracle_rms_norm_back, cases_rms_norm_back, 1, why_norm,
               .magnitude = rms_norm_back_magnitude);
