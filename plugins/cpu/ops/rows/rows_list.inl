// SPDX-License-Identifier: MIT
// Kernels of get_rows, set_rows; columns: see ../kernel_list.inl.
CPU_KERNEL_ROW(GET_ROWS, ANY, cpu_get_rows, T_F32, T_ALL & ~T_I32, T_I32, T_ANY,
               cpu_accepts_get_rows, cpu_work_none, cpu_cost_dst)
CPU_KERNEL_ROW(GET_ROWS, ANY, cpu_get_rows, T_I32, T_I32, T_I32, T_ANY,
               cpu_accepts_get_rows, cpu_work_none, cpu_cost_dst)
CPU_KERNEL_ROW(SET_ROWS, ANY, cpu_set_rows, T_PLAIN | T_ENCODED, T_F32 | T_F16, T_I64 | T_I32, T_ANY,
               cpu_accepts_set_rows, cpu_work_none, cpu_cost_src0)
