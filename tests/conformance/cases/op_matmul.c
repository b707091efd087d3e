// SPDX-License-Identifier: MIT
// Products of matrices, also with chosen ones, with weights of every type.
#include <math.h>

#include "case.h"

static const char why_product[] = "k additions, errors as in a random walk, 16 k units squared; "
                                  "with half-precision operands their "
                                  "unit squared, since devices may round the other operand to "
                                  "match; with quantised weights 2.5e-4: "
                                  "the other operand may be rounded to 127 steps per block, which "
                                  "makes 1.6e-5 of uniform numbers, "
                                  "four standard deviations of a single element";

static double product_bound(enum ggml_type a, enum ggml_type b, int64_t k) {
    if (ggml_is_quantized(a)) return 2.5e-4;
    const double unit = fmax(a == GGML_TYPE_F32 ? 0 : conformance_unit(a),
                             b == GGML_TYPE_F32 ? 0 : conformance_unit(b));
    return 16 * (double)(k + 4) * UNIT_F32 * UNIT_F32 + unit * unit;
}

// Weights: the plain types and the quantised ones.
static int n_weights(void) {
    return 3 + conformance_n_quants;
}

static enum ggml_type weight_type(int w) {
    return w < 3 ? conformance_floats[w] : conformance_quants[w - 3];
}

struct product {
    int64_t m, n, k;          // k in blocks for quantised weights
    int64_t batch2, batch3;   // of the weights
    int64_t repeat2, repeat3; // of the other operand, for each of theirs
};

static void mul_mat_case(struct conformance *c, enum ggml_type a_type, enum ggml_type b_type,
                         struct product p, enum conformance_layout a_layout,
                         enum conformance_layout b_layout, enum ggml_prec prec) {
    const int64_t k = p.k * ggml_blck_size(a_type);
    const struct conformance_extents ne_a = extents(k, p.m, p.batch2, p.batch3);
    const struct conformance_extents ne_b =
        extents(k, p.n, p.batch2 * p.repeat2, p.batch3 * p.repeat3);
    if (!conformance_case(c, "%s,%s/m=%d,n=%d,k=%d/batch=%dx%d,%dx%d/%s,%s%s",
                          ggml_type_name(a_type), ggml_type_name(b_type), (int)p.m, (int)p.n,
                          (int)k, (int)p.batch2, (int)p.batch3, (int)ne_b.ne[2], (int)ne_b.ne[3],
                          conformance_layout_name(a_layout), conformance_layout_name(b_layout),
                          prec == GGML_PREC_F32 ? "/prec-f32" : "")) {
        return;
    }
    struct ggml_tensor *a = conformance_input(c, a_type, ne_a, a_layout);
    struct ggml_tensor *b = conformance_input(c, b_type, ne_b, b_layout);
    struct ggml_tensor *node = ggml_mul_mat(c->ctx, a, b);
    if (prec == GGML_PREC_F32 && !ggml_tensor_is_error(node)) ggml_prec_set_acc(node, prec);
    conformance_bound(c, product_bound(a_type, b_type, k));
    conformance_check(c, node);
}

static const struct product float_products[] = {
    {1, 1, 1, 1, 1, 1, 1},     {1, 1, 257, 1, 1, 1, 1},   {17, 3, 64, 1, 1, 1, 1},
    {16, 16, 256, 1, 1, 1, 1}, {33, 1, 100, 1, 1, 1, 1},  {1, 33, 31, 1, 1, 1, 1},
    {5, 7, 33, 2, 3, 1, 1},    {4, 2, 48, 1, 1, 2, 3},    {3, 5, 17, 2, 1, 3, 2},
    {129, 9, 128, 1, 1, 1, 1}, {7, 31, 1031, 1, 1, 1, 1}, {0, 3, 16, 1, 1, 1, 1},
    {3, 0, 16, 1, 1, 1, 1},    {64, 65, 66, 1, 2, 2, 1},
};
static const struct product block_products[] = {
    {1, 1, 1, 1, 1, 1, 1},  {17, 3, 1, 1, 1, 1, 1}, {16, 16, 2, 1, 1, 1, 1}, {33, 1, 3, 1, 1, 1, 1},
    {5, 7, 1, 2, 3, 1, 1},  {4, 2, 2, 1, 1, 2, 3},  {3, 5, 1, 2, 1, 3, 2},   {65, 9, 2, 1, 1, 1, 1},
    {9, 33, 1, 1, 1, 1, 1}, {0, 3, 1, 1, 1, 1, 1},  {3, 0, 1, 1, 1, 1, 1},   {2, 1, 16, 1, 1, 1, 1},
};
enum {
    N_FLOAT_PRODUCTS = sizeof(float_products) / sizeof(float_products[0]),
    N_BLOCK_PRODUCTS = sizeof(block_products) / sizeof(block_products[0]),
};

