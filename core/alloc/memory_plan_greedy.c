// SPDX-License-Identifier: MIT
// Greedy planning, into chunks (Pisarchyk and Lee, Efficient memory management for deep neural net
// inference, 2020): one block after the other goes to the lowest range that is free as long as it
// lives. In one chunk "by breadth", the most that lives at once while a block does, so that what
// lives at the peak is stacked without gaps and the rest fills in; where more lives than one chunk
// holds "by size", which leaves the fewest gaps. Of equal ones the longest-lived is first. O(n log
// n) for sorting, and for each block those that live about when it does (placed_blocks.h), up to a
// limit at which another planner does.
#include <stdlib.h>

#include "alloc/memory_timeline.h"
#include "alloc/placed_blocks.h"
#include "base/mem.h"
#include "ggml-impl.h"

struct ranked_block {
    struct memory_block *block;
    size_t rank; // its breadth, the most that lives at once while it does, or its size
};

// A plan under way.
struct greedy {
    struct ranked_block *order;
    struct placed_blocks placed;
    struct memory_chunks *chunks;
    size_t chunk_limit;
};

// Breadths, by a look at all events while a block lives, which count as comparisons.
static void find_breadths(struct greedy *plan, const struct memory_timeline *timeline) {
    int64_t *n_compared = &plan->placed.n_compared;
    for (int32_t i = 0; i < timeline->n_events; ++i) {
        const int32_t number = timeline->events[i];
        if (number < 0) continue;
        size_t breadth = 0;
        int32_t k = i;
        for (; timeline->events[k] != ~number; ++k) {
            breadth = MAX(breadth, timeline->live[k]);
        }
        plan->order[number].rank = breadth;
        *n_compared += k - i;
        if (*n_compared > PLACED_BLOCKS_MOST_COMPARED) return;
    }
}

// For qsort(); at last by the order of the blocks, so that plans don't depend on the C library.
static int compare(const void *left, const void *right) {
    const struct ranked_block *a = left, *b = right;
    const int64_t a_life = (int64_t)a->block->last - a->block->first;
    const int64_t b_life = (int64_t)b->block->last - b->block->first;
    if (a->rank != b->rank) return a->rank > b->rank ? -1 : 1;
    if (a_life != b_life) return a_life > b_life ? -1 : 1;
    if (a->block->size != b->block->size) return a->block->size > b->block->size ? -1 : 1;
    return (a->block > b->block) - (a->block < b->block);
}

// In the first chunk with a free range that is large enough, else in a new one; false when memory
// runs out.
static bool place(struct greedy *plan, struct memory_block *block) {
    struct memory_chunks *chunks = plan->chunks;
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

// Lists the blocks in the order in which they are placed.
static void rank(struct greedy *plan, struct memory_block *blocks, int32_t n,
                 const struct memory_timeline *timeline) {
    for (int32_t i = 0; i < n; ++i) {
        plan->order[i] = (struct ranked_block){&blocks[i], blocks[i].size};
    }
    if (timeline->most <= plan->chunk_limit) find_breadths(plan, timeline);
    qsort(plan->order, (size_t)n, sizeof(plan->order[0]), compare);
}

bool memory_plan_greedy(struct memory_block *blocks, int32_t n,
                        const struct memory_timeline *timeline, size_t chunk_limit,
                        struct memory_chunks *out_chunks) {
    struct greedy plan = {.chunks = out_chunks, .chunk_limit = chunk_limit};
    *out_chunks = (struct memory_chunks){0};
    plan.order = ggml_mem_alloc(((size_t)n + 1) * sizeof(plan.order[0]));
    bool good = plan.order && placed_blocks_begin(blocks, n, &plan.placed);
    if (good) rank(&plan, blocks, n, timeline);
    for (int32_t i = 0; i < n && good; ++i) {
        good = plan.placed.n_compared <= PLACED_BLOCKS_MOST_COMPARED &&
               place(&plan, plan.order[i].block);
    }
    if (!good) memory_chunks_free(out_chunks);
    ggml_mem_free(plan.order);
    placed_blocks_free(&plan.placed);
    return good;
}
