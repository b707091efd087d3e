// SPDX-License-Identifier: MIT
// The gradient rules. In each, g is the gradient of the node, a and b are its first two sources. g
// stands first in products: it is F32 also where the sources are not.
#include "op/gradient/backward.h"

#include "ggml-host.h"
#include "op/gradient/backward_functions.h"
#include "op/op_build.h"

typedef struct ggml_tensor *tensor_t;

// Many operations take contiguous operands only; gradients that are views (of a permutation, a
// region) are copied first.
static tensor_t contiguous(struct backward *pass, tensor_t x) {
    return ggml_is_contiguous(x) ? x : ggml_cont(pass->ctx, x);
}

// Element-wise operations take rows whose elements are neighbours: what may be the gradient of one
// is copied where a permutation has moved them apart.
static tensor_t with_dense_rows(struct backward *pass, tensor_t x) {
    return ggml_is_contiguous_rows(x) ? x : ggml_cont(pass->ctx, x);
}

// Sums over what a broadcast repeated.
static tensor_t reduced(struct backward *pass, tensor_t g, tensor_t like) {
    return ggml_are_same_shape(g, like) ? g : ggml_repeat_back(pass->ctx, g, like);
}

// The same elements in the same order, with the shape of `like`.
static tensor_t reshaped(struct backward *pass, tensor_t g, tensor_t like) {
    return ggml_are_same_shape(g, like) ? g : ggml_reshape(pass->ctx, contiguous(pass, g), like);
}

// --- copies and views ----------------------------------------------------------------------------

// Types may differ: a gradient is F32 whatever the copy was converted to.
static void rule_copy(struct backward *pass, tensor_t node, tensor_t g) {
    backward_give(pass, node->src[0], reshaped(pass, g, node->src[0]));
}

// Strides and offset in elements of `type`, as those of F32.
static struct backward_region region_in(enum ggml_type type, const size_t *nb, size_t offset) {
    const size_t size = ggml_type_size(type);
    const size_t size_f32 = sizeof(float);
    struct backward_region region = {.nb = {size_f32}, .offset = offset / size * size_f32};
    for (int i = 1; i < GGML_MAX_DIMS; ++i) {
        region.nb[i] = nb[i] / size * size_f32;
    }
    return region;
}

// The region that an ACC or SET node writes to.
static struct backward_region region_of(const struct ggml_tensor *node) {
    size_t nb[GGML_MAX_DIMS] = {0};
    for (int i = 1; i < GGML_MAX_DIMS; ++i) {
        nb[i] = (uint32_t)node->op_params[i - 1];
    }
    return region_in(node->type, nb, (uint32_t)node->op_params[3]);
}

// The part of g that lies where the region does.
static tensor_t view_of_region(struct backward *pass, tensor_t g, const struct ggml_tensor *shape,
                               const struct backward_region *region) {
    const int64_t *ne = shape->ne;
    const size_t *nb = region->nb;
    return ggml_view_4d(pass->ctx, contiguous(pass, g), ne[0], ne[1], ne[2], ne[3], nb[1], nb[2],
                        nb[3], region->offset);
}

// y = a, with b added to a region: da = g, db = g within the region.
static void rule_acc(struct backward *pass, tensor_t node, tensor_t g) {
    const struct backward_region region = region_of(node);
    tensor_t b = node->src[1];
    if (backward_wants(pass, node->src[0])) backward_give(pass, node->src[0], g);
    if (backward_wants(pass, b)) {
        backward_give(pass, b, ggml_cont(pass->ctx, view_of_region(pass, g, b, &region)));
    }
}

// y = a, with a region replaced by b: da = g with zeros in the region, db = g within it.
static void rule_set(struct backward *pass, tensor_t node, tensor_t g) {
    const struct backward_region region = region_of(node);
    const size_t *nb = region.nb;
    tensor_t b = node->src[1];
    g = contiguous(pass, g);
    tensor_t part = ggml_cont(pass->ctx, view_of_region(pass, g, b, &region));
    if (backward_wants(pass, node->src[0])) {
        tensor_t rest = ggml_set(pass->ctx, g, ggml_fill(pass->ctx, part, 0.0f), nb[1], nb[2],
                                 nb[3], region.offset);
        backward_give(pass, node->src[0], rest);
    }
    if (backward_wants(pass, b)) backward_give(pass, b, part);
}

