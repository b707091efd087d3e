// SPDX-License-Identifier: MIT
// Graphs without addresses, and which of them the node knows already: of a graph like an earlier
// one only the tensors that differ are sent, of one that is the same none.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

// --- collecting ----------------------------------------------------------------------------------

// The nodes, then what they refer to, in the order in which they do.
struct collector {
    struct ggml_hash_set set;
    int32_t *index; // by slot
    const struct ggml_tensor **tensors;
    size_t count, capacity;
};

// Doubles the capacity and enters all tensors again; O(count), and O(1) per tensor in all.
static bool grow(struct collector *collector, size_t capacity) {
    const struct ggml_tensor **tensors = realloc(collector->tensors, capacity * sizeof(*tensors));
    if (!tensors) return false;
    collector->tensors = tensors;
    struct ggml_hash_set set = ggml_hash_set_new(2 * capacity);
    int32_t *index = set.size > 0 ? malloc(set.size * sizeof(*index)) : NULL;
    if (!index) {
        ggml_hash_set_free(&set);
        return false;
    }
    for (size_t i = 0; i < collector->count; ++i)
        index[ggml_hash_insert(&set, (struct ggml_tensor *)(uintptr_t)tensors[i])] = (int32_t)i;
    ggml_hash_set_free(&collector->set);
    free(collector->index);
    collector->set = set;
    collector->index = index;
    collector->capacity = capacity;
    return true;
}

// Adds a tensor unless it is there; false without memory.
static bool add(struct collector *collector, const struct ggml_tensor *tensor) {
    struct ggml_tensor *key = (struct ggml_tensor *)(uintptr_t)tensor;
    if (!tensor || ggml_hash_contains(&collector->set, key)) return true;
    if (collector->count == collector->capacity && !grow(collector, 2 * collector->capacity))
        return false;
    collector->index[ggml_hash_insert(&collector->set, key)] = (int32_t)collector->count;
    collector->tensors[collector->count++] = tensor;
    return true;
}

// An alternative that was not chosen may lie nowhere or elsewhere, as may what it would have read:
// it goes as a plain tensor.
static bool is_chosen(const struct ggml_tensor *node) {
    return (node->flags & GGML_TENSOR_FLAG_COMPUTE) != 0;
}

// Collects the nodes, then the sources of those that are chosen, then the roots of views. Sources
// of sources are left out: what operands were computed from may lie on other devices. O(tensors).
static bool collect(struct collector *collector, const struct ggml_graph *graph) {
    const size_t n_nodes = (size_t)graph->n_nodes;
    if (!grow(collector, n_nodes < 32 ? 64 : 2 * n_nodes)) return false;
    for (size_t i = 0; i < n_nodes; ++i)
        if (!add(collector, graph->nodes[i])) return false;
    for (size_t i = 0; i < collector->count; ++i) {
        const struct ggml_tensor *tensor = collector->tensors[i];
        for (int k = 0; k < GGML_MAX_SRC && i < n_nodes && is_chosen(tensor); ++k)
            if (!add(collector, tensor->src[k])) return false;
        if (!add(collector, tensor->view_src)) return false;
    }
    return true;
}

static int32_t index_of(const struct collector *collector, const struct ggml_tensor *tensor) {
    if (!tensor) return -1;
    return collector
        ->index[ggml_hash_find(&collector->set, (struct ggml_tensor *)(uintptr_t)tensor)];
}

// --- describing ----------------------------------------------------------------------------------

// Nodes that compute nothing, as views, may lie in other memory: so may what they refer to.
static bool can_reach(const struct node *node, const struct ggml_tensor *tensor) {
    if (!is_chosen(tensor) || ggml_op_is_empty(tensor->op)) return true;
    bool good = remote_lies_at(node, tensor);
    for (int k = 0; good && k < GGML_MAX_SRC; ++k)
        good = !tensor->src[k] || remote_lies_at(node, tensor->src[k]);
    return good;
}

// A tensor that isn't computed there, wherever it comes from.
static void make_plain(struct wire_tensor *tensor) {
    tensor->op = GGML_OP_NONE;
    memset(tensor->op_params, 0, sizeof(tensor->op_params));
}

// Describes tensor i of the collection. Nodes that are chosen keep operation and sources;
// UNSUPPORTED for those that call functions of the program.
static bool describe(const struct node *node, const struct collector *collector, size_t i,
                     const struct ggml_graph *graph, struct wire_tensor *out) {
    const struct ggml_tensor *tensor = collector->tensors[i];
    const bool is_node = i < (size_t)graph->n_nodes, chosen = is_node && is_chosen(tensor);
    if (chosen && !can_reach(node, tensor)) return false;
    remote_describe_any(node, tensor, out);
    if (chosen && wire_calls_program(out->op)) {
        ggml_sdk_fail(GGML_HOST_UNSUPPORTED, "'%s' calls a function of the program", tensor->name);
        return false;
    }
    if (wire_calls_program(out->op) || (is_node && !chosen)) make_plain(out);
    for (int k = 0; k < GGML_MAX_SRC && chosen; ++k)
        out->src[k] = index_of(collector, tensor->src[k]);
    out->view_src = index_of(collector, tensor->view_src);
    out->use_count = is_node ? graph->use_counts[i] : 0;
    return true;
}

