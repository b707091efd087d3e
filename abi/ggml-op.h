// SPDX-License-Identifier: MIT
// ggml-op.h: builders of graph operations. Part of ggml.h, which includes it.
//
// Rules for all builders.
//
//   - A builder computes nothing. It returns a new tensor of `ctx`, which belongs to the context
//     and remembers the operation (op), its operands (src[]) and its parameters (op_params). The
//     work is done when a graph that holds the tensor is computed.
//   - It never returns NULL. Impossible operands (NULL, an error tensor, or against the conditions
//     given below) and a full arena give the context's error tensor and a message (see ggml.h):
//     ggml_tensor_is_error() tells. ggml 0.27 aborts the process instead.
//   - It checks what the shape of the result depends on. Which types and layouts a device computes
//     is for the device to say: ask ggml_backend_dev_supports_op(). "Devices:" below names what
//     the CPU device of this project takes; docs/ops-cpu.md and docs/ops-vulkan.md have the whole
//     tables.
//   - A result of its own is packed. "like a" is such a tensor of a's type and extents.
//   - An _inplace form returns a view of a instead, with a's strides: computing it overwrites a. It
//     refuses an a that repeats its elements (a stride of 0 in a dimension of more than one);
//     regions, as ggml_set_inplace(), are not looked at.
//   - Empty operands (an extent of 0) are legal; such nodes do nothing.
//   - NaN and infinities propagate as in IEEE 754 unless a formula says otherwise.
//
// Notation. [n, m, ...] are extents with the fastest dimension first, those left out are 1. a[i] is
// the element at index i, a[:, i] a row. Rows run along dimension 0. "F" in a list of types stands
// for F32, F16 and BF16, "coded" for the quantised types.
//
// Broadcasting. "b repeats" means that every extent of a is a multiple of b's and b is indexed
// modulo its extents; a is never broadcast to b. Products (ggml_mul_mat() and attention) share
// operands by division instead: neighbouring heads use the same one.
#ifndef GGML_OP_H
#define GGML_OP_H

#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- copies and casts ----------------------------------------------------------------------------

// All of these move data when they are computed; ggml_reshape() and the other views don't. What has
// to be copied: operands that an operation wants packed, another type, other memory.

// Packed copy of a, like a. In place it is a node that leaves a as it is, for ordering.
// Devices: any type. [stream]
GGML_API struct ggml_tensor *ggml_dup(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_dup_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// Copies a into b's memory and returns a view of b, with b's type, extents and strides. Elements
// are taken in logical order (dimension 0 fastest) and converted to b's type, so the shapes may
// differ; a and b have as many elements. Nodes that are to see the new content use the result, not
// b: only that makes the graph order them. Floats become integers by truncation; F16 overflows to
// infinity; coded types are written in whole blocks.
// Devices: any type to any other, but for integers to or from coded types, and for what is not of
// the same type to IQ1, IQ2 and IQ3 (which need more than a row to be encoded well). The typical
// use is a cache: cpy(new_rows, view_2d(cache, ...)). [stream]
GGML_API struct ggml_tensor *ggml_cpy(struct ggml_context *ctx, struct ggml_tensor *a,
                                      struct ggml_tensor *b);

// A copy of a converted to `type`, with a's extents. Conversions as ggml_cpy(). The node's src[1]
// is the node itself, as in ggml: code that walks graphs has to expect that. ne[0] must be whole
// blocks of the type. [stream]
GGML_API struct ggml_tensor *ggml_cast(struct ggml_context *ctx, struct ggml_tensor *a,
                                       enum ggml_type type);

// Packed copy of a, with the same extents: what operations need that take no strided or permuted
// operand. Always a copy, also if a is packed already. [stream]
GGML_API struct ggml_tensor *ggml_cont(struct ggml_context *ctx, struct ggml_tensor *a);

// The same with new extents of as many elements, taken in logical order: permute and reshape in one
// node, where ggml_reshape() would refuse a strided operand. [stream]
GGML_API struct ggml_tensor *ggml_cont_1d(struct ggml_context *ctx, struct ggml_tensor *a,
                                          int64_t ne0);
GGML_API struct ggml_tensor *ggml_cont_2d(struct ggml_context *ctx, struct ggml_tensor *a,
                                          int64_t ne0, int64_t ne1);
GGML_API struct ggml_tensor *ggml_cont_3d(struct ggml_context *ctx, struct ggml_tensor *a,
                                          int64_t ne0, int64_t ne1, int64_t ne2);
GGML_API struct ggml_tensor *ggml_cont_4d(struct ggml_context *ctx, struct ggml_tensor *a,
                                          int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3);

// --- element-wise, two operands ------------------------------------------------------------------

//   add: a + b    sub: a - b    mul: a * b    div: a / b
// Element by element, like a; b repeats. The types may differ: the result has a's type, the
// computation is in F32 and is rounded once. Division by 0 gives infinities or NaN.
// Devices: F with F; for add also a coded and b in F, which is decoded, added and encoded again
// (a's type needs an encoder: not IQ1, IQ2, IQ3). The usual bias: a [n, tokens] + b [n]. [stream]
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

// a + b with the result in `type`. a is coded, F16 or BF16 (else an error tensor); b repeats over
// rows only, that is with ne[0] equal. Used to add a low-rank correction to a coded matrix.
// [stream]
GGML_API struct ggml_tensor *ggml_add_cast(struct ggml_context *ctx, struct ggml_tensor *a,
                                           struct ggml_tensor *b, enum ggml_type type);

// Adds to each row of a the row of b that an index picks, like a:
//   result[:, u, t] = a[:, u, t] + b[:, ids[u, t]]
// a is [n, U, T], b is [n, E], ids is I32 [U, T] with values in [0, E). It is the bias of experts
// after ggml_mul_mat_id(). An index out of range makes the compute fail. Devices: F32. [stream]
GGML_API struct ggml_tensor *ggml_add_id(struct ggml_context *ctx, struct ggml_tensor *a,
                                         struct ggml_tensor *b, struct ggml_tensor *ids);

// a + b[0], like a; b has one element, a is packed but for padding of its rows. A broadcasting
// ggml_add() does the same. [stream]
GGML_API GGML_DEPRECATED(struct ggml_tensor *ggml_add1(struct ggml_context *ctx,
                                                       struct ggml_tensor *a,
                                                       struct ggml_tensor *b),
                         "use ggml_add");
GGML_API GGML_DEPRECATED(struct ggml_tensor *ggml_add1_inplace(struct ggml_context *ctx,
                                                               struct ggml_tensor *a,
                                                               struct ggml_tensor *b),
                         "use ggml_add_inplace");

// Adds b to a region of a: a copy of a (or a itself) in which region[i] += b[i].
//   a       contiguous F32
//   b       F32, no more elements than a
//   nb1..3  strides of the region in bytes; dimension 0 is packed
//   offset  bytes from a's first element to the region's; below 2^31, as strides that count
// The region has b's extents and must lie inside a. [stream]
GGML_API struct ggml_tensor *ggml_acc(struct ggml_context *ctx, struct ggml_tensor *a,
                                      struct ggml_tensor *b, size_t nb1, size_t nb2, size_t nb3,
                                      size_t offset);
GGML_API struct ggml_tensor *ggml_acc_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                              struct ggml_tensor *b, size_t nb1, size_t nb2,
                                              size_t nb3, size_t offset);

