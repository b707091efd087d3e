// SPDX-License-Identifier: MIT
// Fills a value from its tensor: traits, memory, stream.
#ifndef GGML_SCHED_CLASSIFY_H
#define GGML_SCHED_CLASSIFY_H

#include "sched/sched.h"

static inline uint16_t flagged_traits(const struct ggml_tensor *tensor) {
    uint16_t traits = 0;
    if (tensor->flags & GGML_TENSOR_FLAG_INPUT) traits |= SCHED_INPUT | SCHED_EARLY;
    if (tensor->flags & GGML_TENSOR_FLAG_PARAM) traits |= SCHED_EARLY;
    if (tensor->flags & GGML_TENSOR_FLAG_OUTPUT) traits |= SCHED_OUTPUT;
    return traits;
}

// As ggml_nbytes().
static inline size_t bytes_of(const struct ggml_backend_sched *sched,
                              const struct ggml_tensor *tensor) {
    const uint64_t ne[] = {(uint64_t)tensor->ne[0], (uint64_t)tensor->ne[1],
                           (uint64_t)tensor->ne[2], (uint64_t)tensor->ne[3]};
    const uint64_t last[] = {ne[0] - 1, ne[1] - 1, ne[2] - 1, ne[3] - 1};
    const size_t *nb = tensor->nb;
    const size_t block = sched->block_sizes[tensor->type];
    const uint64_t signs = ne[0] | ne[1] | ne[2] | ne[3] | last[0] | last[1] | last[2] | last[3];
    if (UNLIKELY(block == 0 || (int64_t)signs < 0)) return 0;
    const size_t row = LIKELY(block == 1) ? sched->type_sizes[tensor->type] + last[0] * nb[0]
                                          : ne[0] * nb[0] / block;
    return row + last[1] * nb[1] + last[2] * nb[2] + last[3] * nb[3];
}

// ggml_are_same_layout() and no offset in the source, which a result in its place would not have.
// Inline and without branches, as it is asked for each edge.
static inline bool same_layout(const struct ggml_tensor *node, const struct ggml_tensor *src) {
    uint64_t differing = (uint64_t)node->type ^ (uint64_t)src->type;
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        differing |= (uint64_t)node->ne[i] ^ (uint64_t)src->ne[i];
        differing |= node->nb[i] ^ src->nb[i];
    }
    return differing == 0 && src->view_offs == 0;
}

// Number of the memory that a tensor with a buffer itself lies in; -1: it is a view. -2 with a
// message on failure.
static inline int32_t buft_of(struct ggml_backend_sched *sched, const struct ggml_tensor *tensor) {
    if (tensor->view_src || !tensor->buffer->buft) return -1;
    const int32_t buft = sched_buft_id(sched, tensor->buffer->buft);
    return buft >= 0 ? buft : -2;
}

// All of a value but its root. There is room for another result.
static inline bool sched_fill(struct ggml_backend_sched *sched, struct sched_value *value,
                              int32_t number, struct ggml_tensor *tensor) {
    if (UNLIKELY((unsigned)tensor->op >= GGML_OP_COUNT) ||
        UNLIKELY((unsigned)tensor->type >= GGML_TYPE_COUNT) ||
        UNLIKELY(tensor->flags & GGML_TENSOR_FLAG_ERROR)) {
        sched_refuse(sched, tensor);
        return false;
    }
    uint16_t traits = sched->op_traits[tensor->op];
    int32_t buft = -1;
    if (UNLIKELY(tensor->flags & ~GGML_TENSOR_FLAG_COMPUTE)) {
        traits |= flagged_traits(tensor);
        if (traits & SCHED_OUTPUT) sched->results[sched->n_results++] = number;
    }
    if (UNLIKELY(tensor->buffer)) { // but for leafs
        traits |= SCHED_HAS_MEMORY;
        if (tensor->buffer->usage == GGML_BACKEND_BUFFER_USAGE_WEIGHTS) traits |= SCHED_WEIGHT;
        buft = buft_of(sched, tensor);
        if (UNLIKELY(buft < -1)) return false;
    } else if (UNLIKELY(tensor->data)) {
        traits |= SCHED_HAS_MEMORY;
    }
    *value = (struct sched_value){
        .tensor = tensor,
        .bytes = UNLIKELY(tensor->view_src) || UNLIKELY(buft >= 0) ? 0 : bytes_of(sched, tensor),
        .root = number,
        .buft = buft,
        .traits = traits,
    };
    return true;
}

#endif
