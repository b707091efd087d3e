// SPDX-License-Identifier: MIT
// Matrix products.
#include "base/status.h"
#include "op/op_rules.h"

// y[i, j] = sum over k of a[k, i] b[k, j]: both operands have the summed dimension first, so that
// kernels read rows of both. Matrices of a are shared by runs of batches of b. a may not be
// transposed, as its rows would not be contiguous.
bool op_shape_mul_mat(struct op_call *call) {
    const int64_t *a = call->src[0]->ne;
    const int64_t *b = call->src[1]->ne;
    if (a[0] != b[0]) {
        return op_fail(
            call, "src0 ne0 = %lld differs from src1 ne0 = %lld, the length of the dot product",
            (long long)a[0], (long long)b[0]);
    }
    return op_need_multiple(call, 1, 2, 0, 2) && op_need_multiple(call, 1, 3, 0, 3) &&
           op_need_not_transposed(call, 0) && op_set_ne(call, a[1], b[1], b[2], b[3]);
}

struct ggml_tensor *ggml_mul_mat(struct ggml_context *ctx, struct ggml_tensor *a,
                                 struct ggml_tensor *b) {
    return op_build(&(struct op_call){OP(ctx, MUL_MAT), .src = {a, b}});
}

// A hint allows a faster way and never changes what the result means.
void ggml_mul_mat_set_hint(struct ggml_tensor *a, enum ggml_op_hint hint) {
    if (!op_may_set(__func__, a, GGML_OP_MUL_MAT)) return;
    if (hint != GGML_HINT_NONE && hint != GGML_HINT_SRC0_IS_HADAMARD) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: there is no hint %d", __func__, (int)hint);
        return;
    }
    a->op_params[1] = (int32_t)hint;
}

// Ids are I32; the result is F32 as that of MUL_MAT.
bool op_type_mul_mat_id(struct op_call *call) {
    call->type = GGML_TYPE_F32;
    return op_need_type(call, 2, GGML_TYPE_I32);
}

// A mixture of experts: as [K, M, experts], b [K, 1 or used, tokens], ids [used, tokens]. Row
// ids[e, t] of experts is multiplied with column e (or the only one) of token t: [M, used, tokens].
bool op_shape_mul_mat_id(struct op_call *call) {
    const int64_t *as = call->src[0]->ne;
    const int64_t *b = call->src[1]->ne;
    const int64_t *ids = call->src[2]->ne;
    return op_need_not_transposed(call, 0) && op_need_dims(call, 0, 3) &&
           op_need_dims(call, 1, 3) && op_need_dims(call, 2, 2) &&
           op_need_ne(call, 2, 1, b[2], "ne2 of src1, the tokens") &&
           op_need_ne(call, 1, 0, as[0], "ne0 of src0, the length of the dot product") &&
           op_need_multiple(call, 2, 0, 1, 1) && op_set_ne(call, as[1], ids[0], b[2], 1);
}

struct ggml_tensor *ggml_mul_mat_id(struct ggml_context *ctx, struct ggml_tensor *as,
                                    struct ggml_tensor *b, struct ggml_tensor *ids) {
    return op_build(&(struct op_call){OP(ctx, MUL_MAT_ID), .src = {as, b, ids}});
}

// y[i, j] = sum over k of a[i, k] b[j, k]: the product over dimension 1 that the gradients of
// MUL_MAT need.
bool op_shape_out_prod(struct op_call *call) {
    const int64_t *a = call->src[0]->ne;
    const int64_t *b = call->src[1]->ne;
    return op_need_ne(call, 1, 1, a[1], "ne1 of src0, the length of the sum") &&
           op_need_multiple(call, 1, 2, 0, 2) && op_need_multiple(call, 1, 3, 0, 3) &&
           op_need_not_transposed(call, 0) && op_set_ne(call, a[0], b[0], b[2], b[3]);
}

struct ggml_tensor *ggml_out_prod(struct ggml_context *ctx, struct ggml_tensor *a,
                                  struct ggml_tensor *b) {
    return op_build(&(struct op_call){OP(ctx, OUT_PROD), .src = {a, b}});
}
