// SPDX-License-Identifier: MIT
// Binds the tensors of a graph to a plan, if the graph has the structure that the plan was made
// for. One walk compares and binds, and is undone where the structures differ. Buffers that must be
// reset first, which can't be undone, take a walk of their own.
#include <stdlib.h>

#include "alloc/gallocr.h"
#include "base/mem.h"
#include "ggml-backend.h"
#include "tensor/tensor_impl.h"

// One try to use the plan for a graph.
struct use {
    struct ggml_gallocr *galloc;
    struct graph_plan *plan;
    uint32_t round;
    bool compare_only;
    bool any_placed;
    bool may_repeat; // an entry met a tensor that may have got its memory from another entry
    bool failed;
};

// Not a mismatch but an error of a buffer: another plan would not help.
static bool fail(struct use *use) {
    use->failed = true;
    return false;
}

// Gives the entry's tensor its address, and tells the buffer if it wants to know.
static inline bool place_at(struct use *use, struct plan_entry *entry, ggml_backend_buffer_t buffer,
                            char *base) {
    if (!base) return fail(use);
    entry->tensor->buffer = buffer;
    entry->tensor->data = base + entry->offset;
    entry->placed = use->any_placed = true;
    if (!buffer->table->init_tensor) return true;
    return ggml_backend_buffer_init_tensor(buffer, entry->tensor) == GGML_STATUS_SUCCESS ||
           fail(use);
}

// false if the tensor needs more than was planned for it, or its chunk is missing.
static inline bool place_owner(struct use *use, struct plan_entry *entry) {
    const struct gallocr_pool *pool = &use->galloc->pools[entry->pool];
    if (!needs_memory(entry->tensor)) return false; // another entry gave it some
    if (plan_size(pool, entry->tensor) > entry->size) return false;
    if (use->compare_only) return true;
    if (entry->chunk >= pool->n_chunks || !pool->chunks[entry->chunk]) return false;
    ggml_backend_buffer_t buffer = pool->chunks[entry->chunk];
    if (entry->chunk == 0) return place_at(use, entry, buffer, pool->base);
    return place_at(use, entry, buffer, ggml_backend_buffer_get_base(buffer));
}

// Views of memory that no buffer owns have their address already.
static inline bool place_view(struct use *use, struct plan_entry *entry) {
    struct ggml_tensor *view = entry->tensor;
    const struct ggml_tensor *owner = view->view_src;
    if (view->buffer || !owner->buffer || use->compare_only) return true;
    entry->placed = true;
    if (owner->data && view->view_offs <= owner->buffer->size &&
        !owner->buffer->table->init_tensor) {
        view->buffer = owner->buffer;
        view->data = (char *)owner->data + view->view_offs;
        return true;
    }
    return ggml_backend_view_init(view) == GGML_STATUS_SUCCESS || fail(use);
}

// Ties an owner of memory to its entry. An entry that is met again must meet the same tensor.
static inline bool bind_owner(struct use *use, int32_t number, struct ggml_tensor *tensor) {
    struct plan_entry *entry = &use->plan->entries[number];
    if (entry->round == use->round) return entry->tensor == tensor;
    if (entry->traits != plan_traits(tensor)) return false;
    entry->tensor = tensor;
    entry->round = use->round;
    entry->placed = false;
    if (needs_memory(tensor)) return entry->pool >= 0 && place_owner(use, entry);
    use->may_repeat |= use->any_placed && entry->pool >= 0;
    return true;
}

// Ties a tensor, and the root it views, to an entry; false if the plan was made for something else.
static inline bool bind(struct use *use, int32_t number, struct ggml_tensor *tensor) {
    struct plan_entry *entry = &use->plan->entries[number];
    if (entry->round == use->round) return entry->tensor == tensor;
    if (entry->root == number) return bind_owner(use, number, tensor);
    if (entry->traits != plan_traits(tensor)) return false;
    if (!bind_owner(use, entry->root, tensor_root(tensor))) return false;
    entry->tensor = tensor;
    entry->round = use->round;
    entry->placed = false;
    return !tensor->view_src || place_view(use, entry);
}

// Bit k: the node has a source k.
static inline uint32_t source_slots(const struct ggml_tensor *node) {
    uint32_t slots = 0;
    for (int k = 0; k < GGML_MAX_SRC; ++k) {
        slots |= (uint32_t)(node->src[k] != NULL) << k;
    }
    return slots;
}

// A node and its sources; what takes memory over must still be able to.
static inline bool bind_node(struct use *use, const struct plan_node *refs,
                             struct ggml_tensor *node, const int32_t **sources) {
    if (source_slots(node) != refs->slots || !bind(use, refs->dst, node)) return false;
    for (uint32_t rest = refs->slots; rest != 0; rest &= rest - 1) {
        if (!bind(use, *(*sources)++, node->src[__builtin_ctz(rest)])) return false;
    }
    const int inplace_src = use->plan->entries[refs->dst].inplace_src;
    return inplace_src < 0 || live_can_take_over(node, node->src[inplace_src]);
}

