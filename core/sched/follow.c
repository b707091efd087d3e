// SPDX-License-Identifier: MIT
// Numbers a graph that stands in the order of its uses, as graphs do that were built as usual: what
// a tensor refers to has its number already. As each tensor is read only once, nodes are placed on
// the way as far as that depends on nothing behind them.
#include "sched/fill.h"

enum { PREFETCH_TENSORS = 6 };

struct walk {
    struct ggml_backend_sched *sched;
    int32_t current; // stream that spreads to the next node, or -1
    bool places;     // without pins
};

static inline void prefetch_tensor(struct ggml_tensor *const *tensors, int32_t i, int32_t n) {
    if (i + PREFETCH_TENSORS >= n) return;
    const char *bytes = (const char *)tensors[i + PREFETCH_TENSORS];
    for (size_t k = 0; k < offsetof(struct ggml_tensor, name); k += 64) {
        __builtin_prefetch(bytes + k);
    }
}

static inline bool enter(struct ggml_backend_sched *sched, struct ggml_tensor *tensor,
                         int32_t number) {
    if (!tensor || !sched_fill(sched, number, tensor)) return false;
    if (item_map_add(&sched->item_ids, sched->items, tensor, number) != number) return false;
    if (!tensor->view_src) return true;
    const int32_t slot = *item_map_find(&sched->item_ids, sched->items, owner_of(tensor));
    if (slot == 0) return false;
    sched->items[number].root = slot - 1;
    return true;
}

static bool follow_leafs(struct walk *walk, const struct ggml_cgraph *graph) {
    struct ggml_backend_sched *sched = walk->sched;
    for (int32_t i = 0; i < graph->n_leafs; ++i) {
        const int32_t number = graph->n_nodes + i;
        prefetch_tensor(graph->leafs, i, graph->n_leafs);
        if (!enter(sched, graph->leafs[i], number)) return false;
        if (walk->places && !sched_place_fixed(sched, number, -1)) return false;
    }
    return true;
}

// Where the list of sources surely ends: most nodes have few.
static inline int end_of_sources(const struct ggml_tensor *tensor) {
    uintptr_t rest = 0;
    for (int k = 3; k < GGML_MAX_SRC; ++k) {
        rest |= (uintptr_t)tensor->src[k];
    }
    return rest == 0 ? 3 : GGML_MAX_SRC;
}

// *out_weight: the first source that is one, or -1.
static inline bool follow_sources(struct ggml_backend_sched *sched, int32_t node,
                                  int32_t *out_weight) {
    struct sched_item *items = sched->items;
    struct ggml_tensor *tensor = items[node].tensor;
    const int32_t root = items[node].root;
    const int end = end_of_sources(tensor);
    struct sched_edge *edge = &sched->edges[sched->n_edges];
    const bool in_place = items[node].traits & SCHED_IN_PLACE;
    bool elsewhere = false; // some source has other memory
    *out_weight = -1;
    for (int k = 0; k < end; ++k) {
        struct ggml_tensor *src = tensor->src[k];
        if (!src || src == tensor) continue; // ggml_cast names its own result
        const int32_t item = *item_map_find(&sched->item_ids, items, src) - 1;
        if (item < 0) return false;
        struct sched_item *source = &items[item];
        if ((source->traits & SCHED_WEIGHT) && *out_weight < 0) *out_weight = item;
        source->traits |= SCHED_USED;
        elsewhere |= source->root != root;
        *edge++ = (struct sched_edge){
            .item = item,
            .entry = source->root,
            .slot = (int16_t)k,
            .same_layout = in_place && same_layout(tensor, src),
        };
    }
    sched->first_edge[node] = sched->n_edges;
    sched->n_edges = (int32_t)(edge - sched->edges);
    if (!elsewhere && (items[node].traits & SCHED_VIEW_OP)) items[node].traits |= SCHED_PLAIN_VIEW;
    return true;
}

// What is tied to a place, and else what follows the node before: see place.c.
static inline bool place(struct walk *walk, int32_t node, int32_t weight) {
    struct ggml_backend_sched *sched = walk->sched;
    const struct sched_item *item = &sched->items[node];
    if (sched->items[item->root].buft >= 0 || (item->traits & SCHED_INPUT)) {
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

static inline bool room_for_edges(struct ggml_backend_sched *sched) {
    return sched->n_edges + GGML_MAX_SRC <= sched->edges_capacity ||
           sched_grow(&sched->edges, &sched->edges_capacity, (int64_t)sched->n_edges + GGML_MAX_SRC,
                      sizeof(sched->edges[0]));
}

bool sched_follow(struct ggml_backend_sched *sched, const struct ggml_cgraph *graph) {
    struct walk walk = {.sched = sched, .current = -1, .places = sched->n_pins == 0};
    sched->is_spread = walk.places;
    if (!follow_leafs(&walk, graph)) return false;
    for (int32_t i = 0; i < graph->n_nodes; ++i) {
        int32_t weight;
        prefetch_tensor(graph->nodes, i, graph->n_nodes);
        if (!enter(sched, graph->nodes[i], i)) return false;
        sched->n_early += (sched->items[i].traits & SCHED_EARLY) != 0;
        if (!room_for_edges(sched) || !follow_sources(sched, i, &weight)) return false;
        if (walk.places && !place(&walk, i, weight)) return false;
    }
    return true;
}
