// SPDX-License-Identifier: MIT
// State-space models, linear attention and other special ops.
#include "gpu/base/shape.h"
#include "plan/kernel.h"

enum { GROUP = 32 };

// Modes of shaders/linear_attention.comp.
enum attention_mode { WKV6, GATED, WKV7 };

// A shader that takes `count` steps one after the other: each runs `n_loops` loops of `n`
// iterations. A loop of `n_copied` iterations may come before the first one.
struct steps {
    enum gvk_shader shader;
    int n_sources;
    uint32_t spec;
    uint64_t invocations, count, n_copied, n_loops, n;
};

// Cuts a recurrence over tokens into launches of as many steps as the driver's limit on loop
// iterations allows; the state is carried in the result. numbers 0 and 1 are a launch's first step
// and the one behind its last. The iteration that finds that a loop has ended counts too, and goes
// through the loops inside it, once each.
static void encode_steps(struct gvk_plan *plan, const struct ggml_tensor *node, struct steps s) {
    const uint64_t most = gvk_most_iterations(gvk_plan_features(plan));
    const uint64_t cost = s.n_loops * (s.n + 1) + 1;
    const uint64_t other = s.n_copied + 1 + 1 + s.n_loops;
    const uint64_t left = most > other ? most - other : 0;
    const uint64_t at_once = left > cost ? left / cost : 1;
    uint64_t first = 0;
    do {
        const uint64_t end = s.count - first > at_once ? first + at_once : s.count;
        struct gvk_dispatch *d = gvk_dispatch_new(plan, s.shader, node, s.n_sources, GROUP);
        if (!d) return;
        gvk_dispatch_spec(d, s.spec);
        d->numbers[0] = (uint32_t)first;
        d->numbers[1] = (uint32_t)end;
        gvk_dispatch_groups(plan, d, gpu_groups_of(s.invocations, GROUP));
        first = end;
    } while (first < s.count);
}

// --- state-space models --------------------------------------------------------------------------

bool gvk_accepts_ssm_conv(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_ssm_conv(node);
}

void gvk_encode_ssm_conv(struct gvk_plan *plan, const struct ggml_tensor *node) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_ssm_conv, node, 2, GROUP);
    if (d) gvk_dispatch_groups(plan, d, gpu_groups_of(gpu_nelements(node), GROUP));
}

bool gvk_accepts_ssm_scan(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_ssm_scan(node) && node->src[1]->ne[2] > 0;
}

// An invocation has one row of a head's state: n elements per token.
void gvk_encode_ssm_scan(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const struct ggml_tensor *x = node->src[1];
    const uint64_t n = (uint64_t)node->src[0]->ne[0];
    encode_steps(plan, node,
                 (struct steps){.shader = GVK_SHADER_ssm_scan,
                                .n_sources = 7,
                                .spec = node->src[3]->ne[0] == 1,
                                .invocations = (uint64_t)(x->ne[0] * x->ne[1] * x->ne[3]),
                                .count = (uint64_t)x->ne[2],
                                .n_copied = n,
                                .n_loops = 1,
                                .n = n});
}

// --- linear attention ----------------------------------------------------------------------------

// The three kinds of linear attention share a shader; `state` is the source with the first
// state.
static void encode_attention(struct gvk_plan *plan, const struct ggml_tensor *node,
                             enum attention_mode mode, int state) {
    const struct ggml_tensor *k = node->src[0];
    const uint64_t n = (uint64_t)k->ne[0], sequences = (uint64_t)node->src[state]->ne[1];
    encode_steps(plan, node,
                 (struct steps){.shader = GVK_SHADER_linear_attention,
                                .n_sources = 7,
                                .spec = mode,
                                .invocations = n * (uint64_t)k->ne[1] * sequences,
                                .count = sequences ? (uint64_t)k->ne[2] / sequences : 0,
                                .n_copied = n,
                                .n_loops = mode == WKV7 ? 2 : 1,
                                .n = n});
}

