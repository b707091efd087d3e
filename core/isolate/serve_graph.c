// SPDX-License-Identifier: MIT
// Tensors and graphs of the application, made again in the process of an isolated device.
#include <stdio.h>
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

// The first that has the number or a higher one. O(log n).
static size_t place_of(const struct served_buffer *held, uint64_t init) {
    size_t low = 0, high = held->n_tensors;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (held->tensors[middle]->init < init) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// NULL if there is nothing of that number.
static struct served_tensor *find_attached(const struct served_buffer *held, uint64_t init) {
    const size_t i = place_of(held, init);
    return i < held->n_tensors && held->tensors[i]->init == init ? held->tensors[i] : NULL;
}

static struct served_name name_of(const struct isolate_tensor *from) {
    return (struct served_name){from->has_data ? from->buffer : 0, from->init, from->owner_init};
}

// What init_tensor attached to the tensor. False where it failed.
static bool attach(const struct served_buffer *held, struct served_name name,
                   struct ggml_tensor *tensor) {
    tensor->extra = NULL;
    if (held->has_forgotten) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "the process of an isolated device has no memory");
        return false;
    }
    const struct served_tensor *own = find_attached(held, name.init);
    const struct served_tensor *owner = find_attached(held, name.owner_init);
    const struct served_tensor *bad = owner && owner->failed != GGML_HOST_OK ? owner : own;
    if (bad && bad->failed != GGML_HOST_OK) {
        ggml_fail(bad->failed, "'%s' could not be placed: %s", tensor->name, bad->reason);
        return false;
    }
    if (own) {
        tensor->extra = own->tensor.extra;
    } else if (owner && name.init) {
        tensor->extra = owner->of_views;
    }
    return true;
}

// A buffer and an offset become an address of this process, and numbers what was attached. Whether
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
    return attach(held, name_of(from), tensor);
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
    const struct served_buffer *held = from->has_data ? server_buffer(server, from->buffer) : NULL;
    struct served_tensor *own = held ? find_attached(held, from->init) : NULL;
    struct served_tensor *owner = held ? find_attached(held, from->owner_init) : NULL;
    if (owner) {
        out_tensor->view_src = &owner->tensor;
    } else if (own) {
        out_tensor->view_src = own->tensor.view_src;
    }
    if (!out_tensor->view_src) out_tensor->view_offs = 0;
    return true;
}

static void free_tensor(struct served_tensor *tensor) {
    if (tensor) ggml_mem_free(tensor->reason);
    ggml_mem_free(tensor);
}

// Takes what is kept under the number out of the list.
static void drop_tensor(struct server *server, struct served_buffer *held, uint64_t init) {
    const size_t i = place_of(held, init);
    if (!find_attached(held, init)) return;
    ++server->attached;
    free_tensor(held->tensors[i]);
    --held->n_tensors;
    memmove(&held->tensors[i], &held->tensors[i + 1],
            (held->n_tensors - i) * sizeof(held->tensors[0]));
}

// There is room in the list. Most numbers rise.
static void keep_tensor(struct server *server, struct served_buffer *held,
                        struct served_tensor *added) {
    const size_t i = place_of(held, added->init);
    ++server->attached;
    memmove(&held->tensors[i + 1], &held->tensors[i],
            (held->n_tensors - i) * sizeof(held->tensors[0]));
    held->tensors[i] = added;
    ++held->n_tensors;
}

// Room for one more in the list. Without memory no tensor of the buffer can be used any more.
static struct served_tensor *new_tensor(struct served_buffer *held, uint64_t init) {
    struct served_tensor *added = ggml_mem_calloc(1, sizeof(*added));
    if (added) added->reason = ggml_mem_calloc(1, ISOLATE_TEXT_SIZE);
    if (!added || !added->reason ||
        !array_extend(&held->tensors, &held->capacity, held->n_tensors, 1,
                      sizeof(held->tensors[0]))) {
        free_tensor(added);
        held->has_forgotten = true;
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "the process of an isolated device has no memory");
        return NULL;
    }
    added->init = init;
    return added;
}

