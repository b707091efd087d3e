// SPDX-License-Identifier: MIT
// clang-format off
// Every graph operation, once. Numbers are part of the binary contract: explicit, append-only.
//
// GGML_OP_ROW(number, NAME, symbol, min, max, type, shape, cost, flops, flags, builders, since, more)
//   number    value of GGML_OP_<NAME>
//   symbol    what ggml_op_symbol() returns
//   min, max  sources; slots from min up may be empty
//   type      rule op_type_<type>: checks the types of the sources, sets the type of the result
//   shape     rule op_shape_<shape>: checks extents, strides and parameters, sets the extents of the
//             result
//   cost      rule op_cost_<cost>: floating-point operations and bytes moved
//   flops     operations per unit of the cost rule
//   flags     GGML_OP_FLAG_<flags>: NONE; REUSE: the result may take the memory of a source with its
//             layout; VIEW: no data moves; ALIAS: always writes into the memory of a source; HOST:
//             calls a function of the application. REUSE and ALIAS of an operation never change.
//   builders  public functions that make it, without "ggml_"; "(+inplace)": there is a form that
//             writes into its first operand
//   since     minor of the contract that it came with
//   more      nothing, or, without commas between them,
//             GGML_OP_PARAM("type name", word, n, since): n 32-bit words of op_params from `word` on
//             GGML_OP_SRC(slot, since): a source that came after the operation
//             GGML_OP_VALUES(word, first, n, set, since): bits `first` to first + n - 1 of a word are a
//             number from a list or flags, and bit v of `set` says that v has a meaning; numbers from 64
//             on have none. A second row for the same bits adds values of a later minor.
//
// Above each row stands what it computes: x, y are the first two sources, [..] the result or its
// index; what is not said is like x. ggml-op.h has shapes, types and limits.
//
// Why a list: enum, names, checks, cost, documents and plugins' own questions (ggml-shape.h) are made of
// it, so an operation that one of them lacks does not link. docs/writing-a-plugin.md uses it too.
//
// A host gives a node to a plugin of minor m only if nothing in it has a `since` above m, and a plugin
// declines a node with what its own lists don't have (ggml_node_is_known): GGML_CONTRACT_MINOR goes up
// with each addition, here and in the lists of sub-operations, types and tensor flags.
#ifndef GGML_OP_PARAM
#define GGML_OP_PARAM(text, word, n, since)
#endif
#ifndef GGML_OP_SRC
#define GGML_OP_SRC(slot, since)
#endif
#ifndef GGML_OP_VALUES
#define GGML_OP_VALUES(word, first, n, set, since)
#endif
// a leaf: nothing computes it
GGML_OP_ROW(0, NONE, "none", 0, 0, given, given, none, 0, NONE, "new_tensor*", 0, )
// [i] = x[i], packed
GGML_OP_ROW(1, DUP, "x", 1, 1, same, same, elements, 0, NONE, "dup (+inplace)", 0, )
// x + y, y repeats; with a type of its own for add_cast
GGML_OP_ROW(2, ADD, "x+y", 2, 2, add, broadcast, elements, 1, REUSE, "add (+inplace), add_cast", 0, )
// [:, u, t] = x[:, u, t] + y[:, ids[u, t]]
GGML_OP_ROW(3, ADD_ID, "x[i]+y", 3, 3, add_id, add_id, elements, 1, NONE, "add_id", 0, )
// x + y[0]
GGML_OP_ROW(4, ADD1, "x+y", 2, 2, same, add1, elements, 1, REUSE, "add1 (+inplace)", 0, )
// x, with y added to the region at `offset` with strides nb1..nb3 (bytes)
GGML_OP_ROW(5, ACC, "view(x,nb,offset)+=y->x", 2, 2, acc, region, region, 1, NONE, "acc (+inplace)", 0,
            GGML_OP_PARAM("i32 nb1", 0, 1, 0) // stride in bytes of the region, as the next two
            GGML_OP_PARAM("i32 nb2", 1, 1, 0) // bytes
            GGML_OP_PARAM("i32 nb3", 2, 1, 0) // bytes
            GGML_OP_PARAM("i32 offset", 3, 1, 0) // of the region, in bytes from the first element
            GGML_OP_PARAM("i32 inplace", 4, 1, 0) // 1: the result is a view of source 0
            GGML_OP_VALUES(4, 0, 32, 0x3, 0)) // 0, 1
// x - y, y repeats
GGML_OP_ROW(6, SUB, "x-y", 2, 2, same, broadcast, elements, 1, REUSE, "sub (+inplace)", 0, )
// x y, y repeats
GGML_OP_ROW(7, MUL, "x*y", 2, 2, same, broadcast, elements, 1, REUSE, "mul (+inplace)", 0, )
// x / y, y repeats
GGML_OP_ROW(8, DIV, "x/y", 2, 2, same, broadcast, elements, 1, REUSE, "div (+inplace)", 0, )
// x^2
GGML_OP_ROW(9, SQR, "x^2", 1, 1, same, same, elements, 1, REUSE, "sqr (+inplace)", 0, )
// square root of x
GGML_OP_ROW(10, SQRT, "√x", 1, 1, same, same, elements, 1, REUSE, "sqrt (+inplace)", 0, )
// natural logarithm of x
GGML_OP_ROW(11, LOG, "log(x)", 1, 1, same, same, elements, 1, REUSE, "log (+inplace)", 0, )
// sin x, radians
GGML_OP_ROW(12, SIN, "sin(x)", 1, 1, same, same, elements, 1, NONE, "sin (+inplace)", 0, )
// cos x, radians
GGML_OP_ROW(13, COS, "cos(x)", 1, 1, same, same, elements, 1, NONE, "cos (+inplace)", 0, )
// [1]: sum of all elements
GGML_OP_ROW(14, SUM, "Σx", 1, 1, same, scalar, source, 1, NONE, "sum", 0, )
// [1, ..]: sum of each row
GGML_OP_ROW(15, SUM_ROWS, "Σx_k", 1, 1, same, row_reduction, source, 1, NONE, "sum_rows", 0, )
// [i] = x[0] + ... + x[i] of each row
GGML_OP_ROW(16, CUMSUM, "cumsum(x)", 1, 1, same_f32, same, elements, 1, NONE, "cumsum", 0, )
// [1, ..]: mean of each row
GGML_OP_ROW(17, MEAN, "Σx/n", 1, 1, f32, row_reduction, source, 1, NONE, "mean", 0, )
// [ne1]: index of each row's maximum
GGML_OP_ROW(18, ARGMAX, "argmax(x)", 1, 1, i32, argmax, source, 1, NONE, "argmax", 0, )
// [1]: places at which x and y agree
GGML_OP_ROW(19, COUNT_EQUAL, "count_equal(x)", 2, 2, i64, count_equal, source, 1, NONE,
            "count_equal", 0, )
