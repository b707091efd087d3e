// SPDX-License-Identifier: MIT
// ggml-op-image.h: builders of convolutions, pooling and image operations. Part of ggml.h, which
// includes it. The rules at the top of ggml-op.h hold here too.
//
// Images are [W, H, C, N] (width, height, channels, images), kernels [KW, KH, IC, OC]; in
// convolutions a is the kernel and b the image. s, p, d: stride, padding with zeros, dilation, one
// per dimension, in elements; strides are at least 1. Along each dimension of a convolution
//
//   out = (in + 2 p - d (k - 1) - 1) / s + 1
//
// with a division that truncates towards 0, as in ggml: a kernel a little larger than the image has
// a result too. Patches need out >= 1 in one and two dimensions, all else out >= 0.
//
// Kernels are not flipped, which makes these cross-correlations, as in other libraries for
// networks.
//
// Two ways lead to a convolution. ggml_conv_*() builds a small graph of patches (im2col) and a
// matrix product, which every device computes and which needs memory for the patches: kernel size
// times the output. ggml_conv_*_direct() is one operation without that memory. ggml has both, for
// the same reason.
#ifndef GGML_OP_IMAGE_H
#define GGML_OP_IMAGE_H

#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- convolution ---------------------------------------------------------------------------------

// As in ggml the patches of a composed convolution are F16, or F32 for a BF16 kernel: an F32
// kernel's image is rounded to F16. The direct forms compute in F32.

// Patches as columns, for a matrix product with the kernel: of type dst_type, and only a's extents
// are used.
//   2D: [IC KH KW, OW, OH, N]  element (ic KH + kh) KW + kw of column (ow, oh) is
//       b[ow s0 + kw d0 - p0, oh s1 + kh d1 - p1, ic, n], or 0 outside of the image
//   1D: [IC K, OW, N]          of a kernel [K, IC, ..] and an image [W, IC, N]; s1, p1, d1 do not
//                              count
// Channels of kernel and image agree. Devices: b and the result in F. [stream]
GGML_API struct ggml_tensor *ggml_im2col(struct ggml_context *ctx, struct ggml_tensor *a,
                                         struct ggml_tensor *b, int s0, int s1, int p0, int p1,
                                         int d0, int d1, bool is_2D, enum ggml_type dst_type);

// Gradient of im2col: F32 of extents ne[4] (not NULL), each pixel the sum over all patches that
// hold it. a is dy, with the extents that the patches of such an image have; b is the kernel.
// [stream]
GGML_API struct ggml_tensor *ggml_im2col_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                              struct ggml_tensor *b, int64_t *ne, int s0, int s1,
                                              int p0, int p1, int d0, int d1, bool is_2D);

// Patches of volumes: [KW KH KD IC, OW, OH, OD N] of dst_type. The kernel is [KW, KH, KD, OC IC],
// the image [W, H, D, N IC]: four dimensions have to do for five, so channels and images share the
// last, the channels being the faster part. [stream]
GGML_API struct ggml_tensor *ggml_im2col_3d(struct ggml_context *ctx, struct ggml_tensor *a,
                                            struct ggml_tensor *b, int64_t IC, int s0, int s1,
                                            int s2, int p0, int p1, int p2, int d0, int d1, int d2,
                                            enum ggml_type dst_type);

// Adds overlapping columns up, the last step of a transposed convolution: a is a contiguous matrix
// [K oc, T], of F; the result has its type and is [(T - 1) s0 + K - 2 p0, oc],
//   result[t, o] = sum of a[o K + k, i] over all i, k with i s0 + k = t + p0
// [stream]
GGML_API struct ggml_tensor *ggml_col2im_1d(struct ggml_context *ctx, struct ggml_tensor *a, int s0,
                                            int oc, int p0);

// Convolution in one dimension: [OW, OC, N] of kernel [K, IC, OC] and image [W, IC, N]. [stream]
GGML_API struct ggml_tensor *ggml_conv_1d(struct ggml_context *ctx, struct ggml_tensor *a,
                                          struct ggml_tensor *b, int s0, int p0, int d0);

