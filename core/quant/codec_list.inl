// SPDX-License-Identifier: MIT
// The reference codecs of every type that has them, once. Functions are declared in quant/quant.h.
//
// GGML_CODEC_ROW(NAME, to_float, from_float_ref, weighted)
//   NAME            as in type_list.inl
//   to_float        decodes rows of whole blocks, or NULL
//   from_float_ref  encodes rows of whole blocks, or NULL: none, or only with an importance
//   weighted        the same with an importance per element, or NULL: it would change nothing
GGML_CODEC_ROW(F16, dequantize_row_f16, quantize_row_f16_ref, NULL)
GGML_CODEC_ROW(BF16, dequantize_row_bf16, quantize_row_bf16_ref, NULL)
GGML_CODEC_ROW(Q1_0, dequantize_row_q1_0, quantize_row_q1_0_ref, quantize_row_q1_0_weighted)
GGML_CODEC_ROW(Q2_0, dequantize_row_q2_0, quantize_row_q2_0_ref, quantize_row_q2_0_weighted)
GGML_CODEC_ROW(Q4_0, dequantize_row_q4_0, quantize_row_q4_0_ref, quantize_row_q4_0_weighted)
GGML_CODEC_ROW(Q4_1, dequantize_row_q4_1, quantize_row_q4_1_ref, quantize_row_q4_1_weighted)
GGML_CODEC_ROW(Q5_0, dequantize_row_q5_0, quantize_row_q5_0_ref, quantize_row_q5_0_weighted)
GGML_CODEC_ROW(Q5_1, dequantize_row_q5_1, quantize_row_q5_1_ref, quantize_row_q5_1_weighted)
GGML_CODEC_ROW(Q8_0, dequantize_row_q8_0, quantize_row_q8_0_ref, NULL)
GGML_CODEC_ROW(Q2_K, dequantize_row_q2_K, quantize_row_q2_K_ref, quantize_row_q2_K_weighted)
GGML_CODEC_ROW(Q3_K, dequantize_row_q3_K, quantize_row_q3_K_ref, quantize_row_q3_K_weighted)
GGML_CODEC_ROW(Q4_K, dequantize_row_q4_K, quantize_row_q4_K_ref, quantize_row_q4_K_weighted)
GGML_CODEC_ROW(Q5_K, dequantize_row_q5_K, quantize_row_q5_K_ref, quantize_row_q5_K_weighted)
GGML_CODEC_ROW(Q6_K, dequantize_row_q6_K, quantize_row_q6_K_ref, quantize_row_q6_K_weighted)
GGML_CODEC_ROW(IQ4_NL, dequantize_row_iq4_nl, quantize_row_iq4_nl_ref, quantize_row_iq4_nl_weighted)
GGML_CODEC_ROW(IQ4_XS, dequantize_row_iq4_xs, quantize_row_iq4_xs_ref, quantize_row_iq4_xs_weighted)
GGML_CODEC_ROW(TQ1_0, dequantize_row_tq1_0, quantize_row_tq1_0_ref, quantize_row_tq1_0_weighted)
GGML_CODEC_ROW(TQ2_0, dequantize_row_tq2_0, quantize_row_tq2_0_ref, quantize_row_tq2_0_weighted)
GGML_CODEC_ROW(MXFP4, dequantize_row_mxfp4, quantize_row_mxfp4_ref, quantize_row_mxfp4_weighted)
GGML_CODEC_ROW(NVFP4, dequantize_row_nvfp4, quantize_row_nvfp4_ref, quantize_row_nvfp4_weighted)
GGML_CODEC_ROW(IQ2_XXS, dequantize_row_iq2_xxs, NULL, quantize_row_iq2_xxs_weighted)
GGML_CODEC_ROW(IQ2_XS, dequantize_row_iq2_xs, NULL, quantize_row_iq2_xs_weighted)
GGML_CODEC_ROW(IQ2_S, dequantize_row_iq2_s, quantize_row_iq2_s_ref, quantize_row_iq2_s_weighted)
GGML_CODEC_ROW(IQ3_XXS, dequantize_row_iq3_xxs, quantize_row_iq3_xxs_ref, quantize_row_iq3_xxs_weighted)
GGML_CODEC_ROW(IQ3_S, dequantize_row_iq3_s, quantize_row_iq3_s_ref, quantize_row_iq3_s_weighted)
GGML_CODEC_ROW(IQ1_S, dequantize_row_iq1_s, NULL, quantize_row_iq1_s_weighted)
GGML_CODEC_ROW(IQ1_M, dequantize_row_iq1_m, quantize_row_iq1_m_ref, quantize_row_iq1_m_weighted)
GGML_CODEC_ROW(Q8_1, NULL, quantize_row_q8_1_ref, NULL)
#undef GGML_CODEC_ROW
