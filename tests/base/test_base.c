// SPDX-License-Identifier: MIT
// core/base: the last error message, the log callback, arenas without memory, F16 conversion of
// every value, names of environment variables.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/data/arena.h"
#include "base/env.h"
#include "base/mem.h"
#include "base/status.h"
#include "ggml-impl.h"

static void test_last_error_keeps_the_failing_call(void **state) {
    (void)state;
    ggml_clear_error();
    assert_string_equal(ggml_last_error(), "");
    assert_int_equal(ggml_fail(GGML_HOST_NOT_FOUND, "no %s", "file"), GGML_HOST_NOT_FOUND);
    assert_string_equal(ggml_last_error(), "no file");
    ggml_fail(GGML_HOST_FAILED, "outer: %s", ggml_last_error());
    assert_string_equal(ggml_last_error(), "outer: no file");
    assert_int_equal(ggml_last_status(), GGML_HOST_FAILED);
    ggml_clear_error();
}

static char seen[2048];

static void remember(enum ggml_log_level level, const char *text, void *user_data) {
    (void)level;
    (void)user_data;
    strncat(seen, text, sizeof(seen) - strlen(seen) - 1);
}

static void test_log_callback_gets_long_messages(void **state) {
    (void)state;
    char text[1500];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    ggml_log_set(remember, NULL);
    GGML_LOG_INFO("%s!", text);
    ggml_log_set(NULL, NULL);
    assert_int_equal(strlen(seen), sizeof(text));
}

// Elements stay, room for one more at least doubles, and what has no address is refused.
static void test_arrays_extend_by_doubling(void **state) {
    (void)state;
    uint64_t *values = NULL;
    size_t capacity = 0, n_moves = 0;
    for (size_t n = 0; n < 10000; ++n) {
        const size_t before = capacity;
        assert_true(array_extend(&values, &capacity, n, 1, sizeof(values[0])));
        assert_true(capacity > n && (capacity == before || capacity >= 2 * before));
        n_moves += capacity != before;
        values[n] = n;
    }
    assert_true(n_moves < 15);
    uint64_t *const kept = values;
    const size_t room = capacity;
    assert_false(array_extend(&values, &capacity, 10000, SIZE_MAX, sizeof(values[0])));
    assert_false(array_extend(&values, &capacity, 10000, SIZE_MAX / 16, sizeof(values[0])));
    assert_true(values == kept && capacity == room && values[9999] == 9999);
    ggml_mem_free(values);
}

static bool never(void *context) {
    (void)context;
    return false;
}

static void test_arena_survives_failing_allocations(void **state) {
    (void)state;
    struct arena arena = {0};
    char *text = arena_strdup(&arena, "kept");
    assert_non_null(arena_alloc(&arena, 100000));
    ggml_mem_set_fault_hook(never, NULL);
    assert_null(arena_alloc(&arena, 200000));
    ggml_mem_set_fault_hook(NULL, NULL);
    assert_non_null(arena_alloc(&arena, 200000));
    assert_string_equal(text, "kept");
    arena_free(&arena);
}

static void test_fp16_round_trips_every_value(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const float value = GGML_FP16_TO_FP32((ggml_fp16_t)bits);
        const ggml_fp16_t back = GGML_FP32_TO_FP16(value);
        if (isnan(value)) {
            assert_int_equal(back & 0x7FFF, 0x7E00);
        } else {
            assert_int_equal(back, bits);
        }
    }
}

static void test_fp16_rounds_to_nearest_even(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 0x7BFF; ++bits) {
        const float low = GGML_FP16_TO_FP32((ggml_fp16_t)bits);
        const float high = GGML_FP16_TO_FP32((ggml_fp16_t)(bits + 1));
        const float middle = low + (high - low) / 2;
        assert_int_equal(GGML_FP32_TO_FP16(middle), bits & 1 ? bits + 1 : bits);
        assert_int_equal(GGML_FP32_TO_FP16(nextafterf(middle, high)), bits + 1);
        assert_int_equal(GGML_FP32_TO_FP16(nextafterf(middle, low)), bits);
    }
    assert_int_equal(GGML_FP32_TO_FP16(65519.0f), 0x7BFF);
    assert_int_equal(GGML_FP32_TO_FP16(65520.0f), 0x7C00);
}

static void test_unknown_environment_names_are_null(void **state) {
    (void)state;
    assert_null(ggml_env_by_name("PATH"));
}

// F17 of a security review: messages quote files and plugins, and are shown on terminals.
static void test_f17_messages_command_no_terminal(void **state) {
    (void)state;
    ggml_fail(GGML_HOST_FAILED, "'%s' %s\n\t%s", "\x1b[31m\x07\x7f", "\xc2\x9b\xc2\xa0\xc3\xa4",
              "ok");
    assert_string_equal(ggml_last_error(), "'?[31m?\?' ?\?\xc2\xa0\xc3\xa4\n\tok");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f17_messages_command_no_terminal),
        cmocka_unit_test(test_last_error_keeps_the_failing_call),
        cmocka_unit_test(test_log_callback_gets_long_messages),
        cmocka_unit_test(test_arrays_extend_by_doubling),
        cmocka_unit_test(test_arena_survives_failing_allocations),
        cmocka_unit_test(test_fp16_round_trips_every_value),
        cmocka_unit_test(test_fp16_rounds_to_nearest_even),
        cmocka_unit_test(test_unknown_environment_names_are_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
