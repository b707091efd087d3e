// SPDX-License-Identifier: MIT
// Planning by size. Blocks are ordered by when they start, under a tree that knows the latest end of the
// placed blocks below each node: those that meet a given block are enumerated without the others.
#include "base/mem.h"
#include "graph/memory_plan.h"

#include <stdlib.h>

enum { UNPLACED = -1 };

struct by_size {
    struct memory_block *blocks;
    const int32_t *starts; // block numbers in order of first
    int32_t *rank;         // the inverse
    int32_t *latest;       // tree, leaves from width on
    const struct memory_block **met;
    int64_t width;
    int32_t n;
    int32_t n_met;
    int64_t budget; // meetings left
};

// Number of blocks that start at or before `time`.
static int32_t count_started(const struct by_size *plan, int32_t time) {
    int32_t low = 0, high = plan->n;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (plan->blocks[plan->starts[middle]].first <= time) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// Collects the placed blocks among ranks [0, limit) under `node` that end at or after `time`.
static void collect(struct by_size *plan, int64_t node, int64_t low, int64_t span, int32_t limit,
                    int32_t time) {
    if (low >= limit || plan->latest[node] < time) return;
    if (span == 1) {
        plan->met[plan->n_met++] = &plan->blocks[plan->starts[low]];
        return;
    }
    collect(plan, 2 * node, low, span / 2, limit, time);
    collect(plan, 2 * node + 1, low + span / 2, span / 2, limit, time);
}

static int compare_places(const void *a, const void *b) {
    const struct memory_block *x = *(const struct memory_block *const *)a;
    const struct memory_block *y = *(const struct memory_block *const *)b;
    if (x->chunk != y->chunk) return x->chunk < y->chunk ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

// The smallest hole that fits among the collected blocks, or the room above them; a new chunk if none.
static bool place(struct by_size *plan, struct memory_block *block, size_t chunk_limit,
                  struct memory_chunks *chunks) {
    int32_t next = 0;
    for (int32_t chunk = 0; chunk < chunks->count; ++chunk) {
        size_t end = 0, best = 0, best_size = SIZE_MAX;
        for (; next < plan->n_met && plan->met[next]->chunk == chunk; ++next) {
            const struct memory_block *met = plan->met[next];
            const size_t hole = met->offset > end ? met->offset - end : 0;
            if (hole >= block->size && hole < best_size) {
                best = end;
                best_size = hole;
            }
            if (met->offset + met->size > end) end = met->offset + met->size;
        }
        if (best_size == SIZE_MAX) best = end;
        if (block->size > chunks->limits[chunk] - best) continue;
        memory_block_place(block, chunks, chunk, best);
        return true;
    }
    if (!memory_chunks_add(chunks, block->size, chunk_limit)) return false;
    memory_block_place(block, chunks, chunks->count - 1, 0);
    return true;
}

static void mark_placed(struct by_size *plan, int32_t number) {
    const int32_t last = plan->blocks[number].last;
    for (int64_t node = plan->width + plan->rank[number]; node > 0; node /= 2) {
        if (plan->latest[node] < last) plan->latest[node] = last;
    }
}

static bool starts_before(const struct memory_block *a, const struct memory_block *b) {
    return a->first < b->first;
}

static bool is_larger(const struct memory_block *a, const struct memory_block *b) {
    if (a->size != b->size) return a->size > b->size;
    return (int64_t)a->last - a->first > (int64_t)b->last - b->first;
}

static bool place_all(struct by_size *plan, const int32_t *order, size_t chunk_limit,
                      struct memory_chunks *chunks) {
    for (int32_t i = 0; i < plan->n && plan->budget >= 0; ++i) {
        struct memory_block *block = &plan->blocks[order[i]];
        plan->n_met = 0;
        if (block->size > 0) {
            collect(plan, 1, 0, plan->width, count_started(plan, block->last), block->first);
        }
        plan->budget -= plan->n_met;
        qsort(plan->met, (size_t)plan->n_met, sizeof(plan->met[0]), compare_places);
        if (!place(plan, block, chunk_limit, chunks)) return false;
        if (block->size > 0) mark_placed(plan, order[i]);
    }
    return true;
}

bool memory_plan_by_size(struct memory_block *blocks, int32_t n, size_t chunk_limit,
                         struct memory_chunks *out_chunks, bool *out_gave_up) {
    struct by_size plan = {.blocks = blocks, .n = n, .width = 1};
    plan.budget = 65536 + 64 * (int64_t)n;
    while (plan.width < n) {
        plan.width *= 2;
    }
    *out_gave_up = false;
    int32_t *starts = memory_blocks_sorted(blocks, n, starts_before);
    int32_t *order = memory_blocks_sorted(blocks, n, is_larger);
    plan.starts = starts;
    plan.rank = ggml_mem_alloc(((size_t)n + 1) * sizeof(plan.rank[0]));
    plan.latest = ggml_mem_alloc(2 * (size_t)plan.width * sizeof(plan.latest[0]));
    plan.met = ggml_mem_alloc(((size_t)n + 1) * sizeof(plan.met[0]));
    bool good = starts && order && plan.rank && plan.latest && plan.met;
    for (int32_t i = 0; good && i < n; ++i) {
        plan.rank[starts[i]] = i;
    }
    for (int64_t i = 0; good && i < 2 * plan.width; ++i) {
        plan.latest[i] = UNPLACED;
    }
    good = good && place_all(&plan, order, chunk_limit, out_chunks);
    *out_gave_up = good && plan.budget < 0;
    ggml_mem_free(starts);
    ggml_mem_free(order);
    ggml_mem_free(plan.rank);
    ggml_mem_free(plan.latest);
    ggml_mem_free(plan.met);
    return good && !*out_gave_up;
}
