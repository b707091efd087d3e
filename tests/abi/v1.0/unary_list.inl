// SPDX-License-Identifier: MIT
// Sub-operations of GGML_OP_UNARY (op_params i32[0]), once. Append-only.
//
// GGML_UNARY_ROW(number, NAME, since, params)
//   since   minor of the contract that it came with
//   params  nothing, or GGML_OP_PARAM, as in op_list.inl: words that only this sub-operation has
// clang-format off
#ifndef GGML_OP_PARAM
#define GGML_OP_PARAM(text, word, n, since)
#endif
GGML_UNARY_ROW(0, ABS, 0, )
GGML_UNARY_ROW(1, SGN, 0, )
GGML_UNARY_ROW(2, NEG, 0, )
GGML_UNARY_ROW(3, STEP, 0, )
GGML_UNARY_ROW(4, TANH, 0, )
GGML_UNARY_ROW(5, ELU, 0, )
GGML_UNARY_ROW(6, RELU, 0, )
GGML_UNARY_ROW(7, SIGMOID, 0, )
GGML_UNARY_ROW(8, GELU, 0, )
GGML_UNARY_ROW(9, GELU_QUICK, 0, )
GGML_UNARY_ROW(10, SILU, 0, )
GGML_UNARY_ROW(11, HARDSWISH, 0, )
GGML_UNARY_ROW(12, HARDSIGMOID, 0, )
GGML_UNARY_ROW(13, EXP, 0, )
GGML_UNARY_ROW(14, EXPM1, 0, )
GGML_UNARY_ROW(15, SOFTPLUS, 0, )
GGML_UNARY_ROW(16, GELU_ERF, 0, )
GGML_UNARY_ROW(17, XIELU, 0,
               GGML_OP_PARAM("f32 alpha_n", 1, 1, 0)
               GGML_OP_PARAM("f32 alpha_p", 2, 1, 0)
               GGML_OP_PARAM("f32 beta", 3, 1, 0)
               GGML_OP_PARAM("f32 eps", 4, 1, 0))
GGML_UNARY_ROW(18, FLOOR, 0, )
GGML_UNARY_ROW(19, CEIL, 0, )
GGML_UNARY_ROW(20, ROUND, 0, )
GGML_UNARY_ROW(21, TRUNC, 0, )
#undef GGML_UNARY_ROW
#undef GGML_OP_PARAM
// clang-format on
