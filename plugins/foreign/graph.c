// SPDX-License-Identifier: MIT
// Shadows of graphs. Streams keep some: a graph that comes again, as told by its number or, where
// it has none, by comparing every tensor, costs no more than that.
#include "foreign.h"

struct foreign_graph {
    struct ggml_cgraph theirs;
    uint64_t uid;     // of the original
    unsigned n_freed; // foreign_buffers_freed() when it was made
    size_t bytes;     // of this allocation
    size_t n_nodes;
    size_t n_distinct; // nodes: one may come several times
    size_t n_tensors;
    size_t capacity;                 // of tensors
    const struct ggml_tensor **from; // the originals, the nodes first, in the order of their coming
    struct ggml_tensor *before;      // the originals as they were
    struct ggml_tensor *shadows;
    int32_t *use_counts; // of the nodes
    int32_t *tensor_of;  // by node: index of its tensor
    int32_t *slots;      // by slot of `set`: index of the tensor
    struct ggml_hash_set set;
};

// Numbers for the shadows: a binary keeps plans by them, so a new shadow must not
// have the number of one before.
static atomic_ullong next_uid;

// As many as there could be: nodes, sources, and the owners of both.
static size_t most_tensors(const struct ggml_graph *original) {
    size_t count = 0;
    for (int i = 0; i < original->n_nodes; ++i) {
        const struct ggml_tensor *node = original->nodes[i];
        count += 1 + (node->view_src != NULL);
        for (int j = 0; j < GGML_MAX_SRC; ++j) {
            if (node->src[j]) count += 1 + (node->src[j]->view_src != NULL);
        }
    }
    return count;
}

// One step of laying out an allocation: returns the piece at *offset, or NULL where `base` is, and
// advances by its bytes, rounded up to cache lines.
static void *take(char *base, size_t *offset, size_t bytes) {
    void *piece = base ? base + *offset : NULL;
    *offset += (bytes + 63) / 64 * 64;
    return piece;
}

// Lays all arrays of a graph out behind its structure, in one allocation. Called twice: with NULL
// to learn the size, then with the memory. Returns the bytes.
static size_t place(struct foreign_graph *graph, char *base, size_t n_nodes, size_t n_tensors) {
    size_t offset = 0;
    struct foreign_graph sizes;
    const size_t n_slots = ggml_hash_size(n_tensors);
    take(base, &offset, sizeof(*graph));
    if (!graph) graph = &sizes;
    graph->from = take(base, &offset, n_tensors * sizeof(graph->from[0]));
    graph->before = take(base, &offset, n_tensors * sizeof(graph->before[0]));
    graph->shadows = take(base, &offset, n_tensors * sizeof(graph->shadows[0]));
    graph->use_counts = take(base, &offset, n_nodes * sizeof(graph->use_counts[0]));
    graph->tensor_of = take(base, &offset, n_nodes * sizeof(graph->tensor_of[0]));
    graph->slots = take(base, &offset, n_slots * sizeof(graph->slots[0]));
    graph->set.size = n_slots;
    graph->set.keys = take(base, &offset, n_slots * sizeof(graph->set.keys[0]));
    graph->set.used = take(base, &offset, ggml_bitset_size(n_slots) * sizeof(ggml_bitset_t));
    struct ggml_cgraph *theirs = &graph->theirs;
    theirs->visited_hash_set.size = n_slots;
    theirs->visited_hash_set.keys = take(base, &offset, n_slots * sizeof(graph->set.keys[0]));
    theirs->visited_hash_set.used =
        take(base, &offset, ggml_bitset_size(n_slots) * sizeof(ggml_bitset_t));
    theirs->use_counts = take(base, &offset, n_slots * sizeof(theirs->use_counts[0]));
    theirs->nodes = take(base, &offset, n_nodes * sizeof(theirs->nodes[0]));
    return offset;
}

// The shadow of an original, which is made when it is first asked for.
static struct ggml_tensor *shadow_of(const struct foreign_binary *binary,
                                     struct foreign_graph *graph,
                                     const struct ggml_tensor *tensor) {
    const size_t slot = ggml_hash_find(&graph->set, tensor);
    if (!ggml_bitset_get(graph->set.used, slot)) {
        const size_t index = graph->n_tensors++;
        ggml_bitset_set(graph->set.used, slot);
        graph->set.keys[slot] = (struct ggml_tensor *)(uintptr_t)tensor;
        graph->slots[slot] = (int32_t)index;
        graph->from[index] = tensor;
        graph->before[index] = *tensor;
        foreign_shadow_copy(binary, tensor, &graph->shadows[index]);
    }
    return &graph->shadows[graph->slots[slot]];
}

// An alternative that was not chosen may lie nowhere. Binaries look at the memory of what they are
// given, and those from before the flag would compute it: none is given to them.
static bool is_chosen(const struct ggml_tensor *node) {
    return (node->flags & GGML_TENSOR_FLAG_COMPUTE) != 0;
}

