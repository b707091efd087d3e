// SPDX-License-Identifier: MIT
// Offline memory planning (dynamic storage allocation with known live ranges, an NP-hard problem:
// Garey and Johnson, Computers and Intractability, SR2): finds offsets for blocks so that blocks
// which live at the same time never overlap, and the peak is small. memory_plan() tries the fastest
// heuristics first: around the peak, and in windows of the time. If neither needs at most 1/50 more
// than the lower bound it plans greedily, and where that takes too long by first fit in the order
// of time, which takes any blocks. The others are there because without any of them the graphs of
// some kind of model (tools/bench/families.h) need more than 1.05 times the bound:
// docs/scheduler.md has the table.
#ifndef GGML_ALLOC_MEMORY_PLAN_H
#define GGML_ALLOC_MEMORY_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A block that lives from `first` to `last`, both included. chunk and offset are the result.
struct memory_block {
    size_t size; // a multiple of the alignment
    int32_t first;
    int32_t last;
    int32_t chunk;
    size_t offset;
};

// Bytes needed of each chunk.
struct memory_chunks {
    size_t *sizes;
    size_t *limits;
    int32_t count;
    int32_t sizes_capacity, limits_capacity;
};

// Places n blocks into chunks of at most chunk_limit bytes (a larger block gets a chunk of its
// size); as few bytes as its heuristics find, but no plan is looked for that needs less than
// `at_hand` bytes. false when memory runs out. The caller frees *out_chunks, which is empty on
// failure. [any-thread]
bool memory_plan(struct memory_block *blocks, int32_t n, size_t chunk_limit, size_t at_hand,
                 struct memory_chunks *out_chunks);
void memory_chunks_free(struct memory_chunks *chunks);
size_t memory_chunks_total(const struct memory_chunks *chunks);

// Opens a chunk that can grow to max(size, chunk_limit) bytes; false when memory runs out.
bool memory_chunks_add(struct memory_chunks *chunks, size_t size, size_t chunk_limit);
// Puts the block at a place.
void memory_block_place(struct memory_block *block, struct memory_chunks *chunks, int32_t chunk,
                        size_t offset);

#endif
