// SPDX-License-Identifier: MIT
// Kernels of soft_max and of the causal mask; columns: see ../kernel_list.inl.
CPU_KERNEL_ROW(SOFT_MAX, ANY, cpu_soft_max, T_F32, T_F32, T_F32 | T_F16 | T_NONE, T_F32 | T_NONE,
               cpu_accepts_soft_max, cpu_work_none, cpu_cost_dst_heavy)
CPU_KERNEL_ROW(DIAG_MASK_INF, ANY, cpu_diag_mask_inf, T_F32, T_F32, T_NONE, T_NONE,
               cpu_accepts_diag_mask, cpu_work_none, cpu_cost_dst)
CPU_KERNEL_ROW(DIAG_MASK_ZERO, ANY, cpu_diag_mask_zero, T_F32, T_F32, T_NONE, T_NONE,
               cpu_accepts_diag_mask, cpu_work_none, cpu_cost_dst)
