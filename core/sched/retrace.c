// SPDX-License-Identifier: MIT
// A graph that repeats the last one with new tensors, as every step of a generation does: one walk
// compares each tensor with what is known and gives it its place. Nothing is decided anew.
#include "base/mem.h"
#include "base/status.h"
#include "sched/sched.h"

enum { MOST_PATIENCE = 64 };

static inline bool same_memory(const struct ggml_backend_sched *sched,
                               const struct sched_item *item, const struct ggml_tensor *tensor) {
    const bool placed = tensor->buffer || tensor->data;
    if (placed != ((item->traits & SCHED_HAS_MEMORY) != 0)) return false;
    if (!tensor->buffer) return item->buft < 0 && !(item->traits & SCHED_WEIGHT);
    const bool weight = tensor->buffer->usage == GGML_BACKEND_BUFFER_USAGE_WEIGHTS;
    if (weight != ((item->traits & SCHED_WEIGHT) != 0)) return false;
    return tensor->view_src ||
           (item->buft >= 0 && tensor->buffer->buft == sched->bufts[item->buft].buft);
}

// What else uses nodes of a part of another graph may change without the part.
static inline bool is_part(const struct ggml_cgraph *graph) {
    return graph->size == 0;
}

// What its padding refers to isn't compared.
static inline bool is_extended(const struct ggml_tensor *tensor) {
    static const char zero[sizeof(tensor->padding)];
    return memcmp(tensor->padding, zero, sizeof(zero)) != 0;
}

static inline bool same_tensor(const struct ggml_backend_sched *sched, int32_t number,
                               const struct ggml_tensor *tensor) {
    const struct sched_item *item = &sched->items[number];
    const struct sched_known_item *known = &sched->known.items[number];
    if (known->op != (int32_t)tensor->op || known->type != (int32_t)tensor->type ||
        known->flags != tensor->flags || known->view_offs != tensor->view_offs ||
        memcmp(known->ne, tensor->ne, sizeof(known->ne)) != 0 ||
        memcmp(known->nb, tensor->nb, sizeof(known->nb)) != 0 ||
        memcmp(known->op_params, tensor->op_params, sizeof(known->op_params)) != 0 ||
        is_extended(tensor)) {
        return false;
    }
    if (!same_memory(sched, item, tensor)) return false;
    if (!tensor->view_src) return item->root == number;
    const struct ggml_tensor *owner = tensor->view_src;
    if (owner->view_src) owner = owner->view_src;
    return item->root != number && sched->items[item->root].tensor == owner;
}

static inline bool same_sources(const struct ggml_backend_sched *sched, int32_t node,
                                const struct ggml_tensor *tensor) {
    int32_t e = sched->first_edge[node];
    const int32_t end = sched->first_edge[node + 1];
    for (int32_t k = 0; k < GGML_MAX_SRC; ++k) {
        const struct ggml_tensor *src = tensor->src[k];
        if (!src || src == tensor) continue;
        if (e == end || sched->edges[e].slot != k) return false;
        if (sched->items[sched->edges[e].item].tensor != src) return false;
        ++e;
    }
    return e == end;
}

// The range of items that begins at `first` becomes these tensors; answers how many agreed.
static int32_t follow(struct ggml_backend_sched *sched, struct ggml_tensor **tensors, int32_t n,
                      int32_t first) {
    for (int32_t i = 0; i < n; ++i) {
        struct ggml_tensor *tensor = tensors[i];
        if (i + SCHED_FETCH_AHEAD < n) sched_fetch(tensors[i + SCHED_FETCH_AHEAD]);
        if (!tensor || !same_tensor(sched, first + i, tensor)) return i;
        if (first == 0 && !same_sources(sched, i, tensor)) return i;
        sched->items[first + i].tensor = tensor;
        if (sched_bind_item(sched, first + i) != PLAN_USED) return i + 1;
    }
    return -1;
}

// Takes the places back from the first n tensors.
static void leave(const struct ggml_backend_sched *sched, int32_t first, int32_t n) {
    for (int32_t i = first; i < first + n; ++i) {
        const struct sched_item *item = &sched->items[i];
        if (item->traits & SCHED_HAS_MEMORY) continue;
        item->tensor->buffer = NULL;
        item->tensor->data = NULL;
    }
}

static bool repeat_copies(struct ggml_backend_sched *sched) {
    for (int32_t c = 0; c < sched->n_copied; ++c) {
        const struct sched_copy *copy = &sched->copies[c];
        sched->copy_slots[c] =
            sched_duplicate(sched, sched->items[copy->item].tensor, copy->backend, 0);
        if (!sched->copy_slots[c]) return false;
    }
    return sched_bind_copies(sched) == PLAN_USED;
}

