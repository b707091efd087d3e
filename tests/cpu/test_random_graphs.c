// SPDX-License-Identifier: MIT
// Random calls of builders with hostile arguments; what is not refused is computed. Nothing may
// crash, hang or, under a sanitizer, read or write where it should not. GGML_TEST_SEED replays a
// run.
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fuzz/inputs/build_input.h"
#include "fuzz/replay.h"
#include "ggml-host.h"

enum { N_GRAPHS = 4000 };

static uint64_t seed = 20250611;

static void keep_quiet(enum ggml_log_level level, const char *text, void *context) {
    (void)level;
    (void)text;
    (void)context;
}

static void test_random_calls_are_refused_or_computed(void **state) {
    (void)state;
    int n_computed = 0;
    print_message("# GGML_TEST_SEED=%llu\n", (unsigned long long)seed);
    ggml_log_set(keep_quiet, NULL);
    for (int i = 0; i < N_GRAPHS; ++i) {
        const uint64_t before = seed;
        const int64_t start = ggml_time_us();
        unsigned char data[BUILD_INPUT_BYTES];
        for (size_t k = 0; k < sizeof(data); ++k)
            data[k] = (unsigned char)(replay_random(&seed) >> 24);
        n_computed += run_build_input(data, sizeof(data));
        if (ggml_time_us() - start > 5000000)
            fail_msg("seed %llu takes long", (unsigned long long)before);
    }
    ggml_log_set(NULL, NULL);
    print_message("# %d of %d graphs were computed\n", n_computed, N_GRAPHS);
    assert_true(n_computed > N_GRAPHS / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_calls_are_refused_or_computed),
    };
    if (getenv("GGML_TEST_SEED")) seed = strtoull(getenv("GGML_TEST_SEED"), NULL, 10) | 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
