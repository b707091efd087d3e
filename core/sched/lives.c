// SPDX-License-Identifier: MIT
// How long the tensors of a split graph live, which take over the memory of a source, and how much
// lives at once. Everything is found by number: entries are the items and, behind them, the copies;
// step k computes the k-th node. One walk goes backwards, so that the first use it meets is the
// last.
#include "base/status.h"
#include "ggml-backend.h"
#include "sched/sched.h"

enum { NEVER = -1 };

struct lives {
    struct ggml_backend_sched *sched;
    struct sched_place *places;
    int32_t *last;
    int32_t *events; // backwards: entries that begin, complements of those that end
    int32_t n_events;
    int32_t later; // pool whose sum is compared at the end of the step
    bool failed;
};

static bool make_room(struct ggml_backend_sched *sched) {
    const int64_t n = (int64_t)sched_entry_count(sched) + 1;
    return sched_grow(&sched->places, &sched->places_capacity, n, sizeof(sched->places[0])) &&
           sched_grow(&sched->last, &sched->last_capacity, n, sizeof(sched->last[0])) &&
           sched_grow(&sched->events, &sched->events_capacity, 2 * n, sizeof(sched->events[0])) &&
           sched_grow(&sched->early, &sched->early_capacity, (int64_t)sched->n_items + 1,
                      sizeof(sched->early[0]));
}

// --- nodes that are needed before they are computed

static void note_need(struct ggml_backend_sched *sched, int32_t node, int32_t entry) {
    const int32_t *computed = sched->last;
    if (entry >= sched->n_nodes || entry == node || computed[entry] < computed[node]) return;
    if (sched->items[entry].traits & SCHED_EARLY) return;
    sched->items[entry].traits |= SCHED_EARLY;
    sched->n_early++;
}

// They have to be there from the start.
static void note_early(struct ggml_backend_sched *sched) {
    const int32_t n = sched->n_nodes;
    for (int32_t step = 0; step < n; ++step) {
        sched->last[sched_item_at(sched, step)] = step; // not used for anything else yet
    }
    for (int32_t i = 0; i < n; ++i) {
        note_need(sched, i, sched->items[i].root);
        for (int32_t e = sched->first_edge[i]; e < sched->first_edge[i + 1]; ++e) {
            note_need(sched, i, sched->items[sched->edges[e].item].root);
        }
    }
}

// --- the walk

static struct ggml_tensor *tensor_of(const struct ggml_backend_sched *sched, int32_t entry) {
    return entry < sched->n_items ? sched->items[entry].tensor
                                  : sched_copy_tensor(sched, entry - sched->n_items);
}

static size_t pad(struct lives *lives, int32_t entry, int32_t pool, size_t bytes) {
    const struct gallocr_pool *memory = &lives->sched->galloc->pools[pool];
    if (memory->buft->iface.get_alloc_size) {
        bytes = ggml_backend_buft_get_alloc_size(memory->buft, tensor_of(lives->sched, entry));
    }
    if (bytes <= SIZE_MAX / 4 - memory->alignment) return GGML_PAD(bytes, memory->alignment);
    ggml_fail(GGML_HOST_OUT_OF_RANGE, "%s: tensor '%s' of %zu bytes is too large",
              lives->sched->function, tensor_of(lives->sched, entry)->name, bytes);
    lives->failed = true;
    return 0;
}

// Stream whose memory the entry needs; -1: none.
static inline int32_t home_of(const struct ggml_backend_sched *sched, int32_t entry) {
    if (entry >= sched->n_items) {
        return sched->n_copies == 1 ? sched->copies[entry - sched->n_items].backend : -1;
    }
    const struct sched_item *item = &sched->items[entry];
    return item->traits & (SCHED_HAS_MEMORY | SCHED_SLOTTED) ? -1 : item->backend;
}

static inline void compare_sums(struct sched_pool_plan *plan) {
    if (plan->live > plan->most_live) plan->most_live = plan->live;
}

static void fail_too_large(struct lives *lives) {
    if (lives->failed) return;
    ggml_fail(GGML_HOST_OUT_OF_RANGE, "%s: the graph needs more memory than has addresses",
              lives->sched->function);
    lives->failed = true;
}

