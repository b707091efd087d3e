// SPDX-License-Identifier: MIT
// Kernels of sorting, counting, regions and parts of matrices; columns: see ../kernel_list.inl.
CPU_KERNEL_ROW(ARGSORT, ANY, cpu_argsort, T_I32, T_F32, T_NONE, T_NONE, cpu_accepts_argsort,
               cpu_work_sort, cpu_cost_src0)
CPU_KERNEL_ROW(TOP_K, ANY, cpu_top_k, T_I32, T_F32, T_NONE, T_NONE, cpu_accepts_top_k,
               cpu_work_sort, cpu_cost_src0)
CPU_KERNEL_ROW(COUNT_EQUAL, ANY, cpu_count_equal, T_I64, T_I32, T_I32, T_NONE,
               cpu_accepts_count_equal, cpu_work_count_equal, cpu_cost_src0)
CPU_KERNEL_ROW(ACC, ANY, cpu_acc, T_F32, T_F32, T_F32, T_NONE, cpu_accepts_region,
               cpu_work_barrier, cpu_cost_dst)
CPU_KERNEL_ROW(SET, ANY, cpu_set, T_ALL, T_ALL, T_ALL, T_NONE, cpu_accepts_region,
               cpu_work_barrier, cpu_cost_dst)
CPU_KERNEL_ROW(TRI, ANY, cpu_tri, T_F32, T_F32, T_NONE, T_NONE, cpu_accepts_tri, cpu_work_none,
               cpu_cost_dst)
CPU_KERNEL_ROW(DIAG, ANY, cpu_diag, T_PLAIN, T_PLAIN, T_NONE, T_NONE, cpu_accepts_diag,
               cpu_work_none, cpu_cost_dst)
