// SPDX-License-Identifier: MIT
// Greedy planning, into chunks ("greedy by size" of Pisarchyk and Lee, Efficient memory management
// for deep neural net inference, 2020): each block, the longest-lived or the largest first, goes to
// the lowest free range that holds it among those placed blocks whose live ranges overlap its own.
// In one chunk long-lived blocks are out of the way of others at the bottom; in several, large
// blocks leave the fewest gaps. O(n log n) for sorting, and the blocks that live about when each
// does (placed_blocks.h), up to a limit at which another planner does.
#include <stdlib.h>

#include "alloc/placed_blocks.h"
#include "base/mem.h"

// A plan under way.
struct greedy {
    struct placed_blocks placed;
    struct memory_chunks chunks;
    size_t chunk_limit;
};

// In the first chunk with a free range that is large enough, else in a new one; false when memory
// runs out.
static bool place(struct greedy *plan, struct memory_block *block) {
    struct memory_chunks *chunks = &plan->chunks;
    block->chunk = 0;
    block->offset = 0;
    placed_blocks_fit(&plan->placed, chunks, block);
    if (block->chunk == chunks->count &&
        !memory_chunks_add(chunks, block->size, plan->chunk_limit)) {
        return false;
    }
    memory_block_place(block, chunks, block->chunk, block->offset);
    if (block->size > 0) placed_blocks_add(&plan->placed, block);
    return true;
}

static int64_t lifetime(const struct memory_block *block) {
    return (int64_t)block->last - block->first + 1;
}

// For qsort(): -1 where the first criterion is larger, then the second, as sizes repeat a lot in a
// graph; then the order of the blocks, so that plans don't depend on the C library.
static int compare(uint64_t a, uint64_t b, uint64_t a_second, uint64_t b_second, const void *left,
                   const void *right) {
    if (a != b) return a > b ? -1 : 1;
    if (a_second != b_second) return a_second > b_second ? -1 : 1;
    return (left > right) - (left < right);
}

static int compare_lifetimes(const void *left, const void *right) {
    const struct memory_block *a = *(struct memory_block *const *)left;
    const struct memory_block *b = *(struct memory_block *const *)right;
    return compare((uint64_t)lifetime(a), (uint64_t)lifetime(b), a->size, b->size, a, b);
}

static int compare_sizes(const void *left, const void *right) {
    const struct memory_block *a = *(struct memory_block *const *)left;
    const struct memory_block *b = *(struct memory_block *const *)right;
    return compare(a->size, b->size, (uint64_t)lifetime(a), (uint64_t)lifetime(b), a, b);
}

bool memory_plan_greedy(struct memory_block *blocks, int32_t n, size_t chunk_limit,
                        bool largest_first, struct memory_chunks *out_chunks, bool *out_gave_up) {
    struct greedy plan = {.chunk_limit = chunk_limit};
    struct memory_block **order = ggml_mem_alloc(((size_t)n + 1) * sizeof(order[0]));
    bool good = order && placed_blocks_begin(blocks, n, &plan.placed);
    *out_gave_up = false;
    for (int32_t i = 0; i < n && good; ++i) {
        order[i] = &blocks[i];
    }
    if (good) {
        qsort(order, (size_t)n, sizeof(order[0]),
              largest_first ? compare_sizes : compare_lifetimes);
    }
    for (int32_t i = 0; i < n && good && !*out_gave_up; ++i) {
        good = place(&plan, order[i]);
        *out_gave_up = plan.placed.n_compared > PLACED_BLOCKS_MOST_COMPARED;
    }
    good = good && !*out_gave_up;
    *out_chunks = plan.chunks;
    if (!good) memory_chunks_free(out_chunks);
    ggml_mem_free(order);
    placed_blocks_free(&plan.placed);
    return good;
}
