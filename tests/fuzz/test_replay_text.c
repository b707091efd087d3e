// SPDX-License-Identifier: MIT
// usage: test-replay-text CORPUS: feeds the readers of texts with every file of tests/fuzz/corpus,
// whole, truncated everywhere and with damaged bytes. GGML_TEST_SEED replays a run.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz/inputs/text_input.h"
#include "fuzz/replay.h"

enum { N_DAMAGED = 3000 };

static const char *corpus;
static uint64_t seed = 20250311;

static void run_damaged(replay_input run, unsigned char *data, size_t size) {
    static const char bytes[] = "\0\n\r\\,:- /*#0aF\x7f\xff";
    for (size_t n = 0; n <= size; ++n)
        replay_exact(run, data, n);
    for (int i = 0; size > 0 && i < N_DAMAGED; ++i) {
        const size_t at = replay_random(&seed) % size;
        const unsigned char kept = data[at];
        data[at] = (unsigned char)bytes[replay_random(&seed) % (sizeof(bytes) - 1)];
        replay_exact(run, data, size);
        if (i % 8 != 0) data[at] = kept; // some damage stays
    }
}

static void test_lists_of_sums(void **state) {
    (void)state;
    assert_true(replay_folder(corpus, "sums", run_sums_input, run_damaged) >= 3);
}

static void test_values_of_ggml_devices(void **state) {
    (void)state;
    assert_true(replay_folder(corpus, "devices", run_devices_input, run_damaged) >= 3);
}

static void test_control_groups(void **state) {
    (void)state;
    assert_true(replay_folder(corpus, "cgroup", run_cgroup_input, run_damaged) >= 3);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists_of_sums),
        cmocka_unit_test(test_values_of_ggml_devices),
        cmocka_unit_test(test_control_groups),
    };
    if (argc != 2) return 2;
    corpus = argv[1];
    if (getenv("GGML_TEST_SEED")) seed = strtoull(getenv("GGML_TEST_SEED"), NULL, 10) | 1;
    print_message("# GGML_TEST_SEED=%llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
