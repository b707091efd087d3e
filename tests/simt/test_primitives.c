// SPDX-License-Identifier: MIT
// Each wrapper of plugins/cuda/kernels/gpu_tensor.h against its definition, which is written here
// once more in terms of matrices, bytes and numbers.
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../core/base/sanitizer.h"
#include "primitives.h"
#include "simt.h"

enum { LANES = 32, WORDS = 1024 };

static char message[300];

static bool run(const char *kernel, const struct primitive_args *args) {
    const struct simt_launch launch = {kernel, {1, 1, 1}, LANES, args, 0};
    message[0] = '\0';
    return simt_run(&launch, message, sizeof(message));
}

static uint32_t next(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed;
}

// --- numbers of 16 bits --------------------------------------------------------------------------

static double f16_value(uint32_t bits) {
    const int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
    double value = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    if (exponent == 31) value = fraction ? (double)NAN : (double)INFINITY;
    return bits & 0x8000u ? -value : value;
}

static double bf16_value(uint32_t bits) {
    const uint32_t word = (bits & 0xffffu) << 16;
    float value;
    memcpy(&value, &word, sizeof(value));
    return (double)value;
}

// Finds the nearest number of the format among all, the one with an even last bit of two that are
// as near. Beyond the largest by half a step or more is infinity. `limit`: that border.
static uint32_t nearest(double value, double (*value_of)(uint32_t), uint32_t infinity,
                        double limit) {
    const uint32_t sign = signbit(value) ? 0x8000u : 0;
    const double size = fabs(value);
    if (size >= limit) return sign | infinity;
    // The numbers without a sign ascend with their bits.
    uint32_t low = 0, high = infinity;
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        if (value_of(middle) <= size)
            low = middle;
        else
            high = middle;
    }
    const double below = size - value_of(low);
    const double above = high == infinity ? (double)INFINITY : value_of(high) - size;
    const bool up = high != infinity && (above < below || (above == below && (low & 1)));
    // The last number before infinity is rounded to wherever the limit has not taken over.
    return sign | (up ? high : low);
}

static uint32_t to_f16(double value) {
    return nearest(value, f16_value, 0x7c00u, 65520.0);
}

static uint32_t to_bf16(double value) {
    return nearest(value, bf16_value, 0x7f80u, ldexp(511.0, 119));
}

// Equal, or both NaN.
static bool same(uint32_t bits, double exact, uint32_t (*round)(double),
                 double (*value_of)(uint32_t)) {
    if (isnan(exact)) return isnan(value_of(bits & 0xffffu));
    return (bits & 0xffffu) == round(exact);
}

static bool has_bf16(void) {
    return simt_get_capability() >= 80;
}

// --- tests ---------------------------------------------------------------------------------------

// Small whole numbers, whose sums are exact in any order.
static void check_product(const char *kernel, int depth, uint32_t (*round)(double)) {
    static uint16_t x[16 * 16], y[8 * 16];
    static float out[16 * 8];
    static double exact[16 * 8];
    uint32_t seed = 1;
    simt_memory_add(x, sizeof(x));
    simt_memory_add(y, sizeof(y));
    simt_memory_add(out, sizeof(out));
    for (int i = 0; i < 16 * 8; ++i) {
        exact[i] = i;
        out[i] = (float)i;
    }
    static int a[16 * 16], b[8 * 16];
    for (int i = 0; i < 16 * 16; ++i)
        x[i] = (uint16_t)round(a[i] = (int)(next(&seed) >> 24) % 31 - 15);
    for (int i = 0; i < 8 * 16; ++i)
        y[i] = (uint16_t)round(b[i] = (int)(next(&seed) >> 24) % 31 - 15);
    for (int r = 0; r < 16; ++r) {
        for (int c = 0; c < 8; ++c) {
            for (int k = 0; k < depth; ++k)
                exact[r * 8 + c] += (double)(a[r * 16 + k] * b[c * 16 + k]);
        }
    }
    const struct primitive_args args = {(uintptr_t)x, (uintptr_t)y, 0, (uintptr_t)out, 0};
    if (!run(kernel, &args)) fail_msg("%s: %s", kernel, message);
    for (int i = 0; i < 16 * 8; ++i) {
        if ((double)out[i] != exact[i])
            fail_msg("%s: %g in row %d, column %d instead of %g", kernel, (double)out[i], i / 8,
                     i % 8, exact[i]);
    }
    simt_memory_remove(x);
    simt_memory_remove(y);
    simt_memory_remove(out);
}

