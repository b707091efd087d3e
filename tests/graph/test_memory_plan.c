// SPDX-License-Identifier: MIT
// The planner of memory blocks: random blocks never overlap, the lower bound by brute force,
// models' blocks in chunks and parts, and every failing allocation.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "alloc/memory_plan.h"
#include "alloc/memory_timeline.h"
#include "alloc/placed_blocks.h"
#include "base/mem.h"

static uint64_t random_state;

static uint32_t next_random(uint32_t limit) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % limit;
}

// The largest sum of blocks that live at the same time; no plan needs less.
static size_t lower_bound(const struct memory_block *blocks, int32_t n) {
    struct memory_timeline timeline;
    assert_true(memory_timeline_make(blocks, n, &timeline));
    const size_t most = timeline.most;
    memory_timeline_free(&timeline);
    return most;
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
        struct memory_timeline timeline;
        const int32_t n = (int32_t)(seed * 5);
        const size_t limit = limits[seed % 5];
        random_state = seed;
        make_random(blocks, n, 100, seed % 30);
        assert_true(memory_plan(blocks, n, limit, 0, &chunks));
        check_no_overlap(blocks, n, &chunks);
        assert_true(memory_chunks_total(&chunks) >= lower_bound(blocks, n));
        memory_chunks_free(&chunks);
        assert_true(memory_timeline_make(blocks, n, &timeline));
        assert_true(memory_plan_by_time(blocks, n, &timeline, limit, &chunks));
        check_no_overlap(blocks, n, &chunks);
        memory_chunks_free(&chunks);
        assert_true(memory_plan_greedy(blocks, n, &timeline, limit, &chunks));
        check_no_overlap(blocks, n, &chunks);
        memory_chunks_free(&chunks);
        memory_timeline_free(&timeline);
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
        assert_int_equal(lower_bound(blocks, 80), most);
    }
    blocks[0] = blocks[1] = (struct memory_block){.size = SIZE_MAX / 2 + 1, .last = 1};
    assert_int_equal(lower_bound(blocks, 2), SIZE_MAX);
}

// --- placed blocks

// Whether a block would lie where no other does while it lives, in a chunk that holds it.
static bool is_free(const struct memory_block *blocks, int32_t n, const struct memory_block *block,
                    const struct memory_chunks *chunks) {
    bool fits = block->offset + block->size <= chunks->limits[block->chunk];
    for (int32_t i = 0; i < n && fits; ++i) {
        const bool same_time = blocks[i].first <= block->last && block->first <= blocks[i].last;
        fits = !same_time || blocks[i].chunk != block->chunk ||
               blocks[i].offset >= block->offset + block->size ||
               blocks[i].offset + blocks[i].size <= block->offset;
    }
    return fits;
}

// By trying every chunk and multiple of 32 from the block's place on; the new chunk if all fail.
static void fit_by_trying(const struct memory_block *blocks, int32_t n,
                          const struct memory_chunks *chunks, struct memory_block *block) {
    while (block->chunk < chunks->count && !is_free(blocks, n, block, chunks)) {
        block->offset += 32;
        if (block->offset <= chunks->limits[block->chunk]) continue;
        block->offset = 0;
        ++block->chunk;
    }
}

// Blocks in any order, some from a place above the bottom on.
static void test_blocks_fit_at_the_lowest_place(void **state) {
    (void)state;
    enum { N = 120 };
    struct memory_block blocks[N];
    for (uint32_t seed = 0; seed < 40; ++seed) {
        size_t limits[] = {6400, 3200, 0, 9600};
        const struct memory_chunks chunks = {.limits = limits, .count = 4};
        struct placed_blocks placed;
        int32_t n = 0;
        random_state = seed;
        make_random(blocks, N, seed % 2 == 0 ? 60 : 5000, 20 * (seed % 5));
        assert_true(placed_blocks_begin(blocks, N, &placed));
        for (int32_t i = 0; i < N; ++i) {
            struct memory_block expected = blocks[i];
            if (expected.size == 0 || expected.size > 9600) continue;
            expected.offset = i % 3 == 0 ? 320 : 0;
            struct memory_block found = expected;
            fit_by_trying(blocks, n, &chunks, &expected);
            placed_blocks_fit(&placed, &chunks, &found);
            assert_int_equal(found.chunk, expected.chunk);
            assert_int_equal(found.offset, expected.offset);
            if (found.chunk == chunks.count) continue;
            placed_blocks_add(&placed, &found);
            blocks[n++] = found; // those before i are done with
        }
        assert_true(n > N / 4);
        placed_blocks_free(&placed);
    }
}

