// SPDX-License-Identifier: MIT
// Which launches wait for which, against a comparison of every pair of them.
#include "gpu/graph/overlap.h"

#include <stdlib.h>

#include "gpu_test.h"

enum { N = 3 * GPU_OVERLAP_WINDOW + 17, N_SEEDS = 8, MEMORY = 40, MOST = 4 };

struct launch {
    struct gpu_touch touches[MOST];
    int n;
};

static struct gpu_overlap overlap;

static uint32_t next(uint32_t *seed, uint32_t n) {
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

static bool conflict(const struct launch *a, const struct launch *b) {
    bool found = false;
    for (int i = 0; i < a->n; ++i) {
        for (int k = 0; k < b->n; ++k)
            found |= (a->touches[i].writes || b->touches[k].writes) &&
                     a->touches[i].begin < b->touches[k].end &&
                     b->touches[k].begin < a->touches[i].end;
    }
    return found;
}

// Marks in `row` all that launch i waits for, be it through others; fails if an edge says nothing
// new.
static void reach(bool *all, size_t i, const int32_t *before, int n) {
    bool *row = &all[i * N];
    for (int k = 0; k < n; ++k) {
        assert_in_range(before[k], 0, (int)i - 1);
        for (int other = 0; other < n; ++other) {
            if (all[(size_t)before[other] * N + (size_t)before[k]])
                fail_msg("launch %zu waits for %d twice", i, before[k]);
        }
    }
    for (int k = 0; k < n; ++k) {
        row[before[k]] = true;
        for (size_t j = 0; j < N; ++j)
            row[j] |= all[(size_t)before[k] * N + j];
    }
}

// Ranges of `memory` bytes: few make nearly a chain, many leave most launches alone.
static void check(uint32_t seed, uint32_t memory, int *out_free) {
    static struct launch launches[N];
    bool *all = calloc((size_t)N * N, sizeof(*all));
    assert_non_null(all);
    memset(&overlap, 0, sizeof(overlap));
    for (size_t i = 0; i < N; ++i) {
        int32_t before[GPU_OVERLAP_WINDOW];
        launches[i].n = 1 + (int)next(&seed, MOST);
        for (int k = 0; k < launches[i].n; ++k) {
            const uintptr_t begin = next(&seed, memory);
            launches[i].touches[k] = (struct gpu_touch){begin, begin + 1 + next(&seed, 4), k == 0};
        }
        const int n = gpu_overlap_add(&overlap, launches[i].touches, launches[i].n, before);
        reach(all, i, before, n);
        for (size_t k = 0; k < i; ++k) {
            if (conflict(&launches[i], &launches[k]) && !all[i * N + k])
                fail_msg("launch %zu does not wait for %zu", i, k);
            *out_free += !all[i * N + k];
        }
    }
    free(all);
}

static void test_random_launches(void **state) {
    int n_free = 0;
    (void)state;
    for (uint32_t seed = 1; seed <= N_SEEDS; ++seed)
        check(seed, MEMORY << seed, &n_free);
    // A window's launches of which most are alone: no more order than is needed.
    assert_true(n_free > N * GPU_OVERLAP_WINDOW / 4);
}

static void test_chain(void **state) {
    int32_t before[GPU_OVERLAP_WINDOW];
    (void)state;
    memset(&overlap, 0, sizeof(overlap));
    for (uintptr_t i = 0; i < 2 * GPU_OVERLAP_WINDOW; ++i) {
        const struct gpu_touch touches[] = {{i % 2, i % 2 + 1, true},
                                            {(i + 1) % 2, (i + 1) % 2 + 1, false}};
        const int n = gpu_overlap_add(&overlap, touches, 2, before);
        assert_int_equal(n, i > 0);
        if (n > 0) assert_int_equal(before[0], i - 1);
    }
}

static void test_readers_run_together(void **state) {
    const struct gpu_touch write = {0, 8, true}, read = {0, 8, false};
    int32_t before[GPU_OVERLAP_WINDOW];
    (void)state;
    memset(&overlap, 0, sizeof(overlap));
    assert_int_equal(gpu_overlap_add(&overlap, &write, 1, before), 0);
    for (int i = 0; i < 3; ++i) {
        const struct gpu_touch touches[] = {read,
                                            {100 + (uintptr_t)i * 8, 108 + (uintptr_t)i * 8, true}};
        assert_int_equal(gpu_overlap_add(&overlap, touches, 2, before), 1);
        assert_int_equal(before[0], 0);
    }
    assert_int_equal(gpu_overlap_add(&overlap, &write, 1, before), 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_launches),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_readers_run_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
