// SPDX-License-Identifier: MIT
// ggml-op-image.h: builders of convolutions, pooling and image operations. Part of ggml.h, which
// includes it. The rules at the top of ggml-op.h hold here too.
//
// Images are [W, H, C, N], kernels [KW, KH, IC, OC]; in convolutions a is the kernel and b the
// image. s, p, d: stride, padding with zeros, dilation, one per dimension. An output extent is (in
// + 2p - d (k - 1) - 1) / s + 1 and must be positive. Kernels are not flipped.
#ifndef GGML_OP_IMAGE_H
#define GGML_OP_IMAGE_H

#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- convolution ---------------------------------------------------------------------------------

// Patches as columns: [IC KH KW, OW, OH, N] of dst_type, or in one dimension (kernel [K, IC, ..],
// image [W, IC, N]) [IC K, OW, N]. Only the extents of a are used. [stream]
GGML_API struct ggml_tensor *ggml_im2col(struct ggml_context *ctx, struct ggml_tensor *a,
                                         struct ggml_tensor *b, int s0, int s1, int p0, int p1,
                                         int d0, int d1, bool is_2D, enum ggml_type dst_type);

// Its gradient: F32 of extents ne[4], each pixel the sum over the patches that hold it. [stream]
GGML_API struct ggml_tensor *ggml_im2col_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                              struct ggml_tensor *b, int64_t *ne, int s0, int s1,
                                              int p0, int p1, int d0, int d1, bool is_2D);

// [KW KH KD IC, OW, OH, OD N]; kernel [KW, KH, KD, OC IC], image [W, H, D, N IC]. [stream]
GGML_API struct ggml_tensor *ggml_im2col_3d(struct ggml_context *ctx, struct ggml_tensor *a,
                                            struct ggml_tensor *b, int64_t IC, int s0, int s1,
                                            int s2, int p0, int p1, int p2, int d0, int d1, int d2,
                                            enum ggml_type dst_type);

// Overlap-adds columns a [K oc, T] to [(T - 1) s0 + K - 2 p0, oc]; the inverse layout of im2col.
// [stream]
GGML_API struct ggml_tensor *ggml_col2im_1d(struct ggml_context *ctx, struct ggml_tensor *a, int s0,
                                            int oc, int p0);

// [OW, OC, N] of image [W, IC, N]; _ph pads by half the kernel. _dw: one kernel [K, 1, C] per
// channel. [stream]
GGML_API struct ggml_tensor *ggml_conv_1d(struct ggml_context *ctx, struct ggml_tensor *a,
                                          struct ggml_tensor *b, int s0, int p0, int d0);
GGML_API struct ggml_tensor *ggml_conv_1d_ph(struct ggml_context *ctx, struct ggml_tensor *a,
                                             struct ggml_tensor *b, int s, int d);
GGML_API struct ggml_tensor *ggml_conv_1d_dw(struct ggml_context *ctx, struct ggml_tensor *a,
                                             struct ggml_tensor *b, int s0, int p0, int d0);
GGML_API struct ggml_tensor *ggml_conv_1d_dw_ph(struct ggml_context *ctx, struct ggml_tensor *a,
                                                struct ggml_tensor *b, int s0, int d0);

// F32 [(L - 1) s0 + K, OC]: a [K, OC, IC], b [L, IC]; p0 is 0 and d0 is 1. [stream]
GGML_API struct ggml_tensor *ggml_conv_transpose_1d(struct ggml_context *ctx, struct ggml_tensor *a,
                                                    struct ggml_tensor *b, int s0, int p0, int d0);

// [OW, OH, OC, N] by im2col and a matrix product; _sk_p0: stride = kernel, no padding; _s1_ph:
// stride 1, half padding; _dw: kernel [KW, KH, 1, C] per channel. [stream]
GGML_API struct ggml_tensor *ggml_conv_2d(struct ggml_context *ctx, struct ggml_tensor *a,
                                          struct ggml_tensor *b, int s0, int s1, int p0, int p1,
                                          int d0, int d1);
