// SPDX-License-Identifier: MIT
// Tensors and graphs of the application, made again in the process of an isolated device.
#include <string.h>

#include "base/array.h"
#include "base/mem.h"
#include "base/status.h"
#include "isolate/serve.h"

// For requests that no application built from this source sends.
static bool damaged(const char *what) {
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "the process of an isolated device was sent %s", what);
    return false;
}

// --- tensors -------------------------------------------------------------------------------------

// NULL if there is nothing of that number. O(log n).
static struct served_tensor *find_attached(const struct served_buffer *held, uint64_t init) {
    size_t low = 0, high = held->n_tensors;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (held->tensors[middle]->init < init) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < held->n_tensors && held->tensors[low]->init == init ? held->tensors[low] : NULL;
}

// A buffer and an offset become an address of this process, and a number what was attached. Whether
// the tensor's end lies in the buffer is checked by the wrapper that computes.
static bool place(const struct server *server, const struct isolate_tensor *from,
                  struct ggml_tensor *tensor) {
    tensor->buffer = NULL;
    tensor->data = NULL;
    tensor->extra = NULL;
    if (!from->has_data) return true;
    const struct served_buffer *held = server_buffer(server, from->buffer);
    if (!held) return false;
    if (from->offset > held->size) return damaged("a tensor beyond its buffer");
    char *base = ggml_backend_buffer_get_base(held->buffer);
    tensor->buffer = held->buffer;
    tensor->data = base ? base + from->offset : NULL;
    const struct served_tensor *attached = find_attached(held, from->init);
    if (attached) tensor->extra = attached->tensor.extra;
    return true;
}

// Numbers that index tables here are checked; extents are checked where they are used.
static bool fill(const struct isolate_tensor *from, struct ggml_tensor *tensor) {
    if (from->type < 0 || from->type >= GGML_TYPE_COUNT) return damaged("an unknown type");
    if (from->op < 0 || from->op >= GGML_OP_COUNT) return damaged("an unknown operation");
    tensor->type = (enum ggml_type)from->type;
    tensor->op = (enum ggml_op)from->op;
    tensor->flags = from->flags;
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        tensor->ne[i] = from->ne[i];
        tensor->nb[i] = from->nb[i];
    }
    memcpy(tensor->op_params, from->op_params, sizeof(tensor->op_params));
    tensor->view_offs = from->view_offs;
    memcpy(tensor->name, from->name, sizeof(tensor->name));
    return true;
}

bool serve_tensor(const struct server *server, const struct isolate_tensor *from,
                  struct ggml_tensor *out_tensor) {
    memset(out_tensor, 0, sizeof(*out_tensor));
    if (!fill(from, out_tensor) || !place(server, from, out_tensor)) return false;
    const struct served_buffer *held = from->init ? server_buffer(server, from->buffer) : NULL;
    const struct served_tensor *attached = held ? find_attached(held, from->init) : NULL;
    if (!attached || !attached->tensor.view_src) return true;
    out_tensor->view_src = attached->tensor.view_src;
    out_tensor->view_offs = attached->tensor.view_offs;
    return true;
}

// The numbers of a buffer's tensors rise.
static struct served_tensor *new_tensor(struct served_buffer *held, uint64_t init) {
    struct served_tensor *added = ggml_mem_calloc(1, sizeof(*added));
    if (!added || !array_extend(&held->tensors, &held->capacity, held->n_tensors, 1,
                                sizeof(held->tensors[0]))) {
        ggml_mem_free(added);
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "the process of an isolated device has no memory");
        return NULL;
    }
    added->init = init;
    return added;
}

// Most devices attach nothing: nothing is kept then.
bool serve_init(const struct server *server, const struct isolate_tensor *from,
                const struct isolate_tensor *owner) {
    struct served_buffer *held = from->has_data ? server_buffer(server, from->buffer) : NULL;
    if (!held) return damaged("a tensor without a buffer");
    if (held->n_tensors > 0 && held->tensors[held->n_tensors - 1]->init >= from->init)
        return damaged("a tensor that it had");
    struct served_tensor *added = new_tensor(held, from->init);
    if (!added) return false;
    bool good = serve_tensor(server, from, &added->tensor);
    if (good && owner) {
        good = serve_tensor(server, owner, &added->owner);
        added->tensor.view_src = &added->owner;
    }
    good = good &&
           ggml_backend_buffer_init_tensor(held->buffer, &added->tensor) == GGML_STATUS_SUCCESS;
    if (good && (added->tensor.extra || added->owner.extra)) {
        held->tensors[held->n_tensors++] = added;
    } else {
        ggml_mem_free(added);
    }
    return good;
}

void serve_tensors_free(struct served_buffer *held) {
    for (size_t i = 0; i < held->n_tensors; ++i)
        ggml_mem_free(held->tensors[i]);
    ggml_mem_free(held->tensors);
    held->tensors = NULL;
    held->n_tensors = held->capacity = 0;
}

