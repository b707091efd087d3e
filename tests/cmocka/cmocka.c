// SPDX-License-Identifier: MIT
// Assertions, fixtures and the runner of the small cmocka: a failed assertion leaves its test
// with longjmp, results are printed as TAP.
#include "cmocka.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

enum verdict { FAILED = 1, SKIPPED };

static jmp_buf end_of_test;

// --- verdicts

void small_fail(const char *file, int line, const char *format, ...) {
    va_list args;
    printf("# %s:%d: ", file, line);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    longjmp(end_of_test, FAILED);
}

void small_skip(void) {
    longjmp(end_of_test, SKIPPED);
}

void small_int(uintmax_t a, uintmax_t b, int want_equal, const char *file, int line) {
    if ((a == b) == want_equal) return;
    small_fail(file, line, "%" PRIdMAX " %s %" PRIdMAX, (intmax_t)a,
               want_equal ? "!=" : "==", (intmax_t)b);
}

void small_text(const char *a, const char *b, int want_equal, const char *file, int line) {
    if (a && b && (strcmp(a, b) == 0) == want_equal) return;
    small_fail(file, line, "\"%s\" %s \"%s\"", a ? a : "(NULL)",
               want_equal ? "!=" : "==", b ? b : "(NULL)");
}

void small_memory(const void *a, const void *b, size_t size, int want_equal, const char *file,
                  int line) {
    const unsigned char *x = a, *y = b;
    if ((memcmp(a, b, size) == 0) == want_equal) return;
    size_t i = 0;
    while (i < size && x[i] == y[i])
        ++i;
    small_fail(file, line, "of %zu bytes the first that differs is number %zu", size, i);
}

void small_float(double a, double b, double epsilon, const char *file, int line) {
    if (a == b || fabs(a - b) <= epsilon) return;
    small_fail(file, line, "%.9g != %.9g", a, b);
}

void small_range(uintmax_t value, uintmax_t low, uintmax_t high, const char *file, int line) {
    if (value >= low && value <= high) return;
    small_fail(file, line, "%" PRIuMAX " is not within %" PRIuMAX "..%" PRIuMAX, value, low, high);
}

// --- runs

static int run_guarded(const struct CMUnitTest *test, void **state) {
    const int verdict = setjmp(end_of_test);
    if (verdict != 0) return verdict;
    if (test->setup_func && test->setup_func(state) != 0)
        small_fail(test->name, 0, "its setup failed");
    test->test_func(state);
    return 0;
}

static int tear_down(const struct CMUnitTest *test, void **state) {
    if (!test->teardown_func) return 0;
    const int verdict = setjmp(end_of_test);
    return verdict != 0 ? verdict : test->teardown_func(state) != 0;
}

// Returns whether it failed.
static int run_one(const struct CMUnitTest *test, size_t number, void *group_state) {
    void *state = test->initial_state ? test->initial_state : group_state;
    int verdict = run_guarded(test, &state);
    const int end = tear_down(test, &state);
    if (verdict == 0 || end == FAILED) verdict = end;
    printf("%s %zu - %s%s\n", verdict == FAILED ? "not ok" : "ok", number, test->name,
           verdict == SKIPPED ? " # SKIP" : "");
    fflush(stdout);
    return verdict == FAILED;
}

// One fixture of all tests; returns whether it failed.
static int run_fixture(CMFixtureFunction fixture, void **state) {
    if (!fixture) return 0;
    return setjmp(end_of_test) != 0 || fixture(state) != 0;
}

int small_run(const struct CMUnitTest *tests, size_t count, CMFixtureFunction setup,
              CMFixtureFunction teardown) {
    int n_failed = 0;
    void *state = NULL;
    printf("1..%zu\n", count);
    if (run_fixture(setup, &state)) {
        puts("Bail out! The setup of the tests failed.");
        return 1;
    }
    for (size_t i = 0; i < count; ++i)
        n_failed += run_one(&tests[i], i + 1, state);
    return n_failed + run_fixture(teardown, &state);
}
