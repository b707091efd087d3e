// SPDX-License-Identifier: MIT
// Blocks for the offline planner, sorted by pool, and what it found for them: see offsets.h.
#include "alloc/offsets.h"

#include "base/mem.h"
#include "base/status.h"
#include "ggml-backend.h"

// Blocks of pool p: [begins[p], begins[p + 1]).
struct sorted_blocks {
    struct memory_block *blocks;
    int32_t *block_of; // by entry
    int32_t *begins;
};

// Counting sort by pool, stable within each. O(entries + pools).
static void sort_blocks(const struct live_entries *entries, int n_pools,
                        struct sorted_blocks *out) {
    int32_t *next = out->begins + 1; // becomes begins[p + 1] when all of the pool are there
    memset(out->begins, 0, ((size_t)n_pools + 2) * sizeof(out->begins[0]));
    for (int32_t i = 0; i < entries->n; ++i) {
        const struct live_range *range = &entries->ranges[entries->numbers[i]];
        if (range->from < 0) ++next[range->pool + 1];
    }
    for (int p = 0; p < n_pools; ++p) {
        next[p + 1] += next[p];
    }
    for (int32_t i = 0; i < entries->n; ++i) {
        const int32_t entry = entries->numbers[i];
        const struct live_range *range = &entries->ranges[entry];
        if (range->from >= 0) {
            out->block_of[entry] = out->block_of[range->from];
            continue;
        }
        const int32_t block = next[range->pool]++;
        out->block_of[entry] = block;
        out->blocks[block] = (struct memory_block){
            .size = range->size, .first = range->first, .last = entries->last[entry].step};
    }
}

// Bytes that a plan may need without a better one being looked for.
static size_t bytes_at_hand(const struct memory_pool *pool) {
    return pool->n_chunks == 1 && pool->chunks[0] ? ggml_backend_buffer_get_size(pool->chunks[0])
                                                  : 0;
}

// A quarter of the address space leaves room for sums of offsets and sizes.
static bool has_addresses(const struct memory_chunks *chunks) {
    if (memory_chunks_total(chunks) <= SIZE_MAX / 4) return true;
    ggml_fail(GGML_HOST_OUT_OF_RANGE, "the graph needs more memory than has addresses");
    return false;
}

// Pools are independent: their blocks never share memory.
static bool plan_pools(const struct sorted_blocks *sorted, const struct memory_pool *pools,
                       int n_pools, bool for_use, struct memory_chunks *out_chunks) {
    for (int p = 0; p < n_pools; ++p) {
        struct memory_block *blocks = sorted->blocks + sorted->begins[p];
        const int32_t n = sorted->begins[p + 1] - sorted->begins[p];
        const size_t at_hand = for_use ? bytes_at_hand(&pools[p]) : 0;
        if (!memory_plan(blocks, n, pools[p].chunk_limit, at_hand, &out_chunks[p]) ||
            !has_addresses(&out_chunks[p])) {
            return false;
        }
    }
    return true;
}

// Blocks exist only while they are planned; entries get what was found for theirs.
bool live_offsets_plan(const struct live_entries *entries, const struct memory_pool *pools,
                       int n_pools, bool for_use, struct live_offset *offsets,
                       struct memory_chunks *out_chunks) {
    struct sorted_blocks sorted = {
        .blocks = ggml_mem_alloc(((size_t)entries->n + 1) * sizeof(sorted.blocks[0])),
        .block_of = ggml_mem_alloc(((size_t)entries->n_entries + 1) * sizeof(sorted.block_of[0])),
        .begins = ggml_mem_alloc(((size_t)n_pools + 2) * sizeof(sorted.begins[0])),
    };
    bool good = sorted.blocks && sorted.block_of && sorted.begins;
    if (good) {
        sort_blocks(entries, n_pools, &sorted);
        good = plan_pools(&sorted, pools, n_pools, for_use, out_chunks);
    }
    for (int32_t i = 0; i < entries->n && good; ++i) {
        const int32_t entry = entries->numbers[i];
        const struct memory_block *block = &sorted.blocks[sorted.block_of[entry]];
        offsets[entry] = (struct live_offset){block->offset, block->chunk};
    }
    ggml_mem_free(sorted.blocks);
    ggml_mem_free(sorted.block_of);
    ggml_mem_free(sorted.begins);
    return good;
}