// x[i mod x.ne], the extents given by the builder
GGML_OP_ROW(20, REPEAT, "repeat(x)", 1, 1, same, repeat, elements, 0, NONE, "repeat, repeat_4d", 0, )
// sum of all repetitions in x, down to the given extents
GGML_OP_ROW(21, REPEAT_BACK, "repeat_back(x)", 1, 1, same, repeat_back, source, 1, NONE,
            "repeat_back", 0, )
// x, then y, along dimension dim
GGML_OP_ROW(22, CONCAT, "concat(x, y)", 2, 2, both_same, concat, elements, 0, NONE, "concat", 0,
            GGML_OP_PARAM("i32 dim", 0, 1, 0)) // dimension 0 to 3
// x s (1 + y (1 - s)), s = sigmoid(y); x is dy
GGML_OP_ROW(23, SILU_BACK, "silu_back(x)", 2, 2, same, same_pair, elements, 8, REUSE, "silu_back", 0, )
// (x - mean) / sqrt(variance + eps) of each row
GGML_OP_ROW(24, NORM, "norm(x)", 1, 1, same, norm, elements, 7, NONE, "norm (+inplace)", 0,
            GGML_OP_PARAM("f32 eps", 0, 1, 0)) // against division by 0
// x / sqrt(mean(x^2) + eps) of each row
GGML_OP_ROW(25, RMS_NORM, "rms_norm(x)", 1, 1, same, norm, elements, 4, REUSE,
            "rms_norm (+inplace)", 0,
            GGML_OP_PARAM("f32 eps", 0, 1, 0)) // against division by 0
// its gradient; x is dy, y the input
GGML_OP_ROW(26, RMS_NORM_BACK, "rms_norm_back(x)", 2, 2, same, norm_back, elements, 8, REUSE,
            "rms_norm_back", 0,
            GGML_OP_PARAM("f32 eps", 0, 1, 0)) // against division by 0
// NORM over groups of ceil(ne2 / n_groups) channels (dimension 2)
GGML_OP_ROW(27, GROUP_NORM, "group_norm(x)", 1, 1, same, group_norm, elements, 7, NONE,
            "group_norm (+inplace)", 0,
            GGML_OP_PARAM("i32 n_groups", 0, 1, 0) // above 0
            GGML_OP_PARAM("f32 eps", 1, 1, 0)) // against division by 0
// x / max(sqrt(sum x^2), eps) of each row
GGML_OP_ROW(28, L2_NORM, "l2_norm(x)", 1, 1, same, norm, elements, 4, NONE, "l2_norm (+inplace)", 0,
            GGML_OP_PARAM("f32 eps", 0, 1, 0)) // against division by 0
// [i, j, p, q] = sum over t of x[t, i, p / r2, q / r3] y[t, j, p, q]
GGML_OP_ROW(29, MUL_MAT, "X*Y", 2, 2, f32, mul_mat, mul_mat, 2, NONE,
            "mul_mat, prec_set_acc, prec_set_src, mul_mat_set_prec, mul_mat_set_hint", 0,
            GGML_OP_PARAM("i32 prec_acc", 0, 1, 0) // enum ggml_prec of the accumulator
            GGML_OP_VALUES(0, 0, 32, 0x108401, 0) // 0, 10, 15, 20
            GGML_OP_PARAM("i32 hint", 1, 1, 0) // enum ggml_op_hint, which may be ignored
            GGML_OP_PARAM("i32 prec_src1", 3, 1, 0) // coarsest enum ggml_prec of source 1
            GGML_OP_VALUES(3, 0, 32, 0x10040108401, 0)) // 0, 10, 15, 20, 30, 40
// [:, u, t] = product of expert x[:, :, ids[u, t]] and y[:, u mod y.ne1, t]
GGML_OP_ROW(30, MUL_MAT_ID, "X[i]*Y", 3, 3, mul_mat_id, mul_mat_id, mul_mat_id, 2, NONE,
            "mul_mat_id, prec_set_acc, prec_set_src", 0,
            GGML_OP_PARAM("i32 prec_acc", 0, 1, 0) // enum ggml_prec of the accumulator
            GGML_OP_VALUES(0, 0, 32, 0x108401, 0) // 0, 10, 15, 20
            GGML_OP_PARAM("i32 prec_src1", 3, 1, 0) // coarsest enum ggml_prec of source 1
            GGML_OP_VALUES(3, 0, 32, 0x10040108401, 0)) // 0, 10, 15, 20, 30, 40
// [i, j, p, q] = sum over t of x[i, t, p / r2, q / r3] y[j, t, p, q]
GGML_OP_ROW(31, OUT_PROD, "X*Y", 2, 2, f32, out_prod, out_prod, 2, NONE, "out_prod", 0, )
// scale x + bias
GGML_OP_ROW(32, SCALE, "x*v", 1, 1, same, scale, elements, 2, REUSE,
            "scale (+inplace), scale_bias (+inplace)", 0,
            GGML_OP_PARAM("f32 scale", 0, 1, 0) // factor of x
            GGML_OP_PARAM("f32 bias", 1, 1, 0)) // added after scaling
