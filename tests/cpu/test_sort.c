// SPDX-License-Identifier: MIT
// Sorting, counting, regions and parts of matrices.
#include "cpu_test.h"

#include <stdlib.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static void compute(struct ggml_context *ctx, struct ggml_tensor *t, int n_threads) {
    if (test_compute(test_graph(ctx, t), n_threads) != GGML_STATUS_SUCCESS) {
        fail_msg("%s: %s", ggml_op_desc(t), ggml_last_error());
    }
}

// Whether a comes before b, NaN behind all.
static bool before(float a, float b, bool descending) {
    if (isnan(a) || isnan(b)) return !isnan(a);
    return descending ? a > b : a < b;
}

static void check_sorted(const float *x, const int32_t *order, int n, int n_sorted,
                         bool descending) {
    char *seen = calloc((size_t)n, 1);
    for (int i = 0; i < n_sorted; ++i) {
        assert_in_range(order[i], 0, n - 1);
        assert_false(seen[order[i]]);
        seen[order[i]] = 1;
        if (i == 0) continue;
        const float last = x[order[i - 1]], next = x[order[i]];
        assert_false(before(next, last, descending));
        if (!before(last, next, descending)) assert_true(order[i - 1] < order[i]);
    }
    for (int i = 0; i < n && n_sorted > 0; ++i) {
        const float last = x[order[n_sorted - 1]];
        if (seen[i]) continue;
        assert_false(before(x[i], last, descending));
        if (!before(last, x[i], descending)) assert_true(i > order[n_sorted - 1]);
    }
    free(seen);
}

static struct ggml_tensor *numbers_with_ties(struct ggml_context *ctx, int n, int rows) {
    struct ggml_tensor *x =
        test_gapped(ctx, GGML_TYPE_F32, (struct extents){{n, rows, 2, 1}}, 5, -9, 9);
    for (int r = 0; r < rows; ++r) {
        for (int i = 0; i < n; i += 3)
            ggml_set_f32_nd(x, i, r, 1, 0, roundf(ggml_get_f32_nd(x, i, r, 1, 0) / 4));
        ggml_set_f32_nd(x, n / 2, r, 0, 0, r % 2 ? INFINITY : -0.0f);
        ggml_set_f32_nd(x, n / 3, r, 0, 0, r % 2 ? NAN : 0.0f);
    }
    return x;
}

static const float *row_of(const struct ggml_tensor *x, int r) {
    const char *data = x->data;
    return (const float *)(const void *)(data + (size_t)(r % x->ne[1]) * x->nb[1] +
                                         (size_t)(r / x->ne[1]) * x->nb[2]);
}

static void test_argsort(void **state) {
    (void)state;
    static const int sizes[] = {1, 2, 31, 48, 49, 1000, 20011};
    for (int k = 0; k < 2 * COUNT(sizes); ++k) {
        struct ggml_context *ctx = test_context(8);
        const int n = sizes[k / 2];
        struct ggml_tensor *x = numbers_with_ties(ctx, n, 3);
        struct ggml_tensor *y = ggml_argsort(ctx, x, k % 2 ? GGML_SORT_ORDER_DESC : 0);
        compute(ctx, y, 1 + k % 3);
        for (int r = 0; r < 6; ++r)
            check_sorted(row_of(x, r), (const int32_t *)y->data + r * n, n, n, k % 2);
        ggml_free(ctx);
    }
}

static void test_top_k(void **state) {
    (void)state;
    static const int cases[][2] = {{1, 1},   {8, 2},     {8, 0},       {60, 60},
                                   {999, 1}, {1000, 40}, {1000, 1000}, {20011, 300}};
    for (int k = 0; k < COUNT(cases); ++k) {
        struct ggml_context *ctx = test_context(8);
        const int n = cases[k][0], count = cases[k][1];
        struct ggml_tensor *x = numbers_with_ties(ctx, n, 3);
        struct ggml_tensor *y = ggml_top_k(ctx, x, count);
        compute(ctx, y, 1 + k % 3);
        for (int r = 0; r < 6; ++r)
            check_sorted(row_of(x, r), (const int32_t *)y->data + r * count, n, count, true);
        ggml_free(ctx);
    }
}

// Rows of which all, few or no numbers are larger than those before, or that hold hardly any.
static float number_in_order(int order, int i, int n) {
    switch (order) {
    case 0: return (float)i;
    case 1: return (float)(n - i);
    case 2: return 1;
    case 3: return i % 500 == 7 ? (float)-i : NAN;
    case 4: return i % 2 ? 0.0f : -0.0f;
    default: return i % 3 ? -INFINITY : (float)(i * 7919 % n);
    }
}

static void test_top_k_of_orders(void **state) {
    enum { N = 5003 };
    static const int counts[] = {1, 16, 500, 2400};
    (void)state;
    for (int k = 0; k < 6 * COUNT(counts); ++k) {
        struct ggml_context *ctx = test_context(8);
        const int count = counts[k / 6];
        struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, N);
        struct ggml_tensor *apart = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 2, N);
        for (int i = 0; i < N; ++i) {
            ((float *)x->data)[i] = number_in_order(k % 6, i, N);
            ((float *)apart->data)[2 * i] = ((float *)x->data)[i];
            ((float *)apart->data)[2 * i + 1] = INFINITY;
        }
        struct ggml_tensor *every_other = ggml_view_1d(ctx, apart, N, 0);
        every_other->nb[0] = 2 * sizeof(float);
        struct ggml_tensor *dense = ggml_top_k(ctx, x, count);
        struct ggml_tensor *spread = ggml_top_k(ctx, every_other, count);
        compute(ctx, dense, 1);
        compute(ctx, spread, 1);
        check_sorted(x->data, dense->data, N, count, true);
        assert_memory_equal(spread->data, dense->data, (size_t)count * sizeof(int32_t));
        ggml_free(ctx);
    }
}

