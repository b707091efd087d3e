// SPDX-License-Identifier: MIT
// Kernels of pooling, resampling, padding and windows; columns: see ../kernel_list.inl.
#define GVK_MOVED T_PLAIN
GVK_KERNEL_ROW(POOL_1D, ANY, pool, T_F32, T_FLOATS, T_ANY, T_ANY, gvk_accepts_pool_1d,
               gvk_encode_pool)
GVK_KERNEL_ROW(POOL_2D, ANY, pool, T_F32, T_FLOATS, T_ANY, T_ANY, gvk_accepts_pool_2d,
               gvk_encode_pool)
GVK_KERNEL_ROW(POOL_2D_BACK, ANY, pool_back, T_F32, T_F32, T_FLOATS, T_ANY,
               gvk_accepts_pool_2d_back, gvk_encode_pool_2d_back)
GVK_KERNEL_ROW(UPSCALE, ANY, upscale, T_FLOATS, T_FLOATS, T_ANY, T_ANY, gvk_accepts_upscale,
               gvk_encode_upscale)
GVK_KERNEL_ROW(PAD, ANY, move, GVK_MOVED, GVK_MOVED, T_ANY, T_ANY, gvk_accepts_pad, gvk_encode_pad)
GVK_KERNEL_ROW(PAD_REFLECT_1D, ANY, move, T_F32, T_F32, T_ANY, T_ANY, gvk_accepts_pad_reflect_1d,
               gvk_encode_pad_reflect_1d)
GVK_KERNEL_ROW(ROLL, ANY, move, GVK_MOVED, GVK_MOVED, T_ANY, T_ANY, gvk_accepts_roll,
               gvk_encode_roll)
GVK_KERNEL_ROW(WIN_PART, ANY, move, GVK_MOVED, GVK_MOVED, T_ANY, T_ANY, gvk_accepts_win_part,
               gvk_encode_win_part)
GVK_KERNEL_ROW(WIN_UNPART, ANY, move, GVK_MOVED, GVK_MOVED, T_ANY, T_ANY, gvk_accepts_win_unpart,
               gvk_encode_win_unpart)
GVK_KERNEL_ROW(GET_REL_POS, ANY, move, T_F16, T_F16 | T_BF16, T_ANY, T_ANY, gvk_accepts_get_rel_pos,
               gvk_encode_get_rel_pos)
GVK_KERNEL_ROW(ADD_REL_POS, ANY, add_rel_pos, T_F32, T_F32, T_F32, T_F32, gvk_accepts_add_rel_pos,
               gvk_encode_add_rel_pos)
#undef GVK_MOVED
