// SPDX-License-Identifier: MIT
// List scheduling by levels, bounded to a window: the scheduler's order is good for memory, so that
// no launch is taken from far away. Time: linear in nodes, sources and the window.
// Launches that may run at once stand next to each other: in waves, between which the device waits.
#include <string.h>

#include "gpu/graph/order.h"

enum {
    LOOK_AHEAD = 24, // launches
    MAX_SPAN = 4 * LOOK_AHEAD,
    NOT_YET = -1,
};

// --- memory

struct tally {
    const struct gpu_depend *depend;
    int32_t *left; // uses to come, by memory
    size_t alive, most;
};

static struct tally tally_begin(struct gpu_order *order) {
    const struct gpu_depend *depend = order->depend;
    memcpy(order->left, depend->n_touches, (size_t)depend->n_memories * sizeof(*order->left));
    return (struct tally){.depend = depend, .left = order->left};
}

// As the allocator does it: a result takes its memory when its node is computed, and gives it back
// after the last node that touches it.
static void tally_add(struct tally *tally, int32_t node) {
    const struct gpu_depend *d = tally->depend;
    tally->alive += d->bytes[node];
    tally->most = MAX(tally->most, tally->alive);
    for (int32_t i = d->first_touched[node]; i < d->first_touched[node + 1]; ++i) {
        const int32_t memory = d->touched[i];
        if (tally->left[memory] > 0 && --tally->left[memory] == 0) tally->alive -= d->bytes[memory];
    }
}

size_t gpu_order_peak(struct gpu_order *order, const int32_t *at) {
    struct tally tally = tally_begin(order);
    for (int32_t p = 0; p < order->n; ++p)
        tally_add(&tally, at[p]);
    return tally.most;
}

// --- waves: marks are the numbers of nodes' waves

// The latest wave that the unit has to wait for, or NOT_YET: one that was not begun.
static int32_t wave_before(const struct gpu_order *order, int32_t unit) {
    const int32_t *nodes = &order->at[order->place[unit]];
    int32_t wave = 0;
    for (int k = 0; k < order->size[unit]; ++k) {
        int32_t n;
        const int32_t *before = gpu_depend_before(order->depend, nodes[k], &n);
        for (int32_t i = 0; i < n; ++i) {
            if (order->unit[before[i]] == unit) continue;
            if (order->mark[before[i]] == NOT_YET) return NOT_YET;
            wave = MAX(wave, order->mark[before[i]]);
        }
    }
    return wave;
}

static void set_wave(struct gpu_order *order, int32_t unit, int32_t wave) {
    const int32_t *nodes = &order->at[order->place[unit]];
    for (int k = 0; k < order->size[unit]; ++k)
        order->mark[nodes[k]] = wave;
}

// What a barrier-per-conflict recording does: a launch that depends on one of the current wave
// begins the next one. A node that launches nothing hands on the wave that it depends on.
int gpu_order_waits(struct gpu_order *order) {
    int32_t wave = 1;
    for (int32_t p = 0; p < order->n; p += order->size[order->at[p]]) {
        const int32_t unit = order->at[p], before = wave_before(order, unit);
        const bool launches = gpu_order_launches(order, unit);
        if (launches && before >= wave) ++wave;
        set_wave(order, unit, launches ? wave : before);
    }
    return wave - 1;
}

// --- another order

struct grouping {
    struct gpu_order *order;
    struct tally tally;
    size_t limit;
    int32_t *at; // the new order
    int32_t n;   // nodes that it has
    int32_t wave;
    int n_launches; // in this wave
};

// The operands of a unit are freed only after it: the limit is checked as if none were.
static bool fits(const struct grouping *g, int32_t unit) {
    const struct gpu_order *order = g->order;
    const int32_t *nodes = &order->at[order->place[unit]];
    size_t bytes = g->tally.alive;
    for (int k = 0; k < order->size[unit]; ++k)
        bytes += order->depend->bytes[nodes[k]];
    return bytes <= g->limit;
}

static void take(struct grouping *g, int32_t unit, int32_t wave) {
    const struct gpu_order *order = g->order;
    const int32_t *nodes = &order->at[order->place[unit]];
    set_wave(g->order, unit, wave);
    for (int k = 0; k < order->size[unit]; ++k) {
        tally_add(&g->tally, nodes[k]);
        g->at[g->n++] = nodes[k];
    }
}

// The first launch is taken in any case: what it needs stands before it.
static void consider(struct grouping *g, int32_t unit) {
    const int32_t before = wave_before(g->order, unit);
    if (before == NOT_YET) return;
    if (!gpu_order_launches(g->order, unit)) {
        take(g, unit, before);
    } else if (before < g->wave && (g->n_launches == 0 || fits(g, unit))) {
        take(g, unit, g->wave);
        g->n_launches++;
    }
}

static void make_wave(struct grouping *g, int32_t first) {
    const struct gpu_order *order = g->order;
    int n_seen = 0;
    for (int32_t p = first; p < order->n && p - first < MAX_SPAN && n_seen < LOOK_AHEAD;) {
        const int32_t unit = order->at[p];
        p += order->size[unit];
        if (order->mark[unit] != NOT_YET) continue;
        n_seen += gpu_order_launches(order, unit);
        consider(g, unit);
    }
}

// Each round begins at the first unit that is left, which can always be taken: all that it needs
// stands before it. So the loop ends.
static int make_waves(struct grouping *g) {
    const struct gpu_order *order = g->order;
    int n_waves = 0;
    for (int32_t i = 0; i < order->n; ++i)
        order->mark[i] = NOT_YET;
    for (int32_t first = 0; first < order->n;) {
        g->wave++;
        g->n_launches = 0;
        const int32_t n = g->n;
        make_wave(g, first);
        GGML_ASSERT(g->n > n); // the first that is left depends on nothing that is left
        n_waves += g->n_launches > 0;
        while (first < order->n && order->mark[order->at[first]] != NOT_YET)
            ++first;
    }
    return n_waves;
}

bool gpu_order_group(struct gpu_order *order, size_t limit) {
    const int n_waits = gpu_order_waits(order);
    struct grouping g = {
        .order = order, .tally = tally_begin(order), .limit = limit, .at = order->spare};
    if (make_waves(&g) - 1 >= n_waits || gpu_order_peak(order, g.at) > limit) return false;
    memcpy(order->at, g.at, (size_t)order->n * sizeof(*order->at));
    for (int32_t p = 0; p < order->n; ++p)
        order->place[order->at[p]] = p;
    return true;
}
