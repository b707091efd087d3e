// SPDX-License-Identifier: MIT
// Greedy planning (Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference,
// 2020): one block after the other goes to the lowest free range that holds it among those placed
// blocks that live when it does. In one chunk the order is by the highest peak that a block lives
// through, as only there every byte counts, then the longest-lived first, which are out of the way
// of others at the bottom. In several chunks it is the largest first, which leaves the fewest gaps.
// O(n^2), a pass over the placed blocks for each: it is for graphs of up to MEMORY_GREEDY_BLOCKS.
#include <string.h>

#include "alloc/memory_timeline.h"
#include "base/mem.h"

size_t memory_placed_find(const struct memory_placed *placed, const struct memory_block *block,
                          int32_t chunk, size_t base, int32_t *io_at) {
    size_t end = base;
    bool found = false;
    for (; *io_at < placed->n; ++*io_at) {
        const struct memory_block *other = &placed->blocks[placed->numbers[*io_at]];
        if (other->chunk != chunk) break;
        if (found || other->first > block->last || block->first > other->last) continue;
        found = other->offset > end && other->offset - end >= block->size;
        if (!found && other->offset + other->size > end) end = other->offset + other->size;
    }
    return end;
}

static bool lies_above(const struct memory_block *a, const struct memory_block *b) {
    return a->chunk != b->chunk ? a->chunk > b->chunk : a->offset > b->offset;
}

void memory_placed_add(struct memory_placed *placed, int32_t number) {
    int32_t at = placed->n++;
    for (; at > 0; --at) {
        const int32_t below = placed->numbers[at - 1];
        if (!lies_above(&placed->blocks[below], &placed->blocks[number])) break;
        placed->numbers[at] = below;
    }
    placed->numbers[at] = number;
}

// In the first chunk with a free range that is large enough, else in a new one; false when memory
// runs out.
static bool place(struct memory_placed *placed, int32_t number, size_t chunk_limit,
                  struct memory_chunks *chunks) {
    struct memory_block *block = &placed->blocks[number];
    int32_t chunk = 0, at = 0;
    size_t offset = 0;
    for (; chunk < chunks->count; ++chunk) {
        const size_t limit = chunks->limits[chunk];
        offset = memory_placed_find(placed, block, chunk, 0, &at);
        if (block->size <= limit && offset <= limit - block->size) break;
    }
    if (chunk == chunks->count) {
        if (!memory_chunks_add(chunks, block->size, chunk_limit)) return false;
        offset = 0;
    }
    memory_block_place(block, chunks, chunk, offset);
    memory_placed_add(placed, number);
    return true;
}

// --- the two orders

static int64_t lifetime(const struct memory_block *block) {
    return (int64_t)block->last - block->first + 1;
}

// The offset of a block that is not placed yet is its peak. Lifetimes of one power of two are much
// the same.
static bool has_higher_peak(const struct memory_block *a, const struct memory_block *b) {
    if (a->offset != b->offset) return a->offset > b->offset;
    const uint64_t longer = (uint64_t)lifetime(a), other = (uint64_t)lifetime(b);
    if ((longer ^ other) > (longer & other)) return longer > other; // the highest bits differ
    return a->size > b->size;
}

static bool is_larger(const struct memory_block *a, const struct memory_block *b) {
    return a->size != b->size ? a->size > b->size : lifetime(a) > lifetime(b);
}

// Sets the offset of each block to the most that lives at once while it does.
static void find_peaks(struct memory_block *blocks, const struct memory_timeline *timeline) {
    for (int32_t i = 0; i < timeline->n_events; ++i) {
        const int32_t block = timeline->events[i];
        if (block < 0) continue;
        blocks[block].offset = 0;
        for (int32_t at = i; timeline->events[at] != ~block; ++at) {
            if (timeline->live[at] > blocks[block].offset)
                blocks[block].offset = timeline->live[at];
        }
    }
}

// Blocks without bytes are no event and collide with nothing.
bool memory_plan_greedy(struct memory_block *blocks, int32_t n, size_t chunk_limit,
                        const struct memory_timeline *timeline, struct memory_chunks *out_chunks) {
    const bool is_split = timeline->most > chunk_limit;
    struct memory_placed placed = {.blocks = blocks};
    find_peaks(blocks, timeline);
    int32_t *order = memory_blocks_sorted(blocks, n, is_split ? is_larger : has_higher_peak);
    placed.numbers = ggml_mem_alloc(((size_t)n + 1) * sizeof(placed.numbers[0]));
    bool good = order && placed.numbers;
    for (int32_t i = 0; i < n && good; ++i) {
        if (blocks[order[i]].size > 0) good = place(&placed, order[i], chunk_limit, out_chunks);
    }
    if (good && out_chunks->count == 0) good = memory_chunks_add(out_chunks, 0, chunk_limit);
    for (int32_t i = 0; i < n && good; ++i) {
        if (blocks[i].size == 0) memory_block_place(&blocks[i], out_chunks, 0, 0);
    }
    ggml_mem_free(order);
    ggml_mem_free(placed.numbers);
    return good;
}
