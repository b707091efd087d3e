// SPDX-License-Identifier: MIT
// Describes a graph to the process of an isolated device. Tensors are referred to by index, found
// through a hash set of addresses. A graph that the other process keeps is compared with what was
// sent before, and only changed tensors are sent again.
#include "isolate/encode.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/mem.h"
#include "device/check.h"

// The part of a tensor that a computation depends on, what the device attached to it excepted.
enum { COMPARED_BYTES = offsetof(struct ggml_tensor, name) };

// --- tensors -------------------------------------------------------------------------------------

// The number of a view's or an owner's placing, 0: none. Of a tensor in error `extra` says why.
static uint64_t placing(const struct isolated_buffer *buffer, const struct ggml_tensor *tensor) {
    const bool has_one = buffer->attaches && !(tensor->flags & GGML_TENSOR_FLAG_ERROR);
    return has_one ? (uintptr_t)tensor->extra : 0;
}

// Fills in all but references to other tensors of a graph, which are -1. A name without an end,
// which a client may have written, gets one.
void encode_tensor(const struct isolated_device *device, const struct ggml_tensor *tensor,
                   struct isolate_tensor *out) {
    const struct isolated_buffer *buffer = isolated_buffer_of(device, tensor);
    memset(out, 0, sizeof(*out));
    out->type = (int32_t)tensor->type;
    out->op = (int32_t)tensor->op;
    out->flags = tensor->flags;
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        out->ne[i] = tensor->ne[i];
        out->nb[i] = tensor->nb[i];
    }
    memcpy(out->op_params, tensor->op_params, sizeof(out->op_params));
    for (int i = 0; i < GGML_MAX_SRC; ++i)
        out->src[i] = -1;
    out->view_src = -1;
    out->view_offs = tensor->view_offs;
    if (buffer && tensor->data) {
        out->has_data = 1;
        out->buffer = buffer->id;
        out->offset = (uint64_t)((const char *)tensor->data - (const char *)buffer->memory.data);
        if (tensor->buffer) out->init = placing(buffer, tensor);
        if (tensor->view_src) out->owner_init = placing(buffer, tensor->view_src);
    }
    memcpy(out->name, tensor->name, sizeof(out->name));
    out->name[sizeof(out->name) - 1] = '\0';
}

// --- comparing -----------------------------------------------------------------------------------

// Sources and the owner of a view, by address.
static bool same_references(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    return a->view_src == b->view_src && memcmp(a->src, b->src, sizeof(a->src)) == 0;
}

// An alternative that was not chosen is no work of the device. It may lie nowhere, or elsewhere, as
// may what it would have read, so that it goes as a tensor without sources.
static bool is_chosen(const struct ggml_tensor *node) {
    return (node->flags & GGML_TENSOR_FLAG_COMPUTE) != 0;
}

// CHANGED: other shape, flags or parameters, same references. OTHER: the graph has to be sent as a
// whole, as where a node is chosen now or no longer.
enum difference { SAME, CHANGED, OTHER };

// Compares tensor i with its copy from the last time. O(1).
static enum difference compare(const struct known_graph *known, size_t i,
                               const struct ggml_graph *graph) {
    const struct ggml_tensor *tensor = known->tensors[i], *copy = &known->copies[i];
    const bool is_node = i < (size_t)known->n_nodes;
    const int32_t uses = is_node ? graph->use_counts[i] : 0;
    if (isolated_is_extended(tensor)) return OTHER;
    if (memcmp(tensor, copy, COMPARED_BYTES) == 0 && tensor->extra == copy->extra &&
        (!is_node || uses == known->uses[i])) {
        return SAME;
    }
    if (is_node && is_chosen(tensor) != is_chosen(copy)) return OTHER;
    return same_references(tensor, copy) ? CHANGED : OTHER;
}

