// SPDX-License-Identifier: MIT
// Kernels of pooling, resampling, padding and windows; columns: see ../kernel_list.inl.
#define VK_MOVED (T_FLOATS | T_INTS | GPU_T(F64))
VK_KERNEL_ROW(POOL_1D, ANY, pool, T_F32, T_FLOATS, T_ANY, T_ANY, vk_accepts_pool_1d,
              vk_encode_pool)
VK_KERNEL_ROW(POOL_2D, ANY, pool, T_F32, T_FLOATS, T_ANY, T_ANY, vk_accepts_pool_2d,
              vk_encode_pool)
VK_KERNEL_ROW(POOL_2D_BACK, ANY, pool_back, T_F32, T_F32, T_FLOATS, T_ANY, vk_accepts_pool_2d_back,
              vk_encode_pool_2d_back)
VK_KERNEL_ROW(UPSCALE, ANY, upscale, T_FLOATS, T_FLOATS, T_ANY, T_ANY, vk_accepts_upscale,
              vk_encode_upscale)
VK_KERNEL_ROW(PAD, ANY, move, VK_MOVED, VK_MOVED, T_ANY, T_ANY, vk_accepts_pad, vk_encode_pad)
VK_KERNEL_ROW(PAD_REFLECT_1D, ANY, move, T_F32, T_F32, T_ANY, T_ANY, vk_accepts_pad_reflect_1d,
              vk_encode_pad_reflect_1d)
VK_KERNEL_ROW(ROLL, ANY, move, VK_MOVED, VK_MOVED, T_ANY, T_ANY, vk_accepts_roll, vk_encode_roll)
VK_KERNEL_ROW(WIN_PART, ANY, move, VK_MOVED, VK_MOVED, T_ANY, T_ANY, vk_accepts_win_part,
              vk_encode_win_part)
VK_KERNEL_ROW(WIN_UNPART, ANY, move, VK_MOVED, VK_MOVED, T_ANY, T_ANY, vk_accepts_win_unpart,
              vk_encode_win_unpart)
VK_KERNEL_ROW(GET_REL_POS, ANY, move, T_F16, T_F16 | T_BF16, T_ANY, T_ANY, vk_accepts_get_rel_pos,
              vk_encode_get_rel_pos)
VK_KERNEL_ROW(ADD_REL_POS, ANY, add_rel_pos, T_F32, T_F32, T_F32, T_F32, vk_accepts_add_rel_pos,
              vk_encode_add_rel_pos)
#undef VK_MOVED
