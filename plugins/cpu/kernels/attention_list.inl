// SPDX-License-Identifier: MIT
// Kernels of flash_attn_ext; columns: see ../kernel_list.inl.