// Whether the graph has the same tensors as a known one, apart from changes within them. A tensor
// is read only after a tensor that still refers to it: others may have been freed.
static bool has_same_tensors(const struct known_graph *known, const struct ggml_graph *graph,
                             size_t *out_n_changed) {
    *out_n_changed = 0;
    if (known->id == 0 || known->n_nodes != graph->n_nodes) return false;
    if (known->uid != 0 && known->uid == graph->uid) return true;
    for (size_t i = 0; i < known->n_tensors; ++i) {
        if (i < (size_t)known->n_nodes && known->tensors[i] != graph->nodes[i]) return false;
        const enum difference difference = compare(known, i, graph);
        if (difference == OTHER) return false;
        *out_n_changed += difference == CHANGED;
    }
    return true;
}

// --- collecting ----------------------------------------------------------------------------------

// State of numbering a graph's tensors.
struct collector {
    struct ggml_hash_set set;
    int32_t *index; // by slot
    struct known_graph *known;
    size_t capacity;
};

static bool out_of_memory(void) {
    ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory to describe a graph to an isolated device");
    return false;
}

static void known_free(struct known_graph *known) {
    ggml_mem_free(known->tensors);
    ggml_mem_free(known->copies);
    ggml_mem_free(known->uses);
    *known = (struct known_graph){0};
}

// Makes room for `more` tensors and rebuilds the set. The list at least doubles, so that adding n
// tensors costs O(n) in all.
static bool collector_grow(struct collector *collector, size_t more) {
    struct known_graph *known = collector->known;
    if (!array_extend(&known->tensors, &collector->capacity, known->n_tensors, more,
                      sizeof(known->tensors[0]))) {
        return out_of_memory();
    }
    struct ggml_hash_set set = ggml_hash_set_new(2 * collector->capacity);
    int32_t *index = set.size > 0 ? ggml_mem_alloc(set.size * sizeof(*index)) : NULL;
    if (!index) {
        ggml_hash_set_free(&set);
        return out_of_memory();
    }
    for (size_t i = 0; i < known->n_tensors; ++i)
        index[ggml_hash_insert(&set, (struct ggml_tensor *)(uintptr_t)known->tensors[i])] =
            (int32_t)i;
    ggml_hash_set_free(&collector->set);
    ggml_mem_free(collector->index);
    collector->set = set;
    collector->index = index;
    return true;
}

// Gives a tensor the next index unless it has one. NULL is none.
static bool collector_add(struct collector *collector, const struct ggml_tensor *tensor) {
    struct ggml_tensor *key = (struct ggml_tensor *)(uintptr_t)tensor;
    if (!tensor || ggml_hash_contains(&collector->set, key)) return true;
    struct known_graph *known = collector->known;
    if (known->n_tensors == collector->capacity && !collector_grow(collector, 1)) return false;
    collector->index[ggml_hash_insert(&collector->set, key)] = (int32_t)known->n_tensors;
    known->tensors[known->n_tensors++] = tensor;
    return true;
}

// Whether tensor i goes with its sources.
static bool has_sources(const struct known_graph *known, size_t i) {
    return i < (size_t)known->n_nodes && is_chosen(known->tensors[i]);
}

// Collects the nodes, the operands of those that are chosen, and the tensors that all these are
// views of. What operands were computed from may be on other devices.
static bool collect(struct collector *collector, const struct ggml_graph *graph) {
    struct known_graph *known = collector->known;
    if (!collector_grow(collector, 2 * (size_t)MAX(graph->n_nodes, 32))) return false;
    for (int i = 0; i < graph->n_nodes; ++i) {
        if (!collector_add(collector, graph->nodes[i])) return false;
    }
    if (known->n_tensors != (size_t)graph->n_nodes) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "a node is twice in the graph");
        return false;
    }
    known->n_nodes = graph->n_nodes;
    for (size_t i = 0; i < known->n_tensors; ++i) {
        const struct ggml_tensor *tensor = known->tensors[i];
        for (int k = 0; k < GGML_MAX_SRC && has_sources(known, i); ++k) {
            if (!collector_add(collector, tensor->src[k])) return false;
        }
        if (!collector_add(collector, tensor->view_src)) return false;
    }
    known->copies = ggml_mem_alloc(known->n_tensors * sizeof(*known->copies) + 1);
    known->uses = ggml_mem_alloc((size_t)known->n_nodes * sizeof(*known->uses) + 1);
    return (known->copies && known->uses) || out_of_memory();
}

