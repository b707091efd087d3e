// SPDX-License-Identifier: MIT
// Lists of placed blocks by buckets of time: see placed_blocks.h.
#include "alloc/placed_blocks.h"

#include <string.h>

#include "base/mem.h"
#include "ggml-impl.h"

static int32_t bucket_of(const struct placed_blocks *placed, int32_t time) {
    return (int32_t)(((int64_t)MIN(time, placed->last) - placed->first) >> placed->shift);
}

// Buckets are as narrow as leaves no more of them than blocks, and each block in no more than three
// on average: one that lives for n buckets meets at most n + 2.
bool placed_blocks_begin(const struct memory_block *blocks, int32_t n, struct placed_blocks *out) {
    enum { SMALLEST_SHIFT = 3 };
    *out = (struct placed_blocks){.first = INT32_MAX, .last = INT32_MIN, .shift = SMALLEST_SHIFT};
    for (int32_t i = 0; i < n; ++i) {
        out->first = MIN(out->first, blocks[i].first);
        out->last = MAX(out->last, blocks[i].first);
    }
    int64_t steps = n > 0 ? (int64_t)out->last - out->first : 0; // of all blocks and once of all
    for (int32_t i = 0; i < n; ++i) {
        steps += (int64_t)MIN(blocks[i].last, out->last) - blocks[i].first;
    }
    while (steps >> out->shift > n) {
        ++out->shift;
    }
    out->nodes = ggml_mem_alloc((3 * (size_t)n + 1) * sizeof(out->nodes[0]));
    out->heads = ggml_mem_alloc(((size_t)n + 1) * sizeof(out->heads[0]));
    if (!out->nodes || !out->heads) {
        placed_blocks_free(out);
        return false;
    }
    memset(out->heads, 0xFF, ((size_t)n + 1) * sizeof(out->heads[0]));
    return true;
}

void placed_blocks_free(struct placed_blocks *placed) {
    ggml_mem_free(placed->nodes);
    ggml_mem_free(placed->heads);
    *placed = (struct placed_blocks){0};
}

// Goes on with the next chunk where the block exceeds the limit of its own.
static void keep_limits(const struct memory_chunks *chunks, struct memory_block *block) {
    for (; block->chunk < chunks->count; ++block->chunk, block->offset = 0) {
        const size_t limit = chunks->limits[block->chunk];
        if (block->size <= limit && block->offset <= limit - block->size) return;
    }
}

// Moves the block up past what it collides with in one bucket; returns whether it did.
static bool move_up(struct placed_blocks *placed, int32_t bucket,
                    const struct memory_chunks *chunks, struct memory_block *block) {
    bool moved = false;
    for (int32_t i = placed->heads[bucket]; i >= 0; i = placed->nodes[i].next) {
        const struct memory_block *other = &placed->nodes[i].block;
        ++placed->n_compared;
        if (other->first > block->last || block->first > other->last) continue;
        if (other->chunk < block->chunk) continue;
        if (other->chunk > block->chunk || other->offset >= block->offset + block->size) break;
        if (other->offset + other->size <= block->offset) continue;
        block->offset = other->offset + other->size;
        keep_limits(chunks, block);
        moved = true;
    }
    return moved;
}

// Several buckets are gone through again until none moves the block any more. A block without bytes
// collides with nothing.
void placed_blocks_fit(struct placed_blocks *placed, const struct memory_chunks *chunks,
                       struct memory_block *block) {
    const int32_t begin = bucket_of(placed, block->first), end = bucket_of(placed, block->last);
    bool moved = block->size > 0;
    keep_limits(chunks, block);
    while (moved) {
        moved = false;
        for (int32_t b = begin; b <= end; ++b) {
            moved |= move_up(placed, b, chunks, block) && begin < end;
        }
    }
}

// Whether a block lies below another one.
static bool is_below(const struct memory_block *a, const struct memory_block *b) {
    return a->chunk != b->chunk ? a->chunk < b->chunk : a->offset < b->offset;
}

void placed_blocks_add(struct placed_blocks *placed, const struct memory_block *block) {
    const int32_t end = bucket_of(placed, block->last);
    for (int32_t b = bucket_of(placed, block->first); b <= end; ++b) {
        int32_t *link = &placed->heads[b];
        while (*link >= 0 && is_below(&placed->nodes[*link].block, block)) {
            ++placed->n_compared;
            link = &placed->nodes[*link].next;
        }
        placed->nodes[placed->n_nodes] = (struct placed_block){*block, *link};
        *link = placed->n_nodes++;
    }
}
