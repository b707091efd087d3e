// SPDX-License-Identifier: MIT
// Numbers a graph that stands in the order of its uses, as graphs do that were built as usual: what
// a tensor refers to has its number already. As each tensor is read only once, nodes are placed on
// the way as far as that depends on nothing behind them.
#include "sched/fill.h"

enum { USUAL_SOURCES = 3, BLOCK = 64 };

// The scheduler's arrays, which stay where they are during the walk (but for the edges).
struct walk {
    struct ggml_backend_sched *sched;
    struct sched_item *items;
    struct sched_place *places;
    struct item_map map;
    int32_t *first_edge;
    struct sched_edge *edges;
    int32_t n_edges;
    int32_t current; // stream that spreads to the next node, or -1
    bool placing;    // without pins
    bool settling;   // what is placed on the way stays there
};

// What a node's sources have in common.
struct sources {
    int32_t weight;  // the first that is one, or -1
    int32_t backend; // of the first; -1: none
    int32_t mixed;   // 0: all have the same
    bool elsewhere;  // some has other memory than the node
};

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
    struct ggml_backend_sched *sched = walk->sched;
    for (int32_t i = 0; i < graph->n_leafs; ++i) {
        const int32_t number = graph->n_nodes + i;
        if (i + SCHED_FETCH_AHEAD < graph->n_leafs) sched_fetch(graph->leafs[i + SCHED_FETCH_AHEAD]);
        if (!enter(walk, graph->leafs[i], number)) return false;
        if (!walk->placing) continue;
        const int32_t buft = walk->items[number].buft;
        const int32_t reader = buft >= 0 ? sched->bufts[buft].first_reader : -1;
        if (reader >= 0) {
            sched_assign(sched, number, reader, SCHED_REASON_BUFFER);
        } else if (!sched_place_fixed(sched, number, -1)) {
            return false;
        }
    }
    return true;
}

static inline bool follow_source(struct walk *walk, const struct sched_item *item, int k,
                                 struct sources *sources) {
    const struct ggml_tensor *tensor = item->tensor, *src = tensor->src[k];
    if (!src || src == tensor) return true; // ggml_cast names its own result
    const int32_t number = *item_map_find(&walk->map, walk->items, src) - 1;
    if (number < 0) return false;
    struct sched_item *source = &walk->items[number];
    if ((source->traits & SCHED_WEIGHT) && sources->weight < 0) sources->weight = number;
    if (sources->backend < 0) sources->backend = source->backend;
    sources->mixed |= sources->backend ^ source->backend;
    sources->elsewhere |= source->root != item->root;
    source->traits |= SCHED_USED;
    walk->edges[walk->n_edges++] = (struct sched_edge){
        .item = number,
        .entry = source->root,
        .slot = (int16_t)k,
        .same_layout = (item->traits & SCHED_IN_PLACE) && same_layout(tensor, src),
    };
    return true;
}

static inline bool follow_sources(struct walk *walk, struct sched_item *item,
                                  struct sources *sources) {
    const struct ggml_tensor *tensor = item->tensor;
    uintptr_t rest = 0; // other than 0: there are more than usual
    for (int k = USUAL_SOURCES; k < GGML_MAX_SRC; ++k) {
        rest |= (uintptr_t)tensor->src[k];
    }
    bool good = follow_source(walk, item, 0, sources) && follow_source(walk, item, 1, sources) &&
                follow_source(walk, item, 2, sources);
    for (int k = USUAL_SOURCES; rest != 0 && k < GGML_MAX_SRC && good; ++k) {
        good = follow_source(walk, item, k, sources);
    }
    if (!sources->elsewhere && (item->traits & SCHED_VIEW_OP)) item->traits |= SCHED_PLAIN_VIEW;
    return good;
}

// As sched_place_by_weight(), for a node that no device was asked about yet.
static inline void place_by_weight(struct ggml_backend_sched *sched, int32_t node, int32_t weight) {
    const int32_t buft = sched->items[sched->items[weight].root].buft;
    const int32_t reader = buft >= 0 ? sched->bufts[buft].first_reader : -1;
    const bool may_offload = sched->op_offload && reader == sched->n_backends - 1;
    if (reader >= 0 && !may_offload && sched_ask(sched, node, reader)) {
        sched_assign(sched, node, reader, SCHED_REASON_WEIGHT);
    } else {
        sched_place_by_weight(sched, node, weight);
    }
}