static void test_products(void **state) {
    (void)state;
    check_product("primitive_mma_f16", 16, to_f16);
    check_product("primitive_mma_f16_8", 8, to_f16);
    if (has_bf16()) check_product("primitive_mma_bf16", 16, to_bf16);
}

static void check_matrices(const char *kernel, bool turned) {
    static _Alignas(16) uint16_t x[4 * 8 * 8];
    static uint32_t out[4 * LANES];
    simt_memory_add(x, sizeof(x));
    simt_memory_add(out, sizeof(out));
    for (int i = 0; i < 4 * 8 * 8; ++i)
        x[i] = (uint16_t)(i + 1);
    const struct primitive_args args = {(uintptr_t)x, 0, 0, (uintptr_t)out, 0};
    if (!run(kernel, &args)) fail_msg("%s: %s", kernel, message);
    for (int m = 0; m < 4; ++m) {
        for (int lane = 0; lane < LANES; ++lane) {
            for (int h = 0; h < 2; ++h) {
                const int row = lane / 4, column = 2 * (lane % 4) + h;
                const int at = m * 64 + (turned ? column * 8 + row : row * 8 + column);
                assert_int_equal(out[m * LANES + lane] >> (16 * h) & 0xffffu, x[at]);
            }
        }
    }
    simt_memory_remove(x);
    simt_memory_remove(out);
}

static void test_matrices(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 3; ++seed) {
        simt_set_seed(seed);
        check_matrices("primitive_matrices", false);
        check_matrices("primitive_matrices_turned", true);
    }
    simt_set_seed(0);
}

static void check_copies(bool at_once) {
    static _Alignas(16) uint8_t x[LANES * 16], y[LANES * 16], out[2 * LANES * 16];
    simt_memory_add(x, sizeof(x));
    simt_memory_add(y, sizeof(y));
    simt_memory_add(out, sizeof(out));
    for (size_t i = 0; i < sizeof(x); ++i) {
        x[i] = (uint8_t)(i + 1);
        y[i] = (uint8_t)(3 * i);
    }
    for (int n = 0; n <= 16; n += 4) {
        const struct primitive_args args = {(uintptr_t)x, (uintptr_t)y, 0, (uintptr_t)out, n};
        if (!run("primitive_copies", &args)) fail_msg("%d bytes: %s", n, message);
        for (size_t i = 0; i < sizeof(x); ++i)
            assert_int_equal(out[i], i % 16 < (size_t)n ? x[i] : 0);
        assert_memory_equal(out + sizeof(x), y, sizeof(y));
    }
    const struct primitive_args args = {(uintptr_t)x, (uintptr_t)y, 0, (uintptr_t)out, 16};
    if (simt_finds_defects() && !at_once) {
#if GGML_THREAD_SANITIZER
        assert_true(run("primitive_copies_not_waited", &args)); // and finds poison
        assert_int_not_equal(memcmp(out, x, sizeof(x)), 0);
        assert_int_equal(out[0], 0xff);
#else
        assert_false(run("primitive_copies_not_waited", &args));
        assert_non_null(strstr(message, "reads shared memory that a copy of thread"));
#endif
        assert_true(run("primitive_copies", &args));
    }
    simt_memory_remove(x);
    simt_memory_remove(y);
    simt_memory_remove(out);
}

static void test_copies(void **state) {
    (void)state;
    check_copies(false);
}

static void test_a_barrier_of_the_warp_is_missed(void **state) {
    static _Alignas(16) uint8_t x[LANES * 16], out[LANES * 16];
    (void)state;
    if (!simt_finds_defects()) return;
#if GGML_THREAD_SANITIZER
    print_message("# not with libtsan, which checks memory then\n");
    return;
#endif
    simt_memory_add(x, sizeof(x));
    simt_memory_add(out, sizeof(out));
    const struct primitive_args args = {(uintptr_t)x, 0, 0, (uintptr_t)out, 0};
    assert_false(run("primitive_copies_no_barrier", &args));
    assert_non_null(strstr(message, "race"));
    simt_memory_remove(x);
    simt_memory_remove(out);
}

