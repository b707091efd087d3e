// SPDX-License-Identifier: MIT
// Kernels of gradients, losses, optimiser steps and the application's functions; columns: see
// ../kernel_list.inl.
#define CPU_SILU_BACK_ROW(type)                                                                    \
    CPU_KERNEL_ROW(SILU_BACK, ANY, cpu_silu_back, type, type, type, T_NONE, cpu_accepts_same_pair, \
                   cpu_work_none, cpu_cost_dst_heavy)
CPU_SILU_BACK_ROW(T_F32)
CPU_SILU_BACK_ROW(T_F16)
CPU_SILU_BACK_ROW(T_BF16)
#undef CPU_SILU_BACK_ROW
CPU_KERNEL_ROW(RMS_NORM_BACK, ANY, cpu_rms_norm_back, T_F32, T_F32, T_F32, T_NONE,
               cpu_accepts_same_pair, cpu_work_none, cpu_cost_dst)
CPU_KERNEL_ROW(SOFT_MAX_BACK, ANY, cpu_soft_max_back, T_F32, T_F32, T_F32, T_NONE,
               cpu_accepts_soft_max_back, cpu_work_none, cpu_cost_dst)
CPU_KERNEL_ROW(REPEAT_BACK, ANY, cpu_repeat_back, T_F32, T_F32, T_NONE, T_NONE,
               cpu_accepts_repeat_back, cpu_work_none, cpu_cost_src0)
CPU_KERNEL_ROW(GET_ROWS_BACK, ANY, cpu_get_rows_back, T_F32, T_FLOATS | T_QUANTS, T_I32, T_NONE,
               cpu_accepts_get_rows_back, cpu_work_none, cpu_cost_src0)
CPU_KERNEL_ROW(OUT_PROD, ANY, cpu_out_prod, T_F32, T_FLOATS | T_QUANTS, T_FLOATS, T_NONE,
               cpu_accepts_out_prod, cpu_work_none, cpu_cost_out_prod)
CPU_KERNEL_ROW(CROSS_ENTROPY_LOSS, ANY, cpu_cross_entropy_loss, T_F32, T_F32, T_F32, T_NONE,
               cpu_accepts_cross_entropy_loss, cpu_work_cross_entropy_loss, cpu_cost_src0)
CPU_KERNEL_ROW(CROSS_ENTROPY_LOSS_BACK, ANY, cpu_cross_entropy_loss_back, T_F32, T_F32, T_F32,
               T_F32, cpu_accepts_cross_entropy_loss_back, cpu_work_none, cpu_cost_dst_heavy)
CPU_KERNEL_ROW(OPT_STEP_ADAMW, ANY, cpu_opt_step_adamw, T_F32, T_F32, T_F32, T_F32,
               cpu_accepts_opt_step, cpu_work_none, cpu_cost_dst)
CPU_KERNEL_ROW(OPT_STEP_SGD, ANY, cpu_opt_step_sgd, T_F32, T_F32, T_F32, T_F32,
               cpu_accepts_opt_step, cpu_work_none, cpu_cost_dst)
#define CPU_CUSTOM_ROW(op)                                                                         \
    CPU_KERNEL_ROW(op, ANY, cpu_custom, T_ANY, T_ANY, T_ANY, T_ANY, cpu_accepts_custom,            \
                   cpu_work_barrier, cpu_cost_custom)
CPU_CUSTOM_ROW(MAP_CUSTOM1)
CPU_CUSTOM_ROW(MAP_CUSTOM2)
CPU_CUSTOM_ROW(MAP_CUSTOM3)
CPU_CUSTOM_ROW(CUSTOM)
#undef CPU_CUSTOM_ROW
