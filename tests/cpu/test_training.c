// SPDX-License-Identifier: MIT
// Gradients, losses, optimiser steps and functions of the application.
#include "cpu_test.h"

#include <stdatomic.h>
#include <stdlib.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static const struct extents shapes[] = {{{1, 1, 1, 1}}, {{7, 3, 2, 2}}, {{600, 40, 1, 2}}};

static double get(const struct ggml_tensor *t, const int64_t *i) {
    return test_get(t, i[0], i[1], i[2], i[3]);
}

static double row_dot(const struct ggml_tensor *a, const struct ggml_tensor *b, const int64_t *i) {
    double sum = 0;
    for (int64_t k = 0; k < a->ne[0]; ++k)
        sum += test_get(a, k, i[1], i[2], i[3]) * test_get(b, k, i[1], i[2], i[3]);
    return sum;
}

static double silu_back_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)context;
    const double x = get(y->src[1], i), s = 1 / (1 + exp(-x));
    return get(y->src[0], i) * s * (1 + x * (1 - s));
}

static const float param = 0.25f; // eps or scale

static double rms_norm_back_oracle(const struct ggml_tensor *y, const int64_t *i,
                                   const void *context) {
    (void)context;
    const struct ggml_tensor *g = y->src[0], *x = y->src[1];
    const double n = (double)x->ne[0], s = row_dot(x, x, i), p = row_dot(g, x, i);
    const double eps = (double)param;
    return (get(g, i) - get(x, i) * p / (s + n * eps)) / sqrt(s / n + eps);
}

static double soft_max_back_oracle(const struct ggml_tensor *y, const int64_t *i,
                                   const void *context) {
    (void)context;
    const struct ggml_tensor *g = y->src[0], *p = y->src[1];
    return (double)param * get(p, i) * (get(g, i) - row_dot(g, p, i));
}

static void test_gradients(void **state) {
    (void)state;
    for (int k = 0; k < COUNT(shapes); ++k) {
        struct ggml_context *ctx = test_context(8);
        struct ggml_tensor *g = test_gapped(ctx, GGML_TYPE_F32, shapes[k], 1, -1, 2);
        struct ggml_tensor *x = test_gapped(ctx, GGML_TYPE_F32, shapes[k], 2, -1, 3);
        struct ggml_tensor *p = test_gapped(ctx, GGML_TYPE_F32, shapes[k], 2, 0, 0.01f);
        test_against(ctx, ggml_silu_back(ctx, g, x), silu_back_oracle, NULL, "silu_back");
        test_against(ctx, ggml_rms_norm_back(ctx, g, x, param), rms_norm_back_oracle, NULL,
                     "rms_norm_back");
        test_against(ctx, ggml_soft_max_ext_back(ctx, g, p, param, 0), soft_max_back_oracle, NULL,
                     "soft_max_back");
        struct ggml_tensor *gh = test_gapped(ctx, GGML_TYPE_F16, shapes[k], 1, -1, 2);
        struct ggml_tensor *xh = test_gapped(ctx, GGML_TYPE_F16, shapes[k], 2, -1, 3);
        test_against(ctx, ggml_silu_back(ctx, gh, xh), silu_back_oracle, NULL, "silu_back");
        ggml_free(ctx);
    }
}

static double repeat_back_oracle(const struct ggml_tensor *y, const int64_t *i,
                                 const void *context) {
    (void)context;
    const struct ggml_tensor *a = y->src[0];
    double sum = 0;
    for (int64_t e = 0; e < ggml_nelements(a); ++e) {
        const int64_t r = e / a->ne[0];
        const int64_t at[4] = {e % a->ne[0], r % a->ne[1], r / a->ne[1] % a->ne[2],
                               r / a->ne[1] / a->ne[2]};
        bool counts = true;
        for (int d = 0; d < 4; ++d)
            counts = counts && at[d] % y->ne[d] == i[d];
        if (counts) sum += get(a, at);
    }
    return sum;
}

