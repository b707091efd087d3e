// SPDX-License-Identifier: MIT
// Numbering: turns a graph into arrays of values and edges, in two walks: first all nodes and leafs
// get their numbers, then what they refer to is looked up by address in a hash table, so that
// graphs may be in any order. O(nodes + edges).
#include <limits.h>

#include "base/mem.h"
#include "base/status.h"
#include "sched/classify.h"

// Grows an array (a pointer to the pointer) to hold at least `needed` elements: doubled, so that
// growing costs O(1) per element in all. False after the error was set; the array is then as it
// was.
bool sched_grow(void *array, int32_t *capacity, int64_t needed, size_t element) {
    if (needed <= *capacity) return true;
    int64_t wanted = *capacity > 0 ? 2 * (int64_t)*capacity : 16;
    if (wanted < needed) wanted = needed;
    void *memory;
    memcpy(&memory, array, sizeof(memory));
    if (wanted <= INT32_MAX / 4) memory = ggml_mem_realloc(memory, (size_t)wanted * element);
    if (wanted > INT32_MAX / 4 || !memory) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "scheduler: no memory for %lld entries",
                  (long long)wanted);
        return false;
    }
    memcpy(array, &memory, sizeof(memory));
    *capacity = (int32_t)wanted;
    return true;
}

// The number of a buffer type, which is given at first sight together with the set of streams
// that can read it: devices are asked once per type. -1 after the error was set.
int32_t sched_buft_id(struct ggml_backend_sched *sched, ggml_backend_buffer_type_t buft) {
    const int32_t id = sched->n_bufts;
    for (int32_t known = 0; known < id; ++known) {
        if (sched->bufts[known].buft == buft) return known;
    }
    if (!sched_grow(&sched->bufts, &sched->bufts_capacity, id + 1, sizeof(sched->bufts[0])))
        return -1;
    uint64_t *readers = ggml_mem_calloc((size_t)sched->mask_words, sizeof(readers[0]));
    if (!readers) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "scheduler: no memory for buffer type %d", (int)id);
        return -1;
    }
    int32_t first_reader = -1;
    for (int b = 0; b < sched->n_backends; ++b) {
        const bool reads = ggml_backend_dev_supports_buft(sched->streams[b].device, buft);
        readers[b / 64] |= (uint64_t)reads << (b % 64);
        if (reads && first_reader < 0) first_reader = b;
    }
    sched->bufts[id] = (struct sched_buft){
        .buft = buft,
        .readers = readers,
        .first_reader = first_reader,
        .host = ggml_backend_buft_is_host(buft),
    };
    sched->n_bufts++;
    return id;
}

// Foreign kinds of memory may have gone since the last graph.
static void forget_foreign_bufts(struct ggml_backend_sched *sched) {
    while (sched->n_bufts > sched->n_own_bufts) {
        ggml_mem_free(sched->bufts[--sched->n_bufts].readers);
    }
}

// By operation.
static uint16_t traits_of_op(enum ggml_op op) {
    uint16_t traits = ggml_op_can_inplace(op) ? SCHED_IN_PLACE : 0;
    switch (op) {
    case GGML_OP_NONE: traits |= SCHED_NO_OP; break;
    case GGML_OP_VIEW:
    case GGML_OP_RESHAPE:
    case GGML_OP_PERMUTE:
    case GGML_OP_TRANSPOSE: traits |= SCHED_VIEW_OP; break;
    case GGML_OP_ROPE:
    case GGML_OP_FLASH_ATTN_EXT: traits |= SCHED_DETACHED; break;
    case GGML_OP_MUL_MAT_ID: traits |= SCHED_EXPERTS; break;
    default: break;
    }
    return traits;
}

// Copies what is looked up per node, by operation and type, into small tables: no call per node.
void sched_learn_kinds(struct ggml_backend_sched *sched) {
    for (int i = 0; i < GGML_OP_COUNT; ++i) {
        sched->op_traits[i] = traits_of_op((enum ggml_op)i);
    }
    for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
        sched->block_sizes[i] = (uint16_t)ggml_blck_size((enum ggml_type)i);
        sched->type_sizes[i] = (uint16_t)ggml_type_size((enum ggml_type)i);
    }
}

// Sets the error for a tensor that no device may see.
void sched_refuse(const struct ggml_backend_sched *sched, const struct ggml_tensor *tensor) {
    if (tensor->flags & GGML_TENSOR_FLAG_ERROR) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: tensor '%s' is in error: %s", sched->function,
                  tensor->name, tensor->extra ? (const char *)tensor->extra : "no reason given");
    } else {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: tensor '%s' has op %d and type %d: unknown",
                  sched->function, tensor->name, (int)tensor->op, (int)tensor->type);
    }
}

