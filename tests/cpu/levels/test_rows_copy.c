// SPDX-License-Identifier: MIT
// get_rows, set_rows, cpy and cont on the CPU: every type, any layout, and indices out of range.
#include "fixture.h"

static const enum ggml_type rows_types[] = {
    GGML_TYPE_F32,  GGML_TYPE_F16,  GGML_TYPE_BF16, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1,
    GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_Q8_0, GGML_TYPE_Q4_K, GGML_TYPE_Q6_K,
};
enum { N_TYPES = sizeof(rows_types) / sizeof(rows_types[0]) };

// Decoding is exact but for one rounding.
static const double DECODED = 1e-13;

static void test_get_rows_of_every_type(void **state) {
    struct fixture *f = *state;
    for (int t = 0; t < N_TYPES; ++t) {
        struct ggml_tensor *a = fixture_tensor(f, rows_types[t], 512, 19, 3, 2);
        struct ggml_tensor *ids = fixture_indices(f, 19, 7, 3, 2);
        fixture_check(f, ggml_get_rows(f->ctx, a, ids), oracle_get_rows, DECODED);
    }
    struct ggml_tensor *a = fixture_indices(f, 1000, 5, 9, 1);
    struct ggml_tensor *ids = fixture_indices(f, 9, 4, 1, 1);
    fixture_check(f, ggml_get_rows(f->ctx, a, ids), oracle_get_rows, 0);
}

static uint32_t float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return x != x ? UINT32_MAX : bits;
}

// Whatever bytes a block has, also those that no encoder writes, every level decodes it to the bits
// of the reference; none is written past the row's end.
static void test_blocks_of_any_bytes(void **state) {
    struct fixture *f = *state;
    enum { N = 768, ROWS = 40 };
    float expected[N];
    for (int type = 0; type < GGML_TYPE_COUNT; ++type) {
        const ggml_to_float_t decode = ggml_get_type_traits((enum ggml_type)type)->to_float;
        if (!decode) continue;
        struct ggml_tensor *a = ggml_new_tensor_2d(f->ctx, (enum ggml_type)type, N, ROWS);
        for (size_t i = 0; i < ggml_nbytes(a); ++i)
            ((uint8_t *)a->data)[i] = (uint8_t)random_below(&f->random, 256);
        struct ggml_tensor *ids = fixture_indices(f, ROWS, ROWS, 1, 1);
        for (int i = 0; i < ROWS; ++i)
            ((int32_t *)ids->data)[i] = ROWS - 1 - i;
        struct ggml_tensor *rows = ggml_get_rows(f->ctx, a, ids);
        assert_int_equal(fixture_compute(f, rows, 2), GGML_STATUS_SUCCESS);
        for (int row = 0; row < ROWS; ++row) {
            decode((const char *)a->data + (size_t)row * a->nb[1], expected, N);
            const float *actual = (const float *)rows->data + (ROWS - 1 - row) * N;
            for (int i = 0; i < N; ++i)
                if (float_bits(actual[i]) != float_bits(expected[i]))
                    fail_msg("%s: element %d of row %d is %a, not %a", ggml_type_name(a->type), i,
                             row, (double)actual[i], (double)expected[i]);
        }
    }
}

static void test_bad_row_fails_the_graph(void **state) {
    struct fixture *f = *state;
    static const int32_t bad[] = {-1, 19, INT32_MAX, INT32_MIN};
    struct ggml_tensor *a = fixture_tensor(f, GGML_TYPE_Q4_0, 1024, 19, 1, 1);
    struct ggml_tensor *ids = fixture_indices(f, 19, 40, 1, 1);
    struct ggml_tensor *node = ggml_get_rows(f->ctx, a, ids);
    for (int i = 0; i < 4; ++i) {
        ((int32_t *)ids->data)[39] = bad[i];
        assert_int_equal(fixture_compute(f, node, 1), GGML_STATUS_FAILED);
        assert_int_equal(fixture_compute(f, node, 3), GGML_STATUS_FAILED);
    }
}

// A tensor of indices as I64 or I32, all different when there are enough rows.
static struct ggml_tensor *distinct_rows(struct fixture *f, enum ggml_type type, int64_t n,
                                         int64_t n_rows) {
    struct ggml_tensor *ids = ggml_new_tensor_1d(f->ctx, type, n);
    for (int64_t i = 0; i < n; ++i) {
        const int64_t row = (i * 7 + 3) % n_rows;
        if (type == GGML_TYPE_I64) {
            ((int64_t *)ids->data)[i] = row;
        } else {
            ((int32_t *)ids->data)[i] = (int32_t)row;
        }
    }
    return ids;
}

