// SPDX-License-Identifier: MIT
// Reductions, norms, repeat and concat against loops in double precision.
#include "cpu_test.h"

enum { N_SHAPES = 4 };
static const struct extents shapes[N_SHAPES] = {
    {{1, 1, 1, 1}}, {{7, 3, 2, 2}}, {{1031, 5, 1, 2}}, {{9001, 3, 1, 1}}};

static double row_sum(const struct ggml_tensor *x, const int64_t *i, double offset, int power) {
    double sum = 0;
    for (int64_t k = 0; k < x->ne[0]; ++k)
        sum += pow(test_get(x, k, i[1], i[2], i[3]) - offset, power);
    return sum;
}

static double sum_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)i;
    (void)context;
    const struct ggml_tensor *x = y->src[0];
    double sum = 0;
    for (int64_t r = 0; r < ggml_nrows(x); ++r) {
        const int64_t at[4] = {0, r % x->ne[1], r / x->ne[1] % x->ne[2], r / x->ne[1] / x->ne[2]};
        sum += row_sum(x, at, 0, 1);
    }
    return sum;
}

static double sum_rows_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    const double divisor = *(const bool *)context ? (double)y->src[0]->ne[0] : 1.0;
    return row_sum(y->src[0], i, 0, 1) / divisor;
}

static double cumsum_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)context;
    double sum = 0;
    for (int64_t k = 0; k <= i[0]; ++k)
        sum += test_get(y->src[0], k, i[1], i[2], i[3]);
    return sum;
}

static void test_sums(void **state) {
    (void)state;
    static const bool no = false, yes = true;
    for (int k = 0; k < N_SHAPES; ++k) {
        struct ggml_context *ctx = test_context(4);
        struct ggml_tensor *x = test_gapped(ctx, GGML_TYPE_F32, shapes[k], 60, -1, 2);
        test_against(ctx, ggml_sum(ctx, x), sum_oracle, NULL, "sum");
        test_against(ctx, ggml_sum_rows(ctx, x), sum_rows_oracle, &no, "sum_rows");
        test_against(ctx, ggml_mean(ctx, x), sum_rows_oracle, &yes, "mean");
        if (k < 2) test_against(ctx, ggml_cumsum(ctx, x), cumsum_oracle, NULL, "cumsum");
        struct ggml_tensor *h =
            test_tensor(ctx, k % 2 ? GGML_TYPE_F16 : GGML_TYPE_BF16, shapes[k], 61, 0, 1);
        test_against(ctx, ggml_sum(ctx, h), sum_oracle, NULL, "sum");
        ggml_free(ctx);
    }
}

static double argmax_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)context;
    const struct ggml_tensor *x = y->src[0];
    int64_t best = 0;
    for (int64_t k = 1; k < x->ne[0]; ++k) {
        if (test_get(x, k, i[0], 0, 0) >= test_get(x, best, i[0], 0, 0)) best = k;
    }
    return (double)best;
}

static void test_argmax(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(4);
    struct ggml_tensor *x =
        test_gapped(ctx, GGML_TYPE_F32, (struct extents){{2003, 17, 1, 1}}, 62, -1, 1);
    test_against(ctx, ggml_argmax(ctx, x), argmax_oracle, NULL, "argmax");
    struct ggml_tensor *ties =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{50, 2, 1, 1}}, 63, -1, 0);
    for (int i = 10; i < 40; i += 7)
        ggml_set_f32_nd(ties, i, 1, 0, 0, 5);
    ggml_set_f32_nd(ties, 45, 1, 0, 0, NAN);
    struct ggml_tensor *best = ggml_argmax(ctx, ties);
    assert_int_equal(test_compute(test_graph(ctx, best), 2), GGML_STATUS_SUCCESS);
    assert_int_equal(ggml_get_i32_1d(best, 1), 38);
    ggml_free(ctx);
}