// Blocks that all live at once defeat greedy planning: it must notice before it gets slow.
static void test_many_long_lived_blocks_stay_cheap(void **state) {
    (void)state;
    const int32_t n = 20000;
    struct memory_block *blocks = ggml_mem_alloc((size_t)n * sizeof(*blocks));
    struct memory_chunks chunks;
    struct memory_timeline timeline;
    random_state = 5;
    make_random(blocks, n, n, 100);
    assert_true(memory_timeline_make(blocks, n, &timeline));
    assert_false(memory_plan_greedy(blocks, n, &timeline, SIZE_MAX / 2, &chunks));
    assert_null(chunks.sizes);
    memory_timeline_free(&timeline);
    assert_true(memory_plan(blocks, n, SIZE_MAX, 0, &chunks));
    assert_true(memory_chunks_total(&chunks) < lower_bound(blocks, n) * 3 / 2);
    memory_chunks_free(&chunks);
    ggml_mem_free(blocks);
}

// --- around the peak

static size_t live_after(const struct memory_block *blocks, const struct memory_timeline *timeline,
                         int32_t event) {
    size_t live = 0;
    for (int32_t i = 0; i <= event; ++i) {
        const int32_t number = timeline->events[i];
        live += number >= 0 ? blocks[number].size : -blocks[~number].size;
    }
    return live;
}

// Each block begins and ends once, when it should.
static void check_timeline(const struct memory_block *blocks, int32_t n) {
    struct memory_timeline timeline;
    int32_t n_sized = 0, last_time = INT32_MIN;
    assert_true(memory_timeline_make(blocks, n, &timeline));
    for (int32_t i = 0; i < n; ++i) {
        n_sized += blocks[i].size > 0;
    }
    assert_int_equal(timeline.n_events, 2 * n_sized);
    for (int32_t i = 0; i < timeline.n_events; ++i) {
        if (timeline.events[i] < 0) continue;
        assert_true(blocks[timeline.events[i]].first >= last_time);
        last_time = blocks[timeline.events[i]].first;
        for (int32_t k = 0; k < timeline.n_events; ++k) {
            if (timeline.events[k] >= 0) continue;
            const bool ended = blocks[~timeline.events[k]].last < last_time;
            assert_int_equal(k < i, ended);
        }
    }
    if (n_sized > 0) {
        assert_int_equal(live_after(blocks, &timeline, timeline.last_peak), timeline.most);
    }
    assert_int_equal(timeline.most, lower_bound(blocks, n));
    memory_timeline_free(&timeline);
}

static void test_timelines(void **state) {
    (void)state;
    struct memory_block blocks[120];
    for (uint32_t seed = 0; seed < 12; ++seed) {
        random_state = seed;
        make_random(blocks, 120, seed % 2 == 0 ? 60 : 20000, seed * 5);
        blocks[7].last = INT32_MAX;
        blocks[8].first = -1;
        check_timeline(blocks, (int32_t)(seed % 4 == 3 ? seed : 120));
    }
}

// What a strategy that uses one chunk returned.
static void check_one_chunk(struct memory_block *blocks, int32_t n, size_t needed) {
    const struct memory_chunks chunks = {
        .sizes = (size_t[]){needed}, .limits = (size_t[]){needed}, .count = 1};
    for (int i = 0; i < n; ++i) {
        blocks[i].chunk = 0;
        if (blocks[i].size == 0) blocks[i].offset = 0;
    }
    check_no_overlap(blocks, n, &chunks);
}

static void test_plans_around_peaks_never_overlap(void **state) {
    (void)state;
    struct memory_block blocks[200];
    for (uint32_t seed = 0; seed < 80; ++seed) {
        struct memory_timeline timeline;
        random_state = seed;
        make_random(blocks, 200, 100, seed % 40);
        assert_true(memory_timeline_make(blocks, 200, &timeline));
        const size_t most = timeline.most, quarter = most + most / 4;
        const size_t needed = memory_plan_around_peak(blocks, &timeline, quarter);
        if (needed != SIZE_MAX) {
            assert_in_range(needed, most, quarter);
            check_one_chunk(blocks, 200, needed);
        }
        assert_int_equal(memory_plan_around_peak(blocks, &timeline, most - 1), SIZE_MAX);
        memory_timeline_free(&timeline);
    }
}

// Repeats random blocks; between the repetitions only a few live.
static int32_t make_parts(struct memory_block *blocks, int32_t n, int32_t repeats) {
    enum { TIMES = 40 };
    make_random(blocks, n, TIMES, 10);
    for (int32_t i = 0; i < n * repeats; ++i) {
        const int32_t begin = i / n * TIMES;
        blocks[i].size = blocks[i % n].size;
        blocks[i].first = begin + blocks[i % n].first % TIMES;
        blocks[i].last = begin + blocks[i % n].last % TIMES;
        if (blocks[i].last >= blocks[i].first) continue;
        blocks[i].last = blocks[i].first;
    }
    for (int32_t i = 0; i < repeats; ++i) { // across one cut or all
        blocks[i * n].size = 32;
        blocks[i * n].last += i == 0 ? repeats * TIMES : TIMES;
    }
    return n * repeats;
}

