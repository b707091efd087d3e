// SPDX-License-Identifier: MIT
// Views: other extents or strides over the same memory.
#include "op/op_rules.h"

// --- reshape -------------------------------------------------------------------------------------

// Extents of another tensor or of numbers. Only contiguous tensors: a reshape never moves data.
bool op_shape_reshape(struct op_call *call) {
    if (call->has_like) op_set_ne_as(call, call->like);
    return op_need_contiguous(call, 0) && op_need_elements(call, call->src[0]);
}

// A view of the whole source with extents of its own and packed strides.
static struct ggml_tensor *build_reshape(struct op_call *call) {
    call->alias = call->src[0];
    call->window = true;
    call->suffix = " (reshaped)";
    return op_build(call);
}

struct ggml_tensor *ggml_reshape(struct ggml_context *ctx, struct ggml_tensor *a,
                                 struct ggml_tensor *b) {
    return build_reshape(
        &(struct op_call){OP(ctx, RESHAPE), .src = {a}, .has_like = true, .like = b});
}

struct ggml_tensor *ggml_reshape_1d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0) {
    return build_reshape(&(struct op_call){OP(ctx, RESHAPE), .src = {a}, .ne = {ne0, 1, 1, 1}});
}

struct ggml_tensor *ggml_reshape_2d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0,
                                    int64_t ne1) {
    return build_reshape(&(struct op_call){OP(ctx, RESHAPE), .src = {a}, .ne = {ne0, ne1, 1, 1}});
}

struct ggml_tensor *ggml_reshape_3d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0,
                                    int64_t ne1, int64_t ne2) {
    return build_reshape(&(struct op_call){OP(ctx, RESHAPE), .src = {a}, .ne = {ne0, ne1, ne2, 1}});
}

struct ggml_tensor *ggml_reshape_4d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0,
                                    int64_t ne1, int64_t ne2, int64_t ne3) {
    return build_reshape(
        &(struct op_call){OP(ctx, RESHAPE), .src = {a}, .ne = {ne0, ne1, ne2, ne3}});
}

// --- view ----------------------------------------------------------------------------------------

// As in ggml the elements side by side have to fit: a view whose strides reach beyond the end may
// be narrowed by another view before anything reads it. Streams check what they are given to
// compute.
bool op_shape_view(struct op_call *call) {
    const struct ggml_tensor *a = call->src[0];
    const size_t room = ggml_nbytes(a->view_src != NULL ? a->view_src : a);
    size_t end, packed_nb[GGML_MAX_DIMS];
    op_packed_strides(a->type, call->ne, packed_nb);
    if (!call->strided) memcpy(call->nb, packed_nb, sizeof(call->nb));
    call->strided = true;
    call->nb[0] = ggml_type_size(a->type);
    const size_t reach = op_region_size(a->type, call->ne, call->nb);
    const size_t packed = op_region_size(a->type, call->ne, packed_nb);
    const size_t size = MIN(reach, packed);
    if (reach == SIZE_MAX) {
        return op_fail(call, "the strides %zu, %zu, %zu overflow", call->nb[1], call->nb[2],
                       call->nb[3]);
    }
    if (__builtin_add_overflow(call->offset, a->view_offs, &end) ||
        __builtin_add_overflow(end, size, &end) || (size > 0 && end > room)) {
        return op_fail(call, "%zu bytes at offset %zu of '%s' reach beyond its %zu bytes", size,
                       call->offset, a->name, room);
    }
    memcpy(call->params, &call->offset, sizeof(call->offset));
    return true;
}

// Stride of the next dimension; SIZE_MAX, which the shape rule refuses, where it overflows.
static size_t times(size_t stride, int64_t count) {
    size_t product;
    return __builtin_mul_overflow(stride, (size_t)count, &product) ? SIZE_MAX : product;
}

// All four forms are one operation; the byte offset is its parameter.
static struct ggml_tensor *build_view(struct op_call *call) {
    call->alias = call->src[0];
    call->window = true;
    return op_build(call);
}

// Offsets and strides are in bytes in each form.
struct ggml_tensor *ggml_view_1d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0,
                                 size_t offset) {
    return build_view(
        &(struct op_call){OP(ctx, VIEW), .src = {a}, .ne = {ne0, 1, 1, 1}, .offset = offset});
}

struct ggml_tensor *ggml_view_2d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0,
                                 int64_t ne1, size_t nb1, size_t offset) {
    const size_t nb2 = times(nb1, ne1);
    return build_view(&(struct op_call){OP(ctx, VIEW), .src = {a}, .ne = {ne0, ne1, 1, 1},
                                        .offset = offset, .strided = true,
                                        .nb = {0, nb1, nb2, nb2}});
}

struct ggml_tensor *ggml_view_3d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0,
                                 int64_t ne1, int64_t ne2, size_t nb1, size_t nb2, size_t offset) {
    return build_view(&(struct op_call){OP(ctx, VIEW), .src = {a}, .ne = {ne0, ne1, ne2, 1},
                                        .offset = offset, .strided = true,
                                        .nb = {0, nb1, nb2, times(nb2, ne2)}});
}

struct ggml_tensor *ggml_view_4d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0,
                                 int64_t ne1, int64_t ne2, int64_t ne3, size_t nb1, size_t nb2,
                                 size_t nb3, size_t offset) {
    return build_view(&(struct op_call){OP(ctx, VIEW), .src = {a}, .ne = {ne0, ne1, ne2, ne3},
                                        .offset = offset, .strided = true,
                                        .nb = {0, nb1, nb2, nb3}});
}

// --- permutation ---------------------------------------------------------------------------------

// Dimension i of the source becomes dimension axes[i].
static void permute(struct op_call *call, const int32_t axes[GGML_MAX_DIMS]) {
    const struct ggml_tensor *a = call->src[0];
    call->strided = true;
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        call->ne[axes[i]] = a->ne[i];
        call->nb[axes[i]] = a->nb[i];
    }
}

// The axes must be a permutation: a dimension that is taken twice would leave another one
// undefined.
bool op_shape_permute(struct op_call *call) {
    unsigned axes = 0;
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        if (!op_need_range(call, "an axis", call->params[i], 0, GGML_MAX_DIMS - 1)) return false;
        axes |= 1u << call->params[i];
    }
    if (axes != 15) return op_fail(call, "the four axes must be distinct");
    permute(call, call->params);
    return true;
}

struct ggml_tensor *ggml_permute(struct ggml_context *ctx, struct ggml_tensor *a, int axis0,
                                 int axis1, int axis2, int axis3) {
    return op_build_inplace(&(struct op_call){OP(ctx, PERMUTE), .src = {a},
                                              .params = {axis0, axis1, axis2, axis3},
                                              .suffix = " (permuted)"});
}

// PERMUTE with axes 1, 0, 2, 3, as a node of its own because backends recognise it.
bool op_shape_transpose(struct op_call *call) {
    permute(call, (const int32_t[]){1, 0, 2, 3});
    return true;
}

struct ggml_tensor *ggml_transpose(struct ggml_context *ctx, struct ggml_tensor *a) {
    return op_build_inplace(
        &(struct op_call){OP(ctx, TRANSPOSE), .src = {a}, .suffix = " (transposed)"});
}
