// SPDX-License-Identifier: MIT
// Default parameters and names of optimisers.
#include "opt/opt.h"

// ggml's defaults.
struct ggml_opt_optimizer_params ggml_opt_get_default_optimizer_params(void *userdata) {
    (void)userdata;
    return (struct ggml_opt_optimizer_params){
        .adamw = {.alpha = 0.001f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .wd = 0.0f},
        .sgd = {.alpha = 0.001f, .wd = 0.0f},
    };
}

struct ggml_opt_optimizer_params ggml_opt_get_constant_optimizer_params(void *userdata) {
    const struct ggml_opt_optimizer_params *params = userdata;
    return params ? *params : ggml_opt_get_default_optimizer_params(NULL);
}

// Everything but scheduler and loss has a default; graphs are dynamic unless ctx_compute is set.
struct ggml_opt_params ggml_opt_default_params(ggml_backend_sched_t backend_sched,
                                               enum ggml_opt_loss_type loss_type) {
    return (struct ggml_opt_params){
        .backend_sched = backend_sched,
        .loss_type = loss_type,
        .build_type = GGML_OPT_BUILD_TYPE_OPT,
        .opt_period = 1,
        .get_opt_pars = ggml_opt_get_default_optimizer_params,
        .optimizer = GGML_OPT_OPTIMIZER_TYPE_ADAMW,
    };
}

const char *ggml_opt_optimizer_name(enum ggml_opt_optimizer_type type) {
    switch (type) {
    case GGML_OPT_OPTIMIZER_TYPE_ADAMW: return "adamw";
    case GGML_OPT_OPTIMIZER_TYPE_SGD: return "sgd";
    default: return "undefined";
    }
}