// Leafs, then nodes, in the order in which the plan was made.
static bool bind_all(struct use *use, const struct ggml_cgraph *graph) {
    const struct graph_plan *plan = use->plan;
    const int32_t *sources = plan->sources;
    for (int i = 0; i < plan->n_leafs; ++i) {
        if (!bind(use, plan->leafs[i], graph->leafs[i])) return false;
    }
    for (int i = 0; i < plan->n_nodes; ++i) {
        if (!bind_node(use, &plan->nodes[i], graph->nodes[i], &sources)) return false;
    }
    return true;
}

// For qsort().
static int by_address(const void *a, const void *b) {
    const uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return (x > y) - (x < y);
}

// Whether two owners met one tensor: it was two when the plan was made, with lives of their own.
static bool is_repeated(const struct use *use) {
    const struct graph_plan *plan = use->plan;
    uintptr_t *owners = ggml_mem_alloc(((size_t)plan->n_entries + 1) * sizeof(owners[0]));
    if (!owners) return true;
    size_t n = 0;
    for (int32_t i = 0; i < plan->n_entries; ++i) {
        const struct plan_entry *entry = &plan->entries[i];
        if (entry->round != use->round || entry->root != i || entry->pool < 0) continue;
        owners[n++] = (uintptr_t)entry->tensor;
    }
    qsort(owners, n, sizeof(owners[0]), by_address);
    bool repeated = false;
    for (size_t i = 1; i < n; ++i) {
        repeated |= owners[i] == owners[i - 1];
    }
    ggml_mem_free(owners);
    return repeated;
}

// Takes back what was given, from views last: theirs is what their owner has then.
static void undo(const struct use *use) {
    const struct graph_plan *plan = use->plan;
    for (int pass = 0; pass < 2; ++pass) {
        for (int32_t i = 0; i < plan->n_entries; ++i) {
            const struct plan_entry *entry = &plan->entries[i];
            if (entry->round != use->round || !entry->placed) continue;
            struct ggml_tensor *tensor = entry->tensor;
            const struct ggml_tensor *owner = tensor->view_src;
            if ((owner != NULL) != (pass == 1)) continue;
            tensor->buffer = NULL;
            tensor->data = owner && owner->data ? (char *)owner->data + tensor->view_offs : NULL;
        }
    }
}

// Buffers of a plugin with something to reset may hold the last graph, which
// must not suffer when this one does not fit.
static bool is_reset_needed(const struct ggml_gallocr *galloc) {
    bool needed = false;
    for (int i = 0; i < galloc->n_pools; ++i) {
        const struct gallocr_pool *pool = &galloc->pools[i];
        for (int32_t k = 0; k < pool->n_chunks; ++k) {
            needed |= pool->chunks[k] && pool->chunks[k]->table->reset;
        }
    }
    return needed;
}

// Tells all buffers that their tensors are gone.
static void reset_buffers(const struct ggml_gallocr *galloc) {
    for (int i = 0; i < galloc->n_pools; ++i) {
        for (int32_t k = 0; k < galloc->pools[i].n_chunks; ++k) {
            if (galloc->pools[i].chunks[k]) ggml_backend_buffer_reset(galloc->pools[i].chunks[k]);
        }
    }
}

// Looks up the address of each pool's first chunk once, as most tensors lie there.
static void find_bases(struct ggml_gallocr *galloc) {
    for (int i = 0; i < galloc->n_pools; ++i) {
        struct gallocr_pool *pool = &galloc->pools[i];
        const bool has_base = pool->n_chunks > 0 && pool->chunks[0];
        pool->base = has_base ? ggml_backend_buffer_get_base(pool->chunks[0]) : NULL;
    }
}

// A round of its own marks what it has bound.
static bool walk(struct use *use, const struct ggml_cgraph *graph) {
    struct graph_plan *plan = use->plan;
    if (++plan->round == 0) { // all marks are old, but one may seem new
        for (int32_t i = 0; i < plan->n_entries; ++i) {
            plan->entries[i].round = 0;
        }
        plan->round = 1;
    }
    use->round = plan->round;
    return bind_all(use, graph);
}

// Two walks where buffers are reset, which can't be undone: the first only compares.
enum plan_result graph_plan_use(struct ggml_gallocr *galloc, struct ggml_cgraph *graph) {
    struct use use = {.galloc = galloc, .plan = &galloc->plan};
    if (use.plan->n_nodes != graph->n_nodes || use.plan->n_leafs != graph->n_leafs) {
        return PLAN_DOES_NOT_FIT;
    }
    if (is_reset_needed(galloc)) {
        use.compare_only = true;
        if (!walk(&use, graph)) return PLAN_DOES_NOT_FIT;
        use.compare_only = false;
        reset_buffers(galloc);
    }
    find_bases(galloc);
    bool fits = walk(&use, graph);
    if (fits && use.may_repeat) fits = !is_repeated(&use);
    if (fits) return PLAN_USED;
    undo(&use);
    return use.failed ? PLAN_FAILED : PLAN_DOES_NOT_FIT;
}
