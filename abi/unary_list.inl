// SPDX-License-Identifier: MIT
// Sub-operations of GGML_OP_UNARY (op_params i32[0]), once. Append-only.
//
// GGML_UNARY_ROW(number, NAME, since, params)
//   number  value of GGML_UNARY_OP_<NAME>, in op_params i32[0]
//   since   minor of the contract that it came with
//   params  nothing, or GGML_OP_PARAM, as in op_list.inl: words that only this sub-operation has
// Behind each row: what becomes of each element x. Parameters are as the builder has made them:
// ggml_xielu() in ggml-op.h takes others.
// clang-format off
#ifndef GGML_OP_PARAM
#define GGML_OP_PARAM(text, word, n, since)
#endif
GGML_UNARY_ROW(0, ABS, 0, ) // |x|
GGML_UNARY_ROW(1, SGN, 0, ) // 1, 0 or -1; 0 for NaN
GGML_UNARY_ROW(2, NEG, 0, ) // -x
GGML_UNARY_ROW(3, STEP, 0, ) // x > 0 ? 1 : 0
GGML_UNARY_ROW(4, TANH, 0, ) // tanh x
GGML_UNARY_ROW(5, ELU, 0, ) // x > 0 ? x : e^x - 1
GGML_UNARY_ROW(6, RELU, 0, ) // x > 0 ? x : 0
GGML_UNARY_ROW(7, SIGMOID, 0, ) // 1 / (1 + e^-x)
GGML_UNARY_ROW(8, GELU, 0, ) // x/2 (1 + tanh(sqrt(2/pi) x (1 + 0.044715 x^2)))
GGML_UNARY_ROW(9, GELU_QUICK, 0, ) // x / (1 + e^(-1.702 x))
GGML_UNARY_ROW(10, SILU, 0, ) // x / (1 + e^-x)
GGML_UNARY_ROW(11, HARDSWISH, 0, ) // x clamp((x + 3) / 6, 0, 1)
GGML_UNARY_ROW(12, HARDSIGMOID, 0, ) // clamp((x + 3) / 6, 0, 1)
GGML_UNARY_ROW(13, EXP, 0, ) // e^x
GGML_UNARY_ROW(14, EXPM1, 0, ) // e^x - 1
GGML_UNARY_ROW(15, SOFTPLUS, 0, ) // x > 20 ? x : ln(1 + e^x)
GGML_UNARY_ROW(16, GELU_ERF, 0, ) // x/2 (1 + erf(x / sqrt 2))
// x > 0 ? alpha_p x^2 + beta x : (expm1(min(x, eps)) - x) alpha_n + beta x
GGML_UNARY_ROW(17, XIELU, 0,
               GGML_OP_PARAM("f32 alpha_n", 1, 1, 0)
               GGML_OP_PARAM("f32 alpha_p", 2, 1, 0)
               GGML_OP_PARAM("f32 beta", 3, 1, 0)
               GGML_OP_PARAM("f32 eps", 4, 1, 0))
GGML_UNARY_ROW(18, FLOOR, 0, ) // down to a whole number
GGML_UNARY_ROW(19, CEIL, 0, ) // up to one
GGML_UNARY_ROW(20, ROUND, 0, ) // to the nearest, halves away from zero
GGML_UNARY_ROW(21, TRUNC, 0, ) // towards zero
#undef GGML_UNARY_ROW
#undef GGML_OP_PARAM
// clang-format on
