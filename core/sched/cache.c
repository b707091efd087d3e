// SPDX-License-Identifier: MIT
// The plan that the buffers were made for and how quick planning succeeded, kept for the next
// graph; and whether anything is kept. replay.c keeps the graph itself.
#include "sched/cache.h"

#include "base/env.h"
#include "base/mem.h"
#include "sched/sched.h"

bool sched_caches_begin(struct sched_caches *caches, int n_pools) {
    const char *setting = ggml_env(GGML_ENV_GGML_SCHED_CACHE);
    caches->off = setting && strcmp(setting, "0") == 0;
    caches->graph.backoff = 1;
    caches->hints = ggml_mem_calloc((size_t)n_pools, sizeof(caches->hints[0]));
    return caches->hints != NULL;
}

void sched_caches_free(struct sched_caches *caches) {
    ggml_mem_free(caches->graph.values);
    ggml_mem_free(caches->plan.places);
    ggml_mem_free(caches->plan.last);
    ggml_mem_free(caches->hints);
}

void sched_caches_learn(struct sched_caches *caches, int pool, const struct memory_quick *quick) {
    struct sched_pool_hint *hint = &caches->hints[pool];
    if (caches->off) return;
    hint->policy = quick->policy;
    if (memory_quick_uses_capacity(quick)) hint->capacity = quick->capacity;
}

// An entry that is smaller than the saved one leaves a gap but overlaps nothing.
static bool same_life(const struct ggml_backend_sched *sched, int32_t entry) {
    const struct live_place *now = &sched->live.places[entry],
                            *then = &sched->caches.plan.places[entry];
    return now->pool == then->pool &&
           (now->pool < 0 ||
            (now->first == then->first && now->from == then->from && now->size <= then->size &&
             sched->live.last[entry].step == sched->caches.plan.last[entry].step));
}

bool sched_use_saved_plan(struct ggml_backend_sched *sched) {
    const struct sched_saved_plan *saved = &sched->caches.plan;
    const int32_t n = sched_entry_count(sched);
    if (!saved->valid || saved->n_entries != n) return false;
    for (int32_t i = 0; i < n; ++i) {
        if (!same_life(sched, i)) return false;
    }
    for (int32_t i = 0; i < n; ++i) {
        sched->live.places[i].chunk = saved->places[i].chunk;
        sched->live.places[i].offset = saved->places[i].offset;
    }
    return true;
}

void sched_save_plan(struct ggml_backend_sched *sched) {
    struct sched_saved_plan *saved = &sched->caches.plan;
    const int32_t n = sched_entry_count(sched);
    if (sched->caches.off) return;
    saved->valid =
        sched_grow(&saved->places, &saved->places_capacity, (int64_t)n + 1,
                   sizeof(saved->places[0])) &&
        sched_grow(&saved->last, &saved->last_capacity, (int64_t)n + 1, sizeof(saved->last[0]));
    if (!saved->valid) return;
    saved->n_entries = n;
    memcpy(saved->places, sched->live.places, (size_t)n * sizeof(saved->places[0]));
    memcpy(saved->last, sched->live.last, (size_t)n * sizeof(saved->last[0]));
}
