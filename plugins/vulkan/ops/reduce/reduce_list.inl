// SPDX-License-Identifier: MIT
// Kernels in which a group of invocations shares a row: norms, soft_max, sums, sorting; columns:
// see ../kernel_list.inl.
VK_KERNEL_ROW(NORM, ANY, norm, T_F32, T_F32, T_ANY, T_ANY, vk_accepts_norm, vk_encode_norm)
VK_KERNEL_ROW(RMS_NORM, ANY, rms_norm, T_F32, T_F32, T_ANY, T_ANY, vk_accepts_norm, vk_encode_norm)
VK_KERNEL_ROW(L2_NORM, ANY, l2_norm, T_F32, T_F32, T_ANY, T_ANY, vk_accepts_norm, vk_encode_norm)
VK_KERNEL_ROW(GROUP_NORM, ANY, group_norm, T_F32, T_F32, T_ANY, T_ANY, vk_accepts_group_norm,
              vk_encode_group_norm)
VK_KERNEL_ROW(SOFT_MAX, ANY, soft_max, T_F32, T_F32, T_F32 | T_F16 | T_NONE, T_F32 | T_NONE,
              vk_accepts_soft_max, vk_encode_soft_max)
VK_KERNEL_ROW(DIAG_MASK_INF, ANY, diag_mask_inf, T_F32, T_F32, T_ANY, T_ANY, vk_accepts_diag_mask,
              vk_encode_diag_mask)
VK_KERNEL_ROW(DIAG_MASK_ZERO, ANY, diag_mask_zero, T_F32, T_F32, T_ANY, T_ANY,
              vk_accepts_diag_mask, vk_encode_diag_mask)
VK_KERNEL_ROW(TRI, ANY, tri, T_F32, T_F32, T_ANY, T_ANY, vk_accepts_tri, vk_encode_diag_mask)
VK_KERNEL_ROW(SUM, ANY, sum, T_F32, T_F32, T_ANY, T_ANY, vk_accepts_sum, vk_encode_sum)
VK_KERNEL_ROW(SUM, ANY, sum, T_F16, T_F16, T_ANY, T_ANY, vk_accepts_sum, vk_encode_sum)
VK_KERNEL_ROW(SUM, ANY, sum, T_BF16, T_BF16, T_ANY, T_ANY, vk_accepts_sum, vk_encode_sum)
VK_KERNEL_ROW(COUNT_EQUAL, ANY, count_equal, T_I64, T_I32, T_I32, T_ANY, vk_accepts_count_equal,
              vk_encode_sum)
VK_KERNEL_ROW(SUM_ROWS, ANY, sum_rows, T_F32, T_F32, T_ANY, T_ANY, vk_accepts_sum_rows,
              vk_encode_reduce_rows)
VK_KERNEL_ROW(MEAN, ANY, mean, T_F32, T_F32, T_ANY, T_ANY, vk_accepts_sum_rows,
              vk_encode_reduce_rows)
VK_KERNEL_ROW(ARGMAX, ANY, argmax, T_I32, T_F32, T_ANY, T_ANY, vk_accepts_argmax,
              vk_encode_reduce_rows)
VK_KERNEL_ROW(CUMSUM, ANY, cumsum, T_F32, T_F32, T_ANY, T_ANY, vk_accepts_cumsum, vk_encode_cumsum)
VK_KERNEL_ROW(ARGSORT, ANY, argsort, T_I32, T_F32, T_ANY, T_ANY, vk_accepts_argsort, vk_encode_sort)
VK_KERNEL_ROW(TOP_K, ANY, top_k, T_I32, T_F32, T_ANY, T_ANY, vk_accepts_top_k, vk_encode_sort)
