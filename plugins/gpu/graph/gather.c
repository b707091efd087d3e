// SPDX-License-Identifier: MIT
// Nodes that one launch could compute are brought next to each other: what they need and stands
// between them goes first, the rest follows.
#include "gpu/graph/order.h"
#include "gpu/graph/plan.h"

#include <string.h>

// Bounds that keep the pass linear, and the memory near to what it was: a node that is moved ahead
// keeps its result for as many launches as it overtakes.
enum {
    MAX_SPAN = 64, // places from the first to the last
    MAX_AHEAD =
        12, // launches that may have to go first: what the first ones read lives on meanwhile
};

struct gathering {
    struct gpu_order *order;
    struct gpu_plan *plan;
    int idxs[GPU_MAX_FUSED];
    int n;
    int32_t first, last; // places
};

static bool is_free(const struct gpu_order *order, int32_t node) {
    return order->unit[node] == node && order->size[node] == 1;
}

static const struct ggml_tensor *node_of(const struct gathering *g, int32_t number) {
    return g->order->graph->nodes[number];
}

// --- who belongs together

// Follows the only reader of each node, as long as it may be the next node of the fusion.
static void find_chain(struct gathering *g, const struct gpu_fusion *fusion, int32_t first) {
    int32_t node = first;
    g->n = 0;
    while (node >= 0 && is_free(g->order, node) &&
           gpu_fusion_takes(fusion, g->n, node_of(g, node))) {
        g->idxs[g->n++] = node;
        node = g->order->depend->user[node];
    }
}

// The other nodes, but for the last, are sources of the last.
static void find_join(struct gathering *g, const struct gpu_fusion *fusion, int32_t first) {
    const struct gpu_depend *depend = g->order->depend;
    const int32_t last = depend->user[first];
    int32_t n_before;
    g->n = 0;
    if (last < 0 || !gpu_fusion_takes(fusion, fusion->most - 1, node_of(g, last))) return;
    g->idxs[g->n++] = first;
    const int32_t *before = gpu_depend_before(depend, last, &n_before);
    for (int32_t i = 0; i < n_before; ++i) {
        const int32_t node = before[i];
        if (node <= g->idxs[g->n - 1] || depend->user[node] != last) continue;
        if (g->n < fusion->most - 1 && gpu_fusion_takes(fusion, g->n, node_of(g, node)))
            g->idxs[g->n++] = node;
    }
    if (g->n < fusion->most - 1 || !gpu_fusion_takes(fusion, 0, node_of(g, first))) g->n = 0;
    for (int k = 0; k < g->n; ++k) {
        if (!is_free(g->order, g->idxs[k])) g->n = 0;
    }
    if (g->n > 0 && is_free(g->order, last)) g->idxs[g->n++] = last;
}

// --- where they go

static void find_span(struct gathering *g) {
    g->first = g->last = g->order->place[g->idxs[0]];
    for (int k = 1; k < g->n; ++k) {
        const int32_t place = g->order->place[g->idxs[k]];
        g->first = MIN(g->first, place);
        g->last = MAX(g->last, place);
    }
}

// Marks what the node needs within the span. False: one of the nodes that are gathered.
static bool mark_before(struct gathering *g, int32_t node, int32_t needed, int32_t gathered) {
    struct gpu_order *order = g->order;
    int32_t n;
    const int32_t *before = gpu_depend_before(order->depend, node, &n);
    for (int32_t i = 0; i < n; ++i) {
        if (order->mark[before[i]] == gathered) return false;
        if (order->place[before[i]] >= g->first) order->mark[before[i]] = needed;
    }
    return true;
}

// A unit goes first if one of its nodes must: it stays whole.
static bool mark_unit(struct gathering *g, int32_t unit, int32_t needed, int32_t gathered,
                      int *n_ahead) {
    struct gpu_order *order = g->order;
    const int32_t *nodes = &order->at[order->place[unit]];
    bool is_needed = false, possible = true;
    for (int k = 0; k < order->size[unit]; ++k)
        is_needed |= order->mark[nodes[k]] == needed;
    for (int k = 0; k < order->size[unit] && is_needed && possible; ++k) {
        order->mark[nodes[k]] = needed;
        possible = mark_before(g, nodes[k], needed, gathered);
    }
    *n_ahead += is_needed && gpu_order_launches(order, unit);
    return possible;
}

