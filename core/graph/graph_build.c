// SPDX-License-Identifier: MIT
// The visit that puts a tensor and what it depends on into a graph. It keeps its own stack: graphs
// may be deeper than the thread's.
#include "base/mem.h"
#include "base/status.h"
#include "base/thread_guard.h"
#include "graph/context.h"
#include "graph/error_tensor.h"
#include "graph/graph.h"

struct frame {
    struct ggml_tensor *tensor;
    int next;   // source to visit next
    bool known; // was in the graph before: only hands the COMPUTE flag on
};

struct visit {
    struct ggml_cgraph *graph;
    bool compute;
    size_t depth;
    size_t capacity;
    struct frame *frames; // `few`, or allocated
    struct frame few[64];
};

static bool push(struct visit *visit, struct ggml_tensor *tensor, bool known) {
    if (visit->depth == visit->capacity) {
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
    }
    visit->frames[visit->depth++] = (struct frame){.tensor = tensor, .known = known};
    return true;
}

static bool has_sources(const struct ggml_tensor *tensor) {
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        if (tensor->src[i]) return true;
    }
    return false;
}

// Enters a tensor; *out_slot is its place in the hash set.
static bool enter(struct visit *visit, struct ggml_tensor *tensor, size_t *out_slot) {
    struct ggml_hash_set *set = &visit->graph->visited_hash_set;
    const size_t slot = ggml_hash_find(set, tensor);
    *out_slot = slot;
    if (ggml_tensor_is_error(tensor)) {
        ggml_graph_set_error(visit->graph, ggml_tensor_error(tensor));
        return false;
    }
    if (slot == GGML_HASHSET_FULL) {
        ggml_graph_set_error(visit->graph, "graph: it is full; create it with a larger size "
                                           "(ggml_new_graph_custom)");
        return false;
    }
    // A leaf with sources gets the flag too: it marks that what lies behind it was reached.
    const bool flagged = visit->compute && (tensor->op != GGML_OP_NONE || has_sources(tensor));
    if (flagged) tensor->flags |= GGML_TENSOR_FLAG_COMPUTE;
    if (ggml_bitset_get(set->used, slot)) return flagged ? push(visit, tensor, true) : true;
    ggml_bitset_set(set->used, slot);
    set->keys[slot] = tensor;
    visit->graph->use_counts[slot] = 0;
    if (visit->graph->grads) {
        visit->graph->grads[slot] = NULL;
        visit->graph->grad_accs[slot] = NULL;
    }
    return push(visit, tensor, false);
}

// All sources of the tensor are in the graph: adds it.
static bool append(struct ggml_cgraph *graph, struct ggml_tensor *tensor) {
    const bool leaf = tensor->op == GGML_OP_NONE && !(tensor->flags & GGML_TENSOR_FLAG_PARAM);
    int *count = leaf ? &graph->n_leafs : &graph->n_nodes;
    if (*count >= graph->size) {
        ggml_graph_set_error(graph, "graph: it is full; create it with a larger size "
                                    "(ggml_new_graph_custom)");
        return false;
    }
    if (tensor->name[0] == '\0') ggml_format_name(tensor, leaf ? "leaf_%d" : "node_%d", *count);
    (leaf ? graph->leafs : graph->nodes)[(*count)++] = tensor;
    return true;
}

static bool step(struct visit *visit) {
    struct ggml_cgraph *graph = visit->graph;
    struct frame *frame = &visit->frames[visit->depth - 1];
    struct ggml_tensor *tensor = frame->tensor;
    const bool known = frame->known;
    if (frame->next == GGML_MAX_SRC) {
        --visit->depth;
        return known || append(graph, tensor);
    }
    const bool backwards = graph->order == GGML_CGRAPH_EVAL_ORDER_RIGHT_TO_LEFT;
    struct ggml_tensor *src = tensor->src[backwards ? GGML_MAX_SRC - 1 - frame->next : frame->next];
    ++frame->next;
    if (!src || src == tensor) return true; // ggml_cast names its own result as a source
    if (known && (src->flags & GGML_TENSOR_FLAG_COMPUTE)) return true;
    size_t slot;
    if (!enter(visit, src, &slot)) return false;
    if (!known) ++graph->use_counts[slot];
    return true;
}

static void visit_tensor(struct ggml_cgraph *graph, struct ggml_tensor *tensor, bool compute) {
    struct visit visit = {.graph = graph, .compute = compute};
    visit.frames = visit.few;
    visit.capacity = sizeof(visit.few) / sizeof(visit.few[0]);
    if (!graph || !tensor) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "graph: the graph or the tensor is NULL");
        if (graph) ggml_graph_set_error(graph, "graph: a tensor that was added is NULL");
        return;
    }
    const int before = graph->n_nodes;
    size_t slot;
    graph->uid = 0;
    bool good = enter(&visit, tensor, &slot);
    while (good && visit.depth > 0) {
        good = step(&visit);
    }
    if (good && tensor->op != GGML_OP_NONE && graph->n_nodes > before &&
        graph->nodes[graph->n_nodes - 1] != tensor) {
        ggml_graph_set_error(graph, "graph: sources of a tensor were changed after it was added");
    }
    if (visit.frames != visit.few) ggml_mem_free(visit.frames);
}

void ggml_build_forward_expand(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor) {
    THREAD_GUARD_VOID(cgraph);
    visit_tensor(cgraph, tensor, true);
}

void ggml_build_forward_order(struct ggml_cgraph *cgraph, struct ggml_tensor *tensor) {
    THREAD_GUARD_VOID(cgraph);
    visit_tensor(cgraph, tensor, false);
}

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
