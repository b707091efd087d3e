// SPDX-License-Identifier: MIT
// Rows by index, diagonals, sorting, rolling, time steps.
#include <math.h>
#include <stdlib.h>

#include "case.h"
#include "oracle/quant_bound.h"

static const char why_move[] = "moves only";
static const char why_decode[] =
    "unquantised types: exact; decoding multiplies and adds twice, 64 units squared";
static const double decode_bound = 64 * UNIT_F32 * UNIT_F32;

// --- rows ----------------------------------------------------------------------------------------

struct row_choice {
    int64_t n_rows, n_chosen, batch2, batch3;
};

static const struct row_choice row_choices[] = {
    {1, 1, 1, 1}, {5, 3, 1, 1}, {33, 7, 2, 3}, {100, 200, 1, 1}, {4, 1, 3, 1}, {7, 0, 1, 1},
};
enum { N_ROW_CHOICES = sizeof(row_choices) / sizeof(row_choices[0]) };

static int64_t row_width(enum ggml_type type, int r) {
    static const int64_t widths[] = {1, 33, 64, 127, 256, 16};
    return ggml_blck_size(type) > 1 ? (1 + r % 3) * ggml_blck_size(type) : widths[r];
}

static void get_rows_case(struct conformance *c, enum ggml_type type, int r,
                          enum conformance_layout layout, enum conformance_layout ids_layout) {
    const struct row_choice s = row_choices[r];
    const struct conformance_extents ne = extents(row_width(type, r), s.n_rows, s.batch2, s.batch3);
    if (!conformance_case(c, "%s/%s/%d-rows/%s,%s", ggml_type_name(type), conformance_shape(c, ne),
                          (int)s.n_chosen, conformance_layout_name(layout),
                          conformance_layout_name(ids_layout))) {
        return;
    }
    struct ggml_tensor *a = conformance_range(c, type, ne, layout, -100, 100);
    struct ggml_tensor *ids = conformance_indices(
        c, GGML_TYPE_I32, extents(s.n_chosen, s.batch2, s.batch3, 1), ids_layout, s.n_rows);
    conformance_bound(c, ggml_is_quantized(type) ? decode_bound : 0);
    conformance_check(c, ggml_get_rows(c->ctx, a, ids));
}

static void get_rows_of(struct conformance *c, enum ggml_type type) {
    for (int r = 0; r < N_ROW_CHOICES; ++r) {
        get_rows_case(c, type, r, PACKED, PACKED);
        get_rows_case(c, type, r, GAPS, (enum conformance_layout)(1 + r % 4));
        get_rows_case(c, type, r, r % 2 ? PERMUTED : ROTATED, PACKED);
    }
}

static void cases_get_rows(struct conformance *c) {
    for (int t = 0; t < 3; ++t)
        get_rows_of(c, conformance_floats[t]);
    get_rows_of(c, GGML_TYPE_I32);
    for (int q = 0; q < conformance_n_quants; ++q)
        get_rows_of(c, conformance_quants[q]);
}
CONFORMANCE_OP(GET_ROWS, oracle_get_rows, cases_get_rows, 0, why_decode, PLAIN);

static void add_rows(const struct ggml_tensor *node, double *out, bool squares) {
    const struct ggml_tensor *a = node->src[0];
    for (int64_t n = 0; n < ggml_nelements(node); ++n)
        out[n] = 0;
    for (int64_t n = 0; n < a->ne[0] * node->src[1]->ne[0]; ++n) {
        const int64_t to = (int64_t)oracle_value(node->src[1], n / a->ne[0], 0, 0, 0);
        const double x = oracle_value(a, n % a->ne[0], n / a->ne[0], 0, 0);
        out[to * node->ne[0] + n % a->ne[0]] += squares ? x * x : x;
    }
    for (int64_t n = 0; n < ggml_nelements(node) && squares; ++n)
        out[n] = sqrt(out[n]);
}

static void oracle_get_rows_back(const struct ggml_tensor *node, double *out) {
    add_rows(node, out, false);
}