// Marks the nodes that are gathered, and what they need themselves.
static void mark_gathered(struct gathering *g, int32_t needed, int32_t gathered) {
    struct gpu_order *order = g->order;
    for (int k = 0; k < g->n; ++k) {
        int32_t n;
        const int32_t *before = gpu_depend_before(order->depend, g->idxs[k], &n);
        for (int32_t i = 0; i < n; ++i)
            order->mark[before[i]] = needed;
    }
    for (int k = 0; k < g->n; ++k)
        order->mark[g->idxs[k]] = gathered;
}

// Marks all that must go first, backwards, so that users of a node are met before it.
// The transitive predecessors within the span, found in one walk backwards since predecessors stand
// before. Stamps instead of flags: marks need no clearing between two fusions.
static bool mark_needed(struct gathering *g, int32_t needed, int32_t gathered) {
    struct gpu_order *order = g->order;
    int n_ahead = 0;
    mark_gathered(g, needed, gathered);
    for (int32_t p = g->last; p >= g->first; --p) {
        const int32_t unit = order->unit[order->at[p]];
        if (order->mark[order->at[p]] == gathered) continue;
        if (!mark_unit(g, unit, needed, gathered, &n_ahead) || n_ahead > MAX_AHEAD) return false;
        p = order->place[unit];
    }
    return true;
}

// Stable partition of the span: needed, gathered, the rest. Nothing of the rest is needed by what
// now stands before it, so that the order stays a topological one.
static void move(struct gathering *g, int32_t needed, int32_t gathered) {
    struct gpu_order *order = g->order;
    const int32_t n = g->last - g->first + 1;
    int32_t to = g->first, *old = order->spare;
    memcpy(old, &order->at[g->first], (size_t)n * sizeof(*old));
    for (int32_t i = 0; i < n; ++i) {
        if (order->mark[old[i]] == needed) order->at[to++] = old[i];
    }
    for (int k = 0; k < g->n; ++k)
        order->at[to++] = g->idxs[k];
    for (int32_t i = 0; i < n; ++i) {
        if (order->mark[old[i]] != needed && order->mark[old[i]] != gathered)
            order->at[to++] = old[i];
    }
    for (int32_t p = g->first; p <= g->last; ++p)
        order->place[order->at[p]] = p;
}

static bool bring_together(struct gathering *g, int *n_moved) {
    find_span(g);
    const int32_t span = g->last - g->first + 1;
    if (span > MAX_SPAN) return false;
    if (span > g->n) {
        const int32_t needed = ++g->order->stamp, gathered = ++g->order->stamp;
        if (!mark_needed(g, needed, gathered)) return false;
        move(g, needed, gathered);
        ++*n_moved;
    }
    const int32_t head = span > g->n ? g->idxs[0] : g->order->at[g->first];
    for (int k = 0; k < g->n; ++k)
        g->order->unit[g->idxs[k]] = head;
    g->order->size[head] = g->n;
    return true;
}

// As many as possible: a shorter chain may do where the whole can't be brought together.
static bool gather_by(struct gathering *g, int k, const struct gpu_fusion *fusion, int32_t first,
                      int *n_moved) {
    if (fusion->shape == GPU_FUSION_JOIN)
        find_join(g, fusion, first);
    else
        find_chain(g, fusion, first);
    for (; g->n >= fusion->least; --g->n) {
        g->n = gpu_plan_fuse_ask(g->plan, g->order->graph, k, g->idxs, g->n);
        if (g->n >= fusion->least && bring_together(g, n_moved)) return true;
    }
    return false;
}

// Greedy, in the order of the list: the first fusion that takes a node keeps it. The list is short
// and its chains hardly overlap, so that a search for the best cover would be work for little.
int gpu_order_gather(struct gpu_order *order, struct gpu_plan *plan) {
    struct gathering g = {.order = order, .plan = plan};
    int n_fusions, n_moved = 0;
    const struct gpu_fusion *fusions = gpu_fusions(&n_fusions);
    for (int32_t node = 0; node < order->n; ++node) {
        bool done = !is_free(order, node);
        for (int k = 0; k < n_fusions && !done; ++k) {
            if (fusions[k].ops[0] == order->graph->nodes[node]->op)
                done = gather_by(&g, k, &fusions[k], node, &n_moved);
        }
    }
    return n_moved;
}
