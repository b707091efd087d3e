// SPDX-License-Identifier: MIT
// What Vulkan adds to plans: the encoding of dispatches, and their memory.
#include "plan/plan.h"

#include <string.h>

#include "gpu/base/nodes.h"
#include "gpu/base/shape.h"
#include "gpu/base/util.h"
#include "plan/fuse.h"

static bool planner_add(struct gpu_plan *plan, const struct ggml_tensor *node) {
    return gvk_plan_add((struct gvk_plan *)(void *)plan, node);
}

static const struct gpu_planner planner = {
    .name = "Vulkan",
    .launch_bytes = sizeof(struct gvk_dispatch),
    .add = planner_add,
    .fuse =
        {
#define GPU_FUSION_ROW(name, ...) [GPU_FUSION_##name] = gvk_fuse_##name,
#include "gpu/graph/fuse_list.inl"
        },
};

uint32_t gvk_fusions_disabled(void) {
    return gpu_fusions_named(gpu_config("GGML_VULKAN_DISABLE_FUSION"));
}

void gvk_plan_init(struct gvk_plan *plan, const struct gvk_features *features) {
    gpu_plan_init(&plan->base, &planner, gvk_fusions_disabled());
    plan->features = features;
}

void gvk_plan_free(struct gvk_plan *plan) {
    gpu_plan_free(&plan->base);
}

enum ggml_status gvk_plan_graph(struct gvk_plan *plan, const struct ggml_graph *graph) {
    return gpu_plan_graph(&plan->base, graph);
}

// --- dispatches ----------------------------------------------------------------------------------

// Appends a launch of one group with the node's operands; a missing source is bound as the node
// itself, as each binding of a layout must be valid. NULL without memory, which the plan notes.
struct gvk_dispatch *gvk_dispatch_new(struct gvk_plan *plan, enum gvk_shader shader,
                                      const struct ggml_tensor *node, int n_sources,
                                      uint32_t group_size) {
    struct gvk_dispatch *d = gpu_plan_append(&plan->base);
    if (!d) return NULL;
    d->shader = shader;
    d->writes = 1;
    d->n_operands = 1 + n_sources;
    d->operands[0].tensor = node;
    for (int i = 0; i < n_sources; ++i) {
        d->operands[1 + i].tensor = node->src[i] ? node->src[i] : node;
        d->writes |= (uint32_t)gpu_writes_source(node, i) << (1 + i);
    }
    gvk_dispatch_spec(d, group_size);
    gvk_dispatch_spec(d, 1);
    gvk_dispatch_spec(d, 1);
    memcpy(d->op_params, node->op_params, sizeof(d->op_params));
    d->groups[0] = d->groups[1] = d->groups[2] = 1;
    return d;
}

void gvk_dispatch_spec(struct gvk_dispatch *dispatch, uint32_t value) {
    GGML_ASSERT(dispatch->n_specs < GVK_MAX_SPECS);
    dispatch->specs[dispatch->n_specs++] = value;
}

// Evenly, so that no dimension ends in groups without work.
// Devices guarantee 65,535 groups per dimension only, and some have no more.
void gvk_dispatch_groups(const struct gvk_plan *plan, struct gvk_dispatch *dispatch, uint64_t n) {
    const uint32_t *max = plan->features->max_groups;
    const uint64_t lines = gpu_groups_of(n, max[0]);
    const uint64_t z = gpu_groups_of(lines, max[1]);
    const uint64_t y = z ? gpu_groups_of(lines, z) : 0;
    dispatch->groups[0] = y ? (uint32_t)gpu_groups_of(n, y * z) : 0;
    dispatch->groups[1] = (uint32_t)y;
    dispatch->groups[2] = (uint32_t)z;
}

// Binds scratch memory as operand i. `written`: later launches that read it wait for this one.
void gvk_dispatch_scratch(struct gvk_dispatch *dispatch, int i, size_t offset, size_t bytes,
                          bool written) {
    dispatch->operands[i] = (struct gvk_operand){.scratch_offset = offset, .scratch_bytes = bytes};
    if (i >= dispatch->n_operands) dispatch->n_operands = i + 1;
    if (written) dispatch->writes |= UINT32_C(1) << i;
}

// Binds the tables of grid types as operand i, if the tensor's type has any.
void gvk_dispatch_grids(struct gvk_dispatch *dispatch, int i, const struct ggml_tensor *t) {
    if (!gvk_has_grid(t)) return;
    dispatch->operands[i] = (struct gvk_operand){.grids = true};
    if (i >= dispatch->n_operands) dispatch->n_operands = i + 1;
    dispatch->writes &= ~(UINT32_C(1) << i);
}

size_t gvk_plan_scratch(struct gvk_plan *plan, size_t bytes) {
    return gpu_plan_scratch(&plan->base, bytes);
}

const struct gvk_features *gvk_plan_features(const struct gvk_plan *plan) {
    return plan->features;
}

// Encodes one node; false where the device has no kernel for it, or without memory.
bool gvk_plan_add(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const struct gvk_kernel *kernel = gvk_kernel_find(plan->features, node);
    if (!kernel) return false;
    plan->base.scratch_used = 0;
    kernel->encode(plan, node);
    return !plan->base.out_of_memory;
}
