// SPDX-License-Identifier: MIT
// The planner of memory blocks in one pass: under every policy random blocks never overlap, and
// free neighbours are merged.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "alloc/memory_quick.h"

enum { MOST = 400 };

struct block {
    size_t offset, size;
    int until;
};

static uint64_t random_state;

static uint32_t next_random(uint32_t limit) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % limit;
}

static void check_apart(const struct block *live, int n) {
    for (int i = 0; i < n; ++i) {
        for (int k = 0; k < i; ++k) {
            if (live[i].size == 0 || live[k].size == 0) continue;
            assert_true(live[i].offset + live[i].size <= live[k].offset ||
                        live[k].offset + live[k].size <= live[i].offset);
        }
    }
}

static int release_until(struct memory_quick *memory, struct block *live, int n, int step) {
    int kept = 0;
    for (int i = 0; i < n; ++i) {
        if (live[i].until < step) {
            memory_quick_release(memory, live[i].offset, live[i].size);
        } else {
            live[kept++] = live[i];
        }
    }
    return kept;
}

// Lives of up to `span` steps: the longer, the more holes there are at once.
static void play(struct memory_quick *memory, int span) {
    struct block live[MOST];
    int n = 0;
    for (int step = 0; step < MOST; ++step) {
        n = release_until(memory, live, n, step);
        struct block *block = &live[n++];
        block->size = 32 * (size_t)next_random(20);
        block->until = step + (int)next_random((uint32_t)span);
        block->offset = memory_quick_take(memory, block->size, block->until - step);
        assert_true(block->offset + block->size <= memory->peak);
        check_apart(live, n);
    }
    n = release_until(memory, live, n, INT32_MAX);
    assert_int_equal(n, 0);
}

static void test_blocks_never_overlap(void **state) {
    (void)state;
    static struct memory_quick memory;
    for (int way = 0; way < MEMORY_QUICK_POLICIES; ++way) {
        for (uint32_t seed = 0; seed < 8; ++seed) {
            random_state = seed;
            memory_quick_begin(&memory, way, seed % 2 == 0 ? 2000 : 100000);
            play(&memory, seed < 4 ? 6 : 200);
        }
    }
}

static void test_neighbours_merge(void **state) {
    (void)state;
    static struct memory_quick memory;
    for (int way = 0; way < MEMORY_QUICK_POLICIES; ++way) {
        size_t offsets[8];
        memory_quick_begin(&memory, way, 8 * 64);
        for (int i = 0; i < 8; ++i) {
            offsets[i] = memory_quick_take(&memory, 64, 100);
        }
        const int order[8] = {1, 3, 2, 7, 5, 6, 0, 4};
        for (int i = 0; i < 8; ++i) {
            memory_quick_release(&memory, offsets[order[i]], 64);
        }
        assert_int_equal(memory_quick_take(&memory, 8 * 64, 100), 0);
        assert_int_equal(memory.peak, 8 * 64);
    }
}

// One that stays beside pairs that come and go needs no more than lives at once.
static void test_ends_keep_lives_apart(void **state) {
    (void)state;
    static struct memory_quick memory;
    memory_quick_begin(&memory, 1, 3 * 64);
    size_t stays = memory_quick_take(&memory, 64, 10);
    size_t comes = memory_quick_take(&memory, 64, 1);
    for (int i = 0; i < 50; ++i) {
        const size_t next = memory_quick_take(&memory, 64, i % 3 == 0 ? 10 : 1);
        memory_quick_release(&memory, i % 3 == 0 ? stays : comes, 64);
        *(i % 3 == 0 ? &stays : &comes) = next;
    }
    assert_int_equal(memory.peak, 3 * 64);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_never_overlap),
        cmocka_unit_test(test_neighbours_merge),
        cmocka_unit_test(test_ends_keep_lives_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
