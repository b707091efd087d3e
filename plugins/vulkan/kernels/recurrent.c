// SPDX-License-Identifier: MIT
// State-space models, linear attention and other special ops.
#include "kernel.h"
#include "shape.h"

enum { GROUP = 32 };

// Modes of shaders/linear_attention.comp.
enum attention_mode { WKV6, GATED, WKV7 };

static bool has_type(const struct ggml_tensor *t, enum ggml_type type) {
    return t && t->type == type;
}

static bool has_shape(const struct ggml_tensor *t, int64_t ne0, int64_t ne1, int64_t ne2,
                      int64_t ne3) {
    return t->ne[0] == ne0 && t->ne[1] == ne1 && t->ne[2] == ne2 && t->ne[3] == ne3;
}

// --- state-space models --------------------------------------------------------------------------

bool vk_accepts_ssm_conv(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const struct ggml_tensor *x = node->src[0];
    const struct ggml_tensor *filter = node->src[1];
    return filter->ne[0] >= 1 && filter->ne[0] <= x->ne[0] && filter->ne[1] == x->ne[1] &&
           has_shape(node, x->ne[1], x->ne[0] - filter->ne[0] + 1, x->ne[2], 1);
}

void vk_encode_ssm_conv(struct vk_plan *plan, const struct ggml_tensor *node) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_ssm_conv, node, 2, GROUP);
    if (d) vk_dispatch_groups(plan, d, vk_groups_of(vk_nelements(node), GROUP));
}

static bool accepts_scan_shapes(const struct ggml_tensor *node) {
    struct ggml_tensor *const *src = node->src;
    const int64_t n = src[0]->ne[0], rows = src[0]->ne[1], heads = src[0]->ne[2];
    const int64_t tokens = src[1]->ne[2], sequences = src[1]->ne[3], groups = src[4]->ne[1];
    const bool shared = src[3]->ne[0] == 1;
    const int64_t states = n * rows * heads * sequences;
    return has_shape(src[1], rows, heads, tokens, sequences) &&
           has_shape(src[2], heads, tokens, sequences, 1) &&
           has_shape(src[3], shared ? 1 : n, heads, 1, 1) &&
           has_shape(src[4], n, groups, tokens, sequences) && vk_same_shape(src[5], src[4]) &&
           has_shape(src[6], sequences, 1, 1, 1) && groups > 0 && heads % groups == 0 &&
           tokens > 0 && node->op_params[0] >= 1 && (shared || node->op_params[0] == 1) &&
           vk_nelements(node) == vk_nelements(src[1]) + (uint64_t)(node->op_params[0] * states);
}

bool vk_accepts_ssm_scan(const struct vk_features *features, const struct ggml_tensor *node) {
    struct ggml_tensor *const *src = node->src;
    (void)features;
    for (int i = 3; i < 6; ++i) {
        if (!has_type(src[i], GGML_TYPE_F32) || !vk_rows_dense(src[i])) return false;
    }
    return has_type(src[6], GGML_TYPE_I32) && vk_contiguous(src[0]) && vk_contiguous(node) &&
           accepts_scan_shapes(node);
}

void vk_encode_ssm_scan(struct vk_plan *plan, const struct ggml_tensor *node) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_ssm_scan, node, 7, GROUP);
    const struct ggml_tensor *x = node->src[1];
    if (!d) return;
    vk_dispatch_spec(d, node->src[3]->ne[0] == 1);
    vk_dispatch_groups(plan, d, vk_groups_of((uint64_t)(x->ne[0] * x->ne[1] * x->ne[3]), GROUP));
}

// --- linear attention ----------------------------------------------------------------------------

