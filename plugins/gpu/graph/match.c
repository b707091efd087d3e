// SPDX-License-Identifier: MIT
// The conditions of each fusion. All need types and layouts that kernels of any driver can count
// on: F32 with dense rows, and memory of the result that overlaps nothing which the launch still
// reads.
#include <string.h>

#include "ggml-shape.h"
#include "gpu/base/util.h"
#include "gpu/graph/fuse.h"

static const struct ggml_tensor *node_at(const struct gpu_window *w, int k) {
    return w->graph->nodes[w->idxs[k]];
}

// Whether the first n nodes each feed only the next.
static bool is_chain(const struct gpu_window *w, int n) {
    return n <= w->n && ggml_graph_can_fuse_at(w->graph, w->idxs, w->ops, n);
}

// Whether nothing but the last node is used elsewhere.
static bool is_closed(const struct gpu_window *w) {
    return ggml_graph_can_fuse_subgraph_at(w->graph, w->idxs, w->n, w->ops, &w->idxs[w->n - 1], 1);
}

// The source of a sum or product that is not `known`.
static const struct ggml_tensor *other_source(const struct ggml_tensor *node,
                                              const struct ggml_tensor *known) {
    return node->src[0] == known ? node->src[1] : node->src[0];
}

// A fused launch reads its sources while it writes the result, so that memory which the nodes in
// between would have given free must not be the result's.
static bool is_apart(const struct ggml_tensor *dst, const struct ggml_tensor *src) {
    const char *to = dst->data, *from = src->data;
    return !to || !from || to + ggml_nbytes(dst) <= from || from + ggml_nbytes(src) <= to;
}

// Element by element in the same place, or apart.
static bool is_in_step(const struct ggml_tensor *dst, const struct ggml_tensor *src) {
    return is_apart(dst, src) || (dst->data == src->data && ggml_are_same_shape(dst, src) &&
                                  ggml_is_packed(dst) && ggml_is_packed(src));
}

static bool is_float_rows(const struct ggml_tensor *t) {
    return t->type == GGML_TYPE_F32 && ggml_rows_dense(t);
}

static void add_operand(struct gpu_fused *fused, const struct ggml_tensor *tensor) {
    fused->operands[fused->n_operands++] = tensor;
}

// --- rms_norm, mul, add

static bool is_row_operand(const struct ggml_tensor *dst, const struct ggml_tensor *t) {
    return is_float_rows(t) && t->ne[0] == dst->ne[0] && ggml_repeats(t, dst) && is_apart(dst, t);
}

// Returns the number of nodes, 0: none, as all of these do.
// The weight may be either factor, and repeat over rows. A third node whose other term does not fit
// is left out: two of three are fused then.
static int match_norm(const struct gpu_window *w, struct gpu_fused *fused) {
    if (!is_chain(w, 2)) return 0;
    const struct ggml_tensor *norm = node_at(w, 0);
    const struct ggml_tensor *product = node_at(w, 1);
    const struct ggml_tensor *scale = other_source(product, norm);
    const struct ggml_tensor *dst = product, *term = NULL;
    if (is_chain(w, 3) && is_float_rows(node_at(w, 2)) &&
        is_row_operand(node_at(w, 2), other_source(node_at(w, 2), product))) {
        dst = node_at(w, 2);
        term = other_source(dst, product);
    }
    if (!is_float_rows(dst) || !is_float_rows(norm) || !is_row_operand(dst, scale) ||
        !is_in_step(dst, norm->src[0])) {
        return 0;
    }
    add_operand(fused, scale);
    if (term) add_operand(fused, term);
    return term ? 3 : 2;
}

// --- products

static bool is_glu_apart(const struct ggml_tensor *dst, const struct ggml_tensor *x,
                         const struct ggml_tensor *gate) {
    return is_float_rows(dst) && is_apart(dst, x->src[0]) && is_apart(dst, gate->src[0]) &&
           is_apart(dst, x->src[1]);
}

// Allocators like to put the result where the operand of both products was. It can be made in the
// place of a product then, which nothing reads any more, and copied: two launches instead of three.
static bool is_glu_indirect(const struct ggml_tensor *dst, const struct ggml_tensor *x,
                            const struct ggml_tensor *gate) {
    return is_apart(dst, x) && is_glu_apart(x, x, gate) && ggml_is_packed(x) && ggml_is_packed(dst);
}