// x, with the region at `offset` replaced by y
GGML_OP_ROW(33, SET, "y->view(x)", 2, 2, same, region, region, 0, NONE,
            "set (+inplace), set_1d (+inplace), set_2d (+inplace)", 0,
            GGML_OP_PARAM("i32 nb1", 0, 1, 0) // stride in bytes of the region, as the next two
            GGML_OP_PARAM("i32 nb2", 1, 1, 0) // bytes
            GGML_OP_PARAM("i32 nb3", 2, 1, 0) // bytes
            GGML_OP_PARAM("i32 offset", 3, 1, 0) // of the region, in bytes from the first element
            GGML_OP_PARAM("i32 inplace", 4, 1, 0) // 1: the result is a view of source 0
            GGML_OP_VALUES(4, 0, 32, 0x3, 0)) // 0, 1
// y's memory, with x converted; of cast, source 1 is the node itself
GGML_OP_ROW(34, CPY, "x->y", 2, 2, cpy, cpy, cpy, 0, NONE, "cpy, cast", 0, )
// x packed, with the extents given by the builder
GGML_OP_ROW(35, CONT, "cont(x)", 1, 1, same, same_elements, elements, 0, NONE,
            "cont, cont_1d, cont_2d, cont_3d, cont_4d", 0, )
// x with other extents
GGML_OP_ROW(36, RESHAPE, "reshape(x)", 1, 1, same, reshape, none, 0, VIEW,
            "reshape, reshape_1d, reshape_2d, reshape_3d, reshape_4d", 0, )
// a window of x, `offset` bytes into it
GGML_OP_ROW(37, VIEW, "view(x)", 1, 1, same, view, none, 0, VIEW,
            "view_1d, view_2d, view_3d, view_4d, argsort_top_k", 0,
            GGML_OP_PARAM("size_t offset", 0, 2, 0)) // bytes from x to the window
// dimension i of x is dimension axis[i]
GGML_OP_ROW(38, PERMUTE, "permute(x)", 1, 1, same, permute, none, 0, VIEW, "permute", 0,
            GGML_OP_PARAM("i32 axis[4]", 0, 4, 0)) // 0 to 3, each once: where dimension i goes
// dimensions 0 and 1 exchanged
GGML_OP_ROW(39, TRANSPOSE, "transpose(x)", 1, 1, same, transpose, none, 0, VIEW, "transpose", 0, )
// [:, i, j, l] = x[:, y[i, j, l], j, l], decoded
GGML_OP_ROW(40, GET_ROWS, "get_rows(x)", 2, 2, get_rows, get_rows, get_rows, 0, NONE, "get_rows", 0, )
// zeros, then [:, y[i]] += x[:, i]
GGML_OP_ROW(41, GET_ROWS_BACK, "get_rows_back(x)", 2, 2, get_rows_back, get_rows_back, source, 1,
            NONE, "get_rows_back", 0, )
// source 2, with its rows y[i, ..] replaced by rows i of x, encoded
GGML_OP_ROW(42, SET_ROWS, "set_rows(x)", 3, 3, set_rows, set_rows, set_rows, 0, ALIAS, "set_rows", 0, )
// x on the diagonal, 0 elsewhere
GGML_OP_ROW(43, DIAG, "diag(x)", 1, 1, same, diag, elements, 0, NONE, "diag", 0, )
// x, -infinity at columns above n_past + row
GGML_OP_ROW(44, DIAG_MASK_INF, "diag_mask_inf(x)", 1, 1, same, same, elements, 0, REUSE,
            "diag_mask_inf (+inplace)", 0,
            GGML_OP_PARAM("i32 n_past", 0, 1, 0)) // tokens before row 0
// x, 0 at columns above n_past + row
GGML_OP_ROW(45, DIAG_MASK_ZERO, "diag_mask_zero(x)", 1, 1, same, same, elements, 0, REUSE,
            "diag_mask_zero (+inplace)", 0,
            GGML_OP_PARAM("i32 n_past", 0, 1, 0)) // tokens before row 0
// soft max of scale x + slope y (mask) of each row; source 2: sinks; slope from max_bias
GGML_OP_ROW(46, SOFT_MAX, "soft_max(x)", 1, 3, soft_max, soft_max, elements, 6, REUSE,
            "soft_max (+inplace), soft_max_ext (+inplace), soft_max_add_sinks", 0,
            GGML_OP_PARAM("f32 scale", 0, 1, 0) // factor of x
            GGML_OP_PARAM("f32 max_bias", 1, 1, 0)) // of ALiBi; 0: slope 1
// scale y (x - sum x y) of each row; x is dy
GGML_OP_ROW(47, SOFT_MAX_BACK, "soft_max_back(x)", 2, 2, same, same_pair, elements, 5, REUSE,
            "soft_max_ext_back (+inplace)", 0,
            GGML_OP_PARAM("f32 scale", 0, 1, 0) // factor of x
            GGML_OP_PARAM("f32 max_bias", 1, 1, 0)) // 0
// x rotated by positions y and factors source 2; words: enum ggml_rope_slot
GGML_OP_ROW(48, ROPE, "rope(x)", 2, 3, rope, rope, elements, 8, REUSE,
            "rope (+inplace), rope_ext (+inplace), rope_multi (+inplace), rope_custom (+inplace), "
            "rope_set_offset", 0,
            GGML_OP_PARAM("i32 n_dims", 1, 1, 0) // channels that are rotated, even
            GGML_OP_PARAM("i32 mode", 2, 1, 0) // GGML_ROPE_TYPE_*
            GGML_OP_VALUES(2, 0, 32, 0x10001000105, 0) // 0, 2, 8, 24, 40
            GGML_OP_PARAM("i32 n_ctx_orig", 4, 1, 0) // context length of training
            GGML_OP_PARAM("f32 freq_base", 5, 1, 0) // e.g. 10000
            GGML_OP_PARAM("f32 freq_scale", 6, 1, 0) // factor of the angle
            GGML_OP_PARAM("f32 ext_factor", 7, 1, 0) // 0: no YaRN
            GGML_OP_PARAM("f32 attn_factor", 8, 1, 0) // factor of the result
            GGML_OP_PARAM("f32 beta_fast", 9, 1, 0) // begin of YaRN's ramp, in rotations
            GGML_OP_PARAM("f32 beta_slow", 10, 1, 0) // its end
            GGML_OP_PARAM("i32 sections[4]", 11, 4, 0) // pairs that follow t, h, w, e
            GGML_OP_PARAM("i32 n_offs", 15, 1, 0)) // first channel that is rotated, even