// The gradient goes to the viewed region, described with the strides of the view. Only views of
// contiguous tensors: otherwise strides in elements do not translate into those of a packed
// gradient.
static void rule_view(struct backward *pass, tensor_t node, tensor_t g) {
    size_t offset;
    memcpy(&offset, node->op_params, sizeof(offset));
    if (!ggml_is_contiguous(node->src[0])) {
        backward_fail(pass, node, "a view of a tensor that is not contiguous has no gradient here");
        return;
    }
    const struct backward_region region = region_in(node->src[0]->type, node->nb, offset);
    backward_give_region(pass, node->src[0], g, &region);
}

// The inverse permutation.
static void rule_permute(struct backward *pass, tensor_t node, tensor_t g) {
    int back[GGML_MAX_DIMS];
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        back[node->op_params[i] & 3] = i;
    }
    g = ggml_permute(pass->ctx, g, back[0], back[1], back[2], back[3]);
    backward_give(pass, node->src[0], with_dense_rows(pass, g));
}

// A transposition is its own inverse.
static void rule_transpose(struct backward *pass, tensor_t node, tensor_t g) {
    g = ggml_transpose(pass->ctx, g);
    backward_give(pass, node->src[0], with_dense_rows(pass, g));
}

// Rows that were taken several times get the sum of their gradients.
static void rule_get_rows(struct backward *pass, tensor_t node, tensor_t g) {
    tensor_t grad = ggml_get_rows_back(pass->ctx, contiguous(pass, g), node->src[1], node->src[0]);
    backward_give(pass, node->src[0], grad);
}

// --- element-wise --------------------------------------------------------------------------------

// da = g; db = g, summed over what was broadcast.
static void rule_add(struct backward *pass, tensor_t node, tensor_t g) {
    tensor_t b = node->src[1];
    if (backward_wants(pass, node->src[0])) backward_give(pass, node->src[0], g);
    if (backward_wants(pass, b)) backward_give(pass, b, reduced(pass, g, b));
}

// b is one number, added to all elements.
static void rule_add1(struct backward *pass, tensor_t node, tensor_t g) {
    if (backward_wants(pass, node->src[0])) backward_give(pass, node->src[0], g);
    if (backward_wants(pass, node->src[1])) {
        backward_give(pass, node->src[1], ggml_sum(pass->ctx, contiguous(pass, g)));
    }
}

// da = g, db = -g.
static void rule_sub(struct backward *pass, tensor_t node, tensor_t g) {
    tensor_t b = node->src[1];
    if (backward_wants(pass, node->src[0])) backward_give(pass, node->src[0], g);
    if (backward_wants(pass, b)) {
        backward_give(pass, b, ggml_neg(pass->ctx, contiguous(pass, reduced(pass, g, b))));
    }
}

// da = g b, db = g a.
static void rule_mul(struct backward *pass, tensor_t node, tensor_t g) {
    tensor_t a = node->src[0];
    tensor_t b = node->src[1];
    if (backward_wants(pass, a)) backward_give(pass, a, ggml_mul(pass->ctx, g, b));
    if (backward_wants(pass, b)) {
        backward_give(pass, b, reduced(pass, ggml_mul(pass->ctx, g, a), b));
    }
}

// y = a / b: da = g / b, db = -g a / b^2 = -(g / b) y, which needs one division for both.
static void rule_div(struct backward *pass, tensor_t node, tensor_t g) {
    tensor_t b = node->src[1];
    if (!backward_wants(pass, node->src[0]) && !backward_wants(pass, b)) return;
    tensor_t quotient = ggml_div(pass->ctx, g, b);
    if (backward_wants(pass, node->src[0])) backward_give(pass, node->src[0], quotient);
    if (backward_wants(pass, b)) {
        tensor_t slope = ggml_neg(pass->ctx, ggml_mul(pass->ctx, quotient, node));
        backward_give(pass, b, reduced(pass, slope, b));
    }
}

// da = 2 g a
static void rule_sqr(struct backward *pass, tensor_t node, tensor_t g) {
    tensor_t a = node->src[0];
    backward_give(pass, a, ggml_scale(pass->ctx, ggml_mul(pass->ctx, g, a), 2.0f));
}

// da = g / (2 y), from the result: no other root has to be computed.
static void rule_sqrt(struct backward *pass, tensor_t node, tensor_t g) {
    backward_give(pass, node->src[0], ggml_scale(pass->ctx, ggml_div(pass->ctx, g, node), 0.5f));
}

// da = g / a
static void rule_log(struct backward *pass, tensor_t node, tensor_t g) {
    backward_give(pass, node->src[0], ggml_div(pass->ctx, g, node->src[0]));
}

