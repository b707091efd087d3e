// SPDX-License-Identifier: MIT
// The memory plan of a partitioned graph: an offset for every entry. The quick plan is a free list
// that is walked in execution order, once per policy; core/alloc's offline planner runs only where
// the quick plan needs new memory and exceeds the lower bound (the bytes live at once) by too much.
#include "base/mem.h"
#include "base/status.h"
#include "ggml-backend.h"
#include "sched/sched.h"

// A plan that needs this much more than the lower bound is good enough: 1/50.
enum { GOOD_ENOUGH = 50 };

// --- the quick plan

// Whether a round has nothing more to find out about a pool: another policy needs no more than this
// one by now.
static inline bool is_decided(const struct sched_pool_plan *plan) {
    return plan->settled || plan->quick.peak >= plan->least;
}

// Whether a round can end early, as it can improve no pool.
static bool all_decided(const struct ggml_backend_sched *sched) {
    bool all = true;
    for (int i = 0; i < sched->galloc->n_pools && all; ++i) {
        all = is_decided(&sched->pool_plans[i]);
    }
    return all;
}

// One walk through the steps, as they will be computed. The arrays stay where they are.
struct round {
    const struct ggml_backend_sched *sched;
    const struct sched_value *values;
    struct live_place *places;
    const struct live_last *last;
    const int32_t *first_edge;
    const struct live_edge *edges;
    struct sched_pool_plan *plans;
    bool first; // no pool is decided; sums up what lives at once
    bool too_large;
};

// Copies the pointers of the arrays, which no walk changes.
static struct round round_of(struct ggml_backend_sched *sched, bool first) {
    return (struct round){
        .sched = sched,
        .values = sched->values,
        .places = sched->live.places,
        .last = sched->live.last,
        .first_edge = sched->first_edge,
        .edges = sched->live.edges,
        .plans = sched->pool_plans,
        .first = first,
    };
}

// Sums up the bytes that live at once, the lower bound of the pool. A quarter of the address space
// leaves room for sums of sizes without overflow.
static inline void count(struct round *round, struct sched_pool_plan *plan, size_t size) {
    plan->used = true;
    plan->live += size;
    if (plan->live > plan->most_live) plan->most_live = plan->live;
    round->too_large |= plan->live > SIZE_MAX / 4;
}

// Gives the entry a range of the free list, or that of the entry whose memory it takes over.
static inline void take(struct round *round, int32_t entry) {
    struct live_place *place = &round->places[entry];
    struct sched_pool_plan *plan = &round->plans[place->pool];
    if (!round->first && is_decided(plan)) return;
    if (place->from >= 0) {
        place->offset = round->places[place->from].offset;
    } else {
        const int32_t until = round->last[entry].step;
        const int32_t steps = until == LIVE_FOREVER ? LIVE_FOREVER : until - place->first;
        if (round->first) count(round, plan, place->size);
        place->offset = memory_quick_take(&plan->quick, place->size, steps);
    }
}

// Returns the range to the free list. Where memory is taken over only the last holder does that:
// the last use of the others is LIVE_TAKEN.
static inline void release(struct round *round, int32_t entry) {
    const struct live_place *place = &round->places[entry];
    if (place->pool < 0) return;
    struct sched_pool_plan *plan = &round->plans[place->pool];
    if (!round->first && is_decided(plan)) return;
    if (round->first) plan->live -= place->size;
    memory_quick_release(&plan->quick, place->offset, place->size);
}

// Leafs, tensors that are only mentioned and inputs are set before the graph is computed.
static void take_early(struct round *round) {
    const struct ggml_backend_sched *sched = round->sched;
    const int32_t half = sched->n_nodes / 2;
    for (int pass = 0; pass < 3; ++pass) {
        for (int32_t k = 0; k < sched->live.n_early; ++k) {
            const int32_t entry = sched->live.early[k], until = sched->live.last[entry].step;
            const int class = until == LIVE_FOREVER ? 0 : until >= half ? 1 : 2;
            if (class == pass) take(round, entry);
        }
    }
}

