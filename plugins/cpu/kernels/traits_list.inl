// SPDX-License-Identifier: MIT
// What ggml_get_type_traits_cpu() answers, once per type that can be encoded; the others are all 0.
//
// CPU_TRAITS_ROW(NAME, partner)
//   NAME     as in type_list.inl
//   partner  the type whose rows it has dot products with
// CPU_WHOLE_ROW(NAME, partner): the same, its dot products computed in whole numbers
// CPU_ENCODER_ROW(NAME, partner): the same without dot products
CPU_TRAITS_ROW(F32, F32)
CPU_TRAITS_ROW(F16, F16)
CPU_TRAITS_ROW(BF16, BF16)
CPU_TRAITS_ROW(Q1_0, Q8_0)
CPU_TRAITS_ROW(Q2_0, Q8_0)
CPU_WHOLE_ROW(Q4_0, Q8_0)
CPU_TRAITS_ROW(Q4_1, Q8_1)
CPU_TRAITS_ROW(Q5_0, Q8_0)
CPU_TRAITS_ROW(Q5_1, Q8_1)
CPU_WHOLE_ROW(Q8_0, Q8_0)
CPU_TRAITS_ROW(Q2_K, Q8_K)
CPU_TRAITS_ROW(Q3_K, Q8_K)
CPU_WHOLE_ROW(Q4_K, Q8_K)
CPU_TRAITS_ROW(Q5_K, Q8_K)
CPU_WHOLE_ROW(Q6_K, Q8_K)
CPU_TRAITS_ROW(IQ4_NL, Q8_0)
CPU_TRAITS_ROW(IQ4_XS, Q8_K)
CPU_TRAITS_ROW(TQ1_0, Q8_K)
CPU_TRAITS_ROW(TQ2_0, Q8_K)
CPU_TRAITS_ROW(MXFP4, Q8_0)
CPU_TRAITS_ROW(NVFP4, Q8_0)
CPU_ENCODER_ROW(Q8_1, Q8_1)
CPU_ENCODER_ROW(Q8_K, F32)
CPU_ENCODER_ROW(I32, F32)
#undef CPU_TRAITS_ROW
#undef CPU_WHOLE_ROW
#undef CPU_ENCODER_ROW
