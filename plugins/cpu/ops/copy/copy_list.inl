// SPDX-License-Identifier: MIT
// Kernels of cpy, cont, dup; columns: see ../kernel_list.inl.
#define CPU_COPY_ROW(op)                                                                           \
    CPU_KERNEL_ROW(op, ANY, cpu_copy, T_ALL, T_ALL, T_ANY, T_ANY, cpu_accepts_copy, cpu_work_none, \
                   cpu_cost_dst)
CPU_COPY_ROW(CPY)
CPU_COPY_ROW(CONT)
CPU_COPY_ROW(DUP)
#undef CPU_COPY_ROW
