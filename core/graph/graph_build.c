// SPDX-License-Identifier: MIT
// Adds a tensor and everything it depends on to a graph, by depth-first search, which yields a
// topological order. The stack is explicit, since graphs can be deeper than a thread's stack.
#include "base/data/divisor.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/thread_guard.h"
#include "graph/graph.h"
#include "tensor/context.h"
#include "tensor/error_tensor.h"
#include "tensor/name.h"

struct frame {
    struct ggml_tensor *tensor;
    int32_t next; // source to visit next
    bool known;   // was in the graph before: only hands the COMPUTE flag on
};

struct visit {
    struct ggml_cgraph *graph;
    bool compute;
    bool backwards;
    struct divisor n_slots; // of the hash set; unset if it has none
    size_t depth;
    size_t capacity;
    struct frame *frames; // `few`, or allocated
    struct frame few[64];
};

static const char full[] =
    "graph: it is full; create it with a larger size (ggml_new_graph_custom)";

// Doubles the stack; the first 64 frames are part of the visit itself.
static bool grow(struct visit *visit) {
    const size_t bytes = visit->capacity * sizeof(visit->frames[0]);
    struct frame *old = visit->frames == visit->few ? NULL : visit->frames;
    struct frame *grown = ggml_mem_realloc(old, 2 * bytes);
    if (!grown) {
        ggml_graph_set_error(visit->graph, "graph: no memory to visit it");
        return false;
    }
    if (!old) memcpy(grown, visit->few, bytes);
    visit->frames = grown;
    visit->capacity *= 2;
    return true;
}

// A frame is a tensor whose sources are still being visited.
static inline bool push(struct visit *visit, struct ggml_tensor *tensor, bool known) {
    if (visit->depth == visit->capacity && !grow(visit)) return false;
    visit->frames[visit->depth++] = (struct frame){.tensor = tensor, .known = known};
    return true;
}

static inline bool has_sources(const struct ggml_tensor *tensor) {
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        if (tensor->src[i]) return true;
    }
    return false;
}

// The slot of a tensor as ggml_hash_find() returns it, with the common case inlined.
static inline size_t find(const struct visit *visit, const struct ggml_tensor *tensor) {
    const struct ggml_hash_set *set = &visit->graph->visited_hash_set;
    if (set->size == 0) return GGML_HASHSET_FULL;
    const size_t home = (size_t)divisor_remainder((uintptr_t)tensor >> 4, &visit->n_slots);
    if (!ggml_bitset_get(set->used, home) || set->keys[home] == tensor) return home;
    return ggml_hash_find(set, tensor);
}

// Appends a tensor all of whose sources are in the graph, as a leaf or a node, and names it if it
// has no name.
static inline bool append(struct ggml_cgraph *graph, struct ggml_tensor *tensor) {
    const bool leaf = tensor->op == GGML_OP_NONE && !(tensor->flags & GGML_TENSOR_FLAG_PARAM);
    int *count = leaf ? &graph->n_leafs : &graph->n_nodes;
    if (*count >= graph->size) {
        ggml_graph_set_error(graph, full);
        return false;
    }
    if (tensor->name[0] == '\0') ggml_name_number(tensor, leaf ? "leaf_" : "node_", *count);
    (leaf ? graph->leafs : graph->nodes)[(*count)++] = tensor;
    return true;
}

// An error tensor makes the whole graph incomputable, with the tensor's reason.
static bool refuse(struct visit *visit, const struct ggml_tensor *tensor) {
    const char *error = ggml_tensor_error(tensor);
    ggml_graph_set_error(visit->graph, error ? error : "graph: a tensor is in error");
    return false;
}

// What reads a leaf of ggml_view_tensor() reads the tensor that it views, without naming it as a
// source.
static void count_alias(struct visit *visit, const struct ggml_tensor *leaf) {
    const size_t slot = find(visit, leaf->view_src);
    if (slot != GGML_HASHSET_FULL && ggml_bitset_get(visit->graph->visited_hash_set.used, slot))
        ++visit->graph->use_counts[slot];
}

// Enters a tensor that isn't in the graph yet. Without sources it is complete at once.
static inline bool enter_new(struct visit *visit, struct ggml_tensor *tensor, size_t slot,
                             // Slots of a cleared graph keep old values: all data of the slot is
                             // set.
                             bool childless) {
    struct ggml_cgraph *graph = visit->graph;
    ggml_bitset_set(graph->visited_hash_set.used, slot);
    graph->visited_hash_set.keys[slot] = tensor;
    graph->use_counts[slot] = 0;
    if (graph->grads) {
        graph->grads[slot] = NULL;
        graph->grad_accs[slot] = NULL;
    }
    if (childless && tensor->view_src) count_alias(visit, tensor);
    return childless ? append(graph, tensor) : push(visit, tensor, false);
}