// Those that live long are placed first, as the bottom is theirs.
static void take_copies(struct round *round, const struct sched_split *split) {
    const struct ggml_backend_sched *sched = round->sched;
    if (split->n_inputs == 0) return; // and then the list may be NULL
    const int32_t *inputs = &sched->partition.inputs[split->first_input];
    int32_t most = split->i_start;
    for (int32_t k = 0; k < split->n_inputs; ++k) {
        most = MAX(most, MIN(sched->live.last[sched->n_values + inputs[k]].step, sched->n_nodes));
    }
    const int32_t half = split->i_start + (most - split->i_start) / 2;
    for (int32_t k = 0; k < 2 * split->n_inputs; ++k) {
        const int32_t copy = inputs[k % split->n_inputs], entry = sched->n_values + copy;
        if ((sched->live.last[entry].step >= half) != (k < split->n_inputs)) continue;
        take(round, entry);
    }
}

// A node's own memory is taken before its sources' is released, as it is written while they are
// read.
static inline void walk_step(struct round *round, int32_t node, int32_t step) {
    const struct sched_value *value = &round->values[node];
    if (value->root != node) {
        const struct live_last *use = &round->last[value->root];
        if (use->step == step && use->edge == LIVE_VIEWED) release(round, value->root);
    } else if (round->places[node].pool >= 0 && round->places[node].first == step) {
        take(round, node);
    }
    const int32_t end = round->first_edge[node + 1];
    for (int32_t e = round->first_edge[node]; e < end; ++e) {
        const int32_t entry = round->edges[e].entry;
        if (round->last[entry].edge == e) release(round, entry);
    }
}

// What was kept only to be copied.
static void release_originals(struct round *round, const struct sched_split *split) {
    const struct ggml_backend_sched *sched = round->sched;
    if (split->n_inputs == 0) return; // and then the list may be NULL
    const int32_t *inputs = &sched->partition.inputs[split->first_input];
    for (int32_t k = 0; k < split->n_inputs; ++k) {
        const int32_t root = sched->values[sched->partition.copies[inputs[k]].value].root;
        const struct live_last *use = &sched->live.last[root];
        bool done = use->step != split->i_start || use->edge != LIVE_COPIED;
        for (int32_t other = 0; other < k && !done; ++other) {
            done = sched->values[sched->partition.copies[inputs[other]].value].root == root;
        }
        if (!done) release(round, root);
    }
}

static void walk_steps(struct round *shared, int32_t begin, int32_t end) {
    struct round round = *shared; // which nothing else points to: it can be kept in registers
    const int32_t *order = round.sched->order;
    for (int32_t step = begin; step < end; ++step) {
        walk_step(&round, UNLIKELY(order != NULL) ? order[step] : step, step);
    }
    *shared = round;
}

// Copies are taken before the first step. Originals are released behind it, as their live range
// includes it. Every STEPS_BETWEEN_LOOKS steps it is checked whether the round can end.
static void walk_split(struct round *round, const struct sched_split *split) {
    enum { STEPS_BETWEEN_LOOKS = 64 };
    const struct ggml_backend_sched *sched = round->sched;
    if (sched->pipeline_depth == 1) take_copies(round, split);
    for (int32_t begin = split->i_start; begin < split->i_end;) {
        const bool starts = begin == split->i_start;
        const int32_t end = starts ? begin + 1 : MIN(begin + STEPS_BETWEEN_LOOKS, split->i_end);
        if (round->too_large || (!round->first && all_decided(sched))) return;
        walk_steps(round, begin, end);
        if (starts) release_originals(round, split);
        begin = end;
    }
}

// Places what belongs to pools that are not decided.
static void plan_round(struct round *round) {
    const struct ggml_backend_sched *sched = round->sched;
    take_early(round);
    for (int32_t s = 0; s < sched->partition.n_splits && !round->too_large; ++s) {
        walk_split(round, &sched->partition.splits[s]);
    }
}