// --- images --------------------------------------------------------------------------------------

// Where the tensors of a graph were and what they held, but for their names, which need not be
// true. A graph without a uid is compared with it, which takes a fifth of describing it.
enum { IMAGE_BYTES = offsetof(struct ggml_tensor, name) };

struct graph_image {
    const struct ggml_tensor **tensors;
    int32_t *use_counts;
    char (*held)[IMAGE_BYTES];
};

static void image_free(struct graph_image *image) {
    if (!image) return;
    free(image->tensors);
    free(image->use_counts);
    free(image->held);
    free(image);
}

// NULL when there is no memory for it.
static struct graph_image *image_new(const struct collector *collector,
                                     const struct ggml_graph *graph) {
    const size_t n = collector->count, n_nodes = (size_t)graph->n_nodes;
    struct graph_image *image = calloc(1, sizeof(*image));
    if (!image) return NULL;
    image->tensors = malloc(n * sizeof(image->tensors[0]));
    image->use_counts = malloc(n_nodes * sizeof(image->use_counts[0]));
    image->held = malloc(n * sizeof(image->held[0]));
    if (!image->tensors || !image->use_counts || !image->held) {
        image_free(image);
        return NULL;
    }
    memcpy(image->tensors, collector->tensors, n * sizeof(image->tensors[0]));
    memcpy(image->use_counts, graph->use_counts, n_nodes * sizeof(image->use_counts[0]));
    for (size_t i = 0; i < n; ++i)
        memcpy(image->held[i], image->tensors[i], IMAGE_BYTES);
    return image;
}

// Each tensor is a node, or what an earlier one refers to that is as it was: none is gone.
static bool is_image_of(const struct graph_image *image, size_t count,
                        const struct ggml_graph *graph) {
    const size_t n_nodes = (size_t)graph->n_nodes;
    if (memcmp(image->tensors, graph->nodes, n_nodes * sizeof(image->tensors[0])) != 0 ||
        memcmp(image->use_counts, graph->use_counts, n_nodes * sizeof(image->use_counts[0])) != 0) {
        return false;
    }
    for (size_t i = 0; i < count; ++i)
        if (memcmp(image->held[i], image->tensors[i], IMAGE_BYTES) != 0) return false;
    return true;
}

// --- all tensors ---------------------------------------------------------------------------------

// Describes all tensors of a graph; NULL after the error was set. The caller frees them and the
// image, which is made only for graphs without a uid.
static struct wire_tensor *describe_all(const struct node *node, const struct ggml_graph *graph,
                                        size_t *out_count, struct graph_image **out_image) {
    struct collector collector = {0};
    struct wire_tensor *tensors = NULL;
    bool good = collect(&collector, graph);
    if (good && collector.count < (size_t)graph->n_nodes) good = false;
    if (good) tensors = calloc(collector.count + 1, sizeof(*tensors));
    if (!tensors)
        ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "no memory to describe a graph to MPI%d",
                      node->peer);
    good = good && tensors;
    for (size_t i = 0; good && i < collector.count; ++i)
        good = describe(node, &collector, i, graph, &tensors[i]);
    *out_count = collector.count;
    *out_image = good && graph->uid == 0 ? image_new(&collector, graph) : NULL;
    ggml_hash_set_free(&collector.set);
    free(collector.index);
    free(collector.tensors);
    if (good) return tensors;
    free(tensors);
    return NULL;
}

// --- comparing -----------------------------------------------------------------------------------

static void forget(struct known_graph *known) {
    free(known->tensors);
    image_free(known->image);
    *known = (struct known_graph){0};
}

void graph_cache_free(struct graph_cache *cache) {
    for (int i = 0; i < CLIENT_GRAPHS; ++i)
        forget(&cache->graphs[i]);
}

void graph_cache_drop(struct graph_cache *cache, uint64_t id) {
    for (int i = 0; i < CLIENT_GRAPHS; ++i)
        if (id != 0 && cache->graphs[i].id == id) forget(&cache->graphs[i]);
}

// References stay as they are in a graph that is known: only what the tensors are may differ.
static bool same_references(const struct wire_tensor *a, const struct wire_tensor *b) {
    return a->view_src == b->view_src && memcmp(a->src, b->src, sizeof(a->src)) == 0;
}

// Whether the graph is another one than the known one; otherwise counts the tensors that
// changed, which are sent. O(tensors).
static bool differs(const struct known_graph *known, const struct wire_tensor *tensors,
                    size_t *out_n_changed) {
    *out_n_changed = 0;
    for (size_t i = 0; i < known->n_tensors; ++i) {
        if (!same_references(&known->tensors[i], &tensors[i])) return true;
        *out_n_changed += memcmp(&known->tensors[i], &tensors[i], sizeof(tensors[i])) != 0;
    }
    return false;
}

