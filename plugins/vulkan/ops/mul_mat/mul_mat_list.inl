// SPDX-License-Identifier: MIT
// Products of matrices; columns: see ../kernel_list.inl.
GVK_KERNEL_ROW(MUL_MAT, ANY, mul_mat, T_F32, T_FLOATS | T_CODED | T_GRIDS, T_FLOATS, T_NONE,
               gvk_accepts_mul_mat, gvk_encode_mul_mat)
GVK_KERNEL_ROW(MUL_MAT_ID, ANY, mul_mat_id, T_F32, T_FLOATS | T_CODED | T_GRIDS, T_FLOATS, T_I32,
               gvk_accepts_mul_mat_id, gvk_encode_mul_mat_id)
GVK_KERNEL_ROW(OUT_PROD, ANY, out_prod, T_F32, T_FLOATS | T_CODED | T_GRIDS, T_FLOATS, T_NONE,
               gvk_accepts_out_prod, gvk_encode_out_prod)
