// SPDX-License-Identifier: MIT
// Sizes of a selective scan; shared with the accept function.
#ifndef CPU_SSM_H
#define CPU_SSM_H

#include "ggml-impl.h"

struct ssm_size {
    int64_t n;    // elements of a row of the state
    int64_t rows; // of the state of a head
    int64_t heads, groups, tokens, sequences, snapshots;
    bool shared_rate; // one decay per head, not per element
};

// Extents of a selective state-space scan (Mamba): n is the size of a state, rows the channels of a
// head.
static inline struct ssm_size ssm_size(const struct ggml_tensor *node) {
    const struct ggml_tensor *s = node->src[0];
    const struct ggml_tensor *x = node->src[1];
    return (struct ssm_size){
        .n = s->ne[0],
        .rows = s->ne[1],
        .heads = s->ne[2],
        .groups = node->src[4]->ne[1],
        .tokens = x->ne[2],
        .sequences = x->ne[3],
        .snapshots = node->op_params[0],
        .shared_rate = node->src[3]->ne[0] == 1,
    };
}

// Floats of the states of all sequences.
static inline int64_t ssm_state_floats(const struct ssm_size *s) {
    return s->n * s->rows * s->heads * s->sequences;
}

#endif
