// SPDX-License-Identifier: MIT
// rope, rope_back, timestep_embedding, arange: what shaders/double_float.glsl is for.
#include <math.h>
#include <string.h>

#include "gpu/base/shape.h"
#include "plan/kernel.h"

enum {
    GROUP = 64,
    POWERS = 8, // of the base that numbers hold
};

static float param_f32(const struct ggml_tensor *node, int slot) {
    float value;
    memcpy(&value, &node->op_params[slot], sizeof(value));
    return value;
}

bool gvk_accepts_rope(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_rope(node) && ggml_rows_dense(node->src[0]) && ggml_rows_dense(node);
}

static void set_param_f32(struct gvk_dispatch *d, int slot, double value) {
    const float rounded = (float)value;
    memcpy(&d->op_params[slot], &rounded, sizeof(rounded));
}

// base to the powers exponent * (1, 2, 4, ...), each as a sum of two floats, into the numbers.
static void set_powers(struct gvk_dispatch *d, double base, double exponent) {
    for (int i = 0; i < POWERS; ++i) {
        const double power = pow(base, ldexp(exponent, i));
        const float parts[2] = {(float)power, (float)(power - (double)(float)power)};
        memcpy(&d->numbers[2 * i], parts, sizeof(parts));
    }
}

// The pair that turns `beta` times over the context that the model was trained for.
static double correction_dim(const struct ggml_tensor *node, double beta) {
    const double n_ctx = (double)node->op_params[GGML_ROPE_SLOT_N_CTX_ORIG];
    const double base = (double)param_f32(node, GGML_ROPE_SLOT_FREQ_BASE);
    return node->op_params[GGML_ROPE_SLOT_N_DIMS] *
           log(n_ctx / (beta * 2.0 * 3.14159265358979323846)) / (2.0 * log(base));
}

// Parameters of YaRN (Peng et al., 2023): the pairs between which it mixes, and the magnitude
// that makes up for the longer context. Computed in double here, once per node.
static void set_yarn(struct gvk_dispatch *d, const struct ggml_tensor *node) {
    const double scale = (double)param_f32(node, GGML_ROPE_SLOT_FREQ_SCALE);
    const double fast = correction_dim(node, (double)param_f32(node, GGML_ROPE_SLOT_BETA_FAST));
    const double slow = correction_dim(node, (double)param_f32(node, GGML_ROPE_SLOT_BETA_SLOW));
    const double magnitude = (double)param_f32(node, GGML_ROPE_SLOT_ATTN_FACTOR);
    set_param_f32(d, GGML_ROPE_SLOT_ATTN_FACTOR, magnitude * (1.0 + 0.1 * log(1.0 / scale)));
    set_param_f32(d, GGML_ROPE_SLOT_BETA_FAST, fmax(0.0, floor(fast)));
    set_param_f32(d, GGML_ROPE_SLOT_BETA_SLOW,
                  fmin(node->op_params[GGML_ROPE_SLOT_N_DIMS] - 1, ceil(slow)));
}

// Heads of a token that an invocation turns by the same angle: all on a CPU, which has few threads.
static uint32_t heads_of(const struct gvk_features *features, const struct ggml_tensor *node) {
    const int64_t most = features->cpu ? 64 : 4;
    return (uint32_t)(node->ne[1] < most ? node->ne[1] > 0 ? node->ne[1] : 1 : most);
}

// An invocation turns a pair in `heads` heads: the angle, which is expensive, is computed once
// for all of them.
void gvk_encode_rope(struct gvk_plan *plan, const struct ggml_tensor *node) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_rope, node, 3, GROUP);
    if (!d) return;
    const int mode = node->op_params[GGML_ROPE_SLOT_MODE];
    const int n_dims = node->op_params[GGML_ROPE_SLOT_N_DIMS];
    gvk_dispatch_spec(d, node->type);
    gvk_dispatch_spec(d, (uint32_t)mode);
    gvk_dispatch_spec(d, node->op == GGML_OP_ROPE_BACK);
    gvk_dispatch_spec(d, node->src[2] != NULL);
    const uint32_t heads = heads_of(gvk_plan_features(plan), node);
    gvk_dispatch_spec(d, heads);
    set_powers(d, (double)param_f32(node, GGML_ROPE_SLOT_FREQ_BASE), -2.0 / n_dims);
    if (param_f32(node, GGML_ROPE_SLOT_EXT_FACTOR) != 0.0f) set_yarn(d, node);
    const int64_t columns = node->ne[0] - (mode == GGML_ROPE_TYPE_VISION ? n_dims : n_dims / 2);
    const uint64_t blocks = gpu_groups_of((uint64_t)node->ne[1], heads);
    const uint64_t n = (uint64_t)columns * blocks * (uint64_t)(node->ne[2] * node->ne[3]);
    gvk_dispatch_groups(plan, d, gpu_groups_of(n, GROUP));
}

bool gvk_accepts_timestep_embedding(const struct gvk_features *features,
                                    const struct ggml_tensor *node) {
    (void)features;
    return node->op_params[1] > 0 && ggml_rows_dense(node) && node->ne[2] == 1 &&
           node->ne[3] == 1 && node->src[0]->ne[0] >= node->ne[1];
}

// Frequencies fall as powers of the longest period; an invocation computes a cosine and a sine.
void gvk_encode_timestep_embedding(struct gvk_plan *plan, const struct ggml_tensor *node) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_timestep_embedding, node, 1, GROUP);
    if (!d) return;
    const int64_t half = node->ne[0] / 2;
    set_powers(d, (double)node->op_params[1], half > 0 ? -1.0 / (double)half : 0.0);
    const uint64_t n = (uint64_t)((node->ne[0] + 1) / 2 * node->ne[1]);
    gvk_dispatch_groups(plan, d, gpu_groups_of(n, GROUP));
}

bool gvk_accepts_arange(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_is_packed(node) && gpu_nrows(node) == 1;
}

void gvk_encode_arange(struct gvk_plan *plan, const struct ggml_tensor *node) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_arange, node, 0, GROUP);
    if (d) gvk_dispatch_groups(plan, d, gpu_groups_of((uint64_t)node->ne[0], GROUP));
}
