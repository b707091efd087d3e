// SPDX-License-Identifier: MIT
// Convolutions that are small graphs: patches, a matrix product and reshapes.
#include "base/status.h"
#include "op/op_rules.h"
#include "tensor/error_tensor.h"

// Patches are as large as the kernel times the image, so they are F16 unless the kernel is BF16,
// whose range F16 does not have.
static enum ggml_type patch_type(const struct ggml_tensor *kernel) {
    return kernel->type == GGML_TYPE_BF16 ? GGML_TYPE_F32 : GGML_TYPE_F16;
}

// The error tensor if an operand is missing or in error, else NULL: the compositions read their
// extents.
static struct ggml_tensor *refuse(struct ggml_context *ctx, const char *builder,
                                  const struct ggml_tensor *a, const struct ggml_tensor *b) {
    if (ctx == NULL || a == NULL || b == NULL) {
        return ggml_error_tensor(ctx, "%s: the context or an operand is NULL", builder);
    }
    const struct ggml_tensor *bad = op_is_error(a) ? a : b;
    return op_is_error(bad) ? op_pass_on(ctx, bad) : NULL;
}

// What the steps refused is reported under the name that the caller knows.
static struct ggml_tensor *finish(struct ggml_context *ctx, const char *builder,
                                  struct ggml_tensor *result) {
    if (!op_is_error(result)) return result;
    return ggml_error_tensor(ctx, "%s: %s", builder, ggml_last_error());
}

// Padding of half a kernel. Builders take an int: what is larger is clamped.
static int half(int64_t extent) {
    return extent / 2 <= INT32_MAX ? (int)(extent / 2) : INT32_MAX;
}

// For kernels that are as large as their stride (patch embeddings): windows touch without
// overlapping.
static int as_stride(int64_t extent) {
    return extent <= INT32_MAX ? (int)extent : INT32_MAX;
    // Strides are int in the builders; a larger extent is clamped and fails there as a kernel that
    // does not fit.
}

// --- 1-D -----------------------------------------------------------------------------------------

// Patches as the rows of a matrix, times the kernel as a matrix [IC K, OC]. With several images the
// product has images within channels, and a copy brings channels within images.
static struct ggml_tensor *conv_1d(struct ggml_context *ctx, const char *builder,
                                   struct ggml_tensor *a, struct ggml_tensor *b, int s0, int p0,
                                   int d0) {
    struct ggml_tensor *patches =
        ggml_im2col(ctx, a, b, s0, 0, p0, 0, d0, 0, false, patch_type(a)); // [IC K, OW, N]
    struct ggml_tensor *rows =
        ggml_reshape_2d(ctx, patches, patches->ne[0], op_mul(patches->ne[2], patches->ne[1]));
    struct ggml_tensor *kernel = ggml_reshape_2d(ctx, a, op_mul(a->ne[0], a->ne[1]), a->ne[2]);
    struct ggml_tensor *product = ggml_mul_mat(ctx, rows, kernel); // [OW N, OC]
    const int64_t n = patches->ne[2];
    if (n == 1) {
        return finish(ctx, builder, ggml_reshape_3d(ctx, product, patches->ne[1], a->ne[2], 1));
    }
    struct ggml_tensor *planes = ggml_reshape_3d(ctx, product, patches->ne[1], n, a->ne[2]);
    return finish(ctx, builder, ggml_cont(ctx, ggml_permute(ctx, planes, 0, 2, 1, 3)));
}

struct ggml_tensor *ggml_conv_1d(struct ggml_context *ctx, struct ggml_tensor *a,
                                 struct ggml_tensor *b, int s0, int p0, int d0) {
    struct ggml_tensor *refused = refuse(ctx, __func__, a, b);
    return refused != NULL ? refused : conv_1d(ctx, __func__, a, b, s0, p0, d0);
}

// Half a kernel of padding: with stride 1 and an odd kernel the length stays as it is.
struct ggml_tensor *ggml_conv_1d_ph(struct ggml_context *ctx, struct ggml_tensor *a,
                                    struct ggml_tensor *b, int s, int d) {
    struct ggml_tensor *refused = refuse(ctx, __func__, a, b);
    return refused != NULL ? refused : conv_1d(ctx, __func__, a, b, s, half(a->ne[0]), d);
}

