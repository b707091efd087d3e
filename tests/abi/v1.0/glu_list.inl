// SPDX-License-Identifier: MIT
// Sub-operations of GGML_OP_GLU (op_params i32[0]), once. Append-only.
//
// GGML_GLU_ROW(number, NAME, since, params)
//   number  value of GGML_GLU_OP_<NAME>, in op_params i32[0]
//   since   minor of the contract that it came with
//   params  nothing, or GGML_OP_PARAM, as in op_list.inl: words that only this sub-operation has
// Behind each row: the result of activated x and gate g, halves of a row or two operands; words 0
// and 1 (number, whether the halves are swapped) are those of GGML_OP_GLU.
// clang-format off
#ifndef GGML_OP_PARAM
#define GGML_OP_PARAM(text, word, n, since)
#endif
GGML_GLU_ROW(0, REGLU, 0, ) // max(x, 0) g
GGML_GLU_ROW(1, GEGLU, 0, ) // gelu(x) g
GGML_GLU_ROW(2, SWIGLU, 0, ) // silu(x) g
// x' / (1 + e^(-alpha x')) (g' + 1); x' = min(x, limit), g' = g within +-limit
GGML_GLU_ROW(3, SWIGLU_OAI, 0,
             GGML_OP_PARAM("f32 alpha", 2, 1, 0)
             GGML_OP_PARAM("f32 limit", 3, 1, 0))
GGML_GLU_ROW(4, GEGLU_ERF, 0, ) // gelu_erf(x) g
GGML_GLU_ROW(5, GEGLU_QUICK, 0, ) // gelu_quick(x) g
// silu(x') g', x' and g' as of SWIGLU_OAI
GGML_GLU_ROW(6, SWIGLU_CLAMP, 0,
             GGML_OP_PARAM("f32 limit", 3, 1, 0))
#undef GGML_GLU_ROW
#undef GGML_OP_PARAM
// clang-format on
