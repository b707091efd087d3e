// SPDX-License-Identifier: MIT
// Copies, conversions, regions, and views.
#include <math.h>

#include "case.h"
#include "oracle/quant_bound.h"

static const char why_copy[] =
    "unquantised types: exact, rounded to nearest even or towards zero; from a quantised type 64 "
    "units squared; into one the format's step (quant_bound.c)";
static const char why_move[] = "moves only";
static const double decode_bound = 64 * UNIT_F32 * UNIT_F32;

static double copy_bound(enum ggml_type from, enum ggml_type to) {
    if (from == to) return 0;
    if (ggml_is_quantized(to)) return conformance_quant_bound(to);
    return ggml_is_quantized(from) ? decode_bound : 0;
}

// --- conversions ---------------------------------------------------------------------------------

static const struct conformance_extents block_shapes[] = {
    {{256, 3, 2, 2}}, {{256, 1, 1, 1}}, {{512, 5, 1, 1}}, {{1024, 2, 3, 1}}, {{256, 0, 2, 1}},
};
enum { N_BLOCK_SHAPES = sizeof(block_shapes) / sizeof(block_shapes[0]) };

static struct conformance_extents shape_for(enum ggml_type a, enum ggml_type b, int s) {
    const bool blocks = ggml_blck_size(a) > 1 || ggml_blck_size(b) > 1;
    return blocks ? block_shapes[s % N_BLOCK_SHAPES] : conformance_shapes[s];
}

static int n_shapes_for(enum ggml_type a, enum ggml_type b) {
    const bool blocks = ggml_blck_size(a) > 1 || ggml_blck_size(b) > 1;
    return blocks ? N_BLOCK_SHAPES : conformance_n_shapes;
}

static struct ggml_tensor *source(struct conformance *c, enum ggml_type from, enum ggml_type to,
                                  struct conformance_extents ne, enum conformance_layout layout) {
    const bool whole = from != to && (from == GGML_TYPE_I32 || to == GGML_TYPE_I32);
    return conformance_range(c, from, ne, layout, whole ? -30000 : -1, whole ? 30000 : 1);
}

static void cpy_case(struct conformance *c, enum ggml_type from, enum ggml_type to,
                     struct conformance_extents ne, enum conformance_layout from_layout,
                     enum conformance_layout to_layout, bool reshaped) {
    struct conformance_extents ne_to = ne;
    if (reshaped) ne_to = extents(ne.ne[0], ne.ne[3], ne.ne[1] * ne.ne[2], 1);
    if (!conformance_can_lay_out(from, ne, from_layout) ||
        !conformance_can_lay_out(to, ne_to, to_layout) ||
        !conformance_case(c, "%s,%s/%s/%s,%s%s", ggml_type_name(from), ggml_type_name(to),
                          conformance_shape(c, ne), conformance_layout_name(from_layout),
                          conformance_layout_name(to_layout), reshaped ? "/reshaped" : "")) {
        return;
    }
    struct ggml_tensor *a = source(c, from, to, ne, from_layout);
    struct ggml_tensor *b = conformance_input(c, to, ne_to, to_layout);
    conformance_bound(c, copy_bound(from, to));
    conformance_check(c, ggml_cpy(c->ctx, a, b));
}

static void cast_case(struct conformance *c, enum ggml_type from, enum ggml_type to,
                      struct conformance_extents ne, enum conformance_layout layout) {
    if (!conformance_can_lay_out(from, ne, layout) ||
        !conformance_case(c, "%s,%s/%s/%s/cast", ggml_type_name(from), ggml_type_name(to),
                          conformance_shape(c, ne), conformance_layout_name(layout))) {
        return;
    }
    struct ggml_tensor *a = source(c, from, to, ne, layout);
    conformance_bound(c, copy_bound(from, to));
    conformance_check(c, ggml_cast(c->ctx, a, to));
}

static void conversions(struct conformance *c, enum ggml_type from, enum ggml_type to) {
    for (int s = 0; s < n_shapes_for(from, to); ++s) {
        const struct conformance_extents ne = shape_for(from, to, s);
        const enum conformance_layout layout = (enum conformance_layout)(1 + s % 4);
        cpy_case(c, from, to, ne, PACKED, PACKED, false);
        cpy_case(c, from, to, ne, layout, PACKED, s % 2 == 0);
        cpy_case(c, from, to, ne, PACKED, layout, s % 2 == 1);
        cpy_case(c, from, to, ne, layout, (enum conformance_layout)(1 + (s + 1) % 4), false);
        if (s < 4) cast_case(c, from, to, ne, s % 2 == 0 ? PACKED : layout);
    }
}

