// SPDX-License-Identifier: MIT
// Kernels of pooling, resampling, padding, windows and sequences; columns: see ../kernel_list.inl.
#define CPU_MOVED (T_FLOATS | T_INTS | T_F64)
CPU_KERNEL_ROW(POOL_1D, ANY, cpu_pool_1d, T_F32, T_FLOATS, T_ANY, T_ANY, cpu_accepts_pool_1d,
               cpu_work_none, cpu_cost_pool_1d)
CPU_KERNEL_ROW(POOL_2D, ANY, cpu_pool_2d, T_F32, T_FLOATS, T_ANY, T_ANY, cpu_accepts_pool_2d,
               cpu_work_none, cpu_cost_pool_2d)
CPU_KERNEL_ROW(POOL_2D_BACK, ANY, cpu_pool_2d_back, T_F32, T_F32, T_FLOATS, T_ANY,
               cpu_accepts_pool_2d_back, cpu_work_none, cpu_cost_dst_heavy)
CPU_KERNEL_ROW(UPSCALE, ANY, cpu_upscale, T_FLOATS, T_FLOATS, T_ANY, T_ANY, cpu_accepts_upscale,
               cpu_work_upscale, cpu_cost_upscale)
CPU_KERNEL_ROW(PAD, ANY, cpu_pad, CPU_MOVED, CPU_MOVED, T_ANY, T_ANY, cpu_accepts_pad,
               cpu_work_none, cpu_cost_dst)
CPU_KERNEL_ROW(PAD_REFLECT_1D, ANY, cpu_pad_reflect_1d, T_F32, T_F32, T_ANY, T_ANY,
               cpu_accepts_pad_reflect_1d, cpu_work_none, cpu_cost_dst)
CPU_KERNEL_ROW(ROLL, ANY, cpu_roll, CPU_MOVED, CPU_MOVED, T_ANY, T_ANY, cpu_accepts_roll,
               cpu_work_none, cpu_cost_dst)
CPU_KERNEL_ROW(WIN_PART, ANY, cpu_win_part, CPU_MOVED, CPU_MOVED, T_ANY, T_ANY,
               cpu_accepts_win_part, cpu_work_none, cpu_cost_dst)
CPU_KERNEL_ROW(WIN_UNPART, ANY, cpu_win_unpart, CPU_MOVED, CPU_MOVED, T_ANY, T_ANY,
               cpu_accepts_win_unpart, cpu_work_none, cpu_cost_dst)
CPU_KERNEL_ROW(GET_REL_POS, ANY, cpu_get_rel_pos, T_F16, T_HALVES, T_ANY, T_ANY,
               cpu_accepts_get_rel_pos, cpu_work_none, cpu_cost_dst)
CPU_KERNEL_ROW(ADD_REL_POS, ANY, cpu_add_rel_pos, T_F32, T_F32, T_F32, T_F32,
               cpu_accepts_add_rel_pos, cpu_work_none, cpu_cost_dst)
CPU_KERNEL_ROW(ARANGE, ANY, cpu_arange, T_F32, T_NONE, T_ANY, T_ANY, cpu_accepts_arange,
               cpu_work_none, cpu_cost_dst)
CPU_KERNEL_ROW(TIMESTEP_EMBEDDING, ANY, cpu_timestep_embedding, T_F32, T_F32, T_ANY, T_ANY,
               cpu_accepts_timestep_embedding, cpu_work_none, cpu_cost_dst_heavy)
#undef CPU_MOVED
