// SPDX-License-Identifier: MIT
// A launch is an opaque structure of the plugin: the list is copied as bytes, and pointers into it
// last until the next one is appended.
#include "gpu/graph/plan.h"

#include <string.h>

#include "ggml-plugin.h"
#include "ggml-shape.h"

enum { SCRATCH_ALIGNMENT = 256, FIRST_LAUNCHES = 64 };

void gpu_plan_init(struct gpu_plan *plan, const struct gpu_planner *planner,
                   uint32_t fusions_disabled) {
    *plan = (struct gpu_plan){.planner = planner, .fusions_disabled = fusions_disabled};
}

void gpu_plan_clear(struct gpu_plan *plan) {
    plan->n_launches = 0;
    plan->scratch_used = 0;
    plan->scratch_bytes = 0;
    plan->out_of_memory = false;
}

static size_t launches_bytes(const struct gpu_plan *plan, int n) {
    return (size_t)n * plan->planner->launch_bytes;
}

void gpu_plan_free(struct gpu_plan *plan) {
    if (plan->launches) ggml_aligned_free(plan->launches, launches_bytes(plan, plan->max_launches));
    ggml_aligned_free(plan->spans, (size_t)plan->max_launches * sizeof(plan->spans[0]));
    *plan = (struct gpu_plan){0};
}

// --- launches ------------------------------------------------------------------------------------

// Doubles, so that a plan of n launches is copied at most twice over in all.
static bool grow(struct gpu_plan *plan) {
    const int max = plan->max_launches ? 2 * plan->max_launches : FIRST_LAUNCHES;
    void *more = ggml_aligned_malloc(launches_bytes(plan, max));
    struct gpu_span *spans = ggml_aligned_malloc((size_t)max * sizeof(*spans));
    if (!more || !spans) {
        if (more) ggml_aligned_free(more, launches_bytes(plan, max));
        if (spans) ggml_aligned_free(spans, (size_t)max * sizeof(*spans));
        return false;
    }
    if (plan->launches) {
        memcpy(more, plan->launches, launches_bytes(plan, plan->n_launches));
        memcpy(spans, plan->spans, (size_t)plan->n_launches * sizeof(*spans));
        ggml_aligned_free(plan->launches, launches_bytes(plan, plan->max_launches));
        ggml_aligned_free(plan->spans, (size_t)plan->max_launches * sizeof(*spans));
    }
    plan->launches = more;
    plan->spans = spans;
    plan->max_launches = max;
    return true;
}

void *gpu_plan_append(struct gpu_plan *plan) {
    if (plan->n_launches == plan->max_launches && !grow(plan)) {
        plan->out_of_memory = true;
        return NULL;
    }
    char *launch = (char *)plan->launches + launches_bytes(plan, plan->n_launches++);
    return memset(launch, 0, plan->planner->launch_bytes);
}

size_t gpu_plan_scratch(struct gpu_plan *plan, size_t bytes) {
    const size_t offset = plan->scratch_used;
    plan->scratch_used += (bytes + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
    if (plan->scratch_used > plan->scratch_bytes) plan->scratch_bytes = plan->scratch_used;
    return offset;
}

// --- fusions -------------------------------------------------------------------------------------

// Tries fusion k on nodes idxs[0..n). Returns how many nodes it took; 0 and the plan as before
// where it doesn't fit, or the plugin has no launch for it.
static int fuse_by(struct gpu_plan *plan, const struct ggml_graph *graph, int k, const int *idxs,
                   int n) {
    int n_fusions;
    const struct gpu_fusion *fusion = &gpu_fusions(&n_fusions)[k];
    struct gpu_window w = {.graph = graph, .idxs = idxs};
    struct gpu_fused fused;
    const int before = plan->n_launches;
    if ((plan->fusions_disabled >> k & 1) || !plan->planner->fuse[k]) return 0;
    while (w.n < n && gpu_fusion_takes(fusion, w.n, graph->nodes[idxs[w.n]])) {
        w.ops[w.n] = graph->nodes[idxs[w.n]]->op;
        w.n++;
    }
    if (!gpu_fusion_match((enum gpu_fusion_number)k, &w, &fused)) return 0;
    if (plan->planner->fuse[k](plan, &fused)) return fused.n;
    plan->n_launches = before;
    return 0;
}

// In the order of the list, so that a longer or cheaper fusion stands first. After memory ran out
// no other is tried: the plan as a whole fails.
int gpu_plan_fuse(struct gpu_plan *plan, const struct ggml_graph *graph, int i) {
    int idxs[GPU_MAX_FUSED], n = 0;
    for (; n < GPU_MAX_FUSED && i + n < graph->n_nodes; ++n)
        idxs[n] = i + n;
    for (int k = 0; k < GPU_FUSION_COUNT; ++k) {
        const int fused = fuse_by(plan, graph, k, idxs, n);
        if (fused > 0 || plan->out_of_memory) return fused;
    }
    return 0;
}

int gpu_plan_fuse_ask(struct gpu_plan *plan, const struct ggml_graph *graph, int k, const int *idxs,
                      int n) {
    gpu_plan_clear(plan);
    const int fused = fuse_by(plan, graph, k, idxs, n);
    gpu_plan_clear(plan);
    return fused;
}

// --- graphs --------------------------------------------------------------------------------------

// What moves no data: views, nodes that the caller left out, and tensors without elements.
static bool is_idle(const struct ggml_tensor *node) {
    return ggml_op_is_empty(node->op) || !(node->flags & GGML_TENSOR_FLAG_COMPUTE) ||
           ggml_nelements(node) == 0;
}

// Appends what node i begins. Returns the number of nodes that this takes, or 0 after a failure.
static int add_from(struct gpu_plan *plan, const struct ggml_graph *graph, int i) {
    const struct ggml_tensor *node = graph->nodes[i];
    const bool error = (node->flags & GGML_TENSOR_FLAG_ERROR) != 0;
    if (!error && is_idle(node)) return 1;
    const int fused = error ? 0 : gpu_plan_fuse(plan, graph, i);
    if (fused > 0) return fused;
    if (!error && !plan->out_of_memory && plan->planner->add(plan, node)) return 1;
    if (!plan->out_of_memory) {
        ggml_sdk_fail(
            GGML_HOST_UNSUPPORTED,
            "the %s plugin does not compute node '%.*s' (%s) with these types and layouts; "
            "ask ggml_backend_supports_op() before building the graph",
            plan->planner->name, GGML_MAX_NAME, node->name, ggml_op_name(node->op));
    }
    return 0;
}

// Nodes [first, end) have been given the launches from `launch` on.
static void set_spans(struct gpu_plan *plan, const struct ggml_graph *graph, int launch, int first,
                      int end) {
    struct gpu_span span = {.first_node = -1};
    for (int i = first; i < end; ++i) {
        if (is_idle(graph->nodes[i])) continue;
        if (span.n_nodes++ == 0) span.first_node = i;
    }
    for (; launch < plan->n_launches; ++launch)
        plan->spans[launch] = span;
}

// A node with an error reaches no kernel: its operands may be anything.
enum ggml_status gpu_plan_graph(struct gpu_plan *plan, const struct ggml_graph *graph) {
    gpu_plan_clear(plan);
    for (int i = 0; i < graph->n_nodes;) {
        const int launch = plan->n_launches;
        const int n = add_from(plan, graph, i);
        set_spans(plan, graph, launch, i, i + n);
        if (n == 0) return plan->out_of_memory ? GGML_STATUS_ALLOC_FAILED : GGML_STATUS_FAILED;
        i += n;
    }
    return GGML_STATUS_SUCCESS;
}