// --- graphs --------------------------------------------------------------------------------------

static void free_graph(struct served_graph *graph) {
    ggml_free(graph->ctx);
    ggml_mem_free(graph->tensors);
    ggml_mem_free(graph->use_counts);
}

void serve_graph_free(struct server *server, uint64_t id) {
    size_t kept = 0;
    for (size_t i = 0; i < server->n_graphs; ++i) {
        if (id == 0 || server->graphs[i].id == id) {
            free_graph(&server->graphs[i]);
        } else {
            server->graphs[kept++] = server->graphs[i];
        }
    }
    server->n_graphs = kept;
}

// NULL for -1, and for what the graph does not have.
static struct ggml_tensor *referred(const struct served_graph *graph, int32_t index) {
    return index >= 0 && (size_t)index < graph->n_tensors ? graph->tensors[index] : NULL;
}

// References of a graph that is known stay as they are.
static bool change(struct served_graph *graph, const struct isolate_change *from, bool is_new) {
    if (from->index >= graph->n_tensors) return damaged("a tensor that the graph does not have");
    struct ggml_tensor *tensor = graph->tensors[from->index];
    if (!fill(&from->tensor, tensor)) return false;
    for (int k = 0; k < GGML_MAX_SRC && is_new; ++k)
        tensor->src[k] = referred(graph, from->tensor.src[k]);
    if (is_new) tensor->view_src = referred(graph, from->tensor.view_src);
    if (from->index < (uint64_t)graph->view.n_nodes)
        graph->use_counts[from->index] = from->tensor.use_count;
    return true;
}

static bool apply(const struct server *server, struct served_graph *graph,
                  const struct isolate_request *request, bool is_new) {
    const struct isolate_change *changes = (const struct isolate_change *)server->shared;
    if (request->size > server->shared_size / sizeof(*changes)) return damaged("too much");
    for (size_t i = 0; i < request->size; ++i) {
        if (!change(graph, &changes[i], is_new)) return false;
    }
    for (size_t i = 0; i < request->size; ++i) {
        if (!place(server, &changes[i].tensor, graph->tensors[changes[i].index])) return false;
    }
    if (request->size > 0) graph->view.uid = ggml_graph_next_uid();
    graph->view.structure = request->structure;
    return true;
}

// Tensors in the order of their indices, nodes first: the list of tensors is the list of nodes too.
static bool allocate(struct served_graph *graph, const struct isolate_request *request) {
    const size_t n = request->n_tensors, n_nodes = request->n_nodes;
    const struct ggml_init_params params = {
        .mem_size = n * ggml_tensor_overhead() + GGML_MEM_ALIGN,
        .no_alloc = true,
    };
    if (n_nodes > n || n > INT32_MAX) return damaged("more nodes than tensors");
    graph->id = request->graph;
    graph->n_tensors = n;
    graph->ctx = ggml_init(params);
    graph->tensors = ggml_mem_calloc(n + 1, sizeof(graph->tensors[0]));
    graph->use_counts = ggml_mem_calloc(n_nodes + 1, sizeof(graph->use_counts[0]));
    if (!graph->ctx) return false;
    if (!graph->tensors || !graph->use_counts) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "the process of an isolated device has no memory");
        return false;
    }
    for (size_t i = 0; i < n; ++i) {
        graph->tensors[i] = ggml_new_tensor_1d(graph->ctx, GGML_TYPE_F32, 1);
        if (!graph->tensors[i]) return false;
    }
    graph->view = (struct ggml_graph){
        .size = sizeof(graph->view),
        .n_nodes = (int32_t)n_nodes,
        .nodes = graph->tensors,
        .use_counts = graph->use_counts,
    };
    return true;
}

// Enters the graph only when it is whole.
static struct served_graph *new_graph(struct server *server,
                                      const struct isolate_request *request) {
    struct served_graph graph = {0};
    void *list = server->graphs;
    if (allocate(&graph, request) && apply(server, &graph, request, true)) {
        struct served_graph *added = server_append(&list, &server->n_graphs, sizeof(graph));
        server->graphs = list;
        if (added) return memcpy(added, &graph, sizeof(graph));
    }
    free_graph(&graph);
    return NULL;
}

// A request with tensors is a new graph, one without changes a known one. Linear: each stream keeps
// a few graphs.
struct served_graph *serve_graph(struct server *server, const struct isolate_request *request) {
    if (request->n_tensors > 0) return new_graph(server, request);
    for (size_t i = 0; i < server->n_graphs; ++i) {
        struct served_graph *graph = &server->graphs[i];
        if (graph->id == request->graph) return apply(server, graph, request, false) ? graph : NULL;
    }
    damaged("a graph that it does not know");
    return NULL;
}