// x rotated back
GGML_OP_ROW(49, ROPE_BACK, "rope_back(x)", 2, 3, rope, rope, elements, 8, REUSE,
            "rope_ext_back, rope_multi_back", 0,
            GGML_OP_PARAM("i32 n_dims", 1, 1, 0) // channels that are rotated, even
            GGML_OP_PARAM("i32 mode", 2, 1, 0) // GGML_ROPE_TYPE_*
            GGML_OP_VALUES(2, 0, 32, 0x10001000105, 0) // 0, 2, 8, 24, 40
            GGML_OP_PARAM("i32 n_ctx_orig", 4, 1, 0) // context length of training
            GGML_OP_PARAM("f32 freq_base", 5, 1, 0) // e.g. 10000
            GGML_OP_PARAM("f32 freq_scale", 6, 1, 0) // factor of the angle
            GGML_OP_PARAM("f32 ext_factor", 7, 1, 0) // 0: no YaRN
            GGML_OP_PARAM("f32 attn_factor", 8, 1, 0) // factor of the result
            GGML_OP_PARAM("f32 beta_fast", 9, 1, 0) // begin of YaRN's ramp, in rotations
            GGML_OP_PARAM("f32 beta_slow", 10, 1, 0) // its end
            GGML_OP_PARAM("i32 sections[4]", 11, 4, 0) // pairs that follow t, h, w, e
            GGML_OP_PARAM("i32 n_offs", 15, 1, 0)) // first channel that is rotated, even
// max(min(x, max), min)
GGML_OP_ROW(50, CLAMP, "clamp(x)", 1, 1, same, same, elements, 2, NONE, "clamp (+inplace)", 0,
            GGML_OP_PARAM("f32 min", 0, 1, 0) // lower bound
            GGML_OP_PARAM("f32 max", 1, 1, 0)) // upper bound
// [l s0 + k, oc] += sum over ic of x[k, oc, ic] y[l, ic]
GGML_OP_ROW(51, CONV_TRANSPOSE_1D, "conv_transpose_1d(x)", 2, 2, f32, conv_transpose_1d,
            conv_transpose_1d, 2, NONE, "conv_transpose_1d", 0,
            GGML_OP_PARAM("i32 s0", 0, 1, 0) // stride, >= 0
            GGML_OP_PARAM("i32 p0", 1, 1, 0) // 0
            GGML_OP_PARAM("i32 d0", 2, 1, 0)) // 1
// patches of image y under kernel x, as columns
GGML_OP_ROW(52, IM2COL, "im2col(x)", 2, 2, given, im2col, im2col, 0, NONE,
            "im2col, conv_1d, conv_1d_ph, conv_1d_dw, conv_1d_dw_ph, conv_2d, conv_2d_sk_p0, "
            "conv_2d_s1_ph, conv_2d_dw", 0,
            GGML_OP_PARAM("i32 s0", 0, 1, 0) // stride along dimension 0, >= 1
            GGML_OP_PARAM("i32 s1", 1, 1, 0) // stride along dimension 1, >= 1
            GGML_OP_PARAM("i32 p0", 2, 1, 0) // padding along dimension 0
            GGML_OP_PARAM("i32 p1", 3, 1, 0) // padding along dimension 1
            GGML_OP_PARAM("i32 d0", 4, 1, 0) // dilation along dimension 0
            GGML_OP_PARAM("i32 d1", 5, 1, 0) // dilation along dimension 1
            GGML_OP_PARAM("i32 is_2D", 6, 1, 0) // 0: one dimension
            GGML_OP_VALUES(6, 0, 32, 0x3, 0)) // 0, 1
// sum of patches x back into an image; y is the kernel
GGML_OP_ROW(53, IM2COL_BACK, "im2col_back(x)", 2, 2, f32, im2col_back, im2col_back, 1, NONE,
            "im2col_back", 0,
            GGML_OP_PARAM("i32 s0", 0, 1, 0) // stride along dimension 0, >= 1
            GGML_OP_PARAM("i32 s1", 1, 1, 0) // stride along dimension 1, >= 1
            GGML_OP_PARAM("i32 p0", 2, 1, 0) // padding along dimension 0
            GGML_OP_PARAM("i32 p1", 3, 1, 0) // padding along dimension 1
            GGML_OP_PARAM("i32 d0", 4, 1, 0) // dilation along dimension 0
            GGML_OP_PARAM("i32 d1", 5, 1, 0) // dilation along dimension 1
            GGML_OP_PARAM("i32 is_2D", 6, 1, 0) // 0: one dimension
            GGML_OP_VALUES(6, 0, 32, 0x3, 0)) // 0, 1
// patches of volume y under kernel x
GGML_OP_ROW(54, IM2COL_3D, "im2col_3d(x)", 2, 2, given, im2col_3d, im2col, 0, NONE,
            "im2col_3d, conv_3d", 0,
            GGML_OP_PARAM("i32 s0", 0, 1, 0) // stride along dimension 0, >= 1
            GGML_OP_PARAM("i32 s1", 1, 1, 0) // stride along dimension 1, >= 1
            GGML_OP_PARAM("i32 s2", 2, 1, 0) // stride along dimension 2, >= 1
            GGML_OP_PARAM("i32 p0", 3, 1, 0) // padding along dimension 0
            GGML_OP_PARAM("i32 p1", 4, 1, 0) // padding along dimension 1
            GGML_OP_PARAM("i32 p2", 5, 1, 0) // padding along dimension 2
            GGML_OP_PARAM("i32 d0", 6, 1, 0) // dilation along dimension 0
            GGML_OP_PARAM("i32 d1", 7, 1, 0) // dilation along dimension 1
            GGML_OP_PARAM("i32 d2", 8, 1, 0) // dilation along dimension 2
            GGML_OP_PARAM("i32 IC", 9, 1, 0)) // channels in, of dimension 3