// Whether the product reads the other's result, or a view of it, which a launch of both would not
// have stored yet.
static bool reads_result(const struct ggml_tensor *product, const struct ggml_tensor *other) {
    for (int s = 0; s < 2; ++s) {
        const struct ggml_tensor *root = product->src[s];
        while (root != other && root->view_src)
            root = root->view_src;
        if (root == other) return true;
    }
    return false;
}

static int match_glu(const struct gpu_window *w, struct gpu_fused *fused) {
    if (w->n != 3 || !is_closed(w)) return 0;
    const struct ggml_tensor *glu = node_at(w, 2);
    const struct ggml_tensor *x = glu->src[0], *gate = glu->src[1];
    const bool straight = x == node_at(w, 0) && gate == node_at(w, 1);
    if (!straight && !(x == node_at(w, 1) && gate == node_at(w, 0))) return 0;
    if (x->src[1] != gate->src[1] || reads_result(x, gate) || reads_result(gate, x)) return 0;
    fused->indirect = !is_glu_apart(glu, x, gate);
    if (fused->indirect && !is_glu_indirect(glu, x, gate)) return 0;
    add_operand(fused, x);
    add_operand(fused, gate);
    return 3;
}

static int match_bias(const struct gpu_window *w, struct gpu_fused *fused) {
    if (!is_chain(w, 2)) return 0;
    const struct ggml_tensor *product = node_at(w, 0);
    const struct ggml_tensor *sum = node_at(w, 1);
    const struct ggml_tensor *bias = other_source(sum, product);
    if (!is_float_rows(sum) || !is_float_rows(bias) || bias->ne[0] != sum->ne[0] ||
        !ggml_repeats(bias, sum) || !is_in_step(sum, bias) || !is_apart(sum, product->src[0]) ||
        !is_apart(sum, product->src[1])) {
        return 0;
    }
    add_operand(fused, bias);
    return 2;
}

// --- additions

// Bounded by the window, which ends where the next node is no addition.
static int count_chain(const struct gpu_window *w) {
    int n = 1;
    while (is_chain(w, n + 1))
        ++n;
    return n;
}

// Terms of the first n additions; 0 where one is not of the result's shape, dense and in step.
static int chain_terms(const struct gpu_window *w, int n, const struct ggml_tensor **terms) {
    const struct ggml_tensor *dst = node_at(w, n - 1);
    terms[0] = node_at(w, 0)->src[0];
    terms[1] = node_at(w, 0)->src[1];
    for (int k = 1; k < n; ++k)
        terms[k + 1] = other_source(node_at(w, k), node_at(w, k - 1));
    for (int k = 0; k <= n; ++k) {
        if (terms[k]->type != GGML_TYPE_F32 || !ggml_are_same_shape(terms[k], dst) ||
            !ggml_is_packed(terms[k]) || !is_in_step(dst, terms[k])) {
            return 0;
        }
    }
    return dst->type == GGML_TYPE_F32 && ggml_is_packed(dst) ? n + 1 : 0;
}

// The longest beginning of the chain of which all terms fit.
static int match_add_chain(const struct gpu_window *w, struct gpu_fused *fused) {
    int n = count_chain(w);
    while (n > 1 && (fused->n_operands = chain_terms(w, n, fused->operands)) == 0)
        --n;
    return n < 2 ? 0 : n;
}

// --- rope, view, set_rows

// Whether the rows hold, one after the other, what rope computes for each token.
static bool is_token_rows(const struct ggml_tensor *rope, const struct ggml_tensor *rows) {
    return rows->type == GGML_TYPE_F32 && ggml_is_packed(rope) && ggml_is_packed(rows) &&
           rows->ne[0] == rope->ne[0] * rope->ne[1] && rows->ne[1] == rope->ne[2] &&
           rope->ne[3] == 1 && rows->ne[2] == 1 && rows->ne[3] == 1 && rows->view_src == rope &&
           rows->view_offs == 0;
}

static bool is_row_table(const struct ggml_tensor *t) {
    return (t->type == GGML_TYPE_F32 || t->type == GGML_TYPE_F16 || t->type == GGML_TYPE_BF16) &&
           ggml_rows_dense(t) && t->ne[2] == 1 && t->ne[3] == 1;
}