// Whether it is a copy that the scheduler itself has made: an application may have got hold of
// one.
static bool is_own_tensor(const struct ggml_backend_sched *sched,
                          const struct ggml_tensor *tensor) {
    for (int i = 0; i < SCHED_FRAMES; ++i) {
        if (tensor_pool_owns(&sched->frames[i].pool, tensor)) return true;
    }
    return false;
}

// Room for n values in all arrays that are indexed by them.
static bool room_for_items(struct ggml_backend_sched *sched, int64_t n) {
    // A node is a result once as an output and once because nobody uses it.
    return sched_grow(&sched->values, &sched->values_capacity, n, sizeof(sched->values[0])) &&
           sched_grow(&sched->used, &sched->used_capacity, n, sizeof(sched->used[0])) &&
           sched_grow(&sched->results, &sched->results_capacity, 2 * n, sizeof(sched->results[0]));
}

static bool room_for_nodes(struct ggml_backend_sched *sched, int64_t n) {
    return sched_grow(&sched->first_edge, &sched->first_edge_capacity, n + 1,
                      sizeof(sched->first_edge[0]));
}

static bool enter(struct ggml_backend_sched *sched, int32_t number, struct ggml_tensor *tensor) {
    return sched_fill(sched, &sched->values[number], number, tensor);
}

// A tensor that is neither a node nor a leaf.
static int32_t add_mentioned(struct ggml_backend_sched *sched, struct ggml_tensor *tensor) {
    if (is_own_tensor(sched, tensor)) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "%s: the graph was split before and other graphs after it; build it anew",
                  sched->function);
        return -1;
    }
    const int32_t number = sched->n_values;
    if (!room_for_items(sched, (int64_t)number + 1)) return -1;
    if (!tensor_index_grow(&sched->value_ids, sched_list(sched->values))) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory for %d tensors", sched->function,
                  (int)number);
        return -1;
    }
    if (!enter(sched, number, tensor)) return -1;
    sched->n_values++;
    tensor_index_add(&sched->value_ids, sched_list(sched->values), tensor, number);
    return number;
}

static int32_t item_of(struct ggml_backend_sched *sched, struct ggml_tensor *tensor) {
    const int32_t number = tensor_index_get(&sched->value_ids, sched_list(sched->values), tensor);
    return number >= 0 ? number : add_mentioned(sched, tensor);
}

static bool room_for_edges(struct ggml_backend_sched *sched) {
    return sched_grow(&sched->edges, &sched->edges_capacity, (int64_t)sched->n_edges + GGML_MAX_SRC,
                      sizeof(sched->edges[0]));
}

// Notes the value that owns the memory of a view. Views of views have the same owner already.
static bool find_root(struct ggml_backend_sched *sched, int32_t number) {
    struct ggml_tensor *tensor = sched->values[number].tensor;
    if (!tensor->view_src) return true;
    struct ggml_tensor *owner = tensor->view_src;
    const int32_t root = item_of(sched, owner->view_src ? owner->view_src : owner);
    if (root >= 0) sched->values[number].root = root;
    return root >= 0;
}

// Adds an edge for each source of a node; sources that the graph doesn't list get numbers here.
// A node that is its own source has none.
static bool add_edges(struct ggml_backend_sched *sched, int32_t node) {
    struct ggml_tensor *tensor = sched->values[node].tensor;
    sched->first_edge[node] = sched->n_edges;
    if (!room_for_edges(sched)) return false;
    for (int k = 0; k < GGML_MAX_SRC; ++k) {
        if (!tensor->src[k] || tensor->src[k] == tensor) continue;
        const int32_t known = sched->n_values;
        const int32_t value = item_of(sched, tensor->src[k]);
        if (value < 0 || (value >= known && !find_root(sched, value))) return false;
        sched->used[value] = 1;
        sched->edges[sched->n_edges++] = (struct live_edge){
            .value = value,
            .entry = sched->values[value].root,
            .slot = (int16_t)k,
            .same_layout = (sched->values[node].traits & SCHED_IN_PLACE) &&
                           same_layout(tensor, tensor->src[k]),
        };
    }
    return true;
}

// Numbers a list of tensors; NULL or one that comes twice is an error.
static bool number_tensors(struct ggml_backend_sched *sched, struct ggml_tensor **tensors, int n,
                           int32_t first) {
    for (int i = 0; i < n; ++i) {
        if (!tensors[i]) {
            ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the graph lists NULL", sched->function);
            return false;
        }
        if (!enter(sched, first + i, tensors[i])) return false;
        if (tensor_index_add(&sched->value_ids, sched_list(sched->values), tensors[i], first + i) !=
            first + i) {
            ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the graph lists tensor '%s' twice",
                      sched->function, tensors[i]->name);
            return false;
        }
    }
    return true;
}

