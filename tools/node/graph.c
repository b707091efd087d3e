// SPDX-License-Identifier: MIT
// Graphs of the program, made again here. A graph that is known is changed where it differs.
#include <stdlib.h>
#include <string.h>

#include "server.h"

// --- references ----------------------------------------------------------------------------------

// Frees a graph that has no users, and gives its buffers back.
static void free_graph(struct server *server, struct held_graph *graph) {
    for (uint32_t i = 0; graph->buffers && i < graph->n_tensors; ++i)
        buffer_release(server, graph->buffers[i]);
    ggml_free(graph->ctx);
    free(graph->tensors);
    free(graph->buffers);
    free(graph);
}

void graph_release(struct server *server, struct held_graph *graph) {
    pthread_mutex_lock(&server->lock);
    const bool last = --graph->n_references == 0;
    pthread_mutex_unlock(&server->lock);
    if (last) free_graph(server, graph);
}

// Whether a tensor of the graph lies in the buffer. O(tensors).
static bool uses(const struct held_graph *graph, const struct held_buffer *buffer) {
    for (uint32_t i = 0; i < graph->n_tensors; ++i)
        if (graph->buffers[i] == buffer) return true;
    return false;
}

// What a graph is forgotten with: the first of these that is not NULL or 0.
struct reason {
    const struct held_buffer *buffer;
    uint32_t queue;
    uint64_t id;
};

static bool goes_with(const struct held_graph *graph, const struct reason *reason) {
    if (reason->buffer) return uses(graph, reason->buffer);
    return reason->queue != 0 ? graph->queue == reason->queue : graph->id == reason->id;
}

// They are freed outside of the lock, and later if a queue still computes them.
static void forget_all(struct server *server, const struct reason *reason) {
    struct held_graph *gone = NULL;
    pthread_mutex_lock(&server->lock);
    for (struct held_graph **at = &server->graphs; *at;) {
        struct held_graph *graph = *at;
        if (goes_with(graph, reason)) {
            *at = graph->next;
            graph->next = gone;
            gone = graph;
        } else {
            at = &graph->next;
        }
    }
    pthread_mutex_unlock(&server->lock);
    while (gone) {
        struct held_graph *next = gone->next;
        graph_release(server, gone);
        gone = next;
    }
}

void graph_forget(struct server *server, uint64_t id, const struct held_buffer *buffer) {
    forget_all(server, &(struct reason){.buffer = buffer, .id = id});
}

void graph_forget_queue(struct server *server, uint32_t queue) {
    if (queue != 0) forget_all(server, &(struct reason){.queue = queue});
}

// A graph by its id and queue, with a reference for the caller; NULL after the error was set.
static struct held_graph *find(struct server *server, const struct wire_message *message) {
    pthread_mutex_lock(&server->lock);
    struct held_graph *graph = server->graphs;
    while (graph && (graph->id != message->object || graph->queue != message->queue))
        graph = graph->next;
    if (graph) ++graph->n_references;
    pthread_mutex_unlock(&server->lock);
    if (!graph) refuse("a graph that the queue does not know");
    return graph;
}

// --- tensors of a graph --------------------------------------------------------------------------

// The tensor that an index stands for, or NULL.
static struct ggml_tensor *referred(const struct held_graph *graph, int32_t index) {
    return index >= 0 && (uint32_t)index < graph->n_tensors ? graph->tensors[index] : NULL;
}

// Overwrites a tensor of the graph with a description, which is checked again here. References
// of a known graph stay as they are: only a new one's are taken from the message.
static bool fill(struct held_graph *graph, const struct wire_change *change, bool is_new) {
    const struct wire_tensor *from = &change->tensor;
    const char *why;
    uint64_t span;
    if (change->index >= graph->n_tensors ||
        !wire_tensor_sound(from, graph->n_tensors, &span, &why)) {
        refuse("a tensor that the graph can't have");
        return false;
    }
    struct ggml_tensor *tensor = graph->tensors[change->index];
    struct ggml_tensor *sources[GGML_MAX_SRC], *viewed = tensor->view_src;
    memcpy(sources, tensor->src, sizeof(sources));
    wire_restore(from, tensor);
    for (int k = 0; k < GGML_MAX_SRC; ++k)
        tensor->src[k] = is_new ? referred(graph, from->src[k]) : sources[k];
    tensor->view_src = is_new ? referred(graph, from->view_src) : viewed;
    return true;
}

// Takes over how often the program reads a node, so that plugins fuse as they would there.
static void count_uses(struct held_graph *graph, const struct wire_change *change) {
    struct ggml_cgraph *cgraph = graph->graph;
    if (change->index >= graph->n_nodes) return;
    const size_t slot = ggml_hash_find(&cgraph->visited_hash_set, graph->tensors[change->index]);
    if (slot != GGML_HASHSET_FULL)
        cgraph->use_counts[slot] = change->tensor.use_count < 0 ? 0 : change->tensor.use_count;
}

// What is viewed must be no view itself: so no chain of views has a loop.
static bool view_sound(const struct ggml_tensor *tensor) {
    if (!tensor->view_src) return true;
    if (!tensor->view_src->view_src && tensor->view_src != tensor) return true;
    refuse("a view of a view");
    return false;
}

// What has no use but to be viewed again, and is never read (is_readable()), needs no room: its
// extents and strides would tell of more than there is.
static struct wire_tensor without_room(const struct wire_tensor *from) {
    struct wire_tensor placed = *from;
    if (from->view_src >= 0 && wire_has_transposed_blocks(from)) placed.ne[0] = 0;
    return placed;
}

