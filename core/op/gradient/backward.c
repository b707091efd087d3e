// SPDX-License-Identifier: MIT
// ggml_build_backward_expand(): which nodes get a gradient, and how gradients add up.
#include "op/gradient/backward.h"

#include "base/mem.h"
#include "base/status.h"
#include "graph/graph.h"
#include "tensor/error_tensor.h"

// Slot of a tensor in the graph's hash set, or GGML_HASHSET_FULL. Gradients are kept in arrays by
// slot, parallel to the set, so that no tensor needs a field for them. O(1) expected.
static size_t slot_of(const struct ggml_cgraph *graph, const struct ggml_tensor *tensor) {
    const struct ggml_hash_set *set = &graph->visited_hash_set;
    const size_t slot = tensor ? ggml_hash_find(set, tensor) : GGML_HASHSET_FULL;
    const bool known = slot != GGML_HASHSET_FULL && ggml_bitset_get(set->used, slot);
    return known ? slot : GGML_HASHSET_FULL;
}

// Whether a gradient has to be computed for the tensor. False for sources that are not in the graph
// and for NULL.
bool backward_wants(const struct backward *pass, const struct ggml_tensor *tensor) {
    const size_t slot = slot_of(pass->graph, tensor);
    return slot != GGML_HASHSET_FULL && pass->wanted[slot];
}

// Keeps the first failure only, since those that follow are its consequences. The reason is
// recorded in the graph, so that computing it fails with the same message.
void backward_fail(struct backward *pass, const struct ggml_tensor *node, const char *why) {
    if (pass->failed) return;
    struct ggml_tensor *error =
        ggml_error_tensor(pass->ctx, "ggml_build_backward_expand: %s '%s': %s",
                          node ? ggml_op_desc(node) : "graph", node ? node->name : "", why);
    ggml_graph_set_error(pass->graph, ggml_tensor_error(error));
    pass->failed = true;
}

// Makes `grad` the gradient in a slot and appends to the graph what computes it. Fails where a rule
// has produced an error tensor or a gradient of another shape than its tensor, which would be a
// mistake of the rule.
static void put_grad(struct backward *pass, struct ggml_tensor *tensor, size_t slot,
                     struct ggml_tensor *grad) {
    if (ggml_tensor_is_error(grad)) {
        char why[256];
        snprintf(why, sizeof(why), "no gradient of source '%s': %s", tensor->name,
                 ggml_last_error());
        backward_fail(pass, pass->node, why);
        return;
    }
    if (!ggml_are_same_shape(grad, tensor)) {
        backward_fail(pass, pass->node, "the gradient of a source would have another shape");
        return;
    }
    ggml_format_name(grad, "grad for %s", tensor->name);
    pass->graph->grads[slot] = grad;
    ggml_build_forward_expand(pass->graph, grad);
    pass->failed = pass->graph->error != NULL;
}

// Adds a contribution: a tensor with several users has the sum of theirs. An accumulator outlives
// the graph and is added to in place. Other gradients get a new tensor, since nodes of the backward
// graph may already read the older one.
void backward_give(struct backward *pass, struct ggml_tensor *tensor, struct ggml_tensor *grad) {
    const size_t slot = slot_of(pass->graph, tensor);
    if (pass->failed || slot == GGML_HASHSET_FULL) return;
    struct ggml_tensor *old = pass->graph->grads[slot];
    if (old && pass->graph->grad_accs[slot]) {
        grad = ggml_add_inplace(pass->ctx, old, grad);
    } else if (old) {
        grad = ggml_add(pass->ctx, old, grad);
    }
    put_grad(pass, tensor, slot, grad);
}

// F32 zeros with the tensor's extents.
static struct ggml_tensor *zeros_like(struct backward *pass, struct ggml_tensor *tensor) {
    if (tensor->type != GGML_TYPE_F32) tensor = ggml_cast(pass->ctx, tensor, GGML_TYPE_F32);
    return ggml_fill(pass->ctx, tensor, 0.0f);
}