static void test_repeat_back(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(8);
    struct ggml_tensor *a =
        test_gapped(ctx, GGML_TYPE_F32, (struct extents){{260, 3, 4, 2}}, 3, -1, 2);
    for (int k = 0; k < 3; ++k) {
        const int64_t ne[3][4] = {{1, 1, 1, 1}, {130, 3, 1, 2}, {260, 1, 4, 1}};
        struct ggml_tensor *like = ggml_new_tensor(ctx, GGML_TYPE_F32, 4, ne[k]);
        test_against(ctx, ggml_repeat_back(ctx, a, like), repeat_back_oracle, NULL, "repeat_back");
    }
    ggml_free(ctx);
}

// --- products and rows of every type ---------------------------------------------------

// Random numbers as the type, and what they are then as F32.
static struct ggml_tensor *typed_tensor(struct ggml_context *ctx, enum ggml_type type,
                                        struct extents shape, uint32_t seed,
                                        struct ggml_tensor **out_values) {
    struct ggml_tensor *values = test_tensor(ctx, GGML_TYPE_F32, shape, seed, -1, 1);
    struct ggml_tensor *t = ggml_cast(ctx, values, type);
    assert_null(ggml_tensor_error(t));
    assert_int_equal(test_compute(test_graph(ctx, t), 2), GGML_STATUS_SUCCESS);
    struct ggml_tensor *leaf = ggml_new_tensor(ctx, type, 4, shape.ne);
    memcpy(leaf->data, t->data, ggml_nbytes(t));
    struct ggml_tensor *back = ggml_cast(ctx, leaf, GGML_TYPE_F32);
    assert_int_equal(test_compute(test_graph(ctx, back), 2), GGML_STATUS_SUCCESS);
    for (int64_t i = 0; i < ggml_nelements(back); ++i) {
        assert_float_equal(((float *)back->data)[i], ((float *)values->data)[i], 1.01f);
    }
    *out_values = back;
    return leaf;
}

static const enum ggml_type types[] = {
    GGML_TYPE_F32,    GGML_TYPE_F16,    GGML_TYPE_BF16,  GGML_TYPE_Q4_0,  GGML_TYPE_Q4_1,
    GGML_TYPE_Q5_0,   GGML_TYPE_Q5_1,   GGML_TYPE_Q8_0,  GGML_TYPE_Q8_1,  GGML_TYPE_Q2_K,
    GGML_TYPE_Q3_K,   GGML_TYPE_Q4_K,   GGML_TYPE_Q5_K,  GGML_TYPE_Q6_K,  GGML_TYPE_Q8_K,
    GGML_TYPE_IQ4_NL, GGML_TYPE_IQ4_XS, GGML_TYPE_TQ1_0, GGML_TYPE_TQ2_0, GGML_TYPE_MXFP4,
    GGML_TYPE_NVFP4,  GGML_TYPE_Q1_0,   GGML_TYPE_Q2_0,
};

static double out_prod_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    const struct ggml_tensor *a = context, *b = y->src[1];
    double sum = 0;
    for (int64_t t = 0; t < a->ne[1]; ++t)
        sum += test_get(a, i[0], t, i[2] / (b->ne[2] / a->ne[2]), i[3] / (b->ne[3] / a->ne[3])) *
               test_get(b, i[1], t, i[2], i[3]);
    return sum;
}

static double add_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    const struct ggml_tensor *a = context, *b = y->src[1];
    return get(a, i) + test_get(b, i[0] % b->ne[0], i[1] % b->ne[1], i[2] % b->ne[2], 0);
}

static double get_rows_back_oracle(const struct ggml_tensor *y, const int64_t *i,
                                   const void *context) {
    const struct ggml_tensor *a = context, *ids = y->src[1];
    double sum = 0;
    for (int64_t r = 0; r < ids->ne[0]; ++r) {
        if (((const int32_t *)ids->data)[r] == i[1]) sum += test_get(a, i[0], r, 0, 0);
    }
    return sum;
}

