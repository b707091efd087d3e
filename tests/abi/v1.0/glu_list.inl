// SPDX-License-Identifier: MIT
// Sub-operations of GGML_OP_GLU (op_params i32[0]), once. Append-only.
//
// GGML_GLU_ROW(number, NAME, since, params)
//   since   minor of the contract that it came with
//   params  nothing, or GGML_OP_PARAM, as in op_list.inl: words that only this sub-operation has
// clang-format off
#ifndef GGML_OP_PARAM
#define GGML_OP_PARAM(text, word, n, since)
#endif
GGML_GLU_ROW(0, REGLU, 0, )
GGML_GLU_ROW(1, GEGLU, 0, )
GGML_GLU_ROW(2, SWIGLU, 0, )
GGML_GLU_ROW(3, SWIGLU_OAI, 0,
             GGML_OP_PARAM("f32 alpha", 2, 1, 0)
             GGML_OP_PARAM("f32 limit", 3, 1, 0))
GGML_GLU_ROW(4, GEGLU_ERF, 0, )
GGML_GLU_ROW(5, GEGLU_QUICK, 0, )
GGML_GLU_ROW(6, SWIGLU_CLAMP, 0,
             GGML_OP_PARAM("f32 limit", 3, 1, 0))
#undef GGML_GLU_ROW
#undef GGML_OP_PARAM
// clang-format on