static bool repeat_rest(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    sched_next_frame(sched);
    if (!repeat_copies(sched) || !sched_repeat_parts(sched, graph)) return false;
    for (int32_t i = 0; i < sched->n_rewrites; ++i) {
        const struct sched_rewrite *rewrite = &sched->rewrites[i];
        struct ggml_tensor *node = sched->items[rewrite->node].tensor;
        node->src[sched->edges[rewrite->edge].slot] = sched->copy_slots[rewrite->copy];
    }
    return true;
}

static bool may_repeat(const struct ggml_backend_sched *sched, const struct ggml_cgraph *graph) {
    const struct sched_known *known = &sched->known;
    return known->repeatable && sched->n_pins == 0 && !graph->error && !is_part(graph) &&
           graph->n_nodes == known->n_nodes && graph->n_leafs == known->n_leafs;
}

static bool retrace(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    const int32_t n_nodes = graph->n_nodes, n_leafs = graph->n_leafs;
    int32_t nodes_done = 0;
    int32_t leafs_done = follow(sched, graph->leafs, n_leafs, n_nodes);
    if (leafs_done < 0) {
        leafs_done = n_leafs;
        nodes_done = follow(sched, graph->nodes, n_nodes, 0);
        if (nodes_done < 0 && repeat_rest(sched, graph)) return true;
        if (nodes_done < 0) nodes_done = n_nodes;
    }
    leave(sched, n_nodes, leafs_done);
    leave(sched, 0, nodes_done);
    return false;
}

// What was written down about the last graph is of no more use; if it never was, the next time is
// put off.
static void forget(struct sched_known *known) {
    known->repeatable = false;
    if (!known->was_of_use) known->patience = MIN(2 * known->patience, MOST_PATIENCE);
    known->seen = 0;
}

bool sched_retrace(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    struct sched_known *known = &sched->known;
    if (!may_repeat(sched, graph)) {
        if (known->repeatable) forget(known);
        return false;
    }
    sched->in_place = false;
    sched->graph = NULL;
    sched->ids_stale = true;
    if (!sched_reset_buffers(sched) || !retrace(sched, graph)) {
        forget(known); // the arrays are a mixture now
        return false;
    }
    known->was_of_use = true;
    known->patience = 1;
    sched->in_place = true;
    sched->graph = graph;
    sched->graph_uid = graph->uid = ggml_graph_next_uid();
    sched_log(sched, graph);
    return true;
}

// --- remembering

static void remember_item(const struct ggml_tensor *tensor, struct sched_known_item *out) {
    memcpy(out->ne, tensor->ne, sizeof(out->ne));
    memcpy(out->nb, tensor->nb, sizeof(out->nb));
    memcpy(out->op_params, tensor->op_params, sizeof(out->op_params));
    out->view_offs = tensor->view_offs;
    out->flags = tensor->flags;
    out->type = tensor->type;
    out->op = tensor->op;
}

// Whether the graph looks like the one before. It may still differ: sched_retrace() finds out.
static bool looks_alike(struct ggml_backend_sched *sched) {
    struct sched_known *known = &sched->known;
    size_t bytes = 0;
    for (int i = 0; i < sched->galloc->n_pools; ++i) {
        bytes = 31 * bytes + sched->pool_plans[i].most_live;
    }
    const bool alike = known->n_nodes == sched->n_nodes && known->n_leafs == sched->n_leafs &&
                       known->n_edges == sched->n_edges && known->n_splits == sched->n_splits &&
                       known->n_copied == sched->n_copied && known->bytes == bytes;
    known->n_nodes = sched->n_nodes;
    known->n_leafs = sched->n_leafs;
    known->n_edges = sched->n_edges;
    known->n_splits = sched->n_splits;
    known->n_copied = sched->n_copied;
    known->bytes = bytes;
    return alike;
}

void sched_remember(struct ggml_backend_sched *sched) {
    struct sched_known *known = &sched->known;
    known->repeatable = false;
    if (sched->n_copies > 1 || sched->n_pins > 0 || is_part(sched->graph)) return;
    known->seen = looks_alike(sched) ? known->seen + 1 : 0;
    // A walk over leafs and then nodes has to meet everything before it is referred to.
    if (known->seen < known->patience || !sched->in_order) return;
    if (!sched_grow(&known->items, &known->items_capacity, sched->n_items,
                    sizeof(known->items[0]))) {
        return;
    }
    for (int32_t i = 0; i < sched->n_items; ++i) {
        remember_item(sched->items[i].tensor, &known->items[i]);
    }
    known->repeatable = true;
    known->was_of_use = false;
}