// The entry lives up to this step.
static void end_life(struct lives *lives, int32_t entry, int32_t step) {
    struct ggml_backend_sched *sched = lives->sched;
    const int32_t home = home_of(sched, entry);
    lives->last[entry] = step;
    if (home < 0) return;
    struct sched_place *place = &lives->places[entry];
    if (entry >= sched->n_items) place->size = ggml_nbytes(tensor_of(sched, entry));
    place->pool = sched->galloc->pool_of[home];
    place->size = pad(lives, entry, place->pool, place->size);
    place->chunk = 0;
    place->offset = 0;
    place->first = place->from = -1;
    place->until = step;
    if (step != SCHED_FOREVER) lives->events[lives->n_events++] = ~entry;
    struct sched_pool_plan *plan = &sched->pool_plans[place->pool];
    plan->used = true;
    if (plan->live > SIZE_MAX / 4) {
        fail_too_large(lives);
        return;
    }
    plan->live += place->size;
    if (place->pool != lives->later) compare_sums(plan);
}

static inline void need(struct lives *lives, int32_t entry, int32_t step) {
    if (lives->last[entry] == NEVER) end_life(lives, entry, step);
}

// The source whose memory a node can have: nobody needs it any more, and the node itself reads it
// once. -1: none.
static int32_t find_source(const struct lives *lives, int32_t node, int32_t step) {
    const struct ggml_backend_sched *sched = lives->sched;
    const struct sched_place *place = &lives->places[node];
    const int32_t begin = sched->first_edge[node], end = sched->first_edge[node + 1];
    for (int32_t e = begin; e < end; ++e) {
        const int32_t entry = sched->edges[e].entry;
        const struct sched_place *source = &lives->places[entry];
        if (!sched->edges[e].same_layout || lives->last[entry] != step) continue;
        if (source->pool != place->pool || source->size != place->size) continue;
        int reads = 0;
        for (int32_t other = begin; other < end; ++other) {
            reads += sched->edges[other].entry == entry;
        }
        if (reads == 1) return entry;
    }
    return -1;
}

// Among the latest events.
static void drop_end(struct lives *lives, int32_t entry) {
    int32_t i = lives->n_events - 1;
    while (lives->events[i] != ~entry) {
        --i;
    }
    lives->events[i] = lives->events[--lives->n_events];
}

// The node's own memory begins here, unless it is a source's.
static inline void begin_life(struct lives *lives, int32_t node, int32_t step) {
    struct sched_place *place = &lives->places[node];
    struct sched_pool_plan *plan = &lives->sched->pool_plans[place->pool];
    place->first = step;
    const bool may = lives->sched->items[node].traits & SCHED_IN_PLACE;
    const int32_t source = may ? find_source(lives, node, step) : -1;
    if (source >= 0) {
        place->from = source;
        lives->places[source].until = place->until;
        drop_end(lives, source);
        plan->live -= place->size;
    }
    compare_sums(plan);
    if (source < 0) plan->live -= place->size;
    lives->events[lives->n_events++] = node;
}

static inline void walk_step(struct lives *lives, int32_t node, int32_t step) {
    const struct ggml_backend_sched *sched = lives->sched;
    const struct sched_item *item = &sched->items[node];
    lives->later = -1;
    if (item->root != node) {
        need(lives, item->root, step);
        if (item->traits & SCHED_PLAIN_VIEW) return;
    }
    const bool begins = lives->places[node].pool >= 0 && !(item->traits & SCHED_EARLY);
    if (begins) lives->later = lives->places[node].pool;
    for (int32_t e = sched->first_edge[node]; e < sched->first_edge[node + 1]; ++e) {
        need(lives, sched->edges[e].entry, step);
    }
    if (begins) begin_life(lives, node, step);
}

// Originals are kept until they have been copied: through the first step of the split.
static void keep_originals(struct lives *lives, const struct sched_split *split) {
    const struct ggml_backend_sched *sched = lives->sched;
    lives->later = -1;
    for (int32_t k = 0; k < split->n_inputs; ++k) {
        const int32_t item = sched->copies[sched->inputs[split->first_input + k]].item;
        need(lives, sched->items[item].root, split->i_start);
    }
}

