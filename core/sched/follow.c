// SPDX-License-Identifier: MIT
// Numbers a graph that stands in the order of its uses, as graphs do that were built as usual: what
// a tensor refers to has its number already. As each tensor is read only once, nodes are placed on
// the way as far as that depends on nothing behind them, and what lives.c needs is noted as far as
// cutting can't change it.
#include "sched/fill.h"
#include "sched/settle.h"

enum { USUAL_SOURCES = 2, BLOCK = 64 };
_Static_assert((GGML_MAX_SRC - USUAL_SOURCES) % 2 == 0, "has_more() reads two at a time");

// The scheduler's arrays, which stay where they are during the walk (but for the edges).
struct walk {
    struct ggml_backend_sched *sched;
    struct sched_item *items;
    struct sched_place *places;
    struct sched_last *last;
    uint8_t *used;
    int32_t *takers;
    struct tensor_index index;
    int32_t *first_edge;
    struct sched_edge *edges;
    int32_t n_edges, n_takers;
    int32_t current; // stream that spreads to the next node, or -1
    int32_t before;  // stream of the last node that computes something, or -1
    bool placing;    // without pins
    bool settling;   // what is placed on the way stays there
    bool is_noted;   // so far
};

// What a node's sources have in common.
struct sources {
    int32_t weight; // the first that is one, or -1
    int32_t all;    // bits that the numbers of all their streams have
    int32_t any;    // bits that some have
    bool may_take;  // the memory of one
};

static inline int32_t find(const struct walk *walk, const struct ggml_tensor *tensor) {
    return tensor_index_at(&walk->index, sched_list(walk->items), tensor);
}

static inline bool fill(struct walk *walk, struct sched_item *item, size_t *out_size,
                        int32_t number, struct ggml_tensor *tensor) {
    if (RARELY(!tensor) || !sched_fill(walk->sched, item, out_size, number, tensor)) return false;
    if (MOSTLY(!tensor->view_src)) return true;
    item->root = find(walk, owner_of(tensor));
    return item->root != -1;
}

// Member by member: a struct that is copied as a whole is no longer kept in registers.
static inline void store(struct walk *walk, const struct sched_item *item, int32_t number) {
    struct sched_item *to = &walk->items[number];
    to->tensor = item->tensor;
    to->root = item->root;
    to->backend = item->backend;
    to->copies = item->copies;
    to->buft = item->buft;
    to->traits = item->traits;
    to->reason = item->reason;
}

static inline bool enter(struct walk *walk, const struct sched_item *item, int32_t number) {
    int32_t *slot = tensor_index_find(&walk->index, sched_list(walk->items), item->tensor);
    if (RARELY(*slot != 0)) return false; // listed twice
    *slot = number + 1;
    store(walk, item, number);
    return true;
}

static bool follow_leafs(struct walk *walk, const struct ggml_cgraph *graph) {
    struct ggml_backend_sched *sched = walk->sched;
    for (int32_t i = 0; i < graph->n_leafs; ++i) {
        const int32_t number = graph->n_nodes + i;
        struct sched_item item;
        struct sched_place *place = &walk->places[number];
        if (MOSTLY(i + SCHED_FETCH_AHEAD < graph->n_leafs))
            sched_fetch(graph->leafs[i + SCHED_FETCH_AHEAD]);
        if (!fill(walk, &item, &place->size, number, graph->leafs[i])) return false;
        place->pool = -1;
        if (walk->placing && item.buft >= 0) {
            item.backend = sched->bufts[item.buft].first_reader;
            item.reason = SCHED_REASON_BUFFER;
        }
        if (!enter(walk, &item, number)) return false;
        if (item.backend >= 0 && !(item.traits & SCHED_OUTPUT)) continue;
        sched->loose[sched->n_loose++] = number;
        if (walk->placing && item.backend < 0 && !sched_place_fixed(sched, number, -1))
            return false;
    }
    return true;
}

