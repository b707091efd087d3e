// SPDX-License-Identifier: MIT
// One evaluation: choosing and allocating its graph, computing it.
#include <math.h>

#include "base/status.h"
#include "ggml-impl.h"
#include "opt/opt.h"

// Attaches the graph of the next evaluation to a context with dynamic graphs. ggml_opt_alloc() adds
// loss and gradients to it.
void ggml_opt_prepare_alloc(ggml_opt_context_t opt_ctx, struct ggml_context *ctx_compute,
                            struct ggml_cgraph *gf, struct ggml_tensor *inputs,
                            struct ggml_tensor *outputs) {
    if (!opt_ctx || !ctx_compute || !gf || !inputs || !outputs || opt_ctx->static_graphs) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_opt_prepare_alloc: %s",
                  opt_ctx && opt_ctx->static_graphs ? "the context's graphs are static"
                                                    : "an argument is NULL");
        return;
    }
    opt_ctx->ctx_compute = ctx_compute;
    opt_ctx->forward = gf;
    opt_ctx->inputs = inputs;
    opt_ctx->outputs = outputs;
    opt_ctx->allocated = NULL; // even if it has the address of the last graph
    opt_ctx->grad = opt_ctx->opt = NULL;
}

// --- allocating ----------------------------------------------------------------------------------

// The kind of the next step: only the last evaluation of a period updates parameters, and none does
// more than the context was made for.
static enum ggml_opt_build_type next_type(const struct ggml_opt_context *opt, bool backward) {
    if (!backward) return GGML_OPT_BUILD_TYPE_FORWARD;
    const enum ggml_opt_build_type type =
        opt->in_period + 1 == opt->period ? GGML_OPT_BUILD_TYPE_OPT : GGML_OPT_BUILD_TYPE_GRAD;
    return MIN(type, opt->build_type);
}

// NULL where the context was built for less.
static struct ggml_cgraph *graph_of(const struct ggml_opt_context *opt) {
    switch (opt->next) {
    case GGML_OPT_BUILD_TYPE_FORWARD: return opt->forward;
    case GGML_OPT_BUILD_TYPE_GRAD: return opt->grad;
    default: return opt->opt;
    }
}

// Static graphs are allocated as copies: the scheduler writes into the tensors that it is given,
// and forward, gradient and optimiser graph share theirs.
static struct ggml_cgraph *new_copy(struct ggml_opt_context *opt, struct ggml_cgraph *graph) {
    const struct ggml_init_params params = {.mem_size = opt_copy_size(graph), .no_alloc = true};
    ggml_free(opt->ctx_copy);
    opt->ctx_copy = ggml_init(params);
    return opt->ctx_copy ? opt_copy_graph(opt->ctx_copy, graph) : NULL;
}

// On failure nothing is allocated. The next call tries a static graph again.
static bool allocate(struct ggml_opt_context *opt, struct ggml_cgraph *graph) {
    opt->allocated = NULL;
    ggml_backend_sched_reset(opt->sched);
    opt->computed = opt->static_graphs ? new_copy(opt, graph) : graph;
    if (!opt->computed || !ggml_backend_sched_alloc_graph(opt->sched, opt->computed)) return false;
    opt->allocated = graph;
    return true;
}

// Whether nothing else went through the scheduler since. Dynamic graphs can't be taken again, so
// for those computing tells.
static bool is_held(const struct ggml_opt_context *opt) {
    if (!opt->static_graphs) return true;
    struct ggml_tensor *last = opt->computed->nodes[opt->computed->n_nodes - 1];
    return ggml_backend_sched_get_tensor_backend(opt->sched, last) != NULL;
}

// A graph that is allocated already is used again: with a period of 1, static graphs are allocated
// once for training and once for each change to validation.
static bool make_ready(struct ggml_opt_context *opt) {
    struct ggml_cgraph *graph = graph_of(opt);
    if (!graph) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "ggml_opt_alloc: the context was not built for gradients, or the graph of this "
                  "step was prepared for less");
        return false;
    }
    return (opt->allocated == graph && is_held(opt)) || allocate(opt, graph);
}

// A dynamic graph that was used up needs the next ggml_opt_prepare_alloc().
static bool build_and_make_ready(struct ggml_opt_context *opt) {
    const bool first = opt->ctx_state == NULL;
    if (opt_build(opt, opt->next) && make_ready(opt)) return true;
    opt_forget_graph(opt, first);
    return false;
}