// Whether the pool's buffers hold what was planned last.
static bool fits(const struct ggml_backend_sched *sched, int pool) {
    int32_t n;
    const size_t *sizes = sched_planned_chunks(sched, pool, &n);
    return gallocr_pool_fits(&sched->galloc->pools[pool], sizes, n);
}

// Whether there is nothing to gain from a better plan.
static bool is_good(const struct ggml_backend_sched *sched, int pool, bool for_use) {
    const struct sched_pool_plan *plan = &sched->pool_plans[pool];
    if (plan->quick.peak > sched->galloc->pools[pool].chunk_limit) return false;
    return plan->quick.peak <= plan->most_live + plan->most_live / GOOD_ENOUGH ||
           (for_use && fits(sched, pool));
}

// Whether the round had the capacity that is sure to do: what lives at once.
static bool is_exact(const struct sched_pool_plan *plan) {
    return plan->quick.capacity == plan->most_live || !memory_quick_uses_capacity(&plan->quick);
}

// Whether the pool need not be planned again.
static bool settle(struct ggml_backend_sched *sched, int pool, bool for_use) {
    struct sched_pool_plan *plan = &sched->pool_plans[pool];
    if (plan->settled) return true;
    plan->settled = is_good(sched, pool, for_use);
    if (plan->settled) sched_caches_learn(&sched->caches, pool, &plan->quick);
    if (is_exact(plan) && plan->quick.peak < plan->least) {
        plan->least = plan->quick.peak;
        plan->best_policy = plan->quick.policy;
    }
    return plan->settled;
}

// Pools that are not settled try the next policy, in cyclic order from the one that was good last.
static void begin_round(struct ggml_backend_sched *sched, int32_t try, bool known) {
    for (int i = 0; i < sched->galloc->n_pools; ++i) {
        struct sched_pool_plan *plan = &sched->pool_plans[i];
        if (plan->settled) continue;
        const struct sched_pool_hint *hint = &sched->caches.hints[i];
        const int32_t policy = (hint->policy + try) % MEMORY_QUICK_POLICIES;
        memory_quick_begin(&plan->quick, policy, known ? plan->most_live : hint->capacity);
    }
}

// Forgets the last graph's plan.
static void clear(struct ggml_backend_sched *sched) {
    for (int i = 0; i < sched->galloc->n_pools; ++i) {
        struct sched_pool_plan *plan = &sched->pool_plans[i];
        memory_chunks_free(&plan->chunks);
        plan->used = false;
        plan->live = plan->most_live = 0;
        plan->settled = false;
        plan->least = SIZE_MAX;
    }
}

// *out_all: whether all pools are settled. Begins with what was good for the last graph, so that an
// equal one gets equal places and a similar one needs no other round. false with a message.
static bool plan_quickly(struct ggml_backend_sched *sched, bool for_use, bool *out_all) {
    bool known = false; // what lives at once
    clear(sched);
    *out_all = false;
    for (int32_t try = 0; try < MEMORY_QUICK_POLICIES && !*out_all;) {
        struct round round = round_of(sched, !known);
        begin_round(sched, try, known);
        plan_round(&round);
        if (round.too_large) {
            ggml_fail(GGML_HOST_OUT_OF_RANGE, "%s: the graph needs more memory than has addresses",
                      sched->function);
            return false;
        }
        bool exact = true;
        *out_all = true;
        for (int i = 0; i < sched->galloc->n_pools; ++i) {
            const bool settled = settle(sched, i, for_use);
            *out_all &= settled;
            exact &= settled || is_exact(&sched->pool_plans[i]);
        }
        known = true;
        try += exact;
    }
    return true;
}

// --- the thorough plan

// An entry that takes memory over comes behind the one it takes it from.
static void add_blocks(const struct ggml_backend_sched *sched, struct live_blocks *blocks) {
    for (int32_t i = sched->n_nodes; i < sched_entry_count(sched); ++i) {
        live_blocks_add(blocks, i);
    }
    for (int32_t step = 0; step < sched->n_nodes; ++step) {
        live_blocks_add(blocks, sched_value_at(sched, step));
    }
}

