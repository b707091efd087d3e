// SPDX-License-Identifier: MIT
// Kernels of rope; columns: see ../kernel_list.inl.
#define CPU_ROPE_ROW(op)                                                                           \
    CPU_KERNEL_ROW(op, ANY, cpu_rope, T_F32 | T_F16, T_F32 | T_F16, T_I32, T_F32 | T_NONE,         \
                   cpu_accepts_rope, cpu_work_rope, cpu_cost_dst_heavy)
CPU_ROPE_ROW(ROPE)
CPU_ROPE_ROW(ROPE_BACK)
#undef CPU_ROPE_ROW