// overlapping columns added up
GGML_OP_ROW(55, COL2IM_1D, "col2im_1d(x)", 1, 1, col2im_1d, col2im_1d, source, 1, NONE, "col2im_1d", 0,
            GGML_OP_PARAM("i32 s0", 0, 1, 0) // stride along dimension 0, >= 1
            GGML_OP_PARAM("i32 oc", 1, 1, 0) // channels out
            GGML_OP_PARAM("i32 p0", 2, 1, 0)) // elements cut off either end
// convolution of image y with kernel x
GGML_OP_ROW(56, CONV_2D, "conv_2d(x)", 2, 2, same_1, conv_2d, conv, 2, NONE, "conv_2d_direct", 0,
            GGML_OP_PARAM("i32 s0", 0, 1, 0) // stride along dimension 0, >= 1
            GGML_OP_PARAM("i32 s1", 1, 1, 0) // stride along dimension 1, >= 1
            GGML_OP_PARAM("i32 p0", 2, 1, 0) // padding along dimension 0
            GGML_OP_PARAM("i32 p1", 3, 1, 0) // padding along dimension 1
            GGML_OP_PARAM("i32 d0", 4, 1, 0) // dilation along dimension 0
            GGML_OP_PARAM("i32 d1", 5, 1, 0)) // dilation along dimension 1
// convolution of volume y with kernel x
GGML_OP_ROW(57, CONV_3D, "conv_3d(x)", 2, 2, f32, conv_3d, conv_3d, 2, NONE, "conv_3d_direct", 0,
            GGML_OP_PARAM("i32 s0", 0, 1, 0) // stride along dimension 0, >= 1
            GGML_OP_PARAM("i32 s1", 1, 1, 0) // stride along dimension 1, >= 1
            GGML_OP_PARAM("i32 s2", 2, 1, 0) // stride along dimension 2, >= 1
            GGML_OP_PARAM("i32 p0", 3, 1, 0) // padding along dimension 0
            GGML_OP_PARAM("i32 p1", 4, 1, 0) // padding along dimension 1
            GGML_OP_PARAM("i32 p2", 5, 1, 0) // padding along dimension 2
            GGML_OP_PARAM("i32 d0", 6, 1, 0) // dilation along dimension 0
            GGML_OP_PARAM("i32 d1", 7, 1, 0) // dilation along dimension 1
            GGML_OP_PARAM("i32 d2", 8, 1, 0) // dilation along dimension 2
            GGML_OP_PARAM("i32 channels", 9, 1, 0) // channels in
            GGML_OP_PARAM("i32 batch", 10, 1, 0) // images
            GGML_OP_PARAM("i32 channels_out", 11, 1, 0)) // channels out
// convolution of each channel of y with its own plane of x
GGML_OP_ROW(58, CONV_2D_DW, "conv_2d_dw(x)", 2, 2, same_1, conv_2d_dw, conv, 2, NONE,
            "conv_2d_dw_direct", 0,
            GGML_OP_PARAM("i32 s0", 0, 1, 0) // stride along dimension 0, >= 1
            GGML_OP_PARAM("i32 s1", 1, 1, 0) // stride along dimension 1, >= 1
            GGML_OP_PARAM("i32 p0", 2, 1, 0) // padding along dimension 0
            GGML_OP_PARAM("i32 p1", 3, 1, 0) // padding along dimension 1
            GGML_OP_PARAM("i32 d0", 4, 1, 0) // dilation along dimension 0
            GGML_OP_PARAM("i32 d1", 5, 1, 0)) // dilation along dimension 1
// transposed convolution of image y with kernel x, without padding
GGML_OP_ROW(59, CONV_TRANSPOSE_2D, "conv_transpose_2d(x)", 2, 2, f32, conv_transpose_2d,
            conv_transpose_2d, 2, NONE, "conv_transpose_2d_p0", 0,
            GGML_OP_PARAM("i32 stride", 0, 1, 0)) // along dimensions 0 and 1
// maximum or mean of windows along dimension 0
GGML_OP_ROW(60, POOL_1D, "pool_1d(x)", 1, 1, f32, pool_1d, pool_1d, 1, NONE, "pool_1d", 0,
            GGML_OP_PARAM("i32 op", 0, 1, 0) // enum ggml_op_pool
            GGML_OP_VALUES(0, 0, 32, 0x3, 0) // 0, 1
            GGML_OP_PARAM("i32 k0", 1, 1, 0) // window along dimension 0, >= 1
            GGML_OP_PARAM("i32 s0", 2, 1, 0) // stride along dimension 0, >= 1
            GGML_OP_PARAM("i32 p0", 3, 1, 0)) // padding along dimension 0
// the same of windows along dimensions 0 and 1
GGML_OP_ROW(61, POOL_2D, "pool_2d(x)", 1, 1, f32, pool_2d, pool_2d, 1, NONE, "pool_2d", 0,
            GGML_OP_PARAM("i32 op", 0, 1, 0) // enum ggml_op_pool
            GGML_OP_VALUES(0, 0, 32, 0x3, 0) // 0, 1
            GGML_OP_PARAM("i32 k0", 1, 1, 0) // window along dimension 0, >= 1
            GGML_OP_PARAM("i32 k1", 2, 1, 0) // window along dimension 1, >= 1
            GGML_OP_PARAM("i32 s0", 3, 1, 0) // stride along dimension 0, >= 1
            GGML_OP_PARAM("i32 s1", 4, 1, 0) // stride along dimension 1, >= 1
            GGML_OP_PARAM("i32 p0", 5, 1, 0) // padding along dimension 0
            GGML_OP_PARAM("i32 p1", 6, 1, 0)) // padding along dimension 1
