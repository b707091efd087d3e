// SPDX-License-Identifier: MIT
// Memory for a graph of the same structure as the one that was planned last: the plan's places are
// found by number, and what the allocator would look at is not built at all.
#include "base/mem.h"
#include "base/status.h"
#include "graph/gallocr.h"
#include "sched/sched.h"

void sched_forget_plan(struct ggml_backend_sched *sched) {
    sched->known.valid = false;
}

void sched_free_known(struct sched_known *known) {
    ggml_mem_free(known->items);
    ggml_mem_free(known->first_edge);
    ggml_mem_free(known->edges);
    ggml_mem_free(known->splits);
    ggml_mem_free(known->copies);
    ggml_mem_free(known->copy_entries);
    *known = (struct sched_known){0};
}

// --- remembering

static bool make_room(const struct ggml_backend_sched *sched, struct sched_known *known) {
    return sched_grow(&known->items, &known->items_capacity, sched->n_items,
                      sizeof(known->items[0])) &&
           sched_grow(&known->first_edge, &known->first_edge_capacity, (int64_t)sched->n_nodes + 1,
                      sizeof(known->first_edge[0])) &&
           sched_grow(&known->edges, &known->edges_capacity, sched->n_edges,
                      sizeof(known->edges[0])) &&
           sched_grow(&known->splits, &known->splits_capacity, sched->n_splits,
                      sizeof(known->splits[0])) &&
           sched_grow(&known->copies, &known->copies_capacity, sched->n_copied,
                      sizeof(known->copies[0])) &&
           sched_grow(&known->copy_entries, &known->copy_entries_capacity, sched->n_copied,
                      sizeof(known->copy_entries[0]));
}

static void remember_item(const struct ggml_backend_sched *sched, int32_t number,
                          struct sched_known_item *out) {
    const struct sched_item *item = &sched->items[number];
    const struct ggml_tensor *tensor = item->tensor;
    memcpy(out->ne, tensor->ne, sizeof(out->ne));
    memcpy(out->nb, tensor->nb, sizeof(out->nb));
    memcpy(out->op_params, tensor->op_params, sizeof(out->op_params));
    out->view_offs = tensor->view_offs;
    out->flags = tensor->flags;
    out->type = tensor->type;
    out->op = tensor->op;
    out->root = item->root;
    out->pool = sched->streams[item->backend].pool;
    out->traits = item->traits;
    out->plan_traits = plan_traits(tensor);
}

static bool same_run(const void *a, const void *b, int64_t n, size_t size) {
    return n == 0 || memcmp(a, b, (size_t)n * size) == 0;
}

static void copy_run(void *to, const void *from, int64_t n, size_t size) {
    if (n > 0) memcpy(to, from, (size_t)n * size);
}

// A walk over leafs and then nodes meets everything that a node refers to before it.
static bool is_repeatable(const struct ggml_backend_sched *sched) {
    if (sched->n_items != sched->n_nodes + sched->n_leafs || sched->n_pins > 0) return false;
    for (int32_t i = 0; i < sched->n_items; ++i) {
        const int32_t root = sched->items[i].root;
        if (root > i && root < sched->n_nodes) return false;
    }
    for (int32_t i = 0; i < sched->n_nodes; ++i) {
        for (int32_t e = sched->first_edge[i]; e < sched->first_edge[i + 1]; ++e) {
            const int32_t item = sched->edges[e].item;
            if (item > i && item < sched->n_nodes) return false;
        }
    }
    return true;
}

void sched_remember_plan(struct ggml_backend_sched *sched) {
    struct sched_known *known = &sched->known;
    known->valid = false;
    if (sched->n_copies > 1 || sched->reordered || !make_room(sched, known)) return;
    known->n_nodes = sched->n_nodes;
    known->n_leafs = sched->n_leafs;
    known->n_items = sched->n_items;
    known->n_edges = sched->n_edges;
    known->n_splits = sched->n_splits;
    known->n_copied = sched->n_copied;
    copy_run(known->first_edge, sched->first_edge, sched->n_nodes + 1, sizeof(int32_t));
    copy_run(known->edges, sched->edges, sched->n_edges, sizeof(struct sched_edge));
    copy_run(known->splits, sched->splits, sched->n_splits, sizeof(struct sched_split));
    copy_run(known->copies, sched->copies, sched->n_copied, sizeof(struct sched_copy));
    for (int32_t i = 0; i < sched->n_items; ++i) {
        remember_item(sched, i, &known->items[i]);
        known->items[i].entry = -1;
    }
    const struct graph_plan *plan = &sched->galloc->plan;
    for (int32_t e = 0; e < plan->n_entries; ++e) {
        const int32_t item = tensor_map_get(&sched->item_ids, plan->entries[e].tensor);
        if (item >= 0) known->items[item].entry = e;
    }
    struct tensor_map *ids = &sched->item_ids; // copies are not in it yet: look them up by position
    for (int32_t c = 0; c < sched->n_copied; ++c) {
        if (!tensor_map_grow(ids)) return;
        tensor_map_add(ids, sched_copy_tensor(sched, c), sched->n_items + c);
        known->copy_entries[c] = -1;
    }
    for (int32_t e = 0; e < plan->n_entries; ++e) {
        const int32_t number = tensor_map_get(ids, plan->entries[e].tensor);
        if (number >= sched->n_items) known->copy_entries[number - sched->n_items] = e;
    }
    known->valid = true;
    known->repeatable = is_repeatable(sched);
}