static void get_rows_back_magnitude(const struct ggml_tensor *node, double *out) {
    add_rows(node, out, true);
}

static void cases_get_rows_back(struct conformance *c) {
    for (int t = 0; t < 3 + conformance_n_quants; ++t) {
        const enum ggml_type type = t < 3 ? conformance_floats[t] : conformance_quants[t - 3];
        for (int r = 0; r < N_ROW_CHOICES; ++r) {
            for (int l = PACKED; l <= GAPS; ++l) {
                const int64_t width = row_width(type, r);
                const int64_t n = row_choices[r].n_chosen, n_rows = row_choices[r].n_rows;
                if (!conformance_case(c, "%s/%dx%d-into-%d/%s", ggml_type_name(type), (int)width,
                                      (int)n, (int)n_rows,
                                      conformance_layout_name((enum conformance_layout)l))) {
                    continue;
                }
                struct ggml_tensor *a =
                    conformance_input(c, type, extents(width, n, 1, 1), (enum conformance_layout)l);
                struct ggml_tensor *ids =
                    conformance_indices(c, GGML_TYPE_I32, extents(n, 1, 1, 1), PACKED, n_rows);
                // Some of the rows only.
                if (l == GAPS) ids = ggml_view_1d(c->ctx, ids, n / 2, 0);
                struct ggml_tensor *like =
                    conformance_input(c, GGML_TYPE_F32, extents(width, n_rows, 1, 1), PACKED);
                conformance_bound(c, 16 * (double)(n + 4) * UNIT_F32 * UNIT_F32);
                conformance_check(c, ggml_get_rows_back(c->ctx, a, ids, like));
            }
        }
    }
}
CONFORMANCE_OP(GET_ROWS_BACK, oracle_get_rows_back, cases_get_rows_back, 1,
               "n additions, errors as in a random walk: 16 n units squared",
               .magnitude = get_rows_back_magnitude);

static void oracle_set_rows(const struct ggml_tensor *node, double *out) {
    const struct ggml_tensor *b = node->src[0];
    const struct ggml_tensor *ids = node->src[1];
    const int64_t *ne = node->ne;
    for (int64_t n = 0; n < ggml_nelements(node); ++n)
        out[n] = ORACLE_UNTOUCHED;
    for (int64_t n = 0; n < ggml_nelements(b); ++n) {
        int64_t i[4];
        ggml_unravel_index(b, n, &i[0], &i[1], &i[2], &i[3]);
        const int64_t row =
            (int64_t)oracle_value(ids, i[1], i[2] % ids->ne[1], i[3] % ids->ne[2], 0);
        out[i[0] + ne[0] * (row + ne[1] * (i[2] + ne[2] * i[3]))] =
            oracle_value(b, i[0], i[1], i[2], i[3]);
    }
}

static void set_rows_case(struct conformance *c, enum ggml_type type, enum ggml_type from,
                          enum ggml_type index, int r, enum conformance_layout layout) {
    struct row_choice s = row_choices[r];
    if (s.n_chosen > s.n_rows) s.n_chosen = s.n_rows / 2;
    const int64_t width = row_width(type, r);
    const struct conformance_extents ne = extents(width, s.n_rows, s.batch2, s.batch3);
    const int64_t lists2 = r % 2 ? 1 : s.batch2;
    if (!conformance_case(c, "%s,%s,%s/%s/%d-rows/%d-lists/%s", ggml_type_name(type),
                          ggml_type_name(from), ggml_type_name(index), conformance_shape(c, ne),
                          (int)s.n_chosen, (int)lists2, conformance_layout_name(layout))) {
        return;
    }
    struct ggml_tensor *a = conformance_input(c, type, ne, layout);
    struct ggml_tensor *b =
        conformance_input(c, from, extents(width, s.n_chosen, s.batch2, s.batch3), layout);
    const struct conformance_fill distinct = {FILL_DISTINCT, 0, (double)s.n_rows, NULL, 0};
    struct ggml_tensor *ids =
        conformance_filled(c, index, extents(s.n_chosen, lists2, 1, 1), PACKED, distinct);
    conformance_bound(c, conformance_quant_bound(type));
    conformance_check(c, ggml_set_rows(c->ctx, a, b, ids));
}

