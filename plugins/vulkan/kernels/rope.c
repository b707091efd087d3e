// SPDX-License-Identifier: MIT
// rope, rope_back, timestep_embedding, arange: what shaders/double_float.glsl is for.
#include <math.h>
#include <string.h>

#include "kernel.h"
#include "shape.h"

enum {
    GROUP = 64,
    POWERS = 8, // of the base that numbers hold
};

// Slots of op_params.
enum {
    ROPE_N_DIMS = 1,
    ROPE_MODE = 2,
    ROPE_N_CTX_ORIG = 4,
    ROPE_FREQ_BASE = 5,
    ROPE_FREQ_SCALE = 6,
    ROPE_EXT_FACTOR = 7,
    ROPE_ATTN_FACTOR = 8,
    ROPE_BETA_FAST = 9,
    ROPE_BETA_SLOW = 10,
    ROPE_SECTIONS = 11,
    ROPE_N_OFFS = 15,
};

static float param_f32(const struct ggml_tensor *node, int slot) {
    float value;
    memcpy(&value, &node->op_params[slot], sizeof(value));
    return value;
}

static bool accepts_mode(const struct ggml_tensor *node) {
    const int n_dims = node->op_params[ROPE_N_DIMS];
    const int n_offs = node->op_params[ROPE_N_OFFS];
    if (n_dims <= 0 || n_dims % 2 != 0 || n_offs < 0) return false;
    switch (node->op_params[ROPE_MODE]) {
    case GGML_ROPE_TYPE_NORMAL:
    case GGML_ROPE_TYPE_NEOX:
    case GGML_ROPE_TYPE_MROPE:
    case GGML_ROPE_TYPE_IMROPE: return (int64_t)n_offs + n_dims <= node->ne[0];
    case GGML_ROPE_TYPE_VISION: return n_offs == 0 && (int64_t)n_dims * 2 == node->ne[0];
    default: return false;
    }
}

static bool accepts_sections(const struct ggml_tensor *node) {
    int64_t sum = 0;
    for (int s = 0; s < 4; ++s) {
        const int32_t size = node->op_params[ROPE_SECTIONS + s];
        if (size < 0) return false;
        sum += size;
    }
    return sum > 0 && sum <= node->ne[0];
}

bool vk_accepts_rope(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *positions = node->src[1];
    const struct ggml_tensor *factors = node->src[2];
    const int mode = node->op_params[ROPE_MODE];
    const bool multi = (mode & GGML_ROPE_TYPE_MROPE) != 0;
    if (!accepts_mode(node) || !vk_same_shape(node, a) || (multi && !accepts_sections(node)))
        return false;
    const int64_t n_pairs = node->op_params[ROPE_N_DIMS] / (mode == GGML_ROPE_TYPE_VISION ? 1 : 2);
    return vk_rows_dense(a) && vk_rows_dense(node) && vk_contiguous(positions) &&
           vk_nelements(positions) >= (uint64_t)(node->ne[2] * (multi ? 4 : 1)) &&
           (!factors || (vk_contiguous(factors) && factors->ne[0] >= n_pairs));
}

static void set_param_f32(struct vk_dispatch *d, int slot, double value) {
    const float rounded = (float)value;
    memcpy(&d->op_params[slot], &rounded, sizeof(rounded));
}

// base to the powers exponent * (1, 2, 4, ...), each as a sum of two floats, into the numbers.
static void set_powers(struct vk_dispatch *d, double base, double exponent) {
    for (int i = 0; i < POWERS; ++i) {
        const double power = pow(base, ldexp(exponent, i));
        const float parts[2] = {(float)power, (float)(power - (double)(float)power)};
        memcpy(&d->numbers[2 * i], parts, sizeof(parts));
    }
}

// The pair that turns `beta` times over the context that the model was trained for.
static double correction_dim(const struct ggml_tensor *node, double beta) {
    const double n_ctx = (double)node->op_params[ROPE_N_CTX_ORIG];
    const double base = (double)param_f32(node, ROPE_FREQ_BASE);
    return node->op_params[ROPE_N_DIMS] * log(n_ctx / (beta * 2.0 * 3.14159265358979323846)) /
           (2.0 * log(base));
}