// The same with padding of half the kernel, K / 2: with s 1, d 1 and an odd K the width stays.
// [stream]
GGML_API struct ggml_tensor *ggml_conv_1d_ph(struct ggml_context *ctx, struct ggml_tensor *a,
                                             struct ggml_tensor *b, int s, int d);

// One kernel per channel: [OW, C] of kernel [K, 1, C] and image [W, C]; one image only. [stream]
GGML_API struct ggml_tensor *ggml_conv_1d_dw(struct ggml_context *ctx, struct ggml_tensor *a,
                                             struct ggml_tensor *b, int s0, int p0, int d0);

// The same with padding of half the kernel. [stream]
GGML_API struct ggml_tensor *ggml_conv_1d_dw_ph(struct ggml_context *ctx, struct ggml_tensor *a,
                                                struct ggml_tensor *b, int s0, int d0);

// The reverse in shape: F32 [(L - 1) s0 + K, OC] of kernel a [K, OC, IC] and image b [L, IC],
//   result[l s0 + k, oc] += sum over ic of a[k, oc, ic] b[l, ic]
// p0 is 0 and d0 is 1, else an error tensor; s0 >= 0. Devices: F. [stream]
GGML_API struct ggml_tensor *ggml_conv_transpose_1d(struct ggml_context *ctx, struct ggml_tensor *a,
                                                    struct ggml_tensor *b, int s0, int p0, int d0);

// Convolution of images by patches: [OW, OH, OC, N]. [stream]
GGML_API struct ggml_tensor *ggml_conv_2d(struct ggml_context *ctx, struct ggml_tensor *a,
                                          struct ggml_tensor *b, int s0, int s1, int p0, int p1,
                                          int d0, int d1);

// The same with stride = kernel and no padding, which cuts an image into patches that don't
// overlap: the first layer of vision transformers. [stream]
GGML_API struct ggml_tensor *ggml_conv_2d_sk_p0(struct ggml_context *ctx, struct ggml_tensor *a,
                                                struct ggml_tensor *b);

// The same with stride 1 and padding of half the kernel: odd kernels keep the extents. [stream]
GGML_API struct ggml_tensor *ggml_conv_2d_s1_ph(struct ggml_context *ctx, struct ggml_tensor *a,
                                                struct ggml_tensor *b);

// One kernel [KW, KH, 1, C] per channel: [OW, OH, C, N]. Its patches are F16 whatever the kernel
// is. [stream]
GGML_API struct ggml_tensor *ggml_conv_2d_dw(struct ggml_context *ctx, struct ggml_tensor *a,
                                             struct ggml_tensor *b, int s0, int s1, int p0, int p1,
                                             int d0, int d1);

// ggml_conv_2d() as one operation, with a result of b's type. Devices: F. [stream]
GGML_API struct ggml_tensor *ggml_conv_2d_direct(struct ggml_context *ctx, struct ggml_tensor *a,
                                                 struct ggml_tensor *b, int s0, int s1, int p0,
                                                 int p1, int d0, int d1);

// ggml_conv_2d_dw() as one operation. If b's channels lie side by side in memory
// (ggml_is_contiguous_channels()), so do the result's: its strides are then nb[2] < nb[0] < nb[1].
// Give the kernel the same order. Devices: F32 image, kernel in F. [stream]
GGML_API struct ggml_tensor *ggml_conv_2d_dw_direct(struct ggml_context *ctx, struct ggml_tensor *a,
                                                    struct ggml_tensor *b, int stride0, int stride1,
                                                    int pad0, int pad1, int dilation0,
                                                    int dilation1);

// F32 [(W - 1) stride + KW, (H - 1) stride + KH, OC, N] of kernel a [KW, KH, OC, IC] and image b
// [W, H, IC, N], without padding. stride >= 0. Devices: F.
// [stream]
GGML_API struct ggml_tensor *ggml_conv_transpose_2d_p0(struct ggml_context *ctx,
                                                       struct ggml_tensor *a, struct ggml_tensor *b,
                                                       int stride);

