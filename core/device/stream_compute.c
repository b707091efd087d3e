// SPDX-License-Identifier: MIT
// Computes graphs and plans on a stream, after checking that they are whole and can be reached.
#include "base/thread_guard.h"
#include "device/check.h"
#include "device/stream.h"
#include "device/stream_view.h"
#include "ggml-impl.h"
#include "plugin/registry/live.h"

// What a graph must have before a device may see it.
struct graph_check {
    const char *function;
    const char *label;
    bool needs_buffers; // the device can't address plain host memory
    struct device_host_range *range;
};

// Records which node and tensor can't be used: a graph has thousands of them. Returns false.
static bool refuse(const struct graph_check *check, int node, const struct ggml_tensor *tensor,
                   const char *reason) {
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: node %d on %s: tensor '%s' %s", check->function,
              node, check->label, tensor->name, reason);
    return false;
}

// Whether a node may read or write the tensor; the message has the reason.
static bool usable(const struct graph_check *check, int node, const struct ggml_tensor *tensor) {
    if (tensor->flags & GGML_TENSOR_FLAG_ERROR) {
        const char *reason = tensor->extra ? tensor->extra : "is in error";
        return refuse(check, node, tensor, reason);
    }
    if (!device_is_inside(tensor)) {
        return refuse(check, node, tensor, "is a view that reaches beyond the end of its tensor");
    }
    if (!tensor->data && !ggml_is_empty(tensor)) {
        return refuse(check, node, tensor, "has no data: allocate the graph first");
    }
    if (check->needs_buffers && tensor->data && !device_tensor_buffer(tensor)) {
        return refuse(check, node, tensor, "lies in no buffer of the device");
    }
    if (!device_is_in_buffer(tensor, check->range)) {
        return refuse(check, node, tensor, "reaches beyond its buffer");
    }
    return true;
}

// Checks one node and its sources. Nodes that are not computed, such as views, are skipped; an
// error tensor is refused wherever it stands.
static bool node_usable(const struct graph_check *check, int i, const struct ggml_tensor *node) {
    if (!device_require_arg(node, check->function, "node of the graph")) return false;
    const bool computed = (node->flags & GGML_TENSOR_FLAG_COMPUTE) && !ggml_op_is_empty(node->op);
    if (!computed && !(node->flags & GGML_TENSOR_FLAG_ERROR)) return true;
    if (!usable(check, i, node)) return false;
    for (int k = 0; k < GGML_MAX_SRC; ++k) {
        if (node->src[k] && !usable(check, i, node->src[k])) return false;
    }
    return true;
}

// Whether the device computes in plain host memory. One without a buffer type of its own is taken
// for such a device.
static bool is_on_host(ggml_backend_dev_t device) {
    if (!device || !device->table || !device->table->get_buffer_type) return true;
    ggml_backend_buffer_type_t buft = device->table->get_buffer_type(device);
    return device_buft_usable(buft) && buft->table->is_host && buft->table->is_host(buft);
}

bool device_graph_whole(const char *function, const struct ggml_cgraph *graph) {
    if (!device_require_arg(graph, function, "graph")) return false;
    if (graph->error) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the graph is in error: %s", function,
                  graph->error);
        return false;
    }
    return graph->n_nodes <= 0 || device_require_arg(graph->nodes, function, "list of nodes");
}

// O(nodes + sources). The range of the last buffer is kept, as neighbours mostly share one.
bool device_graph_usable(const char *function, const char *label, bool needs_buffers,
                         const struct ggml_graph *graph) {
    struct device_host_range range = {0};
    const struct graph_check check = {function, label, needs_buffers, &range};
    for (int i = 0; i < graph->n_nodes; ++i) {
        if (!node_usable(&check, i, graph->nodes[i])) return false;
    }
    return true;
}

// The check as this stream needs it.
static bool stream_takes(const char *function, ggml_backend_t backend,
                         const struct ggml_graph *graph) {
    return device_graph_usable(function, device_stream_label(backend), !is_on_host(backend->device),
                               graph);
}

bool stream_graph_check(const char *function, ggml_backend_t backend,
                        const struct ggml_graph *graph) {
    return stream_takes(function, backend, graph) &&
           device_offers(backend->table->graph_compute != NULL, function,
                         device_stream_label(backend), "graph_compute");
}

// Checks, then computes; the caller has the thread guard.
static enum ggml_status compute(const char *function, ggml_backend_t backend,
                                const struct ggml_graph *graph) {
    if (!stream_graph_check(function, backend, graph)) return GGML_STATUS_FAILED;
    return stream_graph_enter(function, backend, graph);
}

// The only call of graph_compute: what is told of a failure, and what a status of a plugin means to
// an application, is decided here.
enum ggml_status stream_graph_enter(const char *function, ggml_backend_t backend,
                                    const struct ggml_graph *graph) {
    const unsigned long errors_before = ggml_fail_count();
    const int32_t status = backend->table->graph_compute(backend, graph);
    return device_graph_status(
        device_check_status(status, errors_before, function, device_stream_label(backend)));
}

