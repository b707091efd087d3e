// SPDX-License-Identifier: MIT
// Fused attention; columns: see ../kernel_list.inl.
GVK_KERNEL_ROW(FLASH_ATTN_EXT, ANY, flash_attn_ext, T_F32, T_F32, T_FLOATS | T_CODED,
               T_FLOATS | T_CODED, gvk_accepts_flash_attn, gvk_encode_flash_attn)