// Gives a tensor its address in a buffer, which the graph holds from here on instead of the last
// one.
static bool place(struct server *server, struct held_graph *graph,
                  const struct wire_change *change) {
    const size_t i = (size_t)change->index;
    struct held_buffer *held;
    if (!view_sound(graph->tensors[i])) return false;
    const struct wire_tensor from = without_room(&change->tensor);
    if (!tensor_place(server, &from, graph->tensors[i], &held)) return false;
    pthread_mutex_lock(&server->lock);
    struct held_buffer *old = graph->buffers[i];
    graph->buffers[i] = held;
    pthread_mutex_unlock(&server->lock);
    buffer_release(server, old);
    return true;
}

// Whether a device has anything to do for the node.
static bool is_computed(const struct ggml_tensor *node) {
    return (node->flags & GGML_TENSOR_FLAG_COMPUTE) && !ggml_op_is_empty(node->op);
}

// Whether the device may read and write the tensor: transposed blocks may lie anywhere.
static bool is_readable(const struct ggml_tensor *tensor) {
    return !tensor || ggml_blck_size(tensor->type) == 1 ||
           tensor->nb[0] == ggml_type_size(tensor->type);
}

static bool all_readable(const struct ggml_tensor *node) {
    bool all = is_readable(node);
    for (int k = 0; k < GGML_MAX_SRC; ++k)
        all = all && is_readable(node->src[k]);
    return all;
}

// A device computes nothing that it would not have accepted.
static bool computable(const struct server *server, const struct held_graph *graph,
                       uint32_t device) {
    for (uint32_t i = 0; i < graph->n_nodes; ++i) {
        const struct ggml_tensor *node = graph->tensors[i];
        if (!is_computed(node)) continue;
        if (!all_readable(node)) {
            refuse("a node that reads or writes transposed blocks");
            return false;
        }
        if (ggml_backend_dev_supports_op(server->devices[device], node)) continue;
        refuse("a node that the device does not support");
        return false;
    }
    return true;
}

// Applies all changes: contents first, then places, and of these the views last, as they lie
// where their source does. False after the error was set; the graph is then half changed.
static bool apply(struct server *server, struct held_graph *graph,
                  const struct wire_message *message, const void *rest, bool is_new) {
    struct wire_change change;
    for (size_t i = 0; i < message->size; ++i) {
        wire_read_change(rest, i, &change);
        if (!fill(graph, &change, is_new)) return false;
        count_uses(graph, &change);
    }
    for (int views = 0; views < 2; ++views) {
        for (size_t i = 0; i < message->size; ++i) {
            wire_read_change(rest, i, &change);
            if ((graph->tensors[change.index]->view_src != NULL) != (views == 1)) continue;
            if (!place(server, graph, &change)) return false;
        }
    }
    if (message->size == 0) return true;
    graph->graph->uid = ggml_graph_next_uid();
    return computable(server, graph, server->queues[graph->queue].device);
}

// --- graphs --------------------------------------------------------------------------------------

// Makes the tensors and the graph's list of nodes, still without contents.
static bool allocate(struct held_graph *graph, const struct wire_message *message) {
    const size_t n = message->n_tensors, n_nodes = message->n_nodes;
    const struct ggml_init_params params = {
        .mem_size = n * ggml_tensor_overhead() + ggml_graph_overhead_custom(n_nodes + 1, false) +
                    GGML_MEM_ALIGN,
        .no_alloc = true,
    };
    graph->id = message->object;
    graph->queue = message->queue;
    graph->n_references = 1;
    graph->n_tensors = message->n_tensors;
    graph->n_nodes = message->n_nodes;
    graph->ctx = ggml_init(params);
    graph->tensors = calloc(n + 1, sizeof(*graph->tensors));
    graph->buffers = calloc(n + 1, sizeof(*graph->buffers));
    if (!graph->ctx || !graph->tensors || !graph->buffers) return false;
    graph->graph = ggml_new_graph_custom(graph->ctx, n_nodes + 1, false);
    for (size_t i = 0; graph->graph && i < n; ++i) {
        graph->tensors[i] = ggml_new_tensor_1d(graph->ctx, GGML_TYPE_F32, 1);
        if (!graph->tensors[i]) return false;
    }
    if (!graph->graph) return false;
    for (size_t i = 0; i < n_nodes; ++i) {
        ggml_hash_insert(&graph->graph->visited_hash_set, graph->tensors[i]);
        graph->graph->nodes[i] = graph->tensors[i];
    }
    graph->graph->n_nodes = (int)n_nodes;
    return true;
}

// Makes a new graph; an older one of the same id is forgotten. NULL without memory or after the
// error was set. The list has a reference, the caller another.
static struct held_graph *make(struct server *server, const struct wire_message *message,
                               const void *rest) {
    struct held_graph *graph = calloc(1, sizeof(*graph));
    if (!graph) return NULL;
    if (!allocate(graph, message) || !apply(server, graph, message, rest, true)) {
        free_graph(server, graph);
        return NULL;
    }
    graph_forget(server, graph->id, NULL);
    pthread_mutex_lock(&server->lock);
    ++graph->n_references;
    graph->next = server->graphs;
    server->graphs = graph;
    pthread_mutex_unlock(&server->lock);
    return graph;
}

struct held_graph *graph_take(struct server *server, const struct wire_message *message,
                              const void *rest) {
    if (message->object == 0) {
        refuse("a graph without an id");
        return NULL;
    }
    if (message->n_tensors > 0) return make(server, message, rest);
    struct held_graph *graph = find(server, message);
    if (!graph || message->size == 0 || apply(server, graph, message, rest, false)) return graph;
    graph_forget(server, graph->id, NULL); // it is neither what it was nor what it should be
    graph_release(server, graph);
    return NULL;
}
