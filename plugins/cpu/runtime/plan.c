// SPDX-License-Identifier: MIT
// Chooses a kernel for each node that computes something, whether threads share it, and how much
// scratch memory it takes. That operands lie in host memory is checked here, so that kernels need
// not.
#include "runtime/plan.h"

#include "base/util.h"
#include "ggml-backend-impl.h"
#include "ggml-plugin.h"
#include "ggml-shape.h"
#include "runtime/fuse.h"
#include "runtime/level.h"
#include "types/repacked.h"

// The message names the node and how to find out beforehand.
static enum ggml_status unsupported(const struct ggml_tensor *node) {
    const char *type = ggml_blck_size(node->type) ? "" : " (of an unknown type)";
    return cpu_fail(GGML_STATUS_FAILED, GGML_HOST_UNSUPPORTED,
                    "the CPU plugin does not compute node '%.*s' (%s)%s with these types and "
                    "layouts; ask ggml_backend_supports_op() before building the graph",
                    GGML_MAX_NAME, node->name, ggml_op_name(node->op), type);
}

// Without a buffer it is plain memory of the application. Repacked weights are in the host's too.
static bool in_host_memory(const struct ggml_tensor *tensor) {
    const struct ggml_tensor *owner = tensor->view_src ? tensor->view_src : tensor;
    const ggml_backend_buffer_t buffer = tensor->buffer ? tensor->buffer : owner->buffer;
    if (!buffer || !buffer->buft || buffer->buft->table == &cpu_repacked_table) return true;
    return buffer->buft->table->is_host && buffer->buft->table->is_host(buffer->buft);
}

// Kernels read and write addresses: all memory has to be the host's.
static enum ggml_status check_memory(const struct ggml_tensor *node) {
    bool host = in_host_memory(node);
    for (int i = 0; i < GGML_MAX_SRC && host; ++i)
        host = !node->src[i] || in_host_memory(node->src[i]);
    if (host && cpu_layouts_fit(node)) return GGML_STATUS_SUCCESS;
    if (host)
        return cpu_fail(GGML_STATUS_FAILED, GGML_HOST_UNSUPPORTED,
                        "node '%.*s' (%s) or an operand is in memory of repacked weights, which "
                        "only products read",
                        GGML_MAX_NAME, node->name, ggml_op_name(node->op));
    return cpu_fail(GGML_STATUS_FAILED, GGML_HOST_UNSUPPORTED,
                    "node '%.*s' (%s) or an operand is in another device's memory: copy it to host "
                    "memory first",
                    GGML_MAX_NAME, node->name, ggml_op_name(node->op));
}

// Nothing of the old plan is kept, so it is not copied.
static enum ggml_status reserve(struct cpu_plan *plan, int n) {
    if (n <= plan->capacity) return GGML_STATUS_SUCCESS;
    struct cpu_step *steps = ggml_aligned_malloc((size_t)n * sizeof(*steps));
    if (!steps) {
        return cpu_fail(GGML_STATUS_ALLOC_FAILED, GGML_HOST_OUT_OF_MEMORY,
                        "no memory to plan a graph of %d nodes", n);
    }
    cpu_plan_free(plan);
    plan->steps = steps;
    plan->capacity = n;
    return GGML_STATUS_SUCCESS;
}

// Kernels that share out most of their work by cpu_task_take(), and keep to its conditions.
static bool takes_pieces(const struct ggml_tensor *node) {
    return node->op == GGML_OP_MUL_MAT || node->op == GGML_OP_FLASH_ATTN_EXT;
}

// A step needs a barrier before it where it or the one before has several threads: steps in a row
// that thread 0 computes alone need none. One piece of scratch memory serves all steps, so its size
// is the largest.
static void add_step(struct cpu_plan *plan, struct ggml_tensor *node,
                     const struct cpu_kernel *kernel, const struct ggml_tensor *first,
                     int first_node, int n_nodes) {
    const bool parallel = plan->n_threads > 1 && kernel->cost(node) >= CPU_COST_PARALLEL;
    const size_t work = kernel->work(node, parallel ? plan->n_threads : 1);
    const bool after_parallel = plan->n_steps > 0 && plan->steps[plan->n_steps - 1].parallel;
    plan->steps[plan->n_steps] = (struct cpu_step){
        .node = node,
        .first = first,
        .kernel = cpu_level()->kernels[cpu_kernel_index(kernel)],
        .parallel = parallel,
        .takes = parallel && takes_pieces(node),
        .splits = parallel && kernel->work == cpu_work_none,
        .barrier = plan->n_steps > 0 && (parallel || after_parallel),
        .first_node = first_node,
        .n_nodes = n_nodes,
    };
    ++plan->n_steps;
    plan->parallel = plan->parallel || parallel;
    plan->work_size = MAX(plan->work_size, work);
}

