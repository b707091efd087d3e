// SPDX-License-Identifier: MIT
// Tries the offline planners from the fastest to the slowest; lists of chunks, which the planners
// share.
#include "alloc/memory_plan.h"

#include "alloc/memory_timeline.h"
#include "base/array.h"
#include "base/mem.h"
#include "ggml-impl.h"

// The list can be used again, and is empty.
void memory_chunks_free(struct memory_chunks *chunks) {
    ggml_mem_free(chunks->sizes);
    ggml_mem_free(chunks->limits);
    *chunks = (struct memory_chunks){0};
}

static size_t add_saturated(size_t a, size_t b) {
    return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}

// Saturates, as sizes may come from an application.
size_t memory_chunks_total(const struct memory_chunks *chunks) {
    size_t total = 0;
    for (int32_t i = 0; i < chunks->count; ++i) {
        total = add_saturated(total, chunks->sizes[i]);
    }
    return total;
}

// A failure leaves the list as it was, but for room.
bool memory_chunks_add(struct memory_chunks *chunks, size_t size, size_t chunk_limit) {
    const int64_t n = (int64_t)chunks->count + 1;
    if (!ARRAY_GROW(chunks, sizes, n) || !ARRAY_GROW(chunks, limits, n)) return false;
    chunks->sizes[chunks->count] = 0;
    chunks->limits[chunks->count++] = size > chunk_limit ? size : chunk_limit;
    return true;
}

// Chunks grow to the largest end of a block.
void memory_block_place(struct memory_block *block, struct memory_chunks *chunks, int32_t chunk,
                        size_t offset) {
    block->chunk = chunk;
    block->offset = offset;
    if (offset + block->size > chunks->sizes[chunk]) chunks->sizes[chunk] = offset + block->size;
}

// In one chunk, if that is large enough. Returns the bytes that are needed, else SIZE_MAX.
static size_t plan_in_one(struct memory_block *blocks, int32_t n, size_t chunk_limit,
                          size_t good_enough, const struct memory_timeline *timeline) {
    if (n == 0 || timeline->most > chunk_limit) return SIZE_MAX;
    const size_t limit = MIN(good_enough, chunk_limit);
    const size_t needed = memory_plan_around_peak(blocks, timeline, limit);
    return needed != SIZE_MAX ? needed : memory_plan_windowed(blocks, n, timeline, limit);
}

// Puts all blocks into one chunk, where they have their offsets.
static bool place_in_one(struct memory_block *blocks, int32_t n, size_t chunk_limit,
                         struct memory_chunks *out_chunks) {
    if (!memory_chunks_add(out_chunks, 0, chunk_limit)) return false;
    for (int32_t i = 0; i < n; ++i) {
        const size_t offset = blocks[i].size > 0 ? blocks[i].offset : 0;
        memory_block_place(&blocks[i], out_chunks, 0, offset);
    }
    return true;
}

// In as many chunks as it takes.
static bool plan_in_chunks(struct memory_block *blocks, int32_t n,
                           const struct memory_timeline *timeline, size_t chunk_limit,
                           struct memory_chunks *out_chunks) {
    return memory_plan_greedy(blocks, n, timeline, chunk_limit, out_chunks) ||
           memory_plan_by_time(blocks, n, timeline, chunk_limit, out_chunks);
}

// A limit of half the address space keeps sums of offsets and sizes from overflowing.
bool memory_plan(struct memory_block *blocks, int32_t n, size_t chunk_limit, size_t at_hand,
                 struct memory_chunks *out_chunks) {
    struct memory_timeline timeline;
    *out_chunks = (struct memory_chunks){0};
    if (chunk_limit > SIZE_MAX / 2) chunk_limit = SIZE_MAX / 2;
    if (!memory_timeline_make(blocks, n, &timeline)) return false;
    const size_t close = add_saturated(timeline.most, timeline.most / 50);
    const size_t needed = plan_in_one(blocks, n, chunk_limit, MAX(close, at_hand), &timeline);
    const bool good = needed != SIZE_MAX
                          ? place_in_one(blocks, n, chunk_limit, out_chunks)
                          : plan_in_chunks(blocks, n, &timeline, chunk_limit, out_chunks);
    memory_timeline_free(&timeline);
    if (!good) memory_chunks_free(out_chunks);
    return good;
}