// Convolution of volumes by patches: [OW, OH, OD, OC N] of kernel [KW, KH, KD, OC IC] and image [W,
// H, D, N IC]. IC is at least 1. [stream]
GGML_API struct ggml_tensor *ggml_conv_3d(struct ggml_context *ctx, struct ggml_tensor *a,
                                          struct ggml_tensor *b, int64_t IC, int s0, int s1, int s2,
                                          int p0, int p1, int p2, int d0, int d1, int d2);

// The same as one operation, F32, which is told what the last dimensions consist of: a.ne3 =
// n_channels n_channels_out, b.ne3 = n_channels n_batch. [stream]
GGML_API struct ggml_tensor *ggml_conv_3d_direct(struct ggml_context *ctx, struct ggml_tensor *a,
                                                 struct ggml_tensor *b, int s0, int s1, int s2,
                                                 int p0, int p1, int p2, int d0, int d1, int d2,
                                                 int n_channels, int n_batch, int n_channels_out);

// --- pooling, scaling, padding, windows ----------------------------------------------------------

// A block of an autoencoder: twice the size, then a convolution that keeps it, with zeros around:
//
//     x = ggml_upscale(ctx, x, 2, GGML_SCALE_MODE_NEAREST); // [2 W, 2 H, C, N]
//     x = ggml_conv_2d_direct(ctx, kernel, x, 1, 1, 1, 1, 1, 1); // 3 x 3: padding 1
//     x = ggml_add(ctx, x, ggml_reshape_4d(ctx, bias, 1, 1, channels, 1)); // bias repeats

// Pooling of dimension 0: F32, of windows of k0 with stride s0 and padding p0 on either side, so
// that ne0 becomes (ne0 + 2 p0 - k0) / s0 + 1. MAX: the largest, padding never counting, the
// smallest float where there is nothing. AVG: the mean of the elements that are there. k0, s0 >= 1,
// p0 >= 0. [stream]
GGML_API struct ggml_tensor *ggml_pool_1d(struct ggml_context *ctx, struct ggml_tensor *a,
                                          enum ggml_op_pool op, int k0, int s0, int p0);

// Pooling of dimensions 0 and 1: F32. Paddings may be fractions, which counts for the extents of
// the result only; windows start at whole numbers. AVG divides by k0 k1 also at the border, unlike
// ggml_pool_1d(), as in ggml. Devices: F. [stream]
GGML_API struct ggml_tensor *ggml_pool_2d(struct ggml_context *ctx, struct ggml_tensor *a,
                                          enum ggml_op_pool op, int k0, int k1, int s0, int s1,
                                          float p0, float p1);

// Gradient of pool_2d: F32 of af's extents; a is dy, af the input of the forward pass. MAX sends it
// to the first maximum of each window (rows first), AVG divides it by k0 k1. [stream]
GGML_API struct ggml_tensor *ggml_pool_2d_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                               struct ggml_tensor *af, enum ggml_op_pool op, int k0,
                                               int k1, int s0, int s1, float p0, float p1);

// a scaled in dimensions 0 and 1 by scale_factor (at least 2), of its type. mode: enum
// ggml_scale_mode. [stream]
GGML_API struct ggml_tensor *ggml_upscale(struct ggml_context *ctx, struct ggml_tensor *a,
                                          int scale_factor, enum ggml_scale_mode mode);

// To the given extents. [stream]
GGML_API GGML_DEPRECATED(struct ggml_tensor *ggml_upscale_ext(struct ggml_context *ctx,
                                                              struct ggml_tensor *a, int ne0,
                                                              int ne1, int ne2, int ne3,
                                                              enum ggml_scale_mode mode),
                         "use ggml_interpolate");

// a scaled, up or down, to the given extents, of its type. mode is an enum ggml_scale_mode, with
// enum ggml_scale_flag or-ed to it; ANTIALIAS needs BILINEAR. Dimensions 2 and 3 always take the
// nearest. With f = new / old extent, the sample of element i is taken at
//
//   NEAREST             i / f, rounded down
//   BILINEAR, BICUBIC   (i + 0.5) / f - 0.5 between 2 or 4 neighbours, clamped at the border;
//                       BICUBIC with Keys' kernel, a = -0.75
//   ALIGN_CORNERS       f = (new - 1) / (old - 1) and i / f: first and last elements stay
//   ANTIALIAS           a triangle as wide as an element of the smaller grid, for scaling down
// Devices: F. [stream]
GGML_API struct ggml_tensor *ggml_interpolate(struct ggml_context *ctx, struct ggml_tensor *a,
                                              int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3,
                                              uint32_t mode);

