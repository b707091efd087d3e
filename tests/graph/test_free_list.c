// SPDX-License-Identifier: MIT
// The free list: random blocks never overlap, free neighbours are merged, limits
// hold, and a full list only wastes memory.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "alloc/free_list.h"

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

static int release_until(struct free_list *list, struct block *live, int n, int step) {
    int kept = 0;
    for (int i = 0; i < n; ++i) {
        if (live[i].until < step) {
            free_list_release(list, live[i].offset, live[i].size);
        } else {
            live[kept++] = live[i];
        }
    }
    return kept;
}

// Lives of up to `span` steps: the longer, the more ranges are free at once. Long-lived blocks lie
// at the bottom.
static void play(struct free_list *list, int span) {
    struct block live[MOST];
    int n = 0;
    for (int step = 0; step < MOST; ++step) {
        n = release_until(list, live, n, step);
        struct block *block = &live[n++];
        block->size = 32 * (size_t)next_random(20);
        block->until = step + (int)next_random((uint32_t)span);
        block->offset = free_list_take(list, block->size, block->until > step + 5, SIZE_MAX);
        assert_true(block->offset + block->size <= list->end);
        check_apart(live, n);
    }
    n = release_until(list, live, n, INT32_MAX);
    assert_int_equal(n, 0);
}

static void test_blocks_never_overlap(void **state) {
    (void)state;
    static struct free_list list;
    for (uint32_t seed = 0; seed < 48; ++seed) {
        random_state = seed;
        free_list_begin(&list, 0);
        play(&list, seed % 2 == 0 ? 6 : 200);
    }
}

static void test_neighbours_merge(void **state) {
    (void)state;
    static struct free_list list;
    free_list_begin(&list, 8 * 64);
    const int order[8] = {1, 3, 2, 7, 5, 6, 0, 4};
    for (int i = 0; i < 8; ++i) {
        free_list_release(&list, (size_t)order[i] * 64, 64);
    }
    assert_int_equal(list.n_ranges, 1);
    assert_int_equal(free_list_take(&list, 8 * 64, true, SIZE_MAX), 0);
    assert_int_equal(list.end, 8 * 64);
}

// Free ranges of 128, 64 and 96 bytes, from the bottom.
static void begin_with_ranges(struct free_list *list) {
    free_list_begin(list, 512);
    free_list_release(list, 0, 128);
    free_list_release(list, 192, 64);
    free_list_release(list, 320, 96);
}

static void test_fits(void **state) {
    (void)state;
    static struct free_list list;
    begin_with_ranges(&list);
    assert_int_equal(free_list_take(&list, 64, true, SIZE_MAX), 0);
    assert_int_equal(free_list_take(&list, 64, false, SIZE_MAX), 352);
    assert_int_equal(free_list_take(&list, 64, false, SIZE_MAX), 192);
    assert_int_equal(free_list_take(&list, 64, false, SIZE_MAX), 64);
    assert_int_equal(free_list_take(&list, 32, true, SIZE_MAX), 320);
}

// What fits nowhere goes behind all, unless that is behind the limit: then nothing changes.
static void test_limit(void **state) {
    (void)state;
    static struct free_list list;
    begin_with_ranges(&list);
    assert_int_equal(free_list_take(&list, 256, true, 767), SIZE_MAX);
    assert_int_equal(list.end, 512);
    assert_int_equal(list.n_ranges, 3);
    assert_int_equal(free_list_take(&list, 256, true, 768), 512);
    free_list_release(&list, 512, 256);
    assert_int_equal(free_list_take(&list, 300, true, 812), 512); // in part behind the end
    assert_int_equal(list.end, 812);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_never_overlap),
        cmocka_unit_test(test_neighbours_merge),
        cmocka_unit_test(test_fits),
        cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
