// SPDX-License-Identifier: MIT
// Kernels of mul_mat, mul_mat_id; columns: see ../kernel_list.inl.