// Nodes without the COMPUTE flag belong to alternatives that weren't chosen.
static int count_computed(const struct ggml_graph *graph, int begin, int end) {
    int n = 0;
    for (int i = begin; i < end; ++i)
        n += !cpu_is_idle(graph->nodes[i]) && graph->nodes[i]->flags & GGML_TENSOR_FLAG_COMPUTE;
    return n;
}

// Returns the number of nodes that the step or steps take, or 0 after a failure.
static int plan_node(struct cpu_plan *plan, const struct ggml_graph *graph, int i,
                     enum ggml_status *out_status) {
    struct ggml_tensor *node = graph->nodes[i];
    *out_status = GGML_STATUS_SUCCESS;
    if (!(node->flags & GGML_TENSOR_FLAG_ERROR) && cpu_is_idle(node)) return 1;
    const struct cpu_fusion fusion = plan->use_ref ? (struct cpu_fusion){0} : cpu_fuse(graph, i);
    const struct cpu_kernel *kernel = fusion.kernel ? fusion.kernel : cpu_kernel_find(node);
    if (!kernel)
        *out_status = unsupported(node);
    else
        *out_status = check_memory(node);
    if (*out_status == GGML_STATUS_SUCCESS && fusion.kernel)
        *out_status = check_memory(fusion.node);
    if (*out_status != GGML_STATUS_SUCCESS) return 0;
    const int n_nodes = fusion.kernel ? fusion.n_nodes : 1;
    add_step(plan, fusion.kernel ? fusion.node : node, kernel, node, i,
             count_computed(graph, i, i + n_nodes));
    return n_nodes;
}

static bool is_disabled(const char *variable) {
    const char *value = ggml_sdk_config(variable);
    return value && strcmp(value, "1") == 0;
}

bool cpu_rounding_is_disabled(void) {
    return is_disabled("GGML_CPU_DISABLE_ROUNDING");
}

static bool is_made(const struct cpu_plan *plan, const struct ggml_graph *graph, int n_threads,
                    bool use_ref) {
    return plan->uid != 0 && plan->uid == graph->uid && plan->n_nodes == graph->n_nodes &&
           plan->n_threads == n_threads && plan->use_ref == use_ref;
}

// Plans the steps of a graph, unless the plan is already the one for this graph's number and
// settings: for repeated graphs this costs O(1) instead of O(nodes).
enum ggml_status cpu_plan_make(struct cpu_plan *plan, const struct ggml_graph *graph, int n_threads,
                               bool use_ref) {
    if (is_made(plan, graph, n_threads, use_ref)) return GGML_STATUS_SUCCESS;
    // No number until the plan is complete: a failed plan must not be found again.
    plan->uid = 0;
    plan->n_steps = 0;
    enum ggml_status status = reserve(plan, graph->n_nodes);
    plan->parallel = false;
    plan->work_size = 0;
    plan->n_threads = n_threads;
    plan->use_ref = use_ref;
    plan->exact = cpu_rounding_is_disabled();
    const struct cpu_optional used = cpu_optional_used();
    plan->vnni = used.vnni;
    plan->bf16 = used.bf16 && !is_disabled("GGML_CPU_DISABLE_BF16");
    plan->n_nodes = graph->n_nodes;
    for (int i = 0; i < graph->n_nodes && status == GGML_STATUS_SUCCESS;)
        i += plan_node(plan, graph, i, &status);
    if (status == GGML_STATUS_SUCCESS)
        plan->uid = graph->uid;
    else
        plan->n_steps = 0;
    return status;
}

void cpu_plan_free(struct cpu_plan *plan) {
    ggml_aligned_free(plan->steps, (size_t)plan->capacity * sizeof(*plan->steps));
    *plan = (struct cpu_plan){0};
}