// a with p_d more zeros at the end of dimension d. A negative number cuts off. Of a's type;
// devices: any plain type. [stream]
GGML_API struct ggml_tensor *ggml_pad(struct ggml_context *ctx, struct ggml_tensor *a, int p0,
                                      int p1, int p2, int p3);

// The same, filled with a's own elements from the other end, as on a torus; p_d is at most ne_d.
// [stream]
GGML_API struct ggml_tensor *ggml_pad_circular(struct ggml_context *ctx, struct ggml_tensor *a,
                                               int p0, int p1, int p2, int p3);

// lp_d zeros before and rp_d behind each dimension. [stream]
GGML_API struct ggml_tensor *ggml_pad_ext(struct ggml_context *ctx, struct ggml_tensor *a, int lp0,
                                          int rp0, int lp1, int rp1, int lp2, int rp2, int lp3,
                                          int rp3);

// The same, filled from the other end. [stream]
GGML_API struct ggml_tensor *ggml_pad_ext_circular(struct ggml_context *ctx, struct ggml_tensor *a,
                                                   int lp0, int rp0, int lp1, int rp1, int lp2,
                                                   int rp2, int lp3, int rp3);

// Dimension 0 extended by p0 before and p1 behind, mirrored at the first and last element, which
// are not repeated: [c b a b c d c b] of [a b c d] and 2, 2. 0 <= p < ne0; a is contiguous.
// Devices: F32. [stream]
GGML_API struct ggml_tensor *ggml_pad_reflect_1d(struct ggml_context *ctx, struct ggml_tensor *a,
                                                 int p0, int p1);

// Rotates along each dimension: result[i_d] = a[(i_d - shift_d) mod ne_d], like a. |shift_d| <
// ne_d, the rows of a are packed. Devices: any plain type. [stream]
GGML_API struct ggml_tensor *ggml_roll(struct ggml_context *ctx, struct ggml_tensor *a, int shift0,
                                       int shift1, int shift2, int shift3);

// Cuts a, F32 [C, W, H], into windows of w x w: F32 [C, w, w, n], n = ceil(W / w) ceil(H / w), row
// by row, zeros outside of the image. For attention within windows. [stream]
GGML_API struct ggml_tensor *ggml_win_part(struct ggml_context *ctx, struct ggml_tensor *a, int w);

// Puts them together again: F32 [C, w0, h0]; the padding goes. a has at least the windows that w0 x
// h0 need. [stream]
GGML_API struct ggml_tensor *ggml_win_unpart(struct ggml_context *ctx, struct ggml_tensor *a,
                                             int w0, int h0, int w);

// Looks distances up: F16 [C, kh, qh], result[:, k, q] = a[:, n - 1 - k + q]; a is [C, 2 n - 1] of
// F16 or BF16, whose bits are copied as they are, qh == kh == n. [stream]
GGML_API struct ggml_tensor *ggml_get_rel_pos(struct ggml_context *ctx, struct ggml_tensor *a,
                                              int qh, int kh);

// Adds relative positions to the scores of windowed attention, like a, which is [n n, H W, B]; pw
// and ph are F32 [n, H, W, B], all contiguous. For each row r, and 0 <= i, j < n:
//   result[i n + j, r] = a[i n + j, r] + ph[i, r] + pw[j, r]
// [stream]
GGML_API struct ggml_tensor *ggml_add_rel_pos(struct ggml_context *ctx, struct ggml_tensor *a,
                                              struct ggml_tensor *pw, struct ggml_tensor *ph);
GGML_API struct ggml_tensor *ggml_add_rel_pos_inplace(struct ggml_context *ctx,
                                                      struct ggml_tensor *a, struct ggml_tensor *pw,
                                                      struct ggml_tensor *ph);

#ifdef __cplusplus
}
#endif

#endif