static void test_every_type(void **state) {
    (void)state;
    for (int k = 0; k < COUNT(types); ++k) {
        struct ggml_context *ctx = test_context(8);
        struct ggml_tensor *values;
        struct ggml_tensor *a =
            typed_tensor(ctx, types[k], (struct extents){{768, 5, 2, 1}}, 4, &values);
        struct ggml_tensor *b =
            test_gapped(ctx, GGML_TYPE_F32, (struct extents){{17, 5, 4, 1}}, 5, -1, 1);
        test_against(ctx, ggml_out_prod(ctx, a, b), out_prod_oracle, values, "out_prod");
        struct ggml_tensor *bias =
            test_tensor(ctx, GGML_TYPE_F32, (struct extents){{768, 1, 2, 1}}, 6, -1, 1);
        if (types[k] != GGML_TYPE_F32)
            test_against(ctx, ggml_add_cast(ctx, a, bias, GGML_TYPE_F32), add_oracle, values,
                         "add");
        struct ggml_tensor *rows =
            typed_tensor(ctx, types[k], (struct extents){{768, 20, 1, 1}}, 4, &values);
        struct ggml_tensor *ids = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, 20);
        for (int i = 0; i < 20; ++i)
            ((int32_t *)ids->data)[i] = i * 7 % 6;
        struct ggml_tensor *like = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 768, 8);
        struct ggml_tensor *back = ggml_get_rows_back(ctx, rows, ids, like);
        test_against(ctx, back, get_rows_back_oracle, values, "get_rows_back");
        ((int32_t *)ids->data)[13] = 8;
        assert_int_equal(test_compute(test_graph(ctx, back), 2), GGML_STATUS_FAILED);
        ggml_free(ctx);
    }
}

static void test_traits(void **state) {
    (void)state;
    enum { N = 768 };
    for (int k = 0; k < COUNT(types); ++k) {
        const struct ggml_type_traits_cpu *traits = ggml_get_type_traits_cpu(types[k]);
        assert_in_range(traits->nrows, 1, 2);
        if (!traits->vec_dot) continue;
        struct ggml_context *ctx = test_context(8);
        const struct extents shape = {{N, 2, 1, 1}};
        struct ggml_tensor *x_values, *y_values;
        struct ggml_tensor *x = typed_tensor(ctx, types[k], shape, 4, &x_values);
        struct ggml_tensor *y = typed_tensor(ctx, traits->vec_dot_type, shape, 5, &y_values);
        struct ggml_tensor *product = ggml_mul_mat(ctx, x, y);
        assert_int_equal(test_compute(test_graph(ctx, product), 2), GGML_STATUS_SUCCESS);
        float dots[4];
        traits->vec_dot(N, dots, 2, x->data, x->nb[1], y->data, y->nb[1], 2);
        for (int i = 0; i < 4; ++i) {
            double want = 0;
            for (int64_t e = 0; e < N; ++e)
                want += test_get(x_values, e, i % 2, 0, 0) * test_get(y_values, e, i / 2, 0, 0);
            assert_float_equal(dots[i], want, 1e-4);
            assert_float_equal(test_get(product, i % 2, i / 2, 0, 0), want, 1e-4);
        }
        struct ggml_tensor *row = ggml_new_tensor_1d(ctx, types[k], N);
        struct ggml_tensor *cast = ggml_cast(ctx, x_values, types[k]);
        assert_int_equal(test_compute(test_graph(ctx, cast), 1), GGML_STATUS_SUCCESS);
        traits->from_float((const float *)x_values->data, row->data, N);
        assert_memory_equal(row->data, cast->data, ggml_nbytes(row));
        ggml_free(ctx);
    }
}

static void test_dots_in_whole_numbers_have_the_same_bits_at_every_level(void **state) {
    (void)state;
    enum { N = 2 * 768 };
    static const enum ggml_type whole[] = {GGML_TYPE_Q4_0, GGML_TYPE_Q8_0, GGML_TYPE_Q4_K,
                                           GGML_TYPE_Q6_K};
    for (int k = 0; k < COUNT(whole); ++k) {
        struct ggml_context *ctx = test_context(8);
        const struct extents shape = {{N, 2, 1, 1}};
        float first[4] = {0};
        struct ggml_tensor *values;
        struct ggml_tensor *x = typed_tensor(ctx, whole[k], shape, 6, &values);
        struct ggml_tensor *y =
            typed_tensor(ctx, ggml_get_type_traits_cpu(whole[k])->vec_dot_type, shape, 7, &values);
        for (int level = 0; level < test_level_count(); ++level) {
            float dots[4];
            test_use_level(level);
            const ggml_vec_dot_t vec_dot = ggml_get_type_traits_cpu(whole[k])->vec_dot;
            vec_dot(N, dots, 2, x->data, x->nb[1], y->data, y->nb[1], 2);
            if (level == 0) memcpy(first, dots, sizeof(first));
            assert_memory_equal(dots, first, sizeof(first));
            for (int i = 0; i < 4; ++i) {
                float single;
                vec_dot(N, &single, 0, (char *)x->data + (size_t)(i % 2) * x->nb[1], 0,
                        (char *)y->data + (size_t)(i / 2) * y->nb[1], 0, 1);
                assert_memory_equal(&single, &first[i], sizeof(single));
            }
        }
        test_use_best_level();
        ggml_free(ctx);
    }
}