bool gvk_accepts_rwkv_wkv6(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_linear_attention(node, 5, 3);
}

void gvk_encode_rwkv_wkv6(struct gvk_plan *plan, const struct ggml_tensor *node) {
    encode_attention(plan, node, WKV6, 5);
}

bool gvk_accepts_rwkv_wkv7(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_linear_attention(node, 6, -1);
}

void gvk_encode_rwkv_wkv7(struct gvk_plan *plan, const struct ggml_tensor *node) {
    encode_attention(plan, node, WKV7, 6);
}

bool gvk_accepts_gated_linear_attn(const struct gvk_features *features,
                                   const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_linear_attention(node, 4, -1);
}

void gvk_encode_gated_linear_attn(struct gvk_plan *plan, const struct ggml_tensor *node) {
    encode_attention(plan, node, GATED, 4);
}

// Without tokens there is no first launch, which copies the state.
bool gvk_accepts_gated_delta_net(const struct gvk_features *features,
                                 const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_gated_delta_net(node) && node->src[2]->ne[2] > 0;
}

// Two loops over the state's row per token.
void gvk_encode_gated_delta_net(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const struct ggml_tensor *v = node->src[2];
    const uint64_t n = (uint64_t)v->ne[0];
    encode_steps(plan, node,
                 (struct steps){.shader = GVK_SHADER_delta_net,
                                .n_sources = 6,
                                .invocations = n * (uint64_t)(v->ne[1] * v->ne[3]),
                                .count = (uint64_t)v->ne[2],
                                .n_copied = n,
                                .n_loops = 2,
                                .n = n});
}

// --- triangular systems --------------------------------------------------------------------------

bool gvk_accepts_solve_tri(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_solve_tri(node);
}

// Every step counts as the last and longest one.
void gvk_encode_solve_tri(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const uint64_t n = (uint64_t)node->ne[1];
    encode_steps(plan, node,
                 (struct steps){.shader = GVK_SHADER_solve_tri,
                                .n_sources = 2,
                                .invocations = (uint64_t)(node->ne[0] * node->ne[2] * node->ne[3]),
                                .count = n,
                                .n_loops = 1,
                                .n = n});
}

// --- indexer, hyper-connections ------------------------------------------------------------------

bool gvk_accepts_lightning_indexer(const struct gvk_features *features,
                                   const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_lightning_indexer(node);
}

// One invocation per query and key.
void gvk_encode_lightning_indexer(struct gvk_plan *plan, const struct ggml_tensor *node) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_indexer, node, 4, GROUP);
    if (!d) return;
    gvk_dispatch_spec(d, node->src[1]->type);
    gvk_dispatch_groups(plan, d, gpu_groups_of(gpu_nelements(node), GROUP));
}

bool gvk_accepts_dsv4_hc_comb(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_dsv4_hc_comb(node);
}

void gvk_encode_dsv4_hc_comb(struct gvk_plan *plan, const struct ggml_tensor *node) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_hyper_comb, node, 3, GROUP);
    if (d) gvk_dispatch_groups(plan, d, gpu_groups_of((uint64_t)node->ne[2], GROUP));
}

bool gvk_accepts_dsv4_hc_pre(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_dsv4_hc_pre(node);
}

bool gvk_accepts_dsv4_hc_post(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_dsv4_hc_post(node);
}

// An invocation per element of the result; which of the three sums it is, is compiled in.
void gvk_encode_dsv4_hc_mix(struct gvk_plan *plan, const struct ggml_tensor *node) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_hyper_mix, node, 4, GROUP);
    if (!d) return;
    const bool post = node->op == GGML_OP_DSV4_HC_POST;
    gvk_dispatch_spec(d, post);
    gvk_dispatch_spec(d, !post && ggml_get_op_params_i32(node, 1) != 0);
    gvk_dispatch_spec(d, node->src[3] != NULL);
    gvk_dispatch_groups(plan, d, gpu_groups_of(gpu_nelements(node), GROUP));
}