// Has the device place it. `from_owner` describes what it is a view of, or is NULL.
static bool init(const struct server *server, struct served_tensor *added,
                 const struct isolate_tensor *from, const struct isolate_tensor *from_owner) {
    struct served_tensor *owner = NULL;
    if (!serve_tensor(server, from, &added->tensor)) return false;
    if (from_owner) {
        owner = find_attached(server_buffer(server, from->buffer), from->owner_init);
        if (!owner && !serve_tensor(server, from_owner, &added->owner)) return false;
        added->tensor.view_src = owner ? &owner->tensor : &added->owner;
        added->tensor.view_offs = from->view_offs;
    }
    added->tensor.extra = NULL;
    return ggml_backend_buffer_init_tensor(added->tensor.buffer, &added->tensor) ==
           GGML_STATUS_SUCCESS;
}

// Whether what the device attached can't be told from the owner. Views usually all have the same.
static bool is_worth_keeping(const struct served_buffer *held, const struct served_tensor *added,
                             uint64_t owner_init) {
    struct served_tensor *owner = find_attached(held, owner_init);
    const void *extra = added->tensor.extra;
    if (!owner) return extra || added->owner.extra;
    if (!owner->has_views && extra == owner->tensor.extra) owner->of_views = owner->tensor.extra;
    owner->has_views = true;
    return extra != owner->of_views;
}

// Forgets what came of placing it before. It stays where it is: the device may have its address.
static bool renew(struct served_tensor *known) {
    if (!known->reason) known->reason = ggml_mem_calloc(1, ISOLATE_TEXT_SIZE);
    known->failed = GGML_HOST_OK;
    return known->reason != NULL;
}

// Most devices attach nothing: nothing is kept then.
bool serve_init(struct server *server, const struct isolate_tensor *from,
                const struct isolate_tensor *owner) {
    struct served_buffer *held = from->has_data ? server_buffer(server, from->buffer) : NULL;
    if (!held) return damaged("a tensor without a buffer");
    if (from->init == 0) return damaged("a tensor without a number");
    struct served_tensor *added = find_attached(held, from->init);
    const bool known = added && renew(added);
    if (!known) {
        drop_tensor(server, held, from->init);
        added = new_tensor(held, from->init);
    }
    if (!added || known) ++server->attached;
    if (!added) return false;
    const bool good = init(server, added, from, owner);
    if (!good) {
        added->failed = ggml_last_status() ? ggml_last_status() : GGML_HOST_FAILED;
        snprintf(added->reason, ISOLATE_TEXT_SIZE, "%s", ggml_last_error());
    } else {
        ggml_mem_free(added->reason);
        added->reason = NULL;
    }
    if (!good || is_worth_keeping(held, added, from->owner_init)) {
        if (!known) keep_tensor(server, held, added);
    } else if (known) {
        drop_tensor(server, held, from->init);
    } else {
        free_tensor(added);
    }
    return good;
}

void serve_tensors_free(struct server *server, struct served_buffer *held) {
    if (held->n_tensors > 0) ++server->attached;
    for (size_t i = 0; i < held->n_tensors; ++i)
        free_tensor(held->tensors[i]);
    ggml_mem_free(held->tensors);
    held->tensors = NULL;
    held->n_tensors = held->capacity = 0;
    held->has_forgotten = false;
}

// --- graphs --------------------------------------------------------------------------------------

static void free_graph(struct served_graph *graph) {
    ggml_free(graph->ctx);
    ggml_mem_free(graph->tensors);
    ggml_mem_free(graph->use_counts);
    ggml_mem_free(graph->names);
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

// What is attached now to the tensors of a graph that was known before.
static bool attach_all(const struct server *server, struct served_graph *graph) {
    for (size_t i = 0; i < graph->n_tensors; ++i) {
        const struct served_name name = graph->names[i];
        const struct served_buffer *held = name.buffer ? server_buffer(server, name.buffer) : NULL;
        if (held && !attach(held, name, graph->tensors[i])) return false;
    }
    graph->attached = server->attached;
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
        graph->names[changes[i].index] = name_of(&changes[i].tensor);
    }
    const bool is_attached_anew = graph->attached != server->attached;
    if (is_attached_anew && !attach_all(server, graph)) return false;
    if (request->size > 0 || is_attached_anew) graph->view.uid = ggml_graph_next_uid();
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
    graph->names = ggml_mem_calloc(n + 1, sizeof(graph->names[0]));
    if (!graph->ctx) return false;
    if (!graph->tensors || !graph->use_counts || !graph->names) {
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
