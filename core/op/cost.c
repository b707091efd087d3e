// SPDX-License-Identifier: MIT
// What computing a node takes. `flops` is the row's factor; its unit is said at each rule.
#include <math.h>

#include "op/op_rules.h"

// In double: products of extents may overflow 64 bits, and a cost is an estimate.
static double count(const struct ggml_tensor *t) {
    return (double)t->ne[0] * (double)t->ne[1] * (double)t->ne[2] * (double)t->ne[3];
}

// Also for extents that are no multiple of a block.
static double bytes_of(double elements, enum ggml_type type) {
    const double block = (double)ggml_blck_size(type);
    return block > 0 ? elements * (double)ggml_type_size(type) / block : 0;
}

// Bytes of a whole tensor, packed.
static double size(const struct ggml_tensor *t) {
    return bytes_of(count(t), t->type);
}

// Every source once, and the result once.
static struct ggml_op_cost whole(const struct ggml_tensor *node, double flops) {
    struct ggml_op_cost cost = {.flops = flops, .bytes_written = size(node)};
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        const struct ggml_tensor *src = node->src[i];
        if (src != NULL && src != node) cost.bytes_read += size(src);
    }
    return cost;
}

// Views and constants: nothing is read, written or computed.
struct ggml_op_cost op_cost_none(const struct ggml_tensor *node, double flops) {
    (void)node;
    (void)flops;
    return (struct ggml_op_cost){0};
}

// Per element of the result.
struct ggml_op_cost op_cost_elements(const struct ggml_tensor *node, double flops) {
    return whole(node, flops * count(node));
}

// Per element of source 0.
struct ggml_op_cost op_cost_source(const struct ggml_tensor *node, double flops) {
    return whole(node, flops * count(node->src[0]));
}

// No source is read, only its shape.
struct ggml_op_cost op_cost_fill(const struct ggml_tensor *node, double flops) {
    return (struct ggml_op_cost){.flops = flops * count(node), .bytes_written = size(node)};
}

// The destination, source 1, is written only.
struct ggml_op_cost op_cost_cpy(const struct ggml_tensor *node, double flops) {
    return (struct ggml_op_cost){.flops = flops * count(node),
                                 .bytes_read = size(node->src[0]),
                                 .bytes_written = size(node)};
}

// Per element of the region. In place only the region is touched.
struct ggml_op_cost op_cost_region(const struct ggml_tensor *node, double flops) {
    const double region = size(node->src[1]);
    struct ggml_op_cost cost = whole(node, flops * count(node->src[1]));
    if (node->op_params[4] != 0) {
        cost.bytes_read = flops > 0 ? 2 * region : region;
        cost.bytes_written = region;
    }
    return cost;
}

// Per term of the dot products.
struct ggml_op_cost op_cost_mul_mat(const struct ggml_tensor *node, double flops) {
    return whole(node, flops * count(node) * (double)node->src[0]->ne[0]);
}

// As mul_mat; no more matrices are read than there are ids.
struct ggml_op_cost op_cost_mul_mat_id(const struct ggml_tensor *node, double flops) {
    const double experts = (double)node->src[0]->ne[2];
    const double ids = count(node->src[2]);
    struct ggml_op_cost cost = op_cost_mul_mat(node, flops);
    if (ids < experts) cost.bytes_read -= size(node->src[0]) * (1.0 - ids / experts);
    return cost;
}

// Per term of the sums.
struct ggml_op_cost op_cost_out_prod(const struct ggml_tensor *node, double flops) {
    return whole(node, flops * count(node) * (double)node->src[0]->ne[1]);
}

// Per element of the result. Of source 0 only the gathered rows are read.
struct ggml_op_cost op_cost_get_rows(const struct ggml_tensor *node, double flops) {
    return (struct ggml_op_cost){.flops = flops * count(node),
                                 .bytes_read =
                                     bytes_of(count(node), node->src[0]->type) + size(node->src[1]),
                                 .bytes_written = size(node)};
}

// Per element of source 0. Of the result only these rows are written.
struct ggml_op_cost op_cost_set_rows(const struct ggml_tensor *node, double flops) {
    return (struct ggml_op_cost){.flops = flops * count(node->src[0]),
                                 .bytes_read = size(node->src[0]) + size(node->src[1]),
                                 .bytes_written = bytes_of(count(node->src[0]), node->type)};
}

// Per element of the result; the kernel gives only its shape.
struct ggml_op_cost op_cost_im2col(const struct ggml_tensor *node, double flops) {
    return (struct ggml_op_cost){.flops = flops * count(node),
                                 .bytes_read = size(node->src[1]),
                                 .bytes_written = size(node)};
}

