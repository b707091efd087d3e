// SPDX-License-Identifier: MIT
// Sums, norms, softmax: kernels/reduce.cpp.
#include "gpu/base/nodes.h"
#include "simt/rows.h"

bool simt_accepts_sum(const struct ggml_tensor *node) {
    return ggml_nelements(node) == 1;
}

bool simt_accepts_count_equal(const struct ggml_tensor *node) {
    return ggml_nelements(node) == 1 && ggml_are_same_shape(node->src[0], node->src[1]);
}

// Also of the mean.
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
    // Groups are of neighbouring channels, dimension 2; the last may have fewer.
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
