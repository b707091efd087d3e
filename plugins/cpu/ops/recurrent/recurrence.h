// SPDX-License-Identifier: MIT
// What the recurrences have in common: their states follow the output in the result, and where
// nothing but a copy reads them there, kernels store them where the copy would.
#ifndef CPU_RECURRENCE_H
#define CPU_RECURRENCE_H

#include <string.h>

#include "base/kernel.h"

struct recurrence {
    int state;         // the source of the states before
    int output;        // a source that has as many elements as the output
    int64_t snapshots; // of states
    bool by_id;        // sequences name their states, else there is one for each in order
};

// False: the node is none.
static inline bool recurrence_of(const struct ggml_tensor *node, struct recurrence *out) {
    switch (node->op) {
    case GGML_OP_SSM_SCAN: *out = (struct recurrence){0, 1, node->op_params[0], true}; return true;
    case GGML_OP_GATED_DELTA_NET:
        *out = (struct recurrence){5, 2, node->op_params[0], false};
        return true;
    case GGML_OP_RWKV_WKV6: *out = (struct recurrence){5, 0, 1, false}; return true;
    case GGML_OP_RWKV_WKV7: *out = (struct recurrence){6, 0, 1, false}; return true;
    case GGML_OP_GATED_LINEAR_ATTN: *out = (struct recurrence){4, 0, 1, false}; return true;
    default: return false;
    }
}

// The states in the result.
static inline float *recurrence_states(const struct ggml_tensor *node, const struct recurrence *r) {
    return (float *)node->data + ggml_nelements(node->src[r->output]);
}

// Whether threads may store states in the copy while others read operands: it lies apart from them,
// or its states lie upon states before, so that who stores a row is who has read it.
static inline bool recurrence_may_keep(const struct ggml_tensor *node, const struct recurrence *r,
                                       const struct ggml_tensor *copy) {
    bool may = !cpu_overlap(node, copy);
    for (int i = 0; i < GGML_MAX_SRC && may; ++i) {
        const struct ggml_tensor *src = node->src[i];
        if (!src || ggml_nelements(src) == 0 || !cpu_overlap(src, copy)) continue;
        const intptr_t distance = (intptr_t)copy->data - (intptr_t)src->data;
        const intptr_t sequence = (intptr_t)ggml_nbytes(src) / (intptr_t)src->ne[3];
        may = i == r->state && (r->by_id ? distance % sequence == 0 : distance == 0);
    }
    return may;
}

// A kernel that stores the new states of `node` at `states`.
typedef enum ggml_status (*recurrence_fn)(const struct cpu_task *task,
                                          const struct ggml_tensor *node, float *states);

// Computes a recurrence by itself.
static inline enum ggml_status recurrence_store(const struct cpu_task *task,
                                                recurrence_fn compute) {
    struct recurrence r;
    if (!recurrence_of(task->dst, &r)) return GGML_STATUS_FAILED;
    return compute(task, task->dst, recurrence_states(task->dst, &r));
}

// Computes a copy of states together with their recurrence. Where it lies upon other operands, one
// thread does all, and copies at the end.
static inline enum ggml_status recurrence_keep(const struct cpu_task *task, recurrence_fn compute) {
    struct ggml_tensor *copy = task->dst;
    const struct ggml_tensor *node = copy->src[0]->view_src;
    struct recurrence r;
    if (!recurrence_of(node, &r)) return GGML_STATUS_FAILED;
    if (recurrence_may_keep(node, &r, copy)) return compute(task, node, copy->data);
    if (task->ith != 0) return GGML_STATUS_SUCCESS;
    struct cpu_task alone = *task;
    alone.nth = 1;
    alone.guests = false;
    float *states = recurrence_states(node, &r);
    const enum ggml_status status = compute(&alone, node, states);
    if (status == GGML_STATUS_SUCCESS) memmove(copy->data, states, ggml_nbytes(copy));
    return status;
}

#endif