// da = g cos a
static void rule_sin(struct backward *pass, tensor_t node, tensor_t g) {
    tensor_t a = node->src[0];
    backward_give(pass, a, ggml_mul(pass->ctx, g, ggml_cos(pass->ctx, a)));
}

// da = -g sin a
static void rule_cos(struct backward *pass, tensor_t node, tensor_t g) {
    tensor_t a = node->src[0];
    tensor_t slope = ggml_mul(pass->ctx, g, ggml_sin(pass->ctx, a));
    backward_give(pass, a, ggml_neg(pass->ctx, slope));
}

// y = scale a + bias: the bias has no part in the slope.
static void rule_scale(struct backward *pass, tensor_t node, tensor_t g) {
    const float scale = ggml_get_op_params_f32(node, 0);
    backward_give(pass, node->src[0], ggml_scale(pass->ctx, contiguous(pass, g), scale));
}

// NEG and SILU have operations for their gradient; all others are g times the slope.
static void rule_unary(struct backward *pass, tensor_t node, tensor_t g) {
    struct ggml_context *ctx = pass->ctx;
    tensor_t a = node->src[0];
    const enum ggml_unary_op op = ggml_get_unary_op(node);
    if (op == GGML_UNARY_OP_NEG) {
        backward_give(pass, a, ggml_neg(ctx, contiguous(pass, g)));
    } else if (op == GGML_UNARY_OP_SILU) {
        backward_give(pass, a, ggml_silu_back(ctx, contiguous(pass, g), a));
    } else {
        tensor_t slope = backward_unary_slope(ctx, node);
        if (slope) {
            backward_give(pass, a, ggml_mul(ctx, g, slope));
        } else {
            backward_fail(pass, node, "this function has no gradient here");
        }
    }
}

// --- sums and repetitions ------------------------------------------------------------------------

// Each element entered one sum with factor 1. That of a sum back over repetitions is the
// repetition.
static void rule_sum(struct backward *pass, tensor_t node, tensor_t g) {
    backward_give(pass, node->src[0], ggml_repeat(pass->ctx, g, node->src[0]));
}

// The mean of a row: each of its ne0 elements has that share of it.
static void rule_mean(struct backward *pass, tensor_t node, tensor_t g) {
    tensor_t a = node->src[0];
    tensor_t share = ggml_scale(pass->ctx, contiguous(pass, g), 1.0f / (float)a->ne[0]);
    backward_give(pass, a, ggml_repeat(pass->ctx, share, a));
}

// Each element enters its own sum and all that follow.
static void rule_cumsum(struct backward *pass, tensor_t node, tensor_t g) {
    struct ggml_context *ctx = pass->ctx;
    g = contiguous(pass, g);
    tensor_t before = ggml_sub(ctx, ggml_cumsum(ctx, g), g);
    tensor_t all = ggml_repeat(ctx, ggml_sum_rows(ctx, g), g);
    backward_give(pass, node->src[0], ggml_sub(ctx, all, before));
}

// The sum over all repetitions.
static void rule_repeat(struct backward *pass, tensor_t node, tensor_t g) {
    backward_give(pass, node->src[0], reduced(pass, g, node->src[0]));
}

// --- layers --------------------------------------------------------------------------------------

// An operation of its own, since the slope of an element depends on its whole row.
static void rule_rms_norm(struct backward *pass, tensor_t node, tensor_t g) {
    const float eps = ggml_get_op_params_f32(node, 0);
    backward_give(pass, node->src[0],
                  ggml_rms_norm_back(pass->ctx, contiguous(pass, g), node->src[0], eps));
}

// As OUT_PROD wants its operands: elements of a row side by side, and rows in rising order.
static tensor_t dense_rows(struct backward *pass, tensor_t x) {
    const bool dense = x->nb[0] == ggml_type_size(x->type) && !ggml_is_transposed(x);
    return dense ? x : ggml_cont(pass->ctx, x);
}

