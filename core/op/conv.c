// SPDX-License-Identifier: MIT
// Convolutions: patches, direct and transposed ones, and the graphs made of them.
#include "op/op_rules.h"

// Result extent of a window of `kernel` elements. The division truncates towards 0 as in ggml, so
// that a kernel a little larger than the image has a result too.
static int64_t output_extent(int64_t in, int64_t kernel, int stride, int pad, int dilation) {
    const int64_t reach = op_add(op_mul(dilation, kernel - 1), 1);
    int64_t room;
    if (reach == INT64_MAX || __builtin_sub_overflow(op_add(in, 2 * (int64_t)pad), reach, &room))
        return -1;
    return op_add(room / stride, 1);
}

// The window of an operation along `n` dimensions: strides at least 1. Any padding and dilation
// will do, since what lies outside the image is 0.
static bool check_window(struct op_call *call, int n, int s) {
    for (int i = 0; i < n; ++i) {
        if (!op_need_range(call, "a stride", call->params[s + i], 1, INT32_MAX)) return false;
    }
    return true;
}

// Negative extents come from a kernel that does not fit into the padded image. `least` is 1 where
// at least one position is needed, or 0.
static bool check_outputs(struct op_call *call, const int64_t *out, int n, int64_t least) {
    for (int i = 0; i < n; ++i) {
        if (out[i] >= least) continue;
        return op_fail(call, "along dimension %d the kernel (src0) is larger than the padded image",
                       i);
    }
    return true;
}

// --- patches -------------------------------------------------------------------------------------

// Shape of the patches of an image under a kernel with parameters in the order of IM2COL.
static bool patches_shape(struct op_call *call, const int64_t kernel[4], const int64_t image[4],
                          int64_t out_ne[4]) {
    const int32_t *p = call->params;
    const bool is_2d = p[6] != 0;
    out_ne[1] = out_ne[2] = out_ne[3] = 0;
    out_ne[0] = op_mul(is_2d ? op_mul(kernel[2], kernel[1]) : kernel[1], kernel[0]);
    if (!check_window(call, is_2d ? 2 : 1, 0)) return false;
    if (is_2d ? kernel[2] != image[2] : (kernel[1] != image[1] || image[3] != 1)) {
        return op_fail(
            call,
            "the kernel [%lld, %lld, %lld] and the image [%lld, %lld, %lld, %lld] do not "
            "fit: channels must agree%s",
            (long long)kernel[0], (long long)kernel[1], (long long)kernel[2], (long long)image[0],
            (long long)image[1], (long long)image[2], (long long)image[3],
            is_2d ? "" : " and ne3 be 1");
    }
    out_ne[1] = output_extent(image[0], kernel[0], p[0], p[2], p[4]);
    out_ne[2] = is_2d ? output_extent(image[1], kernel[1], p[1], p[3], p[5]) : image[2];
    out_ne[3] = is_2d ? image[3] : 1;
    return check_outputs(call, out_ne + 1, is_2d ? 2 : 1, 1);
}

// Patches of src1 under the kernel src0, as rows of a matrix: multiplied by the kernel they are the
// convolution. Kernel [KW, KH, IC, OC], image [W, H, IC, N] give [IC KH KW, OW, OH, N]; in one
// dimension [K, IC, OC] and [L, IC, N] give [IC K, OW, N].
bool op_shape_im2col(struct op_call *call) {
    return patches_shape(call, call->src[0]->ne, call->src[1]->ne, call->ne);
}

// dst_type is the patches' type. Parameters: s0, s1, p0, p1, d0, d1, is_2D.
struct ggml_tensor *ggml_im2col(struct ggml_context *ctx, struct ggml_tensor *a,
                                struct ggml_tensor *b, int s0, int s1, int p0, int p1, int d0,
                                int d1, bool is_2D, enum ggml_type dst_type) {
    return op_build(&(struct op_call){OP(ctx, IM2COL), .src = {a, b}, .typed = true,
                                      .type = dst_type, .params = {s0, s1, p0, p1, d0, d1, is_2D}});
}

