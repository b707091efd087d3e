// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "graph/memory_plan.h"

static uint64_t random_state;

static uint32_t next_random(uint32_t limit) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % limit;
}

static void check_no_overlap(const struct memory_block *blocks, int32_t n,
                             const struct memory_chunks *chunks) {
    for (int32_t i = 0; i < n; ++i) {
        const struct memory_block *a = &blocks[i];
        assert_in_range(a->chunk, 0, chunks->count - 1);
        assert_true(a->offset + a->size <= chunks->sizes[a->chunk]);
        assert_true(chunks->sizes[a->chunk] <= chunks->limits[a->chunk]);
        for (int32_t k = 0; k < i; ++k) {
            const struct memory_block *b = &blocks[k];
            const bool same_time = a->first <= b->last && b->first <= a->last;
            const bool same_place = a->chunk == b->chunk && a->offset < b->offset + b->size &&
                                    b->offset < a->offset + a->size;
            if (same_time && same_place) fail_msg("blocks %d and %d overlap", k, i);
        }
    }
}

static void make_random(struct memory_block *blocks, int32_t n, int32_t times,
                        uint32_t long_lived) {
    for (int32_t i = 0; i < n; ++i) {
        const int32_t first = (int32_t)next_random((uint32_t)times);
        const uint32_t span = next_random(100) < long_lived ? (uint32_t)times : 8;
        blocks[i] = (struct memory_block){
            .size = 32 * (size_t)next_random(next_random(4) == 0 ? 1000 : 20),
            .first = first,
            .last = first + (int32_t)next_random(span),
        };
    }
}

static void test_random_blocks_never_overlap(void **state) {
    (void)state;
    struct memory_block blocks[300];
    const size_t limits[] = {SIZE_MAX, 40000, 5000, 32, 1};
    for (uint32_t seed = 0; seed < 60; ++seed) {
        struct memory_chunks chunks;
        bool gave_up;
        const int32_t n = (int32_t)(seed * 5);
        const size_t limit = limits[seed % 5];
        random_state = seed;
        make_random(blocks, n, 100, seed % 30);
        assert_true(memory_plan(blocks, n, limit, &chunks));
        check_no_overlap(blocks, n, &chunks);
        assert_true(memory_chunks_total(&chunks) >= memory_plan_lower_bound(blocks, n));
        memory_chunks_free(&chunks);
        assert_true(memory_plan_by_time(blocks, n, limit, &chunks));
        check_no_overlap(blocks, n, &chunks);
        memory_chunks_free(&chunks);
        assert_true(memory_plan_by_size(blocks, n, limit, 0, &chunks, &gave_up));
        check_no_overlap(blocks, n, &chunks);
        memory_chunks_free(&chunks);
    }
}

static void test_lower_bound_by_brute_force(void **state) {
    (void)state;
    struct memory_block blocks[80];
    for (uint32_t seed = 0; seed < 20; ++seed) {
        size_t most = 0;
        random_state = seed;
        make_random(blocks, 80, 50, 20);
        for (int32_t time = 0; time < 120; ++time) {
            size_t live = 0;
            for (int i = 0; i < 80; ++i) {
                if (blocks[i].first <= time && time <= blocks[i].last) live += blocks[i].size;
            }
            if (live > most) most = live;
        }
        assert_int_equal(memory_plan_lower_bound(blocks, 80), most);
    }
    blocks[0] = blocks[1] = (struct memory_block){.size = SIZE_MAX / 2 + 1, .last = 1};
    assert_int_equal(memory_plan_lower_bound(blocks, 2), SIZE_MAX);
}

// Blocks that all live at once defeat planning by size: it must notice before it gets slow.
static void test_many_long_lived_blocks_stay_cheap(void **state) {
    (void)state;
    const int32_t n = 20000;
    struct memory_block *blocks = ggml_mem_alloc((size_t)n * sizeof(*blocks));
    struct memory_chunks chunks = {0};
    bool gave_up;
    random_state = 5;
    make_random(blocks, n, n, 100);
    assert_false(memory_plan_by_size(blocks, n, SIZE_MAX / 2, 0, &chunks, &gave_up));
    assert_true(gave_up);
    memory_chunks_free(&chunks);
    assert_true(memory_plan(blocks, n, SIZE_MAX, &chunks));
    assert_true(memory_chunks_total(&chunks) < memory_plan_lower_bound(blocks, n) * 3 / 2);
    memory_chunks_free(&chunks);
    ggml_mem_free(blocks);
}

static int allocations_left;

static bool count_down(void *context) {
    (void)context;
    return allocations_left-- > 0;
}

static void test_every_allocation_may_fail(void **state) {
    (void)state;
    struct memory_block blocks[64];
    struct memory_chunks chunks;
    bool good = false;
    for (int limit = 0; !good && limit < 1000; ++limit) {
        random_state = 9;
        make_random(blocks, 64, 20, 30);
        allocations_left = limit;
        ggml_mem_set_fault_hook(count_down, NULL);
        good = memory_plan(blocks, 64, 3000, &chunks);
        ggml_mem_set_fault_hook(NULL, NULL);
        if (!good) assert_null(chunks.sizes);
    }
    assert_true(good);
    check_no_overlap(blocks, 64, &chunks);
    memory_chunks_free(&chunks);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_blocks_never_overlap),
        cmocka_unit_test(test_lower_bound_by_brute_force),
        cmocka_unit_test(test_many_long_lived_blocks_stay_cheap),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
