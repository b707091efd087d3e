// SPDX-License-Identifier: MIT
// Products of matrices; columns: see ../kernel_list.inl.
VK_KERNEL_ROW(MUL_MAT, ANY, mul_mat, T_F32, T_FLOATS | T_CODED | T_GRIDS, T_FLOATS, T_NONE,
              vk_accepts_mul_mat, vk_encode_mul_mat)
VK_KERNEL_ROW(MUL_MAT_ID, ANY, mul_mat_id, T_F32, T_FLOATS | T_CODED | T_GRIDS, T_FLOATS, T_I32,
              vk_accepts_mul_mat_id, vk_encode_mul_mat_id)
VK_KERNEL_ROW(OUT_PROD, ANY, out_prod, T_F32, T_FLOATS | T_CODED | T_GRIDS, T_FLOATS, T_NONE,
              vk_accepts_out_prod, vk_encode_out_prod)