// Gradient sums of a new period begin at 0.
bool opt_alloc(struct ggml_opt_context *opt, bool backward) {
    if (!opt->forward) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "ggml_opt_alloc: there is no graph; call ggml_opt_prepare_alloc first");
        return false;
    }
    if (opt->ready) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "ggml_opt_alloc: a graph is allocated already; call ggml_opt_eval first");
        return false;
    }
    opt->next = next_type(opt, backward);
    if (opt->next != GGML_OPT_BUILD_TYPE_FORWARD && opt->in_period == 0)
        opt_clear_state(opt, false);
    if (!opt->static_graphs && !opt->allocated) return opt->ready = build_and_make_ready(opt);
    opt->ready = make_ready(opt);
    if (!opt->ready && !opt->static_graphs && !opt->allocated) opt_forget_graph(opt, false);
    return opt->ready;
}

void ggml_opt_alloc(ggml_opt_context_t opt_ctx, bool backward) {
    if (opt_ctx)
        opt_alloc(opt_ctx, backward);
    else
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_opt_alloc: the context is NULL");
}

// --- evaluating ----------------------------------------------------------------------------------

// False for NaN.
static bool within(float value, float low, float high) {
    return value >= low && value <= high;
}

// AdamW with bias corrections: Loshchilov and Hutter, Decoupled weight decay regularization, 2017.
static bool set_adamw(struct ggml_opt_context *opt, const struct ggml_opt_optimizer_params *p) {
    const bool valid = p->adamw.alpha > 0.0f && within(p->adamw.beta1, 0.0f, 1.0f) &&
                       within(p->adamw.beta2, 0.0f, 1.0f) && p->adamw.eps >= 0.0f &&
                       within(p->adamw.wd, 0.0f, 1.0f);
    if (!valid) return false;
    const double n = (double)opt->iteration;
    const float values[] = {
        p->adamw.alpha,
        p->adamw.beta1,
        p->adamw.beta2,
        p->adamw.eps,
        p->adamw.wd,
        (float)(1.0 / (1.0 - pow((double)p->adamw.beta1, n))),
        (float)(1.0 / (1.0 - pow((double)p->adamw.beta2, n))),
    };
    ggml_backend_tensor_set(opt->step_params, values, 0, sizeof(values));
    return true;
}

// False, with nothing written, where a parameter is out of range.
static bool set_sgd(struct ggml_opt_context *opt, const struct ggml_opt_optimizer_params *p) {
    const float values[] = {p->sgd.alpha, p->sgd.wd};
    if (!(p->sgd.alpha > 0.0f) || !within(p->sgd.wd, 0.0f, 1.0f)) return false;
    ggml_backend_tensor_set(opt->step_params, values, 0, sizeof(values));
    return true;
}

// The callback runs once per optimiser step, right before it, so that a schedule sees the current
// state.
static bool set_step_params(struct ggml_opt_context *opt) {
    const struct ggml_opt_optimizer_params params = opt->get_params(opt->params_userdata);
    const bool adamw = opt->optimizer == GGML_OPT_OPTIMIZER_TYPE_ADAMW;
    if (adamw ? set_adamw(opt, &params) : set_sgd(opt, &params)) return true;
    ggml_fail(GGML_HOST_INVALID_ARGUMENT,
              "ggml_opt_eval: parameters out of range: the learning rate must be positive, betas "
              "and weight decay within 0 and 1, eps not negative");
    return false;
}

// A failed evaluation leaves the context ready for another opt_alloc(), which takes a static graph
// anew: the scheduler may have lost it. The counter of the period advances with gradients only:
// evaluations in between do not disturb it.
bool opt_eval(struct ggml_opt_context *opt, struct ggml_opt_result *result) {
    if (!opt->ready) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "ggml_opt_eval: no graph is allocated; call ggml_opt_alloc first");
        return false;
    }
    opt->ready = false;
    if (opt->next == GGML_OPT_BUILD_TYPE_OPT && !set_step_params(opt)) return false;
    const enum ggml_status status = ggml_backend_sched_graph_compute(opt->sched, opt->computed);
    if (status != GGML_STATUS_SUCCESS) {
        if (opt->static_graphs) opt->allocated = NULL;
        return false;
    }
    if (opt->next == GGML_OPT_BUILD_TYPE_OPT) ++opt->iteration;
    if (opt->next != GGML_OPT_BUILD_TYPE_FORWARD)
        opt->in_period = (opt->in_period + 1) % opt->period;
    const bool added = !result || opt_result_add(result, opt);
    if (!opt->static_graphs) {
        opt->forward = NULL;
        opt->allocated = NULL;
    }
    return added;
}

void ggml_opt_eval(ggml_opt_context_t opt_ctx, ggml_opt_result_t result) {
    if (opt_ctx)
        opt_eval(opt_ctx, result);
    else
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_opt_eval: the context is NULL");
}