// Ties, NaN and the largest in each part of rows that vectors compare, of numbers that rise and
// fall.
static void test_argmax_of_orders(void **state) {
    (void)state;
    static const int sizes[] = {1, 31, 32, 33, 95, 1000};
    for (int k = 0; k < 6 * 6; ++k) {
        struct ggml_context *ctx = test_context(4);
        const int n = sizes[k / 6], order = k % 6;
        struct ggml_tensor *x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, n, 1);
        float *numbers = x->data;
        int expected = 0;
        for (int i = 0; i < n; ++i) {
            const float many[] = {(float)i,
                                  (float)-i,
                                  3,
                                  -INFINITY,
                                  i % 3 ? NAN : (float)(i % 64),
                                  i % 2 ? 0.0f : -0.0f};
            numbers[i] = many[order];
            if (!isnan(numbers[i]) && numbers[i] >= numbers[expected]) expected = i;
        }
        struct ggml_tensor *best = ggml_argmax(ctx, x);
        assert_int_equal(test_compute(test_graph(ctx, best), 1), GGML_STATUS_SUCCESS);
        assert_int_equal(ggml_get_i32_1d(best, 0), expected);
        ggml_free(ctx);
    }
}

// --- norms -----------------------------------------------------------------------------

static const float eps = 1e-3f;

static double norm_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)context;
    const struct ggml_tensor *x = y->src[0];
    const double n = (double)x->ne[0], mean = row_sum(x, i, 0, 1) / n;
    return (test_get(x, i[0], i[1], i[2], i[3]) - mean) /
           sqrt(row_sum(x, i, mean, 2) / n + (double)eps);
}

static double rms_of(const struct ggml_tensor *x, const int64_t *i) {
    const double scale = sqrt(row_sum(x, i, 0, 2) / (double)x->ne[0] + (double)eps);
    return test_get(x, i[0], i[1], i[2], i[3]) / scale;
}

static double rms_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)context;
    return rms_of(y->src[0], i);
}

static double rms_mul_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    const struct ggml_tensor *w = context;
    return rms_of(y->src[0]->src[0], i) * test_get(w, i[0], i[1] % w->ne[1], i[2] % w->ne[2], 0);
}

static double l2_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)context;
    const double length = sqrt(row_sum(y->src[0], i, 0, 2));
    return test_get(y->src[0], i[0], i[1], i[2], i[3]) / fmax(length, (double)eps);
}

static const struct extents norm_shapes[N_SHAPES] = {
    {{1, 1, 1, 1}}, {{7, 3, 2, 2}}, {{131, 5, 1, 2}}, {{256, 70, 1, 1}}};

static void test_norms(void **state) {
    (void)state;
    for (int k = 0; k < N_SHAPES; ++k) {
        struct ggml_context *ctx = test_context(8);
        struct ggml_tensor *x = test_gapped(ctx, GGML_TYPE_F32, norm_shapes[k], 70, -1, 3);
        test_against(ctx, ggml_norm(ctx, x, eps), norm_oracle, NULL, "norm");
        test_against(ctx, ggml_rms_norm(ctx, x, eps), rms_oracle, NULL, "rms_norm");
        test_against(ctx, ggml_l2_norm(ctx, x, eps), l2_oracle, NULL, "l2_norm");
        struct extents one = {{norm_shapes[k].ne[0], 1, 1, 1}};
        struct ggml_tensor *w = test_tensor(ctx, GGML_TYPE_F32, one, 71, -2, 2);
        struct ggml_tensor *fused = ggml_mul(ctx, ggml_rms_norm(ctx, x, eps), w);
        test_against(ctx, fused, rms_mul_oracle, w, "rms_norm and mul");
        ggml_free(ctx);
    }
}

static void test_norm_of_columns_and_in_place(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(2);
    struct ggml_tensor *x =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{6, 31, 2, 1}}, 72, -1, 3);
    struct ggml_tensor *columns = ggml_transpose(ctx, x);
    if (ggml_backend_dev_supports_op(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU),
                                     ggml_norm(ctx, columns, eps))) {
        test_against(ctx, ggml_norm(ctx, columns, eps), norm_oracle, NULL, "norm of columns");
        test_against(ctx, ggml_l2_norm(ctx, columns, eps), l2_oracle, NULL, "l2_norm of columns");
    }
    struct ggml_tensor *a =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{64, 3, 1, 1}}, 73, -1, 3);
    struct ggml_tensor *b =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{64, 3, 1, 1}}, 73, -1, 3);
    struct ggml_tensor *y = ggml_rms_norm(ctx, b, eps);
    assert_int_equal(test_compute(test_graph(ctx, ggml_rms_norm_inplace(ctx, a, eps)), 2), 0);
    assert_int_equal(test_compute(test_graph(ctx, y), 2), GGML_STATUS_SUCCESS);
    assert_memory_equal(a->data, y->data, ggml_nbytes(y));
    ggml_free(ctx);
}