static void test_adding_to_a_quantised_tensor_in_place(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(8);
    struct ggml_tensor *values;
    struct ggml_tensor *a =
        typed_tensor(ctx, GGML_TYPE_Q8_0, (struct extents){{1088, 21, 1, 1}}, 4, &values);
    struct ggml_tensor *b =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{1088, 21, 1, 1}}, 6, -1, 1);
    assert_int_equal(test_compute(test_graph(ctx, ggml_add_inplace(ctx, a, b)), 2), 0);
    struct ggml_tensor *y = ggml_cast(ctx, a, GGML_TYPE_F32);
    assert_int_equal(test_compute(test_graph(ctx, y), 2), 0);
    for (int i = 0; i < 1088 * 21; ++i) {
        const float want = ((float *)values->data)[i] + ((float *)b->data)[i];
        assert_float_equal(((float *)y->data)[i], want, 0.01f);
    }
    ggml_free(ctx);
}

static void test_copies_between_numbers(void **state) {
    (void)state;
    static const enum ggml_type plain[] = {GGML_TYPE_I8,  GGML_TYPE_I16, GGML_TYPE_I32,
                                           GGML_TYPE_I64, GGML_TYPE_F64, GGML_TYPE_F32};
    struct ggml_context *ctx = test_context(8);
    struct ggml_tensor *x =
        test_gapped(ctx, GGML_TYPE_F32, (struct extents){{31, 7, 3, 1}}, 9, -120, 120);
    for (int k = 0; k < COUNT(plain) * COUNT(plain); ++k) {
        struct ggml_tensor *first = ggml_cast(ctx, x, plain[k % COUNT(plain)]);
        struct ggml_tensor *columns = ggml_transpose(ctx, first);
        struct ggml_tensor *second = ggml_cast(ctx, columns, plain[k / COUNT(plain)]);
        struct ggml_tensor *y = ggml_cast(ctx, second, GGML_TYPE_F32);
        assert_int_equal(test_compute(test_graph(ctx, y), 3), 0);
        const bool whole = k % COUNT(plain) < 4 || k / COUNT(plain) < 4;
        for (int i = 0; i < 31 * 7; ++i) {
            const float want = ggml_get_f32_nd(x, i / 7, i % 7, 1, 0);
            assert_float_equal(ggml_get_f32_nd(y, i % 7, i / 7, 1, 0), whole ? truncf(want) : want,
                               0);
        }
    }
    struct ggml_tensor *big = ggml_new_tensor_1d(ctx, GGML_TYPE_F64, 4);
    memcpy(big->data, (const double[4]){1e300, -1e300, (double)NAN, 9007199254740991.0}, 32);
    struct ggml_tensor *whole = ggml_cast(ctx, big, GGML_TYPE_I64);
    assert_int_equal(test_compute(test_graph(ctx, whole), 1), 0);
    const int64_t want[4] = {INT64_MAX, INT64_MIN, INT64_MIN, 9007199254740991};
    assert_memory_equal(whole->data, want, sizeof(want));
    // Rounded to F32 first, both would be ties.
    memcpy(big->data, (const double[4]){0x1.002p0 + 0x1p-40, 0x1p-40 - 0x1.006p0, 1e9, -1e300}, 32);
    struct ggml_tensor *halves = ggml_cast(ctx, big, GGML_TYPE_F16);
    assert_int_equal(test_compute(test_graph(ctx, halves), 1), 0);
    const uint16_t want_halves[4] = {0x3C01, 0xBC01, 0x7C00, 0xFC00};
    assert_memory_equal(halves->data, want_halves, sizeof(want_halves));
    ggml_free(ctx);
}

