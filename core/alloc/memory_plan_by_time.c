// SPDX-License-Identifier: MIT
// First fit in execution order, into chunks with a free list each: each block goes to the lowest
// free range of the first chunk that holds it. O(n log n), and n times the chunks. Its plans are
// the worst, but it takes any blocks and limits.
#include "alloc/free_list.h"
#include "alloc/memory_plan.h"
#include "base/array.h"
#include "base/mem.h"

struct by_time {
    struct free_list *lists; // by chunk
    int32_t lists_capacity;
    size_t chunk_limit;
    struct memory_chunks *chunks;
};

// In the first chunk with room, else in a new one; false when memory runs out.
static bool place(struct by_time *plan, struct memory_block *block) {
    struct memory_chunks *chunks = plan->chunks;
    for (int32_t chunk = 0; chunk < chunks->count; ++chunk) {
        const size_t offset =
            free_list_take(&plan->lists[chunk], block->size, true, chunks->limits[chunk]);
        if (offset == SIZE_MAX) continue;
        memory_block_place(block, chunks, chunk, offset);
        return true;
    }
    if (!memory_chunks_add(chunks, block->size, plan->chunk_limit) ||
        !array_grow(&plan->lists, &plan->lists_capacity, chunks->count, sizeof(plan->lists[0]))) {
        return false;
    }
    free_list_begin(&plan->lists[chunks->count - 1], 0);
    return place(plan, block); // the new chunk holds it
}

// The order in which blocks are placed.
static bool is_earlier(const struct memory_block *a, const struct memory_block *b) {
    if (a->first != b->first) return a->first < b->first;
    if (a->last != b->last) return a->last > b->last; // the bottom is for those that stay
    return a->size > b->size;
}

// The order in which they are released.
static bool ends_before(const struct memory_block *a, const struct memory_block *b) {
    return a->last < b->last;
}

bool memory_plan_by_time(struct memory_block *blocks, int32_t n, size_t chunk_limit,
                         struct memory_chunks *out_chunks) {
    struct by_time plan = {.chunk_limit = chunk_limit, .chunks = out_chunks};
    int32_t *starts = memory_blocks_sorted(blocks, n, is_earlier);
    int32_t *ends = memory_blocks_sorted(blocks, n, ends_before);
    bool good = starts && ends;
    int32_t ended = 0;
    for (int32_t i = 0; i < n && good; ++i) {
        struct memory_block *block = &blocks[starts[i]];
        for (; blocks[ends[ended]].last < block->first; ++ended) {
            const struct memory_block *past = &blocks[ends[ended]];
            free_list_release(&plan.lists[past->chunk], past->offset, past->size);
        }
        good = place(&plan, block);
    }
    ggml_mem_free(starts);
    ggml_mem_free(ends);
    ggml_mem_free(plan.lists);
    return good;
}