// One word's results against exact arithmetic, rounded once.
static void check_words(uint32_t a, uint32_t b, uint32_t c, const uint32_t *out) {
    float values[2];
    memcpy(&values[0], &a, sizeof(a));
    memcpy(&values[1], &b, sizeof(b));
    for (int h = 0; h < 2; ++h) {
        const int shift = 16 * h;
        const uint32_t x = a >> shift, y = b >> shift, z = c >> shift;
        assert_true(same(out[0] >> shift, (double)values[h], to_f16, f16_value));
        assert_true(same(out[2] >> shift, f16_value(x & 0xffffu) - f16_value(y & 0xffffu), to_f16,
                         f16_value));
        // A product of halves and its sum with a third are exact in a double.
        assert_true(same(out[3] >> shift,
                         f16_value(x & 0xffffu) * f16_value(y & 0xffffu) + f16_value(z & 0xffffu),
                         to_f16, f16_value));
        if (!has_bf16()) continue;
        assert_true(same(out[1] >> shift, (double)values[h], to_bf16, bf16_value));
        // Numbers of BF16 reach further apart than a double has digits: only those of like size.
        const double product = bf16_value(x) * bf16_value(y), sum = product + bf16_value(z);
        const bool exact = sum - product == bf16_value(z) && sum - bf16_value(z) == product;
        if (exact) assert_true(same(out[4] >> shift, sum, to_bf16, bf16_value));
    }
    const uint64_t both = (uint64_t)b << 32 | a;
    for (int i = 0; i < 4; ++i)
        assert_int_equal(out[5] >> (8 * i) & 255u, both >> (8 * (c >> (4 * i) & 7u)) & 255u);
}

// Random words, and those of numbers of ordinary size, of which pairs of 16 bits are as well.
static void test_words(void **state) {
    static uint32_t x[WORDS], y[WORDS], z[WORDS];
    static _Alignas(8) uint32_t out[8 * WORDS];
    uint32_t *const all[3] = {x, y, z};
    uint32_t seed = 7;
    (void)state;
    for (int k = 0; k < 3; ++k)
        simt_memory_add(all[k], sizeof(x));
    simt_memory_add(out, sizeof(out));
    for (int k = 0; k < 3; ++k) {
        for (int i = 0; i < WORDS; ++i) {
            const uint32_t high = next(&seed) >> 16, low = next(&seed) >> 16;
            const uint32_t any = high << 16 | low;
            all[k][i] = i % 2 ? any : (any & 0x87ff87ffu) | 0x38003800u;
        }
    }
    const struct primitive_args args = {(uintptr_t)x, (uintptr_t)y, (uintptr_t)z, (uintptr_t)out,
                                        WORDS};
    if (!run("primitive_words", &args)) fail_msg("%s", message);
    if (has_bf16() && !run("primitive_words_bf16", &args)) fail_msg("%s", message);
    for (int i = 0; i < WORDS; ++i) {
        check_words(x[i], y[i], z[i], &out[8 * i]);
        assert_memory_equal(&out[8 * i + 6], &x[i & ~1], 8);
    }
    for (int k = 0; k < 3; ++k)
        simt_memory_remove(all[k]);
    simt_memory_remove(out);
}

// What capability 7.5 has, and has not.
static void test_turing(void **state) {
    if (!simt_finds_defects()) return;
    simt_set_capability(75);
    test_products(state);
    test_matrices(state);
    test_words(state);
    check_copies(true);
    static _Alignas(16) uint8_t memory[1024];
    simt_memory_add(memory, sizeof(memory));
    const uintptr_t at = (uintptr_t)memory;
    const struct primitive_args args = {at, at, at, at, 1};
    assert_false(run("primitive_mma_bf16", &args));
    assert_non_null(strstr(message, "BF16"));
    assert_false(run("primitive_words_bf16", &args));
    assert_non_null(strstr(message, "BF16"));
    simt_set_capability(72);
    assert_false(run("primitive_mma_f16", &args));
    assert_false(run("primitive_matrices", &args));
    simt_memory_remove(memory);
    simt_set_capability(90);
}

int main(void) {
    if (!simt_has("primitive_mma_bf16")) {
        puts("1..0 # SKIP the device has no such kernels");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products), cmocka_unit_test(test_matrices),
        cmocka_unit_test(test_copies),   cmocka_unit_test(test_a_barrier_of_the_warp_is_missed),
        cmocka_unit_test(test_words),    cmocka_unit_test(test_turing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