// Rows that are named hold what encoding the source gives, the others what they held.
static void check_set_rows(struct fixture *f, enum ggml_type type, enum ggml_type src,
                           enum ggml_type ids_type, int n_threads) {
    enum { N = 512, ROWS = 23, SET = 17 };
    struct ggml_tensor *a = fixture_tensor(f, type, N, ROWS, 2, 1);
    struct ggml_tensor *b = fixture_tensor(f, src, N, SET, 2, 1);
    struct ggml_tensor *ids = distinct_rows(f, ids_type, SET, ROWS);
    struct ggml_tensor *expected = ggml_dup_tensor(f->ctx, a);
    memcpy(expected->data, a->data, ggml_nbytes(a));
    float row[N];
    for (int64_t i = 0; i < SET * 2; ++i) {
        for (int64_t c = 0; c < N; ++c)
            row[c] = (float)oracle_value(b, c, i % SET, i / SET, 0);
        const int64_t to = (int64_t)oracle_value(ids, i % SET, 0, 0, 0);
        char *target =
            (char *)expected->data + (size_t)to * a->nb[1] + (size_t)(i / SET) * a->nb[2];
        ggml_quantize_chunk(type, row, target, 0, 1, N, NULL);
    }
    struct ggml_tensor *node = ggml_set_rows(f->ctx, a, b, ids);
    assert_null(ggml_tensor_error(node));
    assert_int_equal(fixture_compute(f, node, n_threads), GGML_STATUS_SUCCESS);
    assert_memory_equal(a->data, expected->data, ggml_nbytes(a));
}

static void test_set_rows_of_every_type(void **state) {
    for (int t = 0; t < N_TYPES; ++t) {
        check_set_rows(*state, rows_types[t], GGML_TYPE_F32, GGML_TYPE_I64, 1);
        check_set_rows(*state, rows_types[t], GGML_TYPE_F32, GGML_TYPE_I32, 3);
        check_set_rows(*state, rows_types[t], GGML_TYPE_F16, GGML_TYPE_I64, 2);
    }
}

static void test_last_of_equal_rows_stays(void **state) {
    struct fixture *f = *state;
    struct ggml_tensor *a = fixture_tensor(f, GGML_TYPE_F16, 512, 3, 1, 1);
    struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, 512, 100, 1, 1);
    struct ggml_tensor *ids = distinct_rows(f, GGML_TYPE_I64, 100, 1);
    assert_int_equal(fixture_compute(f, ggml_set_rows(f->ctx, a, b, ids), 3), GGML_STATUS_SUCCESS);
    for (int64_t c = 0; c < 512; ++c)
        assert_true(fabs(oracle_value(a, c, 0, 0, 0) - oracle_value(b, c, 99, 0, 0)) < 4e-3);
}

static void test_bad_target_row_writes_nothing(void **state) {
    struct fixture *f = *state;
    static const int64_t bad[] = {-1, 3, INT64_MAX, INT64_MIN, INT64_C(1) << 32};
    struct ggml_tensor *a = fixture_tensor(f, GGML_TYPE_F32, 256, 3, 1, 1);
    struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, 256, 80, 1, 1);
    struct ggml_tensor *ids = distinct_rows(f, GGML_TYPE_I64, 80, 3);
    struct ggml_tensor *node = ggml_set_rows(f->ctx, a, b, ids);
    float before[256 * 3];
    memcpy(before, a->data, sizeof(before));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        ((int64_t *)ids->data)[79] = bad[i];
        assert_int_equal(fixture_compute(f, node, 1), GGML_STATUS_FAILED);
        assert_int_equal(fixture_compute(f, node, 3), GGML_STATUS_FAILED);
        assert_memory_equal(before, a->data, sizeof(before));
    }
}

static void test_cont_packs_any_layout(void **state) {
    struct fixture *f = *state;
    static const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16,
                                           GGML_TYPE_I32};
    static const int axes[][4] = {
        {0, 1, 2, 3}, {1, 0, 2, 3}, {0, 2, 1, 3}, {2, 0, 1, 3}, {3, 2, 1, 0}};
    for (int t = 0; t < 4; ++t) {
        struct ggml_tensor *a = types[t] == GGML_TYPE_I32
                                    ? fixture_indices(f, 1 << 30, 37, 19, 31)
                                    : fixture_tensor(f, types[t], 37, 19, 31, 2);
        for (int p = 0; p < 5; ++p) {
            struct ggml_tensor *view =
                ggml_permute(f->ctx, a, axes[p][0], axes[p][1], axes[p][2], axes[p][3]);
            fixture_check(f, ggml_cont(f->ctx, view), oracle_copy, 0);
            fixture_check(f, ggml_dup(f->ctx, view), oracle_copy, 0);
        }
    }
    struct ggml_tensor *q = fixture_tensor(f, GGML_TYPE_Q4_0, 64, 6, 50, 1);
    fixture_check(f, ggml_cont(f->ctx, ggml_permute(f->ctx, q, 0, 2, 1, 3)), oracle_copy, 0);
}

