// SPDX-License-Identifier: MIT
// Numbering, in two walks, as graphs may be in any order: the first numbers all that the graph
// lists, by address in a hash table; the second looks up what views and nodes refer to. O(nodes +
// edges).
#include "sched/pass/graph.h"

#include "base/array.h"
#include "base/mem.h"
#include "base/status.h"
#include "ggml-backend.h"
#include "tensor/tensor_impl.h"

// --- kinds of memory

// The number of a buffer type, which is given at first sight together with the set of streams
// that can read it: devices are asked once per type. -1 after the error was set. Linear: there are
// few types.
static int32_t memory_id(const struct sched_setup *setup, ggml_backend_buffer_type_t buft,
                         struct sched_graph *out) {
    const int32_t id = out->n_memories;
    for (int32_t known = 0; known < id; ++known) {
        if (out->memories[known].buft == buft) return known;
    }
    if (!ARRAY_GROW(out, memories, (int64_t)id + 1) ||
        !ARRAY_GROW(out, readers, (id + (int64_t)1) * out->n_streams)) {
        return -1;
    }
    int32_t first_reader = -1;
    for (int b = 0; b < setup->n_streams; ++b) {
        ggml_backend_dev_t device = setup->streams[b].device;
        const bool reads = device && ggml_backend_dev_supports_buft(device, buft);
        out->readers[(int64_t)id * out->n_streams + b] = reads;
        if (reads && first_reader < 0) first_reader = b;
    }
    out->memories[id] = (struct sched_memory){
        .buft = buft, .first_reader = first_reader, .host = ggml_backend_buft_is_host(buft)};
    return out->n_memories++;
}

// The kinds of memory get the numbers of the pools, as both are numbered at first sight.
bool sched_graph_begin(const struct sched_setup *setup, size_t size_hint, struct sched_graph *out) {
    out->n_streams = setup->n_streams;
    for (int p = 0; p < setup->n_pools; ++p) {
        if (memory_id(setup, setup->pools[p].buft, out) < 0) return false;
    }
    return tensor_index_clear(&out->ids, size_hint);
}

// --- values

// Traits by operation, those of most are 0. Rope factors and attention masks must not pull their
// node to the stream where they lie.
static const uint16_t traits_of_op[GGML_OP_COUNT] = {
    [GGML_OP_NONE] = SCHED_NO_OP,         [GGML_OP_VIEW] = SCHED_VIEW_OP,
    [GGML_OP_RESHAPE] = SCHED_VIEW_OP,    [GGML_OP_PERMUTE] = SCHED_VIEW_OP,
    [GGML_OP_TRANSPOSE] = SCHED_VIEW_OP,  [GGML_OP_ROPE] = SCHED_DETACHED,
    [GGML_OP_MUL_MAT_ID] = SCHED_EXPERTS, [GGML_OP_FLASH_ATTN_EXT] = SCHED_DETACHED,
};

// Parameters of training are set before the first step, as inputs are.
static uint16_t traits_of_flags(int32_t flags) {
    uint16_t traits = 0;
    if (!(flags & (GGML_TENSOR_FLAG_INPUT | GGML_TENSOR_FLAG_PARAM | GGML_TENSOR_FLAG_OUTPUT)))
        return 0;
    if (flags & GGML_TENSOR_FLAG_INPUT) traits |= SCHED_INPUT | SCHED_EARLY;
    if (flags & GGML_TENSOR_FLAG_PARAM) traits |= SCHED_EARLY;
    if (flags & GGML_TENSOR_FLAG_OUTPUT) traits |= SCHED_OUTPUT;
    return traits;
}

// Sets the error for a tensor that no device may see, and returns false.
static bool refuse(const struct sched_setup *setup, const struct ggml_tensor *tensor) {
    if (tensor->flags & GGML_TENSOR_FLAG_ERROR) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: tensor '%s' is in error: %s", setup->function,
                  tensor->name, tensor->extra ? (const char *)tensor->extra : "no reason given");
    } else {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: tensor '%s' has op %d and type %d: unknown",
                  setup->function, tensor->name, (int)tensor->op, (int)tensor->type);
    }
    return false;
}

// Traits that follow from the buffer of a tensor that has one; *out_memory becomes the kind of
// memory, unless the tensor is a view. false after the error was set.
static bool read_buffer(const struct sched_setup *setup, const struct ggml_tensor *tensor,
                        struct sched_graph *out, uint16_t *io_traits, int32_t *out_memory) {
    const struct ggml_backend_buffer *buffer = tensor->buffer;
    if (buffer->usage == GGML_BACKEND_BUFFER_USAGE_WEIGHTS) *io_traits |= SCHED_WEIGHT;
    if (tensor->view_src || !buffer->buft) return true;
    *out_memory = memory_id(setup, buffer->buft, out);
    return *out_memory >= 0;
}

