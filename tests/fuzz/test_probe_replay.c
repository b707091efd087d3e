// SPDX-License-Identifier: MIT
// usage: test-probe-replay CORPUS: feeds the readers of the probe protocol and of the probe cache
// with the seeds and damaged copies of them. GGML_TEST_SEED replays a run.
#define _GNU_SOURCE
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz/probe_input.h"

enum { MAX_SEED = 1 << 16, N_FLIPS = 400 };

typedef void (*run_input)(const unsigned char *data, size_t size);

static const char *corpus;
static uint64_t random_seed = 20240607;

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

// A copy that ends where the memory ends, so that a sanitizer sees every byte read beyond it.
static void run_exact(run_input run, const unsigned char *data, size_t size) {
    unsigned char *copy = malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    run(copy, size);
    free(copy);
}

static void run_damaged(run_input run, unsigned char *data, size_t size) {
    static const unsigned char extremes[] = {0x00, 0xff};
    uint64_t random = random_seed;
    run_exact(run, data, size);
    for (size_t n = 0; n < size; ++n)
        run_exact(run, data, n);
    for (size_t i = 0; i < size * sizeof(extremes); ++i) {
        const unsigned char kept = data[i / sizeof(extremes)];
        data[i / sizeof(extremes)] = extremes[i % sizeof(extremes)];
        run(data, size);
        data[i / sizeof(extremes)] = kept;
    }
    for (int i = 0; i < N_FLIPS; ++i) {
        const size_t a = next_random(&random) % (size * 8);
        const size_t b = next_random(&random) % (size * 8);
        data[a / 8] ^= (unsigned char)(1u << a % 8);
        data[b / 8] ^= (unsigned char)(1u << b % 8);
        run_exact(run, data, size);
        data[b / 8] ^= (unsigned char)(1u << b % 8);
        data[a / 8] ^= (unsigned char)(1u << a % 8);
    }
}

static void replay(const char *folder, run_input run, size_t least) {
    static unsigned char data[MAX_SEED];
    char path[4096];
    size_t n = 0;
    snprintf(path, sizeof(path), "%s/%s", corpus, folder);
    DIR *stream = opendir(path);
    assert_non_null(stream);
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof(path), "%s/%s/%s", corpus, folder, entry->d_name);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        const size_t size = fread(data, 1, sizeof(data), file);
        fclose(file);
        run_damaged(run, data, size);
        ++n;
    }
    closedir(stream);
    assert_true(n >= least);
}

static void test_what_helpers_say(void **state) {
    (void)state;
    print_message("# GGML_TEST_SEED=%llu\n", (unsigned long long)random_seed);
    replay("probe", run_probe_input, 12);
}

static void test_entries_of_the_cache(void **state) {
    (void)state;
    print_message("# GGML_TEST_SEED=%llu\n", (unsigned long long)random_seed);
    replay("cache", run_cache_input, 7);
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