// First all numbers, then what they refer to.
static bool index_all(struct ggml_backend_sched *sched, const struct ggml_cgraph *graph) {
    if (!number_tensors(sched, graph->nodes, graph->n_nodes, 0)) return false;
    if (!number_tensors(sched, graph->leafs, graph->n_leafs, graph->n_nodes)) return false;
    for (int32_t i = 0; i < graph->n_nodes + graph->n_leafs; ++i) {
        if (!find_root(sched, i)) return false;
    }
    for (int32_t i = 0; i < graph->n_nodes; ++i) {
        if (!add_edges(sched, i)) return false;
    }
    sched->first_edge[sched->n_nodes] = sched->n_edges;
    return true;
}

static bool make_room(struct ggml_backend_sched *sched, const struct ggml_cgraph *graph) {
    const int64_t n = (int64_t)graph->n_nodes + graph->n_leafs;
    forget_foreign_bufts(sched);
    if (!tensor_index_clear(&sched->value_ids, (size_t)n + (size_t)n / 8)) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory for %lld tensors", sched->function,
                  (long long)n);
        return false;
    }
    return room_for_items(sched, n) && room_for_nodes(sched, graph->n_nodes);
}

// Whether the graph can be looked at. It may come from the application's own hands.
static bool is_usable(const struct ggml_backend_sched *sched, const struct ggml_cgraph *graph) {
    if (graph->error) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the graph is in error: %s", sched->function,
                  graph->error);
        return false;
    }
    const bool counted = graph->n_nodes >= 0 && graph->n_leafs >= 0;
    if (counted && (graph->n_nodes == 0 || graph->nodes) && (graph->n_leafs == 0 || graph->leafs)) {
        return true;
    }
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the graph has no list of nodes or leafs",
              sched->function);
    return false;
}

// Resets what is counted.
static void begin(struct ggml_backend_sched *sched, const struct ggml_cgraph *graph) {
    sched->n_nodes = graph->n_nodes;
    sched->n_leafs = graph->n_leafs;
    sched->n_values = graph->n_nodes + graph->n_leafs;
    sched->n_edges = sched->n_results = 0;
    if (graph->n_nodes > 0) memset(sched->used, 0, (size_t)graph->n_nodes);
}

// Whether the value is a view that computes nothing, which only marks a dependency.
static bool is_marker(const struct ggml_backend_sched *sched, int32_t number) {
    return sched->values[number].root != number && (sched->values[number].traits & SCHED_NO_OP);
}

// Lists the nodes that nobody uses as results, except markers.
static void find_unused(struct ggml_backend_sched *sched) {
    if (sched->n_nodes == 0) return;
    const uint8_t *used = sched->used, *end = used + sched->n_nodes;
    const uint8_t *unused = memchr(used, 0, (size_t)(end - used));
    while (unused) {
        const int32_t number = (int32_t)(unused - used);
        if (!is_marker(sched, number)) sched->results[sched->n_results++] = number;
        unused = memchr(unused + 1, 0, (size_t)(end - unused - 1));
    }
}

// Whether whatever a node refers to is no node or comes before it.
static bool is_in_order(const struct ggml_backend_sched *sched) {
    for (int32_t i = 0; i < sched->n_nodes; ++i) {
        const int32_t root = sched->values[i].root;
        if (root > i && root < sched->n_nodes) return false;
        for (int32_t e = sched->first_edge[i]; e < sched->first_edge[i + 1]; ++e) {
            const int32_t value = sched->edges[e].value;
            if (value > i && value < sched->n_nodes) return false;
        }
    }
    return true;
}

// False after the error was set; the scheduler then has no graph.
bool sched_index(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    sched->n_nodes = sched->n_leafs = sched->n_values = sched->n_edges = 0;
    sched->caches.graph.repeatable = false;
    if (!is_usable(sched, graph) || !make_room(sched, graph)) return false;
    begin(sched, graph);
    if (!index_all(sched, graph)) return false;
    sched->in_order = is_in_order(sched);
    find_unused(sched);
    return true;
}

// The number of a value or copy by its tensor, -1 if there is none. A graph that repeated the
// last one has not entered its addresses: that is made up for here, O(values).
int32_t sched_find_value(struct ggml_backend_sched *sched, const struct ggml_tensor *tensor) {
    if (sched->graph_uid == 0) return -1;
    if (sched->value_ids_uid != sched->graph_uid) { // the graph repeats that of value_ids
        if (!tensor_index_clear(&sched->value_ids, (size_t)sched->n_values)) return -1;
        for (int32_t i = 0; i < sched->n_values; ++i) {
            tensor_index_add(&sched->value_ids, sched_list(sched->values), sched->values[i].tensor,
                             i);
        }
        sched->value_ids_uid = sched->graph_uid;
    }
    const int32_t number = tensor_index_get(&sched->value_ids, sched_list(sched->values), tensor);
    for (int32_t c = 0; c < sched->partition.n_copies && number < 0; ++c) {
        if (sched_copy_tensor(sched, c) == tensor) return sched->n_values + c;
    }
    return number;
}