// The nodes that are chosen, and how often each is used: over the whole graph, of which this may be
// a part, as what is used elsewhere must not be fused away.
static void list_nodes(struct foreign_graph *graph, const struct ggml_graph *original) {
    struct ggml_cgraph *theirs = &graph->theirs;
    theirs->size = theirs->n_nodes = 0;
    for (size_t i = 0; i < graph->n_nodes; ++i) {
        struct ggml_tensor *node = &graph->shadows[graph->tensor_of[i]];
        graph->use_counts[i] = original->use_counts[i];
        if (!is_chosen(node)) continue;
        theirs->nodes[theirs->n_nodes++] = node;
        const size_t slot = ggml_hash_find_or_insert(&theirs->visited_hash_set, node);
        theirs->use_counts[slot] = original->use_counts[i];
    }
}

// What a node outside computes, or one that was not chosen, is no business of the binary: it is a
// tensor like a constant.
static void link_sources(const struct foreign_binary *binary, struct foreign_graph *graph) {
    for (size_t i = 0; i < graph->n_distinct; ++i) {
        const struct ggml_tensor *node = graph->from[i];
        if (!is_chosen(node)) graph->shadows[i].op = GGML_OP_NONE;
        for (int j = 0; j < GGML_MAX_SRC && is_chosen(node); ++j) {
            if (node->src[j]) graph->shadows[i].src[j] = shadow_of(binary, graph, node->src[j]);
        }
    }
    for (size_t i = 0; i < graph->n_tensors; ++i) { // grows by owners, which have none
        const struct ggml_tensor *tensor = graph->from[i];
        if (tensor->view_src)
            graph->shadows[i].view_src = shadow_of(binary, graph, tensor->view_src);
    }
    for (size_t i = graph->n_distinct; i < graph->n_tensors; ++i)
        graph->shadows[i].op = GGML_OP_NONE;
}

// One pass over nodes, sources and owners, by hash set: linear in the tensors of the graph. Nodes
// come first: the tensors below n_distinct are nodes.
struct foreign_graph *foreign_graph_new(const struct foreign_binary *binary,
                                        const struct ggml_graph *original) {
    const size_t n_nodes = (size_t)original->n_nodes;
    const size_t capacity = most_tensors(original) + 1;
    const size_t bytes = place(NULL, NULL, n_nodes, capacity);
    struct foreign_graph *graph = ggml_aligned_malloc(bytes);
    if (!graph) return NULL;
    memset(graph, 0, sizeof(*graph));
    place(graph, (char *)graph, n_nodes, capacity);
    memset(graph->set.used, 0, ggml_bitset_size(graph->set.size) * sizeof(ggml_bitset_t));
    memset(graph->theirs.visited_hash_set.used, 0,
           ggml_bitset_size(graph->set.size) * sizeof(ggml_bitset_t));
    graph->bytes = bytes;
    graph->capacity = capacity;
    graph->n_nodes = n_nodes;
    graph->uid = original->uid;
    graph->n_freed = foreign_buffers_freed();
    for (size_t i = 0; i < n_nodes; ++i)
        graph->tensor_of[i] =
            (int32_t)(shadow_of(binary, graph, original->nodes[i]) - graph->shadows);
    graph->n_distinct = graph->n_tensors;
    link_sources(binary, graph);
    list_nodes(graph, original);
    graph->theirs.uid = atomic_fetch_add(&next_uid, 1) + 1;
    return graph;
}

// Names and the binary's own `extra` may change without the computation changing.
static bool is_unchanged(const struct foreign_graph *graph, size_t i) {
    const struct ggml_tensor *now = graph->from[i], *before = &graph->before[i];
    return memcmp(now, before, offsetof(struct ggml_tensor, name)) == 0 &&
           now->extra == before->extra;
}

bool foreign_graph_is_of(const struct foreign_graph *graph, const struct ggml_graph *original) {
    if (!graph || graph->n_nodes != (size_t)original->n_nodes) return false;
    if (graph->n_freed != foreign_buffers_freed()) return false;
    if (graph->uid != 0 || original->uid != 0) return graph->uid == original->uid;
    // Of a tensor that is freed nothing may be read: an original is looked at only once what leads
    // to it is known to be as it was.
    for (size_t i = 0; i < graph->n_nodes; ++i) {
        const size_t index = (size_t)graph->tensor_of[i];
        if (graph->from[index] != original->nodes[i] || !is_unchanged(graph, index)) return false;
        if (graph->use_counts[i] != original->use_counts[i]) return false;
    }
    for (size_t i = graph->n_distinct; i < graph->n_tensors; ++i) {
        if (!is_unchanged(graph, i)) return false;
    }
    return true;
}

struct ggml_cgraph *foreign_graph_theirs(struct foreign_graph *graph) {
    return &graph->theirs;
}

void foreign_graph_free(struct foreign_graph *graph) {
    if (graph) ggml_aligned_free(graph, graph->bytes);
}