// Sources before `state` have the shape of source 0, but for the bonus.
static bool accepts_attention(const struct ggml_tensor *node, int state, int bonus) {
    const struct ggml_tensor *k = node->src[0];
    for (int i = 0; i <= state; ++i) {
        const struct ggml_tensor *src = node->src[i];
        if (!has_type(src, GGML_TYPE_F32) || !vk_contiguous(src)) return false;
        if (i != state && i != bonus && !vk_same_shape(src, k)) return false;
    }
    const int64_t sequences = node->src[state]->ne[1];
    if (sequences < 1 || k->ne[2] % sequences != 0 || k->ne[3] != 1) return false;
    if (bonus >= 0 && (int64_t)vk_nelements(node->src[bonus]) != k->ne[0] * k->ne[1]) return false;
    const int64_t states = k->ne[0] * k->ne[0] * k->ne[1] * sequences;
    return (int64_t)vk_nelements(node->src[state]) == states &&
           has_shape(node, k->ne[0] * k->ne[1], k->ne[2] + k->ne[0] * sequences, 1, 1) &&
           vk_contiguous(node);
}

static void encode_attention(struct vk_plan *plan, const struct ggml_tensor *node,
                             enum attention_mode mode, int state) {
    const struct ggml_tensor *k = node->src[0];
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_linear_attention, node, 7, GROUP);
    if (!d) return;
    vk_dispatch_spec(d, mode);
    const uint64_t columns = (uint64_t)(k->ne[0] * k->ne[1] * node->src[state]->ne[1]);
    vk_dispatch_groups(plan, d, vk_groups_of(columns, GROUP));
}

bool vk_accepts_rwkv_wkv6(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return accepts_attention(node, 5, 3);
}

void vk_encode_rwkv_wkv6(struct vk_plan *plan, const struct ggml_tensor *node) {
    encode_attention(plan, node, WKV6, 5);
}

bool vk_accepts_rwkv_wkv7(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return accepts_attention(node, 6, -1);
}

void vk_encode_rwkv_wkv7(struct vk_plan *plan, const struct ggml_tensor *node) {
    encode_attention(plan, node, WKV7, 6);
}

bool vk_accepts_gated_linear_attn(const struct vk_features *features,
                                  const struct ggml_tensor *node) {
    (void)features;
    return accepts_attention(node, 4, -1);
}

void vk_encode_gated_linear_attn(struct vk_plan *plan, const struct ggml_tensor *node) {
    encode_attention(plan, node, GATED, 4);
}

// Heads and sequences of q and k, each shared by a whole number of those of v.
static bool accepts_shared(const struct ggml_tensor *t, const struct ggml_tensor *v) {
    return t->ne[0] == v->ne[0] && t->ne[2] == v->ne[2] && t->ne[1] > 0 && t->ne[3] > 0 &&
           v->ne[1] % t->ne[1] == 0 && v->ne[3] % t->ne[3] == 0 && vk_rows_dense(t);
}

bool vk_accepts_gated_delta_net(const struct vk_features *features,
                                const struct ggml_tensor *node) {
    struct ggml_tensor *const *src = node->src;
    const struct ggml_tensor *v = src[2];
    const int64_t snapshots = node->op_params[0];
    (void)features;
    for (int i = 3; i < 6; ++i) {
        if (!has_type(src[i], GGML_TYPE_F32)) return false;
    }
    const int64_t states = v->ne[0] * v->ne[0] * v->ne[1] * v->ne[3];
    return snapshots >= 1 && v->ne[2] > 0 && accepts_shared(src[0], v) &&
           accepts_shared(src[1], v) && vk_rows_dense(src[3]) &&
           has_shape(src[3], src[3]->ne[0] == 1 ? 1 : v->ne[0], v->ne[1], v->ne[2], v->ne[3]) &&
           has_shape(src[4], 1, v->ne[1], v->ne[2], v->ne[3]) && vk_contiguous(src[5]) &&
           (int64_t)vk_nelements(src[5]) == states && vk_contiguous(node) &&
           (int64_t)vk_nelements(node) == (int64_t)vk_nelements(v) + snapshots * states;
}

void vk_encode_gated_delta_net(struct vk_plan *plan, const struct ggml_tensor *node) {
    const struct ggml_tensor *v = node->src[2];
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_delta_net, node, 6, GROUP);
    if (!d) return;
    vk_dispatch_groups(plan, d, vk_groups_of((uint64_t)(v->ne[0] * v->ne[1] * v->ne[3]), GROUP));
}

// --- triangular systems --------------------------------------------------------------------------

