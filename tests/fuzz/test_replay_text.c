// SPDX-License-Identifier: MIT
// usage: test-replay-text CORPUS: feeds the readers of texts with every file of tests/fuzz/corpus,
// whole, truncated everywhere and with damaged bytes. GGML_TEST_SEED replays a run.
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz/text_input.h"

enum { MAX_SIZE = 1 << 16, N_DAMAGED = 3000 };

typedef void (*input_fn)(const unsigned char *data, size_t size);

static const char *corpus;
static uint64_t seed = 20250311;

static uint64_t next_random(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

// A copy that ends where the memory ends, so that a sanitizer sees every byte read beyond it.
static void run_exact(input_fn run, const unsigned char *data, size_t size) {
    unsigned char *copy = malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    run(copy, size);
    free(copy);
}

static void run_damaged(input_fn run, unsigned char *data, size_t size) {
    static const char bytes[] = "\0\n\r\\,:- /*#0aF\x7f\xff";
    for (size_t n = 0; n <= size; ++n)
        run_exact(run, data, n);
    for (int i = 0; size > 0 && i < N_DAMAGED; ++i) {
        const size_t at = next_random() % size;
        const unsigned char kept = data[at];
        data[at] = (unsigned char)bytes[next_random() % (sizeof(bytes) - 1)];
        run_exact(run, data, size);
        if (i % 8 != 0) data[at] = kept; // some damage stays
    }
}

static size_t replay(const char *folder, input_fn run) {
    char path[1024];
    size_t n_files = 0;
    snprintf(path, sizeof(path), "%s/%s", corpus, folder);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        unsigned char data[MAX_SIZE];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof(path), "%s/%s/%s", corpus, folder, entry->d_name);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        const size_t size = fread(data, 1, sizeof(data), file);
        fclose(file);
        run_damaged(run, data, size);
        ++n_files;
    }
    closedir(dir);
    return n_files;
}

static void test_lists_of_sums(void **state) {
    (void)state;
    assert_true(replay("sums", run_sums_input) >= 3);
}

static void test_values_of_ggml_devices(void **state) {
    (void)state;
    assert_true(replay("devices", run_devices_input) >= 3);
}

static void test_control_groups(void **state) {
    (void)state;
    assert_true(replay("cgroup", run_cgroup_input) >= 3);
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
