// SPDX-License-Identifier: MIT
// Kernels of convolutions and their patches; columns: see ../kernel_list.inl.
GVK_KERNEL_ROW(IM2COL, ANY, im2col, T_FLOATS, T_SOME, T_FLOATS, T_ANY, gvk_accepts_im2col,
               gvk_encode_im2col)
GVK_KERNEL_ROW(IM2COL_3D, ANY, im2col, T_FLOATS, T_SOME, T_FLOATS, T_ANY, gvk_accepts_im2col_3d,
               gvk_encode_im2col)
GVK_KERNEL_ROW(IM2COL_BACK, ANY, im2col_back, T_F32, T_F32, T_SOME, T_ANY, gvk_accepts_im2col_back,
               gvk_encode_im2col_back)
GVK_KERNEL_ROW(COL2IM_1D, ANY, col2im_1d, T_FLOATS, T_FLOATS, T_ANY, T_ANY, gvk_accepts_col2im_1d,
               gvk_encode_col2im_1d)
GVK_KERNEL_ROW(CONV_2D, ANY, conv_direct, T_FLOATS, T_FLOATS, T_FLOATS, T_ANY, gvk_accepts_conv_2d,
               gvk_encode_conv_direct)
GVK_KERNEL_ROW(CONV_3D, ANY, conv_direct, T_F32, T_FLOATS, T_FLOATS, T_ANY, gvk_accepts_conv_3d,
               gvk_encode_conv_direct)
GVK_KERNEL_ROW(CONV_2D_DW, ANY, conv_2d_dw, T_F32, T_FLOATS, T_F32, T_ANY, gvk_accepts_conv_2d_dw,
               gvk_encode_conv_2d_dw)
GVK_KERNEL_ROW(CONV_TRANSPOSE_1D, ANY, conv_transpose, T_F32, T_FLOATS, T_FLOATS, T_ANY,
               gvk_accepts_conv_transpose_1d, gvk_encode_conv_transpose)
GVK_KERNEL_ROW(CONV_TRANSPOSE_2D, ANY, conv_transpose, T_F32, T_FLOATS, T_FLOATS, T_ANY,
               gvk_accepts_conv_transpose_2d, gvk_encode_conv_transpose)