static void special_conversions(struct conformance *c) {
    static const double values[] = {
        0,      -0.0, INFINITY, -INFINITY, NAN,     65504,     65520,    -65519.9, 1e-8,     6e-8,
        3.0e-8, 2049, 2051,     1e38,      0x1p-24, 0x1.8p-25, 0x1p-130, 257,      258.9999, 259.5};
    const struct conformance_fill fill = {FILL_CYCLE, 0, 0, values,
                                          sizeof(values) / sizeof(values[0])};
    for (int a = 0; a < 3; ++a) {
        for (int b = 0; b < 3; ++b) {
            if (!conformance_case(c, "%s,%s/special", ggml_type_name(conformance_floats[a]),
                                  ggml_type_name(conformance_floats[b]))) {
                continue;
            }
            struct ggml_tensor *from =
                conformance_filled(c, conformance_floats[a], extents(61, 3, 1, 1), PACKED, fill);
            conformance_check(c, ggml_cast(c->ctx, from, conformance_floats[b]));
        }
    }
}

static void cases_cpy(struct conformance *c) {
    static const enum ggml_type raw[] = {GGML_TYPE_I8,  GGML_TYPE_I16,  GGML_TYPE_I64,
                                         GGML_TYPE_F64, GGML_TYPE_Q8_1, GGML_TYPE_Q8_K};
    for (int a = 0; a < 3; ++a) {
        for (int b = 0; b < 3; ++b)
            conversions(c, conformance_floats[a], conformance_floats[b]);
        for (int q = 0; q < conformance_n_quants; ++q) {
            conversions(c, conformance_floats[a], conformance_quants[q]);
            conversions(c, conformance_quants[q], conformance_floats[a]);
        }
    }
    conversions(c, GGML_TYPE_F32, GGML_TYPE_I32);
    conversions(c, GGML_TYPE_I32, GGML_TYPE_F32);
    conversions(c, GGML_TYPE_I32, GGML_TYPE_I32);
    for (int q = 0; q < conformance_n_quants; ++q)
        conversions(c, conformance_quants[q], conformance_quants[q]);
    for (size_t r = 0; r < sizeof(raw) / sizeof(raw[0]); ++r)
        conversions(c, raw[r], raw[r]);
    conversions(c, GGML_TYPE_Q4_K, GGML_TYPE_Q8_0);
    conversions(c, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0);
    special_conversions(c);
}
CONFORMANCE_OP(CPY, oracle_copy, cases_cpy, 0, why_copy, PLAIN);

// --- packed copies -------------------------------------------------------------------------------

static const enum ggml_type plain_types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16,
                                             GGML_TYPE_I32, GGML_TYPE_I16, GGML_TYPE_I8,
                                             GGML_TYPE_I64, GGML_TYPE_F64};
enum { N_PLAIN_TYPES = sizeof(plain_types) / sizeof(plain_types[0]) };

typedef struct ggml_tensor *(*copy_fn)(struct ggml_context *, struct ggml_tensor *);

static struct ggml_tensor *flat(struct ggml_context *ctx, struct ggml_tensor *a) {
    return ggml_cont_1d(ctx, a, ggml_nelements(a));
}

static struct ggml_tensor *wide(struct ggml_context *ctx, struct ggml_tensor *a) {
    return ggml_cont_2d(ctx, a, a->ne[0] * a->ne[1], a->ne[2] * a->ne[3]);
}

static struct ggml_tensor *high(struct ggml_context *ctx, struct ggml_tensor *a) {
    return ggml_cont_3d(ctx, a, a->ne[0], a->ne[1] * a->ne[2], a->ne[3]);
}

static struct ggml_tensor *swapped(struct ggml_context *ctx, struct ggml_tensor *a) {
    return ggml_cont_4d(ctx, a, a->ne[0], a->ne[3], a->ne[1], a->ne[2]);
}

static void copy_case(struct conformance *c, copy_fn copy, const char *form, enum ggml_type type,
                      struct conformance_extents ne, enum conformance_layout layout) {
    if (!conformance_can_lay_out(type, ne, layout) ||
        !conformance_case(c, "%s/%s/%s/%s", ggml_type_name(type), conformance_shape(c, ne),
                          conformance_layout_name(layout), form)) {
        return;
    }
    struct ggml_tensor *a = conformance_range(c, type, ne, layout, -100, 100);
    conformance_check(c, copy(c->ctx, a));
}

