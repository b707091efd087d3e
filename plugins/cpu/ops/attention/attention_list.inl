// SPDX-License-Identifier: MIT
// Kernels of flash_attn_ext; columns: see ../kernel_list.inl.
CPU_KERNEL_ROW(FLASH_ATTN_EXT, ANY, cpu_flash_attn_ext, T_F32, T_F32, T_FLOATS | T_QUANTS,
               T_FLOATS | T_QUANTS, cpu_accepts_flash_attn, cpu_work_flash_attn, cpu_cost_flash_attn)