static void cases_set_rows(struct conformance *c) {
    for (int t = 0; t < 3 + conformance_n_quants; ++t) {
        const enum ggml_type type = t < 3 ? conformance_floats[t] : conformance_quants[t - 3];
        for (int r = 0; r < N_ROW_CHOICES; ++r) {
            const enum conformance_layout layout = (enum conformance_layout)(1 + r % 3);
            set_rows_case(c, type, GGML_TYPE_F32, GGML_TYPE_I64, r, PACKED);
            set_rows_case(c, type, GGML_TYPE_F32, GGML_TYPE_I32, r, layout);
            set_rows_case(c, type, GGML_TYPE_F16, GGML_TYPE_I64, r, layout);
        }
    }
}
CONFORMANCE_OP(SET_ROWS, oracle_set_rows, cases_set_rows, 0,
               "unquantised types: exact; into a quantised one the format's step (quant_bound.c)",
               PLAIN);

// --- diagonals -----------------------------------------------------------------------------------

static void oracle_diag(const struct ggml_tensor *node, double *out) {
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t i[4];
        ggml_unravel_index(node, n, &i[0], &i[1], &i[2], &i[3]);
        out[n] = i[0] == i[1] ? oracle_value(node->src[0], i[0], 0, i[2], i[3]) : 0;
    }
}

static void cases_diag(struct conformance *c) {
    static const int64_t widths[] = {1, 2, 7, 32, 33, 100};
    for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); ++w) {
        for (int l = PACKED; l <= ROTATED; ++l) {
            for (int batch = 1; batch < 4; ++batch) {
                const struct conformance_extents ne = extents(widths[w], 1, batch, 4 - batch);
                if (!conformance_case(c, "f32/%s/%s", conformance_shape(c, ne),
                                      conformance_layout_name((enum conformance_layout)l))) {
                    continue;
                }
                conformance_check(c,
                                  ggml_diag(c->ctx, conformance_input(c, GGML_TYPE_F32, ne,
                                                                      (enum conformance_layout)l)));
            }
        }
    }
}
CONFORMANCE_OP(DIAG, oracle_diag, cases_diag, 0, why_move, PLAIN);

// --- sorting -------------------------------------------------------------------------------------