// Backwards: those that live long are to be placed first, as the bottom is theirs.
static void begin_copies(struct lives *lives, const struct sched_split *split) {
    const struct ggml_backend_sched *sched = lives->sched;
    const int32_t *inputs = &sched->inputs[split->first_input];
    struct sched_place *places = &lives->places[sched->n_items];
    int32_t most = split->i_start;
    if (sched->n_copies > 1) return;
    for (int32_t k = 0; k < split->n_inputs; ++k) {
        most = MAX(most, MIN(places[inputs[k]].until, sched->n_nodes));
    }
    const int32_t half = split->i_start + (most - split->i_start) / 2;
    for (int32_t k = 2 * split->n_inputs - 1; k >= 0; --k) {
        const int32_t copy = inputs[k % split->n_inputs];
        if ((places[copy].until >= half) != (k < split->n_inputs)) continue;
        places[copy].first = split->i_start;
        sched->pool_plans[places[copy].pool].live -= places[copy].size;
        lives->events[lives->n_events++] = sched->n_items + copy;
    }
}

static void walk_split(struct lives *lives, const struct sched_split *split) {
    for (int32_t step = split->i_end - 1; step >= split->i_start; --step) {
        if (step == split->i_start) keep_originals(lives, split);
        walk_step(lives, sched_item_at(lives->sched, step), step);
    }
    begin_copies(lives, split);
}

// What is an output, or was made for nobody inside the graph, stays. A view that computes nothing
// only marks a dependency.
static void keep_results(struct lives *lives) {
    const struct ggml_backend_sched *sched = lives->sched;
    for (int32_t k = 0; k < sched->n_results; ++k) {
        const int32_t i = sched->results[k];
        const struct sched_item *item = &sched->items[i];
        const bool marker = item->root != i && (item->traits & SCHED_NO_OP);
        if (!marker || (item->traits & SCHED_OUTPUT)) need(lives, item->root, SCHED_FOREVER);
    }
}

// Lists what has to be there from the start. Leafs that nobody uses stay.
static void list_early(struct lives *lives) {
    struct ggml_backend_sched *sched = lives->sched;
    const bool nodes_too = sched->n_early > 0;
    sched->n_early = 0;
    for (int32_t i = nodes_too ? 0 : sched->n_nodes; i < sched->n_items; ++i) {
        const struct sched_item *item = &sched->items[i];
        if (item->root != i || (i < sched->n_nodes && !(item->traits & SCHED_EARLY))) continue;
        need(lives, i, SCHED_FOREVER);
        if (lives->places[i].pool >= 0) sched->early[sched->n_early++] = i;
    }
}

static void clear(struct lives *lives) {
    struct ggml_backend_sched *sched = lives->sched;
    memset(lives->last, 0xFF, (size_t)sched_entry_count(sched) * sizeof(lives->last[0]));
    for (int32_t c = 0; c < sched->n_copied; ++c) {
        lives->places[sched->n_items + c].pool = -1;
    }
    for (int i = 0; i < sched->galloc->n_pools; ++i) {
        struct sched_pool_plan *plan = &sched->pool_plans[i];
        memory_chunks_free(&plan->chunks);
        plan->live = plan->most_live = 0;
        plan->used = false;
    }
}

bool sched_find_lives(struct ggml_backend_sched *sched) {
    if (!make_room(sched)) return false;
    struct lives lives = {
        .sched = sched,
        .places = sched->places,
        .last = sched->last,
        .events = sched->events,
        .later = -1,
    };
    if (!sched->in_order || sched->reordered) note_early(sched);
    clear(&lives);
    keep_results(&lives);
    for (int32_t s = sched->n_splits - 1; s >= 0 && !lives.failed; --s) {
        walk_split(&lives, &sched->splits[s]);
    }
    lives.later = -1;
    list_early(&lives);
    sched->n_events = lives.n_events;
    return !lives.failed;
}