void sched_update_known(struct ggml_backend_sched *sched) {
    for (int32_t i = 0; i < sched->n_items; ++i) {
        remember_item(sched, i, &sched->known.items[i]);
    }
    sched->known.repeatable = is_repeatable(sched);
}

// --- comparing

static bool same_item(const struct ggml_backend_sched *sched, int32_t i) {
    const struct sched_item *item = &sched->items[i];
    const struct sched_known_item *known = &sched->known.items[i];
    return item->root == known->root && item->traits == known->traits &&
           item->plan_traits == known->plan_traits &&
           sched->streams[item->backend].pool == known->pool;
}

bool sched_plan_is_known(const struct ggml_backend_sched *sched) {
    const struct sched_known *known = &sched->known;
    if (!known->valid || sched->reordered) return false;
    if (known->n_nodes != sched->n_nodes || known->n_leafs != sched->n_leafs ||
        known->n_items != sched->n_items || known->n_edges != sched->n_edges ||
        known->n_splits != sched->n_splits || known->n_copied != sched->n_copied) {
        return false;
    }
    for (int32_t i = 0; i < sched->n_items; ++i) {
        if (!same_item(sched, i)) return false;
    }
    return same_run(known->first_edge, sched->first_edge, sched->n_nodes + 1, sizeof(int32_t)) &&
           same_run(known->edges, sched->edges, sched->n_edges, sizeof(struct sched_edge)) &&
           same_run(known->splits, sched->splits, sched->n_splits, sizeof(struct sched_split)) &&
           same_run(known->copies, sched->copies, sched->n_copied, sizeof(struct sched_copy));
}

// --- binding

static bool same_layout(const struct sched_known_item *known, const struct ggml_tensor *tensor) {
    return memcmp(known->ne, tensor->ne, sizeof(known->ne)) == 0 &&
           memcmp(known->nb, tensor->nb, sizeof(known->nb)) == 0 &&
           known->type == (int32_t)tensor->type && known->op == (int32_t)tensor->op &&
           known->view_offs == tensor->view_offs;
}

// Whether the place still fits a tensor of another layout.
static bool still_fits(const struct ggml_backend_sched *sched, int32_t number,
                       const struct plan_entry *entry) {
    const struct ggml_tensor *tensor = sched->items[number].tensor;
    const struct gallocr_pool *pool = &sched->galloc->pools[entry->pool];
    return ggml_backend_buft_get_alloc_size(pool->buft, tensor) <= entry->size;
}

static bool may_take_over(const struct ggml_backend_sched *sched, int32_t number,
                          const struct plan_entry *entry) {
    if (entry->inplace_src < 0) return true;
    for (int32_t e = sched->first_edge[number]; e < sched->first_edge[number + 1]; ++e) {
        if (sched->edges[e].slot != entry->inplace_src) continue;
        return can_take_over(sched->items[number].tensor,
                             sched->items[sched->edges[e].item].tensor);
    }
    return false;
}

static enum plan_result place_at(const struct ggml_backend_sched *sched, struct ggml_tensor *tensor,
                                 const struct plan_entry *entry) {
    const struct gallocr_pool *pool = &sched->galloc->pools[entry->pool];
    if (entry->chunk >= pool->n_chunks || !pool->chunks[entry->chunk]) return PLAN_DOES_NOT_FIT;
    ggml_backend_buffer_t buffer = pool->chunks[entry->chunk];
    char *base = buffer->iface.get_base ? buffer->iface.get_base(buffer) : NULL;
    if (!base) return PLAN_DOES_NOT_FIT; // the slow way says what is wrong
    tensor->buffer = buffer;
    tensor->data = (void *)((uintptr_t)base + entry->offset);
    if (!buffer->iface.init_tensor) return PLAN_USED;
    const enum ggml_status status = ggml_backend_buffer_init_tensor(buffer, tensor);
    return status == GGML_STATUS_SUCCESS ? PLAN_USED : PLAN_FAILED;
}

