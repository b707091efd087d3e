// SPDX-License-Identifier: MIT
// Greedy planning, into chunks ("greedy by size" of Pisarchyk and Lee, Efficient memory management
// for deep neural net inference, 2020): each block, the longest-lived or the largest first, goes to
// the lowest free range that holds it among those placed blocks whose live ranges overlap its own.
// In one chunk long-lived blocks are out of the way of others at the bottom; in several, large
// blocks leave the fewest gaps. Placed blocks are kept by address and scanned one after the other:
// O(n^2), up to a limit at which another planner does.
#include <stdlib.h>

#include "alloc/memory_plan.h"
#include "base/mem.h"

// Comparisons of two blocks, about a nanosecond each: for up to 11,000 blocks.
enum { MOST_COMPARISONS = 1 << 26 };

// A plan under way.
struct greedy {
    struct memory_block *placed; // by chunk, then from the bottom up
    int32_t n_placed;
    struct memory_chunks chunks;
    size_t chunk_limit;
};

// Lowest range that holds the block between the placed blocks of a chunk, which begin at *io_next
// of them, or the room above these; then *io_next is where the next chunk begins. Blocks without
// bytes collide with nothing.
static size_t find_range(const struct greedy *plan, const struct memory_block *block, int32_t chunk,
                         int32_t *io_next) {
    size_t end = 0;
    for (; *io_next < plan->n_placed && plan->placed[*io_next].chunk == chunk; ++*io_next) {
        const struct memory_block *other = &plan->placed[*io_next];
        if (block->size == 0 || other->first > block->last || block->first > other->last) continue;
        if (other->offset > end && other->offset - end >= block->size) break;
        if (other->offset + other->size > end) end = other->offset + other->size;
    }
    return end;
}

// In the first chunk with a free range that is large enough, else in a new one.
static bool place(struct greedy *plan, struct memory_block *block) {
    struct memory_chunks *chunks = &plan->chunks;
    int32_t next = 0;
    for (int32_t chunk = 0; chunk < chunks->count; ++chunk) {
        const size_t offset = find_range(plan, block, chunk, &next);
        const size_t limit = chunks->limits[chunk];
        if (block->size > limit || offset > limit - block->size) continue;
        memory_block_place(block, chunks, chunk, offset);
        return true;
    }
    if (!memory_chunks_add(chunks, block->size, plan->chunk_limit)) return false;
    memory_block_place(block, chunks, chunks->count - 1, 0);
    return true;
}

// Whether a block comes behind another one among those that are placed.
static bool is_behind(const struct memory_block *a, const struct memory_block *b) {
    return a->chunk != b->chunk ? a->chunk > b->chunk : a->offset > b->offset;
}

// Insertion from behind; the array has room.
static void insert(struct greedy *plan, const struct memory_block *block) {
    int32_t i = plan->n_placed++;
    for (; i > 0 && is_behind(&plan->placed[i - 1], block); --i) {
        plan->placed[i] = plan->placed[i - 1];
    }
    plan->placed[i] = *block;
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
    *out_chunks = plan.chunks;
    *out_gave_up = (int64_t)n * n / 2 > MOST_COMPARISONS;
    if (*out_gave_up) return false;
    struct memory_block **order = ggml_mem_alloc(((size_t)n + 1) * sizeof(order[0]));
    plan.placed = ggml_mem_alloc(((size_t)n + 1) * sizeof(plan.placed[0]));
    bool good = order && plan.placed;
    for (int32_t i = 0; i < n && good; ++i) {
        order[i] = &blocks[i];
    }
    if (good) {
        qsort(order, (size_t)n, sizeof(order[0]),
              largest_first ? compare_sizes : compare_lifetimes);
    }
    for (int32_t i = 0; i < n && good; ++i) {
        good = place(&plan, order[i]);
        if (good && order[i]->size > 0) insert(&plan, order[i]);
    }
    *out_chunks = plan.chunks;
    if (!good) memory_chunks_free(out_chunks);
    ggml_mem_free(order);
    ggml_mem_free(plan.placed);
    return good;
}
