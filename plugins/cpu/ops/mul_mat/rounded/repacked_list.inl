// SPDX-License-Identifier: MIT
// The types of block_list.inl whose rows are repacked: those of types/repacked.h.
CPU_BLOCK_ROW(Q2_K, q2_K, QK_K, 16, offsetof(block_q2_K, d), offsetof(block_q2_K, dmin))
CPU_BLOCK_ROW(Q3_K, q3_K, QK_K, 16, offsetof(block_q3_K, d), -1)
#undef CPU_BLOCK_ROW
