// SPDX-License-Identifier: MIT
// What the kernels of state-space models, linear attention and other special ops compute.
#include "kernel_list.h"
#include "kernels/indexer.h"
#include "kernels/linear_attention.h"
#include "kernels/ssm.h"
#include "shape.h"

static int64_t limited_cost(double cost) {
    return cost < 1e18 ? (int64_t)cost : INT64_MAX;
}

static bool has_type(const struct ggml_tensor *t, enum ggml_type type) {
    return t && t->type == type;
}

static bool has_shape(const struct ggml_tensor *t, int64_t ne0, int64_t ne1, int64_t ne2,
                      int64_t ne3) {
    return t->ne[0] == ne0 && t->ne[1] == ne1 && t->ne[2] == ne2 && t->ne[3] == ne3;
}

// --- state-space models
// ------------------------------------------------------------------------------

bool cpu_accepts_ssm_conv(const struct ggml_tensor *node) {
    const struct ggml_tensor *x = node->src[0];
    const struct ggml_tensor *filter = node->src[1];
    return filter->ne[0] >= 1 && filter->ne[0] <= x->ne[0] && filter->ne[1] == x->ne[1] &&
           has_shape(node, x->ne[1], x->ne[0] - filter->ne[0] + 1, x->ne[2], 1) &&
           cpu_rows_dense(node);
}

static bool accepts_scan_shapes(const struct ggml_tensor *node, const struct ssm_size *s) {
    struct ggml_tensor *const *src = node->src;
    return has_shape(src[1], s->rows, s->heads, s->tokens, s->sequences) &&
           has_shape(src[2], s->heads, s->tokens, s->sequences, 1) &&
           has_shape(src[3], s->shared_rate ? 1 : s->n, s->heads, 1, 1) &&
           has_shape(src[4], s->n, s->groups, s->tokens, s->sequences) &&
           cpu_same_shape(src[5], src[4]) && has_shape(src[6], s->sequences, 1, 1, 1);
}

bool cpu_accepts_ssm_scan(const struct ggml_tensor *node) {
    struct ggml_tensor *const *src = node->src;
    for (int i = 3; i < 6; ++i) {
        if (!has_type(src[i], GGML_TYPE_F32) || !cpu_rows_dense(src[i])) return false;
    }
    if (!has_type(src[6], GGML_TYPE_I32)) return false;
    const struct ssm_size s = ssm_size(node);
    return accepts_scan_shapes(node, &s) && s.groups > 0 && s.heads % s.groups == 0 &&
           s.snapshots >= 1 && (s.shared_rate || s.snapshots == 1) && cpu_contiguous(src[0]) &&
           cpu_rows_dense(src[1]) && cpu_contiguous(node) &&
           cpu_nelements(node) == cpu_nelements(src[1]) + s.snapshots * ssm_state_floats(&s);
}

int64_t cpu_cost_ssm_scan(const struct ggml_tensor *node) {
    return limited_cost(2.0 * (double)cpu_nelements(node->src[1]) * (double)node->src[0]->ne[0]);
}

// --- linear attention
// --------------------------------------------------------------------------------

// Sources before `state` have the shape of source 0, but for the bonus.
static bool accepts_attention(const struct ggml_tensor *node, int state, int bonus) {
    const struct ggml_tensor *k = node->src[0];
    for (int i = 0; i <= state; ++i) {
        const struct ggml_tensor *src = node->src[i];
        if (!has_type(src, GGML_TYPE_F32) || !cpu_contiguous(src)) return false;
        if (i != state && i != bonus && !cpu_same_shape(src, k)) return false;
    }
    const int64_t sequences = node->src[state]->ne[1];
    if (sequences < 1 || k->ne[2] % sequences != 0 || k->ne[3] != 1) return false;
    if (bonus >= 0 && cpu_nelements(node->src[bonus]) != k->ne[0] * k->ne[1]) return false;
    return cpu_nelements(node->src[state]) == k->ne[0] * k->ne[0] * k->ne[1] * sequences &&
           has_shape(node, k->ne[0] * k->ne[1], k->ne[2] + k->ne[0] * sequences, 1, 1) &&
           cpu_contiguous(node);
}

bool cpu_accepts_rwkv_wkv6(const struct ggml_tensor *node) {
    return accepts_attention(node, 5, 3);
}

bool cpu_accepts_rwkv_wkv7(const struct ggml_tensor *node) {
    return accepts_attention(node, 6, -1);
}

bool cpu_accepts_gated_linear_attn(const struct ggml_tensor *node) {
    return accepts_attention(node, 4, -1);
}

int64_t cpu_cost_state(const struct ggml_tensor *node) {
    const struct ggml_tensor *k = node->src[0];
    return limited_cost(2.0 * (double)cpu_nelements(k) * (double)k->ne[0]);
}

// Heads and sequences of q and k, each shared by a whole number of those of v.
static bool accepts_shared(const struct ggml_tensor *t, const struct ggml_tensor *v) {
    return t->ne[0] == v->ne[0] && t->ne[2] == v->ne[2] && t->ne[1] > 0 && t->ne[3] > 0 &&
           v->ne[1] % t->ne[1] == 0 && v->ne[3] % t->ne[3] == 0 && cpu_rows_dense(t);
}

