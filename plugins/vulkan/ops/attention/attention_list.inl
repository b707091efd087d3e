// SPDX-License-Identifier: MIT
// Fused attention; columns: see ../kernel_list.inl.
VK_KERNEL_ROW(FLASH_ATTN_EXT, ANY, flash_attn_ext, T_F32, T_F32, T_FLOATS | T_CODED,
              T_FLOATS | T_CODED, vk_accepts_flash_attn, vk_encode_flash_attn)
