// SPDX-License-Identifier: MIT
// Numbering in one pass, for graphs in topological order, which is what ggml_build_forward_expand()
// makes: whatever a tensor refers to has its number already. So that each tensor is read only once,
// this pass also places the nodes whose stream doesn't depend on later nodes, and records the uses
// that liveness.c needs and that the partition can't change.
#include "sched/classify.h"
#include "sched/reserve.h"

enum { USUAL_SOURCES = 2, BLOCK = 64 };
_Static_assert((GGML_MAX_SRC - USUAL_SOURCES) % 2 == 0, "has_more() reads two at a time");

// The scheduler's arrays, which stay where they are during the walk (but for the edges).
struct walk {
    struct ggml_backend_sched *sched;
    struct sched_value *values;
    struct sched_place *places;
    struct sched_last *last;
    uint8_t *used;
    int32_t *inplace_steps;
    struct tensor_index index;
    int32_t *first_edge;
    struct sched_edge *edges;
    int32_t n_edges, n_inplace_steps;
    int32_t current;    // stream that spreads to the next node, or -1
    int32_t before;     // stream of the last node that computes something, or -1
    bool placing;       // without pins
    bool settling;      // what is placed on the way stays there
    bool uses_recorded; // so far
};

// What a node's sources have in common.
struct sources {
    int32_t weight; // the first that is one, or -1
    int32_t all;    // bits that the numbers of all their streams have
    int32_t any;    // bits that some have
    bool may_take;  // the memory of one
};

static inline int32_t find(const struct walk *walk, const struct ggml_tensor *tensor) {
    return tensor_index_at(&walk->index, sched_list(walk->values), tensor);
}

static inline bool fill(struct walk *walk, struct sched_value *value, size_t *out_size,
                        int32_t number, struct ggml_tensor *tensor) {
    if (UNLIKELY(!tensor) || !sched_fill(walk->sched, value, out_size, number, tensor))
        return false;
    if (LIKELY(!tensor->view_src)) return true;
    value->root = find(walk, owner_of(tensor));
    return value->root != -1;
}

// Member by member: a struct that is copied as a whole is no longer kept in registers.
static inline void store(struct walk *walk, const struct sched_value *value, int32_t number) {
    struct sched_value *to = &walk->values[number];
    to->tensor = value->tensor;
    to->root = value->root;
    to->backend = value->backend;
    to->copies = value->copies;
    to->buft = value->buft;
    to->traits = value->traits;
    to->reason = value->reason;
}

static inline bool enter(struct walk *walk, const struct sched_value *value, int32_t number) {
    int32_t *slot = tensor_index_find(&walk->index, sched_list(walk->values), value->tensor);
    if (UNLIKELY(*slot != 0)) return false; // listed twice
    *slot = number + 1;
    store(walk, value, number);
    return true;
}

static bool follow_leafs(struct walk *walk, const struct ggml_cgraph *graph) {
    struct ggml_backend_sched *sched = walk->sched;
    for (int32_t i = 0; i < graph->n_leafs; ++i) {
        const int32_t number = graph->n_nodes + i;
        struct sched_value value;
        struct sched_place *place = &walk->places[number];
        if (LIKELY(i + SCHED_FETCH_AHEAD < graph->n_leafs))
            sched_fetch(graph->leafs[i + SCHED_FETCH_AHEAD]);
        if (!fill(walk, &value, &place->size, number, graph->leafs[i])) return false;
        place->pool = -1;
        if (walk->placing && value.buft >= 0) {
            value.backend = sched->bufts[value.buft].first_reader;
            value.reason = SCHED_REASON_BUFFER;
        }
        if (!enter(walk, &value, number)) return false;
        if (value.backend >= 0 && !(value.traits & SCHED_OUTPUT)) continue;
        sched->unassigned[sched->n_unassigned++] = number;
        if (walk->placing && value.backend < 0 && !sched_place_fixed(sched, number, -1))
            return false;
    }
    return true;
}

