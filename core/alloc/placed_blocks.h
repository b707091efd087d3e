// SPDX-License-Identifier: MIT
// Blocks that have their places, for planners that place blocks in another order than that of time:
// finds the lowest range that is free while a block lives. Time is divided into buckets, each with
// a list of the blocks that live in it, by address, so that a block meets those that live about
// when it does.
#ifndef GGML_ALLOC_PLACED_BLOCKS_H
#define GGML_ALLOC_PLACED_BLOCKS_H

#include "alloc/memory_plan.h"

// Comparisons of two blocks after which planners give up, about a nanosecond each.
enum { PLACED_BLOCKS_MOST_COMPARED = 1 << 26 };

// [any-thread]
struct placed_blocks {
    struct placed_block {
        struct memory_block block;
        int32_t next; // in its bucket, further up: by chunk, then by offset; -1: none
    } * nodes;        // one for each block and bucket
    int32_t n_nodes;
    int32_t *heads;      // by bucket: the lowest of its blocks, or -1
    int32_t first, last; // beginnings of blocks; later steps are as good as the last one
    int32_t shift;       // buckets have 2^shift steps
    int64_t n_compared;  // so far
};

// Makes room for all of these blocks, of which none is placed yet. O(n); false when memory runs
// out.
bool placed_blocks_begin(const struct memory_block *blocks, int32_t n, struct placed_blocks *out);
void placed_blocks_free(struct placed_blocks *placed);
// Moves a block that is not placed up from its chunk and offset until it lies where nothing else
// does while it lives; chunks->count: in a new chunk. O(blocks in its buckets).
void placed_blocks_fit(struct placed_blocks *placed, const struct memory_chunks *chunks,
                       struct memory_block *block);
// Adds a block at its place, once. O(blocks in its buckets).
void placed_blocks_add(struct placed_blocks *placed, const struct memory_block *block);

#endif