// Fills in all of a value but the root of a view, -1. There is room for it.
// Sizes are only needed of what the scheduler will allocate.
static inline bool fill_value(const struct sched_setup *setup, int32_t number,
                              struct ggml_tensor *tensor, struct sched_graph *out) {
    if ((unsigned)tensor->op >= GGML_OP_COUNT || (unsigned)tensor->type >= GGML_TYPE_COUNT ||
        (tensor->flags & GGML_TENSOR_FLAG_ERROR)) {
        return refuse(setup, tensor);
    }
    uint16_t traits = traits_of_op[tensor->op] | traits_of_flags(tensor->flags);
    int32_t memory = -1;
    if (tensor->buffer || tensor->data) traits |= SCHED_HAS_MEMORY;
    if (tensor->buffer && !read_buffer(setup, tensor, out, &traits, &memory)) return false;
    const bool allocated = !tensor->view_src && !(traits & SCHED_HAS_MEMORY);
    out->values[number] = (struct sched_value){
        .tensor = tensor,
        .bytes = allocated ? ggml_nbytes(tensor) : 0,
        .root = tensor->view_src ? -1 : number,
        .memory = memory,
        .traits = traits,
    };
    return true;
}

// Whether the scheduler itself made the tensor, as a copy: an application may have got hold of one.
static bool is_own_tensor(const struct sched_setup *setup, const struct ggml_tensor *tensor) {
    bool own = false;
    for (int i = 0; i < SCHED_FRAMES && !own && setup->own_tensors; ++i) {
        own = tensor_pool_owns(&setup->own_tensors[i], tensor);
    }
    return own;
}

// Numbers a listed tensor. NULL is an error, and so is one that comes twice: graph allocators
// alone take that, as a view of the first.
static inline bool number_tensor(const struct sched_setup *setup, struct ggml_tensor *tensor,
                                 int32_t number, struct sched_graph *out) {
    if (!tensor) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the graph lists NULL", setup->function);
        return false;
    }
    if (!fill_value(setup, number, tensor, out)) return false;
    const int32_t first = tensor_index_add(&out->ids, sched_list(out), tensor, number);
    if (first == number) return true;
    if (!tensor->view_src) out->values[number].root = first;
    if (!setup->own_tensors) return true;
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the graph lists tensor '%s' twice", setup->function,
              tensor->name);
    return false;
}

// Numbers a tensor that is neither a node nor a leaf. -1 after the error was set.
static int32_t add_mentioned(const struct sched_setup *setup, struct ggml_tensor *tensor,
                             struct sched_graph *out) {
    if (is_own_tensor(setup, tensor)) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "%s: the graph was split before and other graphs after it; build a new one",
                  setup->function);
        return -1;
    }
    const int32_t number = out->n_values;
    if (!ARRAY_GROW(out, values, (int64_t)number + 1)) return -1;
    if (!tensor_index_grow(&out->ids, sched_list(out))) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory for %d tensors", setup->function,
                  (int)number);
        return -1;
    }
    if (!fill_value(setup, number, tensor, out)) return -1;
    out->values[number].root = number;
    out->n_values++;
    tensor_index_add(&out->ids, sched_list(out), tensor, number);
    return number;
}

// Number of a tensor that another refers to.
static inline int32_t value_of(const struct sched_setup *setup, struct ggml_tensor *tensor,
                               struct sched_graph *out) {
    const int32_t number = tensor_index_at(&out->ids, sched_list(out), tensor);
    return number >= 0 ? number : add_mentioned(setup, tensor, out);
}

// --- what values refer to

// Whether a node refers to one that is computed after it.
static inline bool is_ahead(const struct sched_graph *graph, int32_t node, int32_t value) {
    return value > node && value < graph->n_nodes;
}

// Notes the value that owns the memory of a view.
static bool find_root(const struct sched_setup *setup, int32_t number, struct sched_graph *out) {
    const int32_t root = value_of(setup, tensor_root(out->values[number].tensor), out);
    if (root < 0) return false;
    if (is_ahead(out, number, root)) out->in_order = false;
    out->values[number].root = root;
    return true;
}

// Number of a source, which gets one here if the graph doesn't list it. -1 after the error was set.
static inline int32_t source_of(const struct sched_setup *setup, struct ggml_tensor *source,
                                struct sched_graph *out) {
    const int32_t known = out->n_values;
    const int32_t number = value_of(setup, source, out);
    return number >= known && source->view_src && !find_root(setup, number, out) ? -1 : number;
}

// Whether a source lies as the result of an operation on it would. An offset in the source would be
// lost, as the result begins where its own memory does.
static inline bool same_layout(const struct ggml_tensor *node, const struct ggml_tensor *source) {
    return source->view_offs == 0 && ggml_are_same_layout(node, source);
}