static int match_rope_rows(const struct gpu_window *w, struct gpu_fused *fused) {
    if (w->n != 3 || !is_closed(w)) return 0;
    const struct ggml_tensor *rope = node_at(w, 0);
    const struct ggml_tensor *view = node_at(w, 1);
    const struct ggml_tensor *rows = node_at(w, 2);
    const struct ggml_tensor *ids = rows->src[1];
    if (rows->src[0] != view || rope->type != GGML_TYPE_F32 || !is_token_rows(rope, view) ||
        !is_row_table(rows) || !ggml_is_packed(ids) ||
        !(ids->type == GGML_TYPE_I64 || ids->type == GGML_TYPE_I32) ||
        !is_apart(rows, rope->src[0]) || !is_apart(rows, rope->src[1]) ||
        (rope->src[2] && !is_apart(rows, rope->src[2]))) {
        return 0;
    }
    add_operand(fused, ids);
    return 3;
}

// --- scale, add of a mask, soft_max

static bool is_mask(const struct ggml_tensor *mask, const struct ggml_tensor *dst) {
    return (mask->type == GGML_TYPE_F32 || mask->type == GGML_TYPE_F16) && ggml_rows_dense(mask) &&
           mask->ne[0] == dst->ne[0] && mask->ne[1] == dst->ne[1] && ggml_repeats(mask, dst) &&
           is_apart(dst, mask);
}

// Without bias, mask or sinks, and with a scale of one: the mask chain has them all.
static bool is_plain_soft_max(const struct ggml_tensor *node) {
    return !node->src[1] && !node->src[2] && ggml_get_op_params_f32(node, 0) == 1.0f &&
           ggml_get_op_params_f32(node, 1) == 0.0f;
}

static int match_mask(const struct gpu_window *w, struct gpu_fused *fused) {
    if (!is_chain(w, 3)) return 0;
    const struct ggml_tensor *scale = node_at(w, 0), *soft_max = node_at(w, 2);
    const struct ggml_tensor *mask = other_source(node_at(w, 1), scale);
    if (ggml_get_op_params_f32(scale, 1) != 0.0f || !is_plain_soft_max(soft_max) ||
        !is_float_rows(scale->src[0]) || scale->type != GGML_TYPE_F32 ||
        node_at(w, 1)->type != GGML_TYPE_F32 || !is_mask(mask, soft_max) ||
        !is_in_step(soft_max, scale->src[0])) {
        return 0;
    }
    add_operand(fused, mask);
    return 3;
}

// --- the list

typedef int (*match_fn)(const struct gpu_window *w, struct gpu_fused *fused);

static const match_fn matches[] = {
#define GPU_FUSION_ROW(name, ...) match_##name,
#include "gpu/graph/fuse_list.inl"
};

static const struct gpu_fusion fusions[] = {
#define GPU_FUSION_ROW(name, shape, least, most, op0, op1, op2)                                    \
    {#name, GPU_FUSION_##shape, least, most, {GGML_OP_##op0, GGML_OP_##op1, GGML_OP_##op2}},
#include "gpu/graph/fuse_list.inl"
};

const struct gpu_fusion *gpu_fusions(int *out_count) {
    *out_count = GPU_FUSION_COUNT;
    return fusions;
}

bool gpu_fusion_takes(const struct gpu_fusion *fusion, int k, const struct ggml_tensor *node) {
    const enum ggml_op op = fusion->ops[k < GPU_FUSION_OPS ? k : GPU_FUSION_OPS - 1];
    if (k >= fusion->most) return false;
    return node->op == op || (op == GGML_OP_VIEW && node->op == GGML_OP_RESHAPE);
}

uint32_t gpu_fusions_named(const char *list) {
    if (strcmp(list, "1") == 0) return UINT32_MAX;
    uint32_t named = 0;
    for (int k = 0; k < GPU_FUSION_COUNT; ++k)
        named |= (uint32_t)gpu_has_word(list, fusions[k].name) << k;
    return named;
}

bool gpu_fusion_match(enum gpu_fusion_number fusion, const struct gpu_window *window,
                      struct gpu_fused *out_fused) {
    *out_fused = (struct gpu_fused){.fusion = fusion};
    if (window->n < fusions[fusion].least) return false;
    out_fused->n = matches[fusion](window, out_fused);
    if (out_fused->n == 0) return false;
    for (int k = 0; k < out_fused->n; ++k)
        out_fused->nodes[k] = node_at(window, k);
    out_fused->dst = out_fused->nodes[out_fused->n - 1];
    return true;
}