// Of the known graphs of this shape the one with the fewest changes, or NULL. O(CLIENT_GRAPHS *
// tensors).
static struct known_graph *find_alike(struct graph_cache *cache, const struct ggml_graph *graph,
                                      const struct wire_tensor *tensors, size_t count,
                                      size_t *out_n_changed) {
    struct known_graph *best = NULL;
    for (int i = 0; i < CLIENT_GRAPHS; ++i) {
        struct known_graph *known = &cache->graphs[i];
        size_t n_changed;
        if (known->id == 0 || known->n_tensors != count ||
            known->n_nodes != (uint32_t)graph->n_nodes || differs(known, tensors, &n_changed)) {
            continue;
        }
        if (best && *out_n_changed <= n_changed) continue;
        best = known;
        *out_n_changed = n_changed;
    }
    return best;
}

// --- cache ---------------------------------------------------------------------------------------

// The graph that was used least recently, or an unused entry, whose clock is 0.
static struct known_graph *oldest(struct graph_cache *cache) {
    struct known_graph *found = &cache->graphs[0];
    for (int i = 1; i < CLIENT_GRAPHS; ++i)
        if (cache->graphs[i].used < found->used) found = &cache->graphs[i];
    return found;
}

// The changed tensors with their index; all of them if `known` is NULL. NULL without memory; the
// caller frees the list.
static struct wire_change *list_changes(const struct known_graph *known,
                                        const struct wire_tensor *tensors, size_t count,
                                        size_t n_changed) {
    struct wire_change *changes = calloc(n_changed + 1, sizeof(*changes));
    size_t n = 0;
    for (size_t i = 0; changes && i < count && n < n_changed; ++i) {
        if (known && memcmp(&known->tensors[i], &tensors[i], sizeof(tensors[i])) == 0) continue;
        changes[n++] = (struct wire_change){i, tensors[i]};
    }
    return changes;
}

// Replaces what is known of a graph by what is sent now; takes tensors and image.
static void remember(struct graph_cache *cache, struct known_graph *known,
                     const struct ggml_graph *graph, struct wire_tensor *tensors,
                     struct graph_image *image) {
    free(known->tensors);
    image_free(known->image);
    known->tensors = tensors;
    known->image = image;
    known->used = ++cache->clock;
    known->uid = graph->uid;
}

// Whether the graph is the known one, by its uid, or by an image where it has none.
static bool is_same(const struct known_graph *known, const struct ggml_graph *graph) {
    if (known->id == 0 || known->uid != graph->uid) return false;
    if (graph->uid != 0) return true;
    return known->image && known->n_nodes == (uint32_t)graph->n_nodes &&
           is_image_of(known->image, known->n_tensors, graph);
}

// Names the known graph in the message if this one is the same: then no tensor is sent.
static bool find_same(struct graph_cache *cache, const struct ggml_graph *graph,
                      struct wire_message *message) {
    for (int i = 0; i < CLIENT_GRAPHS; ++i) {
        struct known_graph *known = &cache->graphs[i];
        if (!is_same(known, graph)) continue;
        known->used = ++cache->clock;
        message->object = known->id;
        return true;
    }
    return false;
}

// A buffer that was freed (node->generation) may have been known graphs' memory: the node has
// forgotten those that lay in it.
bool graph_cache_is_old(const struct graph_cache *cache, const struct node *node) {
    return cache->generation != atomic_load(&node->generation);
}

int32_t graph_encode(struct graph_cache *cache, struct node *node, const struct ggml_graph *graph,
                     struct wire_message *message, struct wire_change **out_changes,
                     uint64_t *out_forgotten) {
    size_t count, n_changed = 0;
    *out_changes = NULL;
    *out_forgotten = 0;
    message->structure = graph->structure;
    if (find_same(cache, graph, message)) return GGML_HOST_OK;
    struct graph_image *image;
    struct wire_tensor *tensors = describe_all(node, graph, &count, &image);
    if (!tensors) return GGML_HOST_FAILED;
    struct known_graph *known = find_alike(cache, graph, tensors, count, &n_changed);
    const bool is_new = !known;
    if (is_new) n_changed = count;
    *out_changes = list_changes(known, tensors, count, n_changed);
    if (!*out_changes) {
        free(tensors);
        image_free(image);
        return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "no memory to describe a graph");
    }
    if (is_new) {
        known = oldest(cache);
        *out_forgotten = known->id;
        forget(known);
        known->id = atomic_fetch_add(&node->client->next_object, 1) + 1;
        known->n_tensors = count;
        known->n_nodes = (uint32_t)graph->n_nodes;
        message->n_tensors = (uint32_t)count;
        message->n_nodes = known->n_nodes;
    }
    message->object = known->id;
    message->size = n_changed;
    remember(cache, known, graph, tensors, image);
    return GGML_HOST_OK;
}
