// SPDX-License-Identifier: MIT
// The reference codecs of every type that has them, once. Functions are declared in quant/quant.h.
//
// GGML_CODEC_ROW(NAME, to_float, from_float_ref)
//   NAME            as in type_list.inl
//   to_float        decodes rows of whole blocks, or NULL
//   from_float_ref  encodes rows of whole blocks, or NULL
GGML_CODEC_ROW(F16, dequantize_row_f16, quantize_row_f16_ref)
GGML_CODEC_ROW(BF16, dequantize_row_bf16, quantize_row_bf16_ref)
#undef GGML_CODEC_ROW
