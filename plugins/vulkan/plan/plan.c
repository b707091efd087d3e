// SPDX-License-Identifier: MIT
#include "plan/plan.h"

#include <string.h>

#include "base/util.h"
#include "plan/fuse.h"
#include "plan/shape.h"

enum { SCRATCH_ALIGNMENT = 256, FIRST_DISPATCHES = 64 };

void vk_plan_init(struct vk_plan *plan, const struct vk_features *features) {
    *plan = (struct vk_plan){.features = features, .fusions_disabled = vk_fusions_disabled()};
}

void vk_plan_clear(struct vk_plan *plan) {
    plan->n_dispatches = 0;
    plan->scratch_used = 0;
    plan->scratch_bytes = 0;
    plan->out_of_memory = false;
}

void vk_plan_free(struct vk_plan *plan) {
    ggml_aligned_free(plan->dispatches, (size_t)plan->max_dispatches * sizeof(*plan->dispatches));
    *plan = (struct vk_plan){0};
}

static bool grow(struct vk_plan *plan) {
    const int max = plan->max_dispatches ? 2 * plan->max_dispatches : FIRST_DISPATCHES;
    struct vk_dispatch *more = ggml_aligned_malloc((size_t)max * sizeof(*more));
    if (!more) return false;
    if (plan->n_dispatches)
        memcpy(more, plan->dispatches, (size_t)plan->n_dispatches * sizeof(*more));
    ggml_aligned_free(plan->dispatches, (size_t)plan->max_dispatches * sizeof(*more));
    plan->dispatches = more;
    plan->max_dispatches = max;
    return true;
}

struct vk_dispatch *vk_dispatch_new(struct vk_plan *plan, enum vk_shader shader,
                                    const struct ggml_tensor *node, int n_sources,
                                    uint32_t group_size) {
    if (plan->n_dispatches == plan->max_dispatches && !grow(plan)) {
        plan->out_of_memory = true;
        return NULL;
    }
    struct vk_dispatch *d = &plan->dispatches[plan->n_dispatches++];
    memset(d, 0, sizeof(*d));
    d->shader = shader;
    d->writes = 1;
    d->n_operands = 1 + n_sources;
    d->operands[0].tensor = node;
    for (int i = 0; i < n_sources; ++i)
        d->operands[1 + i].tensor = node->src[i] ? node->src[i] : node;
    vk_dispatch_spec(d, group_size);
    vk_dispatch_spec(d, 1);
    vk_dispatch_spec(d, 1);
    memcpy(d->op_params, node->op_params, sizeof(d->op_params));
    d->groups[0] = d->groups[1] = d->groups[2] = 1;
    return d;
}

void vk_dispatch_spec(struct vk_dispatch *dispatch, uint32_t value) {
    GGML_ASSERT(dispatch->n_specs < VK_MAX_SPECS);
    dispatch->specs[dispatch->n_specs++] = value;
}

// Evenly, so that no dimension ends in groups without work.
void vk_dispatch_groups(const struct vk_plan *plan, struct vk_dispatch *dispatch, uint64_t n) {
    const uint32_t *max = plan->features->max_groups;
    const uint64_t lines = vk_groups_of(n, max[0]);
    const uint64_t z = vk_groups_of(lines, max[1]);
    const uint64_t y = z ? vk_groups_of(lines, z) : 0;
    dispatch->groups[0] = y ? (uint32_t)vk_groups_of(n, y * z) : 0;
    dispatch->groups[1] = (uint32_t)y;
    dispatch->groups[2] = (uint32_t)z;
}

void vk_dispatch_scratch(struct vk_dispatch *dispatch, int i, size_t offset, size_t bytes,
                         bool written) {
    dispatch->operands[i] = (struct vk_operand){.scratch_offset = offset, .scratch_bytes = bytes};
    if (i >= dispatch->n_operands) dispatch->n_operands = i + 1;
    if (written) dispatch->writes |= UINT32_C(1) << i;
}

void vk_dispatch_grids(struct vk_dispatch *dispatch, int i, const struct ggml_tensor *t) {
    if (!vk_has_grid(t)) return;
    dispatch->operands[i] = (struct vk_operand){.grids = true};
    if (i >= dispatch->n_operands) dispatch->n_operands = i + 1;
    dispatch->writes &= ~(UINT32_C(1) << i);
}

size_t vk_plan_scratch(struct vk_plan *plan, size_t bytes) {
    const size_t offset = plan->scratch_used;
    plan->scratch_used += (bytes + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
    if (plan->scratch_used > plan->scratch_bytes) plan->scratch_bytes = plan->scratch_used;
    return offset;
}

const struct vk_features *vk_plan_features(const struct vk_plan *plan) {
    return plan->features;
}

bool vk_plan_add(struct vk_plan *plan, const struct ggml_tensor *node) {
    const struct vk_kernel *kernel = vk_kernel_find(plan->features, node);
    if (!kernel) return false;
    plan->scratch_used = 0;
    kernel->encode(plan, node);
    return !plan->out_of_memory;
}

static bool is_idle(const struct ggml_tensor *node) {
    return ggml_op_is_empty(node->op) || !(node->flags & GGML_TENSOR_FLAG_COMPUTE) ||
           vk_nelements(node) == 0;
}

// Appends what node i begins. Answers the number of nodes that this takes, or 0 after a failure.
static int add_from(struct vk_plan *plan, const struct ggml_graph *graph, int i) {
    const struct ggml_tensor *node = graph->nodes[i];
    const bool error = (node->flags & GGML_TENSOR_FLAG_ERROR) != 0;
    if (!error && is_idle(node)) return 1;
    const int fused = error ? 0 : vk_fuse(plan, graph, i);
    if (fused > 0) return fused;
    if (!error && !plan->out_of_memory && vk_plan_add(plan, node)) return 1;
    if (!plan->out_of_memory) {
        vk_fail(GGML_HOST_UNSUPPORTED,
                "the Vulkan plugin does not compute node '%.*s' (%s) with these types and layouts; "
                "ask ggml_backend_supports_op() before building the graph",
                GGML_MAX_NAME, node->name, ggml_op_name(node->op));
    }
    return 0;
}

enum ggml_status vk_plan_graph(struct vk_plan *plan, const struct ggml_graph *graph) {
    vk_plan_clear(plan);
    for (int i = 0; i < graph->n_nodes;) {
        const int n = add_from(plan, graph, i);
        if (n == 0) return plan->out_of_memory ? GGML_STATUS_ALLOC_FAILED : GGML_STATUS_FAILED;
        i += n;
    }
    return GGML_STATUS_SUCCESS;
}
