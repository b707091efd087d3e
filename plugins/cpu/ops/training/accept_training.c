// SPDX-License-Identifier: MIT
// What back.c, repeat_back.c, out_prod.c, loss.c, optimizer.c and custom.c compute, and
// their work memory.
#include "ggml-shape.h"
#include "ops/training/custom.h"
#include "runtime/kernel_list.h"

// F32 of the node's shape with dense rows.
static bool is_dense_like(const struct ggml_tensor *t, const struct ggml_tensor *node) {
    return ggml_has_type(t, GGML_TYPE_F32) && ggml_are_same_shape(t, node) && ggml_rows_dense(t);
}

// Both sources have the result's shape, with dense rows.
bool cpu_accepts_same_pair(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    return ggml_are_same_shape(node, a) && ggml_are_same_shape(node, b) && ggml_rows_dense(node) &&
           ggml_rows_dense(a) && ggml_rows_dense(b);
}

// ALiBi has no gradient.
bool cpu_accepts_soft_max_back(const struct ggml_tensor *node) {
    return ggml_get_op_params_f32(node, 1) == 0.0f && cpu_accepts_same_pair(node);
}

bool cpu_accepts_repeat_back(const struct ggml_tensor *node) {
    return ggml_repeats(node, node->src[0]) && ggml_rows_dense(node);
}

bool cpu_accepts_get_rows_back(const struct ggml_tensor *node) {
    return ggml_fits_get_rows_back(node) && ggml_rows_dense(node) && ggml_rows_dense(node->src[0]);
}

// src0 repeats over the batches of src1.
bool cpu_accepts_out_prod(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    return ggml_rows_dense(node) && ggml_rows_dense(a) && a->ne[0] % ggml_blck_size(a->type) == 0 &&
           a->ne[1] == b->ne[1] && a->ne[2] > 0 && a->ne[3] > 0 && b->ne[2] % a->ne[2] == 0 &&
           b->ne[3] % a->ne[3] == 0 && node->ne[0] == a->ne[0] && node->ne[1] == b->ne[0] &&
           node->ne[2] == b->ne[2] && node->ne[3] == b->ne[3];
}

// One multiplication per element of the result and step.
int64_t cpu_cost_out_prod(const struct ggml_tensor *node) {
    const double cost = (double)ggml_nelements(node) * (double)node->src[0]->ne[1];
    return cost < 1e18 ? (int64_t)cost : INT64_MAX;
}

// Targets have the shape of the logits.
bool cpu_accepts_cross_entropy_loss(const struct ggml_tensor *node) {
    const struct ggml_tensor *logits = node->src[0];
    return ggml_nelements(node) == 1 && ggml_rows_dense(logits) &&
           is_dense_like(node->src[1], logits);
}

// A loss per row, in double, which one thread adds up.
size_t cpu_work_cross_entropy_loss(const struct ggml_tensor *node, int n_threads) {
    (void)n_threads;
    return (size_t)ggml_nrows(node->src[0]) * sizeof(double);
}

// The gradient of the loss is one number.
bool cpu_accepts_cross_entropy_loss_back(const struct ggml_tensor *node) {
    return ggml_nelements(node->src[0]) == 1 && is_dense_like(node->src[1], node) &&
           is_dense_like(node->src[2], node) && ggml_rows_dense(node);
}

// Parameters, gradient and moments are of one shape with dense rows.
bool cpu_accepts_opt_step(const struct ggml_tensor *node) {
    const int n = node->op == GGML_OP_OPT_STEP_ADAMW ? 4 : 2;
    if (!ggml_fits_opt_step(node) || !ggml_rows_dense(node)) return false;
    for (int i = 0; i < n; ++i) {
        if (!ggml_rows_dense(node->src[i])) return false;
    }
    return true;
}

// Needs a function, and at least one thread or any number.
bool cpu_accepts_custom(const struct ggml_tensor *node) {
    const struct custom_params p = custom_params(node);
    return p.fun && (p.n_tasks > 0 || p.n_tasks == GGML_N_TASKS_MAX);
}

// The function's cost is unknown: a request for several threads is taken as a large one.
int64_t cpu_cost_custom(const struct ggml_tensor *node) {
    return custom_params(node).n_tasks == 1 ? 0 : INT64_MAX;
}
