// SPDX-License-Identifier: MIT
// State-space models, attention with a matrix as state, and operations of single models:
// kernels/recurrent.cpp.
#include "simt/rows.h"

// As in the kernels: elements of a row of a state that a thread holds, threads of a block.
enum { STATE_SLOTS = 8, MAX_STATE = STATE_SLOTS * 256 };

// n blocks for rows of a state of `length` elements.
static void launch_states(struct simt_work *l, int64_t n, int64_t length) {
    simt_launch_row_blocks(l, n, (length + STATE_SLOTS - 1) / STATE_SLOTS);
}

// Whether blocks for so many rows can be counted.
static bool accepts_states(int64_t n, int64_t length) {
    return length <= MAX_STATE && n <= INT32_MAX;
}

// --- state-space models --------------------------------------------------------------------------

bool simt_accepts_ssm_conv(const struct ggml_tensor *node) {
    return ggml_fits_ssm_conv(node);
}

// As in the kernel; for few tokens a tile would be empty.
enum { CONV_CHANNELS = 16, CONV_TOKENS = 256, CONV_TAPS = 9, CONV_THREADS = 256, FEW_TOKENS = 8 };

bool simt_accepts_ssm_conv_tile(const struct ggml_tensor *node) {
    return simt_accepts_ssm_conv(node) && node->src[1]->ne[0] <= CONV_TAPS &&
           node->ne[1] >= FEW_TOKENS;
}

void simt_launch_ssm_conv_tile(struct simt_work *l, const struct ggml_tensor *node) {
    const int64_t channels = (node->ne[0] + CONV_CHANNELS - 1) / CONV_CHANNELS,
                  tokens = (node->ne[1] + CONV_TOKENS - 1) / CONV_TOKENS;
    l->args.numbers[0] = channels;
    l->args.numbers[1] = tokens;
    l->grid[0] = (unsigned)(channels * tokens * node->ne[2]);
    l->threads = CONV_THREADS;
}

bool simt_accepts_ssm_scan(const struct ggml_tensor *node) {
    return ggml_has_type(node->src[2], GGML_TYPE_F32) && ggml_fits_ssm_scan(node) &&
           node->src[1]->ne[2] > 0 &&
           accepts_states(node->src[0]->ne[1] * node->src[0]->ne[2] * node->src[1]->ne[3],
                          node->src[0]->ne[0]);
}

void simt_launch_ssm_scan(struct simt_work *l, const struct ggml_tensor *node) {
    const struct ggml_tensor *state = node->src[0];
    launch_states(l, state->ne[1] * state->ne[2] * node->src[1]->ne[3], state->ne[0]);
}

// --- linear attention ----------------------------------------------------------------------------

bool simt_accepts_rwkv_wkv6(const struct ggml_tensor *node) {
    return ggml_fits_linear_attention(node, 5, 3);
}

bool simt_accepts_gated_linear_attn(const struct ggml_tensor *node) {
    return ggml_fits_linear_attention(node, 4, -1);
}

bool simt_accepts_rwkv_wkv7(const struct ggml_tensor *node) {
    return ggml_fits_linear_attention(node, 6, -1) &&
           accepts_states(node->src[0]->ne[0] * node->src[0]->ne[1] * node->src[6]->ne[1],
                          node->src[0]->ne[0]);
}

// A thread per column of each head's state.
void simt_launch_linear_attention(struct simt_work *l, const struct ggml_tensor *node) {
    const struct ggml_tensor *k = node->src[0];
    const bool gated = node->op == GGML_OP_GATED_LINEAR_ATTN;
    const int64_t sequences = node->src[gated ? 4 : 5]->ne[1];
    l->args.numbers[0] = gated;
    l->args.numbers[1] = sequences;
    simt_launch_threads(l, k->ne[0] * k->ne[1] * sequences);
}

void simt_launch_rwkv_wkv7(struct simt_work *l, const struct ggml_tensor *node) {
    const struct ggml_tensor *r = node->src[0];
    l->args.numbers[1] = node->src[6]->ne[1];
    launch_states(l, r->ne[0] * r->ne[1] * node->src[6]->ne[1], r->ne[0]);
}

// Without tokens the states of the result would stay unwritten.
bool simt_accepts_gated_delta_net(const struct ggml_tensor *node) {
    return ggml_has_type(node->src[2], GGML_TYPE_F32) && ggml_fits_gated_delta_net(node) &&
           node->src[2]->ne[2] > 0 &&
           accepts_states(node->src[2]->ne[0] * node->src[2]->ne[1] * node->src[2]->ne[3],
                          node->src[2]->ne[0]);
}

void simt_launch_gated_delta_net(struct simt_work *l, const struct ggml_tensor *node) {
    const struct ggml_tensor *v = node->src[2];
    launch_states(l, v->ne[0] * v->ne[1] * v->ne[3], v->ne[0]);
}

// --- triangular systems, indexer, hyper-connections ----------------------------------------------

bool simt_accepts_solve_tri(const struct ggml_tensor *node) {
    return ggml_fits_solve_tri(node);
}

void simt_launch_solve_tri(struct simt_work *l, const struct ggml_tensor *node) {
    simt_launch_threads(l, node->ne[0] * node->ne[2] * node->ne[3]);
}

bool simt_accepts_indexer(const struct ggml_tensor *node) {
    return ggml_has_type(node->src[2], GGML_TYPE_F32) && ggml_fits_lightning_indexer(node);
}

bool simt_accepts_hyper_comb(const struct ggml_tensor *node) {
    return ggml_has_type(node->src[2], GGML_TYPE_F32) && ggml_fits_dsv4_hc_comb(node);
}

// A thread per token.
void simt_launch_hyper_comb(struct simt_work *l, const struct ggml_tensor *node) {
    simt_launch_threads(l, node->ne[2]);
}

bool simt_accepts_hyper_pre(const struct ggml_tensor *node) {
    return ggml_fits_dsv4_hc_pre(node);
}

bool simt_accepts_hyper_post(const struct ggml_tensor *node) {
    return ggml_has_type(node->src[2], GGML_TYPE_F32) && ggml_fits_dsv4_hc_post(node);
}