static int compare_up(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int compare_down(const void *a, const void *b) {
    return compare_up(b, a);
}

static bool is_descending(const struct ggml_tensor *node) {
    return node->op == GGML_OP_TOP_K || node->op_params[0] == GGML_SORT_ORDER_DESC;
}

// The numbers that the indices of the result should refer to.
static void oracle_sort(const struct ggml_tensor *node, double *out) {
    const int64_t width = node->src[0]->ne[0], n = node->ne[0];
    double *all = malloc((size_t)(ggml_nelements(node->src[0]) + 1) * sizeof(double));
    oracle_read(node->src[0], all);
    for (int64_t row = 0; row < ggml_nrows(node); ++row) {
        qsort(all + row * width, (size_t)width, sizeof(double),
              is_descending(node) ? compare_down : compare_up);
        memcpy(out + row * n, all + row * width, (size_t)n * sizeof(double));
    }
    free(all);
}

// Whether all n numbers are different indices below `width`.
static bool are_indices(const double *x, int64_t n, int64_t width) {
    bool good = true;
    uint8_t *seen = calloc((size_t)width + 1, 1);
    for (int64_t i = 0; i < n && good; ++i) {
        good = x[i] >= 0 && x[i] < (double)width && !seen[(int64_t)x[i]];
        if (good) seen[(int64_t)x[i]] = 1;
    }
    free(seen);
    return good;
}

// Equal numbers may come in any order, those of TOP_K all: compares what the indices refer to.
static void sort_canonical(const struct ggml_tensor *node, double *actual) {
    const int64_t n = node->ne[0];
    for (int64_t row = 0; row < ggml_nrows(node); ++row, actual += n) {
        const int64_t i1 = row % node->ne[1], i2 = row / node->ne[1] % node->ne[2];
        const bool good = are_indices(actual, n, node->src[0]->ne[0]);
        for (int64_t i = 0; i < n; ++i)
            actual[i] = good ? oracle_value(node->src[0], (int64_t)actual[i], i1, i2,
                                            row / node->ne[1] / node->ne[2])
                             : NAN;
        if (node->op == GGML_OP_TOP_K && good)
            qsort(actual, (size_t)n, sizeof(double), compare_down);
    }
}

static const struct conformance_extents sort_shapes[] = {
    {{1, 3, 1, 1}},    {{2, 5, 1, 1}},    {{7, 3, 2, 2}},   {{16, 10, 1, 1}},
    {{33, 5, 3, 2}},   {{64, 4, 1, 1}},   {{100, 1, 1, 3}}, {{1000, 2, 1, 1}},
    {{1024, 3, 1, 1}}, {{4099, 2, 1, 1}}, {{5, 0, 1, 1}},
};
enum { N_SORT_SHAPES = sizeof(sort_shapes) / sizeof(sort_shapes[0]) };

static const char *const filling_names[] = {"random", "ties", "ordered", "reversed"};

// Random, many equal, in order, in reverse order.
static struct ggml_tensor *sort_input(struct conformance *c, struct conformance_extents ne,
                                      enum conformance_layout layout, int filling) {
    const struct conformance_fill fills[] = {{FILL_UNIFORM, -10, 10, NULL, 0},
                                             {FILL_INTEGER, 0, 3, NULL, 0},
                                             {FILL_RAMP, -100, 0.5, NULL, 0},
                                             {FILL_RAMP, 100, -0.5, NULL, 0}};
    return conformance_filled(c, GGML_TYPE_F32, ne, layout, fills[filling]);
}

static void cases_argsort(struct conformance *c) {
    for (int s = 0; s < N_SORT_SHAPES; ++s) {
        for (int l = PACKED; l <= ROTATED; ++l) {
            for (int filling = 0; filling < 4; ++filling) {
                const enum conformance_layout layout = (enum conformance_layout)l;
                const bool down = (s + l + filling) % 2 != 0;
                if (!conformance_case(c, "f32/%s/%s/%s/%s", conformance_shape(c, sort_shapes[s]),
                                      conformance_layout_name(layout), filling_names[filling],
                                      down ? "down" : "up")) {
                    continue;
                }
                struct ggml_tensor *a = sort_input(c, sort_shapes[s], layout, filling);
                conformance_check(
                    c, ggml_argsort(c->ctx, a, down ? GGML_SORT_ORDER_DESC : GGML_SORT_ORDER_ASC));
            }
        }
    }
}

static void cases_top_k(struct conformance *c) {
    for (int s = 0; s < N_SORT_SHAPES; ++s) {
        const int width = (int)sort_shapes[s].ne[0];
        const int ks[] = {1, width, (width + 1) / 2, width > 40 ? 40 : width};
        for (int k = 0; k < 4; ++k) {
            for (int filling = 0; filling < 4; ++filling) {
                const enum conformance_layout layout = (enum conformance_layout)((s + k) % 4);
                if (!conformance_case(c, "f32/%s/k%d=%d/%s/%s",
                                      conformance_shape(c, sort_shapes[s]), k, ks[k],
                                      conformance_layout_name(layout), filling_names[filling])) {
                    continue;
                }
                struct ggml_tensor *a = sort_input(c, sort_shapes[s], layout, filling);
                conformance_check(c, ggml_top_k(c->ctx, a, ks[k]));
            }
        }
    }
}

CONFORMANCE_OP(ARGSORT, oracle_sort, cases_argsort, 0, "compares only",
               .canonical = sort_canonical);
CONFORMANCE_OP(TOP_K, oracle_sort, cases_top_k, 0, "compares only", .canonical = sort_canonical);

// --- rolling, time steps -------------------------------------------------------------------------

static int64_t wrapped(int64_t i, int64_t n) {
    return (i % n + n) % n;
}

static void oracle_roll(const struct ggml_tensor *node, double *out) {
    const int32_t *shift = node->op_params;
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t i[4];
        ggml_unravel_index(node, n, &i[0], &i[1], &i[2], &i[3]);
        for (int d = 0; d < GGML_MAX_DIMS; ++d)
            i[d] = wrapped(i[d] - shift[d], node->ne[d]);
        out[n] = oracle_value(node->src[0], i[0], i[1], i[2], i[3]);
    }
}