static inline bool follow_source(struct walk *walk, const struct sched_value *value, int32_t node,
                                 int k, struct sources *sources) {
    const struct ggml_tensor *tensor = value->tensor, *src = tensor->src[k];
    if (!src) return true;
    const int32_t number = find(walk, src);
    if (UNLIKELY(number == -1)) return src == tensor; // ggml_cast names its own result
    // Numbers are not negative from here on, and as unsigned ones need no sign extension.
    const struct sched_value *source = &walk->values[(uint32_t)number];
    const int32_t root = source->root;
    struct sched_last *last = &walk->last[(uint32_t)root];
    const int32_t e = walk->n_edges++;
    struct sched_edge *edge = &walk->edges[(uint32_t)e];
    const bool same = (value->traits & SCHED_IN_PLACE) && same_layout(tensor, src);
    if (sources->weight < 0 && (source->traits & SCHED_WEIGHT)) sources->weight = number;
    sources->all &= source->backend;
    sources->any |= source->backend;
    sources->may_take |= same;
    walk->used[(uint32_t)number] = 1;
    edge->value = number;
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

static inline bool follow_sources(struct walk *walk, const struct sched_value *value, int32_t node,
                                  struct sources *sources) {
    struct ggml_tensor *const *src = value->tensor->src;
    const bool more = has_more(src);
    if (!follow_source(walk, value, node, 0, sources)) return false; // USUAL_SOURCES times
    if (!follow_source(walk, value, node, 1, sources)) return false;
    if (!UNLIKELY(more)) return true;
    for (int k = USUAL_SOURCES; k < GGML_MAX_SRC; ++k) {
        if (!follow_source(walk, value, node, k, sources)) return false;
    }
    return true;
}

static inline bool is_plain_view(const struct walk *walk, const struct sched_value *value,
                                 int32_t node) {
    bool plain = true;
    for (int32_t e = walk->first_edge[node]; e < walk->n_edges; ++e) {
        plain &= walk->edges[e].entry == value->root;
    }
    return plain;
}

// Asks a device that has not been asked about the node.
static inline bool ask(const struct walk *walk, const struct sched_value *value, int32_t node,
                       int32_t backend) {
    const bool answer =
        (value->traits & SCHED_NO_OP) || sched_ask(walk->sched, value->tensor, backend);
    // What is placed for good is not asked about again.
    if (UNLIKELY(!answer || !walk->settling)) sched_note_answer(walk->sched, node, backend, answer);
    return answer;
}

static inline bool place_fixed(struct walk *walk, struct sched_value *value, int32_t node,
                               int32_t weight) {
    store(walk, value, node);
    if (!sched_place_fixed(walk->sched, node, weight)) return false;
    value->backend = walk->values[node].backend;
    value->reason = walk->values[node].reason;
    return true;
}

static inline void place_by_weight(struct walk *walk, struct sched_value *value, int32_t node,
                                   int32_t weight) {
    struct ggml_backend_sched *sched = walk->sched;
    const int32_t buft = walk->values[walk->values[weight].root].buft;
    const int32_t reader = buft >= 0 ? sched->bufts[buft].first_reader : -1;
    const bool may_offload = sched->op_offload && reader == sched->n_backends - 1;
    if (reader >= 0 && !may_offload && ask(walk, value, node, reader)) {
        value->backend = reader;
        value->reason = SCHED_REASON_WEIGHT;
    } else {
        store(walk, value, node);
        sched_place_by_weight(sched, node, weight);
        value->backend = walk->values[node].backend;
        value->reason = walk->values[node].reason;
    }
}

static inline void place_view(struct walk *walk, struct sched_value *value, int32_t node) {
    if (!is_plain_view(walk, value, node)) return;
    value->traits |= SCHED_PLAIN_VIEW;
    if (!walk->settling || value->backend >= 0) return;
    value->backend = walk->values[value->root].backend;
    value->reason = SCHED_REASON_VIEW;
}

// Hands on the stream that the node before is on.
static inline void place_next(struct walk *walk, struct sched_value *value, int32_t node,
                              int32_t weight) {
    struct ggml_backend_sched *sched = walk->sched;
    const int32_t current = walk->current;
    if (value->backend >= 0) {
        walk->current = value->backend == sched->n_backends - 1 ? -1 : value->backend;
    } else if (current >= 0 && (weight >= 0 ? sched_supports(sched, node, current)
                                            : ask(walk, value, node, current))) {
        value->backend = current;
        value->reason = SCHED_REASON_NEIGHBOUR;
    } else {
        sched_note_unplaced(sched, node);
    }
}

// What is tied to a place, and else what follows the node before: see place.c.
static inline bool place(struct walk *walk, struct sched_value *value, int32_t node,
                         int32_t weight) {
    const int32_t buft = value->root == node ? value->buft : walk->values[value->root].buft;
    if (UNLIKELY(buft >= 0 || (value->traits & SCHED_INPUT))) {
        if (!place_fixed(walk, value, node, weight)) return false;
    } else if (weight >= 0 && !(value->traits & SCHED_DETACHED)) {
        place_by_weight(walk, value, node, weight);
    }
    if (value->traits & SCHED_VIEW_OP) {
        place_view(walk, value, node);
    } else {
        place_next(walk, value, node, weight);
    }
    return true;
}

// Notes what sched_find_liveness() needs, unless it has to look at the node again.
static inline bool note(struct walk *walk, const struct sched_value *value, int32_t node,
                        const struct sources *sources) {
    struct ggml_backend_sched *sched = walk->sched;
    const int32_t backend = value->backend;
    const bool is_early = (value->traits & SCHED_EARLY) != 0;
    const int32_t differing = (walk->before ^ backend) | (sources->all ^ backend) |
                              (sources->any ^ backend) | (value->traits & SCHED_EARLY);
    const bool goes_on = differing == 0 && backend >= 0;
    if (!(value->traits & SCHED_VIEW_OP)) walk->before = backend;
    if (UNLIKELY(!goes_on)) sched->boundaries[sched->n_boundaries++] = node;
    if (value->root != node) {
        // Cutting could not go back behind a use that is no edge.
        walk->uses_recorded &= walk->last[value->root].step == node;
        return true;
    }
    if (!sched_needs_place(value)) return true;
    if (UNLIKELY(is_early)) {
        walk->last[node].step = node; // is written even if nobody reads it
    } else if (sources->may_take) {
        walk->inplace_steps[walk->n_inplace_steps++] = node;
    }
    return UNLIKELY(!goes_on) ||
           sched_reserve_entry(sched, &walk->places[node], value->tensor, backend, node);
}

static inline bool follow_node(struct walk *walk, struct ggml_tensor *tensor, int32_t node) {
    struct sched_value value;
    struct sched_place *place_of = &walk->places[node];
    struct sources sources = {.weight = -1, .all = -1};
    if (!fill(walk, &value, &place_of->size, node, tensor)) return false;
    place_of->pool = -1;
    walk->first_edge[node] = walk->n_edges;
    if (!follow_sources(walk, &value, node, &sources)) return false;
    if (LIKELY(walk->placing) && !place(walk, &value, node, sources.weight)) return false;
    if (!enter(walk, &value, node)) return false;
    return UNLIKELY(!walk->settling) || note(walk, &value, node, &sources);
}

// There is room for their edges.
static bool follow_nodes(struct walk *shared, struct ggml_tensor *const *nodes, int32_t begin,
                         int32_t end) {
    struct walk walk = *shared; // which nothing else points to: it can be kept in registers
    const int32_t n_nodes = walk.sched->n_nodes;
    bool good = true;
    for (int32_t i = begin; i < end && good; ++i) {
        if (LIKELY(i + SCHED_FETCH_AHEAD < n_nodes)) sched_fetch(nodes[i + SCHED_FETCH_AHEAD]);
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

bool sched_number_in_order(struct ggml_backend_sched *sched, const struct ggml_cgraph *graph) {
    const bool placing = sched->n_pins == 0;
    const size_t n = (size_t)graph->n_nodes + (size_t)graph->n_leafs;
    struct walk walk = {
        .sched = sched,
        .values = sched->values,
        .places = sched->places,
        .last = sched->last,
        .used = sched->used,
        .inplace_steps = sched->inplace_steps,
        .first_edge = sched->first_edge,
        .index = sched->value_ids,
        .current = -1,
        .before = -1,
        .placing = placing,
        .settling =
            placing && !sched->shares_pools && !sched->figures && sched->pipeline_depth == 1,
    };
    walk.uses_recorded = walk.settling;
    // Nothing is used yet: -1 and SCHED_NOT_USED.
    if (n > 0) memset(sched->last, 0xFF, n * sizeof(sched->last[0]));
    const bool good = follow_all(&walk, graph);
    sched->is_spread = walk.placing;
    sched->uses_recorded = walk.uses_recorded;
    sched->n_edges = walk.n_edges;
    sched->n_inplace_steps = walk.n_inplace_steps;
    sched->value_ids.count = n;
    return good;
}