static double group_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    const struct ggml_tensor *x = y->src[0];
    const int64_t groups = *(const int *)context, each = (x->ne[2] + groups - 1) / groups;
    const int64_t first = i[2] / each * each,
                  last = first + each < x->ne[2] ? first + each : x->ne[2];
    double sum = 0, squares = 0;
    for (int64_t c = first; c < last; ++c) {
        for (int64_t r = 0; r < x->ne[1]; ++r) {
            const int64_t at[4] = {0, r, c, i[3]};
            sum += row_sum(x, at, 0, 1);
            squares += row_sum(x, at, 0, 2);
        }
    }
    const double n = (double)(x->ne[0] * x->ne[1] * (last - first)), mean = sum / n;
    return (test_get(x, i[0], i[1], i[2], i[3]) - mean) /
           sqrt(squares / n - mean * mean + (double)eps);
}

static void test_group_norm(void **state) {
    (void)state;
    static const int groups[] = {1, 2, 3, 5};
    for (int k = 0; k < 4; ++k) {
        struct ggml_context *ctx = test_context(2);
        struct ggml_tensor *x =
            test_tensor(ctx, GGML_TYPE_F32, (struct extents){{5, 3, 7, 2}}, 74, -1, 3);
        test_against(ctx, ggml_group_norm(ctx, x, groups[k], eps), group_oracle, &groups[k],
                     "group_norm");
        ggml_free(ctx);
    }
}

// --- repeat, concat --------------------------------------------------------------------

static double repeat_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)context;
    const struct ggml_tensor *x = y->src[0];
    return test_get(x, i[0] % x->ne[0], i[1] % x->ne[1], i[2] % x->ne[2], i[3] % x->ne[3]);
}

static void test_repeat(void **state) {
    (void)state;
    static const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16,
                                           GGML_TYPE_I32, GGML_TYPE_I16};
    for (int k = 0; k < 5; ++k) {
        struct ggml_context *ctx = test_context(2);
        struct ggml_tensor *x =
            test_gapped(ctx, types[k], (struct extents){{5, 1, 3, 2}}, 80, -90, 90);
        test_against(ctx, ggml_repeat_4d(ctx, x, 15, 4, 3, 6), repeat_oracle, NULL, "repeat");
        ggml_free(ctx);
    }
}

static double concat_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    const int dim = *(const int *)context;
    const struct ggml_tensor *a = y->src[0], *b = y->src[1];
    int64_t at[4] = {i[0], i[1], i[2], i[3]};
    if (at[dim] < a->ne[dim]) return test_get(a, at[0], at[1], at[2], at[3]);
    at[dim] -= a->ne[dim];
    return test_get(b, at[0], at[1], at[2], at[3]);
}

static void test_concat(void **state) {
    (void)state;
    for (int dim = 0; dim < 4; ++dim) {
        struct ggml_context *ctx = test_context(2);
        struct extents a_shape = {{6, 5, 4, 3}}, b_shape = a_shape;
        b_shape.ne[dim] = 2;
        const enum ggml_type type = dim % 2 ? GGML_TYPE_F16 : GGML_TYPE_F32;
        struct ggml_tensor *a = test_gapped(ctx, type, a_shape, 81, -9, 9);
        struct ggml_tensor *b = test_tensor(ctx, type, b_shape, 82, -9, 9);
        test_against(ctx, ggml_concat(ctx, a, b, dim), concat_oracle, &dim, "concat");
        struct extents c_shape = {{b_shape.ne[1], b_shape.ne[0], b_shape.ne[2], b_shape.ne[3]}};
        struct ggml_tensor *c = test_tensor(ctx, type, c_shape, 83, -9, 9);
        test_against(ctx, ggml_concat(ctx, a, ggml_transpose(ctx, c), dim), concat_oracle, &dim,
                     "concat of columns");
        ggml_free(ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_argmax),
        cmocka_unit_test(test_argmax_of_orders),
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_norm_of_columns_and_in_place),
        cmocka_unit_test(test_group_norm),
        cmocka_unit_test(test_repeat),
        cmocka_unit_test(test_concat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