static void test_grid_types_are_read_but_not_stored(void **state) {
    (void)state;
    static const enum ggml_type grids[] = {GGML_TYPE_IQ1_S,  GGML_TYPE_IQ1_M, GGML_TYPE_IQ2_XXS,
                                           GGML_TYPE_IQ2_XS, GGML_TYPE_IQ2_S, GGML_TYPE_IQ3_XXS,
                                           GGML_TYPE_IQ3_S};
    struct ggml_context *ctx = test_context(8);
    ggml_backend_t cpu = ggml_backend_cpu_init();
    struct ggml_tensor *ids = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, 2);
    struct ggml_tensor *b = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 256, 2);
    for (int k = 0; k < COUNT(grids); ++k) {
        struct ggml_tensor *a = ggml_new_tensor_2d(ctx, grids[k], 256, 2);
        const struct ggml_type_traits_cpu *traits = ggml_get_type_traits_cpu(grids[k]);
        assert_true(ggml_backend_supports_op(cpu, ggml_mul_mat(ctx, a, b)));
        assert_true(ggml_backend_supports_op(cpu, ggml_get_rows(ctx, a, ids)));
        assert_true(ggml_backend_supports_op(cpu, ggml_out_prod(ctx, a, b)));
        assert_true(ggml_backend_supports_op(cpu, ggml_cpy(ctx, a, b)));
        assert_false(ggml_backend_supports_op(cpu, ggml_add(ctx, a, b)));
        assert_false(ggml_backend_supports_op(cpu, ggml_cpy(ctx, b, a)));
        assert_int_equal(test_compute(test_graph(ctx, ggml_cpy(ctx, b, a)), 1), GGML_STATUS_FAILED);
        assert_null(traits->from_float);
        assert_int_equal(traits->vec_dot_type, GGML_TYPE_Q8_K);
    }
    ggml_backend_free(cpu);
    ggml_free(ctx);
}

// Dot products with a row of Q8_K, at every level.
static void test_dots_with_grid_types(void **state) {
    (void)state;
    enum { N = 512 };
    static const enum ggml_type grids[] = {GGML_TYPE_IQ1_S,  GGML_TYPE_IQ1_M, GGML_TYPE_IQ2_XXS,
                                           GGML_TYPE_IQ2_XS, GGML_TYPE_IQ2_S, GGML_TYPE_IQ3_XXS,
                                           GGML_TYPE_IQ3_S};
    uint8_t row[N * 2];
    for (int k = 0; k < COUNT(grids) * test_level_count(); ++k) {
        struct ggml_context *ctx = test_context(8);
        const enum ggml_type type = grids[k % COUNT(grids)];
        struct ggml_tensor *values;
        struct ggml_tensor *y =
            typed_tensor(ctx, GGML_TYPE_Q8_K, (struct extents){{N, 1, 1, 1}}, 7, &values);
        // Without bit 6 no byte makes a scale that is not finite, whatever its place.
        for (int i = 0; i < N * 2; ++i)
            row[i] = (uint8_t)(i * 37 & 0xBF);
        double want = 0, magnitude = 0;
        float x[N], dot;
        ggml_get_type_traits(type)->to_float(row, x, N);
        for (int i = 0; i < N; ++i) {
            const double product = (double)x[i] * test_get(values, i, 0, 0, 0);
            want += product;
            magnitude += fabs(product);
        }
        test_use_level(k / COUNT(grids));
        ggml_get_type_traits_cpu(type)->vec_dot(N, &dot, 0, row, 0, y->data, 0, 1);
        assert_true(fabs(dot - want) <= 1e-6 * magnitude);
        ggml_free(ctx);
    }
    test_use_best_level();
}

// --- losses ----------------------------------------------------------------------------

static double log_sum(const struct ggml_tensor *x, const int64_t *i) {
    double sum = 0;
    for (int64_t k = 0; k < x->ne[0]; ++k)
        sum += exp(test_get(x, k, i[1], i[2], i[3]));
    return log(sum);
}

static double loss_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)i;
    (void)context;
    const struct ggml_tensor *x = y->src[0], *t = y->src[1];
    double loss = 0;
    for (int64_t r = 0; r < ggml_nrows(x); ++r) {
        const int64_t row[4] = {0, r % x->ne[1], r / x->ne[1] % x->ne[2], r / x->ne[1] / x->ne[2]};
        const double all = log_sum(x, row);
        for (int64_t k = 0; k < x->ne[0]; ++k)
            loss -= test_get(t, k, row[1], row[2], row[3]) *
                    (test_get(x, k, row[1], row[2], row[3]) - all);
    }
    return loss / (double)ggml_nrows(x);
}

