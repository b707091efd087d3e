// SPDX-License-Identifier: MIT
// What the tests use of cmocka, for systems that have no package of it. Speaks TAP only.
#ifndef TESTS_CMOCKA_H
#define TESTS_CMOCKA_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef void (*CMUnitTestFunction)(void **state);
typedef int (*CMFixtureFunction)(void **state);

struct CMUnitTest {
    const char *name;
    CMUnitTestFunction test_func;
    CMFixtureFunction setup_func;
    CMFixtureFunction teardown_func;
    void *initial_state;
};

#define cmocka_unit_test(f)                                                                        \
    { #f, f, NULL, NULL, NULL }
#define cmocka_unit_test_teardown(f, teardown)                                                     \
    { #f, f, NULL, teardown, NULL }
#define cmocka_unit_test_setup_teardown(f, setup, teardown)                                        \
    { #f, f, setup, teardown, NULL }
#define cmocka_unit_test_prestate(f, state)                                                        \
    { #f, f, NULL, NULL, state }

#define cmocka_run_group_tests_name(name, tests, setup, teardown)                                  \
    small_run((tests), sizeof(tests) / sizeof((tests)[0]), setup, teardown)
#define cmocka_run_group_tests(tests, setup, teardown)                                             \
    cmocka_run_group_tests_name(#tests, tests, setup, teardown)

// Returns the number of tests that failed.
int small_run(const struct CMUnitTest *tests, size_t count, CMFixtureFunction setup,
              CMFixtureFunction teardown);
// Ends the test that runs, as failed.
_Noreturn void small_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(__MINGW_PRINTF_FORMAT, 3, 4)));
_Noreturn void small_skip(void);
void small_int(uintmax_t a, uintmax_t b, int want_equal, const char *file, int line);
void small_text(const char *a, const char *b, int want_equal, const char *file, int line);
void small_memory(const void *a, const void *b, size_t size, int want_equal, const char *file,
                  int line);
void small_float(double a, double b, double epsilon, const char *file, int line);
void small_range(uintmax_t value, uintmax_t low, uintmax_t high, const char *file, int line);

#define fail_msg(...) small_fail(__FILE__, __LINE__, __VA_ARGS__)
#define fail() small_fail(__FILE__, __LINE__, "failed")
#define skip() small_skip()
#define print_message printf
#define print_error(...) fprintf(stderr, __VA_ARGS__)

#define assert_true(c) ((c) ? (void)0 : small_fail(__FILE__, __LINE__, "%s", "not true: " #c))
#define assert_false(c) ((c) ? small_fail(__FILE__, __LINE__, "%s", "not false: " #c) : (void)0)
#define assert_non_null(c) assert_true((c) != NULL)
#define assert_null(c) assert_true((c) == NULL)
#define assert_int_equal(a, b) small_int((uintmax_t)(a), (uintmax_t)(b), 1, __FILE__, __LINE__)
#define assert_int_not_equal(a, b) small_int((uintmax_t)(a), (uintmax_t)(b), 0, __FILE__, __LINE__)
#define assert_ptr_equal(a, b) small_int((uintptr_t)(a), (uintptr_t)(b), 1, __FILE__, __LINE__)
#define assert_ptr_not_equal(a, b) small_int((uintptr_t)(a), (uintptr_t)(b), 0, __FILE__, __LINE__)
#define assert_string_equal(a, b) small_text(a, b, 1, __FILE__, __LINE__)
#define assert_string_not_equal(a, b) small_text(a, b, 0, __FILE__, __LINE__)
#define assert_memory_equal(a, b, n) small_memory(a, b, n, 1, __FILE__, __LINE__)
#define assert_memory_not_equal(a, b, n) small_memory(a, b, n, 0, __FILE__, __LINE__)
#define assert_float_equal(a, b, epsilon)                                                          \
    small_float((double)(a), (double)(b), (double)(epsilon), __FILE__, __LINE__)
#define assert_in_range(value, low, high)                                                          \
    small_range((uintmax_t)(value), (uintmax_t)(low), (uintmax_t)(high), __FILE__, __LINE__)

#endif