// its gradient; x is dy, y the input
GGML_OP_ROW(62, POOL_2D_BACK, "pool_2d_back(x)", 2, 2, f32, pool_2d_back, pool_2d_back, 1, NONE,
            "pool_2d_back", 0,
            GGML_OP_PARAM("i32 op", 0, 1, 0) // enum ggml_op_pool
            GGML_OP_VALUES(0, 0, 32, 0x3, 0) // 0, 1
            GGML_OP_PARAM("i32 k0", 1, 1, 0) // window along dimension 0, >= 1
            GGML_OP_PARAM("i32 k1", 2, 1, 0) // window along dimension 1, >= 1
            GGML_OP_PARAM("i32 s0", 3, 1, 0) // stride along dimension 0, >= 1
            GGML_OP_PARAM("i32 s1", 4, 1, 0) // stride along dimension 1, >= 1
            GGML_OP_PARAM("i32 p0", 5, 1, 0) // padding along dimension 0
            GGML_OP_PARAM("i32 p1", 6, 1, 0)) // padding along dimension 1
// x resampled; enum ggml_scale_mode and flags
GGML_OP_ROW(63, UPSCALE, "upscale(x)", 1, 1, same, upscale, elements, 4, NONE,
            "upscale, upscale_ext, interpolate", 0,
            GGML_OP_PARAM("i32 mode_and_flags", 0, 1, 0) // ggml_scale_mode and _flag
            GGML_OP_VALUES(0, 0, 8, 0x7, 0) // mode
            GGML_OP_VALUES(0, 8, 24, 0xf, 0)) // flags
// x with zeros, or itself where circular, around it
GGML_OP_ROW(64, PAD, "pad(x)", 1, 1, same, pad, elements, 0, NONE,
            "pad, pad_ext, pad_circular, pad_ext_circular", 0,
            GGML_OP_PARAM("i32 lp0", 0, 1, 0) // elements before dimension 0; below 0: cut off
            GGML_OP_PARAM("i32 rp0", 1, 1, 0) // behind it
            GGML_OP_PARAM("i32 lp1", 2, 1, 0) // before dimension 1
            GGML_OP_PARAM("i32 rp1", 3, 1, 0) // behind it
            GGML_OP_PARAM("i32 lp2", 4, 1, 0) // before dimension 2
            GGML_OP_PARAM("i32 rp2", 5, 1, 0) // behind it
            GGML_OP_PARAM("i32 lp3", 6, 1, 0) // before dimension 3
            GGML_OP_PARAM("i32 rp3", 7, 1, 0) // behind it
            GGML_OP_PARAM("i32 circular", 8, 1, 0) // 1: filled from the other end
            GGML_OP_VALUES(8, 0, 32, 0x3, 0)) // 0, 1
// x mirrored at both ends of dimension 0
GGML_OP_ROW(65, PAD_REFLECT_1D, "pad_reflect_1d(x)", 1, 1, same_f32, pad_reflect_1d, elements, 0,
            NONE, "pad_reflect_1d", 0,
            GGML_OP_PARAM("i32 p0", 0, 1, 0) // elements before
            GGML_OP_PARAM("i32 p1", 1, 1, 0)) // elements behind
// [i] = x[(i - shift) mod ne] in each dimension
GGML_OP_ROW(66, ROLL, "roll(x)", 1, 1, same, roll, elements, 0, NONE, "roll", 0,
            GGML_OP_PARAM("i32 shift[4]", 0, 4, 0)) // by dimension, below its extent either way
// [i] = start + step i
GGML_OP_ROW(67, ARANGE, "arange(start, stop, step)", 0, 0, f32, arange, elements, 1, NONE, "arange", 0,
            GGML_OP_PARAM("f32 start", 0, 1, 0) // first element
            GGML_OP_PARAM("f32 stop", 1, 1, 0) // end, not included
            GGML_OP_PARAM("f32 step", 2, 1, 0)) // above 0
// cosines, then sines, of each timestep at dim / 2 frequencies
GGML_OP_ROW(68, TIMESTEP_EMBEDDING, "timestep_embedding(timesteps, dim, max_period)", 1, 1, f32,
            timestep_embedding, elements, 3, NONE, "timestep_embedding", 0,
            GGML_OP_PARAM("i32 dim", 0, 1, 0) // elements of a row
            GGML_OP_PARAM("i32 max_period", 1, 1, 0)) // e.g. 10000
// permutation that sorts each row; enum ggml_sort_order
GGML_OP_ROW(69, ARGSORT, "argsort(x)", 1, 1, i32, argsort, sort, 1, NONE, "argsort, argsort_top_k", 0,
            GGML_OP_PARAM("i32 order", 0, 1, 0) // enum ggml_sort_order
            GGML_OP_VALUES(0, 0, 32, 0x3, 0)) // 0, 1
// indices of the largest of each row, in any order
GGML_OP_ROW(70, TOP_K, "top_k(x)", 1, 1, i32, top_k, sort, 1, NONE, "top_k", 0, )
// max(x, 0) + negative_slope min(x, 0)
GGML_OP_ROW(71, LEAKY_RELU, "leaky_relu(x)", 1, 1, same, same, elements, 3, NONE,
            "leaky_relu (+inplace)", 0,
            GGML_OP_PARAM("f32 negative_slope", 0, 1, 0)) // e.g. 0.01
// x in a triangle, 0 elsewhere; enum ggml_tri_type
GGML_OP_ROW(72, TRI, "tri(x)", 1, 1, same_f32, tri, elements, 0, NONE, "tri", 0,
            GGML_OP_PARAM("i32 type", 0, 1, 0) // enum ggml_tri_type
            GGML_OP_VALUES(0, 0, 32, 0xf, 0)) // 0, 1, 2, 3
