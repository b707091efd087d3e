// SPDX-License-Identifier: MIT
// From a tensor to an item.
#ifndef GGML_SCHED_FILL_H
#define GGML_SCHED_FILL_H

#include "sched/sched.h"

static inline uint16_t traits_of(const struct ggml_backend_sched *sched,
                                 const struct ggml_tensor *tensor) {
    uint16_t traits = sched->op_traits[tensor->op];
    if (tensor->flags & ~GGML_TENSOR_FLAG_COMPUTE) { // few
        if (tensor->flags & GGML_TENSOR_FLAG_INPUT) traits |= SCHED_INPUT | SCHED_EARLY;
        if (tensor->flags & GGML_TENSOR_FLAG_PARAM) traits |= SCHED_EARLY;
        if (tensor->flags & GGML_TENSOR_FLAG_OUTPUT) traits |= SCHED_OUTPUT;
    }
    if (tensor->buffer) {
        traits |= SCHED_HAS_MEMORY;
        if (tensor->buffer->usage == GGML_BACKEND_BUFFER_USAGE_WEIGHTS) traits |= SCHED_WEIGHT;
    } else if (tensor->data) {
        traits |= SCHED_HAS_MEMORY;
    }
    return traits;
}

// As ggml_nbytes().
static inline size_t bytes_of(const struct ggml_backend_sched *sched,
                              const struct ggml_tensor *tensor) {
    const int64_t *ne = tensor->ne;
    const size_t *nb = tensor->nb;
    const size_t block = sched->block_sizes[tensor->type];
    if (block == 0 || ne[0] <= 0 || ne[1] <= 0 || ne[2] <= 0 || ne[3] <= 0) return 0;
    const size_t row = block == 1 ? sched->type_sizes[tensor->type] + (size_t)(ne[0] - 1) * nb[0]
                                  : (size_t)ne[0] * nb[0] / block;
    return row + (size_t)(ne[1] - 1) * nb[1] + (size_t)(ne[2] - 1) * nb[2] +
           (size_t)(ne[3] - 1) * nb[3];
}

static inline bool same_layout(const struct ggml_tensor *node, const struct ggml_tensor *src) {
    return node->type == src->type && src->view_offs == 0 &&
           memcmp(node->ne, src->ne, sizeof(node->ne)) == 0 &&
           memcmp(node->nb, src->nb, sizeof(node->nb)) == 0;
}

// Number of the memory that the tensor itself lies in; -1: none. -2 with a message on failure.
static inline int32_t buft_of(struct ggml_backend_sched *sched, const struct ggml_tensor *tensor) {
    if (tensor->view_src || !tensor->buffer->buft) return -1;
    if (tensor->buffer->buft == sched->last_buft) return sched->last_buft_id;
    const int32_t buft = sched_buft_id(sched, tensor->buffer->buft);
    if (buft < 0) return -2;
    sched->last_buft = tensor->buffer->buft;
    sched->last_buft_id = buft;
    return buft;
}

// All of an item but its root.
static inline bool sched_fill(struct ggml_backend_sched *sched, struct sched_item *item,
                              struct sched_place *place, int32_t number,
                              struct ggml_tensor *tensor) {
    if ((tensor->flags & GGML_TENSOR_FLAG_ERROR) || (unsigned)tensor->op >= GGML_OP_COUNT ||
        (unsigned)tensor->type >= GGML_TYPE_COUNT) {
        return sched_refuse(sched, tensor);
    }
    const int32_t buft = tensor->buffer ? buft_of(sched, tensor) : -1;
    if (buft < -1) return false;
    *item = (struct sched_item){
        .tensor = tensor,
        .root = number,
        .backend = -1,
        .copies = -1,
        .buft = buft,
        .traits = traits_of(sched, tensor),
    };
    place->pool = -1;
    place->size = tensor->view_src || buft >= 0 ? 0 : bytes_of(sched, tensor);
    return true;
}

static inline const struct ggml_tensor *owner_of(const struct ggml_tensor *view) {
    return view->view_src->view_src ? view->view_src->view_src : view->view_src;
}

#endif
