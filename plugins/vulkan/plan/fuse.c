// SPDX-License-Identifier: MIT
#include "plan/fuse.h"

#include <string.h>

#include "base/util.h"
#include "ops/mul_mat/mul_mat.h"
#include "plan/shape.h"

enum vk_fusion_number {
#define VK_FUSION_ROW(name, ...) FUSION_##name,
#include "plan/fuse_list.inl"
    N_FUSIONS,
};

enum { MAX_TERMS = VK_MAX_FUSED + 1 }; // of a chain of additions, as in shaders/add_chain.comp

// Nodes with the ops of a fusion.
struct window {
    const struct ggml_graph *graph;
    const int *idxs;
    int n;
    enum ggml_op ops[VK_MAX_FUSED];
};

static const struct ggml_tensor *node_at(const struct window *w, int k) {
    return w->graph->nodes[w->idxs[k]];
}

// Whether the first n nodes each feed only the next.
static bool is_chain(const struct window *w, int n) {
    return n <= w->n && ggml_graph_can_fuse_at(w->graph, w->idxs, w->ops, n);
}

// Whether nothing but the last node is used elsewhere.
static bool is_closed(const struct window *w) {
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

static void set_operand(struct vk_dispatch *d, int i, const struct ggml_tensor *tensor) {
    d->operands[i] = (struct vk_operand){.tensor = tensor};
    if (i >= d->n_operands) d->n_operands = i + 1;
}

// Encodes `node` by its own kernel; answers the one dispatch that this is, or NULL.
static struct vk_dispatch *encode_alone(struct vk_plan *plan, const struct ggml_tensor *node) {
    const int before = plan->n_dispatches;
    if (!vk_plan_add(plan, node)) return NULL;
    return plan->n_dispatches == before + 1 ? &plan->dispatches[before] : NULL;
}

// --- rms_norm, mul, add

static bool is_row_operand(const struct ggml_tensor *dst, const struct ggml_tensor *t) {
    return is_float_rows(t) && t->ne[0] == dst->ne[0] && ggml_repeats(t, dst) && is_apart(dst, t);
}

static int fuse_norm(struct vk_plan *plan, const struct window *w) {
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
    struct vk_dispatch *d = encode_alone(plan, norm);
    if (!d) return 0;
    enum { SPEC_VECTORS = 4 }; // of norm.comp
    d->shader = VK_SHADER_norm_scaled;
    d->specs[SPEC_VECTORS] &= vk_rows_aligned(dst, 16) && vk_rows_aligned(scale, 16) &&
                              (!term || vk_rows_aligned(term, 16));
    vk_dispatch_spec(d, term != NULL);
    set_operand(d, 0, dst);
    set_operand(d, 2, scale);
    set_operand(d, 3, term ? term : scale);
    return term ? 3 : 2;
}

// --- products

static void replace_operand(struct vk_plan *plan, int first, const struct ggml_tensor *from,
                            const struct ggml_tensor *to) {
    for (int i = first; i < plan->n_dispatches; ++i) {
        struct vk_dispatch *d = &plan->dispatches[i];
        for (int k = 0; k < d->n_operands; ++k) {
            if (d->operands[k].tensor == from) d->operands[k].tensor = to;
        }
    }
}

static bool is_glu_apart(const struct ggml_tensor *dst, const struct ggml_tensor *x,
                         const struct ggml_tensor *gate) {
    return is_float_rows(dst) && is_apart(dst, x->src[0]) && is_apart(dst, gate->src[0]) &&
           is_apart(dst, x->src[1]);
}

// Allocators like to put the result where the operand of both products was. It is made in the place
// of a product then, and copied.
static int fuse_glu_through(struct vk_plan *plan, const struct ggml_tensor *glu,
                            const struct ggml_tensor *x, const struct ggml_tensor *gate) {
    const int before = plan->n_dispatches;
    struct ggml_tensor copy = *glu;
    memset(copy.src, 0, sizeof(copy.src));
    copy.op = GGML_OP_CONT;
    copy.src[0] = glu->src[0];
    if (!is_apart(glu, x) || !is_glu_apart(x, x, gate) || !ggml_is_packed(x) ||
        !ggml_is_packed(glu) || !vk_encode_mul_mat_glu(plan, x, gate, glu)) {
        return 0;
    }
    replace_operand(plan, before, glu, x);
    if (vk_plan_add(plan, &copy)) {
        replace_operand(plan, before, &copy, glu);
        return 3;
    }
    plan->n_dispatches = before;
    return 0;
}

static int fuse_glu(struct vk_plan *plan, const struct window *w) {
    if (!is_closed(w)) return 0;
    const struct ggml_tensor *glu = node_at(w, 2);
    const struct ggml_tensor *x = glu->src[0], *gate = glu->src[1];
    const bool straight = x == node_at(w, 0) && gate == node_at(w, 1);
    if (!straight && !(x == node_at(w, 1) && gate == node_at(w, 0))) return 0;
    if (x->src[1] != gate->src[1]) return 0;
    if (!is_glu_apart(glu, x, gate)) return fuse_glu_through(plan, glu, x, gate);
    return vk_encode_mul_mat_glu(plan, x, gate, glu) ? 3 : 0;
}

static int fuse_bias(struct vk_plan *plan, const struct window *w) {
    if (!is_chain(w, 2)) return 0;
    const struct ggml_tensor *product = node_at(w, 0);
    const struct ggml_tensor *sum = node_at(w, 1);
    const struct ggml_tensor *bias = other_source(sum, product);
    if (!is_float_rows(sum) || !is_float_rows(bias) || bias->ne[0] != sum->ne[0] ||
        !ggml_repeats(bias, sum) || !is_in_step(sum, bias) || !is_apart(sum, product->src[0]) ||
        !is_apart(sum, product->src[1])) {
        return 0;
    }
    return vk_encode_mul_mat_bias(plan, product, bias, sum) ? 2 : 0;
}

// --- additions

static int count_chain(const struct window *w) {
    int n = 1;
    while (is_chain(w, n + 1))
        ++n;
    return n;
}

// Terms of the first n additions; 0 where one is not of the result's shape, dense and in step.
static int chain_terms(const struct window *w, int n, const struct ggml_tensor **terms) {
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

static int fuse_add_chain(struct vk_plan *plan, const struct window *w) {
    enum { GROUP = 64 };
    const struct ggml_tensor *terms[MAX_TERMS];
    int n = count_chain(w), n_terms = 0;
    while (n > 1 && (n_terms = chain_terms(w, n, terms)) == 0)
        --n;
    if (n < 2) return 0;
    const struct ggml_tensor *dst = node_at(w, n - 1);
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_add_chain, dst, 0, GROUP);
    if (!d) return 0;
    vk_dispatch_spec(d, (uint32_t)n_terms);
    for (int k = 0; k < MAX_TERMS; ++k)
        set_operand(d, 1 + k, terms[k < n_terms ? k : 0]);
    vk_dispatch_groups(plan, d, vk_groups_of(vk_nelements(dst), (uint64_t)GROUP * 4));
    return n;
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

static int fuse_rope_rows(struct vk_plan *plan, const struct window *w) {
    if (!is_closed(w)) return 0;
    const struct ggml_tensor *rope = node_at(w, 0);
    const struct ggml_tensor *view = node_at(w, 1);
    const struct ggml_tensor *rows = node_at(w, 2);
    const struct ggml_tensor *ids = rows->src[1];
    const bool wide = ids->type == GGML_TYPE_I64;
    if (rows->src[0] != view || rope->type != GGML_TYPE_F32 || !is_token_rows(rope, view) ||
        !is_row_table(rows) || !ggml_is_packed(ids) || !(wide || ids->type == GGML_TYPE_I32) ||
        !is_apart(rows, rope->src[0]) || !is_apart(rows, rope->src[1]) ||
        (rope->src[2] && !is_apart(rows, rope->src[2]))) {
        return 0;
    }
    struct vk_dispatch *d = encode_alone(plan, rope);
    if (!d) return 0;
    d->shader = VK_SHADER_rope_rows;
    vk_dispatch_spec(d, rows->type);
    vk_dispatch_spec(d, wide);
    set_operand(d, 0, rows);
    if (!rope->src[2]) set_operand(d, 3, ids);
    set_operand(d, 4, ids);
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

static int fuse_mask(struct vk_plan *plan, const struct window *w) {
    if (!is_chain(w, 3)) return 0;
    const struct ggml_tensor *scale = node_at(w, 0), *soft_max = node_at(w, 2);
    const struct ggml_tensor *mask = other_source(node_at(w, 1), scale);
    if (ggml_get_op_params_f32(scale, 1) != 0.0f || !is_plain_soft_max(soft_max) ||
        !is_float_rows(scale->src[0]) || scale->type != GGML_TYPE_F32 ||
        node_at(w, 1)->type != GGML_TYPE_F32 || !is_mask(mask, soft_max) ||
        !is_in_step(soft_max, scale->src[0])) {
        return 0;
    }
    struct ggml_tensor whole = *soft_max; // as if it had been one
    whole.src[0] = scale->src[0];
    whole.src[1] = (struct ggml_tensor *)(uintptr_t)mask;
    memcpy(whole.op_params, scale->op_params, sizeof(float));
    const int before = plan->n_dispatches;
    if (!encode_alone(plan, &whole)) return 0;
    replace_operand(plan, before, &whole, soft_max);
    return 3;
}

// --- the list

typedef int (*fuse_fn)(struct vk_plan *plan, const struct window *w);

static const fuse_fn functions[] = {
#define VK_FUSION_ROW(name, ...) fuse_##name,
#include "plan/fuse_list.inl"
};

static const struct vk_fusion fusions[] = {
#define VK_FUSION_ROW(name, shape, least, most, op0, op1, op2)                                     \
    {#name, VK_FUSION_##shape, least, most, {GGML_OP_##op0, GGML_OP_##op1, GGML_OP_##op2}},
#include "plan/fuse_list.inl"
};

const struct vk_fusion *vk_fusions(int *out_count) {
    *out_count = N_FUSIONS;
    return fusions;
}

bool vk_fusion_takes(const struct vk_fusion *fusion, int k, const struct ggml_tensor *node) {
    const enum ggml_op op = fusion->ops[k < VK_FUSION_OPS ? k : VK_FUSION_OPS - 1];
    if (k >= fusion->most) return false;
    return node->op == op || (op == GGML_OP_VIEW && node->op == GGML_OP_RESHAPE);
}

uint32_t vk_fusions_disabled(void) {
    const char *list = vk_config("GGML_VULKAN_DISABLE_FUSION");
    if (strcmp(list, "1") == 0) return UINT32_MAX;
    uint32_t disabled = 0;
    for (int k = 0; k < N_FUSIONS; ++k)
        disabled |= (uint32_t)vk_has_word(list, fusions[k].name) << k;
    return disabled;
}

static int fuse_by(struct vk_plan *plan, const struct ggml_graph *graph, int k, const int *idxs,
                   int n) {
    struct window w = {.graph = graph, .idxs = idxs};
    if (plan->fusions_disabled >> k & 1) return 0;
    while (w.n < n && vk_fusion_takes(&fusions[k], w.n, graph->nodes[idxs[w.n]])) {
        w.ops[w.n] = graph->nodes[idxs[w.n]]->op;
        w.n++;
    }
    return w.n >= fusions[k].least ? functions[k](plan, &w) : 0;
}

int vk_fuse(struct vk_plan *plan, const struct ggml_graph *graph, int i) {
    int idxs[VK_MAX_FUSED], n = 0;
    for (; n < VK_MAX_FUSED && i + n < graph->n_nodes; ++n)
        idxs[n] = i + n;
    for (int k = 0; k < N_FUSIONS; ++k) {
        const int fused = fuse_by(plan, graph, k, idxs, n);
        if (fused > 0 || plan->out_of_memory) return fused;
    }
    return 0;
}

int vk_fuse_ask(struct vk_plan *plan, const struct ggml_graph *graph, int k, const int *idxs,
                int n) {
    vk_plan_clear(plan);
    const int fused = fuse_by(plan, graph, k, idxs, n);
    vk_plan_clear(plan);
    return fused;
}
