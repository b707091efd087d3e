// SPDX-License-Identifier: MIT
// Each wrapper of plugins/cuda/kernels/gpu_warpgroup.h against its definition, and what happens to
// who leaves out a wait.
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <stdio.h>
#include <string.h>

#include "../../core/base/sanitizer.h"
#include "primitives.h"
#include "simt.h"

enum { ROWS = 64, DEPTH = 64, MOST_COLUMNS = 256, LANES = 32, PIECES = 8 };
enum { NO_FULL = 1, NO_EMPTY = 2, NO_ARRIVAL = 4 }; // as in primitives.cu

static char message[300];

static bool run(const char *kernel, unsigned threads, size_t shared,
                const struct primitive_args *args) {
    const struct simt_launch launch = {kernel, {1, 1, 1}, threads, args, shared};
    message[0] = '\0';
    return simt_run(&launch, message, sizeof(message));
}

static uint32_t next(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed;
}

// Of a whole number from -15 to 15, exact in both formats.
static uint16_t half_of(int value, bool is_bf16) {
    const float f = (float)value;
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    if (is_bf16) return (uint16_t)(bits >> 16);
    return value == 0 ? 0 : (uint16_t)((bits >> 16 & 0x8000) | ((bits >> 13 & 0x3ffff) - 0x1c000));
}

static uint16_t x[ROWS * DEPTH];
static _Alignas(16) uint16_t y[MOST_COLUMNS * DEPTH];
static float out[ROWS * MOST_COLUMNS];

// Column n, element k of a tile: 128 bytes per column, whose pieces of 16 bytes change places by
// the number of the column.
static void put(int n, int k, uint16_t value) {
    y[n * DEPTH + 8 * (k / 8 ^ n % 8) + k % 8] = value;
}

// turned: the rows of y are k, one behind the other.
static bool run_product(int n_columns, bool is_bf16, bool turned, long long defect, double *exact) {
    static int a[ROWS][DEPTH], b[MOST_COLUMNS][DEPTH];
    uint32_t seed = 5;
    char name[60];
    for (int r = 0; r < ROWS; ++r) {
        for (int k = 0; k < DEPTH; ++k)
            x[r * DEPTH + k] = half_of(a[r][k] = (int)(next(&seed) >> 24) % 31 - 15, is_bf16);
    }
    for (int n = 0; n < n_columns; ++n) {
        for (int k = 0; k < DEPTH; ++k)
            put(n, k, half_of(b[n][k] = (int)(next(&seed) >> 24) % 31 - 15, is_bf16));
    }
    for (int i = 0; i < DEPTH * n_columns && turned; ++i)
        y[i] = half_of(b[i % n_columns][i / n_columns], is_bf16);
    for (int i = 0; i < ROWS * n_columns; ++i) {
        out[i] = (float)(i % 1000);
        exact[i] = i % 1000;
        for (int k = 0; k < DEPTH; ++k)
            exact[i] += (double)(a[i / n_columns][k] * b[i % n_columns][k]);
    }
    snprintf(name, sizeof(name), "primitive_wgmma_%s%d_%s", turned ? "turned_" : "", n_columns,
             is_bf16 ? "BF16" : "F16");
    const struct primitive_args args = {(uintptr_t)x, (uintptr_t)y, 0, (uintptr_t)out, defect};
    return run(name, 128, (size_t)n_columns * 128 + 8, &args);
}

static void test_products(void **state) {
    static const struct {
        int n_columns;
        bool is_bf16, turned;
    } products[] = {
        {32, false, false}, {48, false, false},  {48, true, false},  {64, false, false},
        {64, true, false},  {128, false, false}, {128, true, false}, {256, false, false},
        {256, true, false}, {128, false, true},  {128, true, true},  {256, false, true},
        {256, true, true},
    };
    static double exact[ROWS * MOST_COLUMNS];
    (void)state;
    for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); ++i) {
        const int n_columns = products[i].n_columns;
        simt_set_seed(i % 4);
        if (!run_product(n_columns, products[i].is_bf16, products[i].turned, 0, exact))
            fail_msg("%s", message);
        for (int k = 0; k < ROWS * n_columns; ++k) {
            if ((double)out[k] != exact[k])
                fail_msg("%g in row %d, column %d of %d, not %g", (double)out[k], k / n_columns,
                         k % n_columns, n_columns, exact[k]);
        }
    }
    simt_set_seed(0);
}