// Different shapes, in strided views on both sides.
static void test_cpy_keeps_the_logical_order(void **state) {
    struct fixture *f = *state;
    static const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16};
    static const double bounds[] = {0, 1e-6, 1e-4}; // half an ulp of 2^-11 and 2^-8, squared
    for (int i = 0; i < 9; ++i) {
        struct ggml_tensor *a = fixture_tensor(f, types[i / 3], 60, 42, 7, 1);
        struct ggml_tensor *b = fixture_tensor(f, types[i % 3], 42, 60, 7, 1);
        struct ggml_tensor *from = ggml_permute(f->ctx, a, 1, 0, 2, 3);
        struct ggml_tensor *to = ggml_permute(f->ctx, b, 2, 0, 1, 3);
        fixture_check(f, ggml_cpy(f->ctx, from, to), oracle_copy,
                      i / 3 == i % 3 ? 0 : bounds[i % 3]);
    }
    struct ggml_tensor *q = fixture_tensor(f, GGML_TYPE_Q8_0, 128, 30, 5, 1);
    struct ggml_tensor *y = fixture_tensor(f, GGML_TYPE_F32, 60, 5, 64, 1);
    fixture_check(f, ggml_cpy(f->ctx, q, y), oracle_copy, DECODED);
    struct ggml_tensor *h = fixture_tensor(f, GGML_TYPE_F16, 60, 5, 64, 1);
    fixture_check(f, ggml_cpy(f->ctx, q, h), oracle_copy, 1e-6);
    struct ggml_tensor *p = fixture_tensor(f, GGML_TYPE_Q8_0, 32, 600, 1, 1);
    fixture_check(f, ggml_cpy(f->ctx, q, p), oracle_copy, 0);
}

static void test_cpy_encodes_as_the_reference(void **state) {
    struct fixture *f = *state;
    for (int t = 0; t < N_TYPES; ++t) {
        struct ggml_tensor *x = fixture_tensor(f, GGML_TYPE_F32, 512, 37, 1, 1);
        struct ggml_tensor *y = ggml_cast(f->ctx, x, rows_types[t]);
        struct ggml_tensor *expected = ggml_dup_tensor(f->ctx, y);
        ggml_quantize_chunk(rows_types[t], x->data, expected->data, 0, 37, 512, NULL);
        for (int n_threads = 1; n_threads <= 3; ++n_threads) {
            assert_int_equal(fixture_compute(f, y, n_threads), GGML_STATUS_SUCCESS);
            assert_memory_equal(y->data, expected->data, ggml_nbytes(y));
        }
    }
}

static void test_floats_to_whole_numbers(void **state) {
    struct fixture *f = *state;
    static const float x[] = {1.9f,  -1.9f,    0.0f,      -0.0f, 3e9f,
                              -3e9f, INFINITY, -INFINITY, NAN,   2147483520.0f};
    static const int32_t expected[] = {1,         -1,        0,         0,         INT32_MAX,
                                       INT32_MIN, INT32_MAX, INT32_MIN, INT32_MIN, 2147483520};
    struct ggml_tensor *a = ggml_new_tensor_1d(f->ctx, GGML_TYPE_F32, 10);
    memcpy(a->data, x, sizeof(x));
    struct ggml_tensor *b = ggml_cast(f->ctx, a, GGML_TYPE_I32);
    assert_int_equal(fixture_compute(f, b, 1), GGML_STATUS_SUCCESS);
    assert_memory_equal(b->data, expected, sizeof(expected));
    fixture_check(f, ggml_cast(f->ctx, fixture_indices(f, 100000, 31, 600, 1), GGML_TYPE_F32),
                  oracle_copy, 0);
}

static void test_f16_limits(void **state) {
    struct fixture *f = *state;
    static const float x[] = {65504.0f, 65520.0f, -1e9f,    5.9604645e-8f,
                              2e-8f,    NAN,      INFINITY, 1.00048828125f};
    static const uint16_t expected[] = {0x7BFF, 0x7C00, 0xFC00, 0x0001,
                                        0x0000, 0x7E00, 0x7C00, 0x3C00};
    struct ggml_tensor *a = ggml_new_tensor_1d(f->ctx, GGML_TYPE_F32, 8);
    memcpy(a->data, x, sizeof(x));
    struct ggml_tensor *b = ggml_cast(f->ctx, a, GGML_TYPE_F16);
    assert_int_equal(fixture_compute(f, b, 1), GGML_STATUS_SUCCESS);
    assert_memory_equal(b->data, expected, sizeof(expected));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cpu_test(test_get_rows_of_every_type),
        cpu_test(test_bad_row_fails_the_graph),
        cpu_test(test_blocks_of_any_bytes),
        cpu_test(test_set_rows_of_every_type),
        cpu_test(test_last_of_equal_rows_stays),
        cpu_test(test_bad_target_row_writes_nothing),
        cpu_test(test_cont_packs_any_layout),
        cpu_test(test_cpy_keeps_the_logical_order),
        cpu_test(test_cpy_encodes_as_the_reference),
        cpu_test(test_floats_to_whole_numbers),
        cpu_test(test_f16_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