static inline bool follow_source(struct walk *walk, const struct sched_item *item, int32_t node,
                                 int k, struct sources *sources) {
    const struct ggml_tensor *tensor = item->tensor, *src = tensor->src[k];
    if (!src) return true;
    const int32_t number = find(walk, src);
    if (RARELY(number == -1)) return src == tensor; // ggml_cast names its own result
    // Numbers are not negative from here on, and as unsigned ones need no sign extension.
    const struct sched_item *source = &walk->items[(uint32_t)number];
    const int32_t root = source->root;
    struct sched_last *last = &walk->last[(uint32_t)root];
    const int32_t e = walk->n_edges++;
    struct sched_edge *edge = &walk->edges[(uint32_t)e];
    const bool same = (item->traits & SCHED_IN_PLACE) && same_layout(tensor, src);
    if (sources->weight < 0 && (source->traits & SCHED_WEIGHT)) sources->weight = number;
    sources->all &= source->backend;
    sources->any |= source->backend;
    sources->may_take |= same;
    walk->used[(uint32_t)number] = 1;
    edge->item = number;
    edge->entry = root;
    edge->before = last->edge;
    edge->slot = (int16_t)k;
    edge->same_layout = same;
    last->step = node;
    last->edge = e;
    return true;
}

// Whether there are more than usual, found in a way of its own: compilers would keep what was read
// for the loop that hardly runs.
static inline bool has_more(struct ggml_tensor *const *src) {
    typedef uintptr_t few __attribute__((vector_size(2 * sizeof(uintptr_t))));
    few rest = {0, 0}, two;
    for (int k = USUAL_SOURCES; k < GGML_MAX_SRC; k += 2) {
        memcpy(&two, &src[k], sizeof(two));
        rest |= two;
    }
    return (rest[0] | rest[1]) != 0;
}

static inline bool follow_sources(struct walk *walk, const struct sched_item *item, int32_t node,
                                  struct sources *sources) {
    struct ggml_tensor *const *src = item->tensor->src;
    const bool more = has_more(src);
    if (!follow_source(walk, item, node, 0, sources)) return false; // USUAL_SOURCES times
    if (!follow_source(walk, item, node, 1, sources)) return false;
    if (!RARELY(more)) return true;
    for (int k = USUAL_SOURCES; k < GGML_MAX_SRC; ++k) {
        if (!follow_source(walk, item, node, k, sources)) return false;
    }
    return true;
}

static inline bool is_plain_view(const struct walk *walk, const struct sched_item *item,
                                 int32_t node) {
    bool plain = true;
    for (int32_t e = walk->first_edge[node]; e < walk->n_edges; ++e) {
        plain &= walk->edges[e].entry == item->root;
    }
    return plain;
}

// Asks a device that has not been asked about the node.
static inline bool ask(const struct walk *walk, const struct sched_item *item, int32_t node,
                       int32_t backend) {
    const bool answer =
        (item->traits & SCHED_NO_OP) || sched_ask(walk->sched, item->tensor, backend);
    // What is placed for good is not asked about again.
    if (RARELY(!answer || !walk->settling)) sched_note_answer(walk->sched, node, backend, answer);
    return answer;
}

static inline bool place_fixed(struct walk *walk, struct sched_item *item, int32_t node,
                               int32_t weight) {
    store(walk, item, node);
    if (!sched_place_fixed(walk->sched, node, weight)) return false;
    item->backend = walk->items[node].backend;
    item->reason = walk->items[node].reason;
    return true;
}

static inline void place_by_weight(struct walk *walk, struct sched_item *item, int32_t node,
                                   int32_t weight) {
    struct ggml_backend_sched *sched = walk->sched;
    const int32_t buft = walk->items[walk->items[weight].root].buft;
    const int32_t reader = buft >= 0 ? sched->bufts[buft].first_reader : -1;
    const bool may_offload = sched->op_offload && reader == sched->n_backends - 1;
    if (reader >= 0 && !may_offload && ask(walk, item, node, reader)) {
        item->backend = reader;
        item->reason = SCHED_REASON_WEIGHT;
    } else {
        store(walk, item, node);
        sched_place_by_weight(sched, node, weight);
        item->backend = walk->items[node].backend;
        item->reason = walk->items[node].reason;
    }
}

static inline void place_view(struct walk *walk, struct sched_item *item, int32_t node) {
    if (!is_plain_view(walk, item, node)) return;
    item->traits |= SCHED_PLAIN_VIEW;
    if (!walk->settling || item->backend >= 0) return;
    item->backend = walk->items[item->root].backend;
    item->reason = SCHED_REASON_VIEW;
}

// Hands on the stream that the node before is on.
static inline void place_next(struct walk *walk, struct sched_item *item, int32_t node,
                              int32_t weight) {
    struct ggml_backend_sched *sched = walk->sched;
    const int32_t current = walk->current;
    if (item->backend >= 0) {
        walk->current = item->backend == sched->n_backends - 1 ? -1 : item->backend;
    } else if (current >= 0 && (weight >= 0 ? sched_supports(sched, node, current)
                                            : ask(walk, item, node, current))) {
        item->backend = current;
        item->reason = SCHED_REASON_NEIGHBOUR;
    } else {
        sched_note_unplaced(sched, node);
    }
}

