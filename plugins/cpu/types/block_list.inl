// SPDX-License-Identifier: MIT
// The types whose blocks are whole numbers times scales.
//
// CPU_BLOCK_ROW(NAME, name, size, group, scale_at, offset_at)
//   NAME    as in type_list.inl
//   name    of block_<name>, and open_<name>() in blocks.h
//   size    elements per block
//   group   elements per scale, 16 or 32
//   scale_at, offset_at
//           where the block has the factor of its scales and that of what is added, or -1: F16
CPU_BLOCK_ROW(Q1_0, q1_0, QK1_0, 32, offsetof(block_q1_0, d), -1)
CPU_BLOCK_ROW(Q2_0, q2_0, QK2_0, 32, offsetof(block_q2_0, d), -1)
CPU_BLOCK_ROW(Q4_0, q4_0, QK4_0, 32, offsetof(block_q4_0, d), -1)
CPU_BLOCK_ROW(Q4_1, q4_1, QK4_1, 32, offsetof(block_q4_1, d), offsetof(block_q4_1, m))
CPU_BLOCK_ROW(Q5_0, q5_0, QK5_0, 32, offsetof(block_q5_0, d), -1)
CPU_BLOCK_ROW(Q5_1, q5_1, QK5_1, 32, offsetof(block_q5_1, d), offsetof(block_q5_1, m))
CPU_BLOCK_ROW(Q8_0, q8_0, QK8_0, 32, offsetof(block_q8_0, d), -1)
CPU_BLOCK_ROW(Q2_K, q2_K, QK_K, 16, offsetof(block_q2_K, d), offsetof(block_q2_K, dmin))
CPU_BLOCK_ROW(Q3_K, q3_K, QK_K, 16, offsetof(block_q3_K, d), -1)
CPU_BLOCK_ROW(Q4_K, q4_K, QK_K, 32, offsetof(block_q4_K, d), offsetof(block_q4_K, dmin))
CPU_BLOCK_ROW(Q5_K, q5_K, QK_K, 32, offsetof(block_q5_K, d), offsetof(block_q5_K, dmin))
CPU_BLOCK_ROW(Q6_K, q6_K, QK_K, 16, offsetof(block_q6_K, d), -1)
CPU_BLOCK_ROW(IQ4_NL, iq4_nl, QK4_NL, 32, offsetof(block_iq4_nl, d), -1)
CPU_BLOCK_ROW(IQ4_XS, iq4_xs, QK_K, 32, offsetof(block_iq4_xs, d), -1)
CPU_BLOCK_ROW(TQ1_0, tq1_0, QK_K, 32, offsetof(block_tq1_0, d), -1)
CPU_BLOCK_ROW(TQ2_0, tq2_0, QK_K, 32, offsetof(block_tq2_0, d), -1)
CPU_BLOCK_ROW(MXFP4, mxfp4, QK_MXFP4, 32, -1, -1)
CPU_BLOCK_ROW(NVFP4, nvfp4, QK_NVFP4, 16, -1, -1)
CPU_BLOCK_ROW(IQ2_XXS, iq2_xxs, QK_K, 32, offsetof(block_iq2_xxs, d), -1)
CPU_BLOCK_ROW(IQ2_XS, iq2_xs, QK_K, 16, offsetof(block_iq2_xs, d), -1)
CPU_BLOCK_ROW(IQ2_S, iq2_s, QK_K, 16, offsetof(block_iq2_s, d), -1)
CPU_BLOCK_ROW(IQ3_XXS, iq3_xxs, QK_K, 32, offsetof(block_iq3_xxs, d), -1)
CPU_BLOCK_ROW(IQ3_S, iq3_s, QK_K, 32, offsetof(block_iq3_s, d), -1)
CPU_BLOCK_ROW(IQ1_S, iq1_s, QK_K, 32, offsetof(block_iq1_s, d), -1)
CPU_BLOCK_ROW(IQ1_M, iq1_m, QK_K, 16, -1, -1)
#undef CPU_BLOCK_ROW
