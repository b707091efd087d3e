// SPDX-License-Identifier: MIT
// State-space models, linear attention and other special ops.
#include "kernel.h"
#include "shape.h"

enum { GROUP = 32 };

// Modes of shaders/linear_attention.comp.
enum attention_mode { WKV6, GATED, WKV7 };

// --- state-space models --------------------------------------------------------------------------

bool vk_accepts_ssm_conv(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_ssm_conv(node);
}

void vk_encode_ssm_conv(struct vk_plan *plan, const struct ggml_tensor *node) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_ssm_conv, node, 2, GROUP);
    if (d) vk_dispatch_groups(plan, d, vk_groups_of(vk_nelements(node), GROUP));
}

bool vk_accepts_ssm_scan(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_ssm_scan(node) && node->src[1]->ne[2] > 0;
}

void vk_encode_ssm_scan(struct vk_plan *plan, const struct ggml_tensor *node) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_ssm_scan, node, 7, GROUP);
    const struct ggml_tensor *x = node->src[1];
    if (!d) return;
    vk_dispatch_spec(d, node->src[3]->ne[0] == 1);
    vk_dispatch_groups(plan, d, vk_groups_of((uint64_t)(x->ne[0] * x->ne[1] * x->ne[3]), GROUP));
}

// --- linear attention ----------------------------------------------------------------------------

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
    return ggml_fits_linear_attention(node, 5, 3);
}

void vk_encode_rwkv_wkv6(struct vk_plan *plan, const struct ggml_tensor *node) {
    encode_attention(plan, node, WKV6, 5);
}

bool vk_accepts_rwkv_wkv7(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_linear_attention(node, 6, -1);
}

void vk_encode_rwkv_wkv7(struct vk_plan *plan, const struct ggml_tensor *node) {
    encode_attention(plan, node, WKV7, 6);
}

bool vk_accepts_gated_linear_attn(const struct vk_features *features,
                                  const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_linear_attention(node, 4, -1);
}

void vk_encode_gated_linear_attn(struct vk_plan *plan, const struct ggml_tensor *node) {
    encode_attention(plan, node, GATED, 4);
}

bool vk_accepts_gated_delta_net(const struct vk_features *features,
                                const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_gated_delta_net(node) && node->src[2]->ne[2] > 0;
}

void vk_encode_gated_delta_net(struct vk_plan *plan, const struct ggml_tensor *node) {
    const struct ggml_tensor *v = node->src[2];
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_delta_net, node, 6, GROUP);
    if (!d) return;
    vk_dispatch_groups(plan, d, vk_groups_of((uint64_t)(v->ne[0] * v->ne[1] * v->ne[3]), GROUP));
}

// --- triangular systems --------------------------------------------------------------------------

bool vk_accepts_solve_tri(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_solve_tri(node);
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
    (void)features;
    return ggml_fits_lightning_indexer(node);
}

void vk_encode_lightning_indexer(struct vk_plan *plan, const struct ggml_tensor *node) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_indexer, node, 4, GROUP);
    if (!d) return;
    vk_dispatch_spec(d, node->src[1]->type);
    vk_dispatch_groups(plan, d, vk_groups_of(vk_nelements(node), GROUP));
}

bool vk_accepts_dsv4_hc_comb(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_dsv4_hc_comb(node);
}

void vk_encode_dsv4_hc_comb(struct vk_plan *plan, const struct ggml_tensor *node) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_hyper_comb, node, 3, GROUP);
    if (d) vk_dispatch_groups(plan, d, vk_groups_of((uint64_t)node->ne[2], GROUP));
}

bool vk_accepts_dsv4_hc_pre(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_dsv4_hc_pre(node);
}

bool vk_accepts_dsv4_hc_post(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_dsv4_hc_post(node);
}

void vk_encode_dsv4_hc_mix(struct vk_plan *plan, const struct ggml_tensor *node) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_hyper_mix, node, 4, GROUP);
    if (!d) return;
    const bool post = node->op == GGML_OP_DSV4_HC_POST;
    vk_dispatch_spec(d, post);
    vk_dispatch_spec(d, !post && ggml_get_op_params_i32(node, 1) != 0);
    vk_dispatch_spec(d, node->src[3] != NULL);
    vk_dispatch_groups(plan, d, vk_groups_of(vk_nelements(node), GROUP));
}
