// SPDX-License-Identifier: MIT
// Kernels of functions of one operand, GLU, scale, clamp; columns: see ../kernel_list.inl.
#define CPU_UNARY_ROWS(op, entry, accepts, cost)                                                   \
    CPU_KERNEL_ROW(op, ANY, entry, T_F32, T_FLOATS, T_ANY, T_ANY, accepts, cpu_work_none, cost)    \
    CPU_KERNEL_ROW(op, ANY, entry, T_F16, T_F16, T_ANY, T_ANY, accepts, cpu_work_none, cost)       \
    CPU_KERNEL_ROW(op, ANY, entry, T_BF16, T_BF16, T_ANY, T_ANY, accepts, cpu_work_none, cost)
CPU_UNARY_ROWS(SQR, cpu_sqr, cpu_accepts_map, cpu_cost_dst)
CPU_UNARY_ROWS(SQRT, cpu_sqrt, cpu_accepts_map, cpu_cost_dst)
CPU_UNARY_ROWS(LOG, cpu_log, cpu_accepts_map, cpu_cost_dst_heavy)
CPU_UNARY_ROWS(SIN, cpu_sin, cpu_accepts_map, cpu_cost_dst_heavy)
CPU_UNARY_ROWS(COS, cpu_cos, cpu_accepts_map, cpu_cost_dst_heavy)
CPU_UNARY_ROWS(UNARY, cpu_unary, cpu_accepts_unary, cpu_cost_dst_heavy)
CPU_UNARY_ROWS(LEAKY_RELU, cpu_leaky_relu, cpu_accepts_map, cpu_cost_dst)
CPU_UNARY_ROWS(SCALE, cpu_scale, cpu_accepts_map, cpu_cost_dst)
CPU_UNARY_ROWS(CLAMP, cpu_clamp, cpu_accepts_map, cpu_cost_dst)
CPU_UNARY_ROWS(FILL, cpu_fill, cpu_accepts_map, cpu_cost_dst)
#undef CPU_UNARY_ROWS
CPU_KERNEL_ROW(GLU, ANY, cpu_glu, T_F32, T_F32, T_F32 | T_NONE, T_ANY, cpu_accepts_glu,
               cpu_work_none, cpu_cost_dst_heavy)
CPU_KERNEL_ROW(GLU, ANY, cpu_glu, T_F16, T_F16, T_F16 | T_NONE, T_ANY, cpu_accepts_glu,
               cpu_work_none, cpu_cost_dst_heavy)
CPU_KERNEL_ROW(GLU, ANY, cpu_glu, T_BF16, T_BF16, T_BF16 | T_NONE, T_ANY, cpu_accepts_glu,
               cpu_work_none, cpu_cost_dst_heavy)