// Adds the gradient of a region of the tensor, which a view or an assignment selected. The first
// contribution is embedded in zeros, since the rest of the tensor gets nothing from it.
void backward_give_region(struct backward *pass, struct ggml_tensor *tensor,
                          struct ggml_tensor *grad, const struct backward_region *region) {
    const size_t slot = slot_of(pass->graph, tensor);
    if (pass->failed || slot == GGML_HASHSET_FULL) return;
    const size_t *nb = region->nb;
    struct ggml_tensor *base = pass->graph->grads[slot];
    if (base && pass->graph->grad_accs[slot]) {
        grad = ggml_acc_inplace(pass->ctx, base, grad, nb[1], nb[2], nb[3], region->offset);
    } else {
        if (!base) base = zeros_like(pass, tensor);
        if (!ggml_is_contiguous(base)) base = ggml_cont(pass->ctx, base);
        grad = ggml_acc(pass->ctx, base, grad, nb[1], nb[2], nb[3], region->offset);
    }
    put_grad(pass, tensor, slot, grad);
}

// --- marking -------------------------------------------------------------------------------------

// Marking is the forward half of reverse-mode differentiation: it finds the nodes that both depend
// on a parameter and may reach the loss, so that no gradient is built that nothing reads.
// Whether the function's slope is 0 wherever it has one, so that no gradient passes through it.
static bool is_piecewise_constant(enum ggml_unary_op op) {
    switch (op) {
    case GGML_UNARY_OP_SGN:
    case GGML_UNARY_OP_STEP:
    case GGML_UNARY_OP_FLOOR:
    case GGML_UNARY_OP_CEIL:
    case GGML_UNARY_OP_ROUND:
    case GGML_UNARY_OP_TRUNC: return true;
    default: return false;
    }
}

// Whether the node depends differentiably on source i: indices, positions, a kernel that gives its
// shape only and the destination of a copy are no such sources.
static bool is_relevant(const struct ggml_tensor *node, int i) {
    switch (node->op) {
    case GGML_OP_IM2COL:
    case GGML_OP_IM2COL_BACK: return i != 0;
    case GGML_OP_CPY:
    case GGML_OP_GET_ROWS:
    case GGML_OP_GET_ROWS_BACK:
    case GGML_OP_ROPE: return i != 1;
    case GGML_OP_FILL: return false;
    case GGML_OP_UNARY: return !is_piecewise_constant(ggml_get_unary_op(node));
    default: return true;
    }
}

// Whether the node overwrites a source that the rules of other nodes may have to read. Views share
// memory and change nothing, and CPY is defined as writing to its second source.
static bool overwrites_source(const struct ggml_tensor *node) {
    switch (node->op) {
    case GGML_OP_NONE:
    case GGML_OP_CPY:
    case GGML_OP_VIEW:
    case GGML_OP_RESHAPE:
    case GGML_OP_PERMUTE:
    case GGML_OP_TRANSPOSE: return false;
    default: return node->view_src != NULL;
    }
}

// Whether a gradient reaches the node through one of its sources. A graph has sources before their
// users, so that their marks are final here.
static bool wants_through_sources(struct backward *pass, const struct ggml_tensor *node) {
    bool wants = false;
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        const struct ggml_tensor *src = node->src[i];
        if (!src || !is_relevant(node, i) || !backward_wants(pass, src)) continue;
        if (src->type != GGML_TYPE_F32 && src->type != GGML_TYPE_F16) {
            backward_fail(pass, node, "a source that needs a gradient is neither F32 nor F16");
        }
        wants = true;
    }
    return wants;
}

// Gives the node an accumulator, a gradient that survives graphs: the one that the caller passed,
// or for a loss a new one, which ggml_graph_reset() sets to 1 as the start of the pass.
static void start_accumulator(struct backward *pass, struct ggml_tensor *node, size_t slot,
                              struct ggml_tensor *given) {
    struct ggml_tensor *acc = given;
    if (!acc && (node->flags & GGML_TENSOR_FLAG_LOSS)) {
        acc = ggml_new_tensor(pass->ctx, GGML_TYPE_F32, GGML_MAX_DIMS, node->ne);
        if (!ggml_tensor_is_error(acc)) ggml_format_name(acc, "grad acc for %s", node->name);
    }
    if (!acc) return;
    if (ggml_tensor_is_error(acc)) {
        backward_fail(pass, node, ggml_last_error());
    } else if (acc->type != GGML_TYPE_F32 || !ggml_are_same_shape(acc, node)) {
        backward_fail(pass, node, "its gradient accumulator must be F32 and of its shape");
    }
    pass->graph->grads[slot] = acc;
    pass->graph->grad_accs[slot] = acc;
}

