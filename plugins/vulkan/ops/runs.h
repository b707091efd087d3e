// SPDX-License-Identifier: MIT
// Dispatches of shaders that compute runs of four elements (shaders/runs.glsl).
#ifndef GVK_RUNS_H
#define GVK_RUNS_H

#include "gpu/base/shape.h"
#include "plan/kernel.h"

enum { GVK_RUN = 4, GVK_RUN_GROUP = 64 };

// What the shader's constant DIMS is; flat: operands are packed alike and count as one row.
static inline uint32_t gvk_run_dims(const struct ggml_tensor *node, bool flat) {
    return flat ? 1 : node->ne[2] * node->ne[3] == 1 ? 2 : 4;
}

// Whether runs of the operand, with such a result, are whole and lie in aligned vectors.
static inline bool gvk_run_vectors(const struct ggml_tensor *t, const struct ggml_tensor *node,
                                   bool flat) {
    const size_t size = GVK_RUN * ggml_type_size(t->type);
    if (flat) return gpu_nelements(node) % GVK_RUN == 0 && (uintptr_t)t->data % size == 0;
    return node->ne[0] % GVK_RUN == 0 && ggml_rows_dense(t) && gpu_rows_aligned(t, size);
}

// Groups and number(0) for a result of which every run is an invocation.
static inline void gvk_dispatch_runs(const struct gvk_plan *plan, struct gvk_dispatch *d,
                                     const struct ggml_tensor *node, bool flat) {
    const uint64_t per_row = gpu_groups_of((uint64_t)node->ne[0], GVK_RUN);
    const uint64_t runs =
        flat ? gpu_groups_of(gpu_nelements(node), GVK_RUN) : per_row * gpu_nrows(node);
    d->numbers[0] = (uint32_t)gpu_nelements(node);
    gvk_dispatch_groups(plan, d, gpu_groups_of(runs, GVK_RUN_GROUP));
}

#endif
