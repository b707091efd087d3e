// SPDX-License-Identifier: MIT
// Allocates a partitioned graph: its plan, the buffers behind it, and the pipeline copies.
#include "alloc/gallocr.h"
#include "base/mem.h"
#include "base/status.h"
#include "sched/sched.h"

// --- pipeline copies: never released, in buffers of their own

// Adds a pipeline copy as a leaf. *io_same becomes false if it is not in the memory that the plan
// has for it.
static bool add_slot(struct ggml_backend_sched *sched, struct ggml_tensor *tensor, int32_t backend,
                     bool *io_same) {
    const int n = sched->slots.n_leafs;
    if (!sched_grow(&sched->slots.leafs, &sched->slots_capacity, (int64_t)n + 1,
                    sizeof(sched->slots.leafs[0])) ||
        !sched_grow(&sched->slot_ids, &sched->slot_ids_capacity, (int64_t)n + 1,
                    sizeof(sched->slot_ids[0]))) {
        return false;
    }
    const struct sched_stream *streams = sched->streams;
    *io_same = *io_same && n < sched->n_planned_slots &&
               streams[sched->slot_ids[n]].pool_stream == streams[backend].pool_stream;
    sched->slots.leafs[n] = tensor;
    sched->slot_ids[n] = backend;
    sched->slots.n_leafs++;
    return true;
}

// All copies of all slots as one graph of leafs: the graph allocator gives each memory of its own.
// *out_same: whether the plan that there is was made for as many, in the same memory.
static bool collect_slots(struct ggml_backend_sched *sched, bool *out_same) {
    sched->slots.n_leafs = 0;
    *out_same = true;
    for (int32_t i = 0; i < sched->partition.n_copies; ++i) {
        for (int c = 0; c < sched->pipeline_depth; ++c) {
            struct ggml_tensor *tensor =
                sched->copy_tensors[(int64_t)i * sched->pipeline_depth + c];
            if (!add_slot(sched, tensor, sched->partition.copies[i].backend, out_same))
                return false;
        }
    }
    *out_same = *out_same && sched->slots.n_leafs == sched->n_planned_slots;
    return true;
}

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
    return true;
}

// Binds the pipeline copies to the plan that there is, else makes one when the streams are idle.
static bool allocate_slots(struct ggml_backend_sched *sched) {
    bool same;
    if (!sched->slot_galloc) return true;
    if (!collect_slots(sched, &same)) return false;
    if (same) {
        const enum plan_result result = graph_plan_use(sched->slot_galloc, &sched->slots);
        if (result != PLAN_DOES_NOT_FIT) return result == PLAN_USED;
    }
    sched_wait_all(sched);
    return reserve_slots(sched) && ggml_gallocr_alloc_graph(sched->slot_galloc, &sched->slots);
}

// --- the whole graph

// FNV-1a over the streams of all values: equal graphs that are placed alike have the same.
static uint64_t hash_placement(const struct ggml_backend_sched *sched) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (int32_t i = 0; i < sched->n_nodes + sched->n_leafs; ++i) {
        hash = (hash ^ (uint32_t)sched->placed[i].backend) * 0x100000001b3u;
    }
    return hash;
}

// Tells the application that the buffers are about to be made anew, and what changed since the last
// graph.
static void tell_realloc(struct ggml_backend_sched *sched, bool provided) {
    if (!sched->realloc_callback) return;
    const uint64_t hash = hash_placement(sched);
    const bool resized = sched->n_nodes != sched->placement_nodes;
    const bool moved = sched->placement_nodes > 0 && !resized && hash != sched->placement_hash;
    sched->placement_hash = hash;
    sched->placement_nodes = sched->n_nodes;
    if (provided) return;
    sched_wait_all(sched);
    sched->realloc_callback(sched, sched->graph, moved, resized, sched->realloc_callback_data);
}

// Plans, makes the buffers large enough, and binds.
static bool allocate(struct ggml_backend_sched *sched) {
    bool provided;
    if (!allocate_slots(sched) || !sched_find_liveness(sched, &sched->live) ||
        !sched_plan(sched, true, &provided)) {
        return false;
    }
    tell_realloc(sched, provided);
    if (!provided && !sched_grow_buffers(sched)) return false;
    return sched_bind(sched) == PLAN_USED;
}

bool sched_allocate(struct ggml_backend_sched *sched) {
    const unsigned long told = ggml_fail_count();
    sched->in_place = true;
    sched->slots.n_leafs = 0;
    if (allocate(sched)) {
        sched_remember(sched);
        return true;
    }
    clear_slots(sched);
    if (ggml_fail_count() == told) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: the graph could not be allocated", sched->function);
    }
    return false;
}

bool sched_reserve_buffers(struct ggml_backend_sched *sched) {
    bool same, fits;
    sched_wait_all(sched);
    if (sched->slot_galloc && !(collect_slots(sched, &same) && reserve_slots(sched))) return false;
    return sched_find_liveness(sched, &sched->live) && sched_plan(sched, false, &fits) &&
           sched_grow_buffers(sched);
}

static size_t add_saturated(size_t a, size_t b) {
    return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}

// Adds the bytes of each stream's pool; streams that share a pool each get all of it.
static void add_planned(const struct ggml_backend_sched *sched, size_t *sizes) {
    for (int b = 0; b < sched->n_backends; ++b) {
        int32_t n;
        const size_t *chunks = sched_planned_chunks(sched, sched->galloc->pool_of[b], &n);
        for (int32_t i = 0; i < n; ++i) {
            sizes[b] = add_saturated(sizes[b], chunks[i]);
        }
    }
}

bool sched_measure(struct ggml_backend_sched *sched, size_t *out_sizes) {
    const unsigned long told = ggml_fail_count();
    bool same, fits;
    memset(out_sizes, 0, (size_t)sched->n_backends * sizeof(out_sizes[0]));
    if (sched->slot_galloc) {
        sched->n_planned_slots = -1; // the plan is for these streams from here on
        if (!collect_slots(sched, &same)) return false;
        ggml_gallocr_reserve_n_size(sched->slot_galloc, &sched->slots, NULL, sched->slot_ids,
                                    out_sizes);
    }
    if (!sched_find_liveness(sched, &sched->live) || !sched_plan(sched, false, &fits)) return false;
    add_planned(sched, out_sizes);
    return ggml_fail_count() == told;
}