// Replaces a region of a by b: as ggml_acc() with region[i] = b[i]. offset is below 2^30, a may be
// strided. Devices: any plain type, the same for both. [stream]
GGML_API struct ggml_tensor *ggml_set(struct ggml_context *ctx, struct ggml_tensor *a,
                                      struct ggml_tensor *b, size_t nb1, size_t nb2, size_t nb3,
                                      size_t offset);
GGML_API struct ggml_tensor *ggml_set_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                              struct ggml_tensor *b, size_t nb1, size_t nb2,
                                              size_t nb3, size_t offset);

// ggml_set() with a's own strides (_1d), or with nb1 and a's strides above it (_2d). [stream]
GGML_API struct ggml_tensor *ggml_set_1d(struct ggml_context *ctx, struct ggml_tensor *a,
                                         struct ggml_tensor *b, size_t offset);
GGML_API struct ggml_tensor *ggml_set_1d_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                                 struct ggml_tensor *b, size_t offset);
GGML_API struct ggml_tensor *ggml_set_2d(struct ggml_context *ctx, struct ggml_tensor *a,
                                         struct ggml_tensor *b, size_t nb1, size_t offset);
GGML_API struct ggml_tensor *ggml_set_2d_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                                 struct ggml_tensor *b, size_t nb1, size_t offset);

// --- element-wise, one operand -------------------------------------------------------------------

// Computed in F32 and rounded to the operand's type once, whatever that is.

//   sqr: x^2    sqrt: square root of x    log: natural logarithm    sin, cos: x in radians
// Element by element, like a. sqrt and log of a negative number give NaN, log(0) is -infinity.
// Devices: F. [stream]
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

// The sub-operation `op` of enum ggml_unary_op, element by element, like a. The rows of a are
// packed, higher dimensions may be strided. The named forms below are this call with their number;
// they make the same node (op UNARY, op_params[0] = number). XIELU has parameters: use
// ggml_xielu().
// Devices: F, computed in F32. [stream]
GGML_API struct ggml_tensor *ggml_unary(struct ggml_context *ctx, struct ggml_tensor *a,
                                        enum ggml_unary_op op);
GGML_API struct ggml_tensor *ggml_unary_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                                enum ggml_unary_op op);