static void test_count_equal(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(8);
    struct ggml_tensor *a = ggml_new_tensor_4d(ctx, GGML_TYPE_I32, 60, 41, 5, 2);
    struct ggml_tensor *b = ggml_new_tensor_4d(ctx, GGML_TYPE_I32, 60, 41, 5, 2);
    int64_t expected = 0;
    for (int i = 0; i < 60 * 41 * 10; ++i) {
        ((int32_t *)a->data)[i] = i % 7;
        ((int32_t *)b->data)[i] = i % 5;
        expected += i % 7 == i % 5;
    }
    struct ggml_tensor *y = ggml_count_equal(ctx, a, b);
    for (int n_threads = 1; n_threads <= 3; ++n_threads) {
        compute(ctx, y, n_threads);
        assert_int_equal(*(const int64_t *)y->data, expected);
    }
    ggml_free(ctx);
}

// --- regions ---------------------------------------------------------------------------

static double region_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    const int64_t *origin = context;
    const struct ggml_tensor *a = y->src[0], *b = y->src[1];
    int64_t at[4];
    bool inside = true;
    for (int d = 0; d < 4; ++d) {
        at[d] = i[d] - origin[d];
        inside = inside && at[d] >= 0 && at[d] < b->ne[d];
    }
    const double old = test_get(a, i[0], i[1], i[2], i[3]);
    if (!inside) return old;
    return test_get(b, at[0], at[1], at[2], at[3]) + (y->op == GGML_OP_ACC ? old : 0);
}

static void test_regions(void **state) {
    (void)state;
    static const int64_t origin[4] = {1, 2, 0, 1};
    struct ggml_context *ctx = test_context(8);
    const struct extents whole = {{70, 40, 6, 3}}, part = {{33, 30, 4, 2}};
    for (int k = 0; k < 4; ++k) {
        const enum ggml_type type = k == 2 ? GGML_TYPE_I32 : k == 3 ? GGML_TYPE_F16 : GGML_TYPE_F32;
        struct ggml_tensor *a = test_tensor(ctx, type, whole, 7, -90, 90);
        struct ggml_tensor *b = test_gapped(ctx, type, part, 8, -90, 90);
        const size_t offset = origin[0] * a->nb[0] + origin[1] * a->nb[1] + origin[3] * a->nb[3];
        struct ggml_tensor *y = k == 0 ? ggml_acc(ctx, a, b, a->nb[1], a->nb[2], a->nb[3], offset)
                                       : ggml_set(ctx, a, b, a->nb[1], a->nb[2], a->nb[3], offset);
        test_against(ctx, y, region_oracle, origin, "region");
    }
    ggml_free(ctx);
}

static void test_overlapping_rows_add_up_in_place(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(8);
    struct ggml_tensor *a =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{200, 100, 1, 1}}, 7, 0, 0);
    struct ggml_tensor *b =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{200, 90, 1, 1}}, 7, 1, 1);
    compute(ctx, ggml_acc_inplace(ctx, a, b, 0, 0, 0, 2 * sizeof(float)), 3);
    assert_float_equal(ggml_get_f32_1d(a, 1), 0, 0);
    assert_float_equal(ggml_get_f32_1d(a, 2), 90, 0);
    assert_float_equal(ggml_get_f32_1d(a, 201), 90, 0);
    assert_float_equal(ggml_get_f32_1d(a, 202), 0, 0);
    ggml_free(ctx);
}

// --- matrices --------------------------------------------------------------------------

static double tri_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    const int type = *(const int *)context;
    const bool kept[4] = {i[0] >= i[1], i[0] > i[1], i[0] <= i[1], i[0] < i[1]};
    return kept[type] ? test_get(y->src[0], i[0], i[1], i[2], i[3]) : 0;
}

static double diag_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)context;
    return i[0] == i[1] ? test_get(y->src[0], i[0], 0, i[2], i[3]) : 0;
}

static void test_matrices(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(8);
    struct ggml_tensor *a =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{57, 57, 3, 2}}, 7, 1, 9);
    for (int type = 0; type < 4; ++type)
        test_against(ctx, ggml_tri(ctx, a, (enum ggml_tri_type)type), tri_oracle, &type, "tri");
    struct ggml_tensor *d =
        test_gapped(ctx, GGML_TYPE_F32, (struct extents){{57, 1, 3, 2}}, 7, 1, 9);
    test_against(ctx, ggml_diag(ctx, d), diag_oracle, NULL, "diag");
    ggml_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_argsort),
        cmocka_unit_test(test_top_k),
        cmocka_unit_test(test_top_k_of_orders),
        cmocka_unit_test(test_count_equal),
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_overlapping_rows_add_up_in_place),
        cmocka_unit_test(test_matrices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