static double loss_back_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)context;
    const double probability = exp(get(y->src[1], i) - log_sum(y->src[1], i));
    return (probability - get(y->src[2], i)) * test_get(y->src[0], 0, 0, 0, 0) /
           (double)ggml_nrows(y);
}

static void test_losses(void **state) {
    (void)state;
    for (int k = 0; k < COUNT(shapes); ++k) {
        struct ggml_context *ctx = test_context(8);
        struct ggml_tensor *x = test_gapped(ctx, GGML_TYPE_F32, shapes[k], 1, -20, 9);
        struct ggml_tensor *t = test_gapped(ctx, GGML_TYPE_F32, shapes[k], 2, 0, 0.1f);
        struct ggml_tensor *grad = test_tensor(ctx, GGML_TYPE_F32, shapes[0], 3, 2, 3);
        test_against(ctx, ggml_cross_entropy_loss(ctx, x, t), loss_oracle, NULL, "loss");
        test_against(ctx, ggml_cross_entropy_loss_back(ctx, grad, x, t), loss_back_oracle, NULL,
                     "loss_back");
        ggml_free(ctx);
    }
}

// --- optimisers ------------------------------------------------------------------------

static void test_optimiser_steps(void **state) {
    (void)state;
    const struct extents shape = {{700, 31, 1, 1}};
    struct ggml_context *ctx = test_context(8);
    struct ggml_tensor *t[4], *old[4];
    for (int k = 0; k < 4; ++k) {
        t[k] = (k == 0 ? test_tensor : test_gapped)(ctx, GGML_TYPE_F32, shape, (uint32_t)k,
                                                    k < 3 ? -1 : 0, 1);
        old[k] = test_tensor(ctx, GGML_TYPE_F32, shape, (uint32_t)k, k < 3 ? -1 : 0, 1);
    }
    ggml_set_param(t[0]);
    const float p[7] = {0.1f, 0.9f, 0.99f, 1e-6f, 0.01f, 1.5f, 2.5f};
    struct ggml_tensor *params = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 7);
    memcpy(params->data, p, sizeof(p));
    struct ggml_tensor *y = ggml_opt_step_adamw(ctx, t[0], t[1], t[2], t[3], params);
    assert_int_equal(test_compute(test_graph(ctx, y), 3), GGML_STATUS_SUCCESS);
    for (int64_t r = 0; r < 31; ++r) {
        for (int64_t i = 0; i < 700; ++i) {
            const double w = test_get(old[0], i, r, 0, 0), g = test_get(old[1], i, r, 0, 0);
            const double m = test_get(old[2], i, r, 0, 0) * 0.9 + g * 0.1;
            const double v = test_get(old[3], i, r, 0, 0) * 0.99 + g * g * 0.01;
            const double want = w * (1 - 0.001) - 0.1 * (m * 1.5) / (sqrt(v * 2.5) + 1e-6);
            assert_float_equal(test_get(t[2], i, r, 0, 0), m, 1e-6);
            assert_float_equal(test_get(t[3], i, r, 0, 0), v, 1e-6);
            assert_float_equal(test_get(t[0], i, r, 0, 0), want, 1e-4);
        }
    }
    struct ggml_tensor *two = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 2);
    memcpy(two->data, (const float[2]){0.5f, 0.1f}, 2 * sizeof(float));
    const double before = test_get(t[0], 699, 30, 0, 0);
    y = ggml_opt_step_sgd(ctx, t[0], t[1], two);
    assert_int_equal(test_compute(test_graph(ctx, y), 3), GGML_STATUS_SUCCESS);
    assert_float_equal(test_get(t[0], 699, 30, 0, 0),
                       before * 0.95 - 0.5 * test_get(old[1], 699, 30, 0, 0), 1e-6);
    ggml_free(ctx);
}

// --- functions of the application ------------------------------------------------------

struct calls {
    atomic_int by_thread[8];
    atomic_int nth;
};

static void note_call(struct calls *calls, int ith, int nth) {
    atomic_fetch_add(&calls->by_thread[ith], 1);
    atomic_store(&calls->nth, nth);
}