// Adds an edge for each source of a node. A node that is its own source, as ggml_cast makes one,
// has none.
static bool add_edges(const struct sched_setup *setup, int32_t node, struct sched_graph *out) {
    const struct ggml_tensor *tensor = out->values[node].tensor;
    const int n_sources = tensor_count_sources(tensor);
    const bool can_inplace = ggml_op_can_inplace(tensor->op);
    int32_t n_edges = out->n_edges;
    uint16_t traits = tensor->flags & GGML_TENSOR_FLAG_COMPUTE ? 0 : SCHED_SKIPPED;
    out->first_edge[node] = n_edges;
    if (!ARRAY_GROW(out, edges, (int64_t)n_edges + n_sources)) return false;
    for (int k = 0; k < n_sources; ++k) {
        struct ggml_tensor *source = tensor->src[k];
        if (!source || source == tensor) continue;
        const int32_t number = source_of(setup, source, out);
        if (number < 0) return false;
        struct sched_value *value = &out->values[number];
        const bool may_take = can_inplace && same_layout(tensor, source);
        if (value->traits & SCHED_WEIGHT) traits |= SCHED_HAS_WEIGHT;
        if (may_take) traits |= SCHED_MAY_TAKE;
        value->traits |= SCHED_USED;
        if (is_ahead(out, node, number) || is_ahead(out, node, value->root)) out->in_order = false;
        out->edges[n_edges++] = (struct sched_edge){
            .value = number,
            .entry = value->root,
            .slot = (int16_t)k,
            .same_layout = may_take,
        };
    }
    out->values[node].traits |= traits;
    out->n_edges = n_edges;
    return true;
}

// The second walk: roots first, which edges then name.
static bool add_references(const struct sched_setup *setup, struct sched_graph *out) {
    const int32_t n_listed = out->n_values;
    for (int32_t i = 0; i < n_listed; ++i) {
        if (out->values[i].root < 0 && !find_root(setup, i, out)) return false;
    }
    for (int32_t i = 0; i < out->n_nodes; ++i) {
        if (!add_edges(setup, i, out)) return false;
    }
    out->first_edge[out->n_nodes] = out->n_edges;
    return true;
}

// --- the pass

// Whether the graph can be looked at. It may come from the application's own hands.
static bool is_usable(const struct sched_setup *setup, const struct ggml_cgraph *graph) {
    if (graph->error) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the graph is in error: %s", setup->function,
                  graph->error);
        return false;
    }
    const bool counted = graph->n_nodes >= 0 && graph->n_leafs >= 0;
    if (counted && (graph->n_nodes == 0 || graph->nodes) && (graph->n_leafs == 0 || graph->leafs)) {
        return true;
    }
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the graph has no list of nodes or leafs",
              setup->function);
    return false;
}

// Forgets the last graph; kinds of memory that no stream has may have gone since.
static bool begin(const struct sched_setup *setup, const struct ggml_cgraph *graph,
                  struct sched_graph *out) {
    const int64_t n = (int64_t)graph->n_nodes + graph->n_leafs;
    out->n_memories = setup->n_pools;
    if (!tensor_index_clear(&out->ids, (size_t)n + (size_t)n / 8)) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory for %lld tensors", setup->function,
                  (long long)n);
        return false;
    }
    if (!ARRAY_GROW(out, values, n) || !ARRAY_GROW(out, edges, 1) ||
        !ARRAY_GROW(out, first_edge, (int64_t)graph->n_nodes + 1)) {
        return false;
    }
    out->n_nodes = graph->n_nodes;
    out->n_leafs = graph->n_leafs;
    out->n_values = (int32_t)n;
    return true;
}

// What fails leaves numbers that no later pass is called with. Leafs are numbered before nodes, so
// that what is listed as both is a leaf.
bool sched_graph_make(const struct sched_setup *setup, const struct ggml_cgraph *graph,
                      struct sched_graph *out) {
    out->n_nodes = out->n_leafs = out->n_values = out->n_edges = 0;
    out->in_order = true;
    if (!is_usable(setup, graph) || !begin(setup, graph, out)) return false;
    for (int32_t i = 0; i < out->n_leafs; ++i) {
        if (!number_tensor(setup, graph->leafs[i], out->n_nodes + i, out)) return false;
    }
    for (int32_t i = 0; i < out->n_nodes; ++i) {
        if (!number_tensor(setup, graph->nodes[i], i, out)) return false;
    }
    return add_references(setup, out);
}

// Addresses are entered when they are asked for: most repeated graphs are only computed.
void sched_graph_renew(struct sched_graph *graph, struct ggml_tensor *const *tensors) {
    for (int32_t i = 0; i < graph->n_values; ++i) {
        graph->values[i].tensor = tensors[i];
    }
    graph->ids.count = 0;
}

int32_t sched_graph_find(struct sched_graph *graph, const struct ggml_tensor *tensor) {
    if (graph->ids.count == 0) {
        if (!tensor_index_clear(&graph->ids, (size_t)graph->n_values)) return -1;
        for (int32_t i = 0; i < graph->n_values; ++i) {
            tensor_index_add(&graph->ids, sched_list(graph), graph->values[i].tensor, i);
        }
    }
    return tensor_index_get(&graph->ids, sched_list(graph), tensor);
}

// The arrays are kept from graph to graph and only grow.
void sched_graph_free(struct sched_graph *graph) {
    tensor_index_free(&graph->ids);
    void *const arrays[] = {graph->values, graph->first_edge, graph->edges, graph->memories,
                            graph->readers};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); ++i) {
        ggml_mem_free(arrays[i]);
    }
}
