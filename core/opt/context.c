// SPDX-License-Identifier: MIT
// Life and accessors of a training context.
#include "base/mem.h"
#include "base/status.h"
#include "ggml-alloc.h"
#include "ggml-impl.h"
#include "opt/opt.h"

// Elements of the tensor that the steps read: see op_list.inl for their order.
enum { ADAMW_PARAMS = 7, SGD_PARAMS = 2 };

// What is wrong with the parameters, or NULL.
static const char *complaint_about(const struct ggml_opt_params *params) {
    if (!params->backend_sched) return "there is no scheduler";
    if (!params->get_opt_pars) return "there is no function that returns the parameters";
    if (params->opt_period < 1) return "the period must be at least 1";
    if (params->optimizer >= GGML_OPT_OPTIMIZER_TYPE_COUNT) return "there is no such optimiser";
    if (params->loss_type > GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR) return "there is no such loss";
    if (!params->ctx_compute) return NULL;
    if (!params->inputs || !params->outputs) return "static graphs need inputs and outputs";
    if (!params->inputs->data) return "the inputs of static graphs must be allocated";
    if (ggml_tensor_is_error(params->outputs)) return ggml_tensor_error(params->outputs);
    return NULL;
}

// The parameters of the optimiser are data and not op_params, so that a schedule changes them
// without building a graph again.
static bool make_step_params(struct ggml_opt_context *opt) {
    const struct ggml_init_params params = {.mem_size = ggml_tensor_overhead(), .no_alloc = true};
    const bool adamw = opt->optimizer == GGML_OPT_OPTIMIZER_TYPE_ADAMW;
    opt->ctx_params = ggml_init(params);
    if (!opt->ctx_params) return false;
    opt->step_params =
        ggml_new_tensor_1d(opt->ctx_params, GGML_TYPE_F32, adamw ? ADAMW_PARAMS : SGD_PARAMS);
    if (ggml_tensor_is_error(opt->step_params)) return false;
    ggml_format_name(opt->step_params, "%s_params", ggml_opt_optimizer_name(opt->optimizer));
    ggml_set_input(opt->step_params);
    opt->params_buffer =
        ggml_backend_alloc_ctx_tensors_from_buft(opt->ctx_params, ggml_backend_cpu_buffer_type());
    return opt->params_buffer != NULL;
}

// Static graphs are built once, for the type of step that does the most.
static bool build_static(struct ggml_opt_context *opt) {
    opt->forward = ggml_new_graph_custom(opt->ctx_compute, GGML_DEFAULT_GRAPH_SIZE, true);
    if (!opt->forward) return false;
    ggml_build_forward_expand(opt->forward, opt->outputs);
    return opt_build(opt, opt->build_type);
}

// The context takes nothing of `params` over but pointers: scheduler, context and tensors must
// outlive it.
ggml_opt_context_t ggml_opt_init(struct ggml_opt_params params) {
    const char *complaint = complaint_about(&params);
    if (complaint) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_opt_init: %s", complaint);
        return NULL;
    }
    struct ggml_opt_context *opt = ggml_mem_calloc(1, sizeof(*opt));
    if (!opt) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "ggml_opt_init: out of memory");
        return NULL;
    }
    opt->sched = params.backend_sched;
    opt->ctx_compute = params.ctx_compute;
    opt->static_graphs = params.ctx_compute != NULL;
    opt->inputs = params.inputs;
    opt->outputs = params.outputs;
    opt->loss_type = params.loss_type;
    opt->build_type = params.build_type;
    opt->period = params.opt_period;
    opt->optimizer = params.optimizer;
    opt->get_params = params.get_opt_pars;
    opt->params_userdata = params.get_opt_pars_ud;
    opt->iteration = 1;
    if (make_step_params(opt) && (!opt->static_graphs || build_static(opt))) return opt;
    ggml_opt_free(opt);
    return NULL;
}

// Graphs that the context built are in its contexts; the caller's model stays.
void ggml_opt_free(ggml_opt_context_t opt_ctx) {
    if (!opt_ctx) return;
    ggml_backend_buffer_free(opt_ctx->state_buffer);
    ggml_backend_buffer_free(opt_ctx->params_buffer);
    ggml_free(opt_ctx->ctx_copy);
    ggml_free(opt_ctx->ctx_state);
    ggml_free(opt_ctx->ctx_params);
    ggml_mem_free(opt_ctx->states);
    ggml_mem_free(opt_ctx);
}

// With `optimizer` false only gradients are reset, which ends an accumulation period early.
void ggml_opt_reset(ggml_opt_context_t opt_ctx, bool optimizer) {
    if (!opt_ctx) return;
    opt_clear_state(opt_ctx, optimizer);
    if (optimizer) opt_ctx->iteration = 1;
    opt_ctx->in_period = 0;
}

// --- accessors -----------------------------------------------------------------------------------

bool ggml_opt_static_graphs(ggml_opt_context_t opt_ctx) {
    return opt_ctx && opt_ctx->static_graphs;
}

struct ggml_tensor *ggml_opt_inputs(ggml_opt_context_t opt_ctx) {
    return opt_ctx ? opt_ctx->inputs : NULL;
}

struct ggml_tensor *ggml_opt_outputs(ggml_opt_context_t opt_ctx) {
    return opt_ctx ? opt_ctx->outputs : NULL;
}

struct ggml_tensor *ggml_opt_labels(ggml_opt_context_t opt_ctx) {
    return opt_ctx ? opt_ctx->labels : NULL;
}

struct ggml_tensor *ggml_opt_loss(ggml_opt_context_t opt_ctx) {
    return opt_ctx ? opt_ctx->loss : NULL;
}

struct ggml_tensor *ggml_opt_pred(ggml_opt_context_t opt_ctx) {
    return opt_ctx ? opt_ctx->pred : NULL;
}

struct ggml_tensor *ggml_opt_ncorrect(ggml_opt_context_t opt_ctx) {
    return opt_ctx ? opt_ctx->ncorrect : NULL;
}

struct ggml_tensor *ggml_opt_grad_acc(ggml_opt_context_t opt_ctx, struct ggml_tensor *node) {
    if (!opt_ctx || !opt_ctx->grad || !node) return NULL;
    return ggml_graph_get_grad_acc(opt_ctx->grad, node);
}

enum ggml_opt_optimizer_type ggml_opt_context_optimizer_type(ggml_opt_context_t opt_ctx) {
    return opt_ctx ? opt_ctx->optimizer : GGML_OPT_OPTIMIZER_TYPE_COUNT;
}