// For callers inside the host, which have a graph of the contract already.
enum ggml_status stream_graph_compute(const char *function, ggml_backend_t backend,
                                      const struct ggml_graph *graph) {
    THREAD_GUARD(backend, GGML_STATUS_FAILED);
    return compute(function, backend, graph);
}

// Memory for use counts that is kept with the stream; NULL for a stream that no wrapper of this
// copy made.
static struct use_memory *memory_of(ggml_backend_t backend) {
    struct stream_host *own = stream_host_of(backend);
    return own ? &own->uses : NULL;
}

// From an application's graph to the plugin's view of it. The view lives on the stack and ends with
// the call: plugins that compute later have copied what they need.
static enum ggml_status compute_graph(const char *function, ggml_backend_t backend,
                                      const struct ggml_cgraph *graph) {
    struct stream_view view;
    if (!device_require_arg(backend, function, "stream") || !device_graph_whole(function, graph))
        return GGML_STATUS_FAILED;
    if (!stream_view_make(&view, graph, memory_of(backend))) return GGML_STATUS_ALLOC_FAILED;
    const enum ggml_status status = compute(function, backend, &view.graph);
    stream_view_end(&view);
    return status;
}

enum ggml_status ggml_backend_graph_compute_async(ggml_backend_t backend,
                                                  struct ggml_cgraph *cgraph) {
    THREAD_GUARD(backend, GGML_STATUS_FAILED);
    return compute_graph(__func__, backend, cgraph);
}

enum ggml_status ggml_backend_graph_compute(ggml_backend_t backend, struct ggml_cgraph *cgraph) {
    THREAD_GUARD(backend, GGML_STATUS_FAILED);
    const enum ggml_status status = compute_graph(__func__, backend, cgraph);
    if (!backend) return status;
    // Waited for also after a failure: a part of the graph may be under way. What computing failed
    // with comes first.
    const enum ggml_host_status late = stream_synchronize(backend);
    return status == GGML_STATUS_SUCCESS ? device_graph_status(late) : status;
}

// All three entries or none: a plan that could not be freed must not be made.
static bool plans_offered(const char *function, ggml_backend_t backend) {
    const struct ggml_stream_table *table = backend->table;
    return device_offers(table->graph_plan_create && table->graph_plan_free &&
                             table->graph_plan_compute,
                         function, device_stream_label(backend), "graph plans");
}

// A plan keeps its plugin loaded until it is freed. It is counted before the call, since another
// thread may unload meanwhile.
static ggml_backend_graph_plan_t make_plan(const char *function, ggml_backend_t backend,
                                           const struct ggml_graph *graph) {
    if (!stream_takes(function, backend, graph) || !plans_offered(function, backend)) return NULL;
    const unsigned long errors_before = ggml_fail_count();
    host_live_add(backend->device);
    ggml_backend_graph_plan_t plan = NULL;
    const int32_t status = backend->table->graph_plan_create(backend, graph, &plan);
    if (device_check_status(status, errors_before, function, device_stream_label(backend)) ==
            GGML_HOST_OK &&
        plan)
        return plan;
    host_live_remove(backend->device);
    device_fail_default(errors_before, GGML_HOST_BAD_PLUGIN, "%s: %s gave no plan", function,
                        device_stream_label(backend));
    return NULL;
}

ggml_backend_graph_plan_t ggml_backend_graph_plan_create(ggml_backend_t backend,
                                                         struct ggml_cgraph *cgraph) {
    THREAD_GUARD(backend, NULL);
    struct stream_view view;
    if (!device_require_arg(backend, __func__, "stream") || !device_graph_whole(__func__, cgraph) ||
        !stream_view_make(&view, cgraph, memory_of(backend))) {
        return NULL;
    }
    ggml_backend_graph_plan_t plan = make_plan(__func__, backend, &view.graph);
    stream_view_end(&view);
    return plan;
}

// Ends what make_plan() counted.
void ggml_backend_graph_plan_free(ggml_backend_t backend, ggml_backend_graph_plan_t plan) {
    THREAD_GUARD_VOID(backend);
    if (!plan || !device_require_arg(backend, __func__, "stream") ||
        !plans_offered(__func__, backend))
        return;
    ggml_backend_dev_t device = backend->device;
    backend->table->graph_plan_free(backend, plan);
    host_live_remove(device);
}

enum ggml_status ggml_backend_graph_plan_compute(ggml_backend_t backend,
                                                 ggml_backend_graph_plan_t plan) {
    THREAD_GUARD(backend, GGML_STATUS_FAILED);
    if (!device_require_arg(backend, __func__, "stream")) return GGML_STATUS_FAILED;
    if (!device_require_arg(plan, __func__, "plan")) return GGML_STATUS_FAILED;
    if (!plans_offered(__func__, backend)) return GGML_STATUS_FAILED;
    const unsigned long errors_before = ggml_fail_count();
    const int32_t status = backend->table->graph_plan_compute(backend, plan);
    return device_graph_status(
        device_check_status(status, errors_before, __func__, device_stream_label(backend)));
}