// Enters a tensor; *out_slot is its slot in the hash set. The COMPUTE flag is also set on leafs
// with sources, where it means that everything the tensor depends on has been reached.
static inline bool enter(struct visit *visit, struct ggml_tensor *tensor, size_t *out_slot) {
    const size_t slot = find(visit, tensor);
    *out_slot = slot;
    if (tensor->flags & GGML_TENSOR_FLAG_ERROR) return refuse(visit, tensor);
    if (slot == GGML_HASHSET_FULL) {
        ggml_graph_set_error(visit->graph, full);
        return false;
    }
    const bool childless = tensor->op == GGML_OP_NONE && !has_sources(tensor);
    const bool flagged = visit->compute && !childless;
    const bool reached = !flagged || (tensor->flags & GGML_TENSOR_FLAG_COMPUTE);
    if (!reached) tensor->flags |= GGML_TENSOR_FLAG_COMPUTE;
    if (!ggml_bitset_get(visit->graph->visited_hash_set.used, slot)) {
        return enter_new(visit, tensor, slot, childless);
    }
    // Known and not flagged so far: its sources need the flag as well.
    return reached || push(visit, tensor, true);
}

// Continues with the tensor on top of the stack until another one is pushed or it is complete. Each
// source is counted once per reference.
static bool step(struct visit *visit) {
    const size_t depth = visit->depth;
    struct frame *frame = &visit->frames[depth - 1];
    struct ggml_tensor *tensor = frame->tensor;
    const bool known = frame->known;
    for (int32_t next = frame->next; next < GGML_MAX_SRC;) {
        struct ggml_tensor *src = tensor->src[visit->backwards ? GGML_MAX_SRC - 1 - next : next];
        size_t slot;
        ++next;
        if (!src || src == tensor) continue; // ggml_cast names its own result as a source
        if (known && (src->flags & GGML_TENSOR_FLAG_COMPUTE)) continue;
        visit->frames[depth - 1].next = next;
        if (!enter(visit, src, &slot)) return false;
        if (!known) ++visit->graph->use_counts[slot];
        if (visit->depth > depth) return true;
    }
    --visit->depth;
    return known || append(visit->graph, tensor);
}

// O(tensors that are new), amortised over calls for the same graph.
static void visit_tensor(struct ggml_cgraph *graph, struct ggml_tensor *tensor, bool compute) {
    struct visit visit;
    if (!graph || !tensor) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "graph: the graph or the tensor is NULL");
        if (graph) ggml_graph_set_error(graph, "graph: a tensor that was added is NULL");
        return;
    }
    visit.graph = graph;
    visit.compute = compute;
    visit.backwards = graph->order == GGML_CGRAPH_EVAL_ORDER_RIGHT_TO_LEFT;
    const size_t n_slots = graph->visited_hash_set.size;
    if (n_slots > 0) visit.n_slots = divisor_of(n_slots);
    visit.depth = 0;
    visit.frames = visit.few;
    visit.capacity = sizeof(visit.few) / sizeof(visit.few[0]);
    const int before = graph->n_nodes;
    size_t slot;
    graph->uid = 0;
    bool good = enter(&visit, tensor, &slot);
    while (good && visit.depth > 0) {
        good = step(&visit);
    }
    if (good && tensor->op != GGML_OP_NONE && graph->n_nodes > before &&
        // The visited tensor must have become the last node; otherwise it was visited before
        // through sources that have changed since.
        graph->nodes[graph->n_nodes - 1] != tensor) {
        ggml_graph_set_error(graph, "graph: sources of a tensor were changed after it was added");
    }
    if (visit.frames != visit.few) ggml_mem_free(visit.frames);
}

void ggml_build_forward_expand(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor) {
    THREAD_GUARD_VOID(cgraph);
    visit_tensor(cgraph, tensor, true);
}

// Determines the order of the nodes only: without the COMPUTE flag none is computed until another
// call reaches it.
void ggml_build_forward_order(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor) {
    THREAD_GUARD_VOID(cgraph);
    visit_tensor(cgraph, tensor, false);
}

// All alternatives become part of the graph, so that graphs of different choices have the same
// nodes; only the chosen one is computed.
struct ggml_tensor *ggml_build_forward_select(struct ggml_cgraph *cgraph,
                                              struct ggml_tensor **tensors, int n_tensors,
                                              int idx) {
    THREAD_GUARD(cgraph, ggml_last_error_tensor(NULL));
    if (!cgraph || !tensors || idx < 0 || idx >= n_tensors) {
        if (cgraph) ggml_graph_set_error(cgraph, "ggml_build_forward_select: no such tensor");
        return ggml_error_tensor(NULL, "ggml_build_forward_select: tensor %d of %d", idx,
                                 n_tensors);
    }
    for (int i = 0; i < n_tensors; ++i) {
        visit_tensor(cgraph, tensors[i], i == idx);
    }
    return tensors[idx];
}
