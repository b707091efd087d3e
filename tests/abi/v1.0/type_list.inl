// SPDX-License-Identifier: MIT
// Every tensor element type, once. Numbers are part of the binary contract and never change.
//
// GGML_TYPE_ROW(number, NAME, name, block, size, quantized, since)
//   number     value of GGML_TYPE_<NAME>; also the value stored in GGUF files
//   name       what ggml_type_name() returns
//   block      elements per block (1 for plain types)
//   size       bytes per block
//   quantized  true when a block shares scales
//   since      minor of the contract that it came with
// Behind each row: what an element is. Bits per element are 8 size / block; ggml-common.h has the
// layouts of blocks.
//
// GGML_TYPE_REMOVED(number, name): a retired number; block and size are 0.
#ifndef GGML_TYPE_REMOVED
#define GGML_TYPE_REMOVED(number, name)
#endif
GGML_TYPE_ROW(0, F32, "f32", 1, 4, false, 0) // IEEE binary32
GGML_TYPE_ROW(1, F16, "f16", 1, 2, false, 0) // IEEE binary16
GGML_TYPE_ROW(2, Q4_0, "q4_0", 32, 18, true, 0) // 4 bits, scale
GGML_TYPE_ROW(3, Q4_1, "q4_1", 32, 20, true, 0) // 4 bits, scale and minimum
GGML_TYPE_REMOVED(4, "DEPRECATED")
GGML_TYPE_REMOVED(5, "DEPRECATED")
GGML_TYPE_ROW(6, Q5_0, "q5_0", 32, 22, true, 0) // 5 bits, scale
GGML_TYPE_ROW(7, Q5_1, "q5_1", 32, 24, true, 0) // 5 bits, scale and minimum
GGML_TYPE_ROW(8, Q8_0, "q8_0", 32, 34, true, 0) // 8 bits, scale; also made while computing
GGML_TYPE_ROW(9, Q8_1, "q8_1", 32, 36, true, 0) // 8 bits, scale and sum; made while computing
GGML_TYPE_ROW(10, Q2_K, "q2_K", 256, 84, true, 0) // 2 bits, scales in super-blocks
GGML_TYPE_ROW(11, Q3_K, "q3_K", 256, 110, true, 0) // 3 bits
GGML_TYPE_ROW(12, Q4_K, "q4_K", 256, 144, true, 0) // 4 bits
GGML_TYPE_ROW(13, Q5_K, "q5_K", 256, 176, true, 0) // 5 bits
GGML_TYPE_ROW(14, Q6_K, "q6_K", 256, 210, true, 0) // 6 bits
GGML_TYPE_ROW(15, Q8_K, "q8_K", 256, 292, true, 0) // 8 bits and sums; made while computing
GGML_TYPE_ROW(16, IQ2_XXS, "iq2_xxs", 256, 66, true, 0) // grid of 256 points; needs importance
GGML_TYPE_ROW(17, IQ2_XS, "iq2_xs", 256, 74, true, 0) // grid of 512 points; needs importance
GGML_TYPE_ROW(18, IQ3_XXS, "iq3_xxs", 256, 98, true, 0) // grid of 256 points
GGML_TYPE_ROW(19, IQ1_S, "iq1_s", 256, 50, true, 0) // grid of 2048 points; needs importance
GGML_TYPE_ROW(20, IQ4_NL, "iq4_nl", 32, 18, true, 0) // 4 bits, uneven levels
GGML_TYPE_ROW(21, IQ3_S, "iq3_s", 256, 110, true, 0) // grid of 512 points
GGML_TYPE_ROW(22, IQ2_S, "iq2_s", 256, 82, true, 0) // grid of 1024 points
GGML_TYPE_ROW(23, IQ4_XS, "iq4_xs", 256, 136, true, 0) // as IQ4_NL, in super-blocks
GGML_TYPE_ROW(24, I8, "i8", 1, 1, false, 0) // signed
GGML_TYPE_ROW(25, I16, "i16", 1, 2, false, 0) // signed
GGML_TYPE_ROW(26, I32, "i32", 1, 4, false, 0) // signed; indices
GGML_TYPE_ROW(27, I64, "i64", 1, 8, false, 0) // signed; indices
GGML_TYPE_ROW(28, F64, "f64", 1, 8, false, 0) // IEEE binary64
GGML_TYPE_ROW(29, IQ1_M, "iq1_m", 256, 56, true, 0) // IQ1_S's grid
GGML_TYPE_ROW(30, BF16, "bf16", 1, 2, false, 0) // upper half of F32
GGML_TYPE_REMOVED(31, "TYPE_Q4_0_4_4 REMOVED, use Q4_0 with runtime repacking")
GGML_TYPE_REMOVED(32, "TYPE_Q4_0_4_8 REMOVED, use Q4_0 with runtime repacking")
GGML_TYPE_REMOVED(33, "TYPE_Q4_0_8_8 REMOVED, use Q4_0 with runtime repacking")
GGML_TYPE_ROW(34, TQ1_0, "tq1_0", 256, 54, true, 0) // ternary, five digits in a byte
GGML_TYPE_ROW(35, TQ2_0, "tq2_0", 256, 66, true, 0) // ternary, two bits each
GGML_TYPE_REMOVED(36, "TYPE_IQ4_NL_4_4 REMOVED, use IQ4_NL with runtime repacking")
GGML_TYPE_REMOVED(37, "TYPE_IQ4_NL_4_8 REMOVED, use IQ4_NL with runtime repacking")
GGML_TYPE_REMOVED(38, "TYPE_IQ4_NL_8_8 REMOVED, use IQ4_NL with runtime repacking")
GGML_TYPE_ROW(39, MXFP4, "mxfp4", 32, 17, true, 0) // OCP microscaling: E2M1, scale E8M0
GGML_TYPE_ROW(40, NVFP4, "nvfp4", 64, 36, true, 0) // E2M1, scales UE4M3 of 16
GGML_TYPE_ROW(41, Q1_0, "q1_0", 128, 18, true, 0) // signs, scale
GGML_TYPE_ROW(42, Q2_0, "q2_0", 64, 18, true, 0) // 2 bits, scale
#undef GGML_TYPE_ROW
#undef GGML_TYPE_REMOVED