// A node wants a gradient if it is a parameter or a loss, or if a source that it depends on wants
// one.
static void mark_node(struct backward *pass, struct ggml_tensor *node, struct ggml_tensor *given) {
    const int flags = GGML_TENSOR_FLAG_PARAM | GGML_TENSOR_FLAG_LOSS;
    const size_t slot = slot_of(pass->graph, node);
    if (node->type == GGML_TYPE_I32 || slot == GGML_HASHSET_FULL) return;
    if (!wants_through_sources(pass, node) && !(node->flags & flags)) return;
    if (overwrites_source(node)) {
        backward_fail(pass, node,
                      "it works in place, so its gradient is lost; use the form of the "
                      "operation that makes a new tensor");
        return;
    }
    pass->wanted[slot] = true;
    start_accumulator(pass, node, slot, given);
}

// --- the pass ------------------------------------------------------------------------------------

// One walk in the order of the graph: O(nodes).
static void mark_nodes(struct backward *pass, struct ggml_tensor **grad_accs) {
    struct ggml_cgraph *graph = pass->graph;
    int flags = 0;
    for (int i = 0; i < graph->n_nodes; ++i) {
        flags |= graph->nodes[i]->flags;
    }
    if (!(flags & GGML_TENSOR_FLAG_PARAM) || !(flags & GGML_TENSOR_FLAG_LOSS)) {
        backward_fail(pass, NULL,
                      flags & GGML_TENSOR_FLAG_LOSS
                          ? "no node is a parameter; call ggml_set_param before the "
                            "forward graph is built"
                          : "no node is a loss; call ggml_set_loss");
    }
    for (int i = 0; i < graph->n_nodes && !pass->failed; ++i) {
        mark_node(pass, graph->nodes[i], grad_accs ? grad_accs[i] : NULL);
    }
}

// Reverse accumulation: all users of the node come after it and have given their parts, so its
// gradient is complete.
static void pass_back(struct backward *pass, struct ggml_tensor *node) {
    struct ggml_tensor *grad = ggml_graph_get_grad(pass->graph, node);
    const backward_rule rule = backward_rule_of(node->op);
    bool wants = false;
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        wants = wants || (is_relevant(node, i) && backward_wants(pass, node->src[i]));
        // A node may have a gradient that only the caller reads; without a source that wants one
        // there is nothing to pass on.
    }
    if (!grad || !wants) return;
    // Remembered for messages of the helpers that the rule calls.
    pass->node = node;
    if (rule) {
        rule(pass, node, grad);
    } else {
        backward_fail(pass, node, "this operation has no gradient here");
    }
}

// Forward marking, then reverse accumulation over the same order: O(nodes) rules, each of which
// appends a few nodes. The graph must have been made with room for gradients. On failure the graph
// is in error and keeps the gradients that were built.
void ggml_build_backward_expand(struct ggml_context *ctx, struct ggml_cgraph *cgraph,
                                struct ggml_tensor **grad_accs) {
    if (!ctx || !cgraph) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "ggml_build_backward_expand: the context or the graph is NULL");
        return;
    }
    if (cgraph->error) return;
    struct backward pass = {.ctx = ctx, .graph = cgraph};
    const size_t n_slots = cgraph->visited_hash_set.size;
    if (cgraph->n_nodes < 1 || !cgraph->grads || !cgraph->grad_accs) {
        backward_fail(&pass, NULL,
                      "it has no nodes or was made without gradients; use "
                      "ggml_new_graph_custom with grads, and build it forward first");
        return;
    }
    memset(cgraph->grads, 0, n_slots * sizeof(cgraph->grads[0]));
    memset(cgraph->grad_accs, 0, n_slots * sizeof(cgraph->grad_accs[0]));
    pass.wanted = ggml_mem_calloc(n_slots, sizeof(pass.wanted[0]));
    if (!pass.wanted) {
        backward_fail(&pass, NULL, "no memory to mark its nodes");
        return;
    }
    // Rules append nodes; only those of the forward graph are passed through.
    const int n_forward = cgraph->n_nodes;
    mark_nodes(&pass, grad_accs);
    for (int i = n_forward - 1; i >= 0 && !pass.failed; --i) {
        pass_back(&pass, cgraph->nodes[i]);
    }
    ggml_mem_free(pass.wanted);
}