// -1 for NULL. The tensor was collected.
static int32_t index_of(const struct collector *collector, const struct ggml_tensor *tensor) {
    if (!tensor) return -1;
    return collector
        ->index[ggml_hash_find(&collector->set, (struct ggml_tensor *)(uintptr_t)tensor)];
}

// --- encoding ------------------------------------------------------------------------------------

// Checks of what can be described; they record the reason.
static bool can_be_sent(const struct isolated_device *device, const struct ggml_tensor *tensor) {
    if (!isolated_is_extended(tensor)) return true;
    ggml_fail(GGML_HOST_UNSUPPORTED,
              "'%s' is extended by its padding, which is not sent to the process of %s",
              tensor->name, device->channel.name);
    return false;
}

static bool has_place(const struct isolated_device *device, const struct ggml_tensor *tensor) {
    if (!tensor->data || ggml_is_empty(tensor) || isolated_buffer_of(device, tensor)) return true;
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "'%s' does not lie in memory of the isolated device %s",
              tensor->name, device->channel.name);
    return false;
}

// What computes nothing, as a view, may lie in memory of others, and so may what it refers to.
static bool is_computable(const struct isolated_device *device, const struct ggml_tensor *node) {
    if (!is_chosen(node) || ggml_op_is_empty(node->op)) return true;
    if (isolated_calls_application(node)) {
        ggml_fail(GGML_HOST_UNSUPPORTED,
                  "'%s' calls a function of the application, which the process of %s can't",
                  node->name, device->channel.name);
        return false;
    }
    bool good = has_place(device, node);
    for (int k = 0; good && k < GGML_MAX_SRC; ++k)
        good = !node->src[k] || has_place(device, node->src[k]);
    return good;
}

static bool all_computable(const struct isolated_device *device, const struct known_graph *known) {
    for (int i = 0; i < known->n_nodes; ++i)
        if (!is_computable(device, known->tensors[i])) return false;
    return true;
}

// Records the tensor's present state and describes it; the caller fills in its references.
static bool encode_change(const struct isolated_device *device, struct known_graph *known, size_t i,
                          const struct ggml_graph *graph, struct isolate_change *out_change) {
    const struct ggml_tensor *tensor = known->tensors[i];
    const bool is_node = i < (size_t)known->n_nodes;
    if (!can_be_sent(device, tensor)) return false;
    encode_tensor(device, tensor, &out_change->tensor);
    if (is_node && !is_chosen(tensor)) out_change->tensor.op = GGML_OP_NONE;
    out_change->index = i;
    memcpy(&known->copies[i], tensor, sizeof(*tensor));
    if (is_node) {
        known->uses[i] = graph->use_counts[i];
        out_change->tensor.use_count = known->uses[i];
    }
    return true;
}

// Writes one change per tensor into the channel's shared memory. With the channel locked; false
// after the error was set.
static bool encode_all(struct graph_cache *cache, struct collector *collector,
                       const struct ggml_graph *graph) {
    const struct isolated_device *device = cache->device;
    struct known_graph *known = collector->known;
    struct channel *channel = &cache->device->channel;
    if (!collect(collector, graph) || !all_computable(device, known)) return false;
    struct isolate_change *changes;
    if (channel_reserve(channel, known->n_tensors * sizeof(*changes)) != GGML_HOST_OK) return false;
    changes = (struct isolate_change *)channel->shared;
    for (size_t i = 0; i < known->n_tensors; ++i) {
        const struct ggml_tensor *tensor = known->tensors[i];
        if (!encode_change(device, known, i, graph, &changes[i])) return false;
        for (int k = 0; k < GGML_MAX_SRC && has_sources(known, i); ++k)
            changes[i].tensor.src[k] = index_of(collector, tensor->src[k]);
        changes[i].tensor.view_src = index_of(collector, tensor->view_src);
    }
    return true;
}