// Who does not wait finds the sums as they were.
static void test_a_product_is_not_waited_for(void **state) {
    static double exact[ROWS * MOST_COLUMNS];
    (void)state;
    if (!simt_finds_defects()) return;
    assert_true(run_product(128, false, false, 1, exact));
    assert_true(out[7] == 7.0f && exact[7] != 7.0);
#if !GGML_THREAD_SANITIZER
    assert_false(run_product(128, false, true, 1, exact));
    assert_non_null(strstr(message, "without a fence"));
    assert_false(run_product(128, false, true, 2, exact));
    assert_non_null(strstr(message, "a race: a product"));
    assert_false(run_product(128, false, true, 4, exact));
    assert_non_null(strstr(message, "that a copy of thread"));
    assert_false(run_product(128, false, true, 8, exact));
    assert_non_null(strstr(message, "that nobody wrote"));
#endif
}

// In four orders of threads.
static void test_a_tile_is_given_back(void **state) {
    const struct primitive_args good = {0, 0, 0, (uintptr_t)out, 0},
                                early = {0, 0, 0, (uintptr_t)out, 1};
    (void)state;
    for (uint64_t seed = 0; seed < 4; ++seed) {
        simt_set_seed(seed);
        if (!run("primitive_given_back", 160, 64 * 128 + 16, &good)) fail_msg("%s", message);
        for (int i = 0; i < 128 * 32; ++i)
            assert_true(out[i] == 16.0f);
#if !GGML_THREAD_SANITIZER
        if (!simt_finds_defects()) continue;
        assert_false(run("primitive_given_back", 160, 64 * 128 + 16, &early));
        if (!strstr(message, "a race") || !strstr(message, "product")) fail_msg("%s", message);
#endif
    }
    (void)early;
    simt_set_seed(0);
}

static _Alignas(16) uint32_t pieces[PIECES * LANES * 4];

static bool run_pipeline(long long defects) {
    for (uint32_t i = 0; i < PIECES * LANES * 4; ++i)
        pieces[i] = i * i;
    memset(out, 0, sizeof(out));
    const struct primitive_args args = {(uintptr_t)pieces, 0, 0, (uintptr_t)out, defects};
    return run("primitive_pipeline", 64, 0, &args);
}

static void test_pipeline(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 4; ++seed) {
        simt_set_seed(seed);
        if (!run_pipeline(0)) fail_msg("%s", message);
        for (uint32_t i = 0; i < PIECES * LANES; ++i) {
            uint32_t sum = 0, actual;
            for (uint32_t k = 0; k < 4; ++k)
                sum += pieces[(i / LANES * LANES + LANES - 1 - i % LANES) * 4 + k];
            memcpy(&actual, &out[i], sizeof(actual));
            assert_int_equal(actual, sum);
        }
    }
    simt_set_seed(0);
}

// In four orders of threads.
static void check_defect(long long defect, const char *expected) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
        simt_set_seed(seed);
        assert_false(run_pipeline(defect));
        if (!strstr(message, expected)) fail_msg("%s, not %s", message, expected);
    }
    simt_set_seed(0);
}

static void test_waits_are_missed(void **state) {
    (void)state;
    if (!simt_finds_defects()) return;
    check_defect(NO_ARRIVAL, "deadlock");
#if GGML_THREAD_SANITIZER
    print_message("# races are left to libtsan\n");
#else
    check_defect(NO_FULL, "race");
    check_defect(NO_EMPTY, "race");
#endif
}

// A launch that asks for less than the kernel has, and for more than there is.
static void test_shared_memory(void **state) {
    (void)state;
    if (!simt_finds_defects()) return;
    const struct primitive_args args = {(uintptr_t)x, (uintptr_t)y, 0, (uintptr_t)out, 0};
    assert_false(run("primitive_wgmma_128_F16", 128, 128 * 128, &args));
    assert_non_null(strstr(message, "bytes of shared memory"));
    assert_false(run("primitive_wgmma_128_F16", 128, 228 * 1024, &args));
}

int main(void) {
    if (!simt_has("primitive_pipeline")) {
        puts("1..0 # SKIP the device has no such kernels");
        return 0;
    }
    simt_memory_show(x, sizeof(x));
    simt_memory_show(y, sizeof(y));
    simt_memory_show(out, sizeof(out));
    simt_memory_show(pieces, sizeof(pieces));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),      cmocka_unit_test(test_a_product_is_not_waited_for),
        cmocka_unit_test(test_pipeline),      cmocka_unit_test(test_waits_are_missed),
        cmocka_unit_test(test_shared_memory), cmocka_unit_test(test_a_tile_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