static void custom1(struct ggml_tensor *dst, const struct ggml_tensor *a, int ith, int nth,
                    void *userdata) {
    note_call(userdata, ith, nth);
    for (int64_t i = ith; i < ggml_nelements(dst); i += nth)
        ((float *)dst->data)[i] = ((const float *)a->data)[i] + 1;
}

static void custom2(struct ggml_tensor *dst, const struct ggml_tensor *a,
                    const struct ggml_tensor *b, int ith, int nth, void *userdata) {
    note_call(userdata, ith, nth);
    for (int64_t i = ith; i < ggml_nelements(dst); i += nth)
        ((float *)dst->data)[i] = ((const float *)a->data)[i] * ((const float *)b->data)[i];
}

static void custom3(struct ggml_tensor *dst, const struct ggml_tensor *a,
                    const struct ggml_tensor *b, const struct ggml_tensor *c, int ith, int nth,
                    void *userdata) {
    custom2(dst, a, b, ith, nth, userdata);
    for (int64_t i = ith; i < ggml_nelements(dst); i += nth)
        ((float *)dst->data)[i] += ((const float *)c->data)[i];
}

static void custom0(struct ggml_tensor *dst, int ith, int nth, void *userdata) {
    note_call(userdata, ith, nth);
    for (int64_t i = ith; i < ggml_nelements(dst); i += nth)
        ((float *)dst->data)[i] = (float)i;
}

static void check_calls(struct ggml_context *ctx, struct ggml_tensor *y, struct calls *calls,
                        int n_threads, int expected) {
    memset(calls, 0, sizeof(*calls));
    assert_null(ggml_tensor_error(y));
    assert_int_equal(test_compute(test_graph(ctx, y), n_threads), GGML_STATUS_SUCCESS);
    assert_int_equal(calls->nth, expected);
    for (int i = 0; i < 8; ++i)
        assert_int_equal(calls->by_thread[i], i < expected);
}

static void test_custom_functions(void **state) {
    (void)state;
    const struct extents shape = {{90, 3, 1, 1}};
    struct calls calls;
    struct ggml_context *ctx = test_context(8);
    struct ggml_tensor *a = test_tensor(ctx, GGML_TYPE_F32, shape, 1, -1, 1);
    struct ggml_tensor *b = test_tensor(ctx, GGML_TYPE_F32, shape, 2, -1, 1);
    const float x = ggml_get_f32_1d(a, 200), z = ggml_get_f32_1d(b, 200);
    struct ggml_tensor *y = ggml_map_custom1(ctx, a, custom1, GGML_N_TASKS_MAX, &calls);
    check_calls(ctx, y, &calls, 4, 4);
    assert_float_equal(ggml_get_f32_1d(y, 200), x + 1, 0);
    y = ggml_map_custom2(ctx, a, b, custom2, 2, &calls);
    check_calls(ctx, y, &calls, 4, 2);
    assert_float_equal(ggml_get_f32_1d(y, 200), x * z, 1e-6);
    y = ggml_map_custom3(ctx, a, b, a, custom3, 7, &calls);
    check_calls(ctx, y, &calls, 3, 3);
    assert_float_equal(ggml_get_f32_1d(y, 200), x * z + x, 1e-6);
    y = ggml_custom_4d(ctx, GGML_TYPE_F32, 3000, 20, 1, 1, NULL, 0, custom0, 1, &calls);
    check_calls(ctx, y, &calls, 3, 1);
    assert_float_equal(ggml_get_f32_1d(y, 50001), 50001, 0);
    y = ggml_map_custom1_inplace(ctx, a, custom1, 1, &calls);
    check_calls(ctx, y, &calls, 3, 1);
    assert_float_equal(ggml_get_f32_1d(a, 200), x + 1, 0);
    ggml_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_repeat_back),
        cmocka_unit_test(test_every_type),
        cmocka_unit_test(test_traits),
        cmocka_unit_test(test_dots_in_whole_numbers_have_the_same_bits_at_every_level),
        cmocka_unit_test(test_adding_to_a_quantised_tensor_in_place),
        cmocka_unit_test(test_copies_between_numbers),
        cmocka_unit_test(test_grid_types_are_read_but_not_stored),
        cmocka_unit_test(test_dots_with_grid_types),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_optimiser_steps),
        cmocka_unit_test(test_custom_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