// Sums the batches of `full` that share one of `like`: runs of neighbours in dimensions 2 and 3.
static tensor_t sum_batches(struct backward *pass, tensor_t full, tensor_t like) {
    struct ggml_context *ctx = pass->ctx;
    const int64_t *ne = like->ne;
    const int64_t matrix = full->ne[0] * full->ne[1];
    if (ggml_are_same_shape(full, like)) return full;
    if (ggml_is_empty(full)) return ggml_fill(ctx, ggml_cast(ctx, like, GGML_TYPE_F32), 0.0f);
    if (full->ne[2] != ne[2]) {
        const int64_t r2 = full->ne[2] / ne[2];
        const int64_t batches = ne[2] * full->ne[3];
        tensor_t runs = ggml_reshape_3d(ctx, full, matrix, r2, batches);
        const struct ggml_tensor shape = {.type = GGML_TYPE_F32, .ne = {matrix, 1, batches, 1}};
        full = ggml_repeat_back(ctx, runs, (tensor_t)(uintptr_t)&shape);
    }
    const int64_t outer = like->ne[3];
    const int64_t n3 = ggml_nelements(full) / (matrix * ne[2]);
    if (n3 != outer) {
        tensor_t runs = ggml_reshape_3d(ctx, full, matrix * ne[2], n3 / outer, outer);
        const struct ggml_tensor shape = {.type = GGML_TYPE_F32,
                                          .ne = {matrix * ne[2], 1, outer, 1}};
        full = ggml_repeat_back(ctx, runs, (tensor_t)(uintptr_t)&shape);
    }
    return reshaped(pass, full, like);
}

// What was set to zero passes nothing; what was kept passes g.
static void rule_tri(struct backward *pass, tensor_t node, tensor_t g) {
    const enum ggml_tri_type part = (enum ggml_tri_type)node->op_params[0];
    backward_give(pass, node->src[0], ggml_tri(pass->ctx, contiguous(pass, g), part));
}

// Only the diagonal came from the source: a view with a stride of one row and one element.
static void rule_diag(struct backward *pass, tensor_t node, tensor_t g) {
    const int64_t *ne = node->ne;
    g = contiguous(pass, g);
    tensor_t diagonal = ggml_view_4d(pass->ctx, g, 1, ne[0], ne[2], ne[3], g->nb[0] + g->nb[1],
                                     g->nb[2], g->nb[3], 0);
    backward_give(pass, node->src[0], reshaped(pass, diagonal, node->src[0]));
}

// y = a^T b in the order of extents here (y[i, j] = sum over k of a[k, i] b[k, j]): da = b g^T,
// summed over the batches that shared a matrix of a, and db = a g. Both are outer products.
static void rule_mul_mat(struct backward *pass, tensor_t node, tensor_t g) {
    struct ggml_context *ctx = pass->ctx;
    tensor_t a = node->src[0];
    tensor_t b = node->src[1];
    if (backward_wants(pass, a)) {
        tensor_t product = ggml_out_prod(ctx, dense_rows(pass, b), g);
        if (!ggml_tensor_is_error(product)) product = sum_batches(pass, product, a);
        backward_give(pass, a, product);
    }
    if (backward_wants(pass, b)) {
        backward_give(pass, b, ggml_out_prod(ctx, dense_rows(pass, a), ggml_transpose(ctx, g)));
    }
}

// Masked elements are constants, be they 0 or -infinity: their gradient is 0.
static void rule_diag_mask(struct backward *pass, tensor_t node, tensor_t g) {
    backward_give(pass, node->src[0], ggml_diag_mask_zero(pass->ctx, g, node->op_params[0]));
}

// Neither the bias by position nor sinks change the slope at given probabilities.
static void rule_soft_max(struct backward *pass, tensor_t node, tensor_t g) {
    if (backward_wants(pass, node->src[1]) || backward_wants(pass, node->src[2])) {
        backward_fail(pass, node, "its mask and its sinks have no gradient");
        return;
    }
    const float scale = ggml_get_op_params_f32(node, 0);
    backward_give(pass, node->src[0],
                  ggml_soft_max_ext_back(pass->ctx, contiguous(pass, g), node, scale, 0.0f));
}

// The rotation back by the same angles, thus the same parameters, whatever they are.
static void rule_rope(struct backward *pass, tensor_t node, tensor_t g) {
    struct op_call call = {OP(pass->ctx, ROPE_BACK), .src = {g, node->src[1], node->src[2]}};
    if (backward_wants(pass, node->src[2])) {
        backward_fail(pass, node, "its frequency factors have no gradient");
        return;
    }
    memcpy(call.params, node->op_params, sizeof(call.params));
    backward_give(pass, node->src[0], op_build(&call));
}

// Each patch gives its elements back to the pixels that it was copied from. The kernel lends
// nothing but its shape, so it gets no gradient.
static void rule_im2col(struct backward *pass, tensor_t node, tensor_t g) {
    const int32_t *p = node->op_params;
    tensor_t image = node->src[1];
    backward_give(pass, image,
                  ggml_im2col_back(pass->ctx, contiguous(pass, g), node->src[0], image->ne, p[0],
                                   p[1], p[2], p[3], p[4], p[5], p[6] != 0));
}