// Sends a graph as a whole; `known` keeps what was sent, or is empty after a failure.
static enum ggml_host_status encode_new(struct graph_cache *cache, struct known_graph *known,
                                        const struct ggml_graph *graph,
                                        struct isolate_request *request) {
    struct collector collector = {.known = known};
    const bool good = encode_all(cache, &collector, graph);
    ggml_hash_set_free(&collector.set);
    ggml_mem_free(collector.index);
    if (!good) {
        known_free(known);
        return ggml_last_status();
    }
    known->id = atomic_fetch_add(&cache->device->next_id, 1) + 1;
    known->used = ++cache->clock;
    known->uid = graph->uid;
    request->graph = known->id;
    request->size = request->n_tensors = known->n_tensors;
    request->n_nodes = (uint64_t)known->n_nodes;
    return GGML_HOST_OK;
}

// Sends only what changed. References are omitted: the other side keeps those that it has.
static enum ggml_host_status encode_changed(struct graph_cache *cache, struct known_graph *known,
                                            const struct ggml_graph *graph, size_t n_changed,
                                            struct isolate_request *request) {
    struct channel *channel = &cache->device->channel;
    enum ggml_host_status status =
        channel_reserve(channel, n_changed * sizeof(struct isolate_change));
    if (status != GGML_HOST_OK) return status;
    struct isolate_change *change = (struct isolate_change *)channel->shared;
    known->used = ++cache->clock;
    known->uid = graph->uid;
    request->graph = known->id;
    request->size = n_changed;
    bool good = n_changed == 0 || all_computable(cache->device, known);
    for (size_t i = 0; i < known->n_tensors && n_changed > 0 && good; ++i) {
        if (compare(known, i, graph) != SAME)
            good = encode_change(cache->device, known, i, graph, change++);
    }
    if (good) return GGML_HOST_OK;
    graph_cache_drop(cache, known->id);
    return ggml_last_status();
}

// --- cache ---------------------------------------------------------------------------------------

// Frees the graph on the other side as well, which may be gone.
static enum ggml_host_status forget(struct graph_cache *cache, struct known_graph *known) {
    struct isolate_request request = {.kind = ISOLATE_GRAPH_FREE, .graph = known->id};
    known_free(known);
    if (request.graph == 0) return GGML_HOST_OK;
    return channel_call(&cache->device->channel, &request, -1, NULL);
}

// Chooses the graph to replace: an earlier form of the same nodes, which won't be computed again,
// otherwise the least recently used one.
static struct known_graph *choose_victim(struct graph_cache *cache,
                                         const struct ggml_graph *graph) {
    struct known_graph *oldest = &cache->graphs[0];
    for (int i = 0; i < ENCODE_GRAPHS; ++i) {
        struct known_graph *known = &cache->graphs[i];
        if (known->id != 0 && known->n_nodes == graph->n_nodes && known->n_nodes > 0 &&
            known->tensors[0] == graph->nodes[0]) {
            return known;
        }
        if (known->used < oldest->used) oldest = known;
    }
    return oldest;
}

// Graphs of an earlier generation refer to buffers that were freed.
enum ggml_host_status graph_cache_encode(struct graph_cache *cache, const struct ggml_graph *graph,
                                         struct isolate_request *request) {
    const uint64_t generation = cache->device->generation;
    size_t n_changed;
    if (generation != cache->generation) graph_cache_free(cache);
    cache->generation = generation;
    request->structure = graph->structure;
    for (int i = 0; i < ENCODE_GRAPHS; ++i) {
        struct known_graph *known = &cache->graphs[i];
        if (has_same_tensors(known, graph, &n_changed))
            return encode_changed(cache, known, graph, n_changed, request);
    }
    struct known_graph *known = choose_victim(cache, graph);
    const enum ggml_host_status status = forget(cache, known);
    return status == GGML_HOST_OK ? encode_new(cache, known, graph, request) : status;
}

void graph_cache_drop(struct graph_cache *cache, uint64_t id) {
    for (int i = 0; i < ENCODE_GRAPHS; ++i) {
        if (id != 0 && cache->graphs[i].id == id) known_free(&cache->graphs[i]);
    }
}

void graph_cache_free(struct graph_cache *cache) {
    for (int i = 0; i < ENCODE_GRAPHS; ++i)
        known_free(&cache->graphs[i]);
}
