// SPDX-License-Identifier: MIT
// Kernels of convolutions and their patches; columns: see ../kernel_list.inl.
VK_KERNEL_ROW(IM2COL, ANY, im2col, T_FLOATS, T_SOME, T_FLOATS, T_ANY, vk_accepts_im2col,
              vk_encode_im2col)
VK_KERNEL_ROW(IM2COL_3D, ANY, im2col, T_FLOATS, T_SOME, T_FLOATS, T_ANY, vk_accepts_im2col_3d,
              vk_encode_im2col)
VK_KERNEL_ROW(IM2COL_BACK, ANY, im2col_back, T_F32, T_F32, T_SOME, T_ANY, vk_accepts_im2col_back,
              vk_encode_im2col_back)
VK_KERNEL_ROW(COL2IM_1D, ANY, col2im_1d, T_FLOATS, T_FLOATS, T_ANY, T_ANY, vk_accepts_col2im_1d,
              vk_encode_col2im_1d)
VK_KERNEL_ROW(CONV_2D, ANY, conv_direct, T_FLOATS, T_FLOATS, T_FLOATS, T_ANY, vk_accepts_conv_2d,
              vk_encode_conv_direct)
VK_KERNEL_ROW(CONV_3D, ANY, conv_direct, T_F32, T_FLOATS, T_FLOATS, T_ANY, vk_accepts_conv_3d,
              vk_encode_conv_direct)
VK_KERNEL_ROW(CONV_2D_DW, ANY, conv_2d_dw, T_F32, T_FLOATS, T_F32, T_ANY, vk_accepts_conv_2d_dw,
              vk_encode_conv_2d_dw)
VK_KERNEL_ROW(CONV_TRANSPOSE_1D, ANY, conv_transpose, T_F32, T_FLOATS, T_FLOATS, T_ANY,
              vk_accepts_conv_transpose_1d, vk_encode_conv_transpose)
VK_KERNEL_ROW(CONV_TRANSPOSE_2D, ANY, conv_transpose, T_F32, T_FLOATS, T_FLOATS, T_ANY,
              vk_accepts_conv_transpose_2d, vk_encode_conv_transpose)
