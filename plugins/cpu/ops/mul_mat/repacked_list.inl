// SPDX-License-Identifier: MIT
// The types of block_list.inl whose rows are repacked: those of types/repacked.h.
CPU_BLOCK_ROW(Q4_0, q4_0, QK4_0, 32, offsetof(block_q4_0, d), -1)
CPU_BLOCK_ROW(Q2_K, q2_K, QK_K, 16, offsetof(block_q2_K, d), offsetof(block_q2_K, dmin))
CPU_BLOCK_ROW(Q3_K, q3_K, QK_K, 16, offsetof(block_q3_K, d), -1)
CPU_BLOCK_ROW(Q4_K, q4_K, QK_K, 32, offsetof(block_q4_K, d), offsetof(block_q4_K, dmin))
CPU_BLOCK_ROW(Q5_K, q5_K, QK_K, 32, offsetof(block_q5_K, d), offsetof(block_q5_K, dmin))
CPU_BLOCK_ROW(Q6_K, q6_K, QK_K, 16, offsetof(block_q6_K, d), -1)
#undef CPU_BLOCK_ROW
