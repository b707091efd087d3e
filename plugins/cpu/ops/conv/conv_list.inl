// SPDX-License-Identifier: MIT
// Kernels of convolutions and their patches; columns: see ../kernel_list.inl.
CPU_KERNEL_ROW(IM2COL, ANY, cpu_im2col, T_FLOATS, T_ALL, T_FLOATS, T_ANY, cpu_accepts_im2col,
               cpu_work_im2col, cpu_cost_dst)
CPU_KERNEL_ROW(IM2COL_3D, ANY, cpu_im2col, T_FLOATS, T_ALL, T_FLOATS, T_ANY, cpu_accepts_im2col_3d,
               cpu_work_im2col, cpu_cost_dst)
CPU_KERNEL_ROW(IM2COL_BACK, ANY, cpu_im2col_back, T_F32, T_F32, T_ALL, T_ANY,
               cpu_accepts_im2col_back, cpu_work_none, cpu_cost_src0)
CPU_KERNEL_ROW(COL2IM_1D, ANY, cpu_col2im_1d, T_FLOATS, T_FLOATS, T_ANY, T_ANY,
               cpu_accepts_col2im_1d, cpu_work_none, cpu_cost_src0)
CPU_KERNEL_ROW(CONV_2D, ANY, cpu_conv, T_FLOATS, T_FLOATS, T_FLOATS, T_ANY, cpu_accepts_conv_2d,
               cpu_work_conv, cpu_cost_conv)
CPU_KERNEL_ROW(CONV_3D, ANY, cpu_conv, T_F32, T_FLOATS, T_FLOATS, T_ANY, cpu_accepts_conv_3d,
               cpu_work_conv, cpu_cost_conv)
CPU_KERNEL_ROW(CONV_2D_DW, ANY, cpu_conv_2d_dw, T_F32, T_FLOATS, T_F32, T_ANY,
               cpu_accepts_conv_2d_dw, cpu_work_conv_2d_dw, cpu_cost_conv_2d_dw)
CPU_KERNEL_ROW(CONV_TRANSPOSE_1D, ANY, cpu_conv_transpose, T_F32, T_FLOATS, T_FLOATS, T_ANY,
               cpu_accepts_conv_transpose_1d, cpu_work_conv_transpose, cpu_cost_conv_transpose)
CPU_KERNEL_ROW(CONV_TRANSPOSE_2D, ANY, cpu_conv_transpose, T_F32, T_FLOATS, T_FLOATS, T_ANY,
               cpu_accepts_conv_transpose_2d, cpu_work_conv_transpose, cpu_cost_conv_transpose)
