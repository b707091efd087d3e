// SPDX-License-Identifier: MIT
// First fit in execution order, into chunks with a free list each: each block goes to the lowest
// free range of the first chunk that holds it. O(n) times the free ranges and the chunks. Its plans
// are the worst, but it takes any blocks and limits.
#include "alloc/free_list.h"
#include "alloc/memory_timeline.h"
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
        !ARRAY_GROW(plan, lists, chunks->count)) {
        return false;
    }
    free_list_begin(&plan->lists[chunks->count - 1], 0);
    return place(plan, block); // the new chunk holds it
}

// Blocks without bytes are in no timeline: they take nothing of the first chunk.
bool memory_plan_by_time(struct memory_block *blocks, int32_t n,
                         const struct memory_timeline *timeline, size_t chunk_limit,
                         struct memory_chunks *out_chunks) {
    struct by_time plan = {.chunk_limit = chunk_limit, .chunks = out_chunks};
    bool good = true;
    *out_chunks = (struct memory_chunks){0};
    for (int32_t i = 0; i < n && good; ++i) {
        if (blocks[i].size == 0) good = place(&plan, &blocks[i]);
    }
    for (int32_t i = 0; i < timeline->n_events && good; ++i) {
        const int32_t event = timeline->events[i];
        if (event >= 0) {
            good = place(&plan, &blocks[event]);
        } else {
            const struct memory_block *past = &blocks[~event];
            free_list_release(&plan.lists[past->chunk], past->offset, past->size);
        }
    }
    if (!good) memory_chunks_free(out_chunks);
    ggml_mem_free(plan.lists);
    return good;
}
