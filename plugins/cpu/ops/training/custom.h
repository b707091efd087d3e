// SPDX-License-Identifier: MIT
// Contents of op_params of nodes that call a function of the application.
#ifndef CPU_CUSTOM_H
#define CPU_CUSTOM_H

#include "ggml-impl.h"

struct custom_params {
    void (*fun)(void);
    int n_tasks; // threads at most, or GGML_N_TASKS_MAX
    void *userdata;
};

static inline struct custom_params custom_params(const struct ggml_tensor *node) {
    // Copied, since op_params aren't aligned for pointers.
    struct custom_params params;
    memcpy(&params, node->op_params, sizeof(params));
    return params;
}

#endif
