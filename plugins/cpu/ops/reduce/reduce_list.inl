// SPDX-License-Identifier: MIT
// Kernels of sums, norms, argmax, repeat, concat; columns: see ../kernel_list.inl.
CPU_KERNEL_ROW(SUM, ANY, cpu_sum_all, T_F32, T_F32, T_ANY, T_ANY, cpu_accepts_sum, cpu_work_sum,
               cpu_cost_src0)
CPU_KERNEL_ROW(SUM, ANY, cpu_sum_all, T_F16, T_F16, T_ANY, T_ANY, cpu_accepts_sum, cpu_work_sum,
               cpu_cost_src0)
CPU_KERNEL_ROW(SUM, ANY, cpu_sum_all, T_BF16, T_BF16, T_ANY, T_ANY, cpu_accepts_sum, cpu_work_sum,
               cpu_cost_src0)
CPU_KERNEL_ROW(SUM_ROWS, ANY, cpu_sum_rows, T_F32, T_F32, T_ANY, T_ANY, cpu_accepts_sum_rows,
               cpu_work_none, cpu_cost_src0)
CPU_KERNEL_ROW(MEAN, ANY, cpu_mean, T_F32, T_F32, T_ANY, T_ANY, cpu_accepts_sum_rows,
               cpu_work_none, cpu_cost_src0)
CPU_KERNEL_ROW(ARGMAX, ANY, cpu_argmax, T_I32, T_F32, T_ANY, T_ANY, cpu_accepts_argmax,
               cpu_work_none, cpu_cost_src0)
CPU_KERNEL_ROW(CUMSUM, ANY, cpu_cumsum, T_F32, T_F32, T_ANY, T_ANY, cpu_accepts_map, cpu_work_none,
               cpu_cost_src0)
CPU_KERNEL_ROW(NORM, ANY, cpu_norm, T_F32, T_F32, T_ANY, T_ANY, cpu_accepts_norm, cpu_work_none,
               cpu_cost_dst)
CPU_KERNEL_ROW(RMS_NORM, ANY, cpu_rms_norm, T_F32, T_F32, T_ANY, T_ANY, cpu_accepts_norm,
               cpu_work_none, cpu_cost_dst)
CPU_KERNEL_ROW(MUL, CPU_SUB_RMS_NORM_MUL, cpu_rms_norm_mul, T_F32, T_F32, T_F32, T_ANY,
               cpu_accepts_rms_norm_mul, cpu_work_none, cpu_cost_dst)
CPU_KERNEL_ROW(L2_NORM, ANY, cpu_l2_norm, T_F32, T_F32, T_ANY, T_ANY, cpu_accepts_norm,
               cpu_work_none, cpu_cost_dst)
CPU_KERNEL_ROW(GROUP_NORM, ANY, cpu_group_norm, T_F32, T_F32, T_ANY, T_ANY, cpu_accepts_group_norm,
               cpu_work_none, cpu_cost_dst)
CPU_KERNEL_ROW(REPEAT, ANY, cpu_repeat, T_ALL, T_ALL, T_ANY, T_ANY, cpu_accepts_repeat,
               cpu_work_none, cpu_cost_dst)
CPU_KERNEL_ROW(CONCAT, ANY, cpu_concat, T_ALL, T_ALL, T_ALL, T_ANY, cpu_accepts_concat,
               cpu_work_none, cpu_cost_dst)
