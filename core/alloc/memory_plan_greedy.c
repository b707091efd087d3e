// SPDX-License-Identifier: MIT
// Greedy planning, into chunks: each block, the longest-lived or the largest first, goes to the
// lowest free range that holds it among those placed blocks whose live ranges overlap its own. In
// one chunk long-lived blocks are out of the way of others at the bottom; in several, large blocks
// leave the fewest gaps. An interval tree (blocks ordered by their first step; each node has the
// latest last step below it) enumerates the overlapping blocks without visiting the others: O(log
// n) and the overlaps for each block.
#include <stdlib.h>
#include <string.h>

#include "alloc/memory_plan.h"
#include "base/mem.h"

enum { UNPLACED = -1 };

// A plan under way.
struct greedy {
    struct memory_block *blocks;
    const int32_t *starts; // block numbers in order of first
    int32_t *rank;         // the inverse
    int32_t *latest;       // tree, leaves from width on
    const struct memory_block **met;
    int64_t width;
    struct memory_chunks chunks;
    size_t chunk_limit;
    int32_t n;
    int32_t n_met;
    int64_t budget; // overlaps that may still be met
};

// Number of blocks that start at or before `time`.
static int32_t count_started(const struct greedy *plan, int32_t time) {
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
static void collect(struct greedy *plan, int64_t node, int64_t low, int64_t span, int32_t limit,
                    int32_t time) {
    if (low >= limit || plan->latest[node] < time) return;
    if (span == 1) {
        plan->met[plan->n_met++] = &plan->blocks[plan->starts[low]];
        return;
    }
    collect(plan, 2 * node, low, span / 2, limit, time);
    collect(plan, 2 * node + 1, low + span / 2, span / 2, limit, time);
}

// For qsort(): by chunk, then from the bottom up, in which order find_range() looks for gaps.
static int compare_places(const void *a, const void *b) {
    const struct memory_block *x = *(const struct memory_block *const *)a;
    const struct memory_block *y = *(const struct memory_block *const *)b;
    if (x->chunk != y->chunk) return x->chunk < y->chunk ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

// Lowest range that holds the block between the collected blocks of a chunk, which begin at *io_met
// of them, or the room above these.
static size_t find_range(const struct greedy *plan, const struct memory_block *block, int32_t chunk,
                         int32_t *io_met) {
    size_t end = 0;
    bool found = false;
    for (; *io_met < plan->n_met && plan->met[*io_met]->chunk == chunk; ++*io_met) {
        const struct memory_block *met = plan->met[*io_met];
        found = found || (met->offset > end && met->offset - end >= block->size);
        if (!found && met->offset + met->size > end) end = met->offset + met->size;
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

// Enters a placed block, so that searches find it: raises the latest end on the way to the root.
// O(log n).
static void mark_placed(struct greedy *plan, int32_t number) {
    const int32_t last = plan->blocks[number].last;
    for (int64_t node = plan->width + plan->rank[number]; node > 0; node /= 2) {
        if (plan->latest[node] < last) plan->latest[node] = last;
    }
}

// Blocks without bytes collide with nothing. Sorting what is met makes it O(m log m) for m
// overlaps.
static bool place_number(struct greedy *plan, int32_t number) {
    struct memory_block *block = &plan->blocks[number];
    plan->n_met = 0;
    if (block->size > 0) {
        collect(plan, 1, 0, plan->width, count_started(plan, block->last), block->first);
    }
    plan->budget -= plan->n_met + plan->chunks.count;
    qsort(plan->met, (size_t)plan->n_met, sizeof(plan->met[0]), compare_places);
    if (!place(plan, block)) return false;
    if (block->size > 0) mark_placed(plan, number);
    return true;
}

static bool starts_before(const struct memory_block *a, const struct memory_block *b) {
    return a->first < b->first;
}

static int64_t lifetime(const struct memory_block *block) {
    return (int64_t)block->last - block->first + 1;
}

// The two orders. Ties are broken by the other criterion, as sizes repeat a lot in a graph.
static bool lives_longer(const struct memory_block *a, const struct memory_block *b) {
    return lifetime(a) != lifetime(b) ? lifetime(a) > lifetime(b) : a->size > b->size;
}

static bool is_larger(const struct memory_block *a, const struct memory_block *b) {
    return a->size != b->size ? a->size > b->size : lifetime(a) > lifetime(b);
}

// false when memory runs out; otherwise a negative budget says that it was given up.
static bool place_all(struct greedy *plan, memory_block_before before) {
    int32_t *order = memory_blocks_sorted(plan->blocks, plan->n, before);
    bool good = order != NULL;
    for (int64_t i = 0; i < 2 * plan->width; ++i) {
        plan->latest[i] = UNPLACED;
    }
    for (int32_t i = 0; i < plan->n; ++i) {
        plan->rank[plan->starts[i]] = i;
    }
    for (int32_t i = 0; i < plan->n && good && plan->budget >= 0; ++i) {
        good = place_number(plan, order[i]);
    }
    ggml_mem_free(order);
    return good;
}

bool memory_plan_greedy(struct memory_block *blocks, int32_t n, size_t chunk_limit,
                        bool largest_first, struct memory_chunks *out_chunks, bool *out_gave_up) {
    struct greedy plan = {
        .blocks = blocks,
        .n = n,
        .width = 1,
        .chunk_limit = chunk_limit,
        .budget = 65536 + 64 * (int64_t)n,
    };
    while (plan.width < n) {
        plan.width *= 2;
    }
    int32_t *starts = memory_blocks_sorted(blocks, n, starts_before);
    plan.starts = starts;
    plan.rank = ggml_mem_alloc(((size_t)n + 1) * sizeof(plan.rank[0]));
    plan.latest = ggml_mem_alloc(2 * (size_t)plan.width * sizeof(plan.latest[0]));
    plan.met = ggml_mem_alloc(((size_t)n + 1) * sizeof(plan.met[0]));
    const bool good = starts && plan.rank && plan.latest && plan.met &&
                      place_all(&plan, largest_first ? is_larger : lives_longer);
    *out_gave_up = good && plan.budget < 0;
    *out_chunks = plan.chunks;
    if (!good || *out_gave_up) memory_chunks_free(out_chunks);
    ggml_mem_free(starts);
    ggml_mem_free(plan.rank);
    ggml_mem_free(plan.latest);
    ggml_mem_free(plan.met);
    return good && !*out_gave_up;
}
