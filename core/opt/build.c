// SPDX-License-Identifier: MIT
// The graphs of a training context: the forward graph with a loss, that with gradients, that with
// the optimiser's steps.
#include "base/mem.h"
#include "base/status.h"
#include "ggml-alloc.h"
#include "ggml-impl.h"
#include "opt/opt.h"

// Per node of the forward graph; for loss, labels and predictions.
enum { STATE_TENSORS = 3, RESULT_TENSORS = 12 };

// --- loss ----------------------------------------------------------------------------------------

// A node's name shows in reports and messages; error tensors are shared by all and keep theirs.
static struct ggml_tensor *named(struct ggml_tensor *tensor, const char *name) {
    if (!ggml_tensor_is_error(tensor)) ggml_set_name(tensor, name);
    return tensor;
}

// Divided by the period too: gradients of several evaluations add up to one step.
static struct ggml_tensor *mean_loss(struct ggml_opt_context *opt, struct ggml_context *ctx) {
    const float scale = 1.0f / ((float)opt->period * (float)ggml_nelements(opt->outputs));
    struct ggml_tensor *sum = named(ggml_sum(ctx, opt->outputs), "loss_sum");
    return named(ggml_scale(ctx, sum, scale), "loss_mean");
}

// The operation takes the mean over rows by itself.
static struct ggml_tensor *cross_entropy(struct ggml_opt_context *opt, struct ggml_context *ctx) {
    struct ggml_tensor *loss =
        named(ggml_cross_entropy_loss(ctx, opt->outputs, opt->labels), "loss_cross_entropy");
    if (opt->period == 1) return loss;
    return named(ggml_scale(ctx, loss, 1.0f / (float)opt->period), "loss_cross_entropy_scaled");
}

// Mean of (outputs - labels)^2 over all elements, built of simple operations, which have gradients.
static struct ggml_tensor *squared_error(struct ggml_opt_context *opt, struct ggml_context *ctx) {
    const float scale = 1.0f / ((float)opt->period * (float)ggml_nelements(opt->outputs));
    struct ggml_tensor *error = named(ggml_sub(ctx, opt->outputs, opt->labels), "loss_error");
    struct ggml_tensor *squares = named(ggml_sqr(ctx, error), "loss_squared_error");
    struct ggml_tensor *sum = named(ggml_sum(ctx, squares), "loss_sum_squared_error");
    return named(ggml_scale(ctx, sum, scale), "loss_mean_squared_error");
}

// By the context's type of loss. Sums are not divided by the period: their gradients add up as the
// losses do.
static struct ggml_tensor *new_loss(struct ggml_opt_context *opt, struct ggml_context *ctx) {
    switch (opt->loss_type) {
    case GGML_OPT_LOSS_TYPE_MEAN: return mean_loss(opt, ctx);
    case GGML_OPT_LOSS_TYPE_SUM: return named(ggml_sum(ctx, opt->outputs), "loss_sum");
    case GGML_OPT_LOSS_TYPE_CROSS_ENTROPY: return cross_entropy(opt, ctx);
    default: return squared_error(opt, ctx);
    }
}

// For classifications: the largest output of each row and how many match the labels'.
static void add_predictions(struct ggml_opt_context *opt, struct ggml_context *ctx) {
    opt->pred = named(ggml_argmax(ctx, opt->outputs), "pred");
    opt->ncorrect =
        named(ggml_count_equal(ctx, opt->pred, ggml_argmax(ctx, opt->labels)), "ncorrect");
    ggml_set_output(opt->pred);
    ggml_set_output(opt->ncorrect);
    ggml_build_forward_expand(opt->forward, opt->pred);
    ggml_build_forward_expand(opt->forward, opt->ncorrect);
}

// Adds loss and predictions, made in ctx, to the forward graph.
static bool add_loss(struct ggml_opt_context *opt, struct ggml_context *ctx) {
    const bool has_labels = opt->loss_type == GGML_OPT_LOSS_TYPE_CROSS_ENTROPY ||
                            opt->loss_type == GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR;
    ggml_set_input(opt->inputs);
    ggml_set_output(opt->outputs);
    opt->labels = opt->pred = opt->ncorrect = NULL;
    if (has_labels) {
        opt->labels = named(ggml_dup_tensor(ctx, opt->outputs), "labels");
        ggml_set_input(opt->labels);
    }
    opt->loss = new_loss(opt, ctx);
    ggml_set_output(opt->loss);
    ggml_set_loss(opt->loss);
    ggml_build_forward_expand(opt->forward, opt->loss);
    if (opt->loss_type == GGML_OPT_LOSS_TYPE_CROSS_ENTROPY) add_predictions(opt, ctx);
    return ggml_graph_error(opt->forward) == NULL;
}

// --- what outlives a step ------------------------------------------------------------------------