// Per element of the patches.
struct ggml_op_cost op_cost_im2col_back(const struct ggml_tensor *node, double flops) {
    return (struct ggml_op_cost){.flops = flops * count(node->src[0]),
                                 .bytes_read = size(node->src[0]),
                                 .bytes_written = size(node)};
}

// 0 where an empty operand would divide by 0.
static double ratio(double a, double b) {
    return b > 0 ? a / b : 0;
}

// Convolutions: per product of a weight and a pixel. Source 0 is the kernel.
struct ggml_op_cost op_cost_conv(const struct ggml_tensor *node, double flops) {
    const struct ggml_tensor *kernel = node->src[0];
    return whole(node, flops * count(node) * ratio(count(kernel), (double)kernel->ne[3]));
}

// Output channels are parameter 11: ne3 of the kernel holds channels in times channels out.
struct ggml_op_cost op_cost_conv_3d(const struct ggml_tensor *node, double flops) {
    return whole(node, flops * count(node) * ratio(count(node->src[0]), node->op_params[11]));
}

// A transposed convolution scatters: per element of the image and weight that it meets, hence the
// count of the source and not of the result.
struct ggml_op_cost op_cost_conv_transpose_1d(const struct ggml_tensor *node, double flops) {
    const struct ggml_tensor *kernel = node->src[0];
    return whole(node, flops * count(node->src[1]) * ratio(count(kernel), (double)kernel->ne[2]));
}

struct ggml_op_cost op_cost_conv_transpose_2d(const struct ggml_tensor *node, double flops) {
    const struct ggml_tensor *kernel = node->src[0];
    return whole(node, flops * count(node->src[1]) * ratio(count(kernel), (double)kernel->ne[3]));
}

// Pooling: per element of a window.
struct ggml_op_cost op_cost_pool_1d(const struct ggml_tensor *node, double flops) {
    return whole(node, flops * count(node) * node->op_params[1]);
}

struct ggml_op_cost op_cost_pool_2d(const struct ggml_tensor *node, double flops) {
    return whole(node, flops * count(node) * node->op_params[1] * node->op_params[2]);
}

// The source is the gradient of the pooled tensor, each element of which goes to one window.
struct ggml_op_cost op_cost_pool_2d_back(const struct ggml_tensor *node, double flops) {
    return whole(node, flops * count(node->src[0]) * node->op_params[1] * node->op_params[2]);
}

// Per comparison of a sort by merging.
struct ggml_op_cost op_cost_sort(const struct ggml_tensor *node, double flops) {
    const double n = (double)node->src[0]->ne[0];
    return whole(node, n > 1 ? flops * count(node->src[0]) * log2(n) : 0);
}

// Per product in Q K and in P V.
struct ggml_op_cost op_cost_flash_attn(const struct ggml_tensor *node, double flops) {
    const struct ggml_tensor *q = node->src[0];
    const double scores =
        (double)q->ne[1] * (double)q->ne[2] * (double)q->ne[3] * (double)node->src[1]->ne[1];
    return whole(node, flops * scores * ((double)q->ne[0] + (double)node->ne[0]));
}

// Per product of a query and a key.
struct ggml_op_cost op_cost_lightning_indexer(const struct ggml_tensor *node, double flops) {
    const struct ggml_tensor *q = node->src[0];
    return whole(node, flops * count(node) * (double)q->ne[1] * ((double)q->ne[0] + 1));
}

// Per tap of the filter.
struct ggml_op_cost op_cost_ssm_conv(const struct ggml_tensor *node, double flops) {
    return whole(node, flops * count(node) * (double)node->src[1]->ne[0]);
}

// Recurrences: per element of the state and token.
struct ggml_op_cost op_cost_ssm_scan(const struct ggml_tensor *node, double flops) {
    return whole(node, flops * count(node->src[1]) * (double)node->src[0]->ne[0]);
}

// The state of a head is S x S and each token updates all of it: S operations per element of k.
struct ggml_op_cost op_cost_linear_attn(const struct ggml_tensor *node, double flops) {
    return whole(node, flops * count(node->src[0]) * (double)node->src[0]->ne[0]);
}

struct ggml_op_cost op_cost_gated_delta_net(const struct ggml_tensor *node, double flops) {
    return whole(node, flops * count(node->src[2]) * (double)node->src[2]->ne[0]);
}

// Per element of the triangle, multiplication and subtraction.
struct ggml_op_cost op_cost_solve_tri(const struct ggml_tensor *node, double flops) {
    return whole(node, flops * count(node) * (double)node->src[0]->ne[0]);
}

// Per product with the combination matrix and the post weight.
struct ggml_op_cost op_cost_dsv4_hc_post(const struct ggml_tensor *node, double flops) {
    return whole(node, flops * count(node) * ((double)node->ne[1] + 1));
}
