// SPDX-License-Identifier: MIT
// Memory for a split graph: planned anew only when tensors moved or do not fit.
#include "base/mem.h"
#include "base/status.h"
#include "graph/gallocr.h"
#include "sched/sched.h"

// Tensors of the pipeline copies that have no address yet.
static void clear_slots(struct ggml_backend_sched *sched) {
    for (int i = 0; i < sched->slots.n_leafs; ++i) {
        sched->slots.leafs[i]->buffer = NULL;
        sched->slots.leafs[i]->data = NULL;
    }
}

static bool reserve_slots(struct ggml_backend_sched *sched) {
    sched->n_planned_slots = -1;
    if (!ggml_gallocr_reserve_n(sched->slot_galloc, &sched->slots, NULL, sched->slot_ids))
        return false;
    sched->n_planned_slots = sched->slots.n_leafs;
    sched->slots_changed = false;
    return true;
}

static bool allocate_slots(struct ggml_backend_sched *sched) {
    if (!sched->slot_galloc) return true;
    if (sched->n_planned_slots == sched->slots.n_leafs && !sched->slots_changed) {
        const enum plan_result result = graph_plan_use(sched->slot_galloc, &sched->slots);
        if (result != PLAN_DOES_NOT_FIT) return result == PLAN_USED;
    }
    sched_wait_all(sched);
    return reserve_slots(sched) && ggml_gallocr_alloc_graph(sched->slot_galloc, &sched->slots);
}

static bool reserve_work(struct ggml_backend_sched *sched) {
    sched->n_planned_nodes = sched->n_planned_leafs = -1;
    sched_forget_plan(sched);
    if (!ggml_gallocr_reserve_n(sched->galloc, &sched->work, sched->node_ids, sched->leaf_ids)) {
        return false;
    }
    sched->n_planned_nodes = sched->work.n_nodes;
    sched->n_planned_leafs = sched->work.n_leafs;
    sched->ids_changed = false;
    return true;
}

static bool plan_and_use(struct ggml_backend_sched *sched) {
    if (sched->n_planned_nodes == sched->work.n_nodes &&
        sched->n_planned_leafs == sched->work.n_leafs && !sched->ids_changed) {
        const enum plan_result result = graph_plan_use(sched->galloc, &sched->work);
        if (result != PLAN_DOES_NOT_FIT) return result == PLAN_USED;
    }
    sched_wait_all(sched);
    return reserve_work(sched) && ggml_gallocr_alloc_graph(sched->galloc, &sched->work);
}

static bool allocate_work(struct ggml_backend_sched *sched) {
    if (!plan_and_use(sched)) return false;
    sched_remember_plan(sched);
    return true;
}

bool sched_allocate(struct ggml_backend_sched *sched) {
    const unsigned long told = ggml_fail_count();
    sched->in_place = true;
    if (sched_plan_is_known(sched)) {
        const enum plan_result result = sched_use_known_plan(sched);
        if (result == PLAN_USED) sched_update_known(sched);
        if (result != PLAN_DOES_NOT_FIT) return result == PLAN_USED;
    }
    const bool done = sched_assemble(sched) && allocate_slots(sched) && allocate_work(sched);
    if (done) return true;
    clear_slots(sched);
    if (ggml_fail_count() == told) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: the graph could not be allocated", sched->function);
    }
    return false;
}

// Pipeline copies have their own memory: planning the rest must not count them.
static void pretend_slots(struct ggml_backend_sched *sched) {
    for (int i = 0; i < sched->slots.n_leafs; ++i) {
        sched->slots.leafs[i]->data = sched;
    }
}

bool sched_reserve_buffers(struct ggml_backend_sched *sched) {
    sched_wait_all(sched);
    if (!sched_assemble(sched)) return false;
    if (sched->slot_galloc && !reserve_slots(sched)) return false;
    pretend_slots(sched);
    const bool done = reserve_work(sched);
    clear_slots(sched);
    return done;
}

bool sched_measure(struct ggml_backend_sched *sched, size_t *out_sizes) {
    const size_t n = (size_t)sched->n_backends;
    const unsigned long told = ggml_fail_count();
    memset(out_sizes, 0, n * sizeof(out_sizes[0]));
    if (!sched_assemble(sched)) return false;
    if (!sched->slot_galloc) {
        ggml_gallocr_reserve_n_size(sched->galloc, &sched->work, sched->node_ids, sched->leaf_ids,
                                    out_sizes);
        return ggml_fail_count() == told;
    }
    size_t *slot_sizes = ggml_mem_calloc(n, sizeof(slot_sizes[0]));
    if (!slot_sizes) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory for %zu sizes", sched->function, n);
        return false;
    }
    ggml_gallocr_reserve_n_size(sched->slot_galloc, &sched->slots, NULL, sched->slot_ids,
                                slot_sizes);
    pretend_slots(sched);
    ggml_gallocr_reserve_n_size(sched->galloc, &sched->work, sched->node_ids, sched->leaf_ids,
                                out_sizes);
    clear_slots(sched);
    for (size_t b = 0; b < n; ++b) {
        out_sizes[b] =
            slot_sizes[b] > SIZE_MAX - out_sizes[b] ? SIZE_MAX : out_sizes[b] + slot_sizes[b];
    }
    ggml_mem_free(slot_sizes);
    return ggml_fail_count() == told;
}