//   abs: |x|    sgn: 1, 0 or -1, 0 for NaN    neg: -x    step: x > 0 ? 1 : 0
// [stream]
GGML_API struct ggml_tensor *ggml_abs(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_abs_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sgn(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sgn_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_neg(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_neg_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_step(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_step_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

//   tanh: tanh x
//   elu:  x > 0 ? x : e^x - 1
//   relu: x > 0 ? x : 0, also 0 for NaN
//   sigmoid: 1 / (1 + e^-x)
// [stream]
GGML_API struct ggml_tensor *ggml_tanh(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_tanh_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_elu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_elu_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_relu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_relu_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sigmoid(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_sigmoid_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

//   gelu:       x/2 (1 + tanh(sqrt(2/pi) x (1 + 0.044715 x^2)))
//   gelu_erf:   x/2 (1 + erf(x / sqrt 2))
//   gelu_quick: x / (1 + e^(-1.702 x))
//   silu:       x / (1 + e^-x), also known as swish
// ggml 0.27 takes gelu and gelu_quick from a table of F16 results on the CPU; here they are
// computed, so that results differ from its in what F16 rounds off. [stream]
GGML_API struct ggml_tensor *ggml_gelu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_gelu_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_gelu_erf(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_gelu_erf_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_gelu_quick(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_gelu_quick_inplace(struct ggml_context *ctx,
                                                     struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_silu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_silu_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

//   exp: e^x    expm1: e^x - 1    softplus: x > 20 ? x : ln(1 + e^x)
// [stream]
GGML_API struct ggml_tensor *ggml_exp(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_exp_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_expm1(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_expm1_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_softplus(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_softplus_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// To a whole number: down, up, to the nearest (halves away from zero), towards zero. The type
// stays. [stream]
GGML_API struct ggml_tensor *ggml_floor(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_floor_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_ceil(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_ceil_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_round(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_round_inplace(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_trunc(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_trunc_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

//   hardsigmoid: clamp((x + 3) / 6, 0, 1)    hardswish: x hardsigmoid(x)
// Without in-place forms, as in ggml: ggml_unary_inplace() has them. [stream]
GGML_API struct ggml_tensor *ggml_hardswish(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_hardsigmoid(struct ggml_context *ctx, struct ggml_tensor *a);

//   x > 0:  P x^2 + beta x
//   else:   (expm1(min(x, eps)) - x) N + beta x
// with P = softplus(alpha_p) and N = beta + softplus(alpha_n), which the builder computes:
// op_params hold P and N, not the alphas. eps is a small negative number, typically -1e-6. [stream]
GGML_API struct ggml_tensor *ggml_xielu(struct ggml_context *ctx, struct ggml_tensor *a,
                                        float alpha_n, float alpha_p, float beta, float eps);

//   max(x, 0) + negative_slope min(x, 0)
// Like a, or a view of a with inplace. negative_slope is typically 0.01. [stream]
GGML_API struct ggml_tensor *ggml_leaky_relu(struct ggml_context *ctx, struct ggml_tensor *a,
                                             float negative_slope, bool inplace);

// Gradient of silu, like a, which is dy; b is x, of a's extents:
//   a s (1 + b (1 - s)),  s = 1 / (1 + e^-b)
// [stream]
GGML_API struct ggml_tensor *ggml_silu_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                            struct ggml_tensor *b);

// max(min(x, max), min), like a. With min above max the result is min. ggml up to 0.21 always
// worked in place; 0.27 and this library only do with the _inplace form. [stream]
GGML_API struct ggml_tensor *ggml_clamp(struct ggml_context *ctx, struct ggml_tensor *a, float min,
                                        float max);
GGML_API struct ggml_tensor *ggml_clamp_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                                float min, float max);

//   scale: s x    scale_bias: s x + b
// Like a, which is packed but for padding of its rows. Infinities and NaN in a stay, so s = 0 does
// not clear memory that holds no numbers yet: use ggml_fill(). Devices: F (ggml 0.27: F32).
// [stream]
GGML_API struct ggml_tensor *ggml_scale(struct ggml_context *ctx, struct ggml_tensor *a, float s);
GGML_API struct ggml_tensor *ggml_scale_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                                float s);
GGML_API struct ggml_tensor *ggml_scale_bias(struct ggml_context *ctx, struct ggml_tensor *a,
                                             float s, float b);
GGML_API struct ggml_tensor *ggml_scale_bias_inplace(struct ggml_context *ctx,
                                                     struct ggml_tensor *a, float s, float b);

// c in every element, like a. a is contiguous F32 or F16; it gives type and extents, and the order
// of execution, its values are not used. [stream]
GGML_API struct ggml_tensor *ggml_fill(struct ggml_context *ctx, struct ggml_tensor *a, float c);
GGML_API struct ggml_tensor *ggml_fill_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                               float c);

// A triangle of each square matrix of a, 0 elsewhere; like a, which is contiguous F32 with ne[0] ==
// ne[1]. Element at column i and row r is kept if
//   LOWER: i < r    LOWER_DIAG: i <= r    UPPER: i > r    UPPER_DIAG: i >= r
// [stream]
GGML_API struct ggml_tensor *ggml_tri(struct ggml_context *ctx, struct ggml_tensor *a,
                                      enum ggml_tri_type type);

// Masks what lies in the future, like a: every column i > n_past + r of row r becomes -infinity or
// 0, the others are copied. n_past is the number of tokens that came before row 0. Devices: F32.
// ggml_soft_max_ext() with a mask, or ggml_flash_attn_ext(), does the same faster. [stream]
GGML_API struct ggml_tensor *ggml_diag_mask_inf(struct ggml_context *ctx, struct ggml_tensor *a,
                                                int n_past);
GGML_API struct ggml_tensor *ggml_diag_mask_inf_inplace(struct ggml_context *ctx,
                                                        struct ggml_tensor *a, int n_past);
GGML_API struct ggml_tensor *ggml_diag_mask_zero(struct ggml_context *ctx, struct ggml_tensor *a,
                                                 int n_past);
GGML_API struct ggml_tensor *ggml_diag_mask_zero_inplace(struct ggml_context *ctx,
                                                         struct ggml_tensor *a, int n_past);

// --- gated linear units --------------------------------------------------------------------------

// Half of a feed-forward layer: one input is put through an activation and multiplied by the other,
// the gate. The one-operand forms take both from the halves of each row of a, as a merged weight
// matrix gives them; the split forms from two tensors.

// act(x) * g, of extents [ne0 / 2, ne1, ne2, ne3] and a's type. x is the first half of each row of
// a and g the second, or the other way round if swapped; of an odd row the last element is not
// used. a may have padded rows, its higher dimensions are packed on them.
//   REGLU: relu    GEGLU: gelu    SWIGLU: silu    GEGLU_ERF: gelu_erf    GEGLU_QUICK: gelu_quick
// On the CPU REGLU gives 0 where x is not above 0, even if the gate is infinite or NaN.
// The named forms make the same node. SWIGLU_OAI and SWIGLU_CLAMP need the calls below. Devices: F.
// [stream]
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

// act(a) * b, like a: a goes through the activation, b is the gate. Both of one type, equal
// extents, and packed as for ggml_glu(). [stream]
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

//   x' / (1 + e^(-alpha x')) (g' + 1),  x' = min(x, limit),  g' = clamp(g, -limit, limit)
// b NULL: the one-operand form of a, not swapped. alpha is typically 1.702, limit 7. [stream]
GGML_API struct ggml_tensor *ggml_swiglu_oai(struct ggml_context *ctx, struct ggml_tensor *a,
                                             struct ggml_tensor *b, float alpha, float limit);

//   silu(x') g',  x' = min(x, limit),  g' = clamp(g, -limit, limit)
// b NULL: the one-operand form of a, not swapped. [stream]
GGML_API struct ggml_tensor *ggml_swiglu_clamp(struct ggml_context *ctx, struct ggml_tensor *a,
                                               struct ggml_tensor *b, float limit);

// --- reductions, repetition, joining -------------------------------------------------------------

// Sums of floats are made in an order that is the device's: equal inputs give equal results on one
// device and number of threads, not bit by bit the same on others.

// Sum of all elements: [1], of a's type; of F16 and BF16 it is added up in F32 and rounded once.
// The order of the additions is the device's. Devices: F. [stream]
GGML_API struct ggml_tensor *ggml_sum(struct ggml_context *ctx, struct ggml_tensor *a);

// Sum or mean of each row: [1, ne1, ne2, ne3]. The sum has a's type, the mean is F32. Devices: F32.
// [stream]
GGML_API struct ggml_tensor *ggml_sum_rows(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_mean(struct ggml_context *ctx, struct ggml_tensor *a);

// Inclusive prefix sums along each row of F32, like a: result[i] = a[0] + ... + a[i]. [stream]
GGML_API struct ggml_tensor *ggml_cumsum(struct ggml_context *ctx, struct ggml_tensor *a);

// Index of the maximum of each row of a matrix: I32 [ne1]. Which of several equal ones is not
// defined (ggml 0.27 takes the last on the CPU). ne[0] is below 2^31. Devices: F32. [stream]
GGML_API struct ggml_tensor *ggml_argmax(struct ggml_context *ctx, struct ggml_tensor *a);

// Number of places at which a and b, of equal extents, agree: I64 [1]. Devices: I32. With
// ggml_argmax() of predictions and labels it counts right answers. [stream]
GGML_API struct ggml_tensor *ggml_count_equal(struct ggml_context *ctx, struct ggml_tensor *a,
                                              struct ggml_tensor *b);

// a tiled to b's extents, or to the given ones, of a's type:
//   result[i] = a[i mod a.ne]
// The extents are multiples of a's. b gives nothing but its extents and becomes no source.
// Operations that let b repeat do without it. Devices: any type. [stream]
GGML_API struct ggml_tensor *ggml_repeat(struct ggml_context *ctx, struct ggml_tensor *a,
                                         struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_repeat_4d(struct ggml_context *ctx, struct ggml_tensor *a,
                                            int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3);

// The reverse, and the gradient of it: sums all repetitions in a, so that the result has b's
// extents, of which a's are multiples. Devices: F32. [stream]
GGML_API struct ggml_tensor *ggml_repeat_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                              struct ggml_tensor *b);

// a and then b along dimension dim (0..3). Types and the other extents are equal; the result has
// a.ne[dim] + b.ne[dim] there. Devices: any type, coded ones in whole blocks. [stream]
GGML_API struct ggml_tensor *ggml_concat(struct ggml_context *ctx, struct ggml_tensor *a,
                                         struct ggml_tensor *b, int dim);

// --- normalisation -------------------------------------------------------------------------------

// Over each row, like a, without weights: multiply by a weight and add a bias with ggml_mul() and
// ggml_add(); devices fuse the three nodes if nothing else uses the ones between.
// Devices: F32. eps is added so that nothing is divided by 0, typically 1e-5 or 1e-6; a
// negative one is not refused and means what the formula makes of it.

// Layer norm: (x - mean) / sqrt(variance + eps), the variance being mean((x - mean)^2). [stream]
GGML_API struct ggml_tensor *ggml_norm(struct ggml_context *ctx, struct ggml_tensor *a, float eps);
GGML_API struct ggml_tensor *ggml_norm_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                               float eps);

// x / sqrt(mean(x^2) + eps). In place as all of them, and REUSE in op_list.inl: the allocator lets
// the result take a's memory by itself. [stream]
GGML_API struct ggml_tensor *ggml_rms_norm(struct ggml_context *ctx, struct ggml_tensor *a,
                                           float eps);
GGML_API struct ggml_tensor *ggml_rms_norm_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                                   float eps);

// x / max(sqrt(sum x^2), eps). [stream]
GGML_API struct ggml_tensor *ggml_l2_norm(struct ggml_context *ctx, struct ggml_tensor *a,
                                          float eps);
GGML_API struct ggml_tensor *ggml_l2_norm_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                                  float eps);

// ggml_norm() over whole groups of channels: dimension 2 holds the channels, a group is ceil(ne2 /
// n_groups) of them with their dimensions 0 and 1, and each ne[3] is by itself. n_groups is above
// 0; the last groups may be smaller or empty. [stream]
GGML_API struct ggml_tensor *ggml_group_norm(struct ggml_context *ctx, struct ggml_tensor *a,
                                             int n_groups, float eps);
GGML_API struct ggml_tensor *
ggml_group_norm_inplace(struct ggml_context *ctx, struct ggml_tensor *a, int n_groups, float eps);

// Gradient of rms_norm, like a, which is dy; b is x, of equal extents. Per row of n elements:
//   (a - b P / (S + n eps)) / sqrt(S / n + eps),  S = sum b^2,  P = sum a b
// [stream]
GGML_API struct ggml_tensor *ggml_rms_norm_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                                struct ggml_tensor *b, float eps);

// --- matrix products -----------------------------------------------------------------------------

// A feed-forward layer, and the same as a mixture of E experts of which each token takes U:
//
//     h = ggml_swiglu_split(ctx, ggml_mul_mat(ctx, w_gate, x), ggml_mul_mat(ctx, w_up, x));
//     y = ggml_mul_mat(ctx, w_down, h); // x and y are [n, T]
//
//     p = ggml_soft_max(ctx, ggml_mul_mat(ctx, w_router, x));            // [E, T]
//     ids = ggml_argsort_top_k(ctx, p, U);                               // [U, T]
//     x3 = ggml_reshape_3d(ctx, x, n, 1, T);                             // one input for all U
//     h = ggml_swiglu_split(ctx, ggml_mul_mat_id(ctx, w_gates, x3, ids), // [f, U, T]
//                           ggml_mul_mat_id(ctx, w_ups, x3, ids));
//     y3 = ggml_mul_mat_id(ctx, w_downs, h, ids);                        // [n, U, T]
//     p3 = ggml_get_rows(ctx, ggml_reshape_3d(ctx, p, 1, E, T), ids);    // [1, U, T]
//     y3 = ggml_mul(ctx, y3, p3); // then the sum over U: ggml_add() of ggml_view_2d() of each

// Matrix product of each row of a with each row of b: F32 [a.ne1, b.ne1, b.ne2, b.ne3],
//   result[i, j, p, q] = sum over t of a[t, i, p / r2, q / r3] b[t, j, p, q]
// with r2 = b.ne2 / a.ne2 and r3 = b.ne3 / a.ne3, which are whole numbers: batches of a are shared
// by neighbouring ones of b, as heads of a key are by the heads of its group. Both operands hold
// the summed index in dimension 0, so a.ne0 == b.ne0. A weight that maps k to m numbers is stored
// as [k, m] and comes first; tokens [k, n] come second and give [m, n]. In row-major terms that is
// B A^T. a must not be transposed (nb[0] <= nb[1]): use ggml_cont() first.
// Devices: a in F or coded (k in whole blocks), b in F or in the type that a's would be rounded
// with; dimension 0 of a packed, higher ones with any strides. Rounding: with a coded or in half
// precision devices may round b to match, to 8-bit blocks or to a's type; ggml_prec_set_src()
// limits that, ggml_prec_set_acc() what the sum is kept in. [stream]
GGML_API struct ggml_tensor *ggml_mul_mat(struct ggml_context *ctx, struct ggml_tensor *a,
                                          struct ggml_tensor *b);

// What a device may assume of a MUL_MAT node. GGML_HINT_SRC0_IS_HADAMARD: src0 is the Hadamard
// matrix of b's row length k, a power of two, times 1 / sqrt(k), in natural order, and may be
// replaced by a fast transform that does not read it. A hint that does not hold gives wrong results
// without a message. Another node, or an unknown hint, leaves a message and changes nothing.
// [stream]
GGML_API void ggml_mul_mat_set_hint(struct ggml_tensor *a, enum ggml_op_hint hint);

// Sets the least precise accumulator that may compute the result of a node: GGML_PREC_F32, _BF16
// (or better), _F16 (or better), or _UNDEFINED, the implementation's choice, which is the default.
// Asked for where sums overflow F16, as in the attention of some models. Returns false, changes
// nothing and leaves a message for other values, for NULL and for operations other than MUL_MAT,
// MUL_MAT_ID and FLASH_ATTN_EXT; false without a message for an error tensor. Call it before the
// graph is computed or planned. [stream]
GGML_API bool ggml_prec_set_acc(struct ggml_tensor *a, enum ggml_prec prec);

// Sets the coarsest representation that src[idx] may be converted to while the result is computed:
//   _UNDEFINED  the implementation's choice, the default
//   _F32        none: the source is used as it is, or as F32
//   _BF16, _F16 that type or better
//   _Q8, _Q4    8-bit blocks such as Q8_0 or better; 4-bit blocks or better
// A source that is coarser already stays as it is. Returns false, changes nothing and leaves a
// message for other values and for sources other than src[1] of MUL_MAT and MUL_MAT_ID. [stream]
GGML_API bool ggml_prec_set_src(struct ggml_tensor *a, enum ggml_prec prec, int idx);

// The same as ggml_prec_set_acc() for MUL_MAT nodes only; failures leave a message. [stream]
GGML_API GGML_DEPRECATED(void ggml_mul_mat_set_prec(struct ggml_tensor *a, enum ggml_prec prec),
                         "use ggml_prec_set_acc");

// Matrix product with the expert that an index picks, for mixtures of experts: F32 [m, U, T],
//   result[:, u, t] = as[:, :, ids[u, t]] times b[:, u mod r, t]
//   as [k, m, E]   E matrices of experts, not transposed
//   b [k, r, T]    r = 1: every expert of a token gets the same input; r = U: its own
//   ids I32 [U, T] U experts of each of T tokens, with values in [0, E); may be a strided view
// U is a multiple of r. An id out of range makes the compute fail (ggml 0.27 does not notice).
// The same expert twice for one token is undefined unless a device says otherwise. Types and
// rounding as ggml_mul_mat(). [stream]
GGML_API struct ggml_tensor *ggml_mul_mat_id(struct ggml_context *ctx, struct ggml_tensor *as,
                                             struct ggml_tensor *b, struct ggml_tensor *ids);

// Sum of outer products: F32 [a.ne0, b.ne0, b.ne2, b.ne3],
//   result[i, j, p, q] = sum over t of a[i, t, p / r2, q / r3] b[j, t, p, q]
// with a.ne1 == b.ne1, batches as in ggml_mul_mat() and a not transposed. It is the gradient of a
// product for its weight. Devices: a in F or coded, b in F. [stream]
GGML_API struct ggml_tensor *ggml_out_prod(struct ggml_context *ctx, struct ggml_tensor *a,
                                           struct ggml_tensor *b);

// --- views ---------------------------------------------------------------------------------------

// Views move no data: they are other extents or strides over the memory of a's owner (view_src,
// which is never itself a view: views of views refer to its owner directly). They need no memory of
// their own, are skipped when a graph is computed, and live as long as a graph or program needs
// them; the owner's memory must live as long. Offsets and strides are bytes, and whole blocks for
// coded types.
//
// A view is refused, as an error tensor, if its elements side by side would not fit into the owner.
// As in ggml its strides may reach beyond the end, because a view of it may be narrower; a stream
// then refuses to compute with it.

// Views move no data and share the memory of a's owner. One that would reach outside it is refused.

// a with other extents of as many elements, packed: those of b, of which nothing else is used, or
// the given ones. a must be contiguous: ggml_cont_2d() and its kin copy what is not. Named "NAME
// (reshaped)". [stream]
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

// A window of a: extents ne, strides nb1.. in bytes, its first element `offset` bytes after a's.
// Dimension 0 is packed. Strides that are not given are packed on the ones before: nb2 = nb1 ne1,
// nb3 = nb2 ne2. So row r of a matrix is view_1d(a, a->ne[0], r * a->nb[1]), and its columns
// c..c+n-1 are view_2d(a, n, a->ne[1], a->nb[1], c * a->nb[0]). Named "NAME (view)". [stream]
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

// Exchanges dimensions: dimension i of a becomes dimension axis_i of the result, with its stride.
// The axes are 0..3, each once. permute(a, 0, 2, 1, 3) turns [head, heads, tokens] into [head,
// tokens, heads]. Note the direction: axis_i says where dimension i goes, not where it comes from.
// [stream]
GGML_API struct ggml_tensor *ggml_permute(struct ggml_context *ctx, struct ggml_tensor *a,
                                          int axis0, int axis1, int axis2, int axis3);

// Dimensions 0 and 1 exchanged: permute(a, 1, 0, 2, 3). The result has strided rows: most
// operations need ggml_cont() of it. [stream]
GGML_API struct ggml_tensor *ggml_transpose(struct ggml_context *ctx, struct ggml_tensor *a);

// --- rows ----------------------------------------------------------------------------------------

// Gathers rows and decodes them: F32, or I32 if a is, of extents [a.ne0, b.ne0, b.ne1, b.ne2],
//   result[:, i, j, l] = a[:, b[i, j, l], j, l]
// b is I32 with b.ne3 == 1, a.ne2 == b.ne1 and a.ne3 == b.ne2. It is the look-up of an embedding: a
// [n, vocabulary], b [tokens]. A row out of range makes the compute fail. Devices: any type.
// [stream]
GGML_API struct ggml_tensor *ggml_get_rows(struct ggml_context *ctx, struct ggml_tensor *a,
                                           struct ggml_tensor *b);

// Gradient of get_rows: F32 [c.ne0, c.ne1], all zeros, to which the rows are then added:
//   result[:, b[i]] += a[:, i]
// a is a matrix of c's row length, b an I32 vector of at most a.ne1 indices, c a matrix that gives
// nothing but its extents. [stream]
GGML_API struct ggml_tensor *ggml_get_rows_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                                struct ggml_tensor *b, struct ggml_tensor *c);

// Scatters rows of b into a, encoding them, and returns a view of a:
//   a[:, c[i, j mod c.ne1, l mod c.ne2], j, l] = b[:, i, j, l]
//   a  [n, rows, B1, B2] of any type with an encoder, packed rows
//   b  [n, R, B1, B2], F32 or F16, packed rows
//   c  [R, c1, c2], I64 or I32, c1 and c2 dividing B1 and B2, values in [0, rows)
// Rows that c does not name stay as they are; of equal indices any one may win; an index out of
// range makes the compute fail. The usual write to a key cache. The node's sources are, in this
// order, b, c, a. [stream]
GGML_API struct ggml_tensor *ggml_set_rows(struct ggml_context *ctx, struct ggml_tensor *a,
                                           struct ggml_tensor *b, struct ggml_tensor *c);

// [ne0, ne0, ne2, ne3], of a's type: the row a (ne1 == 1) on the diagonal, 0 elsewhere. [stream]
GGML_API struct ggml_tensor *ggml_diag(struct ggml_context *ctx, struct ggml_tensor *a);

// The permutation that sorts each row: I32, a's extents; a[result[0]] comes first. The order of
// equal values is not defined. ne[0] is below 2^31. Devices: F32. [stream]
GGML_API struct ggml_tensor *ggml_argsort(struct ggml_context *ctx, struct ggml_tensor *a,
                                          enum ggml_sort_order order);

// Indices of the k largest of each row, the largest first: I32 [k, ne1, ne2, ne3], 0 <= k <= ne0. A
// view of an ARGSORT node, so with its strides. [stream]
GGML_API struct ggml_tensor *ggml_argsort_top_k(struct ggml_context *ctx, struct ggml_tensor *a,
                                                int k);

// The same in no order, as an operation of its own that need not sort. Devices: F32. [stream]
GGML_API struct ggml_tensor *ggml_top_k(struct ggml_context *ctx, struct ggml_tensor *a, int k);

// --- generators ----------------------------------------------------------------------------------

// Tensors that depend on numbers only. They are computed again with each graph.

// F32 vector of ceil((stop - start) / step) elements: start + step i. stop > start, step > 0.
// [stream]
GGML_API struct ggml_tensor *ggml_arange(struct ggml_context *ctx, float start, float stop,
                                         float step);

// Sinusoidal embedding of n timesteps (one dimension): F32 [dim, n]. With half = dim / 2 and f_j =
// max_period^(-j / half):
//   result[j] = cos(t f_j),  result[half + j] = sin(t f_j),  0 <= j < half
// An odd dim ends in a 0. max_period is typically 10000. [stream]
GGML_API struct ggml_tensor *ggml_timestep_embedding(struct ggml_context *ctx,
                                                     struct ggml_tensor *timesteps, int dim,
                                                     int max_period);

// --- softmax -------------------------------------------------------------------------------------

// Attention in single steps: for gradients, and where ggml_flash_attn_ext() has no kernel for a
// shape.

// Per row: exp(a - max a) / sum exp(a - max a), like a, which is contiguous. Devices: F32. [stream]
GGML_API struct ggml_tensor *ggml_soft_max(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_soft_max_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// Soft max of scaled and masked scores, like a, which is contiguous:
//   a         [KV, N, H, B]: scores of keys, for each token, head and sequence
//   mask      contiguous F32 or F16 [KV, >= N, m2, m3], m2 and m3 dividing H and B, or NULL;
//             -infinity hides an element
//   scale     typically 1 / sqrt(head size)
//   max_bias  0, or of ALiBi, typically 8; needs a mask then
//   z = scale a + slope(h) mask[:, n, h mod m2, b mod m3],  result = soft max of each row of z
// slope is 1, or with max_bias > 0, of H heads and L = 2^floor(log2 H),
//   h < L:  2^(-max_bias (h + 1) / L)      else:  2^(-max_bias (2 (h - L) + 1) / (2 L))
// A row that is masked as a whole gives NaN, unlike in ggml_flash_attn_ext(). [stream]
GGML_API struct ggml_tensor *ggml_soft_max_ext(struct ggml_context *ctx, struct ggml_tensor *a,
                                               struct ggml_tensor *mask, float scale,
                                               float max_bias);
GGML_API struct ggml_tensor *ggml_soft_max_ext_inplace(struct ggml_context *ctx,
                                                       struct ggml_tensor *a,
                                                       struct ggml_tensor *mask, float scale,
                                                       float max_bias);

// Adds exp(sinks[h] - max) to the denominator of a SOFT_MAX node, the maximum being over the sink
// too: an attention that goes nowhere. sinks is F32 with one value per head (ne[2] of the operand);
// NULL removes them. Any other node, or one that has some, leaves a message and changes nothing;
// with wrong sinks, or such that are in error, graphs refuse the node. Becomes src[2]: call it
// before the node is added to a graph. [stream]
GGML_API void ggml_soft_max_add_sinks(struct ggml_tensor *a, struct ggml_tensor *sinks);

// Gradient: scale b (a - sum a b) per row, like a, which is dy; b is y. Devices compute it for
// max_bias 0 only. [stream]
GGML_API struct ggml_tensor *ggml_soft_max_ext_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                                    struct ggml_tensor *b, float scale,
                                                    float max_bias);
GGML_API struct ggml_tensor *ggml_soft_max_ext_back_inplace(struct ggml_context *ctx,
                                                            struct ggml_tensor *a,
                                                            struct ggml_tensor *b, float scale,
                                                            float max_bias);

// --- rotary position -----------------------------------------------------------------------------

// Rotates pairs of channels of each head by an angle that grows with the position, so that products
// of rotated rows depend on distances only. a is [head size, heads, tokens, ..]; b is an I32 vector
// of positions. With pair i of n_dims / 2 and position p:
//
//   angle = p freq_base^(-2i / n_dims) / c[i] freq_scale
//   (x0, x1) becomes m (x0 cos - x1 sin, x0 sin + x1 cos)
//
//   GGML_ROPE_TYPE_   pair i is channels                    positions per token
//   NORMAL            2i and 2i + 1                         1
//   NEOX              i and i + n_dims / 2                  1
//   MROPE, IMROPE     as NEOX                               4, by sections
//   VISION            i and i + n_dims, n_dims = ne0 / 2    4, by sections
//
// Channels above n_dims are copied. Positions of several components come as all t, then all h, all
// w, all e. Devices: F32 and F16. A mode that no device knows is found out by supports_op, not
// here.

// Like a, with base 10000, scale 1 and no factors. n_dims: channels to rotate, even, at most ne[0].
// mode: GGML_ROPE_TYPE_*. [stream]
GGML_API struct ggml_tensor *ggml_rope(struct ggml_context *ctx, struct ggml_tensor *a,
                                       struct ggml_tensor *b, int n_dims, int mode);
GGML_API struct ggml_tensor *ggml_rope_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                               struct ggml_tensor *b, int n_dims, int mode);

// The same with all parameters.
//   c            F32 divisors of the frequencies, at least n_dims / 2 of them, or NULL: all 1
//   n_ctx_orig   context length that the model was trained for, for the ramp below
//   freq_base    typically 10000 to 1000000
//   freq_scale   1, or the reciprocal of a linear scaling of the context
//   ext_factor   0, or YaRN: how much of the unscaled angle is mixed in by a ramp over the pairs
//                between ggml_rope_yarn_corr_dims(); then m is multiplied by
//                1 + 0.1 ln(1 / freq_scale)
//   attn_factor  m, the magnitude, typically 1
//   beta_fast, beta_slow  ends of the ramp in rotations, typically 32 and 1
// [stream]
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

// Older names of the same without c. [stream]
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

// The same for positions with four components (time, height, width, extra). sections: how many
// consecutive pairs follow t, h, w and e; after their sum, which is above 0, it starts again. MROPE
// gives them out in a row, IMROPE interleaves t, h and w, VISION restarts the frequencies in each.
// sections NULL: an error tensor. [stream]
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

// Rotates back: the gradient, with a being dy. All other arguments as in the forward call. [stream]
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

// Lets a ROPE or ROPE_BACK node rotate from channel n_offs on instead of 0. n_offs is even and
// n_offs + n_dims at most ne[0]; not in VISION mode. Returns the node, or an error tensor and the
// node as it was. [stream]
GGML_API struct ggml_tensor *ggml_rope_set_offset(struct ggml_tensor *a, int n_offs);

// Where YaRN's ramp starts and ends, in pairs:
//   dims[0] = max(0, floor d(beta_fast)),  dims[1] = min(n_dims - 1, ceil d(beta_slow))
//   d(x) = n_dims ln(n_ctx_orig / (2 pi x)) / (2 ln freq_base)
// NULL dims leave a message. [any-thread]
GGML_API void ggml_rope_yarn_corr_dims(int n_dims, int n_ctx_orig, float freq_base, float beta_fast,
                                       float beta_slow, float dims[2]);

// --- attention -----------------------------------------------------------------------------------

// One layer over a cache, for tokens at positions of the I32 vector `pos`, in a model with H heads
// of DK channels of which Hk are kept:
//
//     q = ggml_reshape_3d(ctx, ggml_mul_mat(ctx, wq, x), DK, H, T);
//     q = ggml_rope_ext(ctx, q, pos, NULL, DK, GGML_ROPE_TYPE_NEOX, 0, 10000, 1, 0, 1, 32, 1);
//     k = ggml_reshape_3d(ctx, ggml_mul_mat(ctx, wk, x), DK, Hk, T);
//     k = ggml_rope_ext(ctx, k, pos, NULL, DK, GGML_ROPE_TYPE_NEOX, 0, 10000, 1, 0, 1, 32, 1);
//     v = ggml_mul_mat(ctx, wv, x); // [DK Hk, T]
//     // rows idx of the caches [DK Hk, KV] get the new keys and values, whatever the caches' type
//     k_all = ggml_set_rows(ctx, k_cache, ggml_reshape_2d(ctx, k, DK * Hk, T), idx);
//     v_all = ggml_set_rows(ctx, v_cache, v, idx);
//     k_all = ggml_reshape_3d(ctx, k_all, DK, Hk, KV); // a cache [DK Hk, KV] as heads
//     v_all = ggml_reshape_3d(ctx, v_all, DK, Hk, KV);
//     out = ggml_flash_attn_ext(ctx, ggml_permute(ctx, q, 0, 2, 1, 3),     // [DK, T, H]
//                               ggml_permute(ctx, k_all, 0, 2, 1, 3),      // [DK, KV, Hk]
//                               ggml_permute(ctx, v_all, 0, 2, 1, 3),      // likewise
//                               mask, 1.0f / sqrtf(DK), 0.0f, 0.0f);       // [DK, H, T]
//     x = ggml_add(ctx, x, ggml_mul_mat(ctx, wo, ggml_reshape_2d(ctx, out, DK * H, T)));
//
// mask [KV, T] is an input in F16, with -infinity where a token must not look.

// Attention without the matrix of scores in memory: F32 [DV, H, N, B] (heads and tokens change
// places).
//   q     F32 [DK, N, H, B]
//   k     [DK, KV, Hk, B], v [DV, >= KV, Hv, B], not transposed; H is a multiple of Hk and Hv
//   mask  contiguous F16 [>= KV, >= N, m2, m3], m2 and m3 dividing H and B, or NULL
//   s[j] = scale <q[:, n, h, b], k[:, j, h / (H / Hk), b]>
//   s[j] = logit_softcap tanh(s[j] / logit_softcap), if logit_softcap is not 0
//   s[j] = s[j] + slope(h) mask[j, n, h mod m2, b mod m3], slope as in ggml_soft_max_ext()
//   result[:, h, n, b] = sum over j of softmax(s)[j] v[:, j, h / (H / Hv), b]
// scale is typically 1 / sqrt(DK); max_bias > 0 needs a mask. A row that is masked as a whole gives
// zeros. Devices: k and v in F or coded, dimension 0 packed, higher ones with any strides, so that
// views of a cache do. [stream]
GGML_API struct ggml_tensor *ggml_flash_attn_ext(struct ggml_context *ctx, struct ggml_tensor *q,
                                                 struct ggml_tensor *k, struct ggml_tensor *v,
                                                 struct ggml_tensor *mask, float scale,
                                                 float max_bias, float logit_softcap);

// The least precise accumulator of a FLASH_ATTN_EXT node: see ggml_prec_set_acc(). Another node
// leaves a message. [stream]
GGML_API GGML_DEPRECATED(void ggml_flash_attn_ext_set_prec(struct ggml_tensor *a,
                                                           enum ggml_prec prec),
                         "use ggml_prec_set_acc");

// What was set; GGML_PREC_UNDEFINED by default, and with a message for another node. [stream]
GGML_API enum ggml_prec ggml_flash_attn_ext_get_prec(const struct ggml_tensor *a);

// Promises that no row of the mask of a FLASH_ATTN_EXT node has more than n_kv_max finite entries,
// so that a device may skip the other keys; 0 promises nothing. Another node, or a negative number,
// leaves a message. [stream]
GGML_API void ggml_flash_attn_ext_set_n_kv_max(struct ggml_tensor *a, int32_t n_kv_max);

// Sinks of a FLASH_ATTN_EXT node, as ggml_soft_max_add_sinks(): F32, one per head of q. Becomes
// src[4]. [stream]
GGML_API void ggml_flash_attn_ext_add_sinks(struct ggml_tensor *a, struct ggml_tensor *sinks);

// Not supported: always an error tensor (ggml 0.27 aborts). Build attention from products and
// ggml_soft_max_ext() where gradients are needed. [stream]
GGML_API struct ggml_tensor *ggml_flash_attn_back(struct ggml_context *ctx, struct ggml_tensor *q,
                                                  struct ggml_tensor *k, struct ggml_tensor *v,
                                                  struct ggml_tensor *d, bool masked);

// Scores of keys for sparse attention: F32 [KV, T, 1, S],
//   result[j, t, 0, s] = sum over h of max(0, <q[:, h, t, s], k[:, 0, j, s]>) weights[h, t, 0, s]
//                        + mask[j, t, 0, s mod m3]
// q F32 [D, H, T, S], k [D, 1, KV, S] in F or coded, weights F32 [H, T, 1, S], mask F16 [KV, T, 1,
// m3] with m3 dividing S. ggml_top_k() of the result picks the keys. [stream]
GGML_API struct ggml_tensor *ggml_lightning_indexer(struct ggml_context *ctx, struct ggml_tensor *q,
                                                    struct ggml_tensor *k,
                                                    struct ggml_tensor *weights,
                                                    struct ggml_tensor *mask);

// --- recurrent -----------------------------------------------------------------------------------

// Layers that carry a state from token to token instead of attending to all of them. Each returns
// its outputs and, behind them in the same tensor, the new states: take them apart by ggml_view_*()
// and copy the states to where the next call finds them. All F32.

// Causal convolution of each channel by its own kernel: F32 [d_inner, T, S],
//   result[i, t, s] = sum over k of sx[t + k, i, s] c[k, i]
// sx is [d_conv - 1 + T, d_inner, S]: the last d_conv - 1 inputs before, then the new ones; c is
// [d_conv, d_inner]. [stream]
GGML_API struct ggml_tensor *ggml_ssm_conv(struct ggml_context *ctx, struct ggml_tensor *sx,
                                           struct ggml_tensor *c);

// Selective scan (Mamba).
//   s    [N, P, H, states]  contiguous; N state size, P head size, H heads
//   x    [P, H, T, S]       T tokens of S sequences
//   dt   [H, T, S]          contiguous
//   A    [1, H] (Mamba-2), or [N, H] (Mamba-1, K must be 1); contiguous
//   B, C [N, G, T, S]       shared by the H / G heads of a group
//   ids  I32 [S]            which of the states each sequence starts from
// Per token, with D = softplus(dt):
//   state = state exp(D A) + B (x D);  y = sum over n of state C
// Returns an F32 vector: y [P, H, T, S], then K states [N, P, H, S], the newest first; those older
// than the sequence are not written. x, B and C are packed in dimensions 0 and 1; K >= 1. [stream]
GGML_API struct ggml_tensor *ggml_ssm_scan(struct ggml_context *ctx, struct ggml_tensor *s,
                                           struct ggml_tensor *x, struct ggml_tensor *dt,
                                           struct ggml_tensor *A, struct ggml_tensor *B,
                                           struct ggml_tensor *C, struct ggml_tensor *ids,
                                           int64_t K);

// Linear attention with a decay that depends on the data (RWKV 6). k, v, r, td are contiguous [S,
// H, T], tf is [S, H], state has S S H n_seqs elements in ne[1] = n_seqs rows; T / n_seqs tokens
// belong to each sequence. Per head and token, state s[i, j] with key i and value j:
//   out[j] = sum over i of r[i] (tf[i] k[i] v[j] + s[i, j]);  s[i, j] = s[i, j] td[i] + k[i] v[j]
// Returns F32 [S H, T + S n_seqs]: T rows of outputs, then the new states in the order of the old.
// [stream]
GGML_API struct ggml_tensor *ggml_rwkv_wkv6(struct ggml_context *ctx, struct ggml_tensor *k,
                                            struct ggml_tensor *v, struct ggml_tensor *r,
                                            struct ggml_tensor *tf, struct ggml_tensor *td,
                                            struct ggml_tensor *state);

// As ggml_rwkv_wkv6() with g in place of td and the new state read:
//   s[i, j] = s[i, j] g[i] + k[i] v[j];  out[j] = scale sum over i of q[i] s[i, j]
// [stream]
GGML_API struct ggml_tensor *ggml_gated_linear_attn(struct ggml_context *ctx, struct ggml_tensor *k,
                                                    struct ggml_tensor *v, struct ggml_tensor *q,
                                                    struct ggml_tensor *g,
                                                    struct ggml_tensor *state, float scale);

// RWKV 7, with shapes as ggml_rwkv_wkv6(). State s[i, j] with value i and key j:
//   s[i, j] = s[i, j] w[j] + v[i] k[j] + (sum over l of a[l] s[i, l]) b[j];
//   out[i] = sum over j of s[i, j] r[j], of the new s
// [stream]
GGML_API struct ggml_tensor *ggml_rwkv_wkv7(struct ggml_context *ctx, struct ggml_tensor *r,
                                            struct ggml_tensor *w, struct ggml_tensor *k,
                                            struct ggml_tensor *v, struct ggml_tensor *a,
                                            struct ggml_tensor *b, struct ggml_tensor *state);

// Gated delta rule.
//   q, k   [S, Hq, T, Bq]  packed rows; head h of v uses head h mod Hq, sequences share by division
//   v      [S, H, T, B]    packed rows
//   g      [1 or S, H, T, B]  logarithm of the decay, of a head or of each key channel
//   beta   [1, H, T, B]
//   state  S S H B elements, contiguous [S, S, H, B], stored with the key index fastest
// Per head and token, state s[i][j] with key i and value j:
//   s *= exp(g);  d[j] = (v[j] - sum over i of k[i] s[i][j]) beta;  s[i][j] += k[i] d[j];
//   out[j] = sum over i of q[i] s[i][j] / sqrt(S)
// Returns F32 [S H, T B + K S B]: outputs, then K >= 1 states, the newest first; with T < K only
// the first T of them are defined, with T > K only the newest one. [stream]
GGML_API struct ggml_tensor *ggml_gated_delta_net(struct ggml_context *ctx, struct ggml_tensor *q,
                                                  struct ggml_tensor *k, struct ggml_tensor *v,
                                                  struct ggml_tensor *g, struct ggml_tensor *beta,
                                                  struct ggml_tensor *state, int64_t K);

// Solves a X = b for X, like b, by forward substitution; a is lower triangular [n, n, ..], what
// lies above its diagonal is not read; b is [k, n, ..] with a's batches. Both contiguous F32. Only
// left = true, lower = true, uni = false is supported, else an error tensor. A zero on the diagonal
// gives infinities or NaN. [stream]
GGML_API struct ggml_tensor *ggml_solve_tri(struct ggml_context *ctx, struct ggml_tensor *a,
                                            struct ggml_tensor *b, bool left, bool lower, bool uni);

// Hyper-connections mix hc parallel residual streams between layers. comb returns the matrix by
// which they are mixed, F32 [4, 4, T] (to, from, token), hc being 4: rows 8..23 of mixes [24, T]
// times scale[2] plus base [24], a soft max over "to", then made doubly stochastic in n_iter > 0
// rounds of dividing by sums plus eps. scale has at least 3 elements. [stream]
GGML_API struct ggml_tensor *ggml_dsv4_hc_comb(struct ggml_context *ctx, struct ggml_tensor *mixes,
                                               struct ggml_tensor *scale, struct ggml_tensor *base,
                                               float eps, int32_t n_iter);

// Weighted sum of the streams: F32 [E, T], result[:, t] = sum over h of x[:, h, t] weights[h, t]. x
// is [E, hc, T], weights [hc, T]. [stream]
GGML_API struct ggml_tensor *ggml_dsv4_hc_pre(struct ggml_context *ctx, struct ggml_tensor *x,
                                              struct ggml_tensor *weights);

// The same with a gate per element, of x's extents: result[i, t] = scale sum over h of x[i, h, t]
// sigmoid(gate[i, h, t]). [stream]
GGML_API struct ggml_tensor *ggml_dsv4_hc_pre_gated(struct ggml_context *ctx, struct ggml_tensor *x,
                                                    struct ggml_tensor *gate, float scale);

// Hands a layer's output x [E, T] back to the streams and mixes them: F32 [E, hc, T],
//   result[:, d, t] = x[:, t] post[d, t] + sum over s of residual[:, s, t] comb[d, s, t]
// residual is [E, hc, T], post [hc, T], comb [hc, hc, T] or NULL, the identity. [stream]
GGML_API struct ggml_tensor *ggml_dsv4_hc_post(struct ggml_context *ctx, struct ggml_tensor *x,
                                               struct ggml_tensor *residual,
                                               struct ggml_tensor *post, struct ggml_tensor *comb);

// --- custom operations ---------------------------------------------------------------------------

// For what no operation does; it runs on the CPU only. An example, each task with its share of the
// rows:
//
//     static void halve(struct ggml_tensor *dst, const struct ggml_tensor *a, int ith, int nth,
//                       void *userdata) {
//         const int64_t rows = ggml_nrows(a), n = a->ne[0]; // packed F32, as this program makes it
//         const float *x = a->data;
//         float *y = dst->data;
//         for (int64_t i = rows * ith / nth * n; i < rows * (ith + 1) / nth * n; ++i)
//             y[i] = 0.5f * x[i];
//     }
//     y = ggml_map_custom1(ctx, x, halve, GGML_N_TASKS_MAX, NULL);

// What a custom operation calls: dst is the node, a to c its sources, all in host memory with data;
// the general form reads them from dst->src[]. Task ith of nth does its part of the work and no
// other's; several run at once. Writes nothing but dst's data (and that of other operands in place,
// where the program knows that nothing reads them). There is no way to fail: what can't be computed
// is for the function to mark in its data.
typedef void (*ggml_custom1_op_t)(struct ggml_tensor *dst, const struct ggml_tensor *a, int ith,
                                  int nth, void *userdata);
typedef void (*ggml_custom2_op_t)(struct ggml_tensor *dst, const struct ggml_tensor *a,
                                  const struct ggml_tensor *b, int ith, int nth, void *userdata);
typedef void (*ggml_custom3_op_t)(struct ggml_tensor *dst, const struct ggml_tensor *a,
                                  const struct ggml_tensor *b, const struct ggml_tensor *c, int ith,
                                  int nth, void *userdata);
typedef void (*ggml_custom_op_t)(struct ggml_tensor *dst, int ith, int nth, void *userdata);

// Lets `fun` compute the node, on the CPU: other devices decline it, and the scheduler brings the
// operands to host memory. Like a, or a view of a. fun is called once per task ith of nth <=
// n_tasks, concurrently from threads of the pool; n_tasks is positive or GGML_N_TASKS_MAX, as many
// as there are threads. (ggml 0.27 calls it on every thread of the graph, whatever n_tasks is:
// functions for both check ith.) fun and userdata stay the caller's and must live until the last
// compute. fun NULL gives an error tensor. [stream]
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

// The same with n_args < 10 operands, none NULL, and a result of its own type and extents. args is
// needed during the call only. [stream]
GGML_API struct ggml_tensor *ggml_custom_4d(struct ggml_context *ctx, enum ggml_type type,
                                            int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3,
                                            struct ggml_tensor **args, int n_args,
                                            ggml_custom_op_t fun, int n_tasks, void *userdata);

// The same with a and n_args < 9 further operands; returns a view of a. [stream]
GGML_API struct ggml_tensor *ggml_custom_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                                 struct ggml_tensor **args, int n_args,
                                                 ggml_custom_op_t fun, int n_tasks, void *userdata);

// --- training ------------------------------------------------------------------------------------

// Used by ggml-opt.h. Gradients of other operations are built by ggml_build_backward_expand().

// Scalar of a's type: -1 / rows times the sum over all rows of sum b log softmax(a). a are logits,
// b target probabilities, of equal extents. Devices: F32. [stream]
GGML_API struct ggml_tensor *ggml_cross_entropy_loss(struct ggml_context *ctx,
                                                     struct ggml_tensor *a, struct ggml_tensor *b);

// Its gradient, like b: (softmax(b) - c) a / rows. a is the scalar dy, b the logits, c the targets,
// whose rows sum up to 1. Note that the operands have moved by one. [stream]
GGML_API struct ggml_tensor *ggml_cross_entropy_loss_back(struct ggml_context *ctx,
                                                          struct ggml_tensor *a,
                                                          struct ggml_tensor *b,
                                                          struct ggml_tensor *c);

// One step of AdamW on parameter a, in place; returns a view of a, which ggml_set_param() has
// marked (else an error tensor). With adamw_params F32 {alpha, beta1, beta2, eps, wd, b1, b2},
// where b1 = 1 / (1 - beta1^t) and b2 = 1 / (1 - beta2^t) at step t from 1 on:
//   m = m beta1 + grad (1 - beta1);  v = v beta2 + grad^2 (1 - beta2)
//   a = a (1 - alpha wd) - alpha m b1 / (sqrt(v b2) + eps)
// grad, m and v have a's extents; m and v are updated in place though they are sources. [stream]
GGML_API struct ggml_tensor *ggml_opt_step_adamw(struct ggml_context *ctx, struct ggml_tensor *a,
                                                 struct ggml_tensor *grad, struct ggml_tensor *m,
                                                 struct ggml_tensor *v,
                                                 struct ggml_tensor *adamw_params);

// One step of gradient descent: a = a (1 - alpha wd) - alpha grad, with sgd_params F32 {alpha, wd}.
// Otherwise as ggml_opt_step_adamw(). [stream]
GGML_API struct ggml_tensor *ggml_opt_step_sgd(struct ggml_context *ctx, struct ggml_tensor *a,
                                               struct ggml_tensor *grad,
                                               struct ggml_tensor *sgd_params);

#ifdef __cplusplus
}
#endif

#endif
