// SPDX-License-Identifier: MIT
// Kernels of add, add1, sub, mul, div; columns: see ../kernel_list.inl.
#define CPU_BINARY_ROWS(op, entry)                                                                  \
    CPU_KERNEL_ROW(op, ANY, entry, T_F32, T_FLOATS, T_F32, T_ANY, cpu_accepts_binary,               \
                   cpu_work_none, cpu_cost_dst)                                                     \
    CPU_KERNEL_ROW(op, ANY, entry, T_F16, T_F16, T_F16 | T_F32, T_ANY, cpu_accepts_binary,          \
                   cpu_work_none, cpu_cost_dst)                                                     \
    CPU_KERNEL_ROW(op, ANY, entry, T_BF16, T_BF16, T_BF16 | T_F32, T_ANY, cpu_accepts_binary,       \
                   cpu_work_none, cpu_cost_dst)
CPU_BINARY_ROWS(ADD, cpu_add)
CPU_BINARY_ROWS(SUB, cpu_sub)
CPU_BINARY_ROWS(MUL, cpu_mul)
CPU_BINARY_ROWS(DIV, cpu_div)
CPU_BINARY_ROWS(ADD1, cpu_add)
#undef CPU_BINARY_ROWS