static enum plan_result place_view(struct ggml_tensor *view, const struct ggml_tensor *root) {
    if (!root->buffer || view->buffer) return PLAN_USED;
    if (view->view_offs > root->buffer->size || root->buffer->iface.init_tensor) {
        return ggml_backend_view_init(view) == GGML_STATUS_SUCCESS ? PLAN_USED : PLAN_FAILED;
    }
    view->buffer = root->buffer;
    view->data = (char *)root->data + view->view_offs;
    return PLAN_USED;
}

enum plan_result sched_place_same(const struct ggml_backend_sched *sched, int32_t number) {
    const struct sched_item *item = &sched->items[number];
    if (item->root != number) {
        return place_view(item->tensor, sched->items[item->root].tensor);
    }
    if (item->traits & SCHED_HAS_MEMORY) return PLAN_USED;
    const int32_t entry = sched->known.items[number].entry;
    if (entry < 0 || sched->galloc->plan.entries[entry].pool < 0) return PLAN_DOES_NOT_FIT;
    return place_at(sched, item->tensor, &sched->galloc->plan.entries[entry]);
}

static enum plan_result place_item(const struct ggml_backend_sched *sched, int32_t number) {
    const struct sched_item *item = &sched->items[number];
    const struct sched_known_item *known = &sched->known.items[number];
    if (item->root != number) {
        return place_view(item->tensor, sched->items[item->root].tensor);
    }
    if (item->traits & SCHED_HAS_MEMORY) return PLAN_USED;
    if (known->entry < 0) return PLAN_DOES_NOT_FIT;
    const struct plan_entry *entry = &sched->galloc->plan.entries[known->entry];
    if (entry->pool < 0) return PLAN_DOES_NOT_FIT;
    if (!same_layout(known, item->tensor) &&
        !(still_fits(sched, number, entry) && may_take_over(sched, number, entry))) {
        return PLAN_DOES_NOT_FIT;
    }
    // A source's layout may have changed where the node's has not.
    if (entry->inplace_src >= 0 && !may_take_over(sched, number, entry)) return PLAN_DOES_NOT_FIT;
    return place_at(sched, item->tensor, entry);
}

static enum plan_result place_range(const struct ggml_backend_sched *sched, int32_t first,
                                    int32_t end) {
    for (int32_t i = first; i < end; ++i) {
        if (i + 8 < end) {
            const char *ahead = (const char *)sched->items[i + 8].tensor;
            __builtin_prefetch(ahead, 1);
            __builtin_prefetch(ahead + 64);
            __builtin_prefetch(ahead + offsetof(struct ggml_tensor, data), 1);
        }
        const enum plan_result result = place_item(sched, i);
        if (result != PLAN_USED) return result;
    }
    return PLAN_USED;
}

enum plan_result sched_place_copies(const struct ggml_backend_sched *sched) {
    for (int32_t c = 0; c < sched->n_copied; ++c) {
        if (sched->known.copy_entries[c] < 0) return PLAN_DOES_NOT_FIT;
        const struct plan_entry *entry = &sched->galloc->plan.entries[sched->known.copy_entries[c]];
        struct ggml_tensor *tensor = sched_copy_tensor(sched, c);
        const struct gallocr_pool *pool = &sched->galloc->pools[MAX(entry->pool, 0)];
        if (entry->pool < 0 || ggml_backend_buft_get_alloc_size(pool->buft, tensor) > entry->size) {
            return PLAN_DOES_NOT_FIT;
        }
        const enum plan_result result = place_at(sched, tensor, entry);
        if (result != PLAN_USED) return result;
    }
    return PLAN_USED;
}

// As before: nothing has a place.
static void undo(const struct ggml_backend_sched *sched) {
    for (int32_t i = 0; i < sched->n_items; ++i) {
        if (sched->items[i].traits & SCHED_HAS_MEMORY) continue;
        sched->items[i].tensor->buffer = NULL;
        sched->items[i].tensor->data = NULL;
    }
    for (int32_t c = 0; c < sched->n_copied; ++c) {
        sched_copy_tensor(sched, c)->buffer = NULL;
        sched_copy_tensor(sched, c)->data = NULL;
    }
}

void sched_reset_buffers(struct ggml_backend_sched *sched) {
    const struct ggml_gallocr *galloc = sched->galloc;
    for (int i = 0; i < galloc->n_pools; ++i) {
        for (int32_t k = 0; k < galloc->pools[i].n_chunks; ++k) {
            if (galloc->pools[i].chunks[k]) ggml_backend_buffer_reset(galloc->pools[i].chunks[k]);
        }
    }
}

enum plan_result sched_use_known_plan(struct ggml_backend_sched *sched) {
    sched_reset_buffers(sched);
    enum plan_result result = place_range(sched, sched->n_nodes, sched->n_items);
    if (result == PLAN_USED) result = sched_place_copies(sched);
    if (result == PLAN_USED) result = place_range(sched, 0, sched->n_nodes);
    if (result != PLAN_USED) undo(sched);
    return result;
}
