// SPDX-License-Identifier: MIT
// Enumerates the devices and adds two vectors on each: the shortest use of a plugin, after which
// its process can be looked at.
#include "exercise.h"

#include <string.h>

size_t sum_graph_bytes(void) {
    return 32 * ggml_tensor_overhead() + 4 * ggml_graph_overhead();
}

bool sum_graph_new(struct sum_graph *out_graph, int64_t n) {
    return sum_graph_new_in(out_graph, n, NULL);
}

bool sum_graph_new_in(struct sum_graph *out_graph, int64_t n, void *memory) {
    struct sum_graph *g = out_graph;
    *g = (struct sum_graph){.ctx = NULL};
    g->ctx = ggml_init((struct ggml_init_params){sum_graph_bytes(), memory, true});
    if (!g->ctx) return false;
    g->a = ggml_new_tensor_1d(g->ctx, GGML_TYPE_F32, n);
    g->b = ggml_new_tensor_1d(g->ctx, GGML_TYPE_F32, n);
    g->sum = ggml_add(g->ctx, g->a, g->b);
    g->graph = ggml_new_graph(g->ctx);
    if (g->graph && g->sum) ggml_build_forward_expand(g->graph, g->sum);
    return g->graph && g->sum;
}

bool sum_graph_place(struct sum_graph *graph, ggml_backend_dev_t device) {
    graph->buffer = ggml_backend_alloc_ctx_tensors_from_buft(
        graph->ctx, device->table->get_buffer_type(device));
    return graph->buffer != NULL;
}

void sum_graph_free(struct sum_graph *graph) {
    ggml_backend_buffer_free(graph->buffer);
    ggml_free(graph->ctx);
    *graph = (struct sum_graph){.ctx = NULL};
}

static void enumerate(ggml_backend_dev_t device) {
    struct ggml_backend_dev_props props;
    size_t free_bytes, total_bytes;
    memset(&props, 0, sizeof(props));
    device->table->get_name(device);
    device->table->get_description(device);
    device->table->get_memory(device, &free_bytes, &total_bytes);
    device->table->get_type(device);
    device->table->get_props(device, &props);
}

static bool compute(ggml_backend_dev_t device) {
    const float ones[4] = {1, 1, 1, 1};
    float twos[4] = {2, 2, 2, 2};
    struct sum_graph graph;
    ggml_backend_t stream = make_stream(device, NULL);
    if (sum_graph_new(&graph, 4) && sum_graph_place(&graph, device)) {
        ggml_backend_tensor_set(graph.a, ones, 0, sizeof(ones));
        ggml_backend_tensor_set(graph.b, ones, 0, sizeof(ones));
        if (stream && device->table->supports_op(device, graph.sum)) {
            ggml_backend_graph_compute(stream, graph.graph);
            ggml_backend_tensor_get(graph.sum, twos, 0, sizeof(twos));
        }
    }
    const bool good = stream && twos[0] == 2.0f && twos[3] == 2.0f;
    sum_graph_free(&graph);
    ggml_backend_free(stream);
    return good;
}

int exercise(const struct subject *subject) {
    ggml_backend_reg_t reg = subject->table->reg;
    const size_t count = reg->table->get_device_count(reg);
    int n_good = 0;
    reg->table->get_name(reg);
    for (size_t i = 0; i < count; ++i) {
        ggml_backend_dev_t device = reg->table->get_device(reg, i);
        enumerate(device);
        n_good += compute(device);
    }
    return n_good;
}
