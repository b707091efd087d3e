// SPDX-License-Identifier: MIT
// The types of block_list.inl whose rows are repacked, at levels with AVX-512, AVX2 and DOTPROD.
// (`neon` has the list and repacks none: CPU_REPACKS.)
#if defined(CPU_NEON)
CPU_BLOCK_ROW(Q8_0, q8_0, QK8_0, 32, offsetof(block_q8_0, d), -1)
CPU_BLOCK_ROW(Q6_K, q6_K, QK_K, 16, offsetof(block_q6_K, d), -1)
#endif
#if defined(__AVX512F__) || defined(CPU_NEON)
CPU_BLOCK_ROW(Q4_0, q4_0, QK4_0, 32, offsetof(block_q4_0, d), -1)
CPU_BLOCK_ROW(Q4_1, q4_1, QK4_1, 32, offsetof(block_q4_1, d), offsetof(block_q4_1, m))
CPU_BLOCK_ROW(Q5_0, q5_0, QK5_0, 32, offsetof(block_q5_0, d), -1)
CPU_BLOCK_ROW(Q5_1, q5_1, QK5_1, 32, offsetof(block_q5_1, d), offsetof(block_q5_1, m))
CPU_BLOCK_ROW(Q4_K, q4_K, QK_K, 32, offsetof(block_q4_K, d), offsetof(block_q4_K, dmin))
CPU_BLOCK_ROW(Q5_K, q5_K, QK_K, 32, offsetof(block_q5_K, d), offsetof(block_q5_K, dmin))
CPU_BLOCK_ROW(TQ2_0, tq2_0, QK_K, 32, offsetof(block_tq2_0, d), -1)
#endif
// Without VNNI, bytes with signs aren't multiplied by AVX-512.
#if defined(__AVX512VNNI__) || defined(CPU_NEON)
CPU_BLOCK_ROW(IQ4_NL, iq4_nl, QK4_NL, 32, offsetof(block_iq4_nl, d), -1)
CPU_BLOCK_ROW(IQ4_XS, iq4_xs, QK_K, 32, offsetof(block_iq4_xs, d), -1)
#endif
CPU_BLOCK_ROW(Q2_K, q2_K, QK_K, 16, offsetof(block_q2_K, d), offsetof(block_q2_K, dmin))
CPU_BLOCK_ROW(Q3_K, q3_K, QK_K, 16, offsetof(block_q3_K, d), -1)
#undef CPU_BLOCK_ROW