static void products_of(struct conformance *c, enum ggml_type a, enum ggml_type b) {
    const bool quantised = ggml_is_quantized(a);
    for (int i = 0; i < (quantised ? N_BLOCK_PRODUCTS : N_FLOAT_PRODUCTS); ++i) {
        const struct product p = quantised ? block_products[i] : float_products[i];
        const enum conformance_layout layout = (enum conformance_layout)(1 + i % 3);
        mul_mat_case(c, a, b, p, PACKED, PACKED, GGML_PREC_DEFAULT);
        if (b == GGML_TYPE_F32 || i % 3 == 0)
            mul_mat_case(c, a, b, p, layout, layout, GGML_PREC_DEFAULT);
        if (b == GGML_TYPE_F32 && i % 2 == 0)
            mul_mat_case(c, a, b, p, PACKED, layout, GGML_PREC_F32);
        if (i % 4 == 1) mul_mat_case(c, a, b, p, PACKED, TRANSPOSED, GGML_PREC_DEFAULT);
    }
}

enum { HADAMARD = 64 };

// The hint permits to ignore the weights, so they are what it promises.
static void hadamard_cases(struct conformance *c) {
    static double matrix[HADAMARD * HADAMARD];
    for (int i = 0; i < HADAMARD * HADAMARD; ++i) {
        int common = (i / HADAMARD) & (i % HADAMARD);
        matrix[i] = 1 / sqrt(HADAMARD);
        for (; common; common &= common - 1)
            matrix[i] = -matrix[i];
    }
    const struct conformance_fill fill = {FILL_CYCLE, 0, 0, matrix, HADAMARD * HADAMARD};
    for (int n = 1; n < 12; n += 5) {
        if (!conformance_case(c, "f32,f32/hadamard/n=%d", n)) continue;
        struct ggml_tensor *a =
            conformance_filled(c, GGML_TYPE_F32, extents(HADAMARD, HADAMARD, 1, 1), PACKED, fill);
        struct ggml_tensor *b =
            conformance_input(c, GGML_TYPE_F32, extents(HADAMARD, n, 2, 1), PACKED);
        struct ggml_tensor *node = ggml_mul_mat(c->ctx, a, b);
        ggml_mul_mat_set_hint(node, GGML_HINT_SRC0_IS_HADAMARD);
        conformance_bound(c, product_bound(GGML_TYPE_F32, GGML_TYPE_F32, HADAMARD));
        conformance_check(c, node);
    }
}

static void cases_mul_mat(struct conformance *c) {
    for (int w = 0; w < n_weights(); ++w) {
        for (int t = 0; t < 3; ++t)
            products_of(c, weight_type(w), conformance_floats[t]);
    }
    hadamard_cases(c);
}
CONFORMANCE_OP(MUL_MAT, oracle_mul_mat, cases_mul_mat, 1, why_product,
               .magnitude = oracle_mul_mat_magnitude);

// --- chosen matrices -----------------------------------------------------------------------------

struct selection {
    int64_t m, k; // k in blocks
    int64_t experts, slots, tokens;
    int64_t rows; // of the other operand per token: 1 or slots
};

static const struct selection selections[] = {
    {1, 1, 1, 1, 1, 1},   {17, 2, 4, 2, 1, 1},  {16, 1, 8, 4, 7, 4}, {33, 3, 3, 3, 5, 1},
    {5, 1, 16, 2, 33, 2}, {64, 2, 2, 2, 16, 1}, {3, 1, 5, 6, 3, 3},  {8, 1, 4, 2, 0, 1},
};
enum { N_SELECTIONS = sizeof(selections) / sizeof(selections[0]) };