// Whether gradients are added up in tensors of their own. With static graphs and a step after each
// evaluation the backward pass makes them again.
static bool accumulates(const struct ggml_opt_context *opt) {
    return !opt->static_graphs || opt->build_type != GGML_OPT_BUILD_TYPE_OPT || opt->period > 1;
}

// F32, of a node's shape and named after it, in the context of states. NULL after the error was
// set.
static struct ggml_tensor *new_state(struct ggml_opt_context *opt, const struct ggml_tensor *node,
                                     const char *what) {
    struct ggml_tensor *state =
        ggml_new_tensor(opt->ctx_state, GGML_TYPE_F32, GGML_MAX_DIMS, node->ne);
    if (ggml_tensor_is_error(state)) return NULL;
    ggml_format_name(state, "%s for %s", what, node->name);
    return state;
}

// The loss gets an accumulator that is 1, parameters those that they need. False after the error
// was set.
static bool make_node_state(struct ggml_opt_context *opt, int i) {
    struct ggml_tensor *node = opt->forward->nodes[i];
    struct opt_node_state *state = &opt->states[i];
    const bool is_param = node->flags & GGML_TENSOR_FLAG_PARAM;
    const bool has_moments = is_param && opt->build_type == GGML_OPT_BUILD_TYPE_OPT &&
                             opt->optimizer == GGML_OPT_OPTIMIZER_TYPE_ADAMW;
    if (node == opt->loss) opt->loss_node = i;
    if (node == opt->loss || (is_param && accumulates(opt))) {
        state->grad_acc = new_state(opt, node, "grad acc");
        if (!state->grad_acc) return false;
    }
    if (!has_moments) return true;
    state->m = new_state(opt, node, "AdamW m");
    state->v = new_state(opt, node, "AdamW v");
    return state->m && state->v;
}

// One entry per node of the forward graph, so that a dynamic graph finds the states of the last one
// by position.
static bool make_states(struct ggml_opt_context *opt) {
    opt->n_states = ggml_graph_n_nodes(opt->forward);
    opt->states = ggml_mem_calloc((size_t)opt->n_states, sizeof(opt->states[0]));
    if (!opt->states) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "ggml_opt_alloc: no memory to list %d nodes",
                  opt->n_states);
        return false;
    }
    for (int i = 0; i < opt->n_states; ++i) {
        if (!make_node_state(opt, i)) return false;
    }
    return true;
}

// The context of results and states, large enough for both.
// The context is made with the first graph, when the number of nodes is known.
static bool make_context(struct ggml_opt_context *opt) {
    const size_t n_nodes = (size_t)ggml_graph_n_nodes(opt->forward) + RESULT_TENSORS;
    const size_t n_tensors = STATE_TENSORS * n_nodes + RESULT_TENSORS;
    const struct ggml_init_params params = {.mem_size = n_tensors * ggml_tensor_overhead(),
                                            .no_alloc = true};
    opt->ctx_state = ggml_init(params);
    return opt->ctx_state != NULL;
}

// Evaluation only, with dynamic graphs, needs no state at all.
static bool has_tensors(struct ggml_context *ctx) {
    return ggml_get_first_tensor(ctx) != NULL;
}

// In one buffer of the scheduler's first stream; starts with zeros.
static bool allocate_states(struct ggml_opt_context *opt) {
    ggml_backend_t stream = ggml_backend_sched_get_backend(opt->sched, 0);
    if (!has_tensors(opt->ctx_state)) return true;
    opt->state_buffer = ggml_backend_alloc_ctx_tensors_from_buft(
        opt->ctx_state, ggml_backend_sched_get_buffer_type(opt->sched, stream));
    if (!opt->state_buffer) return false;
    opt_clear_state(opt, true);
    return true;
}

// Accumulators and moments that a node doesn't have are NULL.
static void clear(struct ggml_tensor *tensor) {
    if (tensor) ggml_backend_tensor_memset(tensor, 0, 0, ggml_nbytes(tensor));
}

// ggml_opt_reset() starts training again with `moments`; without, only the gradient sums of a
// period begin again.
void opt_clear_state(struct ggml_opt_context *opt, bool moments) {
    const float one = 1.0f;
    for (int i = 0; i < opt->n_states; ++i) {
        const struct opt_node_state *state = &opt->states[i];
        clear(state->grad_acc);
        if (moments) clear(state->m);
        if (moments) clear(state->v);
        if (i == opt->loss_node && state->grad_acc)
            ggml_backend_tensor_set(state->grad_acc, &one, 0, sizeof(one));
    }
}

