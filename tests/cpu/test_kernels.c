// SPDX-License-Identifier: MIT
// Every inner kernel of every level that this machine has, against its scalar twin; and that the
// checks find kernels that were broken on purpose.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ggml-host.h"
#include "kernels.h"

static const struct kernel_table *right; // what the broken tables below are made of

static void test_levels_are_as_the_scalar_one(void **state) {
    (void)state;
    int n = 0, n_checked = 0;
    const struct kernel_level *levels = kernel_levels(&n);
    for (int i = 0; i < n; ++i) {
        if ((levels[i].features & ~ggml_host_cpu_features()) != 0) continue;
        int64_t n_checks = 0;
        const int n_wrong =
            kernel_check(levels[i].table, levels[0].table, KERNEL_ALL_PARTS, stderr, &n_checks);
        printf("# %s: %d kernels differ, %d comparisons\n", levels[i].name, n_wrong, (int)n_checks);
        assert_int_equal(n_wrong, 0);
        assert_true(n_checks > 1000);
        ++n_checked;
    }
    assert_true(n_checked > 0);
}

// --- mistakes ------------------------------------------------------------------------------------

static void unpack_one_sign(enum ggml_type type, const void *x, float *y, int64_t n) {
    right->unpack(type, x, y, n);
    if (type == GGML_TYPE_Q5_K && n > 256) y[n - 1] = -y[n - 1];
}

static void pack_rounding_down(enum ggml_type type, const float *x, void *y, int64_t n) {
    right->pack(type, x, y, n);
    for (int64_t i = 0; i < n && type == GGML_TYPE_BF16; ++i) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof(bits));
        if ((bits & 0xFFFF) == 0x8000) ((uint16_t *)y)[i] = (uint16_t)(bits >> 16);
    }
}

static void map_with_infinity(enum ggml_unary_op op, const float *x, float *y, int64_t n) {
    right->map(op, x, y, n);
    for (int64_t i = 0; i < n && op == GGML_UNARY_OP_EXP; ++i) {
        if (isinf(x[i])) y[i] = NAN;
    }
}

static void map_one_too_many(enum ggml_unary_op op, const float *x, float *y, int64_t n) {
    right->map(op, x, y, n);
    if (op == GGML_UNARY_OP_SILU) y[n] = 0;
}

static void round_last_up(const float *x, int8_t *numbers, float *scales, int64_t n) {
    right->round(x, numbers, scales, n);
    if (n > 512) numbers[n - 1] = (int8_t)(numbers[n - 1] ^ 1);
}

static bool dot_of_fewer(enum ggml_type type, const void *x, const void *y, int n, float *out_sum) {
    return right->dot(type, x, y, type == GGML_TYPE_Q4_0 && n > 32 ? n - 32 : n, out_sum);
}

static bool multiply_without_last_block(const struct kernel_product *product) {
    struct kernel_product less = *product;
    if (less.type == GGML_TYPE_Q8_0 && less.k > 32) less.k -= 32;
    return right->multiply[KERNEL_TILES](&less);
}

static bool multiply_without_nan(const struct kernel_product *product) {
    if (!right->multiply[KERNEL_PACKED](product)) return false;
    for (int64_t c = 0; c < product->n_columns; ++c) {
        for (int64_t r = 0; r < product->n_rows; ++r) {
            float *y = product->y + c * product->y_stride + r;
            if (isnan(*y)) *y = 0;
        }
    }
    return true;
}

static bool multiply_one_row_more(const struct kernel_product *product) {
    if (!right->multiply[KERNEL_PACKED](product)) return false;
    product->y[product->n_rows] = 0;
    return true;
}

static int count_wrong(struct kernel_table broken, unsigned parts) {
    FILE *log = tmpfile();
    assert_non_null(log);
    const int n_wrong = kernel_check(&broken, right, parts, log, NULL);
    assert_int_equal(ftell(log) > 0, n_wrong > 0);
    fclose(log);
    return n_wrong;
}

static void test_mistakes_are_found(void **state) {
    (void)state;
    int n = 0;
    right = kernel_levels(&n)->table;
    struct kernel_table broken = *right;
    broken.unpack = unpack_one_sign;
    assert_int_equal(count_wrong(broken, KERNEL_PART_UNPACK), 1);
    broken = *right, broken.pack = pack_rounding_down;
    assert_int_equal(count_wrong(broken, KERNEL_PART_PACK), 1);
    broken = *right, broken.map = map_with_infinity;
    assert_int_equal(count_wrong(broken, KERNEL_PART_MAP), 1);
    broken = *right, broken.map = map_one_too_many;
    assert_int_equal(count_wrong(broken, KERNEL_PART_MAP), 1);
    broken = *right, broken.round = round_last_up;
    assert_int_equal(count_wrong(broken, KERNEL_PART_ROUND), 1);
    broken = *right, broken.dot = dot_of_fewer;
    assert_int_equal(count_wrong(broken, KERNEL_PART_DOT), 1);
    broken = *right, broken.multiply[KERNEL_TILES] = multiply_without_last_block;
    assert_int_equal(count_wrong(broken, KERNEL_PART_PRODUCT << KERNEL_TILES), 1);
    broken = *right, broken.multiply[KERNEL_PACKED] = multiply_without_nan;
    assert_true(count_wrong(broken, KERNEL_PART_PRODUCT << KERNEL_PACKED) > 1);
    broken = *right, broken.multiply[KERNEL_PACKED] = multiply_one_row_more;
    assert_true(count_wrong(broken, KERNEL_PART_PRODUCT << KERNEL_PACKED) > 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels_are_as_the_scalar_one),
        cmocka_unit_test(test_mistakes_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