static void cases_roll(struct conformance *c) {
    static const int shifts[][4] = {{0, 0, 0, 0},  {1, 0, 0, 0}, {-3, 0, 0, 0}, {0, 2, 0, 0},
                                    {0, 0, -1, 0}, {0, 0, 0, 1}, {5, -2, 1, -1}};
    for (size_t h = 0; h < sizeof(shifts) / sizeof(shifts[0]); ++h) {
        for (int l = PACKED; l <= ROTATED; ++l) {
            for (int s = 0; s < 2; ++s) {
                const struct conformance_extents ne =
                    s ? extents(64, 3, 2, 2) : extents(33, 5, 3, 2);
                const int *x = shifts[h];
                if (!conformance_case(c, "f32/%s/%d,%d,%d,%d/%s", conformance_shape(c, ne), x[0],
                                      x[1], x[2], x[3],
                                      conformance_layout_name((enum conformance_layout)l))) {
                    continue;
                }
                struct ggml_tensor *a =
                    conformance_input(c, GGML_TYPE_F32, ne, (enum conformance_layout)l);
                conformance_check(c, ggml_roll(c->ctx, a, x[0], x[1], x[2], x[3]));
            }
        }
    }
}
CONFORMANCE_OP(ROLL, oracle_roll, cases_roll, 0, why_move, PLAIN);

static void oracle_timestep_embedding(const struct ggml_tensor *node, double *out) {
    const int64_t dim = node->op_params[0], half = dim / 2;
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        const int64_t i = n % dim;
        const double t = oracle_value(node->src[0], n / dim, 0, 0, 0);
        const double f =
            pow(node->op_params[1], -(double)(i % (half > 0 ? half : 1)) / (double)half);
        out[n] = i < half ? cos(t * f) : i < 2 * half ? sin(t * f) : 0;
    }
}

static void cases_timestep_embedding(struct conformance *c) {
    static const int dims[] = {1, 2, 3, 16, 33, 320};
    static const int periods[] = {100, 10000};
    static const double times[] = {1, 1000};
    for (size_t d = 0; d < sizeof(dims) / sizeof(dims[0]); ++d) {
        for (int p = 0; p < 2; ++p) {
            for (int t = 0; t < 2; ++t) {
                for (int n = 0; n < 8; n += 3) {
                    if (!conformance_case(c, "f32/dim=%d/period=%d/below-%g/n=%d", dims[d],
                                          periods[p], times[t], n)) {
                        continue;
                    }
                    struct ggml_tensor *a = conformance_range(c, GGML_TYPE_F32, extents(n, 1, 1, 1),
                                                              PACKED, 0, times[t]);
                    const double error = 8 * (times[t] + 1) * UNIT_F32;
                    conformance_bound(c, error * error);
                    conformance_check(c, ggml_timestep_embedding(c->ctx, a, dims[d], periods[p]));
                }
            }
        }
    }
}

static void one(const struct ggml_tensor *node, double *out) {
    for (int64_t n = 0; n < ggml_nelements(node); ++n)
        out[n] = 1;
}
CONFORMANCE_OP(TIMESTEP_EMBEDDING, oracle_timestep_embedding, cases_timestep_embedding, 1,
               "the angle is rounded to F32 and its frequency to 8 units", .magnitude = one);
