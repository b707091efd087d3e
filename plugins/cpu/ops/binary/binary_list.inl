// SPDX-License-Identifier: MIT
// Kernels of add, add1, add_id, sub, mul, div; columns: see ../kernel_list.inl.
#define CPU_BINARY_ROWS(op, entry)                                                                 \
    CPU_KERNEL_ROW(op, ANY, entry, T_F32, T_FLOATS, T_F32, T_ANY, cpu_accepts_binary,              \
                   cpu_work_none, cpu_cost_dst)                                                    \
    CPU_KERNEL_ROW(op, ANY, entry, T_F16, T_F16, T_F16 | T_F32, T_ANY, cpu_accepts_binary,         \
                   cpu_work_none, cpu_cost_dst)                                                    \
    CPU_KERNEL_ROW(op, ANY, entry, T_BF16, T_BF16, T_BF16 | T_F32, T_ANY, cpu_accepts_binary,      \
                   cpu_work_none, cpu_cost_dst)
CPU_BINARY_ROWS(ADD, cpu_add)
CPU_BINARY_ROWS(SUB, cpu_sub)
CPU_BINARY_ROWS(MUL, cpu_mul)
CPU_BINARY_ROWS(DIV, cpu_div)
CPU_BINARY_ROWS(ADD1, cpu_add)
#undef CPU_BINARY_ROWS
#define CPU_ADD_PACKED_ROW(op)                                                                     \
    CPU_KERNEL_ROW(op, ANY, cpu_add_packed, T_FLOATS | T_ENCODED, T_QUANTS, T_F32,      \
                   T_ANY, cpu_accepts_add_packed, cpu_work_none, cpu_cost_dst)
CPU_ADD_PACKED_ROW(ADD)
CPU_ADD_PACKED_ROW(ADD1)
#undef CPU_ADD_PACKED_ROW
CPU_KERNEL_ROW(ADD_ID, ANY, cpu_add_id, T_F32, T_F32, T_F32, T_I32, cpu_accepts_add_id,
               cpu_work_none, cpu_cost_dst)