// A dynamic graph must be like the first one, whose states it goes on with.
static bool states_fit(const struct ggml_opt_context *opt) {
    if (ggml_graph_n_nodes(opt->forward) != opt->n_states) return false;
    for (int i = 0; i < opt->n_states; ++i) {
        const struct ggml_tensor *state = opt->states[i].grad_acc;
        const struct ggml_tensor *node = opt->forward->nodes[i];
        const bool is_param = node == opt->loss || node->flags & GGML_TENSOR_FLAG_PARAM;
        if (is_param != (state != NULL) || (state && !ggml_are_same_shape(state, node)))
            return false;
    }
    return true;
}

// --- gradients and steps -------------------------------------------------------------------------

// The gradient graph is a copy of the forward graph, which evaluation without gradients goes on
// using.
static bool add_gradients(struct ggml_opt_context *opt) {
    struct ggml_tensor **accumulators =
        ggml_mem_calloc((size_t)opt->n_states, sizeof(accumulators[0]));
    if (!accumulators) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "ggml_opt_alloc: no memory to list the gradients");
        return false;
    }
    for (int i = 0; i < opt->n_states; ++i)
        accumulators[i] = opt->states[i].grad_acc;
    opt->grad = ggml_graph_dup(opt->ctx_compute, opt->forward, true);
    if (opt->grad) ggml_build_backward_expand(opt->ctx_compute, opt->grad, accumulators);
    ggml_mem_free(accumulators);
    return opt->grad && !ggml_graph_error(opt->grad);
}

// The optimiser's node of parameter i, which updates it in place.
static struct ggml_tensor *new_step(struct ggml_opt_context *opt, int i, struct ggml_tensor *grad) {
    struct ggml_tensor *node = opt->forward->nodes[i];
    const struct opt_node_state *state = &opt->states[i];
    if (opt->optimizer == GGML_OPT_OPTIMIZER_TYPE_SGD)
        return ggml_opt_step_sgd(opt->ctx_compute, node, grad, opt->step_params);
    return ggml_opt_step_adamw(opt->ctx_compute, node, grad, state->m, state->v, opt->step_params);
}

// The optimiser graph is the gradient graph with a step per parameter.
static bool add_steps(struct ggml_opt_context *opt) {
    opt->opt = ggml_graph_dup(opt->ctx_compute, opt->grad, true);
    // Backwards, as the gradients are computed, so that their memory is free again early.
    for (int i = opt->n_states - 1; opt->opt && i >= 0; --i) {
        struct ggml_tensor *node = opt->forward->nodes[i];
        struct ggml_tensor *grad = ggml_graph_get_grad(opt->opt, node);
        if (!grad || !(node->flags & GGML_TENSOR_FLAG_PARAM)) continue;
        struct ggml_tensor *step = new_step(opt, i, grad);
        if (!ggml_tensor_is_error(step))
            ggml_format_name(step, "%s step for %s", ggml_opt_optimizer_name(opt->optimizer),
                             node->name);
        ggml_build_forward_expand(opt->opt, step);
    }
    return opt->opt && !ggml_graph_error(opt->opt);
}

// Of a graph that has a loss already nothing can be made again.
void opt_forget_graph(struct ggml_opt_context *opt, bool first) {
    opt->forward = opt->grad = opt->opt = opt->computed = NULL;
    if (!first) return;
    ggml_backend_buffer_free(opt->state_buffer);
    ggml_free(opt->ctx_state);
    ggml_mem_free(opt->states);
    opt->state_buffer = NULL;
    opt->ctx_state = NULL;
    opt->states = NULL;
    opt->n_states = 0;
}

// Order: the static case has its results in the state context, which must exist before the loss; a
// dynamic graph's results belong to its own context, and the state context is sized by the graph
// with loss.
static bool begin_first(struct ggml_opt_context *opt) {
    if (opt->static_graphs && !make_context(opt)) return false;
    if (!add_loss(opt, opt->static_graphs ? opt->ctx_state : opt->ctx_compute)) return false;
    if (!opt->static_graphs && !make_context(opt)) return false;
    if (opt->build_type > GGML_OPT_BUILD_TYPE_FORWARD && !make_states(opt)) return false;
    return allocate_states(opt);
}

// States are made once, by the first graph; later ones, which only dynamic graphs have, must have
// the same nodes.
bool opt_build(struct ggml_opt_context *opt, enum ggml_opt_build_type type) {
    const bool first = opt->ctx_state == NULL;
    opt->grad = opt->opt = NULL;
    if (first ? !begin_first(opt) : !add_loss(opt, opt->ctx_compute)) return false;
    if (type == GGML_OPT_BUILD_TYPE_FORWARD) return true;
    if (!first && !states_fit(opt)) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "ggml_opt_alloc: the graph has other nodes or parameters than the first one");
        return false;
    }
    if (!add_gradients(opt)) return false;
    return type == GGML_OPT_BUILD_TYPE_GRAD || add_steps(opt);
}
