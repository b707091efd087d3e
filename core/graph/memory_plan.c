// SPDX-License-Identifier: MIT
#include "graph/memory_plan.h"

#include <string.h>

#include "base/mem.h"

void memory_chunks_free(struct memory_chunks *chunks) {
    ggml_mem_free(chunks->sizes);
    ggml_mem_free(chunks->limits);
    *chunks = (struct memory_chunks){0};
}

static size_t add_saturated(size_t a, size_t b) {
    return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}

size_t memory_chunks_total(const struct memory_chunks *chunks) {
    size_t total = 0;
    for (int32_t i = 0; i < chunks->count; ++i) {
        total = add_saturated(total, chunks->sizes[i]);
    }
    return total;
}

bool memory_chunks_add(struct memory_chunks *chunks, size_t size, size_t chunk_limit) {
    if (chunks->count == chunks->capacity) {
        const int32_t capacity = chunks->capacity > 0 ? 2 * chunks->capacity : 4;
        const size_t bytes = (size_t)capacity * sizeof(chunks->sizes[0]);
        size_t *sizes = ggml_mem_realloc(chunks->sizes, bytes);
        if (!sizes) return false;
        chunks->sizes = sizes;
        size_t *limits = ggml_mem_realloc(chunks->limits, bytes);
        if (!limits) return false;
        chunks->limits = limits;
        chunks->capacity = capacity;
    }
    chunks->sizes[chunks->count] = 0;
    chunks->limits[chunks->count++] = size > chunk_limit ? size : chunk_limit;
    return true;
}

void memory_block_place(struct memory_block *block, struct memory_chunks *chunks, int32_t chunk,
                        size_t offset) {
    block->chunk = chunk;
    block->offset = offset;
    if (offset + block->size > chunks->sizes[chunk]) chunks->sizes[chunk] = offset + block->size;
}

// One merge of runs [low, middle) and [middle, high).
static void merge(const struct memory_block *blocks, memory_block_before before,
                  const int32_t *from, int32_t *to, const int64_t range[3]) {
    int64_t left = range[0], right = range[1];
    for (int64_t k = range[0]; k < range[2]; ++k) {
        const bool take_right =
            left == range[1] ||
            (right < range[2] && before(&blocks[from[right]], &blocks[from[left]]));
        to[k] = take_right ? from[right++] : from[left++];
    }
}

int32_t *memory_blocks_sorted(const struct memory_block *blocks, int32_t n,
                              memory_block_before before) {
    const size_t bytes = ((size_t)n + 1) * sizeof(int32_t);
    int32_t *from = ggml_mem_alloc(bytes);
    int32_t *to = ggml_mem_alloc(bytes);
    if (!from || !to) {
        ggml_mem_free(from);
        ggml_mem_free(to);
        return NULL;
    }
    for (int32_t i = 0; i < n; ++i) {
        from[i] = i;
    }
    for (int64_t run = 1; run < n; run *= 2) {
        for (int64_t low = 0; low < n; low += 2 * run) {
            const int64_t middle = low + run < n ? low + run : n;
            const int64_t high = low + 2 * run < n ? low + 2 * run : n;
            merge(blocks, before, from, to, (const int64_t[]){low, middle, high});
        }
        int32_t *swap = from;
        from = to;
        to = swap;
    }
    ggml_mem_free(to);
    return from;
}

static bool starts_before(const struct memory_block *a, const struct memory_block *b) {
    return a->first < b->first;
}

static bool ends_before(const struct memory_block *a, const struct memory_block *b) {
    return a->last < b->last;
}

size_t memory_plan_lower_bound(const struct memory_block *blocks, int32_t n) {
    int32_t *starts = memory_blocks_sorted(blocks, n, starts_before);
    int32_t *ends = memory_blocks_sorted(blocks, n, ends_before);
    bool addressable = starts && ends;
    size_t live = 0, most = 0;
    int32_t ended = 0;
    for (int32_t i = 0; i < n && addressable; ++i) {
        const struct memory_block *block = &blocks[starts[i]];
        for (; blocks[ends[ended]].last < block->first; ++ended) {
            live -= blocks[ends[ended]].size;
        }
        addressable = live <= SIZE_MAX - block->size;
        live += block->size;
        if (live > most) most = live;
    }
    ggml_mem_free(starts);
    ggml_mem_free(ends);
    return addressable ? most : SIZE_MAX;
}

// Whether `a` is a plan that is better than `b`.
static bool is_better(const struct memory_chunks *a, const struct memory_chunks *b) {
    return memory_chunks_total(a) < memory_chunks_total(b);
}

bool memory_plan(struct memory_block *blocks, int32_t n, size_t chunk_limit,
                 struct memory_chunks *out_chunks) {
    const size_t bytes = (size_t)n * sizeof(blocks[0]);
    struct memory_chunks chunks = {0};
    struct memory_block *other = NULL;
    bool gave_up = false;
    *out_chunks = (struct memory_chunks){0};
    if (chunk_limit > SIZE_MAX / 2) chunk_limit = SIZE_MAX / 2;
    if (!memory_plan_by_time(blocks, n, chunk_limit, out_chunks)) goto fail;
    const size_t bound = n > 0 ? memory_plan_lower_bound(blocks, n) : 0;
    const size_t good_enough = bound / 50 * 51;
    if (memory_chunks_total(out_chunks) <= good_enough) return true;

    other = ggml_mem_alloc(bytes);
    if (!other) goto fail;
    memcpy(other, blocks, bytes);
    if (!memory_plan_by_size(other, n, chunk_limit, good_enough, &chunks, &gave_up) && !gave_up) {
        goto fail;
    }
    if (!gave_up && is_better(&chunks, out_chunks)) {
        const struct memory_chunks swap = *out_chunks;
        *out_chunks = chunks;
        chunks = swap;
        memcpy(blocks, other, bytes);
    }
    memory_chunks_free(&chunks);
    ggml_mem_free(other);
    return true;
fail:
    memory_chunks_free(&chunks);
    memory_chunks_free(out_chunks);
    ggml_mem_free(other);
    return false;
}
