// SPDX-License-Identifier: MIT
// The same graph on two devices, node by node or as a whole.
#include "device/check.h"
#include "ggml-impl.h"

// What is compared. graph2 is the copy of graph1 in the memory of the second stream: nodes of one
// number belong together.
struct comparison {
    ggml_backend_t backend1;
    ggml_backend_t backend2;
    struct ggml_cgraph *graph1;
    struct ggml_cgraph *graph2;
    ggml_backend_eval_callback callback;
    void *user_data;
};

// false after the error was set: a device that fails is no difference.
static bool compute_both(const struct comparison *c, struct ggml_cgraph *graph1,
                         struct ggml_cgraph *graph2) {
    return ggml_backend_graph_compute(c->backend1, graph1) == GGML_STATUS_SUCCESS &&
           ggml_backend_graph_compute(c->backend2, graph2) == GGML_STATUS_SUCCESS;
}

// Each node alone, so that nothing is fused; errors accumulate along the graph. The callback's
// false stops it, which is no failure.
static bool compare_nodes(const struct comparison *c) {
    for (int i = 0; i < c->graph1->n_nodes; ++i) {
        struct ggml_tensor *node1 = c->graph1->nodes[i];
        struct ggml_tensor *node2 = c->graph2->nodes[i];
        if (ggml_op_is_empty(node1->op) && node1->op != GGML_OP_NONE) continue;
        struct ggml_cgraph view1 = ggml_graph_view(c->graph1, i, i + 1);
        struct ggml_cgraph view2 = ggml_graph_view(c->graph2, i, i + 1);
        if (!compute_both(c, &view1, &view2)) return false;
        if (!c->callback(i, node1, node2, c->user_data)) return true;
    }
    return true;
}

// Linear: callers name a few nodes.
static bool is_listed(const struct ggml_tensor *node, struct ggml_tensor const *const *nodes,
                      size_t n_nodes) {
    for (size_t i = 0; i < n_nodes; ++i) {
        if (nodes[i] == node) return true;
    }
    return false;
}

// Both graphs at once, as devices fuse and order them; then the listed nodes, whose results have to
// be outputs to be there still. What the callback returns is not looked at, as in ggml.
static bool compare_whole(const struct comparison *c, struct ggml_tensor const *const *nodes,
                          size_t n_nodes) {
    size_t n_seen = 0;
    if (!compute_both(c, c->graph1, c->graph2)) return false;
    for (int i = 0; i < c->graph1->n_nodes; ++i) {
        if (!is_listed(c->graph1->nodes[i], nodes, n_nodes)) continue;
        c->callback(i, c->graph1->nodes[i], c->graph2->nodes[i], c->user_data);
        n_seen++;
    }
    if (n_seen > 0) return true;
    ggml_fail(GGML_HOST_INVALID_ARGUMENT,
              "ggml_backend_compare_graph_backend: none of the %zu nodes to test is in the graph",
              n_nodes);
    return false;
}

// The first stream computes the graph where it lies, the second one a copy of it.
bool ggml_backend_compare_graph_backend(ggml_backend_t backend1, ggml_backend_t backend2,
                                        struct ggml_cgraph *graph,
                                        ggml_backend_eval_callback callback, void *user_data,
                                        struct ggml_tensor const *const *test_nodes,
                                        size_t num_test_nodes) {
    if (!device_require_arg(backend1, __func__, "first stream")) return false;
    if (!device_require_arg(backend2, __func__, "second stream")) return false;
    if (!device_require_arg(callback ? graph : NULL, __func__, "graph or the callback"))
        return false;
    if (num_test_nodes > 0 && !device_require_arg(test_nodes, __func__, "list of nodes to test"))
        return false;
    struct ggml_backend_graph_copy copy = ggml_backend_graph_copy(backend2, graph);
    if (!copy.graph) return false;
    const struct comparison c = {backend1, backend2, graph, copy.graph, callback, user_data};
    const bool compared =
        num_test_nodes > 0 ? compare_whole(&c, test_nodes, num_test_nodes) : compare_nodes(&c);
    ggml_backend_graph_copy_free(copy);
    return compared;
}
