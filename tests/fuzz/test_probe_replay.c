// SPDX-License-Identifier: MIT
// usage: test-probe-replay CORPUS: feeds the readers of the probe protocol and of the probe cache
// with the seeds and damaged copies of them. GGML_TEST_SEED replays a run.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz/inputs/probe_input.h"
#include "fuzz/replay.h"

enum { N_FLIPS = 400 };

static const char *corpus;
static uint64_t random_seed = 20240607;

static void run_damaged(replay_input run, unsigned char *data, size_t size) {
    static const unsigned char extremes[] = {0x00, 0xff};
    uint64_t random = random_seed;
    replay_exact(run, data, size);
    for (size_t n = 0; n < size; ++n)
        replay_exact(run, data, n);
    for (size_t i = 0; i < size * sizeof(extremes); ++i) {
        const unsigned char kept = data[i / sizeof(extremes)];
        data[i / sizeof(extremes)] = extremes[i % sizeof(extremes)];
        run(data, size);
        data[i / sizeof(extremes)] = kept;
    }
    for (int i = 0; i < N_FLIPS; ++i) {
        const size_t a = replay_random(&random) % (size * 8);
        const size_t b = replay_random(&random) % (size * 8);
        data[a / 8] ^= (unsigned char)(1u << a % 8);
        data[b / 8] ^= (unsigned char)(1u << b % 8);
        replay_exact(run, data, size);
        data[b / 8] ^= (unsigned char)(1u << b % 8);
        data[a / 8] ^= (unsigned char)(1u << a % 8);
    }
}

static void run_whole(replay_input run, unsigned char *data, size_t size) {
    replay_exact(run, data, size);
}

static void test_what_helpers_say(void **state) {
    (void)state;
    print_message("# GGML_TEST_SEED=%llu\n", (unsigned long long)random_seed);
    n_results_taken = 0;
    assert_true(replay_folder(corpus, "probe", run_probe_input, run_whole) >= 12);
    assert_int_equal(n_results_taken, 7); // seeds of another format test nothing
    replay_folder(corpus, "probe", run_probe_input, run_damaged);
}

static void test_entries_of_the_cache(void **state) {
    (void)state;
    print_message("# GGML_TEST_SEED=%llu\n", (unsigned long long)random_seed);
    n_results_taken = 0;
    assert_true(replay_folder(corpus, "cache", run_cache_input, run_whole) >= 7);
    assert_int_equal(n_results_taken, 5);
    replay_folder(corpus, "cache", run_cache_input, run_damaged);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_helpers_say),
        cmocka_unit_test(test_entries_of_the_cache),
    };
    if (argc != 2) return 2;
    corpus = argv[1];
    if (getenv("GGML_TEST_SEED")) random_seed = strtoull(getenv("GGML_TEST_SEED"), NULL, 10) | 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
