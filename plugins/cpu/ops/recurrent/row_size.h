// SPDX-License-Identifier: MIT
// Work memory of recurrences whose states are taken by blocks of rows; shared with the accept
// functions.
#ifndef CPU_ROW_SIZE_H
#define CPU_ROW_SIZE_H

#include "ggml-impl.h"

enum {
    // Taken together: while some wait for their sums others are multiplied.
    BLOCK_ROWS = 8,
    // That a block of rows goes through before the next one: two operands of each, of 128 elements,
    // stay in the first-level cache beside the rows.
    BLOCK_TOKENS = 16,
    // Rows are padded to the longest vectors.
    ROW_PADDING = 16,
};

// Floats of a row of n elements.
static inline int64_t padded_row(int64_t n) {
    return (n + ROW_PADDING - 1) / ROW_PADDING * ROW_PADDING;
}

// Floats of one thread: a block of rows of n elements and `operands` rows for each token.
static inline int64_t block_work_floats(int64_t n, int64_t operands) {
    return padded_row(n) * (BLOCK_ROWS + BLOCK_TOKENS * operands);
}

// The operands of gated_delta_net are q and k, and where each element of a key has a gate of its
// own e^gate and k times it.
static inline int64_t delta_net_work_floats(const struct ggml_tensor *node) {
    return block_work_floats(node->src[2]->ne[0], node->src[3]->ne[0] == 1 ? 2 : 4);
}

#endif
