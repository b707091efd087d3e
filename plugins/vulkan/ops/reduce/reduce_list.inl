// SPDX-License-Identifier: MIT
// Kernels in which a group of invocations shares a row: norms, soft_max, sums, sorting; columns:
// see ../kernel_list.inl.
GVK_KERNEL_ROW(NORM, ANY, norm, T_F32, T_F32, T_ANY, T_ANY, gvk_accepts_norm, gvk_encode_norm)
GVK_KERNEL_ROW(RMS_NORM, ANY, rms_norm, T_F32, T_F32, T_ANY, T_ANY, gvk_accepts_norm,
               gvk_encode_norm)
GVK_KERNEL_ROW(L2_NORM, ANY, l2_norm, T_F32, T_F32, T_ANY, T_ANY, gvk_accepts_norm, gvk_encode_norm)
GVK_KERNEL_ROW(GROUP_NORM, ANY, group_norm, T_F32, T_F32, T_ANY, T_ANY, gvk_accepts_group_norm,
               gvk_encode_group_norm)
GVK_KERNEL_ROW(SOFT_MAX, ANY, soft_max, T_F32, T_F32, T_F32 | T_F16 | T_NONE, T_F32 | T_NONE,
               gvk_accepts_soft_max, gvk_encode_soft_max)
GVK_KERNEL_ROW(DIAG_MASK_INF, ANY, diag_mask_inf, T_F32, T_F32, T_ANY, T_ANY, gvk_accepts_diag_mask,
               gvk_encode_diag_mask)
GVK_KERNEL_ROW(DIAG_MASK_ZERO, ANY, diag_mask_zero, T_F32, T_F32, T_ANY, T_ANY,
               gvk_accepts_diag_mask, gvk_encode_diag_mask)
GVK_KERNEL_ROW(TRI, ANY, tri, T_F32, T_F32, T_ANY, T_ANY, gvk_accepts_tri, gvk_encode_diag_mask)
GVK_KERNEL_ROW(SUM, ANY, sum, T_F32, T_F32, T_ANY, T_ANY, gvk_accepts_sum, gvk_encode_sum)
GVK_KERNEL_ROW(SUM, ANY, sum, T_F16, T_F16, T_ANY, T_ANY, gvk_accepts_sum, gvk_encode_sum)
GVK_KERNEL_ROW(SUM, ANY, sum, T_BF16, T_BF16, T_ANY, T_ANY, gvk_accepts_sum, gvk_encode_sum)
GVK_KERNEL_ROW(COUNT_EQUAL, ANY, count_equal, T_I64, T_I32, T_I32, T_ANY, gvk_accepts_count_equal,
               gvk_encode_sum)
GVK_KERNEL_ROW(SUM_ROWS, ANY, sum_rows, T_F32, T_F32, T_ANY, T_ANY, gvk_accepts_sum_rows,
               gvk_encode_reduce_rows)
GVK_KERNEL_ROW(MEAN, ANY, mean, T_F32, T_F32, T_ANY, T_ANY, gvk_accepts_sum_rows,
               gvk_encode_reduce_rows)
GVK_KERNEL_ROW(ARGMAX, ANY, argmax, T_I32, T_F32, T_ANY, T_ANY, gvk_accepts_argmax,
               gvk_encode_reduce_rows)
GVK_KERNEL_ROW(CUMSUM, ANY, cumsum, T_F32, T_F32, T_ANY, T_ANY, gvk_accepts_cumsum,
               gvk_encode_cumsum)
GVK_KERNEL_ROW(ARGSORT, ANY, argsort, T_I32, T_F32, T_ANY, T_ANY, gvk_accepts_argsort,
               gvk_encode_sort)
GVK_KERNEL_ROW(TOP_K, ANY, top_k, T_I32, T_F32, T_ANY, T_ANY, gvk_accepts_top_k, gvk_encode_sort)
