// SPDX-License-Identifier: MIT
// ggml-op.h: builders of graph operations. Part of ggml.h, which includes it.
//
// Rules for all builders. They compute nothing: they answer a new tensor of `ctx` that remembers
// the operation, its operands and its parameters, and belongs to the context. They never answer
// NULL: impossible operands (NULL, an error tensor, or against the conditions given below) and a
// full arena give the context's error tensor and a message, see ggml.h. Which types and layouts a
// device can compute is its own answer: ggml_backend_dev_supports_op().
//
// "like a" is a new packed tensor of a's type and extents. An _inplace form answers a view of a
// instead: computing it overwrites a. a[i] means the element at index i; rows run along dimension
// 0. "b repeats" means that every extent of a is a multiple of b's and b is indexed modulo its
// extents.
#ifndef GGML_OP_H
#define GGML_OP_H

#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- copies and casts ----------------------------------------------------------------------------

// Packed copy of a. [stream]
GGML_API struct ggml_tensor *ggml_dup(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_dup_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// Copies a into b's memory, element by element in logical order, converting; answers a view of b.
// As many elements in a as in b. [stream]
GGML_API struct ggml_tensor *ggml_cpy(struct ggml_context *ctx, struct ggml_tensor *a,
                                      struct ggml_tensor *b);

// a converted to `type`, with a's extents. [stream]
GGML_API struct ggml_tensor *ggml_cast(struct ggml_context *ctx, struct ggml_tensor *a,
                                       enum ggml_type type);

// Packed copy of a, with the same or with new extents of as many elements. [stream]
GGML_API struct ggml_tensor *ggml_cont(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_cont_1d(struct ggml_context *ctx, struct ggml_tensor *a,
                                          int64_t ne0);
GGML_API struct ggml_tensor *ggml_cont_2d(struct ggml_context *ctx, struct ggml_tensor *a,
                                          int64_t ne0, int64_t ne1);
GGML_API struct ggml_tensor *ggml_cont_3d(struct ggml_context *ctx, struct ggml_tensor *a,
                                          int64_t ne0, int64_t ne1, int64_t ne2);
GGML_API struct ggml_tensor *ggml_cont_4d(struct ggml_context *ctx, struct ggml_tensor *a,
                                          int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3);

// --- element-wise, two operands ------------------------------------------------------------------

// a + b, a - b, a * b, a / b, like a; b repeats. [stream]
GGML_API struct ggml_tensor *ggml_add(struct ggml_context *ctx, struct ggml_tensor *a,
                                      struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_add_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                              struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_sub(struct ggml_context *ctx, struct ggml_tensor *a,
                                      struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_sub_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                              struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_mul(struct ggml_context *ctx, struct ggml_tensor *a,
                                      struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_mul_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                              struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_div(struct ggml_context *ctx, struct ggml_tensor *a,
                                      struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_div_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                              struct ggml_tensor *b);

// a + b in `type`; a quantised, F16 or BF16; b repeats over rows only (ne[0] equal). [stream]
GGML_API struct ggml_tensor *ggml_add_cast(struct ggml_context *ctx, struct ggml_tensor *a,
                                           struct ggml_tensor *b, enum ggml_type type);

// [:, u, t] = a[:, u, t] + b[:, ids[u, t]]; a [n, U, T], b [n, E], ids I32 [U, T], all F32. Like a.
// [stream]
GGML_API struct ggml_tensor *ggml_add_id(struct ggml_context *ctx, struct ggml_tensor *a,
                                         struct ggml_tensor *b, struct ggml_tensor *ids);

// a + b[0], like a; b is a scalar. [stream]
GGML_API GGML_DEPRECATED(struct ggml_tensor *ggml_add1(struct ggml_context *ctx,
                                                       struct ggml_tensor *a,
                                                       struct ggml_tensor *b),
                         "use ggml_add");
GGML_API GGML_DEPRECATED(struct ggml_tensor *ggml_add1_inplace(struct ggml_context *ctx,
                                                               struct ggml_tensor *a,
                                                               struct ggml_tensor *b),
                         "use ggml_add_inplace");

// A copy of a (or a itself) in which the region with b's extents, strides nb1..nb3 and offset, all
// in bytes, has b added (acc) or is replaced by b (set). The region lies inside a. [stream]
GGML_API struct ggml_tensor *ggml_acc(struct ggml_context *ctx, struct ggml_tensor *a,
                                      struct ggml_tensor *b, size_t nb1, size_t nb2, size_t nb3,
                                      size_t offset);
GGML_API struct ggml_tensor *ggml_acc_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                              struct ggml_tensor *b, size_t nb1, size_t nb2,
                                              size_t nb3, size_t offset);
GGML_API struct ggml_tensor *ggml_set(struct ggml_context *ctx, struct ggml_tensor *a,
                                      struct ggml_tensor *b, size_t nb1, size_t nb2, size_t nb3,
                                      size_t offset);
GGML_API struct ggml_tensor *ggml_set_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                              struct ggml_tensor *b, size_t nb1, size_t nb2,
                                              size_t nb3, size_t offset);

// The same with a's strides (1d), or with nb1 and a's higher strides (2d). [stream]
GGML_API struct ggml_tensor *ggml_set_1d(struct ggml_context *ctx, struct ggml_tensor *a,
                                         struct ggml_tensor *b, size_t offset);
GGML_API struct ggml_tensor *ggml_set_1d_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                                 struct ggml_tensor *b, size_t offset);
GGML_API struct ggml_tensor *ggml_set_2d(struct ggml_context *ctx, struct ggml_tensor *a,
                                         struct ggml_tensor *b, size_t nb1, size_t offset);
GGML_API struct ggml_tensor *ggml_set_2d_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                                 struct ggml_tensor *b, size_t nb1, size_t offset);

// --- element-wise, one operand -------------------------------------------------------------------

// x^2, sqrt x, ln x, sin x, cos x, like a. [stream]
GGML_API struct ggml_tensor *ggml_sqr(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sqr_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sqrt(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sqrt_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_log(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_log_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sin(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sin_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_cos(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_cos_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// The sub-operation `op`, like a; rows of a are packed. The named forms below are the same.
// [stream]
GGML_API struct ggml_tensor *ggml_unary(struct ggml_context *ctx, struct ggml_tensor *a,
                                        enum ggml_unary_op op);
GGML_API struct ggml_tensor *ggml_unary_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                                enum ggml_unary_op op);

// |x|, sign (0 for NaN), -x, 1 if x > 0 else 0. [stream]
GGML_API struct ggml_tensor *ggml_abs(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_abs_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sgn(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sgn_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_neg(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_neg_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_step(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_step_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// tanh x; x > 0 ? x : e^x - 1; max(x, 0) (0 for NaN); 1 / (1 + e^-x). [stream]
GGML_API struct ggml_tensor *ggml_tanh(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_tanh_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_elu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_elu_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_relu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_relu_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sigmoid(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sigmoid_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// gelu: x/2 (1 + tanh(sqrt(2/pi) x (1 + 0.044715 x^2))). gelu_erf: x/2 (1 + erf(x / sqrt 2)).
// gelu_quick: x / (1 + e^(-1.702 x)). silu: x / (1 + e^-x). [stream]
GGML_API struct ggml_tensor *ggml_gelu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_gelu_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_gelu_erf(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_gelu_erf_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_gelu_quick(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_gelu_quick_inplace(struct ggml_context *ctx,
                                                     struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_silu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_silu_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// e^x, e^x - 1, ln(1 + e^x) (x above 20). [stream]
GGML_API struct ggml_tensor *ggml_exp(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_exp_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_expm1(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_expm1_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_softplus(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_softplus_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// To an integer: down, up, nearest (halves away from zero), towards zero. [stream]
GGML_API struct ggml_tensor *ggml_floor(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_floor_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_ceil(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_ceil_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_round(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_round_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_trunc(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_trunc_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// x clamp((x + 3) / 6, 0, 1), and the clamp alone. [stream]
GGML_API struct ggml_tensor *ggml_hardswish(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_hardsigmoid(struct ggml_context *ctx, struct ggml_tensor *a);

// x > 0: P x^2 + beta x; else (expm1(min(x, eps)) - x) N + beta x, with P = softplus(alpha_p) and N
// = beta + softplus(alpha_n). [stream]
GGML_API struct ggml_tensor *ggml_xielu(struct ggml_context *ctx, struct ggml_tensor *a,
                                        float alpha_n, float alpha_p, float beta, float eps);

// max(x, 0) + negative_slope min(x, 0), like a, or a view of a with inplace. [stream]
GGML_API struct ggml_tensor *ggml_leaky_relu(struct ggml_context *ctx, struct ggml_tensor *a,
                                             float negative_slope, bool inplace);

// Gradient of silu: a s (1 + b (1 - s)), s = sigmoid(b), like a; a is dy, b is x. [stream]
GGML_API struct ggml_tensor *ggml_silu_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                            struct ggml_tensor *b);

// max(min(x, max), min), like a. [stream]
GGML_API struct ggml_tensor *ggml_clamp(struct ggml_context *ctx, struct ggml_tensor *a, float min,
                                        float max);
GGML_API struct ggml_tensor *ggml_clamp_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                                float min, float max);

// s x, and s x + b, like a. Infinities and NaN in a stay: use ggml_fill() to zero. [stream]
GGML_API struct ggml_tensor *ggml_scale(struct ggml_context *ctx, struct ggml_tensor *a, float s);
GGML_API struct ggml_tensor *ggml_scale_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                                float s);
GGML_API struct ggml_tensor *ggml_scale_bias(struct ggml_context *ctx, struct ggml_tensor *a,
                                             float s, float b);
GGML_API struct ggml_tensor *ggml_scale_bias_inplace(struct ggml_context *ctx,
                                                     struct ggml_tensor *a, float s, float b);

// c everywhere, like a, which only gives type (F32, F16), extents and order of execution. [stream]
GGML_API struct ggml_tensor *ggml_fill(struct ggml_context *ctx, struct ggml_tensor *a, float c);
GGML_API struct ggml_tensor *ggml_fill_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                               float c);

// A triangle of each square matrix of a (contiguous F32, ne[0] == ne[1]), 0 elsewhere; column i and
// row r are kept if i < r (LOWER), i <= r (LOWER_DIAG), i > r (UPPER), i >= r (UPPER_DIAG).
// [stream]
GGML_API struct ggml_tensor *ggml_tri(struct ggml_context *ctx, struct ggml_tensor *a,
                                      enum ggml_tri_type type);

// a with every column i > n_past + r of row r set to -infinity or to 0. [stream]
GGML_API struct ggml_tensor *ggml_diag_mask_inf(struct ggml_context *ctx, struct ggml_tensor *a,
                                                int n_past);
GGML_API struct ggml_tensor *ggml_diag_mask_inf_inplace(struct ggml_context *ctx,
                                                        struct ggml_tensor *a, int n_past);
GGML_API struct ggml_tensor *ggml_diag_mask_zero(struct ggml_context *ctx, struct ggml_tensor *a,
                                                 int n_past);
GGML_API struct ggml_tensor *ggml_diag_mask_zero_inplace(struct ggml_context *ctx,
                                                         struct ggml_tensor *a, int n_past);

// --- gated linear units --------------------------------------------------------------------------

// act(x) g. One operand: x is the first half of each row of a and g the second, or the other way
// round if swapped; extents [ne0/2, ne1, ne2, ne3]. act: relu, gelu, silu, gelu_erf, gelu_quick.
// Dimensions above 0 of a are packed, ne0 is even. [stream]
GGML_API struct ggml_tensor *ggml_glu(struct ggml_context *ctx, struct ggml_tensor *a,
                                      enum ggml_glu_op op, bool swapped);
GGML_API struct ggml_tensor *ggml_reglu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_reglu_swapped(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_geglu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_geglu_swapped(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_swiglu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_swiglu_swapped(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_geglu_erf(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_geglu_erf_swapped(struct ggml_context *ctx,
                                                    struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_geglu_quick(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_geglu_quick_swapped(struct ggml_context *ctx,
                                                      struct ggml_tensor *a);

// The same with x = a and g = b, of equal type and extents. [stream]
GGML_API struct ggml_tensor *ggml_glu_split(struct ggml_context *ctx, struct ggml_tensor *a,
                                            struct ggml_tensor *b, enum ggml_glu_op op);
GGML_API struct ggml_tensor *ggml_reglu_split(struct ggml_context *ctx, struct ggml_tensor *a,
                                              struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_geglu_split(struct ggml_context *ctx, struct ggml_tensor *a,
                                              struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_swiglu_split(struct ggml_context *ctx, struct ggml_tensor *a,
                                               struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_geglu_erf_split(struct ggml_context *ctx, struct ggml_tensor *a,
                                                  struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_geglu_quick_split(struct ggml_context *ctx, struct ggml_tensor *a,
                                                    struct ggml_tensor *b);

// x' / (1 + e^(-alpha x')) (g' + 1), x' = min(x, limit), g' = clamp(g, -limit, limit). b NULL: the
// one-operand form. F32. [stream]
GGML_API struct ggml_tensor *ggml_swiglu_oai(struct ggml_context *ctx, struct ggml_tensor *a,
                                             struct ggml_tensor *b, float alpha, float limit);

// silu(x') g', x' = min(x, limit), g' = clamp(g, -limit, limit). b NULL: the one-operand form.
// [stream]
GGML_API struct ggml_tensor *ggml_swiglu_clamp(struct ggml_context *ctx, struct ggml_tensor *a,
                                               struct ggml_tensor *b, float limit);

// --- reductions, repetition, joining -------------------------------------------------------------

// Sum of all elements: one element of a's type. [stream]
GGML_API struct ggml_tensor *ggml_sum(struct ggml_context *ctx, struct ggml_tensor *a);

// Sum / mean of each row: [1, ne1, ne2, ne3]; the mean is F32. [stream]
GGML_API struct ggml_tensor *ggml_sum_rows(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_mean(struct ggml_context *ctx, struct ggml_tensor *a);

// Inclusive prefix sum along each row of F32, like a. [stream]
GGML_API struct ggml_tensor *ggml_cumsum(struct ggml_context *ctx, struct ggml_tensor *a);

// I32 [ne1]: index of the maximum of each row of a matrix; which of several equal ones is not
// defined. [stream]
GGML_API struct ggml_tensor *ggml_argmax(struct ggml_context *ctx, struct ggml_tensor *a);

// I64 scalar: number of places at which a and b, of equal extents, agree. [stream]
GGML_API struct ggml_tensor *ggml_count_equal(struct ggml_context *ctx, struct ggml_tensor *a,
                                              struct ggml_tensor *b);

// a repeated to b's extents, or to the given ones, which are multiples of a's; b's data is not
// used. [stream]
GGML_API struct ggml_tensor *ggml_repeat(struct ggml_context *ctx, struct ggml_tensor *a,
                                         struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_repeat_4d(struct ggml_context *ctx, struct ggml_tensor *a,
                                            int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3);

// The reverse: sums the repetitions in a down to b's extents. [stream]
GGML_API struct ggml_tensor *ggml_repeat_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                              struct ggml_tensor *b);

// a and then b along dimension dim (0..3); types and the other extents are equal. [stream]
GGML_API struct ggml_tensor *ggml_concat(struct ggml_context *ctx, struct ggml_tensor *a,
                                         struct ggml_tensor *b, int dim);

// --- normalisation -------------------------------------------------------------------------------

// Over each row, like a, eps >= 0. norm: (x - mean) / sqrt(variance + eps). rms_norm: x /
// sqrt(mean(x^2) + eps). l2_norm: x / max(sqrt(sum x^2), eps). No weights: multiply and add, which
// devices fuse. [stream]
GGML_API struct ggml_tensor *ggml_norm(struct ggml_context *ctx, struct ggml_tensor *a, float eps);
GGML_API struct ggml_tensor *ggml_norm_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                               float eps);
GGML_API struct ggml_tensor *ggml_rms_norm(struct ggml_context *ctx, struct ggml_tensor *a,
                                           float eps);
GGML_API struct ggml_tensor *ggml_rms_norm_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                                   float eps);
GGML_API struct ggml_tensor *ggml_l2_norm(struct ggml_context *ctx, struct ggml_tensor *a,
                                          float eps);
GGML_API struct ggml_tensor *ggml_l2_norm_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                                  float eps);

// norm over (dim 0, dim 1, channels of a group) for each ne[3]; dimension 2 holds the channels, a
// group ceil(ne2 / n_groups) of them; n_groups > 0. [stream]
GGML_API struct ggml_tensor *ggml_group_norm(struct ggml_context *ctx, struct ggml_tensor *a,
                                             int n_groups, float eps);
GGML_API struct ggml_tensor *
ggml_group_norm_inplace(struct ggml_context *ctx, struct ggml_tensor *a, int n_groups, float eps);

// Gradient of rms_norm: (a - b P / (S + n eps)) / sqrt(S / n + eps), S = sum b^2, P = sum a b per
// row of n elements; a is dy, b is x. [stream]
GGML_API struct ggml_tensor *ggml_rms_norm_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                                struct ggml_tensor *b, float eps);

// --- matrix products -----------------------------------------------------------------------------

// F32 [a.ne1, b.ne1, b.ne2, b.ne3]: [i, j, p, q] = sum_t a[t, i, p / r2, q / r3] b[t, j, p, q] with
// r2 = b.ne2 / a.ne2, r3 = b.ne3 / a.ne3, whole numbers; a.ne0 == b.ne0; a not transposed. With
// quantised or half-precision a, devices may round b to match. [stream]
GGML_API struct ggml_tensor *ggml_mul_mat(struct ggml_context *ctx, struct ggml_tensor *a,
                                          struct ggml_tensor *b);

// Hint of a MUL_MAT node; another node leaves a message. GGML_HINT_SRC0_IS_HADAMARD permits a fast
// transform that ignores src0. [stream]
GGML_API void ggml_mul_mat_set_hint(struct ggml_tensor *a, enum ggml_op_hint hint);

// Sets the least precise accumulator that may compute the result: GGML_PREC_F32, _BF16 (or better),
// _F16 (or better), or _UNDEFINED, the implementation's choice. Returns false, changes nothing and
// leaves a message for other values and for operations other than MUL_MAT, MUL_MAT_ID and
// FLASH_ATTN_EXT. [stream]
GGML_API bool ggml_prec_set_acc(struct ggml_tensor *a, enum ggml_prec prec);

// Sets the coarsest representation that src[idx] may be converted to while the result is computed:
// GGML_PREC_F32 (none: as it is, or F32), _BF16, _F16, _Q8 (8-bit blocks such as Q8_0), _Q4 (4-bit
// blocks), or _UNDEFINED, the implementation's choice. A source that is coarser already stays as it
// is. Returns false, changes nothing and leaves a message for other values and for sources other
// than src[1] of MUL_MAT and MUL_MAT_ID. [stream]
GGML_API bool ggml_prec_set_src(struct ggml_tensor *a, enum ggml_prec prec, int idx);

// The same as ggml_prec_set_acc() for MUL_MAT nodes only. [stream]
GGML_API GGML_DEPRECATED(void ggml_mul_mat_set_prec(struct ggml_tensor *a, enum ggml_prec prec),
                         "use ggml_prec_set_acc");

// F32 [m, U, T]: [:, u, t] = as[:, :, ids[u, t]] times b[:, u mod r, t]; as [k, m, E], b [k, r, T],
// ids I32 [U, T] with values below E, U a multiple of r. An id out of range makes the compute fail.
// [stream]
GGML_API struct ggml_tensor *ggml_mul_mat_id(struct ggml_context *ctx, struct ggml_tensor *as,
                                             struct ggml_tensor *b, struct ggml_tensor *ids);

// F32 [a.ne0, b.ne0, b.ne2, b.ne3]: [i, j, p, q] = sum_t a[i, t, p / r2, q / r3] b[j, t, p, q];
// a.ne1 == b.ne1; batches as in ggml_mul_mat(). [stream]
GGML_API struct ggml_tensor *ggml_out_prod(struct ggml_context *ctx, struct ggml_tensor *a,
                                           struct ggml_tensor *b);

// --- views ---------------------------------------------------------------------------------------

// Views move no data and share the memory of a's owner. One that would reach outside it is refused.

// a, contiguous, with b's extents or the given ones, of as many elements. [stream]
GGML_API struct ggml_tensor *ggml_reshape(struct ggml_context *ctx, struct ggml_tensor *a,
                                          struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_reshape_1d(struct ggml_context *ctx, struct ggml_tensor *a,
                                             int64_t ne0);
GGML_API struct ggml_tensor *ggml_reshape_2d(struct ggml_context *ctx, struct ggml_tensor *a,
                                             int64_t ne0, int64_t ne1);
GGML_API struct ggml_tensor *ggml_reshape_3d(struct ggml_context *ctx, struct ggml_tensor *a,
                                             int64_t ne0, int64_t ne1, int64_t ne2);
GGML_API struct ggml_tensor *ggml_reshape_4d(struct ggml_context *ctx, struct ggml_tensor *a,
                                             int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3);

// Extents ne, strides nb in bytes, from offset bytes after a's first element. Strides that are not
// given are packed on the one before. [stream]
GGML_API struct ggml_tensor *ggml_view_1d(struct ggml_context *ctx, struct ggml_tensor *a,
                                          int64_t ne0, size_t offset);
GGML_API struct ggml_tensor *ggml_view_2d(struct ggml_context *ctx, struct ggml_tensor *a,
                                          int64_t ne0, int64_t ne1, size_t nb1, size_t offset);
GGML_API struct ggml_tensor *ggml_view_3d(struct ggml_context *ctx, struct ggml_tensor *a,
                                          int64_t ne0, int64_t ne1, int64_t ne2, size_t nb1,
                                          size_t nb2, size_t offset);
GGML_API struct ggml_tensor *ggml_view_4d(struct ggml_context *ctx, struct ggml_tensor *a,
                                          int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3,
                                          size_t nb1, size_t nb2, size_t nb3, size_t offset);

// Dimension i of a becomes dimension axis_i; the axes are 0..3 in any order. [stream]
GGML_API struct ggml_tensor *ggml_permute(struct ggml_context *ctx, struct ggml_tensor *a,
                                          int axis0, int axis1, int axis2, int axis3);

// Dimensions 0 and 1 exchanged. [stream]
GGML_API struct ggml_tensor *ggml_transpose(struct ggml_context *ctx, struct ggml_tensor *a);

// --- rows ----------------------------------------------------------------------------------------

// [a.ne0, b.ne0, b.ne1, b.ne2], F32 (I32 if a is): [:, i, j, l] = a[:, b[i, j, l], j, l], decoded;
// b is I32 with b.ne3 == 1, a.ne2 == b.ne1, a.ne3 == b.ne2. A row out of range makes the compute
// fail. [stream]
GGML_API struct ggml_tensor *ggml_get_rows(struct ggml_context *ctx, struct ggml_tensor *a,
                                           struct ggml_tensor *b);

// F32 with the extents of matrix c: zeros, then [:, b[i]] += a[:, i]; a a matrix, b an I32 vector.
// [stream]
GGML_API struct ggml_tensor *ggml_get_rows_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                                struct ggml_tensor *b, struct ggml_tensor *c);

// Writes rows b [n, R, .., ..] (F32, F16) into a: a[:, c[i, j mod c.ne1, l mod c.ne2], j, l] = b[:,
// i, j, l], encoded; c is I64 or I32 with c.ne0 == b.ne1. Answers a view of a. Rows that c does not
// name stay; of equal indices any one may win. [stream]
GGML_API struct ggml_tensor *ggml_set_rows(struct ggml_context *ctx, struct ggml_tensor *a,
                                           struct ggml_tensor *b, struct ggml_tensor *c);

// [ne0, ne0, ne2, ne3]: the row a (ne1 == 1) on the diagonal, 0 elsewhere. [stream]
GGML_API struct ggml_tensor *ggml_diag(struct ggml_context *ctx, struct ggml_tensor *a);

// I32 like a: the permutation that sorts each row; the order of equal values is not defined.
// [stream]
GGML_API struct ggml_tensor *ggml_argsort(struct ggml_context *ctx, struct ggml_tensor *a,
                                          enum ggml_sort_order order);

// I32 [k, ne1, ne2, ne3], k <= ne0: indices of the k largest of each row, sorted / in no order.
// [stream]
GGML_API struct ggml_tensor *ggml_argsort_top_k(struct ggml_context *ctx, struct ggml_tensor *a,
                                                int k);
GGML_API struct ggml_tensor *ggml_top_k(struct ggml_context *ctx, struct ggml_tensor *a, int k);

// --- generators ----------------------------------------------------------------------------------

// F32 vector start + step i of ceil((stop - start) / step) elements; stop > start, step > 0.
// [stream]
GGML_API struct ggml_tensor *ggml_arange(struct ggml_context *ctx, float start, float stop,
                                         float step);

// F32 [dim, n] for n timesteps t: cos(t f_j), then sin(t f_j), f_j = max_period^(-j / (dim/2)), j
// below dim/2; an odd dim ends in a 0. [stream]
GGML_API struct ggml_tensor *ggml_timestep_embedding(struct ggml_context *ctx,
                                                     struct ggml_tensor *timesteps, int dim,
                                                     int max_period);

// --- softmax -------------------------------------------------------------------------------------

// Per row: exp(z - max z) / sum exp(z - max z), z = a; like a, contiguous. [stream]
GGML_API struct ggml_tensor *ggml_soft_max(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_soft_max_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// The same of z = scale a + slope(h) mask[:, i1, i2 mod m2, i3 mod m3]; mask F32 or F16 of as long
// rows and no fewer, or NULL. Head h = i2; slope 1, or with max_bias > 0 ALiBi's: of n heads and L
// = 2^floor(log2 n), 2^(-max_bias (h+1) / L) for h < L, else 2^(-max_bias (2(h-L)+1) / (2L)).
// [stream]
GGML_API struct ggml_tensor *ggml_soft_max_ext(struct ggml_context *ctx, struct ggml_tensor *a,
                                               struct ggml_tensor *mask, float scale,
                                               float max_bias);
GGML_API struct ggml_tensor *ggml_soft_max_ext_inplace(struct ggml_context *ctx,
                                                       struct ggml_tensor *a,
                                                       struct ggml_tensor *mask, float scale,
                                                       float max_bias);

// Adds exp(sinks[h] - max) to the denominator of a SOFT_MAX node; sinks F32 with one value per
// head, NULL removes them. Any other node leaves a message. [stream]
GGML_API void ggml_soft_max_add_sinks(struct ggml_tensor *a, struct ggml_tensor *sinks);

// Gradient: scale b (a - sum a b) per row; a is dy, b is y; max_bias is 0. [stream]
GGML_API struct ggml_tensor *ggml_soft_max_ext_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                                    struct ggml_tensor *b, float scale,
                                                    float max_bias);
GGML_API struct ggml_tensor *ggml_soft_max_ext_back_inplace(struct ggml_context *ctx,
                                                            struct ggml_tensor *a,
                                                            struct ggml_tensor *b, float scale,
                                                            float max_bias);

// --- rotary position -----------------------------------------------------------------------------

// Rotates pairs of channels of a [head size, heads, tokens, ..] by position times frequency, like
// a. b: I32 positions, one per token (four, as [t.., h.., w.., e..], in MROPE and later modes).
// n_dims: even, channels to rotate. mode: GGML_ROPE_TYPE_*; NORMAL pairs neighbours, NEOX halves.
// [stream]
GGML_API struct ggml_tensor *ggml_rope(struct ggml_context *ctx, struct ggml_tensor *a,
                                       struct ggml_tensor *b, int n_dims, int mode);
GGML_API struct ggml_tensor *ggml_rope_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                               struct ggml_tensor *b, int n_dims, int mode);

// The same with all parameters. c: F32 divisors of the n_dims/2 frequencies, or NULL. Angle of pair
// i: p freq_base^(-2i / n_dims) / c[i], times freq_scale; ext_factor mixes in the unscaled angle by
// the ramp between ggml_rope_yarn_corr_dims(); attn_factor scales the result. The custom forms have
// no c. [stream]
GGML_API struct ggml_tensor *ggml_rope_ext(struct ggml_context *ctx, struct ggml_tensor *a,
                                           struct ggml_tensor *b, struct ggml_tensor *c, int n_dims,
                                           int mode, int n_ctx_orig, float freq_base,
                                           float freq_scale, float ext_factor, float attn_factor,
                                           float beta_fast, float beta_slow);
GGML_API struct ggml_tensor *ggml_rope_ext_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                                   struct ggml_tensor *b, struct ggml_tensor *c,
                                                   int n_dims, int mode, int n_ctx_orig,
                                                   float freq_base, float freq_scale,
                                                   float ext_factor, float attn_factor,
                                                   float beta_fast, float beta_slow);
GGML_API GGML_DEPRECATED(struct ggml_tensor *ggml_rope_custom(
                             struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                             int n_dims, int mode, int n_ctx_orig, float freq_base,
                             float freq_scale, float ext_factor, float attn_factor, float beta_fast,
                             float beta_slow),
                         "use ggml_rope_ext");
GGML_API GGML_DEPRECATED(struct ggml_tensor *ggml_rope_custom_inplace(
                             struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                             int n_dims, int mode, int n_ctx_orig, float freq_base,
                             float freq_scale, float ext_factor, float attn_factor, float beta_fast,
                             float beta_slow),
                         "use ggml_rope_ext_inplace");

// The same for positions with several components; sections: how many pairs follow t, h, w, e.
// [stream]
GGML_API struct ggml_tensor *ggml_rope_multi(struct ggml_context *ctx, struct ggml_tensor *a,
                                             struct ggml_tensor *b, struct ggml_tensor *c,
                                             int n_dims, int sections[GGML_MROPE_SECTIONS],
                                             int mode, int n_ctx_orig, float freq_base,
                                             float freq_scale, float ext_factor, float attn_factor,
                                             float beta_fast, float beta_slow);
GGML_API struct ggml_tensor *
ggml_rope_multi_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                        struct ggml_tensor *c, int n_dims, int sections[GGML_MROPE_SECTIONS],
                        int mode, int n_ctx_orig, float freq_base, float freq_scale,
                        float ext_factor, float attn_factor, float beta_fast, float beta_slow);

// Rotate back (gradients): a is dy. [stream]
GGML_API struct ggml_tensor *ggml_rope_ext_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                                struct ggml_tensor *b, struct ggml_tensor *c,
                                                int n_dims, int mode, int n_ctx_orig,
                                                float freq_base, float freq_scale, float ext_factor,
                                                float attn_factor, float beta_fast,
                                                float beta_slow);
GGML_API struct ggml_tensor *ggml_rope_multi_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                                  struct ggml_tensor *b, struct ggml_tensor *c,
                                                  int n_dims, int sections[4], int mode,
                                                  int n_ctx_orig, float freq_base, float freq_scale,
                                                  float ext_factor, float attn_factor,
                                                  float beta_fast, float beta_slow);

// Lets a ROPE or ROPE_BACK node rotate from channel n_offs (even) on; answers the node, or an error
// tensor where the channels do not exist or the mode is VISION. [stream]
GGML_API struct ggml_tensor *ggml_rope_set_offset(struct ggml_tensor *a, int n_offs);

// Where YaRN's ramp starts and ends, in pairs: dims[0] = max(0, floor d(beta_fast)), dims[1] =
// min(n_dims - 1, ceil d(beta_slow)), d(x) = n_dims ln(n_ctx_orig / (2 pi x)) / (2 ln freq_base).
// [any-thread]
GGML_API void ggml_rope_yarn_corr_dims(int n_dims, int n_ctx_orig, float freq_base, float beta_fast,
                                       float beta_slow, float dims[2]);

// --- attention -----------------------------------------------------------------------------------

// F32 [DV, H, N, B] = softmax over KV of s, times v. q [DK, N, H, B] F32, k [DK, KV, Hk, B], v [DV,
// KV, Hv, B] (not transposed); H a multiple of Hk and Hv, heads share by h / (H / Hk). s = scale
// <q, k>; logit_softcap c != 0: c tanh(s / c); plus slope(h) mask[j, n, h mod .., b mod ..] as in
// ggml_soft_max_ext(), mask F16 or NULL. A fully masked row gives zeros. [stream]
GGML_API struct ggml_tensor *ggml_flash_attn_ext(struct ggml_context *ctx, struct ggml_tensor *q,
                                                 struct ggml_tensor *k, struct ggml_tensor *v,
                                                 struct ggml_tensor *mask, float scale,
                                                 float max_bias, float logit_softcap);

// The accumulator of a FLASH_ATTN_EXT node, see ggml_prec_set_acc(). Another node leaves a message
// and has GGML_PREC_UNDEFINED. [stream]
GGML_API GGML_DEPRECATED(void ggml_flash_attn_ext_set_prec(struct ggml_tensor *a,
                                                           enum ggml_prec prec),
                         "use ggml_prec_set_acc");
GGML_API enum ggml_prec ggml_flash_attn_ext_get_prec(const struct ggml_tensor *a);

// Promises that no row of the mask of a FLASH_ATTN_EXT node has more than n_kv_max finite entries,
// so that a device may skip the other keys; 0 promises nothing. Another node, or a negative number,
// leaves a message. [stream]
GGML_API void ggml_flash_attn_ext_set_n_kv_max(struct ggml_tensor *a, int32_t n_kv_max);

// Sinks as in ggml_soft_max_add_sinks(), of a FLASH_ATTN_EXT node. [stream]
GGML_API void ggml_flash_attn_ext_add_sinks(struct ggml_tensor *a, struct ggml_tensor *sinks);

// Not supported, as in ggml: always an error tensor. [stream]
GGML_API struct ggml_tensor *ggml_flash_attn_back(struct ggml_context *ctx, struct ggml_tensor *q,
                                                  struct ggml_tensor *k, struct ggml_tensor *v,
                                                  struct ggml_tensor *d, bool masked);

// F32 [KV, T, 1, S]: [j, t, 0, s] = sum_h max(0, <q[:, h, t, s], k[:, 0, j, s]>) weights[h, t, 0,
// s] + mask[j, t, 0, s mod s']; q [D, H, T, S], k [D, 1, KV, S], mask F16. [stream]
GGML_API struct ggml_tensor *ggml_lightning_indexer(struct ggml_context *ctx, struct ggml_tensor *q,
                                                    struct ggml_tensor *k,
                                                    struct ggml_tensor *weights,
                                                    struct ggml_tensor *mask);

// --- recurrent -----------------------------------------------------------------------------------

// F32 [d_inner, T, S]: [i, t, s] = sum_k sx[t + k, i, s] c[k, i]; sx [d_conv - 1 + T, d_inner, S].
// [stream]
GGML_API struct ggml_tensor *ggml_ssm_conv(struct ggml_context *ctx, struct ggml_tensor *sx,
                                           struct ggml_tensor *c);

// Selective scan. s [N, P, H, states], x [P, H, T, S], dt [H, T, S], A [1 or N, H], B, C [N, G, T,
// S], ids I32 [S]. Per token: D = softplus(dt); s = s exp(D A) + B (x D); y = sum_n s C. F32
// vector: y [P, H, T, S], then K states [N, P, H, S], the newest first. [stream]
GGML_API struct ggml_tensor *ggml_ssm_scan(struct ggml_context *ctx, struct ggml_tensor *s,
                                           struct ggml_tensor *x, struct ggml_tensor *dt,
                                           struct ggml_tensor *A, struct ggml_tensor *B,
                                           struct ggml_tensor *C, struct ggml_tensor *ids,
                                           int64_t K);

// Linear attention with data-dependent decay. Operands [S, H, T], tf [S, H], state [S S H, n_seqs];
// F32 [S H, T + S n_seqs]: outputs, then new states. wkv6: out = r (tf k v + s), s = s td + k v.
// [stream]
GGML_API struct ggml_tensor *ggml_rwkv_wkv6(struct ggml_context *ctx, struct ggml_tensor *k,
                                            struct ggml_tensor *v, struct ggml_tensor *r,
                                            struct ggml_tensor *tf, struct ggml_tensor *td,
                                            struct ggml_tensor *state);

// As wkv6 with s = s g + k v, out = scale q s of the new s. [stream]
GGML_API struct ggml_tensor *ggml_gated_linear_attn(struct ggml_context *ctx, struct ggml_tensor *k,
                                                    struct ggml_tensor *v, struct ggml_tensor *q,
                                                    struct ggml_tensor *g,
                                                    struct ggml_tensor *state, float scale);

// As wkv6 with s_i = s_i w + v_i k + (a s_i) b, out_i = s_i r of the new s. [stream]
GGML_API struct ggml_tensor *ggml_rwkv_wkv7(struct ggml_context *ctx, struct ggml_tensor *r,
                                            struct ggml_tensor *w, struct ggml_tensor *k,
                                            struct ggml_tensor *v, struct ggml_tensor *a,
                                            struct ggml_tensor *b, struct ggml_tensor *state);

// Gated delta rule. q, k [S, Hq, T, Bq], v [S, H, T, B], g [1 or S, H, T, B], beta [1, H, T, B],
// state [S, S, H, B]: s = s exp(g); d = (v - k s) beta; s = s + k d; out = q s / sqrt(S); head h
// uses q and k of h mod Hq. F32 [S H, T B + K S B]: outputs, then K states, the newest first; with
// T < K only the first T states are defined, with T > K only the newest one. [stream]
GGML_API struct ggml_tensor *ggml_gated_delta_net(struct ggml_context *ctx, struct ggml_tensor *q,
                                                  struct ggml_tensor *k, struct ggml_tensor *v,
                                                  struct ggml_tensor *g, struct ggml_tensor *beta,
                                                  struct ggml_tensor *state, int64_t K);

// X of a X = b for lower triangular a [n, n, ..], b [k, n, ..]; left and lower true, uni false. A
// zero on the diagonal gives infinities. [stream]
GGML_API struct ggml_tensor *ggml_solve_tri(struct ggml_context *ctx, struct ggml_tensor *a,
                                            struct ggml_tensor *b, bool left, bool lower, bool uni);

// Hyper-connections. comb: F32 [4, 4, T], mixes [24, T] made doubly stochastic in n_iter > 0
// rounds. pre: [E, T] = sum_h x[:, h, t] weights[h, t]. post: [E, hc, T] = x post + sum_s residual
// comb, comb NULL being the identity. pre_gated: [E, T] = scale sum_h x[:, h, t] sigmoid(gate[:, h,
// t]). [stream]
GGML_API struct ggml_tensor *ggml_dsv4_hc_comb(struct ggml_context *ctx, struct ggml_tensor *mixes,
                                               struct ggml_tensor *scale, struct ggml_tensor *base,
                                               float eps, int32_t n_iter);
GGML_API struct ggml_tensor *ggml_dsv4_hc_pre(struct ggml_context *ctx, struct ggml_tensor *x,
                                              struct ggml_tensor *weights);
GGML_API struct ggml_tensor *ggml_dsv4_hc_pre_gated(struct ggml_context *ctx, struct ggml_tensor *x,
                                                    struct ggml_tensor *gate, float scale);
GGML_API struct ggml_tensor *ggml_dsv4_hc_post(struct ggml_context *ctx, struct ggml_tensor *x,
                                               struct ggml_tensor *residual,
                                               struct ggml_tensor *post, struct ggml_tensor *comb);

// --- custom operations ---------------------------------------------------------------------------

typedef void (*ggml_custom1_op_t)(struct ggml_tensor *dst, const struct ggml_tensor *a, int ith,
                                  int nth, void *userdata);
typedef void (*ggml_custom2_op_t)(struct ggml_tensor *dst, const struct ggml_tensor *a,
                                  const struct ggml_tensor *b, int ith, int nth, void *userdata);
typedef void (*ggml_custom3_op_t)(struct ggml_tensor *dst, const struct ggml_tensor *a,
                                  const struct ggml_tensor *b, const struct ggml_tensor *c, int ith,
                                  int nth, void *userdata);
typedef void (*ggml_custom_op_t)(struct ggml_tensor *dst, int ith, int nth, void *userdata);

// fun runs on the CPU, on host data, once per task ith of nth, concurrently; nth <= n_tasks, which
// is positive or GGML_N_TASKS_MAX (as many as there are threads). fun and userdata stay the
// caller's and must live until the last compute. map: like a. [stream]
GGML_API struct ggml_tensor *ggml_map_custom1(struct ggml_context *ctx, struct ggml_tensor *a,
                                              ggml_custom1_op_t fun, int n_tasks, void *userdata);
GGML_API struct ggml_tensor *ggml_map_custom1_inplace(struct ggml_context *ctx,
                                                      struct ggml_tensor *a, ggml_custom1_op_t fun,
                                                      int n_tasks, void *userdata);
GGML_API struct ggml_tensor *ggml_map_custom2(struct ggml_context *ctx, struct ggml_tensor *a,
                                              struct ggml_tensor *b, ggml_custom2_op_t fun,
                                              int n_tasks, void *userdata);
GGML_API struct ggml_tensor *ggml_map_custom2_inplace(struct ggml_context *ctx,
                                                      struct ggml_tensor *a, struct ggml_tensor *b,
                                                      ggml_custom2_op_t fun, int n_tasks,
                                                      void *userdata);
GGML_API struct ggml_tensor *ggml_map_custom3(struct ggml_context *ctx, struct ggml_tensor *a,
                                              struct ggml_tensor *b, struct ggml_tensor *c,
                                              ggml_custom3_op_t fun, int n_tasks, void *userdata);
GGML_API struct ggml_tensor *ggml_map_custom3_inplace(struct ggml_context *ctx,
                                                      struct ggml_tensor *a, struct ggml_tensor *b,
                                                      struct ggml_tensor *c, ggml_custom3_op_t fun,
                                                      int n_tasks, void *userdata);

// The same with n_args < 10 operands and a result of its own type and extents, or (n_args < 9) a
// view of a. [stream]
GGML_API struct ggml_tensor *ggml_custom_4d(struct ggml_context *ctx, enum ggml_type type,
                                            int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3,
                                            struct ggml_tensor **args, int n_args,
                                            ggml_custom_op_t fun, int n_tasks, void *userdata);
GGML_API struct ggml_tensor *ggml_custom_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                                 struct ggml_tensor **args, int n_args,
                                                 ggml_custom_op_t fun, int n_tasks, void *userdata);

// --- training ------------------------------------------------------------------------------------

// Scalar -1/rows sum b log softmax(a): a logits, b target probabilities of equal extents. [stream]
GGML_API struct ggml_tensor *ggml_cross_entropy_loss(struct ggml_context *ctx,
                                                     struct ggml_tensor *a, struct ggml_tensor *b);

// Its gradient, like b: (softmax(b) - c) a / rows; a the scalar dy, b logits, c targets. [stream]
GGML_API struct ggml_tensor *ggml_cross_entropy_loss_back(struct ggml_context *ctx,
                                                          struct ggml_tensor *a,
                                                          struct ggml_tensor *b,
                                                          struct ggml_tensor *c);

// Steps parameter a along grad, in place, and answers a view of it; adamw_params F32 {alpha, beta1,
// beta2, eps, wd, 1 / (1 - beta1^t), 1 / (1 - beta2^t)}, sgd_params F32 {alpha, wd}. m and v are
// updated too. [stream]
GGML_API struct ggml_tensor *ggml_opt_step_adamw(struct ggml_context *ctx, struct ggml_tensor *a,
                                                 struct ggml_tensor *grad, struct ggml_tensor *m,
                                                 struct ggml_tensor *v,
                                                 struct ggml_tensor *adamw_params);
GGML_API struct ggml_tensor *ggml_opt_step_sgd(struct ggml_context *ctx, struct ggml_tensor *a,
                                               struct ggml_tensor *grad,
                                               struct ggml_tensor *sgd_params);

#ifdef __cplusplus
}
#endif

#endif
