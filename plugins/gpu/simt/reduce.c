// SPDX-License-Identifier: MIT
// Sums, norms, softmax, attention: kernels/reduce.cpp, kernels/attention.cpp.
#include "gpu/base/nodes.h"
#include "simt/rows.h"

bool simt_accepts_sum(const struct ggml_tensor *node) {
    return ggml_nelements(node) == 1;
}

bool simt_accepts_count_equal(const struct ggml_tensor *node) {
    return ggml_nelements(node) == 1 && ggml_are_same_shape(node->src[0], node->src[1]);
}

bool simt_accepts_sum_rows(const struct ggml_tensor *node) {
    return node->ne[0] == 1 && ggml_same_shape_from(node, node->src[0], 1);
}

void simt_launch_sum_rows(struct simt_work *l, const struct ggml_tensor *node) {
    l->args.numbers[0] = node->op == GGML_OP_MEAN;
    simt_launch_row_blocks(l, ggml_nrows(node), node->src[0]->ne[0]);
}

bool simt_accepts_argmax(const struct ggml_tensor *node) {
    return ggml_fits_argmax(node);
}

bool simt_accepts_group_norm(const struct ggml_tensor *node) {
    return node->op_params[0] > 0 && simt_accepts_same(node);
}

// As in the kernel: norm, rms_norm, l2_norm, group_norm.
void simt_launch_norm(struct simt_work *l, const struct ggml_tensor *node) {
    l->args.numbers[0] = node->op == GGML_OP_NORM       ? 0
                         : node->op == GGML_OP_RMS_NORM ? 1
                         : node->op == GGML_OP_L2_NORM  ? 2
                                                        : 3;
    if (node->op != GGML_OP_GROUP_NORM) {
        simt_launch_row_blocks(l, ggml_nrows(node), node->ne[0]);
        return;
    }
    const int64_t groups = node->op_params[0], channels = (node->ne[2] + groups - 1) / groups;
    l->args.numbers[1] = channels;
    l->args.numbers[2] = groups;
    simt_launch_row_blocks(l, groups * node->ne[3], node->ne[0] * node->ne[1] * channels);
}

bool simt_accepts_soft_max(const struct ggml_tensor *node) {
    const struct ggml_tensor *sinks = node->src[2];
    return ggml_fits_soft_max(node) && (!sinks || sinks->type == GGML_TYPE_F32);
}

void simt_launch_soft_max(struct simt_work *l, const struct ggml_tensor *node) {
    l->args.numbers[0] = gpu_power_of_two_within(node->ne[2]);
    simt_launch_row_blocks(l, ggml_nrows(node), node->ne[0]);
}

// --- attention -----------------------------------------------------------------------------------

enum { MAX_CHANNELS = 1024, ATTENTION_THREADS = 128 }; // as in kernels/attention.cpp

// Rows of K or V: a whole number of query heads for each of their heads.
static bool accepts_cache(const struct ggml_tensor *t, const struct ggml_tensor *q) {
    return ggml_rows_separable(t) && t->ne[2] > 0 && t->ne[0] <= MAX_CHANNELS &&
           q->ne[2] % t->ne[2] == 0 && t->ne[3] == q->ne[3];
}

static bool accepts_mask(const struct ggml_tensor *mask, const struct ggml_tensor *q,
                         const struct ggml_tensor *k) {
    return (mask->type == GGML_TYPE_F16 || mask->type == GGML_TYPE_F32) &&
           mask->ne[0] >= k->ne[1] && mask->ne[1] >= q->ne[1] && mask->ne[2] > 0 &&
           mask->ne[3] > 0 && q->ne[2] % mask->ne[2] == 0 && q->ne[3] % mask->ne[3] == 0;
}

static bool accepts_sinks(const struct ggml_tensor *sinks, const struct ggml_tensor *q) {
    return sinks->type == GGML_TYPE_F32 && ggml_is_packed(sinks) && sinks->ne[0] >= q->ne[2];
}

bool simt_accepts_flash_attn(const struct ggml_tensor *node) {
    const struct ggml_tensor *q = node->src[0], *k = node->src[1], *v = node->src[2];
    const struct ggml_tensor *mask = node->src[3], *sinks = node->src[4];
    if (!v || !((T_FLOATS | T_CODED) >> v->type & 1)) return false;
    return accepts_cache(k, q) && accepts_cache(v, q) && (!mask || accepts_mask(mask, q, k)) &&
           (!sinks || accepts_sinks(sinks, q)) && k->ne[0] == q->ne[0] && v->ne[1] >= k->ne[1] &&
           node->ne[0] == v->ne[0] && node->ne[1] == q->ne[2] && node->ne[2] == q->ne[1] &&
           node->ne[3] == q->ne[3];
}

void simt_launch_flash_attn(struct simt_work *l, const struct ggml_tensor *node) {
    l->args.numbers[0] = gpu_power_of_two_within(node->src[0]->ne[2]);
    l->grid[0] = (unsigned)ggml_nrows(node->src[0]);
    l->threads = ATTENTION_THREADS;
}