// The caller gives the extents of the image, since several images have patches of one shape. They
// are checked before they are multiplied.
bool op_shape_im2col_back(struct op_call *call) {
    int64_t patches[4];
    for (int i = 0; i < GGML_MAX_DIMS; ++i)
        if (!op_need_range(call, "an extent of the result", call->ne[i], 0, INT64_MAX))
            return false;
    return patches_shape(call, call->src[1]->ne, call->ne, patches) &&
           op_need_shape(call, 0, patches[0], patches[1], patches[2], patches[3]);
}

// Inverse of the gather: each pixel is the sum of the patch elements that were copied from it. The
// image's gradient under a convolution.
struct ggml_tensor *ggml_im2col_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                     struct ggml_tensor *b, int64_t *ne, int s0, int s1, int p0,
                                     int p1, int d0, int d1, bool is_2D) {
    struct op_call call = {OP(ctx, IM2COL_BACK), .src = {a, b},
                           .params = {s0, s1, p0, p1, d0, d1, is_2D}};
    if (ne == NULL) {
        op_fail(&call, "the extents of the result are NULL");
        return call.error;
    }
    memcpy(call.ne, ne, sizeof(call.ne));
    return op_build(&call);
}

// ne3 of the image is channels times images: patches are [KW KH KD IC, OW, OH, OD N].
bool op_shape_im2col_3d(struct op_call *call) {
    const int64_t *k = call->src[0]->ne;
    const int64_t *image = call->src[1]->ne;
    const int32_t *p = call->params;
    const int64_t channels = p[9];
    int64_t out[3];
    if (!check_window(call, 3, 0)) return false;
    if (!op_need_range(call, "IC", channels, 1, INT32_MAX)) return false;
    for (int i = 0; i < 3; ++i) {
        out[i] = output_extent(image[i], k[i], p[i], p[3 + i], p[6 + i]);
    }
    return check_outputs(call, out, 3, 0) &&
           op_set_ne(call, op_mul(op_mul(k[0], k[1]), op_mul(k[2], channels)), out[0], out[1],
                     op_mul(out[2], image[3] / channels));
}

// IC travels as a parameter because ne3 of image and kernel holds two factors. An IC that doesn't
// fit into 32 bits becomes 0, which the shape rule refuses.
struct ggml_tensor *ggml_im2col_3d(struct ggml_context *ctx, struct ggml_tensor *a,
                                   struct ggml_tensor *b, int64_t IC, int s0, int s1, int s2,
                                   int p0, int p1, int p2, int d0, int d1, int d2,
                                   enum ggml_type dst_type) {
    const int32_t channels = IC > 0 && IC <= INT32_MAX ? (int32_t)IC : 0;
    return op_build(&(struct op_call){OP(ctx, IM2COL_3D), .src = {a, b}, .typed = true,
                                      .type = dst_type,
                                      .params = {s0, s1, s2, p0, p1, p2, d0, d1, d2, channels}});
}

// As IM2COL_BACK, also for the reduced types.
bool op_type_col2im_1d(struct op_call *call) {
    call->type = call->src[0]->type;
    return call->type == GGML_TYPE_BF16 || op_need_type2(call, 0, GGML_TYPE_F32, GGML_TYPE_F16);
}

// Columns [K OC, L] overlap by the stride and are added up: (L - 1) s0 + K elements, less the
// padding at both ends.
bool op_shape_col2im_1d(struct op_call *call) {
    const int64_t *a = call->src[0]->ne;
    const int32_t *p = call->params;
    if (!op_need_range(call, "s0", p[0], 1, INT32_MAX)) return false;
    if (!op_need_range(call, "oc", p[1], 1, INT32_MAX)) return false;
    if (!op_need_range(call, "p0", p[2], 0, INT32_MAX)) return false;
    if (!op_need_dims(call, 0, 2) || !op_need_contiguous(call, 0)) return false;
    if (a[0] % p[1] != 0) {
        return op_fail(call, "src0 ne0 = %lld is not a multiple of oc = %d", (long long)a[0], p[1]);
    }
    const int64_t length = op_add(op_mul(a[1] - 1, p[0]), a[0] / p[1]);
    if (length - 2 * (int64_t)p[2] <= 0)
        return op_fail(call, "the padding p0 = %d leaves nothing", p[2]);
    return op_set_ne(call, length - 2 * (int64_t)p[2], p[1], 1, 1);
}