static void set_yarn(struct vk_dispatch *d, const struct ggml_tensor *node) {
    const double scale = (double)param_f32(node, ROPE_FREQ_SCALE);
    const double fast = correction_dim(node, (double)param_f32(node, ROPE_BETA_FAST));
    const double slow = correction_dim(node, (double)param_f32(node, ROPE_BETA_SLOW));
    const double magnitude = (double)param_f32(node, ROPE_ATTN_FACTOR);
    set_param_f32(d, ROPE_ATTN_FACTOR, magnitude * (1.0 + 0.1 * log(1.0 / scale)));
    set_param_f32(d, ROPE_BETA_FAST, fmax(0.0, floor(fast)));
    set_param_f32(d, ROPE_BETA_SLOW, fmin(node->op_params[ROPE_N_DIMS] - 1, ceil(slow)));
}

// Heads of a token that an invocation turns by the same angle: all on a CPU, which has few threads.
static uint32_t heads_of(const struct vk_features *features, const struct ggml_tensor *node) {
    const int64_t most = features->cpu ? 64 : 4;
    return (uint32_t)(node->ne[1] < most ? node->ne[1] > 0 ? node->ne[1] : 1 : most);
}

void vk_encode_rope(struct vk_plan *plan, const struct ggml_tensor *node) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_rope, node, 3, GROUP);
    if (!d) return;
    const int mode = node->op_params[ROPE_MODE];
    const int n_dims = node->op_params[ROPE_N_DIMS];
    vk_dispatch_spec(d, node->type);
    vk_dispatch_spec(d, (uint32_t)mode);
    vk_dispatch_spec(d, node->op == GGML_OP_ROPE_BACK);
    vk_dispatch_spec(d, node->src[2] != NULL);
    const uint32_t heads = heads_of(vk_plan_features(plan), node);
    vk_dispatch_spec(d, heads);
    set_powers(d, (double)param_f32(node, ROPE_FREQ_BASE), -2.0 / n_dims);
    if (param_f32(node, ROPE_EXT_FACTOR) != 0.0f) set_yarn(d, node);
    const int64_t columns = node->ne[0] - (mode == GGML_ROPE_TYPE_VISION ? n_dims : n_dims / 2);
    const uint64_t blocks = vk_groups_of((uint64_t)node->ne[1], heads);
    const uint64_t n = (uint64_t)columns * blocks * (uint64_t)(node->ne[2] * node->ne[3]);
    vk_dispatch_groups(plan, d, vk_groups_of(n, GROUP));
}

bool vk_accepts_timestep_embedding(const struct vk_features *features,
                                   const struct ggml_tensor *node) {
    (void)features;
    return node->op_params[1] > 0 && vk_rows_dense(node) && node->ne[2] == 1 && node->ne[3] == 1 &&
           node->src[0]->ne[0] >= node->ne[1];
}

void vk_encode_timestep_embedding(struct vk_plan *plan, const struct ggml_tensor *node) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_timestep_embedding, node, 1, GROUP);
    if (!d) return;
    const int64_t half = node->ne[0] / 2;
    set_powers(d, (double)node->op_params[1], half > 0 ? -1.0 / (double)half : 0.0);
    const uint64_t n = (uint64_t)((node->ne[0] + 1) / 2 * node->ne[1]);
    vk_dispatch_groups(plan, d, vk_groups_of(n, GROUP));
}

bool vk_accepts_arange(const struct vk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return vk_contiguous(node) && vk_nrows(node) == 1;
}

void vk_encode_arange(struct vk_plan *plan, const struct ggml_tensor *node) {
    struct vk_dispatch *d = vk_dispatch_new(plan, VK_SHADER_arange, node, 0, GROUP);
    if (d) vk_dispatch_groups(plan, d, vk_groups_of((uint64_t)node->ne[0], GROUP));
}