// c everywhere
GGML_OP_ROW(73, FILL, "fill(x, c)", 1, 1, fill, same_packed, fill, 0, REUSE, "fill (+inplace)", 0,
            GGML_OP_PARAM("f32 c", 0, 1, 0)) // the value
// attention of q, k, v; source 3: mask, 4: sinks
GGML_OP_ROW(74, FLASH_ATTN_EXT, "flash_attn_ext(x)", 3, 5, flash_attn, flash_attn, flash_attn, 2,
            NONE,
            "flash_attn_ext, prec_set_acc, flash_attn_ext_set_prec, flash_attn_ext_get_prec, "
            "flash_attn_ext_set_n_kv_max, flash_attn_ext_add_sinks", 0,
            GGML_OP_PARAM("f32 scale", 0, 1, 0) // factor of the scores
            GGML_OP_PARAM("f32 max_bias", 1, 1, 0) // of ALiBi; 0: slope 1
            GGML_OP_PARAM("f32 logit_softcap", 2, 1, 0) // 0: no cap
            GGML_OP_PARAM("i32 prec_acc", 3, 1, 0) // enum ggml_prec of the accumulator
            GGML_OP_VALUES(3, 0, 32, 0x108401, 0) // 0, 10, 15, 20
            GGML_OP_PARAM("i32 n_kv_max", 4, 1, 0)) // finite entries of a mask row; 0: any
// kept number: no builder makes it
GGML_OP_ROW(75, FLASH_ATTN_BACK, "flash_attn_back(x)", 4, 4, unsupported, given, none, 0, NONE,
            "flash_attn_back (unsupported)", 0, )
// [i, t, s] = sum over k of x[t + k, i, s] y[k, i]
GGML_OP_ROW(76, SSM_CONV, "ssm_conv(x)", 2, 2, all_f32, ssm_conv, ssm_conv, 2, NONE, "ssm_conv", 0, )
// selective scan; sources s, x, dt, A, B, C, ids; result y, then K states
GGML_OP_ROW(77, SSM_SCAN, "ssm_scan(x)", 7, 7, ssm_scan, ssm_scan, ssm_scan, 5, NONE, "ssm_scan", 0,
            GGML_OP_PARAM("i32 K", 0, 1, 0)) // states that are returned, >= 1
// windows of w x w of an image; npx, npy of them
GGML_OP_ROW(78, WIN_PART, "win_part(x)", 1, 1, same_f32, win_part, elements, 0, NONE, "win_part", 0,
            GGML_OP_PARAM("i32 npx", 0, 1, 0) // windows along dimension 1
            GGML_OP_PARAM("i32 npy", 1, 1, 0) // windows along dimension 2
            GGML_OP_PARAM("i32 w", 2, 1, 0)) // window, >= 1
// the image that such windows make
GGML_OP_ROW(79, WIN_UNPART, "win_unpart(x)", 1, 1, same_f32, win_unpart, elements, 0, NONE,
            "win_unpart", 0,
            GGML_OP_PARAM("i32 w", 0, 1, 0)) // window, >= 1
// [:, k, q] = x[:, n - 1 - k + q]
GGML_OP_ROW(80, GET_REL_POS, "get_rel_pos(x)", 1, 1, f16, get_rel_pos, elements, 0, NONE,
            "get_rel_pos", 0, )
// x + relative positions of columns (source 1) and rows (source 2)
GGML_OP_ROW(81, ADD_REL_POS, "add_rel_pos(x)", 3, 3, all_f32, add_rel_pos, elements, 2, NONE,
            "add_rel_pos (+inplace)", 0,
            GGML_OP_PARAM("i32 inplace", 0, 1, 0) // 1: the result is a view of source 0
            GGML_OP_VALUES(0, 0, 32, 0x3, 0)) // 0, 1
// sources k, v, r, tf, td, state; result outputs, then states
GGML_OP_ROW(82, RWKV_WKV6, "rwkv_wkv6(k, v, r, tf, td, s)", 6, 6, all_f32, rwkv_wkv6, linear_attn,
            7, NONE, "rwkv_wkv6", 0, )
// sources k, v, q, g, state; result outputs, then states
GGML_OP_ROW(83, GATED_LINEAR_ATTN, "gated_linear_attn(k, v, q, gate, s)", 5, 5, all_f32,
            gated_linear_attn, linear_attn, 5, NONE, "gated_linear_attn", 0,
            GGML_OP_PARAM("f32 scale", 0, 1, 0)) // factor of x
// sources r, w, k, v, a, b, state; result outputs, then states
GGML_OP_ROW(84, RWKV_WKV7, "rwkv_wkv7(r, w, k, v, a, b, s)", 7, 7, all_f32, rwkv_wkv7, linear_attn,
            9, NONE, "rwkv_wkv7", 0, )
// X of x X = y, x lower triangular
GGML_OP_ROW(85, SOLVE_TRI, "A X = B, A triangular, solve X", 2, 2, all_f32, solve_tri, solve_tri, 1,
            NONE, "solve_tri", 0, )
// sources q, k, v, g, beta, state; result outputs, then K states
GGML_OP_ROW(86, GATED_DELTA_NET, "gated_delta_net(q, k, v, g, beta, s)", 6, 6, all_f32,
            gated_delta_net, gated_delta_net, 7, NONE, "gated_delta_net", 0,
            GGML_OP_PARAM("i32 K", 0, 1, 0)) // states that are returned, >= 1
// sum over heads of max(0, <q, k>) weights, plus mask
GGML_OP_ROW(87, LIGHTNING_INDEXER, "lightning_indexer(q, k, weights, mask)", 4, 4,
            lightning_indexer, lightning_indexer, lightning_indexer, 2, NONE, "lightning_indexer", 0, )