// Result [OL, OC]: the transposed convolution whose columns were computed by a matrix product.
struct ggml_tensor *ggml_col2im_1d(struct ggml_context *ctx, struct ggml_tensor *a, int s0, int oc,
                                   int p0) {
    return op_build(&(struct op_call){OP(ctx, COL2IM_1D), .src = {a}, .params = {s0, oc, p0}});
}

// --- direct --------------------------------------------------------------------------------------

// [OW, OH, channels, N] of a kernel in src0 and an image in src1, with parameters s0, s1, p0, p1,
// d0, d1.
static bool set_conv_2d(struct op_call *call, int64_t channels) {
    const int64_t *k = call->src[0]->ne;
    const int64_t *image = call->src[1]->ne;
    const int32_t *p = call->params;
    if (!check_window(call, 2, 0)) return false;
    const int64_t out[2] = {output_extent(image[0], k[0], p[0], p[2], p[4]),
                            output_extent(image[1], k[1], p[1], p[3], p[5])};
    return check_outputs(call, out, 2, 0) && op_set_ne(call, out[0], out[1], channels, image[3]);
}

// Kernel [KW, KH, IC, OC] and image [W, H, IC, N] without patches in memory.
bool op_shape_conv_2d(struct op_call *call) {
    return op_need_ne(call, 1, 2, call->src[0]->ne[2], "ne2 of src0, the channels") &&
           set_conv_2d(call, call->src[0]->ne[3]);
}

struct ggml_tensor *ggml_conv_2d_direct(struct ggml_context *ctx, struct ggml_tensor *a,
                                        struct ggml_tensor *b, int s0, int s1, int p0, int p1,
                                        int d0, int d1) {
    return op_build(
        &(struct op_call){OP(ctx, CONV_2D), .src = {a, b}, .params = {s0, s1, p0, p1, d0, d1}});
}

// An image whose channels lie together in memory gives a result of the same layout.
bool op_shape_conv_2d_dw(struct op_call *call) {
    const struct ggml_tensor *image = call->src[1];
    if (!op_need_ne(call, 0, 2, 1, "a plane per channel")) return false;
    if (!op_need_ne(call, 0, 3, image->ne[2], "ne2 of src1, the channels")) return false;
    if (!set_conv_2d(call, image->ne[2])) return false;
    if (ggml_is_contiguous_channels(image)) {
        const int64_t size = (int64_t)ggml_type_size(call->type);
        call->strided = true;
        call->nb[0] = (size_t)op_mul(size, call->ne[2]);
        call->nb[1] = (size_t)op_mul(op_mul(size, call->ne[2]), call->ne[0]);
        call->nb[2] = (size_t)size;
        call->nb[3] = (size_t)op_mul((int64_t)call->nb[1], call->ne[1]);
    }
    return true;
}

struct ggml_tensor *ggml_conv_2d_dw_direct(struct ggml_context *ctx, struct ggml_tensor *a,
                                           struct ggml_tensor *b, int stride0, int stride1,
                                           int pad0, int pad1, int dilation0, int dilation1) {
    return op_build(
        &(struct op_call){OP(ctx, CONV_2D_DW), .src = {a, b},
                          .params = {stride0, stride1, pad0, pad1, dilation0, dilation1}});
}