// Depthwise: channels become a dimension of batches, so that each is multiplied with its own kernel
// only.
static struct ggml_tensor *conv_1d_dw(struct ggml_context *ctx, const char *builder,
                                      struct ggml_tensor *a, struct ggml_tensor *b, int s0, int p0,
                                      int d0) {
    struct ggml_tensor *rows = ggml_reshape_4d(ctx, b, b->ne[0], 1, b->ne[1], b->ne[2]);
    struct ggml_tensor *patches =
        ggml_im2col(ctx, a, rows, s0, 0, p0, 0, d0, 0, false, patch_type(a)); // [K, OW, C]
    struct ggml_tensor *product = ggml_mul_mat(ctx, patches, a);
    return finish(ctx, builder, ggml_reshape_3d(ctx, product, product->ne[0], product->ne[2], 1));
}

struct ggml_tensor *ggml_conv_1d_dw(struct ggml_context *ctx, struct ggml_tensor *a,
                                    struct ggml_tensor *b, int s0, int p0, int d0) {
    struct ggml_tensor *refused = refuse(ctx, __func__, a, b);
    return refused != NULL ? refused : conv_1d_dw(ctx, __func__, a, b, s0, p0, d0);
}

struct ggml_tensor *ggml_conv_1d_dw_ph(struct ggml_context *ctx, struct ggml_tensor *a,
                                       struct ggml_tensor *b, int s0, int d0) {
    struct ggml_tensor *refused = refuse(ctx, __func__, a, b);
    return refused != NULL ? refused : conv_1d_dw(ctx, __func__, a, b, s0, half(a->ne[0]), d0);
}

// --- 2-D -----------------------------------------------------------------------------------------

// As in one dimension; the product [OW OH N, OC] is made [OW, OH, OC, N] by a permutation and a
// copy.
static struct ggml_tensor *conv_2d(struct ggml_context *ctx, const char *builder,
                                   struct ggml_tensor *a, struct ggml_tensor *b, int s0, int s1,
                                   int p0, int p1, int d0, int d1) {
    struct ggml_tensor *patches = ggml_im2col(ctx, a, b, s0, s1, p0, p1, d0, d1, true,
                                              patch_type(a)); // [IC KH KW, OW, OH, N]
    const int64_t *ne = patches->ne;
    struct ggml_tensor *rows =
        ggml_reshape_2d(ctx, patches, ne[0], op_mul(ne[3], op_mul(ne[2], ne[1])));
    struct ggml_tensor *kernel =
        ggml_reshape_2d(ctx, a, op_mul(a->ne[0], op_mul(a->ne[1], a->ne[2])), a->ne[3]);
    struct ggml_tensor *product = ggml_mul_mat(ctx, rows, kernel);
    struct ggml_tensor *planes = ggml_reshape_4d(ctx, product, ne[1], ne[2], ne[3], a->ne[3]);
    return finish(ctx, builder, ggml_cont(ctx, ggml_permute(ctx, planes, 0, 1, 3, 2)));
}

struct ggml_tensor *ggml_conv_2d(struct ggml_context *ctx, struct ggml_tensor *a,
                                 struct ggml_tensor *b, int s0, int s1, int p0, int p1, int d0,
                                 int d1) {
    struct ggml_tensor *refused = refuse(ctx, __func__, a, b);
    return refused != NULL ? refused : conv_2d(ctx, __func__, a, b, s0, s1, p0, p1, d0, d1);
}

// Stride = kernel, no padding: each pixel is in exactly one patch.
struct ggml_tensor *ggml_conv_2d_sk_p0(struct ggml_context *ctx, struct ggml_tensor *a,
                                       struct ggml_tensor *b) {
    struct ggml_tensor *refused = refuse(ctx, __func__, a, b);
    if (refused != NULL) return refused;
    return conv_2d(ctx, __func__, a, b, as_stride(a->ne[0]), as_stride(a->ne[1]), 0, 0, 1, 1);
}