GGML_API struct ggml_tensor *ggml_conv_2d_sk_p0(struct ggml_context *ctx, struct ggml_tensor *a,
                                                struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_conv_2d_s1_ph(struct ggml_context *ctx, struct ggml_tensor *a,
                                                struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_conv_2d_dw(struct ggml_context *ctx, struct ggml_tensor *a,
                                             struct ggml_tensor *b, int s0, int s1, int p0, int p1,
                                             int d0, int d1);

// The same as one operation, of b's type; _dw keeps b's memory order of channels. [stream]
GGML_API struct ggml_tensor *ggml_conv_2d_direct(struct ggml_context *ctx, struct ggml_tensor *a,
                                                 struct ggml_tensor *b, int s0, int s1, int p0,
                                                 int p1, int d0, int d1);
GGML_API struct ggml_tensor *ggml_conv_2d_dw_direct(struct ggml_context *ctx, struct ggml_tensor *a,
                                                    struct ggml_tensor *b, int stride0, int stride1,
                                                    int pad0, int pad1, int dilation0,
                                                    int dilation1);

// F32 [(W - 1) stride + KW, (H - 1) stride + KH, OC, N]: a [KW, KH, OC, IC]. [stream]
GGML_API struct ggml_tensor *ggml_conv_transpose_2d_p0(struct ggml_context *ctx,
                                                       struct ggml_tensor *a, struct ggml_tensor *b,
                                                       int stride);

// [OW, OH, OD, OC N] of a [KW, KH, KD, OC IC] and b [W, H, D, N IC], by im2col / as one operation.
// [stream]
GGML_API struct ggml_tensor *ggml_conv_3d(struct ggml_context *ctx, struct ggml_tensor *a,
                                          struct ggml_tensor *b, int64_t IC, int s0, int s1, int s2,
                                          int p0, int p1, int p2, int d0, int d1, int d2);
GGML_API struct ggml_tensor *ggml_conv_3d_direct(struct ggml_context *ctx, struct ggml_tensor *a,
                                                 struct ggml_tensor *b, int s0, int s1, int s2,
                                                 int p0, int p1, int p2, int d0, int d1, int d2,
                                                 int n_channels, int n_batch, int n_channels_out);

// --- pooling, scaling, padding, windows ----------------------------------------------------------

// F32: maximum or mean over windows of k with stride s and padding p; padding never counts for the
// maximum. The mean divides by the valid elements (1d) or by k0 k1 (2d). [stream]
GGML_API struct ggml_tensor *ggml_pool_1d(struct ggml_context *ctx, struct ggml_tensor *a,
                                          enum ggml_op_pool op, int k0, int s0, int p0);
GGML_API struct ggml_tensor *ggml_pool_2d(struct ggml_context *ctx, struct ggml_tensor *a,
                                          enum ggml_op_pool op, int k0, int k1, int s0, int s1,
                                          float p0, float p1);

// Gradient of pool_2d: F32 of af's extents; a is dy, af the input of the forward pass. [stream]
GGML_API struct ggml_tensor *ggml_pool_2d_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                               struct ggml_tensor *af, enum ggml_op_pool op, int k0,
                                               int k1, int s0, int s1, float p0, float p1);

// F32 a scaled in dimensions 0 and 1 by scale_factor (> 0), or to the given extents. mode: enum
// ggml_scale_mode, for ggml_interpolate() with enum ggml_scale_flag; ANTIALIAS needs BILINEAR.
// Dimensions 2 and 3 take the nearest. [stream]
GGML_API struct ggml_tensor *ggml_upscale(struct ggml_context *ctx, struct ggml_tensor *a,
                                          int scale_factor, enum ggml_scale_mode mode);
GGML_API GGML_DEPRECATED(struct ggml_tensor *ggml_upscale_ext(struct ggml_context *ctx,
                                                              struct ggml_tensor *a, int ne0,
                                                              int ne1, int ne2, int ne3,
                                                              enum ggml_scale_mode mode),
                         "use ggml_interpolate");
GGML_API struct ggml_tensor *ggml_interpolate(struct ggml_context *ctx, struct ggml_tensor *a,
                                              int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3,
                                              uint32_t mode);

// a with p_d more elements at the end of dimension d, or lp_d before and rp_d behind: zeros, or in
// the circular forms a's own from the other end. [stream]
GGML_API struct ggml_tensor *ggml_pad(struct ggml_context *ctx, struct ggml_tensor *a, int p0,
                                      int p1, int p2, int p3);
GGML_API struct ggml_tensor *ggml_pad_circular(struct ggml_context *ctx, struct ggml_tensor *a,
                                               int p0, int p1, int p2, int p3);
GGML_API struct ggml_tensor *ggml_pad_ext(struct ggml_context *ctx, struct ggml_tensor *a, int lp0,
                                          int rp0, int lp1, int rp1, int lp2, int rp2, int lp3,
                                          int rp3);
GGML_API struct ggml_tensor *ggml_pad_ext_circular(struct ggml_context *ctx, struct ggml_tensor *a,
                                                   int lp0, int rp0, int lp1, int rp1, int lp2,
                                                   int rp2, int lp3, int rp3);

// Dimension 0 extended by p0 before and p1 behind, mirrored without repeating the edge; p < ne0.
// [stream]
GGML_API struct ggml_tensor *ggml_pad_reflect_1d(struct ggml_context *ctx, struct ggml_tensor *a,
                                                 int p0, int p1);

// [i_d] = a[(i_d - shift_d) mod ne_d], like a; |shift_d| < ne_d. [stream]
GGML_API struct ggml_tensor *ggml_roll(struct ggml_context *ctx, struct ggml_tensor *a, int shift0,
                                       int shift1, int shift2, int shift3);

// F32 [C, w, w, n]: a [C, W, H] cut into n windows of w x w, zero-padded; and back to [C, w0, h0].
// [stream]
GGML_API struct ggml_tensor *ggml_win_part(struct ggml_context *ctx, struct ggml_tensor *a, int w);
GGML_API struct ggml_tensor *ggml_win_unpart(struct ggml_context *ctx, struct ggml_tensor *a,
                                             int w0, int h0, int w);

// F16 [C, kh, qh]: [:, k, q] = a[:, n - 1 - k + q]; a [C, 2n - 1], qh == kh == n. [stream]
GGML_API struct ggml_tensor *ggml_get_rel_pos(struct ggml_context *ctx, struct ggml_tensor *a,
                                              int qh, int kh);

// a [n n, H W, B] plus ph over rows and pw over columns of each n x n; pw, ph F32 [n, H, W, B].
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
