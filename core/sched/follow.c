// SPDX-License-Identifier: MIT
// Numbers a graph that stands in the order of its uses, as graphs do that were built as usual: what
// a tensor refers to has its number already. As each tensor is read only once, nodes are placed on
// the way as far as that depends on nothing behind them.
#include "sched/fill.h"

enum { PREFETCH_TENSORS = 6, USUAL_SOURCES = 3 };

// The scheduler's arrays, which stay where they are during the walk (but for the edges).
struct walk {
    struct ggml_backend_sched *sched;
    struct sched_item *items;
    struct sched_place *places;
    struct item_map map;
    struct sched_edge *edge; // the next
    int32_t current;         // stream that spreads to the next node, or -1
    bool placing;            // without pins
};

static inline void prefetch_tensor(struct ggml_tensor *const *tensors, int32_t i, int32_t n) {
    if (i + PREFETCH_TENSORS >= n) return;
    const char *bytes = (const char *)tensors[i + PREFETCH_TENSORS];
    for (size_t k = 0; k < offsetof(struct ggml_tensor, name); k += 64) {
        __builtin_prefetch(bytes + k);
    }
}

static inline bool enter(struct walk *walk, struct ggml_tensor *tensor, int32_t number) {
    struct sched_item *item = &walk->items[number];
    if (!tensor || !sched_fill(walk->sched, item, &walk->places[number], number, tensor)) {
        return false;
    }
    if (tensor->view_src) {
        const int32_t slot = *item_map_find(&walk->map, walk->items, owner_of(tensor));
        if (slot == 0) return false;
        item->root = slot - 1;
    }
    int32_t *slot = item_map_find(&walk->map, walk->items, tensor);
    if (*slot != 0) return false; // listed twice
    *slot = number + 1;
    return true;
}

static bool follow_leafs(struct walk *walk, const struct ggml_cgraph *graph) {
    for (int32_t i = 0; i < graph->n_leafs; ++i) {
        const int32_t number = graph->n_nodes + i;
        prefetch_tensor(graph->leafs, i, graph->n_leafs);
        if (!enter(walk, graph->leafs[i], number)) return false;
        if (walk->placing && !sched_place_fixed(walk->sched, number, -1)) return false;
    }
    return true;
}

// Where the list of sources surely ends.
static inline int end_of_sources(const struct ggml_tensor *tensor) {
    uintptr_t rest = 0;
    for (int k = USUAL_SOURCES; k < GGML_MAX_SRC; ++k) {
        rest |= (uintptr_t)tensor->src[k];
    }
    return rest == 0 ? USUAL_SOURCES : GGML_MAX_SRC;
}

// *out_weight: the first source that is one, or -1.
static inline bool follow_sources(struct walk *walk, int32_t node, int32_t *out_weight) {
    struct sched_item *item = &walk->items[node];
    const struct ggml_tensor *tensor = item->tensor;
    const bool in_place = item->traits & SCHED_IN_PLACE;
    const int end = end_of_sources(tensor);
    bool elsewhere = false; // some source has other memory
    *out_weight = -1;
    for (int k = 0; k < end; ++k) {
        const struct ggml_tensor *src = tensor->src[k];
        if (!src || src == tensor) continue; // ggml_cast names its own result
        const int32_t number = *item_map_find(&walk->map, walk->items, src) - 1;
        if (number < 0) return false;
        struct sched_item *source = &walk->items[number];
        if ((source->traits & SCHED_WEIGHT) && *out_weight < 0) *out_weight = number;
        source->traits |= SCHED_USED;
        elsewhere |= source->root != item->root;
        *walk->edge++ = (struct sched_edge){
            .item = number,
            .entry = source->root,
            .slot = (int16_t)k,
            .same_layout = in_place && same_layout(tensor, src),
        };
    }
    if (!elsewhere && (item->traits & SCHED_VIEW_OP)) item->traits |= SCHED_PLAIN_VIEW;
    return true;
}

// What is tied to a place, and else what follows the node before: see place.c.
static inline bool place(struct walk *walk, int32_t node, int32_t weight) {
    struct ggml_backend_sched *sched = walk->sched;
    const struct sched_item *item = &walk->items[node];
    if (walk->items[item->root].buft >= 0 || (item->traits & SCHED_INPUT)) {
        if (!sched_place_fixed(sched, node, weight)) return false;
    } else if (weight >= 0 && !(item->traits & SCHED_DETACHED)) {
        sched_place_by_weight(sched, node, weight);
    }
    if (item->traits & SCHED_VIEW_OP) return true;
    if (item->backend >= 0) {
        walk->current = item->backend == sched->n_backends - 1 ? -1 : item->backend;
    } else if (walk->current >= 0 && sched_supports(sched, node, walk->current)) {
        sched_assign(sched, node, walk->current, SCHED_REASON_NEIGHBOUR);
    } else {
        sched_note_unplaced(sched, node);
    }
    return true;
}

static bool grow_edges(struct walk *walk) {
    struct ggml_backend_sched *sched = walk->sched;
    const int64_t n = walk->edge - sched->edges;
    const bool done = sched_grow(&sched->edges, &sched->edges_capacity, n + GGML_MAX_SRC,
                                 sizeof(sched->edges[0]));
    walk->edge = sched->edges + n;
    return done;
}

static inline bool follow_node(struct walk *walk, struct ggml_tensor *tensor, int32_t node) {
    struct ggml_backend_sched *sched = walk->sched;
    int32_t weight;
    if (!enter(walk, tensor, node)) return false;
    sched->n_early += (walk->items[node].traits & SCHED_EARLY) != 0;
    const int32_t n_edges = (int32_t)(walk->edge - sched->edges);
    sched->first_edge[node] = n_edges;
    if (n_edges + GGML_MAX_SRC > sched->edges_capacity && !grow_edges(walk)) return false;
    return follow_sources(walk, node, &weight) && (!walk->placing || place(walk, node, weight));
}

bool sched_follow(struct ggml_backend_sched *sched, const struct ggml_cgraph *graph) {
    struct walk walk = {
        .sched = sched,
        .items = sched->items,
        .places = sched->places,
        .map = sched->item_ids,
        .edge = sched->edges,
        .current = -1,
        .placing = sched->n_pins == 0,
    };
    bool good = follow_leafs(&walk, graph);
    for (int32_t i = 0; i < graph->n_nodes && good; ++i) {
        prefetch_tensor(graph->nodes, i, graph->n_nodes);
        good = follow_node(&walk, graph->nodes[i], i);
    }
    sched->is_spread = walk.placing;
    sched->n_edges = (int32_t)(walk.edge - sched->edges);
    sched->item_ids.count = (size_t)graph->n_nodes + (size_t)graph->n_leafs;
    return good;
}
