// SPDX-License-Identifier: MIT
// Sizes of the attentions with a matrix as state; shared with the accept functions.
#ifndef CPU_LINEAR_ATTENTION_H
#define CPU_LINEAR_ATTENTION_H

#include "ggml-impl.h"

struct linear_attention {
    int64_t n, heads;
    int64_t tokens; // of each sequence
    int64_t sequences;
};

// Source `state` has at least one sequence.
static inline struct linear_attention linear_attention_of(const struct ggml_tensor *node,
                                                          int state) {
    const int64_t sequences = node->src[state]->ne[1];
    const int64_t *ne = node->src[0]->ne;
    return (struct linear_attention){ne[0], ne[1], ne[2] / sequences, sequences};
}

#endif
