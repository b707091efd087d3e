// SPDX-License-Identifier: MIT
// Kernels that compute each element by itself; columns: see ../kernel_list.inl.
VK_KERNEL_ROW(UNARY, ANY, unary, T_FLOATS, T_FLOATS, T_NONE, T_NONE, vk_accepts_unary,
              vk_encode_unary)
