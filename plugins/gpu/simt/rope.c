// SPDX-License-Identifier: MIT
// rope, rope_back, timestep_embedding: kernels/rope.cpp.
#include <math.h>

#include "simt/rows.h"

static double param(const struct ggml_tensor *node, int slot) {
    float value;
    memcpy(&value, &node->op_params[slot], sizeof(value));
    return (double)value;
}

bool simt_accepts_rope(const struct ggml_tensor *node) {
    const struct ggml_tensor *factors = node->src[2];
    return ggml_fits_rope(node) && (!factors || factors->type == GGML_TYPE_F32);
}

// A double as the sum of two floats: kernels have no doubles.
static struct gpu_wide wide(double value) {
    const float high = (float)value;
    return (struct gpu_wide){high, isfinite(high) ? (float)(value - (double)high) : 0.0f};
}

// The pair that turns `beta` times over the context that the model was trained for.
static double correction_dim(const struct ggml_tensor *node, double beta) {
    const double n_ctx = (double)node->op_params[GGML_ROPE_SLOT_N_CTX_ORIG];
    return node->op_params[GGML_ROPE_SLOT_N_DIMS] *
           log(n_ctx / (beta * 2.0 * 3.14159265358979323846)) /
           (2.0 * log(param(node, GGML_ROPE_SLOT_FREQ_BASE)));
}

// A thread for each pair and each element that stays as it is; powers and logarithms are taken
// here, in double, once for all.
void simt_launch_rope(struct simt_work *l, const struct ggml_tensor *node) {
    const int32_t n_dims = node->op_params[GGML_ROPE_SLOT_N_DIMS];
    const bool vision = node->op_params[GGML_ROPE_SLOT_MODE] == GGML_ROPE_TYPE_VISION;
    const int64_t n_pairs = vision ? n_dims : n_dims / 2;
    double reals[4] = {0.0, 0.0, 0.0, 0.0};
    l->args.numbers[0] = n_pairs;
    l->args.numbers[1] = node->op == GGML_OP_ROPE_BACK;
    reals[0] = n_dims > 0 ? pow(param(node, GGML_ROPE_SLOT_FREQ_BASE), -2.0 / n_dims) : 1.0;
    reals[3] = param(node, GGML_ROPE_SLOT_ATTN_FACTOR);
    if (param(node, GGML_ROPE_SLOT_EXT_FACTOR) != 0.0) {
        const double fast = correction_dim(node, param(node, GGML_ROPE_SLOT_BETA_FAST));
        const double slow = correction_dim(node, param(node, GGML_ROPE_SLOT_BETA_SLOW));
        reals[1] = fmax(0.0, floor(fast));
        reals[2] = fmin(n_dims - 1, ceil(slow));
        reals[3] *= 1.0 + 0.1 * log(1.0 / param(node, GGML_ROPE_SLOT_FREQ_SCALE));
    }
    for (int i = 0; i < 4; ++i)
        l->args.reals[i] = wide(reals[i]);
    simt_launch_threads(l, (node->ne[0] - n_pairs) * ggml_nrows(node));
}

// An embedding per timestep.
bool simt_accepts_timestep_embedding(const struct ggml_tensor *node) {
    return node->op_params[1] > 0 && node->ne[2] == 1 && node->ne[3] == 1 &&
           node->src[0]->ne[0] >= node->ne[1];
}

// Frequencies fall as powers of the longest period.
void simt_launch_timestep_embedding(struct simt_work *l, const struct ggml_tensor *node) {
    const int64_t half = node->ne[0] / 2;
    l->args.reals[0] = wide(half > 0 ? pow(node->op_params[1], -1.0 / (double)half) : 1.0);
    simt_launch_threads(l, (node->ne[0] + 1) / 2 * node->ne[1]);
}
