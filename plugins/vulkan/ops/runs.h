// SPDX-License-Identifier: MIT
// Dispatches of shaders that compute runs of four elements (shaders/runs.glsl).
#ifndef VK_RUNS_H
#define VK_RUNS_H

#include "gpu/base/shape.h"
#include "plan/kernel.h"

enum { VK_RUN = 4, VK_RUN_GROUP = 64 };

// What the shader's constant DIMS is; flat: operands are packed alike and count as one row.
static inline uint32_t vk_run_dims(const struct ggml_tensor *node, bool flat) {
    return flat ? 1 : node->ne[2] * node->ne[3] == 1 ? 2 : 4;
}

// Whether runs of the operand, with such a result, are whole and lie in aligned vectors.
static inline bool vk_run_vectors(const struct ggml_tensor *t, const struct ggml_tensor *node,
                                  bool flat) {
    const size_t size = VK_RUN * ggml_type_size(t->type);
    if (flat) return gpu_nelements(node) % VK_RUN == 0 && (uintptr_t)t->data % size == 0;
    return node->ne[0] % VK_RUN == 0 && ggml_rows_dense(t) && gpu_rows_aligned(t, size);
}

// Groups and number(0) for a result of which every run is an invocation.
static inline void vk_dispatch_runs(const struct vk_plan *plan, struct vk_dispatch *d,
                                    const struct ggml_tensor *node, bool flat) {
    const uint64_t per_row = gpu_groups_of((uint64_t)node->ne[0], VK_RUN);
    const uint64_t runs =
        flat ? gpu_groups_of(gpu_nelements(node), VK_RUN) : per_row * gpu_nrows(node);
    d->numbers[0] = (uint32_t)gpu_nelements(node);
    vk_dispatch_groups(plan, d, gpu_groups_of(runs, VK_RUN_GROUP));
}

#endif
