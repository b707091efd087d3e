// SPDX-License-Identifier: MIT
// Gathering and scattering rows, diagonals, sorting, rolling.
#include "op/op_rules.h"

// Rows of integers stay integers; all others are decoded to F32.
bool op_type_get_rows(struct op_call *call) {
    call->type = call->src[0]->type == GGML_TYPE_I32 ? GGML_TYPE_I32 : GGML_TYPE_F32;
    return op_need_type(call, 1, GGML_TYPE_I32);
}

// a [n, rows, b1, b2], indices [m, b1, b2]: row indices[i, j, k] of matrix (j, k). The result is
// [n, m, b1, b2].
bool op_shape_get_rows(struct op_call *call) {
    const int64_t *a = call->src[0]->ne;
    const int64_t *b = call->src[1]->ne;
    return op_need_dims(call, 1, 3) && op_need_ne(call, 0, 2, b[1], "ne1 of src1") &&
           op_need_ne(call, 0, 3, b[2], "ne2 of src1") && op_set_ne(call, a[0], b[0], b[1], b[2]);
}

struct ggml_tensor *ggml_get_rows(struct ggml_context *ctx, struct ggml_tensor *a,
                                  struct ggml_tensor *b) {
    return op_build(&(struct op_call){OP(ctx, GET_ROWS), .src = {a, b}});
}

bool op_type_get_rows_back(struct op_call *call) {
    call->type = GGML_TYPE_F32;
    return op_need_type(call, 1, GGML_TYPE_I32);
}

// Adds row i of src0 to row indices[i] of a matrix of zeros with the shape of `like`: rows that
// were gathered several times get a sum.
bool op_shape_get_rows_back(struct op_call *call) {
    const struct ggml_tensor *like = call->like;
    if (!ggml_is_matrix(like))
        return op_fail(call, "the tensor that gives the shape must be a matrix");
    return op_need_dims(call, 0, 2) && op_need_dims(call, 1, 1) &&
           op_need_ne(call, 0, 0, like->ne[0], "ne0 of the tensor that gives the shape") &&
           op_need_range(call, "src1 ne0, the rows of src0 that are added", call->src[1]->ne[0], 0,
                         call->src[0]->ne[1]) &&
           op_set_ne(call, like->ne[0], like->ne[1], 1, 1);
}

struct ggml_tensor *ggml_get_rows_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                       struct ggml_tensor *b, struct ggml_tensor *c) {
    return op_build(
        &(struct op_call){OP(ctx, GET_ROWS_BACK), .src = {a, b}, .has_like = true, .like = c});
}

// Sources: the rows, their places, the tensor written to.
bool op_type_set_rows(struct op_call *call) {
    call->type = call->src[2]->type;
    return op_need_type2(call, 0, GGML_TYPE_F32, GGML_TYPE_F16) &&
           op_need_type2(call, 1, GGML_TYPE_I64, GGML_TYPE_I32);
}

// The result is src2 with rows replaced: a KV cache. Indices may be shared by runs of batches; they
// are 64-bit as caches may have more than 2^31 rows.
bool op_shape_set_rows(struct op_call *call) {
    const int64_t *a = call->src[2]->ne;
    return op_need_ne(call, 0, 0, a[0], "ne0 of src2") &&
           op_need_ne(call, 0, 2, a[2], "ne2 of src2") &&
           op_need_ne(call, 0, 3, a[3], "ne3 of src2") &&
           op_need_ne(call, 1, 0, call->src[0]->ne[1], "an index per row of src0") &&
           op_need_multiple(call, 0, 2, 1, 1) && op_need_multiple(call, 0, 3, 1, 2) &&
           op_need_dims(call, 1, 3) && op_need_contiguous_rows(call, 0) &&
           op_need_contiguous_rows(call, 2) && op_set_ne_as(call, call->src[2]);
}

struct ggml_tensor *ggml_set_rows(struct ggml_context *ctx, struct ggml_tensor *a,
                                  struct ggml_tensor *b, struct ggml_tensor *c) {
    return op_build(&(struct op_call){OP(ctx, SET_ROWS), .src = {b, c, a}, .alias = a});
}

// A row becomes a diagonal matrix.
bool op_shape_diag(struct op_call *call) {
    const int64_t *ne = call->src[0]->ne;
    return op_need_ne(call, 0, 1, 1, "a row per matrix") &&
           op_set_ne(call, ne[0], ne[0], ne[2], ne[3]);
}

struct ggml_tensor *ggml_diag(struct ggml_context *ctx, struct ggml_tensor *a) {
    return op_build(&(struct op_call){OP(ctx, DIAG), .src = {a}});
}

// --- sorting -------------------------------------------------------------------------------------

// Indices are I32, hence the limit of a row.
bool op_shape_argsort(struct op_call *call) {
    return op_need_range(call, "order", call->params[0], GGML_SORT_ORDER_ASC,
                         GGML_SORT_ORDER_DESC) &&
           op_need_range(call, "src0 ne0", call->src[0]->ne[0], 0, INT32_MAX) &&
           op_set_ne_as(call, call->src[0]);
}

struct ggml_tensor *ggml_argsort(struct ggml_context *ctx, struct ggml_tensor *a,
                                 enum ggml_sort_order order) {
    return op_build(&(struct op_call){OP(ctx, ARGSORT), .src = {a}, .params = {(int32_t)order}});
}

// The indices of the k largest of each row in descending order, as a view of a full sort. TOP_K
// leaves their order open and needs no full sort.
struct ggml_tensor *ggml_argsort_top_k(struct ggml_context *ctx, struct ggml_tensor *a, int k) {
    struct op_call call = {OP(ctx, ARGSORT), .src = {a}, .params = {GGML_SORT_ORDER_DESC}};
    if (a != NULL && !op_is_error(a) && !op_need_range(&call, "k", k, 0, a->ne[0]))
        return call.error;
    struct ggml_tensor *sorted = op_build(&call);
    if (op_is_error(sorted)) return sorted;
    return ggml_view_4d(ctx, sorted, k, sorted->ne[1], sorted->ne[2], sorted->ne[3], sorted->nb[1],
                        sorted->nb[2], sorted->nb[3], 0);
}

// The indices of the k largest elements in no particular order.
bool op_shape_top_k(struct op_call *call) {
    const int64_t *ne = call->src[0]->ne;
    return op_need_range(call, "src0 ne0", ne[0], 0, INT32_MAX) &&
           op_need_range(call, "k", call->ne[0], 0, ne[0]) &&
           op_set_ne(call, call->ne[0], ne[1], ne[2], ne[3]);
}

struct ggml_tensor *ggml_top_k(struct ggml_context *ctx, struct ggml_tensor *a, int k) {
    return op_build(&(struct op_call){OP(ctx, TOP_K), .src = {a}, .ne = {k, 1, 1, 1}});
}

// Elements shift cyclically: element i goes to (i + shift) mod ne along each dimension.
bool op_shape_roll(struct op_call *call) {
    const struct ggml_tensor *a = call->src[0];
    if (a->nb[0] != ggml_type_size(a->type))
        return op_fail(call, "dimension 0 of src0 must be packed");
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        if (!op_need_range(call, "a shift", call->params[i], 1 - a->ne[i], a->ne[i] - 1))
            return false;
    }
    return op_set_ne_as(call, a);
}

struct ggml_tensor *ggml_roll(struct ggml_context *ctx, struct ggml_tensor *a, int shift0,
                              int shift1, int shift2, int shift3) {
    return op_build(
        &(struct op_call){OP(ctx, ROLL), .src = {a}, .params = {shift0, shift1, shift2, shift3}});
}