// A pool over rows is one over windows of one row, but for a mean that leaves padding out.
static void rule_pool_1d(struct backward *pass, tensor_t node, tensor_t g) {
    const int32_t *p = node->op_params;
    tensor_t a = node->src[0];
    if (p[0] == GGML_OP_POOL_AVG && p[3] != 0) {
        backward_fail(pass, node, "a mean with padding has no gradient here");
        return;
    }
    backward_give(pass, a,
                  ggml_pool_2d_back(pass->ctx, contiguous(pass, g), a, (enum ggml_op_pool)p[0],
                                    p[1], 1, p[2], 1, (float)p[3], 0.0f));
}

// Average: each window's gradient is spread over its elements; maximum: it goes to the element that
// was largest, which the operation finds again from its source.
static void rule_pool_2d(struct backward *pass, tensor_t node, tensor_t g) {
    const int32_t *p = node->op_params;
    tensor_t a = node->src[0];
    backward_give(pass, a,
                  ggml_pool_2d_back(pass->ctx, contiguous(pass, g), a, (enum ggml_op_pool)p[0],
                                    p[1], p[2], p[3], p[4], (float)p[5], (float)p[6]));
}

// (softmax(a) - labels) g / rows, as one operation.
static void rule_cross_entropy_loss(struct backward *pass, tensor_t node, tensor_t g) {
    if (backward_wants(pass, node->src[1])) {
        backward_fail(pass, node, "its labels have no gradient");
        return;
    }
    backward_give(pass, node->src[0],
                  ggml_cross_entropy_loss_back(pass->ctx, g, node->src[0], node->src[1]));
}

// O(1): a table by operation. What is absent has no gradient here: a backward pass through such a
// node fails with a message that names it.
backward_rule backward_rule_of(enum ggml_op op) {
    static const backward_rule rules[GGML_OP_COUNT] = {
        [GGML_OP_DUP] = rule_copy,
        [GGML_OP_ADD] = rule_add,
        [GGML_OP_ADD1] = rule_add1,
        [GGML_OP_ACC] = rule_acc,
        [GGML_OP_SUB] = rule_sub,
        [GGML_OP_MUL] = rule_mul,
        [GGML_OP_DIV] = rule_div,
        [GGML_OP_SQR] = rule_sqr,
        [GGML_OP_SQRT] = rule_sqrt,
        [GGML_OP_LOG] = rule_log,
        [GGML_OP_SIN] = rule_sin,
        [GGML_OP_COS] = rule_cos,
        [GGML_OP_SUM] = rule_sum,
        [GGML_OP_SUM_ROWS] = rule_sum,
        [GGML_OP_CUMSUM] = rule_cumsum,
        [GGML_OP_MEAN] = rule_mean,
        [GGML_OP_REPEAT] = rule_repeat,
        [GGML_OP_REPEAT_BACK] = rule_sum,
        [GGML_OP_RMS_NORM] = rule_rms_norm,
        [GGML_OP_MUL_MAT] = rule_mul_mat,
        [GGML_OP_SCALE] = rule_scale,
        [GGML_OP_SET] = rule_set,
        [GGML_OP_CPY] = rule_copy,
        [GGML_OP_CONT] = rule_copy,
        [GGML_OP_RESHAPE] = rule_copy,
        [GGML_OP_VIEW] = rule_view,
        [GGML_OP_PERMUTE] = rule_permute,
        [GGML_OP_TRANSPOSE] = rule_transpose,
        [GGML_OP_GET_ROWS] = rule_get_rows,
        [GGML_OP_DIAG] = rule_diag,
        [GGML_OP_TRI] = rule_tri,
        [GGML_OP_DIAG_MASK_INF] = rule_diag_mask,
        [GGML_OP_DIAG_MASK_ZERO] = rule_diag_mask,
        [GGML_OP_SOFT_MAX] = rule_soft_max,
        [GGML_OP_ROPE] = rule_rope,
        [GGML_OP_IM2COL] = rule_im2col,
        [GGML_OP_POOL_1D] = rule_pool_1d,
        [GGML_OP_POOL_2D] = rule_pool_2d,
        [GGML_OP_UNARY] = rule_unary,
        [GGML_OP_GLU] = backward_rule_glu,
        [GGML_OP_CROSS_ENTROPY_LOSS] = rule_cross_entropy_loss,
    };
    return (unsigned)op < GGML_OP_COUNT ? rules[op] : NULL;
}
