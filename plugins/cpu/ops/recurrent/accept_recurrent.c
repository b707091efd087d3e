// SPDX-License-Identifier: MIT
// What the kernels of state-space models, linear attention and other special ops compute.
#include "ggml-shape.h"
#include "ops/recurrent/indexer.h"
#include "ops/recurrent/linear_attention.h"
#include "ops/recurrent/recurrence.h"
#include "ops/recurrent/row_size.h"
#include "ops/recurrent/ssm.h"
#include "runtime/kernel_list.h"

// Limited: the product of extents can exceed an int64_t.
static int64_t limited_cost(double cost) {
    return cost < 1e18 ? (int64_t)cost : INT64_MAX;
}

// --- state-space models --------------------------------------------------------------------------

bool cpu_accepts_ssm_conv(const struct ggml_tensor *node) {
    return ggml_fits_ssm_conv(node) && ggml_rows_dense(node);
}

bool cpu_accepts_ssm_scan(const struct ggml_tensor *node) {
    return ggml_fits_ssm_scan(node) && ggml_rows_dense(node->src[1]);
}

// A multiplication and an addition per element of the state and token.
int64_t cpu_cost_ssm_scan(const struct ggml_tensor *node) {
    return limited_cost(2.0 * (double)ggml_nelements(node->src[1]) * (double)node->src[0]->ne[0]);
}

// --- linear attention ----------------------------------------------------------------------------

bool cpu_accepts_rwkv_wkv6(const struct ggml_tensor *node) {
    return ggml_fits_linear_attention(node, 5, 3);
}

bool cpu_accepts_rwkv_wkv7(const struct ggml_tensor *node) {
    return ggml_fits_linear_attention(node, 6, -1);
}

bool cpu_accepts_gated_linear_attn(const struct ggml_tensor *node) {
    return ggml_fits_linear_attention(node, 4, -1);
}

// Multiplications and additions: two per element of the state and token.
int64_t cpu_cost_state(const struct ggml_tensor *node) {
    const struct ggml_tensor *k = node->src[0];
    return limited_cost(2.0 * (double)ggml_nelements(k) * (double)k->ne[0]);
}

bool cpu_accepts_gated_delta_net(const struct ggml_tensor *node) {
    return ggml_fits_gated_delta_net(node) && ggml_rows_dense(node->src[2]);
}

size_t cpu_work_gated_delta_net(const struct ggml_tensor *node, int n_threads) {
    return (size_t)delta_net_work_floats(node) * sizeof(float) * (size_t)n_threads;
}

int64_t cpu_cost_gated_delta_net(const struct ggml_tensor *node) {
    const struct ggml_tensor *v = node->src[2];
    return limited_cost(4.0 * (double)ggml_nelements(v) * (double)v->ne[0]);
}

// --- recurrences whose new states are copied

// The recurrence of which all new states are copied and no older ones, or NULL. It is one that has
// been accepted.
static const struct ggml_tensor *recurrence_kept_by(const struct ggml_tensor *copy) {
    const struct ggml_tensor *view = copy->src[0], *node = view->view_src;
    struct recurrence r;
    if (view->op != GGML_OP_VIEW || !node || !recurrence_of(node, &r) || r.snapshots != 1)
        return NULL;
    const int64_t outputs = ggml_nelements(node->src[r.output]);
    const bool all = view->view_offs == (size_t)outputs * sizeof(float) &&
                     ggml_nelements(view) == ggml_nelements(node) - outputs &&
                     ggml_nelements(view) == ggml_nelements(copy);
    return outputs > 0 && all && ggml_is_contiguous(view) && ggml_is_contiguous(copy) ? node : NULL;
}

bool cpu_accepts_kept_ssm_scan(const struct ggml_tensor *node) {
    const struct ggml_tensor *kept = recurrence_kept_by(node);
    return kept && kept->op == GGML_OP_SSM_SCAN;
}

bool cpu_accepts_kept_delta_net(const struct ggml_tensor *node) {
    const struct ggml_tensor *kept = recurrence_kept_by(node);
    return kept && kept->op == GGML_OP_GATED_DELTA_NET;
}

bool cpu_accepts_kept_linear_attention(const struct ggml_tensor *node) {
    const struct ggml_tensor *kept = recurrence_kept_by(node);
    return kept && kept->op != GGML_OP_SSM_SCAN && kept->op != GGML_OP_GATED_DELTA_NET;
}

size_t cpu_work_kept_delta_net(const struct ggml_tensor *node, int n_threads) {
    return cpu_work_gated_delta_net(recurrence_kept_by(node), n_threads);
}

int64_t cpu_cost_kept_states(const struct ggml_tensor *node) {
    const struct ggml_tensor *kept = recurrence_kept_by(node);
    if (kept->op == GGML_OP_SSM_SCAN) return cpu_cost_ssm_scan(kept);
    if (kept->op == GGML_OP_GATED_DELTA_NET) return cpu_cost_gated_delta_net(kept);
    return cpu_cost_state(kept);
}

// --- triangular systems, indexer -----------------------------------------------------------------

bool cpu_accepts_solve_tri(const struct ggml_tensor *node) {
    return ggml_fits_solve_tri(node);
}

// Half of the matrix is used.
int64_t cpu_cost_solve_tri(const struct ggml_tensor *node) {
    return limited_cost((double)ggml_nelements(node) * (double)node->ne[1] / 2);
}

// Keys of any type that can be decoded.
bool cpu_accepts_lightning_indexer(const struct ggml_tensor *node) {
    const struct ggml_tensor *k = node->src[1];
    return ggml_fits_lightning_indexer(node) && ggml_rows_dense(node) &&
           (k->type == GGML_TYPE_F32 || ggml_get_type_traits(k->type)->to_float);
}

// A panel of keys, and products of a block of keys with several heads, per thread.
size_t cpu_work_lightning_indexer(const struct ggml_tensor *node, int n_threads) {
    (void)node;
    return (size_t)n_threads * INDEXER_FLOATS * sizeof(float);
}

// All heads times all keys.
int64_t cpu_cost_lightning_indexer(const struct ggml_tensor *node) {
    const struct ggml_tensor *q = node->src[0];
    return limited_cost((double)ggml_nelements(node) * (double)q->ne[0] * (double)q->ne[1]);
}

// --- hyper-connections ---------------------------------------------------------------------------

bool cpu_accepts_dsv4_hc_comb(const struct ggml_tensor *node) {
    return ggml_fits_dsv4_hc_comb(node) && ggml_rows_dense(node);
}

bool cpu_accepts_dsv4_hc_pre(const struct ggml_tensor *node) {
    return ggml_fits_dsv4_hc_pre(node) && ggml_rows_dense(node);
}

bool cpu_accepts_dsv4_hc_post(const struct ggml_tensor *node) {
    return ggml_fits_dsv4_hc_post(node) && ggml_rows_dense(node);
}