// Stride 1, half a kernel of padding: an odd kernel keeps the extents of the image.
struct ggml_tensor *ggml_conv_2d_s1_ph(struct ggml_context *ctx, struct ggml_tensor *a,
                                       struct ggml_tensor *b) {
    struct ggml_tensor *refused = refuse(ctx, __func__, a, b);
    if (refused != NULL) return refused;
    return conv_2d(ctx, __func__, a, b, 1, 1, half(a->ne[0]), half(a->ne[1]), 1, 1);
}

// Depthwise: planes become batches, each of which is multiplied with its own kernel only. Patches
// are F16 as in ggml.
struct ggml_tensor *ggml_conv_2d_dw(struct ggml_context *ctx, struct ggml_tensor *a,
                                    struct ggml_tensor *b, int s0, int s1, int p0, int p1, int d0,
                                    int d1) {
    struct ggml_tensor *refused = refuse(ctx, __func__, a, b);
    if (refused != NULL) return refused;
    struct ggml_tensor *planes =
        ggml_reshape_4d(ctx, a, a->ne[0], a->ne[1], 1, op_mul(a->ne[2], a->ne[3]));
    struct ggml_tensor *image =
        ggml_reshape_4d(ctx, b, b->ne[0], b->ne[1], 1, op_mul(b->ne[2], b->ne[3]));
    struct ggml_tensor *patches =
        ggml_im2col(ctx, planes, image, s0, s1, p0, p1, d0, d1, true, GGML_TYPE_F16);
    const int64_t *ne = patches->ne; // [KH KW, OW, OH, C N]
    struct ggml_tensor *rows =
        ggml_reshape_4d(ctx, patches, ne[0], op_mul(ne[2], ne[1]), b->ne[2], b->ne[3]);
    struct ggml_tensor *kernel = ggml_reshape_4d(ctx, planes, op_mul(planes->ne[0], planes->ne[1]),
                                                 planes->ne[2], planes->ne[3], 1);
    struct ggml_tensor *product = ggml_mul_mat(ctx, kernel, rows);
    return finish(ctx, __func__, ggml_reshape_4d(ctx, product, ne[1], ne[2], b->ne[2], b->ne[3]));
}

// --- 3-D -----------------------------------------------------------------------------------------

// Patches [KW KH KD IC, OW OH OD N] times the kernel as a matrix, then OD and the batch apart
// again, as ne3 of the result is OC N.
struct ggml_tensor *ggml_conv_3d(struct ggml_context *ctx, struct ggml_tensor *a,
                                 struct ggml_tensor *b, int64_t IC, int s0, int s1, int s2, int p0,
                                 int p1, int p2, int d0, int d1, int d2) {
    struct ggml_tensor *refused = refuse(ctx, __func__, a, b);
    if (refused != NULL) return refused;
    struct ggml_tensor *patches = ggml_im2col_3d(ctx, a, b, IC, s0, s1, s2, p0, p1, p2, d0, d1, d2,
                                                 patch_type(a)); // [KW KH KD IC, OW, OH, OD N]
    if (op_is_error(patches)) return finish(ctx, __func__, patches);
    const int64_t *ne = patches->ne;
    // ggml_im2col_3d() has refused an IC below 1. Channels and images share ne3, as there are but
    // four dimensions.
    const int64_t out_channels = a->ne[3] / IC;
    const int64_t batch = b->ne[3] / IC;
    struct ggml_tensor *rows =
        ggml_reshape_2d(ctx, patches, ne[0], op_mul(ne[3], op_mul(ne[2], ne[1])));
    struct ggml_tensor *kernel = ggml_reshape_2d(
        ctx, a, op_mul(op_mul(a->ne[0], a->ne[1]), op_mul(a->ne[2], IC)), out_channels);
    struct ggml_tensor *product = ggml_mul_mat(ctx, rows, kernel);
    const int64_t depth = batch > 0 ? ne[3] / batch : 0;
    struct ggml_tensor *planes =
        ggml_reshape_4d(ctx, product, op_mul(ne[1], ne[2]), depth, batch, out_channels);
    planes = ggml_cont(ctx, ggml_permute(ctx, planes, 0, 1, 3, 2));
    return finish(ctx, __func__,
                  ggml_reshape_4d(ctx, planes, ne[1], ne[2], depth, op_mul(out_channels, batch)));
}
