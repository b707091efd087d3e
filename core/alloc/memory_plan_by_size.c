// SPDX-License-Identifier: MIT
// Greedy planning by size, into chunks. An interval tree (blocks ordered by their first step; each
// node has the latest last step below it) enumerates the placed blocks whose live ranges overlap a
// given one, without visiting the others.
#include <stdlib.h>
#include <string.h>

#include "alloc/memory_plan.h"
#include "base/mem.h"

enum { UNPLACED = -1 };

struct by_size {
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
    int64_t budget;   // meetings left in this try
    bool lowest_hole; // that fits; else the smallest
};

// The best try so far.
struct best_plan {
    struct memory_block *blocks;
    struct memory_chunks chunks;
    bool exists;
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

struct choice {
    size_t offset;
    size_t size; // of the hole; SIZE_MAX: none was found
};

static void consider(const struct by_size *plan, const struct memory_block *block, size_t offset,
                     size_t hole, struct choice *choice) {
    if (hole < block->size) return;
    if (choice->size == SIZE_MAX || (!plan->lowest_hole && hole < choice->size)) {
        *choice = (struct choice){offset, hole};
    }
}

// A hole that fits among the collected blocks, or the room above them; a new chunk if none.
static bool place(struct by_size *plan, struct memory_block *block) {
    struct memory_chunks *chunks = &plan->chunks;
    int32_t next = 0;
    for (int32_t chunk = 0; chunk < chunks->count; ++chunk) {
        struct choice choice = {0, SIZE_MAX};
        size_t end = 0;
        for (; next < plan->n_met && plan->met[next]->chunk == chunk; ++next) {
            const struct memory_block *met = plan->met[next];
            if (met->offset > end) consider(plan, block, end, met->offset - end, &choice);
            if (met->offset + met->size > end) end = met->offset + met->size;
        }
        if (choice.size == SIZE_MAX) choice.offset = end;
        if (block->size > chunks->limits[chunk] ||
            choice.offset > chunks->limits[chunk] - block->size) {
            continue;
        }
        memory_block_place(block, chunks, chunk, choice.offset);
        return true;
    }
    if (!memory_chunks_add(chunks, block->size, plan->chunk_limit)) return false;
    memory_block_place(block, chunks, chunks->count - 1, 0);
    return true;
}

static void mark_placed(struct by_size *plan, int32_t number) {
    const int32_t last = plan->blocks[number].last;
    for (int64_t node = plan->width + plan->rank[number]; node > 0; node /= 2) {
        if (plan->latest[node] < last) plan->latest[node] = last;
    }
}

static bool place_number(struct by_size *plan, int32_t number) {
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

// One try, with the blocks in the given order.
static bool place_all(struct by_size *plan, const int32_t *order) {
    plan->chunks.count = 0;
    plan->budget = 65536 + 64 * (int64_t)plan->n;
    for (int64_t i = 0; i < 2 * plan->width; ++i) {
        plan->latest[i] = UNPLACED;
    }
    for (int32_t i = 0; i < plan->n && plan->budget >= 0; ++i) {
        if (!place_number(plan, order[i])) return false;
    }
    return true;
}

static void keep_if_better(struct by_size *plan, struct best_plan *best) {
    if (best->exists && memory_chunks_total(&plan->chunks) >= memory_chunks_total(&best->chunks))
        return;
    const struct memory_chunks swap = best->chunks;
    best->chunks = plan->chunks;
    plan->chunks = swap;
    best->exists = true;
    memcpy(best->blocks, plan->blocks, (size_t)plan->n * sizeof(plan->blocks[0]));
}

// Plans in an order, unless the best plan is good enough. false: memory ran out.
static bool improve(struct by_size *plan, memory_block_before before, size_t good_enough,
                    struct best_plan *best) {
    if (best->exists && memory_chunks_total(&best->chunks) <= good_enough) return true;
    int32_t *order = memory_blocks_sorted(plan->blocks, plan->n, before);
    const bool good = order && place_all(plan, order);
    ggml_mem_free(order);
    if (good && plan->budget >= 0) keep_if_better(plan, best);
    return good;
}

static bool starts_before(const struct memory_block *a, const struct memory_block *b) {
    return a->first < b->first;
}

static int64_t lifetime(const struct memory_block *block) {
    return (int64_t)block->last - block->first + 1;
}

static bool is_larger(const struct memory_block *a, const struct memory_block *b) {
    return a->size != b->size ? a->size > b->size : lifetime(a) > lifetime(b);
}

// What lies beside many others that come and go is out of their way at the bottom.
static bool lives_longer(const struct memory_block *a, const struct memory_block *b) {
    return lifetime(a) != lifetime(b) ? lifetime(a) > lifetime(b) : a->size > b->size;
}

bool memory_plan_by_size(struct memory_block *blocks, int32_t n, size_t chunk_limit,
                         size_t good_enough, struct memory_chunks *out_chunks, bool *out_gave_up) {
    struct by_size plan = {.blocks = blocks, .n = n, .width = 1, .chunk_limit = chunk_limit};
    struct best_plan best = {0};
    while (plan.width < n) {
        plan.width *= 2;
    }
    *out_chunks = (struct memory_chunks){0};
    *out_gave_up = false;
    int32_t *starts = memory_blocks_sorted(blocks, n, starts_before);
    plan.starts = starts;
    plan.rank = ggml_mem_alloc(((size_t)n + 1) * sizeof(plan.rank[0]));
    plan.latest = ggml_mem_alloc(2 * (size_t)plan.width * sizeof(plan.latest[0]));
    plan.met = ggml_mem_alloc(((size_t)n + 1) * sizeof(plan.met[0]));
    best.blocks = ggml_mem_alloc(((size_t)n + 1) * sizeof(best.blocks[0]));
    bool good = starts && plan.rank && plan.latest && plan.met && best.blocks;
    for (int32_t i = 0; good && i < n; ++i) {
        plan.rank[starts[i]] = i;
    }
    good = good && improve(&plan, is_larger, good_enough, &best);
    plan.lowest_hole = true;
    good = good && improve(&plan, lives_longer, good_enough, &best);
    *out_gave_up = good && !best.exists;
    if (good && best.exists) {
        memcpy(blocks, best.blocks, (size_t)n * sizeof(blocks[0]));
        *out_chunks = best.chunks;
        best.chunks = (struct memory_chunks){0};
    }
    memory_chunks_free(&best.chunks);
    memory_chunks_free(&plan.chunks);
    ggml_mem_free(starts);
    ggml_mem_free(plan.rank);
    ggml_mem_free(plan.latest);
    ggml_mem_free(plan.met);
    ggml_mem_free(best.blocks);
    return good && !*out_gave_up;
}
