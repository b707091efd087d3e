// SPDX-License-Identifier: MIT
// What nodes that call a function of the application hold in op_params.
#ifndef CPU_CUSTOM_H
#define CPU_CUSTOM_H

#include "ggml-impl.h"

struct custom_params {
    void (*fun)(void);
    int n_tasks; // threads at most, or GGML_N_TASKS_MAX
    void *userdata;
};

static inline struct custom_params custom_params(const struct ggml_tensor *node) {
    struct custom_params params;
    memcpy(&params, node->op_params, sizeof(params));
    return params;
}

#endif
