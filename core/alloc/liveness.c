// SPDX-License-Identifier: MIT
// Live ranges and takeovers, each by one scan: see liveness.h.
#include "alloc/liveness.h"

#include <string.h>

// Node that is computed at a step.
static inline int32_t node_at(const struct liveness *liveness, int32_t step) {
    return liveness->order ? liveness->order[step] : step;
}

// --- uses

// Notes what a node uses; returns whether it may take over the memory of a source.
static inline bool note_sources(const struct liveness *liveness, int32_t node, int32_t step) {
    struct live_last *last = liveness->last;
    int32_t e = liveness->first_edge[node];
    const int32_t end = liveness->first_edge[node + 1];
    bool may_take = false;
    for (const struct live_edge *edge = &liveness->edges[e]; e < end; ++e, ++edge) {
        last[edge->entry] = (struct live_last){step, e};
        may_take |= edge->same_layout;
    }
    return may_take;
}

// One step of the scan. An entry that lives from before the step takes nothing over then, and is
// written even if all who read it come before.
static inline void note_node(struct liveness *liveness, int32_t node, int32_t step) {
    const struct live_range *range = &liveness->ranges[node];
    const int32_t root = range->root;
    if (root != node) liveness->last[root] = (struct live_last){step, LIVE_VIEWED};
    const bool may_take = note_sources(liveness, node, step);
    if (root != node || range->pool < 0) return;
    if (range->first < step) {
        liveness->last[node] = (struct live_last){step, LIVE_NOT_USED};
    } else if (may_take) {
        liveness->inplace_steps[liveness->n_inplace_steps++] = step;
    }
}

void liveness_find_uses(struct liveness *liveness) {
    memset(liveness->last, 0xFF, (size_t)liveness->n_entries * sizeof(liveness->last[0]));
    liveness->n_inplace_steps = 0;
    for (int32_t step = 0; step < liveness->n_steps; ++step) {
        note_node(liveness, node_at(liveness, step), step);
    }
}

void liveness_extend(struct liveness *liveness, int32_t entry, int32_t step, int32_t reason) {
    struct live_last *last = &liveness->last[entry];
    if (last->step < step) *last = (struct live_last){step, reason};
}

void liveness_keep(struct liveness *liveness, int32_t entry) {
    liveness->last[liveness->ranges[entry].root] = (struct live_last){LIVE_FOREVER, LIVE_NOT_USED};
}

void liveness_keep_unused(struct liveness *liveness, const int32_t *entries, int32_t n) {
    for (int32_t i = 0; i < n; ++i) {
        struct live_last *last = &liveness->last[entries[i]];
        if (last->step < 0) last->step = LIVE_FOREVER;
    }
}

// --- takeovers

// The source whose memory the node can have: no later node needs it, and the node itself reads it
// once. That is never the node's own memory, which is kept if no other node reads it. -1: none.
static int32_t find_source(const struct liveness *liveness, const struct live_range *known,
                           int32_t node) {
    const struct live_range *range = &liveness->ranges[node];
    const struct live_edge *edges = liveness->edges;
    const int32_t begin = liveness->first_edge[node], end = liveness->first_edge[node + 1];
    for (int32_t e = begin; e < end; ++e) {
        const int32_t from = edges[e].entry;
        const struct live_range *source = &liveness->ranges[from];
        if (!edges[e].same_layout || liveness->last[from].edge != e) continue;
        if (known && known[node].from != from) continue;
        if (source->pool != range->pool || source->size != range->size) continue;
        bool twice = false;
        for (int32_t other = begin; other < e; ++other) {
            twice |= edges[other].entry == from;
        }
        if (!twice) return from;
    }
    return -1;
}

// From the end, so that the last use of a node is final when its memory is given to another.
void liveness_find_takeovers(struct liveness *liveness, const struct live_range *known) {
    for (int32_t k = liveness->n_inplace_steps - 1; k >= 0; --k) {
        const int32_t node = node_at(liveness, liveness->inplace_steps[k]);
        const int32_t source = find_source(liveness, known, node);
        if (source < 0) continue;
        liveness->ranges[node].from = source;
        liveness->last[source] = (struct live_last){liveness->last[node].step, LIVE_TAKEN};
    }
}