bool cpu_accepts_gated_delta_net(const struct ggml_tensor *node) {
    struct ggml_tensor *const *src = node->src;
    const struct ggml_tensor *v = src[2];
    const int64_t snapshots = ggml_get_op_params_i32(node, 0);
    for (int i = 3; i < 6; ++i) {
        if (!has_type(src[i], GGML_TYPE_F32)) return false;
    }
    const int64_t states = v->ne[0] * v->ne[0] * v->ne[1] * v->ne[3];
    return snapshots >= 1 && accepts_shared(src[0], v) && accepts_shared(src[1], v) &&
           cpu_rows_dense(v) && cpu_rows_dense(src[3]) &&
           has_shape(src[3], src[3]->ne[0] == 1 ? 1 : v->ne[0], v->ne[1], v->ne[2], v->ne[3]) &&
           has_shape(src[4], 1, v->ne[1], v->ne[2], v->ne[3]) && cpu_contiguous(src[5]) &&
           cpu_nelements(src[5]) == states && cpu_contiguous(node) &&
           cpu_nelements(node) == cpu_nelements(v) + snapshots * states;
}

size_t cpu_work_gated_delta_net(const struct ggml_tensor *node, int n_threads) {
    return (size_t)node->src[2]->ne[0] * sizeof(float) * (size_t)n_threads;
}

int64_t cpu_cost_gated_delta_net(const struct ggml_tensor *node) {
    const struct ggml_tensor *v = node->src[2];
    return limited_cost(4.0 * (double)cpu_nelements(v) * (double)v->ne[0]);
}

// --- triangular systems, indexer
// ---------------------------------------------------------------------

bool cpu_accepts_solve_tri(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    return has_shape(a, b->ne[1], b->ne[1], b->ne[2], b->ne[3]) && cpu_same_shape(node, b) &&
           cpu_contiguous(a) && cpu_contiguous(b) && cpu_contiguous(node);
}

int64_t cpu_cost_solve_tri(const struct ggml_tensor *node) {
    return limited_cost((double)cpu_nelements(node) * (double)node->ne[1] / 2);
}

bool cpu_accepts_lightning_indexer(const struct ggml_tensor *node) {
    const struct ggml_tensor *q = node->src[0];
    const struct ggml_tensor *k = node->src[1];
    const struct ggml_tensor *mask = node->src[3];
    if (!has_type(mask, GGML_TYPE_F16) || mask->ne[3] < 1 || q->ne[3] % mask->ne[3] != 0)
        return false;
    return (k->type == GGML_TYPE_F32 || ggml_get_type_traits(k->type)->to_float) &&
           cpu_rows_dense(k) && k->ne[0] % cpu_type_size(k->type).block == 0 && cpu_rows_dense(q) &&
           has_shape(k, q->ne[0], 1, k->ne[2], q->ne[3]) &&
           has_shape(node->src[2], q->ne[1], q->ne[2], 1, q->ne[3]) &&
           has_shape(mask, k->ne[2], q->ne[2], 1, mask->ne[3]) &&
           has_shape(node, k->ne[2], q->ne[2], 1, q->ne[3]) && cpu_rows_dense(node);
}

size_t cpu_work_lightning_indexer(const struct ggml_tensor *node, int n_threads) {
    (void)node;
    return (size_t)n_threads * INDEXER_FLOATS * sizeof(float);
}

int64_t cpu_cost_lightning_indexer(const struct ggml_tensor *node) {
    const struct ggml_tensor *q = node->src[0];
    return limited_cost((double)cpu_nelements(node) * (double)q->ne[0] * (double)q->ne[1]);
}

// --- hyper-connections
// -------------------------------------------------------------------------------

bool cpu_accepts_dsv4_hc_comb(const struct ggml_tensor *node) {
    const struct ggml_tensor *mixes = node->src[0];
    return has_shape(mixes, 24, mixes->ne[1], 1, 1) && node->src[1]->ne[0] >= 3 &&
           node->src[2]->ne[0] == 24 && has_shape(node, 4, 4, mixes->ne[1], 1) &&
           cpu_rows_dense(node);
}

bool cpu_accepts_dsv4_hc_pre(const struct ggml_tensor *node) {
    const struct ggml_tensor *x = node->src[0];
    return has_shape(node->src[1], x->ne[1], x->ne[2], 1, 1) && x->ne[3] == 1 &&
           has_shape(node, x->ne[0], x->ne[2], 1, 1) && cpu_rows_dense(node);
}

bool cpu_accepts_dsv4_hc_post(const struct ggml_tensor *node) {
    const struct ggml_tensor *r = node->src[1];
    return has_type(node->src[3], GGML_TYPE_F32) && r->ne[3] == 1 &&
           has_shape(node->src[0], r->ne[0], r->ne[2], 1, 1) &&
           has_shape(node->src[2], r->ne[1], r->ne[2], 1, 1) &&
           has_shape(node->src[3], r->ne[1], r->ne[1], r->ne[2], 1) && cpu_same_shape(node, r) &&
           cpu_rows_dense(node);
}
