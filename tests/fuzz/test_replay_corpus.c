// SPDX-License-Identifier: MIT
// usage: test-replay-NAME CORPUS: one fuzzer's inputs (INPUT, FOLDER; see meson.build): what its
// folder of tests/fuzz/corpus has, truncated and with damaged bytes, and random ones.
// GGML_TEST_SEED replays a run.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fuzz/replay.h"
#include INPUT_HEADER

enum { N_DAMAGED = 300, N_RANDOM = 3000, MOST_RANDOM = 512 };

static const char *corpus;
static uint64_t seed = 20250311;

static void run_damaged(replay_input run, unsigned char *data, size_t size) {
    for (size_t n = 0; n <= size; ++n)
        replay_exact(run, data, n);
    for (int i = 0; size > 0 && i < N_DAMAGED; ++i) {
        const size_t at = replay_random(&seed) % size;
        const unsigned char kept = data[at];
        data[at] = (unsigned char)(replay_random(&seed) >> 24);
        replay_exact(run, data, size);
        if (i % 8 != 0) data[at] = kept; // some damage stays
    }
}

static void test_the_corpus(void **state) {
    (void)state;
    assert_true(replay_folder(corpus, FOLDER, INPUT, run_damaged) >= 3);
}

static void test_random_inputs(void **state) {
    unsigned char data[MOST_RANDOM];
    (void)state;
    for (int i = 0; i < N_RANDOM; ++i) {
        const size_t size = replay_random(&seed) % MOST_RANDOM;
        for (size_t k = 0; k < size; ++k)
            data[k] = (unsigned char)(replay_random(&seed) >> 24);
        replay_exact(INPUT, data, size);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_corpus),
        cmocka_unit_test(test_random_inputs),
    };
    if (argc != 2) return 2;
    corpus = argv[1];
    if (getenv("GGML_TEST_SEED")) seed = strtoull(getenv("GGML_TEST_SEED"), NULL, 10) | 1;
    print_message("# GGML_TEST_SEED=%llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
