// SPDX-License-Identifier: MIT
// Kernels of mul_mat, mul_mat_id; columns: see ../kernel_list.inl.
CPU_KERNEL_ROW(MUL_MAT, ANY, cpu_mul_mat, T_F32, T_FLOATS | T_QUANTS, T_FLOATS | T_PARTNERS, T_NONE,
               cpu_accepts_mul_mat, cpu_work_mul_mat, cpu_cost_mul_mat)
CPU_KERNEL_ROW(MUL_MAT_ID, ANY, cpu_mul_mat_id, T_F32, T_FLOATS | T_QUANTS,
               T_FLOATS | T_PARTNERS, T_I32, cpu_accepts_mul_mat_id, cpu_work_mul_mat_id,
               cpu_cost_mul_mat)
