// SPDX-License-Identifier: MIT
#include "kernel.h"
#include "shape.h"

enum {
    MAX_CHANNELS = 1024, // as many as flash_attn.comp keeps in shared memory
    MAX_LANE_CHANNELS = 256,
    LANE_ROWS = 4,
    N_SOURCES = 5,
};

// Rows of K or V: dense, and a whole number of query heads for each of their heads.
static bool accepts_cache(const struct ggml_tensor *t, const struct ggml_tensor *q) {
    return ggml_rows_dense(t) && t->ne[0] % ggml_blck_size(t->type) == 0 && t->ne[2] > 0 &&
           t->ne[0] <= MAX_CHANNELS && q->ne[2] % t->ne[2] == 0 && t->ne[3] == q->ne[3];
}

static bool accepts_mask(const struct ggml_tensor *mask, const struct ggml_tensor *q,
                         const struct ggml_tensor *k) {
    return (mask->type == GGML_TYPE_F16 || mask->type == GGML_TYPE_F32) && ggml_rows_dense(mask) &&
           mask->ne[0] >= k->ne[1] && mask->ne[1] >= q->ne[1] && mask->ne[2] > 0 &&
           mask->ne[3] > 0 && q->ne[2] % mask->ne[2] == 0 && q->ne[3] % mask->ne[3] == 0;
}

static bool accepts_sinks(const struct ggml_tensor *sinks, const struct ggml_tensor *q) {
    return sinks->type == GGML_TYPE_F32 && ggml_is_packed(sinks) && sinks->ne[0] >= q->ne[2];
}

bool vk_accepts_flash_attn(const struct vk_features *features, const struct ggml_tensor *node) {
    const struct ggml_tensor *q = node->src[0];
    const struct ggml_tensor *k = node->src[1];
    const struct ggml_tensor *v = node->src[2];
    const struct ggml_tensor *mask = node->src[3];
    const struct ggml_tensor *sinks = node->src[4];
    (void)features;
    return accepts_cache(k, q) && accepts_cache(v, q) && (!mask || accepts_mask(mask, q, k)) &&
           (!sinks || accepts_sinks(sinks, q)) && ggml_rows_dense(q) && ggml_rows_dense(node) &&
           k->ne[0] == q->ne[0] && v->ne[1] == k->ne[1] && node->ne[0] == v->ne[0] &&
           node->ne[1] == q->ne[2] && node->ne[2] == q->ne[1] && node->ne[3] == q->ne[3];
}

static uint32_t power_of_two_within(int64_t n) {
    uint32_t power = 1;
    while (2 * (int64_t)power <= n)
        power *= 2;
    return power;
}

// Query heads that share a head of K and one of V.
static int64_t shared_heads(const struct ggml_tensor *node) {
    const int64_t heads = node->src[0]->ne[2];
    const int64_t per_k = heads / node->src[1]->ne[2];
    const int64_t per_v = heads / node->src[2]->ne[2];
    const int64_t fewer = per_k < per_v ? per_k : per_v;
    return (per_k < per_v ? per_v : per_k) % fewer == 0 ? fewer : 1;
}

// Whether flash_attn_lanes.comp reads rows of the type: whole loads from aligned addresses.
static bool has_lane_rows(const struct ggml_tensor *t) {
    const bool blocks = t->type == GGML_TYPE_Q4_0 || t->type == GGML_TYPE_Q4_1 ||
                        t->type == GGML_TYPE_Q5_0 || t->type == GGML_TYPE_Q5_1 ||
                        t->type == GGML_TYPE_Q8_0 || t->type == GGML_TYPE_IQ4_NL;
    return t->ne[0] <= MAX_LANE_CHANNELS && vk_is_wide(t) &&
           (blocks || ggml_blck_size(t->type) == 1);
}

// Large products only: the code is unrolled by the number of channels and long to compile.
static bool suits_lanes(const struct vk_features *features, const struct ggml_tensor *node) {
    const struct ggml_tensor *k = node->src[1];
    const struct ggml_tensor *v = node->src[2];
    const bool blocks = ggml_blck_size(k->type) > 1 || ggml_blck_size(v->type) > 1;
    const int64_t step = blocks ? 32 : 8;
    const double products = (double)vk_nelements(node->src[0]) * (double)k->ne[1];
    return features->cpu && features->subgroup_arithmetic && features->subgroup_size == 8 &&
           products >= 262144 && k->ne[0] % step == 0 && v->ne[0] % step == 0 && has_lane_rows(k) &&
           has_lane_rows(v) && vk_is_wide(node->src[0]);
}

static struct vk_dispatch *begin(struct vk_plan *plan, const struct ggml_tensor *node,
                                 enum vk_shader shader, uint32_t group_size) {
    const struct ggml_tensor *mask = node->src[3];
    struct vk_dispatch *d = vk_dispatch_new(plan, shader, node, N_SOURCES, group_size);
    if (!d) return NULL;
    vk_dispatch_spec(d, node->src[1]->type);
    vk_dispatch_spec(d, node->src[2]->type);
    vk_dispatch_spec(d, mask ? mask->type : 0);
    vk_dispatch_spec(d, mask != NULL);
    vk_dispatch_spec(d, ggml_get_op_params_f32(node, 2) != 0.0f);
    vk_dispatch_spec(d, node->src[4] != NULL);
    d->numbers[0] = power_of_two_within(node->src[0]->ne[2]);
    return d;
}

static void encode_lanes(struct vk_plan *plan, const struct ggml_tensor *node) {
    const struct ggml_tensor *q = node->src[0];
    const bool blocks =
        ggml_blck_size(node->src[1]->type) > 1 || ggml_blck_size(node->src[2]->type) > 1;
    const int64_t heads = shared_heads(node);
    const int64_t rows = q->ne[1] * heads;
    const uint32_t tile = rows >= LANE_ROWS ? LANE_ROWS : 1;
    struct vk_dispatch *d =
        begin(plan, node, blocks ? VK_SHADER_flash_attn_lanes_blocks : VK_SHADER_flash_attn_lanes,
              vk_plan_features(plan)->subgroup_size);
    if (!d) return;
    vk_dispatch_spec(d, (uint32_t)(node->src[1]->ne[0] / 4));
    vk_dispatch_spec(d, (uint32_t)(node->src[2]->ne[0] / 4));
    vk_dispatch_spec(d, tile);
    d->numbers[1] = (uint32_t)heads;
    vk_dispatch_groups(plan, d,
                       vk_groups_of((uint64_t)rows, tile) * (uint64_t)(q->ne[2] / heads) *
                           (uint64_t)q->ne[3]);
}

void vk_encode_flash_attn(struct vk_plan *plan, const struct ggml_tensor *node) {
    const struct vk_features *features = vk_plan_features(plan);
    if (suits_lanes(features, node)) {
        encode_lanes(plan, node);
        return;
    }
    struct vk_dispatch *d = begin(plan, node, VK_SHADER_flash_attn, features->cpu ? 32 : 128);
    if (d) vk_dispatch_groups(plan, d, vk_nrows(node->src[0]));
}