bool vk_accepts_solve_tri(const struct vk_features *features, const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    (void)features;
    return has_shape(a, b->ne[1], b->ne[1], b->ne[2], b->ne[3]) && vk_same_shape(node, b) &&
           vk_contiguous(a) && vk_contiguous(b) && vk_contiguous(node);
}

void vk_encode_solve_tri(struct vk_plan *plan, const struct ggml_tensor *node) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_solve_tri, node, 2, GROUP);
    if (!d) return;
    const uint64_t columns = (uint64_t)(node->ne[0] * node->ne[2] * node->ne[3]);
    vk_dispatch_groups(plan, d, vk_groups_of(columns, GROUP));
}

// --- indexer, hyper-connections ------------------------------------------------------------------

bool vk_accepts_lightning_indexer(const struct vk_features *features,
                                  const struct ggml_tensor *node) {
    const struct ggml_tensor *q = node->src[0];
    const struct ggml_tensor *k = node->src[1];
    const struct ggml_tensor *mask = node->src[3];
    (void)features;
    if (!has_type(mask, GGML_TYPE_F16) || mask->ne[3] < 1 || q->ne[3] % mask->ne[3] != 0)
        return false;
    return vk_rows_dense(k) && k->ne[0] % vk_type_size(k->type).block == 0 && vk_rows_dense(q) &&
           has_shape(k, q->ne[0], 1, k->ne[2], q->ne[3]) &&
           has_shape(node->src[2], q->ne[1], q->ne[2], 1, q->ne[3]) &&
           has_shape(mask, k->ne[2], q->ne[2], 1, mask->ne[3]) &&
           has_shape(node, k->ne[2], q->ne[2], 1, q->ne[3]);
}

void vk_encode_lightning_indexer(struct vk_plan *plan, const struct ggml_tensor *node) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_indexer, node, 4, GROUP);
    if (!d) return;
    vk_dispatch_spec(d, node->src[1]->type);
    vk_dispatch_groups(plan, d, vk_groups_of(vk_nelements(node), GROUP));
}

bool vk_accepts_dsv4_hc_comb(const struct vk_features *features, const struct ggml_tensor *node) {
    const struct ggml_tensor *mixes = node->src[0];
    (void)features;
    return has_shape(mixes, 24, mixes->ne[1], 1, 1) && node->src[1]->ne[0] >= 3 &&
           node->src[2]->ne[0] == 24 && has_shape(node, 4, 4, mixes->ne[1], 1);
}

void vk_encode_dsv4_hc_comb(struct vk_plan *plan, const struct ggml_tensor *node) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_hyper_comb, node, 3, GROUP);
    if (d) vk_dispatch_groups(plan, d, vk_groups_of((uint64_t)node->ne[2], GROUP));
}

bool vk_accepts_dsv4_hc_pre(const struct vk_features *features, const struct ggml_tensor *node) {
    const struct ggml_tensor *x = node->src[0];
    (void)features;
    return has_shape(node->src[1], x->ne[1], x->ne[2], 1, 1) && x->ne[3] == 1 &&
           has_shape(node, x->ne[0], x->ne[2], 1, 1);
}

bool vk_accepts_dsv4_hc_post(const struct vk_features *features, const struct ggml_tensor *node) {
    const struct ggml_tensor *r = node->src[1];
    (void)features;
    return has_type(node->src[3], GGML_TYPE_F32) && r->ne[3] == 1 &&
           has_shape(node->src[0], r->ne[0], r->ne[2], 1, 1) &&
           has_shape(node->src[2], r->ne[1], r->ne[2], 1, 1) &&
           has_shape(node->src[3], r->ne[1], r->ne[1], r->ne[2], 1) && vk_same_shape(node, r);
}

void vk_encode_dsv4_hc_mix(struct vk_plan *plan, const struct ggml_tensor *node) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_hyper_mix, node, 4, GROUP);
    if (!d) return;
    vk_dispatch_spec(d, node->op == GGML_OP_DSV4_HC_POST);
    vk_dispatch_groups(plan, d, vk_groups_of(vk_nelements(node), GROUP));
}
