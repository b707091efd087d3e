// SPDX-License-Identifier: MIT
// Sets data and buffer of every tensor of a planned graph.
#include "base/mem.h"
#include "base/status.h"
#include "sched/sched.h"

enum { PREFETCH_ITEMS = 8 };

// Tells all buffers that their tensors are gone, and looks up each pool's first chunk once, which
// most tensors lie in.
bool sched_reset_buffers(struct ggml_backend_sched *sched) {
    const struct ggml_gallocr *galloc = sched->galloc;
    for (int i = 0; i < galloc->n_pools; ++i) {
        const struct gallocr_pool *pool = &galloc->pools[i];
        sched->bases[i] = (struct sched_base){0};
        for (int32_t k = 0; k < pool->n_chunks; ++k) {
            if (pool->chunks[k]) ggml_backend_buffer_reset(pool->chunks[k]);
        }
        if (pool->n_chunks == 0 || !pool->chunks[0]) continue;
        sched->bases[i].buffer = pool->chunks[0];
        sched->bases[i].address = ggml_backend_buffer_get_base(pool->chunks[0]);
        if (!sched->bases[i].address) return false;
    }
    return true;
}

// Without an address if the chunk is missing after a failed allocation.
static struct sched_base base_of(const struct ggml_backend_sched *sched,
                                 const struct live_place *place) {
    if (place->chunk == 0) return sched->bases[place->pool];
    const struct gallocr_pool *pool = &sched->galloc->pools[place->pool];
    struct sched_base base = {0};
    if (place->chunk >= pool->n_chunks || !pool->chunks[place->chunk]) return base;
    base.buffer = pool->chunks[place->chunk];
    base.address = ggml_backend_buffer_get_base(base.buffer);
    return base;
}

// An owner of memory at its planned offset; a buffer with init_tensor is told about it.
static inline enum plan_result bind_at(const struct ggml_backend_sched *sched,
                                       struct ggml_tensor *tensor, const struct live_place *place) {
    const struct sched_base base = base_of(sched, place);
    if (!base.address) return PLAN_FAILED;
    tensor->buffer = base.buffer;
    tensor->data = base.address + place->offset;
    if (!base.buffer->table->init_tensor) return PLAN_USED;
    const enum ggml_status status = ggml_backend_buffer_init_tensor(base.buffer, tensor);
    return status == GGML_STATUS_SUCCESS ? PLAN_USED : PLAN_FAILED;
}

// A view, after the tensor whose memory it views. Views of memory that no buffer owns have their
// address already. false: the buffer has to be told about it.
static inline bool put_view(const struct sched_value *value) {
    struct ggml_tensor *view = value->tensor;
    const struct ggml_tensor *owner = view->view_src;
    if (!owner->buffer || ((value->traits & SCHED_HAS_MEMORY) && view->buffer)) return true;
    if (view->view_offs > owner->buffer->size || owner->buffer->table->init_tensor) return false;
    view->buffer = owner->buffer;
    view->data = (char *)owner->data + view->view_offs;
    return true;
}

// A value: a view after its owner, nothing for what has memory or alternates between pipeline
// copies, else the planned place.
static inline enum plan_result bind_item(const struct ggml_backend_sched *sched, int32_t number) {
    const struct sched_value *value = &sched->values[number];
    if (value->root != number) {
        if (put_view(value)) return PLAN_USED;
    } else if (sched->live.places[number].pool < 0) {
        return PLAN_USED;
    } else {
        return bind_at(sched, value->tensor, &sched->live.places[number]);
    }
    return ggml_backend_view_init(value->tensor) == GGML_STATUS_SUCCESS ? PLAN_USED : PLAN_FAILED;
}

enum plan_result sched_bind_value(const struct ggml_backend_sched *sched, int32_t number) {
    return bind_item(sched, number);
}

// With several pipeline copies they live in slot_galloc's memory, and nothing is to be done.
enum plan_result sched_bind_copies(const struct ggml_backend_sched *sched) {
    enum plan_result result = PLAN_USED;
    for (int32_t c = 0;
         c < sched->partition.n_copies && sched->pipeline_depth == 1 && result == PLAN_USED; ++c) {
        result =
            bind_at(sched, sched_copy_tensor(sched, c), &sched->live.places[sched->n_values + c]);
    }
    return result;
}

static inline void prefetch_item(const struct ggml_backend_sched *sched, int32_t number) {
    char *ahead = (char *)sched->values[number].tensor;
    __builtin_prefetch(ahead, 1);
    __builtin_prefetch(ahead + offsetof(struct ggml_tensor, data), 1);
}

static enum plan_result bind_leafs(const struct ggml_backend_sched *sched) {
    enum plan_result result = PLAN_USED;
    for (int32_t i = sched->n_nodes; i < sched->n_values && result == PLAN_USED; ++i) {
        result = sched_bind_value(sched, i);
    }
    return result;
}

// In the order of uses: an owner stands before its views, so that one walk does.
static enum plan_result bind_nodes(const struct ggml_backend_sched *sched) {
    enum plan_result result = PLAN_USED;
    for (int32_t i = 0; i < sched->n_nodes && result == PLAN_USED; ++i) {
        if (i + PREFETCH_ITEMS < sched->n_nodes) prefetch_item(sched, i + PREFETCH_ITEMS);
        result = bind_item(sched, i);
    }
    return result;
}

// Owners first, then views: where nodes stand in any order.
static enum plan_result bind_any(const struct ggml_backend_sched *sched) {
    for (int pass = 0; pass < 2; ++pass) {
        for (int32_t i = 0; i < sched->n_values; ++i) {
            if ((sched->values[i].tensor->view_src != NULL) != (pass == 1)) continue;
            const enum plan_result result = sched_bind_value(sched, i);
            if (result != PLAN_USED) return result;
        }
    }
    return PLAN_USED;
}

// As before: nothing has a place.
static void undo(const struct ggml_backend_sched *sched) {
    for (int32_t i = 0; i < sched->n_values; ++i) {
        if (sched->values[i].traits & SCHED_HAS_MEMORY) continue;
        sched->values[i].tensor->buffer = NULL;
        sched->values[i].tensor->data = NULL;
    }
    for (int32_t c = 0; c < sched->partition.n_copies; ++c) {
        sched_copy_tensor(sched, c)->buffer = NULL;
        sched_copy_tensor(sched, c)->data = NULL;
    }
}

enum plan_result sched_bind(struct ggml_backend_sched *sched) {
    enum plan_result result = sched_reset_buffers(sched) ? PLAN_USED : PLAN_FAILED;
    if (result == PLAN_USED) result = sched_bind_copies(sched);
    if (result == PLAN_USED && !sched->in_order) {
        result = bind_any(sched);
    } else if (result == PLAN_USED) {
        result = bind_leafs(sched);
        if (result == PLAN_USED) result = bind_nodes(sched);
    }
    if (result != PLAN_USED) undo(sched);
    return result;
}