// Kernel [KW, KH, KD, IC OC], image [W, H, D, IC N]: the parameters from 9 on say how ne3 is
// divided.
bool op_shape_conv_3d(struct op_call *call) {
    const int64_t *k = call->src[0]->ne;
    const int64_t *image = call->src[1]->ne;
    const int32_t *p = call->params;
    int64_t out[3];
    if (!check_window(call, 3, 0)) return false;
    for (int i = 9; i < 12; ++i) {
        if (!op_need_range(call, "a count of channels or images", p[i], 1, INT32_MAX)) return false;
    }
    if (!op_need_ne(call, 0, 3, op_mul(p[9], p[11]), "channels in times channels out") ||
        !op_need_ne(call, 1, 3, op_mul(p[9], p[10]), "channels in times batch")) {
        return false;
    }
    for (int i = 0; i < 3; ++i) {
        out[i] = output_extent(image[i], k[i], p[i], p[3 + i], p[6 + i]);
    }
    return check_outputs(call, out, 3, 0) &&
           op_set_ne(call, out[0], out[1], out[2], op_mul(p[11], p[10]));
}

struct ggml_tensor *ggml_conv_3d_direct(struct ggml_context *ctx, struct ggml_tensor *a,
                                        struct ggml_tensor *b, int s0, int s1, int s2, int p0,
                                        int p1, int p2, int d0, int d1, int d2, int n_channels,
                                        int n_batch, int n_channels_out) {
    return op_build(&(struct op_call){
        OP(ctx, CONV_3D), .src = {a, b},
        .params = {s0, s1, s2, p0, p1, p2, d0, d1, d2, n_channels, n_batch, n_channels_out}});
}

// --- transposed ----------------------------------------------------------------------------------

// As in ggml also where there is no image: of nothing but the kernel's width is left.
static int64_t transposed_extent(int64_t in, int64_t kernel, int stride) {
    return op_add(op_mul(in - 1, stride), kernel);
}

// Kernel [K, OC, IC], signal [L, IC]. Padding and dilation are parameters in ggml that have one
// permitted value each.
// Result [(L - 1) s0 + K, OC, N].
bool op_shape_conv_transpose_1d(struct op_call *call) {
    const int64_t *a = call->src[0]->ne;
    const int64_t *b = call->src[1]->ne;
    return op_need_range(call, "s0", call->params[0], 0, INT32_MAX) &&
           op_need_range(call, "p0", call->params[1], 0, 0) &&
           op_need_range(call, "d0", call->params[2], 1, 1) && op_need_dims(call, 0, 3) &&
           op_need_dims(call, 1, 2) && op_need_ne(call, 1, 1, a[2], "ne2 of src0, the channels") &&
           op_set_ne(call, transposed_extent(b[0], a[0], call->params[0]), a[1], b[2], 1);
}

struct ggml_tensor *ggml_conv_transpose_1d(struct ggml_context *ctx, struct ggml_tensor *a,
                                           struct ggml_tensor *b, int s0, int p0, int d0) {
    return op_build(
        &(struct op_call){OP(ctx, CONV_TRANSPOSE_1D), .src = {a, b}, .params = {s0, p0, d0}});
}

// Kernel [KW, KH, OC, IC], image [W, H, IC, N].
bool op_shape_conv_transpose_2d(struct op_call *call) {
    const int64_t *a = call->src[0]->ne;
    const int64_t *b = call->src[1]->ne;
    const int stride = call->params[0];
    return op_need_range(call, "stride", stride, 0, INT32_MAX) &&
           op_need_ne(call, 1, 2, a[3], "ne3 of src0, the channels") &&
           op_set_ne(call, transposed_extent(b[0], a[0], stride),
                     transposed_extent(b[1], a[1], stride), a[2], b[3]);
}

struct ggml_tensor *ggml_conv_transpose_2d_p0(struct ggml_context *ctx, struct ggml_tensor *a,
                                              struct ggml_tensor *b, int stride) {
    return op_build(
        &(struct op_call){OP(ctx, CONV_TRANSPOSE_2D), .src = {a, b}, .params = {stride}});
}