// doubly stochastic mixing matrix of hyper-connections
GGML_OP_ROW(88, DSV4_HC_COMB, "dsv4_hc_comb(mixes, scale, base)", 3, 3, all_f32, dsv4_hc_comb,
            elements, 8, NONE, "dsv4_hc_comb", 0,
            GGML_OP_PARAM("f32 eps", 0, 1, 0) // against division by 0
            GGML_OP_PARAM("i32 n_iter", 1, 1, 0)) // rounds, >= 1
// weighted sum of the streams; gated: by sigmoid(y), times scale
GGML_OP_ROW(89, DSV4_HC_PRE, "dsv4_hc_pre(x, weights)", 2, 2, all_f32, dsv4_hc_pre, source, 2, NONE,
            "dsv4_hc_pre, dsv4_hc_pre_gated", 0,
            GGML_OP_PARAM("f32 scale", 0, 1, 0) // factor of the sum
            GGML_OP_PARAM("i32 gated", 1, 1, 0) // 1: y is a gate of x's extents
            GGML_OP_VALUES(1, 0, 32, 0x3, 0)) // 0, 1
// x to each stream, plus the streams (source 1) mixed
GGML_OP_ROW(90, DSV4_HC_POST, "dsv4_hc_post(x, residual, post, comb)", 3, 4, all_f32, dsv4_hc_post,
            dsv4_hc_post, 2, NONE, "dsv4_hc_post", 0, )
// sub-operation of x: enum ggml_unary_op, unary_list.inl
GGML_OP_ROW(91, UNARY, "unary(x)", 1, 1, same, unary, elements, 1, REUSE,
            "unary (+inplace); abs, sgn, neg, step, tanh, elu, relu, sigmoid, gelu, gelu_erf, "
            "gelu_quick, silu, exp, expm1, softplus, floor, ceil, round, trunc (each +inplace); "
            "hardswish, hardsigmoid, xielu", 0,
            GGML_OP_PARAM("i32 op", 0, 1, 0)) // enum ggml_unary_op
// function of the program on x
GGML_OP_ROW(92, MAP_CUSTOM1, "map_custom(x)", 1, 1, same, custom, elements, 0, HOST,
            "map_custom1 (+inplace)", 0,
            GGML_OP_PARAM("void (*fun)", 0, 2, 0) // the function
            GGML_OP_PARAM("i32 n_tasks", 2, 1, 0) // >= 1, or GGML_N_TASKS_MAX
            GGML_OP_PARAM("void *userdata", 4, 2, 0)) // its argument
// on x and y
GGML_OP_ROW(93, MAP_CUSTOM2, "map_custom(x,y)", 2, 2, same, custom, elements, 0, HOST,
            "map_custom2 (+inplace)", 0,
            GGML_OP_PARAM("void (*fun)", 0, 2, 0) // the function
            GGML_OP_PARAM("i32 n_tasks", 2, 1, 0) // >= 1, or GGML_N_TASKS_MAX
            GGML_OP_PARAM("void *userdata", 4, 2, 0)) // its argument
// on three sources
GGML_OP_ROW(94, MAP_CUSTOM3, "map_custom(x,y,z)", 3, 3, same, custom, elements, 0, HOST,
            "map_custom3 (+inplace)", 0,
            GGML_OP_PARAM("void (*fun)", 0, 2, 0) // the function
            GGML_OP_PARAM("i32 n_tasks", 2, 1, 0) // >= 1, or GGML_N_TASKS_MAX
            GGML_OP_PARAM("void *userdata", 4, 2, 0)) // its argument
// on up to ten, with a type and extents of its own
GGML_OP_ROW(95, CUSTOM, "custom(x)", 0, 10, custom, custom, elements, 0, HOST,
            "custom_4d, custom_inplace", 0,
            GGML_OP_PARAM("void (*fun)", 0, 2, 0) // the function
            GGML_OP_PARAM("i32 n_tasks", 2, 1, 0) // >= 1, or GGML_N_TASKS_MAX
            GGML_OP_PARAM("void *userdata", 4, 2, 0)) // its argument
// -1 / rows sum y log softmax(x)
GGML_OP_ROW(96, CROSS_ENTROPY_LOSS, "cross_entropy_loss(x,y)", 2, 2, same, cross_entropy_loss,
            source, 6, NONE, "cross_entropy_loss", 0, )
// (softmax(y) - source 2) x / rows; x is dy
GGML_OP_ROW(97, CROSS_ENTROPY_LOSS_BACK, "cross_entropy_loss_back(x,y)", 3, 3, same_1,
            cross_entropy_loss_back, elements, 6, NONE, "cross_entropy_loss_back", 0, )
// x stepped along source 1 with momenta 2, 3 and hyperparameters 4
GGML_OP_ROW(98, OPT_STEP_ADAMW, "adamw(x)", 5, 5, opt_step, opt_step_adamw, elements, 12, ALIAS,
            "opt_step_adamw", 0, )
// x stepped along source 1 with hyperparameters 2
GGML_OP_ROW(99, OPT_STEP_SGD, "sgd(x)", 3, 3, opt_step, opt_step_sgd, elements, 4, ALIAS,
            "opt_step_sgd", 0, )
// act(x) times gate y, or halves of x; enum ggml_glu_op, glu_list.inl
GGML_OP_ROW(100, GLU, "glu(x)", 1, 2, glu, glu, elements, 2, NONE,
            "glu, reglu, geglu, swiglu, geglu_erf, geglu_quick (each _swapped and _split too), "
            "glu_split, swiglu_oai, swiglu_clamp", 0,
            GGML_OP_PARAM("i32 op", 0, 1, 0) // enum ggml_glu_op
            GGML_OP_PARAM("i32 swapped", 1, 1, 0) // 1: the halves are exchanged
            GGML_OP_VALUES(1, 0, 32, 0x3, 0)) // 0, 1
#undef GGML_OP_ROW
#undef GGML_OP_PARAM
#undef GGML_OP_VALUES
#undef GGML_OP_SRC
// clang-format on
