// SPDX-License-Identifier: MIT
// What the files of this folder share: the training context and its parts.
#ifndef GGML_OPT_OPT_H
#define GGML_OPT_OPT_H

#include "ggml-opt.h"

// What outlives the graph of a step, for a node of the forward graph; NULL where it has none.
struct opt_node_state {
    struct ggml_tensor *grad_acc;
    struct ggml_tensor *m; // AdamW's moments
    struct ggml_tensor *v;
};

struct ggml_opt_context {
    ggml_backend_sched_t sched;
    struct ggml_context *ctx_compute; // the caller's
    bool static_graphs;
    enum ggml_opt_loss_type loss_type;
    enum ggml_opt_build_type build_type; // the most that a step may do
    enum ggml_opt_optimizer_type optimizer;
    ggml_opt_get_optimizer_params get_params;
    void *params_userdata;
    int32_t period; // evaluations per optimiser step
    int32_t in_period;
    int64_t iteration; // of the next optimiser step, from 1
    uint64_t random;

    struct ggml_tensor *inputs, *outputs, *labels, *loss, *pred, *ncorrect;
    struct ggml_cgraph *forward, *grad, *opt;

    // Made with the first graph, in memory of the scheduler's first stream. Static graphs have
    // their results there too.
    struct ggml_context *ctx_state;
    ggml_backend_buffer_t state_buffer;
    struct opt_node_state *states; // by node of the forward graph
    int n_states;
    int loss_node; // index of the loss in the forward graph

    struct ggml_context *ctx_params; // one tensor in host memory: what the steps read
    ggml_backend_buffer_t params_buffer;
    struct ggml_tensor *step_params;

    struct ggml_cgraph *allocated; // one of the three above
    struct ggml_cgraph *computed;  // what the scheduler holds for it: static graphs as a copy
    struct ggml_context *ctx_copy;
    enum ggml_opt_build_type next; // what the allocated graph does
    bool ready;                    // allocated, not evaluated yet
};

// Sums over evaluations, from which the public functions derive means and their uncertainties.
struct ggml_opt_result {
    float *losses; // one per evaluation
    int64_t n_losses;
    size_t max_losses;
    int32_t *pred; // one per point
    int64_t n_pred;
    size_t max_pred;
    int64_t n_data;
    int64_t n_correct; // -1: not known
    int32_t period;    // of the context
    bool per_datapoint;
};

// --- build.c -------------------------------------------------------------------------------------

// Adds the loss, and as far as `type` gradients and steps, to the context's forward graph. False
// with a message on failure.
bool opt_build(struct ggml_opt_context *opt, enum ggml_opt_build_type type);
// After a dynamic graph failed; if that was the first, the next one is the first again.
void opt_forget_graph(struct ggml_opt_context *opt, bool first);
// Zeroes gradient accumulators, with `moments` the moments too, and sets the loss's gradient to 1.
void opt_clear_state(struct ggml_opt_context *opt, bool moments);

// --- copy.c --------------------------------------------------------------------------------------

// A graph in ctx with the same nodes in the same order, each tensor copied; memory is shared where
// there is any. NULL with a message on failure.
struct ggml_cgraph *opt_copy_graph(struct ggml_context *ctx, struct ggml_cgraph *graph);
// Bytes of a context that it fits into.
size_t opt_copy_size(struct ggml_cgraph *graph);

// --- step.c --------------------------------------------------------------------------------------

// As the public functions of the same names; false with a message on failure.
bool opt_alloc(struct ggml_opt_context *opt, bool backward);
bool opt_eval(struct ggml_opt_context *opt, struct ggml_opt_result *result);

// --- result.c ------------------------------------------------------------------------------------

// Adds the outcome of the graph that was just computed. False when memory ran out.
bool opt_result_add(struct ggml_opt_result *result, const struct ggml_opt_context *opt);

// --- dataset.c -----------------------------------------------------------------------------------

// Copies a batch; false with a message where it is not whole shards of the data set.
bool opt_get_batch(ggml_opt_dataset_t dataset, struct ggml_tensor *data, struct ggml_tensor *labels,
                   int64_t ibatch);

#endif