static void copies(struct conformance *c, copy_fn copy, const char *form, int n_shapes) {
    for (int t = 0; t < N_PLAIN_TYPES; ++t) {
        for (int s = 0; s < n_shapes; ++s) {
            copy_case(c, copy, form, plain_types[t], conformance_shapes[s],
                      (enum conformance_layout)(s % N_LAYOUTS));
            copy_case(c, copy, form, plain_types[t], conformance_shapes[s], TRANSPOSED);
        }
    }
    for (int q = 0; q < conformance_n_quants; ++q) {
        for (int s = 0; s < 4; ++s)
            copy_case(c, copy, form, conformance_quants[q], block_shapes[s],
                      (enum conformance_layout)s);
    }
}

static void cases_cont(struct conformance *c) {
    copies(c, ggml_cont, "like", 8);
    copies(c, flat, "1d", 3);
    copies(c, wide, "2d", 3);
    copies(c, high, "3d", 3);
    copies(c, swapped, "4d", 3);
}

// Programs make a DUP whose result has another type by hand.
static void dup_as_case(struct conformance *c, enum ggml_type from, enum ggml_type to,
                        enum conformance_layout layout) {
    const struct conformance_extents ne = extents(64, 3, 2, 1);
    if (!conformance_case(c, "%s,%s/%s/as", ggml_type_name(from), ggml_type_name(to),
                          conformance_layout_name(layout))) {
        return;
    }
    struct ggml_tensor *a = source(c, from, to, ne, layout);
    struct ggml_tensor *node = ggml_dup(c->ctx, ggml_new_tensor(c->ctx, to, 4, ne.ne));
    node->src[0] = a;
    conformance_bound(c, copy_bound(from, to));
    conformance_check(c, node);
}

static void cases_dup(struct conformance *c) {
    static const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_I16,
                                           GGML_TYPE_I32, GGML_TYPE_Q8_0};
    for (int i = 0; i < 25; ++i) {
        const enum ggml_type from = types[i / 5], to = types[i % 5];
        const bool whole = from == GGML_TYPE_I16 || from == GGML_TYPE_I32 || to == GGML_TYPE_I16 ||
                           to == GGML_TYPE_I32;
        if (from == to || (whole && (from == GGML_TYPE_Q8_0 || to == GGML_TYPE_Q8_0))) continue;
        dup_as_case(c, from, to, PACKED);
        dup_as_case(c, from, to, GAPS);
    }
    copies(c, ggml_dup, "new", conformance_n_shapes);
    copies(c, ggml_dup_inplace, "inplace", 3);
}

CONFORMANCE_OP(CONT, oracle_copy, cases_cont, 0, why_move, PLAIN);
CONFORMANCE_OP(DUP, oracle_copy, cases_dup, 0, why_move, PLAIN);

// A tensor that nothing is done to.
static void cases_none(struct conformance *c) {
    for (int t = 0; t < N_PLAIN_TYPES; ++t) {
        if (!conformance_case(c, "%s/leaf", ggml_type_name(plain_types[t]))) continue;
        conformance_check(
            c, conformance_range(c, plain_types[t], extents(33, 3, 1, 1), PACKED, -100, 100));
    }
}
CONFORMANCE_OP(NONE, oracle_read, cases_none, 0, why_move, PLAIN);

// --- regions -------------------------------------------------------------------------------------

// Index of b that lies at byte `at` of a, or -1.
static bool find_in_region(const struct ggml_tensor *node, int64_t at, int64_t i[4]) {
    const struct ggml_tensor *b = node->src[1];
    const int64_t size = (int64_t)ggml_type_size(node->type);
    const int64_t nb[4] = {size, node->op_params[0], node->op_params[1], node->op_params[2]};
    at -= node->op_params[3];
    for (i[3] = 0; i[3] < b->ne[3]; ++i[3]) {
        for (i[2] = 0; i[2] < b->ne[2]; ++i[2]) {
            for (i[1] = 0; i[1] < b->ne[1]; ++i[1]) {
                const int64_t rest = at - i[1] * nb[1] - i[2] * nb[2] - i[3] * nb[3];
                i[0] = rest / size;
                if (rest >= 0 && i[0] < b->ne[0]) return true;
            }
        }
    }
    return false;
}