static void test_windows_never_overlap(void **state) {
    (void)state;
    struct memory_block blocks[400];
    int n_planned = 0;
    for (uint32_t seed = 0; seed < 60; ++seed) {
        struct memory_timeline timeline;
        random_state = seed;
        const int32_t n = make_parts(blocks, 20 + (int32_t)seed, 1 + (int32_t)(seed % 5));
        assert_true(memory_timeline_make(blocks, n, &timeline));
        const size_t good_enough = timeline.most + timeline.most / 20;
        const size_t needed = memory_plan_windowed(blocks, n, &timeline, good_enough);
        if (needed != SIZE_MAX) {
            assert_in_range(needed, timeline.most, good_enough);
            check_one_chunk(blocks, n, needed);
            ++n_planned;
        }
        memory_timeline_free(&timeline);
    }
    assert_true(n_planned > 20);
}

// Size, first and last of the blocks of real graphs: a U-Net, and a transformer of two layers with
// experts. 999: to the end.
struct row {
    int size, first, last;
};

static const struct row unet[] = {
    {2, -1, 0},     {9, 0, 3},      {8, 3, 6},      {8, 6, 110},    {8, 8, 10},    {36, 10, 13},
    {8, 13, 16},    {8, 16, 18},    {8, 18, 20},    {36, 20, 23},   {8, 23, 26},   {8, 26, 28},
    {8, 29, 31},    {36, 31, 34},   {8, 34, 37},    {8, 37, 39},    {8, 39, 41},   {36, 41, 44},
    {8, 44, 47},    {8, 47, 80},    {9, 50, 53},    {4, 53, 56},    {4, 56, 79},   {4, 58, 60},
    {18, 60, 63},   {4, 63, 66},    {4, 66, 68},    {4, 68, 70},    {18, 70, 73},  {4, 73, 76},
    {4, 76, 78},    {16, 79, 80},   {24, 80, 89},   {108, 81, 84},  {8, 84, 87},   {8, 87, 110},
    {24, 89, 91},   {108, 91, 94},  {8, 94, 97},    {8, 97, 99},    {8, 99, 101},  {36, 101, 104},
    {8, 104, 107},  {8, 107, 109},  {16, 110, 119}, {72, 111, 114}, {8, 114, 117}, {8, 117, 140},
    {16, 119, 121}, {72, 121, 124}, {8, 124, 127},  {8, 127, 129},  {8, 129, 131}, {36, 131, 134},
    {8, 134, 137},  {8, 137, 139},  {8, 140, 142},  {36, 142, 145}, {2, 145, 148}, {2, 148, 999},
};

static const struct row experts[] = {
    {1, -1, 0},    {1, -1, 58},    {128, -1, 61},   {256, 0, 87},   {256, 1, 14},   {64, 3, 8},
    {64, 9, 13},   {256, 14, 18},  {1024, 18, 20},  {256, 20, 22},  {256, 22, 23},  {256, 23, 24},
    {256, 25, 33}, {8, 28, 37},    {8, 30, 37},     {1024, 32, 34}, {1024, 33, 34}, {1024, 34, 35},
    {512, 35, 41}, {2, 37, 38},    {256, 41, 42},   {256, 43, 56},  {64, 45, 50},   {64, 51, 55},
    {256, 56, 60}, {1024, 60, 62}, {256, 62, 64},   {256, 64, 65},  {256, 65, 66},  {256, 67, 75},
    {8, 70, 79},   {8, 72, 79},    {1024, 74, 76},  {1024, 75, 76}, {1024, 76, 77}, {512, 77, 83},
    {2, 79, 80},   {256, 83, 84},  {1000, 87, 999},
};

// Repeats the rows: as layers do, each begins where the one before it ended.
static int32_t make_model(struct memory_block *blocks, const struct row *rows, int32_t n,
                          int32_t layers, int32_t steps) {
    for (int32_t i = 0; i < n * layers; ++i) {
        const struct row *row = &rows[i % n];
        const int32_t begin = i / n * steps;
        blocks[i] = (struct memory_block){
            .size = 32 * (size_t)row->size,
            .first = begin + row->first,
            .last = row->last == 999 ? begin + steps : begin + row->last,
        };
    }
    return n * layers;
}

enum { N_UNET = sizeof(unet) / sizeof(unet[0]), N_EXPERTS = sizeof(experts) / sizeof(experts[0]) };