static void mul_mat_id_case(struct conformance *c, enum ggml_type a_type, enum ggml_type b_type,
                            struct selection s, enum conformance_layout layout,
                            enum conformance_layout ids_layout) {
    const int64_t k = s.k * (ggml_is_quantized(a_type) ? ggml_blck_size(a_type) : 37);
    if (!conformance_case(c, "%s,%s/m=%d,k=%d/%d-of-%d,tokens=%d,rows=%d/%s,%s",
                          ggml_type_name(a_type), ggml_type_name(b_type), (int)s.m, (int)k,
                          (int)s.slots, (int)s.experts, (int)s.tokens, (int)s.rows,
                          conformance_layout_name(layout), conformance_layout_name(ids_layout))) {
        return;
    }
    struct ggml_tensor *a = conformance_input(c, a_type, extents(k, s.m, s.experts, 1), layout);
    struct ggml_tensor *b = conformance_input(c, b_type, extents(k, s.rows, s.tokens, 1), layout);
    struct ggml_tensor *ids = conformance_indices(
        c, GGML_TYPE_I32, extents(s.slots, s.tokens, 1, 1), ids_layout, s.experts);
    conformance_bound(c, product_bound(a_type, b_type, k));
    conformance_check(c, ggml_mul_mat_id(c->ctx, a, b, ids));
}

static void cases_mul_mat_id(struct conformance *c) {
    for (int w = 0; w < n_weights(); ++w) {
        for (int t = 0; t < 3; ++t) {
            for (int s = 0; s < N_SELECTIONS; ++s) {
                const enum conformance_layout ids = s % 3 == 2 ? TRANSPOSED : s % 3 ? GAPS : PACKED;
                mul_mat_id_case(c, weight_type(w), conformance_floats[t], selections[s], PACKED,
                                ids);
                if (t == 0)
                    mul_mat_id_case(c, weight_type(w), GGML_TYPE_F32, selections[s],
                                    s % 2 ? PERMUTED : GAPS, PACKED);
            }
        }
    }
}
CONFORMANCE_OP(MUL_MAT_ID, oracle_mul_mat_id, cases_mul_mat_id, 1, why_product,
               .magnitude = oracle_mul_mat_id_magnitude);

// --- outer products ------------------------------------------------------------------------------

static const struct product outer_products[] = {
    {1, 1, 1, 1, 1, 1, 1},     {33, 5, 7, 1, 1, 1, 1},  {64, 16, 33, 2, 1, 1, 1},
    {32, 3, 5, 1, 1, 2, 3},    {96, 1, 17, 2, 3, 1, 1}, {40, 9, 1, 1, 2, 2, 1},
    {256, 4, 100, 1, 1, 1, 1}, {8, 3, 0, 1, 1, 1, 1},
};
enum { N_OUTER_PRODUCTS = sizeof(outer_products) / sizeof(outer_products[0]) };

static void out_prod_case(struct conformance *c, enum ggml_type a_type, enum ggml_type b_type,
                          struct product p, enum conformance_layout a_layout,
                          enum conformance_layout b_layout) {
    const int64_t block = ggml_blck_size(a_type);
    const int64_t m = (p.m + block - 1) / block * block;
    if (!conformance_case(c, "%s,%s/m=%d,n=%d,k=%d/batch=%dx%d,%dx%d/%s,%s", ggml_type_name(a_type),
                          ggml_type_name(b_type), (int)m, (int)p.n, (int)p.k, (int)p.batch2,
                          (int)p.batch3, (int)(p.batch2 * p.repeat2), (int)(p.batch3 * p.repeat3),
                          conformance_layout_name(a_layout), conformance_layout_name(b_layout))) {
        return;
    }
    struct ggml_tensor *a =
        conformance_input(c, a_type, extents(m, p.k, p.batch2, p.batch3), a_layout);
    struct ggml_tensor *b = conformance_input(
        c, b_type, extents(p.n, p.k, p.batch2 * p.repeat2, p.batch3 * p.repeat3), b_layout);
    conformance_bound(c, product_bound(a_type, b_type, p.k));
    conformance_check(c, ggml_out_prod(c->ctx, a, b));
}

static void cases_out_prod(struct conformance *c) {
    for (int w = 0; w < n_weights(); ++w) {
        for (int i = 0; i < N_OUTER_PRODUCTS; ++i) {
            const struct product p = outer_products[i];
            out_prod_case(c, weight_type(w), GGML_TYPE_F32, p, PACKED, PACKED);
            out_prod_case(c, weight_type(w), GGML_TYPE_F32, p, PACKED, TRANSPOSED);
            out_prod_case(c, weight_type(w), GGML_TYPE_F32, p, (enum conformance_layout)(1 + i % 3),
                          (enum conformance_layout)(1 + i % 3));
        }
    }
}
CONFORMANCE_OP(OUT_PROD, oracle_out_prod, cases_out_prod, 1, why_product,
               .magnitude = oracle_out_prod_magnitude);