static void oracle_region(const struct ggml_tensor *node, double *out) {
    const int64_t size = (int64_t)ggml_type_size(node->type);
    oracle_read(node->src[0], out);
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t i[4];
        if (!find_in_region(node, n * size, i)) continue;
        const double b = oracle_value(node->src[1], i[0], i[1], i[2], i[3]);
        out[n] = node->op == GGML_OP_ACC ? out[n] + b : b;
    }
}

typedef struct ggml_tensor *(*region_fn)(struct ggml_context *, struct ggml_tensor *,
                                         struct ggml_tensor *, size_t, size_t, size_t, size_t);

static const struct conformance_extents region_shapes[][2] = {
    {{{33, 5, 3, 2}}, {{7, 3, 2, 1}}},  {{{33, 5, 3, 2}}, {{33, 5, 3, 2}}},
    {{{64, 8, 1, 1}}, {{1, 8, 1, 1}}},  {{{17, 1, 1, 1}}, {{5, 1, 1, 1}}},
    {{{16, 4, 4, 1}}, {{16, 1, 4, 1}}}, {{{300, 40, 2, 1}}, {{299, 37, 2, 1}}},
};
enum { N_REGION_SHAPES = sizeof(region_shapes) / sizeof(region_shapes[0]) };

static void region_case(struct conformance *c, region_fn build, enum ggml_type type, int s,
                        enum conformance_layout layout, bool at_end, const char *form) {
    const struct conformance_extents ne = region_shapes[s][0], ne_b = region_shapes[s][1];
    if (!conformance_case(c, "%s/%s,%s/%s/%s/%s", ggml_type_name(type), conformance_shape(c, ne),
                          conformance_shape(c, ne_b), conformance_layout_name(layout),
                          at_end ? "end" : "start", form)) {
        return;
    }
    struct ggml_tensor *a = conformance_range(c, type, ne, PACKED, -100, 100);
    struct ggml_tensor *b = conformance_range(c, type, ne_b, layout, -100, 100);
    size_t offset = 0;
    for (int d = 0; d < GGML_MAX_DIMS && at_end; ++d)
        offset += (size_t)(ne.ne[d] - ne_b.ne[d]) * a->nb[d];
    conformance_check(c, build(c->ctx, a, b, a->nb[1], a->nb[2], a->nb[3], offset));
}

static void region_cases(struct conformance *c, region_fn build, enum ggml_type type,
                         const char *form) {
    for (int s = 0; s < N_REGION_SHAPES; ++s) {
        for (int l = PACKED; l <= ROTATED; ++l) {
            region_case(c, build, type, s, (enum conformance_layout)l, false, form);
            region_case(c, build, type, s, (enum conformance_layout)l, true, form);
        }
    }
}

static struct ggml_tensor *set_1d(struct ggml_context *ctx, struct ggml_tensor *a,
                                  struct ggml_tensor *b, size_t nb1, size_t nb2, size_t nb3,
                                  size_t offset) {
    (void)nb1;
    (void)nb2;
    (void)nb3;
    return ggml_set_1d(ctx, a, b, offset);
}

static struct ggml_tensor *set_2d_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                          struct ggml_tensor *b, size_t nb1, size_t nb2, size_t nb3,
                                          size_t offset) {
    (void)nb2;
    (void)nb3;
    return ggml_set_2d_inplace(ctx, a, b, nb1, offset);
}

static void cases_set(struct conformance *c) {
    for (int t = 0; t < N_PLAIN_TYPES; ++t) {
        region_cases(c, ggml_set, plain_types[t], "new");
        region_cases(c, ggml_set_inplace, plain_types[t], "inplace");
        region_cases(c, set_1d, plain_types[t], "1d");
        region_cases(c, set_2d_inplace, plain_types[t], "2d-inplace");
    }
}

static void cases_acc(struct conformance *c) {
    region_cases(c, ggml_acc, GGML_TYPE_F32, "new");
    region_cases(c, ggml_acc_inplace, GGML_TYPE_F32, "inplace");
}

CONFORMANCE_OP(SET, oracle_region, cases_set, 0, why_move, PLAIN);
CONFORMANCE_OP(ACC, oracle_region, cases_acc, 0, "one F32 addition, correctly rounded", PLAIN);
