// SPDX-License-Identifier: MIT
// Giving the tensors of a graph the places of a plan, if it has the structure that the plan was
// made for.
#include "ggml-backend.h"
#include "graph/gallocr.h"

static bool bind_one(struct ggml_gallocr *galloc, int32_t number, struct ggml_tensor *tensor) {
    struct plan_entry *entry = &galloc->plan.entries[number];
    if (entry->tensor) return entry->tensor == tensor;
    if (entry->traits != plan_traits(tensor)) return false;
    entry->tensor = tensor;
    entry->pending = needs_memory(tensor);
    if (!entry->pending) return true;
    if (entry->pool < 0) return false;
    return ggml_backend_buft_get_alloc_size(galloc->pools[entry->pool].buft, tensor) <= entry->size;
}

// Ties a tensor, and the root it views, to an entry; false if the plan was made for something else.
static bool bind(struct ggml_gallocr *galloc, int32_t number, struct ggml_tensor *tensor) {
    const int32_t root = galloc->plan.entries[number].root;
    if (!bind_one(galloc, number, tensor)) return false;
    return root == number || bind_one(galloc, root, tensor_root(tensor));
}

static bool bind_node(struct ggml_gallocr *galloc, int i, struct ggml_tensor *node) {
    const struct plan_node *refs = &galloc->plan.nodes[i];
    if (!bind(galloc, refs->dst, node)) return false;
    for (int k = 0; k < GGML_MAX_SRC; ++k) {
        if ((refs->src[k] < 0) != (node->src[k] == NULL)) return false;
        if (node->src[k] && !bind(galloc, refs->src[k], node->src[k])) return false;
    }
    const int inplace_src = galloc->plan.entries[refs->dst].inplace_src;
    return inplace_src < 0 || can_take_over(node, node->src[inplace_src]);
}

static bool bind_all(struct ggml_gallocr *galloc, const struct ggml_cgraph *graph) {
    const struct graph_plan *plan = &galloc->plan;
    if (plan->n_nodes != graph->n_nodes || plan->n_leafs != graph->n_leafs) return false;
    for (int32_t i = 0; i < plan->n_entries; ++i) {
        plan->entries[i].tensor = NULL;
        plan->entries[i].pending = false;
    }
    for (int i = 0; i < plan->n_leafs; ++i) {
        if (!bind(galloc, plan->leafs[i], graph->leafs[i])) return false;
    }
    for (int i = 0; i < plan->n_nodes; ++i) {
        if (!bind_node(galloc, i, graph->nodes[i])) return false;
    }
    return true;
}

// Two entries that met one tensor: it was two when the plan was made.
static enum plan_result place(const struct ggml_gallocr *galloc, const struct plan_entry *entry) {
    if (!needs_memory(entry->tensor)) return PLAN_DOES_NOT_FIT;
    const struct gallocr_pool *pool = &galloc->pools[entry->pool];
    if (entry->chunk >= pool->n_chunks || !pool->chunks[entry->chunk]) return PLAN_DOES_NOT_FIT;
    ggml_backend_buffer_t buffer = pool->chunks[entry->chunk];
    char *base = ggml_backend_buffer_get_base(buffer);
    if (!base) return PLAN_FAILED;
    void *address = (void *)((uintptr_t)base + entry->offset);
    const enum ggml_status status = ggml_backend_tensor_alloc(buffer, entry->tensor, address);
    return status == GGML_STATUS_SUCCESS ? PLAN_USED : PLAN_FAILED;
}

// Takes back what the entries before `end` were given.
static void undo(struct graph_plan *plan, int32_t end) {
    for (int32_t i = 0; i < end; ++i) {
        if (!plan->entries[i].pending) continue;
        plan->entries[i].tensor->buffer = NULL;
        plan->entries[i].tensor->data = NULL;
    }
}

static enum plan_result place_owners(struct ggml_gallocr *galloc) {
    struct graph_plan *plan = &galloc->plan;
    for (int32_t i = 0; i < plan->n_entries; ++i) {
        if (!plan->entries[i].pending) continue;
        const enum plan_result result = place(galloc, &plan->entries[i]);
        if (result == PLAN_USED) continue;
        undo(plan, i);
        return result;
    }
    return PLAN_USED;
}

// Views of memory that no buffer owns have their address already.
static enum plan_result place_views(struct ggml_gallocr *galloc) {
    struct graph_plan *plan = &galloc->plan;
    for (int32_t i = 0; i < plan->n_entries; ++i) {
        struct plan_entry *entry = &plan->entries[i];
        struct ggml_tensor *view = entry->tensor;
        if (!view->view_src || view->buffer || !view->view_src->buffer) continue;
        entry->pending = ggml_backend_view_init(view) == GGML_STATUS_SUCCESS;
        if (entry->pending) continue;
        undo(plan, plan->n_entries);
        return PLAN_FAILED;
    }
    return PLAN_USED;
}

enum plan_result graph_plan_use(struct ggml_gallocr *galloc, struct ggml_cgraph *graph) {
    if (!bind_all(galloc, graph)) return PLAN_DOES_NOT_FIT;
    for (int i = 0; i < galloc->n_pools; ++i) {
        for (int32_t k = 0; k < galloc->pools[i].n_chunks; ++k) {
            if (galloc->pools[i].chunks[k]) ggml_backend_buffer_reset(galloc->pools[i].chunks[k]);
        }
    }
    const enum plan_result result = place_owners(galloc);
    return result == PLAN_USED ? place_views(galloc) : result;
}
