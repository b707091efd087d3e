// SPDX-License-Identifier: MIT
// A plan: runs of nodes that all devices compute, between all-reduces and fallbacks.
#ifndef GGML_META_PLAN_H
#define GGML_META_PLAN_H

#include "base/data/arena.h"
#include "meta/meta.h"

enum meta_step_kind {
    META_STEP_RUN,
    META_STEP_REDUCE,
    META_STEP_FALLBACK,
};

// Split memory that a fallback needs whole.
struct meta_whole {
    struct ggml_tensor *root;
    struct ggml_tensor *copies; // one per device, in the plan's memory
    size_t offset;              // there
    bool is_written;            // goes back after the computation
    struct meta_whole *next;
};

struct meta_step {
    enum meta_step_kind kind;
    struct ggml_graph *graphs; // RUN, FALLBACK: one per device
    struct meta_reduction reduction;
    struct meta_whole *wholes; // FALLBACK
    struct meta_step *next;
};

// Tensors of the plan that view others and get an address with them.
struct meta_late_view {
    struct ggml_tensor *tensor;
    struct meta_late_view *next;
};

// Records that would go without the plan: those of views of static memory.
struct meta_plan_record {
    struct meta_record *record;
    struct meta_plan_record *next;
};

struct meta_plan {
    struct arena arena;
    struct meta_plan_record *records;
    uint64_t uid;
    uint64_t generation;
    int n_nodes;
    size_t n;
    struct ggml_tensor **nodes[META_MAX_DEVICES]; // all that the runs compute
    struct meta_step *first, *last;
    struct meta_late_view *late_views;
    size_t received_bytes; // of the largest part of a reduction
    size_t whole_bytes;    // of the largest fallback
    ggml_backend_buffer_t memory[META_MAX_DEVICES];
};

#endif