// What is tied to a place, and else what follows the node before: see place.c.
static inline bool place(struct walk *walk, struct sched_item *item, int32_t node, int32_t weight) {
    const int32_t buft = item->root == node ? item->buft : walk->items[item->root].buft;
    if (RARELY(buft >= 0 || (item->traits & SCHED_INPUT))) {
        if (!place_fixed(walk, item, node, weight)) return false;
    } else if (weight >= 0 && !(item->traits & SCHED_DETACHED)) {
        place_by_weight(walk, item, node, weight);
    }
    if (item->traits & SCHED_VIEW_OP) {
        place_view(walk, item, node);
    } else {
        place_next(walk, item, node, weight);
    }
    return true;
}

// Notes what sched_find_lives() needs, unless it has to look at the node again.
static inline bool note(struct walk *walk, const struct sched_item *item, int32_t node,
                        const struct sources *sources) {
    struct ggml_backend_sched *sched = walk->sched;
    const int32_t backend = item->backend;
    const bool is_early = (item->traits & SCHED_EARLY) != 0;
    const int32_t differing = (walk->before ^ backend) | (sources->all ^ backend) |
                              (sources->any ^ backend) | (item->traits & SCHED_EARLY);
    const bool goes_on = differing == 0 && backend >= 0;
    if (!(item->traits & SCHED_VIEW_OP)) walk->before = backend;
    if (RARELY(!goes_on)) sched->seams[sched->n_seams++] = node;
    if (item->root != node) {
        // Cutting could not go back behind a use that is no edge.
        walk->is_noted &= walk->last[item->root].step == node;
        return true;
    }
    if (!sched_needs_place(item)) return true;
    if (RARELY(is_early)) {
        walk->last[node].step = node; // is written even if nobody reads it
    } else if (sources->may_take) {
        walk->takers[walk->n_takers++] = node;
    }
    return RARELY(!goes_on) ||
           sched_settle(sched, &walk->places[node], item->tensor, backend, node);
}

static inline bool follow_node(struct walk *walk, struct ggml_tensor *tensor, int32_t node) {
    struct sched_item item;
    struct sched_place *place_of = &walk->places[node];
    struct sources sources = {.weight = -1, .all = -1};
    if (!fill(walk, &item, &place_of->size, node, tensor)) return false;
    place_of->pool = -1;
    walk->first_edge[node] = walk->n_edges;
    if (!follow_sources(walk, &item, node, &sources)) return false;
    if (MOSTLY(walk->placing) && !place(walk, &item, node, sources.weight)) return false;
    if (!enter(walk, &item, node)) return false;
    return RARELY(!walk->settling) || note(walk, &item, node, &sources);
}

// There is room for their edges.
static bool follow_nodes(struct walk *shared, struct ggml_tensor *const *nodes, int32_t begin,
                         int32_t end) {
    struct walk walk = *shared; // which nothing else points to: it can be kept in registers
    const int32_t n_nodes = walk.sched->n_nodes;
    bool good = true;
    for (int32_t i = begin; i < end && good; ++i) {
        if (MOSTLY(i + SCHED_FETCH_AHEAD < n_nodes)) sched_fetch(nodes[i + SCHED_FETCH_AHEAD]);
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
    const size_t n = (size_t)graph->n_nodes + (size_t)graph->n_leafs;
    struct walk walk = {
        .sched = sched,
        .items = sched->items,
        .places = sched->places,
        .last = sched->last,
        .used = sched->used,
        .takers = sched->takers,
        .first_edge = sched->first_edge,
        .index = sched->item_ids,
        .current = -1,
        .before = -1,
        .placing = placing,
        .settling = placing && !sched->shares_pools && !sched->figures && sched->n_copies == 1,
    };
    walk.is_noted = walk.settling;
    // Nothing is used yet: -1 and SCHED_NOT_USED.
    if (n > 0) memset(sched->last, 0xFF, n * sizeof(sched->last[0]));
    const bool good = follow_all(&walk, graph);
    sched->is_spread = walk.placing;
    sched->is_noted = walk.is_noted;
    sched->n_edges = walk.n_edges;
    sched->n_takers = walk.n_takers;
    sched->item_ids.count = n;
    return good;
}