// The whole planner needs at most 1/50 more than the bound.
static void check_model(const struct row *rows, int32_t n, int32_t layers, int32_t steps) {
    struct memory_block *blocks = ggml_mem_calloc((size_t)(n * layers), sizeof(blocks[0]));
    struct memory_chunks chunks;
    n = make_model(blocks, rows, n, layers, steps);
    const size_t most = lower_bound(blocks, n);
    assert_true(memory_plan(blocks, n, SIZE_MAX, 0, &chunks));
    check_no_overlap(blocks, n, &chunks);
    assert_int_equal(chunks.count, 1);
    assert_in_range(chunks.sizes[0], most, most + most / 50);
    memory_chunks_free(&chunks);
    ggml_mem_free(blocks);
}

static void test_models_are_near_the_bound(void **state) {
    (void)state;
    for (int32_t layers = 1; layers <= 5; ++layers) {
        check_model(unet, N_UNET, layers, 150);
        check_model(experts, N_EXPERTS, layers, 88);
    }
}

static void test_a_model_is_planned_around_its_peak(void **state) {
    (void)state;
    static struct memory_block blocks[N_UNET];
    struct memory_timeline timeline;
    const int32_t n = make_model(blocks, unet, N_UNET, 1, 150);
    assert_true(memory_timeline_make(blocks, n, &timeline));
    const size_t needed =
        memory_plan_around_peak(blocks, &timeline, timeline.most + timeline.most / 50);
    assert_true(needed != SIZE_MAX);
    check_one_chunk(blocks, n, needed);
    memory_timeline_free(&timeline);
}

// Where one chunk is too small for what lives at once.
static void test_models_in_chunks(void **state) {
    (void)state;
    static struct memory_block blocks[4 * N_UNET];
    const int32_t n = make_model(blocks, unet, N_UNET, 4, 150);
    const size_t most = lower_bound(blocks, n);
    for (size_t part = 2; part <= 4; ++part) {
        struct memory_chunks chunks;
        assert_true(memory_plan(blocks, n, most / part, 0, &chunks));
        check_no_overlap(blocks, n, &chunks);
        assert_true(chunks.count > 1 && memory_chunks_total(&chunks) < most + most / 4);
        memory_chunks_free(&chunks);
    }
}

// A U-Net several times over has as many peaks: no single plan around one is good.
static void test_repeated_models_are_planned_in_windows(void **state) {
    (void)state;
    static struct memory_block blocks[20 * N_UNET];
    for (int32_t repeats = 2; repeats <= 20; ++repeats) {
        struct memory_timeline timeline;
        const int32_t n = make_model(blocks, unet, N_UNET, repeats, 150);
        assert_true(memory_timeline_make(blocks, n, &timeline));
        const size_t needed = memory_plan_windowed(blocks, n, &timeline, timeline.most);
        assert_int_equal(needed, timeline.most);
        check_one_chunk(blocks, n, needed);
        memory_timeline_free(&timeline);
    }
}

static int allocations_left;

static bool count_down(void *context) {
    (void)context;
    return allocations_left-- > 0;
}

// Whatever is planned although memory runs out must hold.
static void check_faults(const struct memory_block *blocks, int32_t n, size_t limit) {
    static struct memory_block planned[400];
    struct memory_chunks chunks;
    bool all = false;
    assert_in_range(n, 1, 400);
    for (int count = 0; !all && count < 5000; ++count) {
        memcpy(planned, blocks, (size_t)n * sizeof(planned[0]));
        allocations_left = count;
        ggml_mem_set_fault_hook(count_down, NULL);
        const bool good = memory_plan(planned, n, limit, 0, &chunks);
        ggml_mem_set_fault_hook(NULL, NULL);
        all = allocations_left >= 0;
        if (good) check_no_overlap(planned, n, &chunks);
        if (!good) assert_null(chunks.sizes);
        assert_true(good || !all);
        memory_chunks_free(&chunks);
    }
    assert_true(all);
}

static void test_every_allocation_may_fail(void **state) {
    (void)state;
    static struct memory_block blocks[400];
    random_state = 9;
    make_random(blocks, 64, 20, 30);
    check_faults(blocks, 64, 3000);                                           // in chunks
    check_faults(blocks, 64, SIZE_MAX);                                       // greedily
    check_faults(blocks, make_model(blocks, unet, N_UNET, 3, 150), SIZE_MAX); // in windows
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_blocks_never_overlap),
        cmocka_unit_test(test_lower_bound_by_brute_force),
        cmocka_unit_test(test_blocks_fit_at_the_lowest_place),
        cmocka_unit_test(test_many_long_lived_blocks_stay_cheap),
        cmocka_unit_test(test_timelines),
        cmocka_unit_test(test_plans_around_peaks_never_overlap),
        cmocka_unit_test(test_windows_never_overlap),
        cmocka_unit_test(test_models_are_near_the_bound),
        cmocka_unit_test(test_a_model_is_planned_around_its_peak),
        cmocka_unit_test(test_models_in_chunks),
        cmocka_unit_test(test_repeated_models_are_planned_in_windows),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