// What is tied to a place, and else what follows the node before: see place.c.
static inline bool place(struct walk *walk, int32_t node, int32_t weight) {
    struct ggml_backend_sched *sched = walk->sched;
    struct sched_item *item = &walk->items[node];
    const struct sched_item *root = &walk->items[item->root];
    if (root->buft >= 0 || (item->traits & SCHED_INPUT)) {
        if (!sched_place_fixed(sched, node, weight)) return false;
    } else if (weight >= 0 && !(item->traits & SCHED_DETACHED)) {
        place_by_weight(sched, node, weight);
    }
    if (item->traits & SCHED_VIEW_OP) {
        if (!walk->settling || item->backend >= 0 || !(item->traits & SCHED_PLAIN_VIEW)) return true;
        item->backend = root->backend;
        item->reason = SCHED_REASON_VIEW;
    } else if (item->backend >= 0) {
        walk->current = item->backend == sched->n_backends - 1 ? -1 : item->backend;
    } else if (walk->current >= 0 && sched_supports(sched, node, walk->current)) {
        item->backend = walk->current;
        item->reason = SCHED_REASON_NEIGHBOUR;
    } else {
        sched_note_unplaced(sched, node);
    }
    return true;
}

static inline bool follow_node(struct walk *walk, struct ggml_tensor *tensor, int32_t node) {
    struct sched_item *item = &walk->items[node];
    struct sources sources = {.weight = -1, .backend = -1};
    if (!enter(walk, tensor, node)) return false;
    walk->first_edge[node] = walk->n_edges;
    if (!follow_sources(walk, item, &sources)) return false;
    if (!walk->placing) return true;
    if (!place(walk, node, sources.weight)) return false;
    const bool local = sources.mixed == 0 && sources.backend == item->backend;
    if (local && item->backend >= 0 && walk->settling) item->traits |= SCHED_LOCAL;
    return true;
}

// There is room for their edges.
static bool follow_nodes(struct walk *shared, struct ggml_tensor *const *nodes, int32_t begin,
                         int32_t end) {
    struct walk walk = *shared; // which nothing else points to: it can be kept in registers
    const int32_t n_nodes = walk.sched->n_nodes;
    bool good = true;
    for (int32_t i = begin; i < end && good; ++i) {
        if (i + SCHED_FETCH_AHEAD < n_nodes) sched_fetch(nodes[i + SCHED_FETCH_AHEAD]);
        good = follow_node(&walk, nodes[i], i);
    }
    *shared = walk;
    return good;
}

static bool follow_all(struct walk *walk, const struct ggml_cgraph *graph) {
    struct ggml_backend_sched *sched = walk->sched;
    bool good = follow_leafs(walk, graph);
    for (int32_t i = 0; i < graph->n_nodes && good; i += BLOCK) {
        const int64_t n_edges = (int64_t)walk->n_edges + BLOCK * GGML_MAX_SRC;
        if (!sched_grow(&sched->edges, &sched->edges_capacity, n_edges, sizeof(sched->edges[0]))) {
            return false;
        }
        walk->edges = sched->edges;
        good = follow_nodes(walk, graph->nodes, i, MIN(i + BLOCK, graph->n_nodes));
    }
    return good;
}

bool sched_follow(struct ggml_backend_sched *sched, const struct ggml_cgraph *graph) {
    const bool placing = sched->n_pins == 0;
    struct walk walk = {
        .sched = sched,
        .items = sched->items,
        .places = sched->places,
        .first_edge = sched->first_edge,
        .map = sched->item_ids,
        .current = -1,
        .placing = placing,
        .settling = placing && !sched->shares_pools && !sched->figures && sched->n_copies == 1,
    };
    const bool good = follow_all(&walk, graph);
    sched->is_spread = walk.placing;
    sched->n_edges = walk.n_edges;
    sched->item_ids.count = (size_t)graph->n_nodes + (size_t)graph->n_leafs;
    return good;
}