// Plans one pool with memory_plan(). false with a message when memory runs out.
static bool plan_thoroughly(struct ggml_backend_sched *sched, int pool) {
    const size_t n = (size_t)sched_entry_count(sched) + 1;
    const size_t limit = sched->galloc->pools[pool].chunk_limit;
    struct live_blocks blocks = {
        .places = sched->live.places, .last = sched->live.last, .pool = pool};
    blocks.blocks = ggml_mem_alloc(n * sizeof(blocks.blocks[0]));
    blocks.block_of = ggml_mem_alloc(n * sizeof(blocks.block_of[0]));
    bool done = blocks.blocks && blocks.block_of;
    if (done) {
        add_blocks(sched, &blocks);
        done = memory_plan(blocks.blocks, blocks.n, limit, &sched->pool_plans[pool].chunks);
    }
    if (done) live_blocks_read(&blocks, sched_entry_count(sched));
    ggml_mem_free(blocks.blocks);
    ggml_mem_free(blocks.block_of);
    if (!done) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to plan %d nodes", sched->function,
                  (int)sched->n_nodes);
    }
    return done;
}

// --- which one

const size_t *sched_planned_chunks(const struct ggml_backend_sched *sched, int pool,
                                   int32_t *out_count) {
    const struct sched_pool_plan *plan = &sched->pool_plans[pool];
    *out_count = plan->chunks.count > 0 ? plan->chunks.count : plan->used;
    return plan->chunks.count > 0 ? plan->chunks.sizes : &plan->quick.peak;
}

// The thorough plan, or the best quick one if that is better after all.
static bool improve(struct ggml_backend_sched *sched, int pool) {
    struct sched_pool_plan *plan = &sched->pool_plans[pool];
    if (!plan_thoroughly(sched, pool)) return false;
    if (plan->least >= memory_chunks_total(&plan->chunks)) return true;
    if (plan->least > sched->galloc->pools[pool].chunk_limit) return true;
    memory_chunks_free(&plan->chunks);
    for (int32_t i = 0; i < sched_entry_count(sched); ++i) {
        if (sched->live.places[i].pool == pool) sched->live.places[i].chunk = 0;
    }
    plan->settled = false;
    plan->least = SIZE_MAX;
    memory_quick_begin(&plan->quick, plan->best_policy, plan->most_live);
    struct round round = round_of(sched, false);
    plan_round(&round);
    plan->settled = true;
    return true;
}

// Pools that no quick plan was good for.
static bool improve_all(struct ggml_backend_sched *sched) {
    bool improved = true;
    for (int i = 0; i < sched->galloc->n_pools; ++i) {
        sched->pool_plans[i].is_open = !sched->pool_plans[i].settled;
        sched->pool_plans[i].settled = true; // rounds of one leave the others alone
    }
    for (int i = 0; i < sched->galloc->n_pools && improved; ++i) {
        if (sched->pool_plans[i].is_open) improved = improve(sched, i);
    }
    return improved;
}

bool sched_plan(struct ggml_backend_sched *sched, bool for_use, bool *out_fits) {
    bool good;
    *out_fits = false;
    if (!plan_quickly(sched, for_use, &good)) return false;
    if (!good && for_use && sched_use_saved_plan(sched)) {
        *out_fits = true;
        return true;
    }
    if (!good && !improve_all(sched)) return false;
    *out_fits = true;
    for (int i = 0; i < sched->galloc->n_pools && *out_fits; ++i) {
        *out_fits = fits(sched, i);
    }
    return true;
}

// --- buffers

bool sched_grow_buffers(struct ggml_backend_sched *sched) {
    sched_wait_all(sched);
    sched->caches.plan.valid = false;
    for (int i = 0; i < sched->galloc->n_pools; ++i) {
        int32_t n;
        const size_t *sizes = sched_planned_chunks(sched, i, &n);
        if (!gallocr_pool_provide(&sched->galloc->pools[i], sizes, n)) return false;
    }
    sched_save_plan(sched);
    return true;
}
