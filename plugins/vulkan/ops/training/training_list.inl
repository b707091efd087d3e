// SPDX-License-Identifier: MIT
// Kernels of gradients, losses and optimiser steps; columns: see ../kernel_list.inl.
GVK_KERNEL_ROW(SILU_BACK, ANY, silu_back, T_FLOATS, T_FLOATS, T_FLOATS, T_NONE,
               gvk_accepts_same_pair, gvk_encode_silu_back)
GVK_KERNEL_ROW(RMS_NORM_BACK, ANY, rms_norm_back, T_F32, T_F32, T_F32, T_NONE,
               gvk_accepts_same_pair, gvk_encode_rows_back)
GVK_KERNEL_ROW(SOFT_MAX_BACK, ANY, soft_max_back, T_F32, T_F32, T_F32, T_NONE,
               gvk_accepts_soft_max_back, gvk_encode_rows_back)
GVK_KERNEL_ROW(REPEAT_BACK, ANY, repeat_back, T_F32, T_F32, T_NONE, T_NONE, gvk_accepts_repeat_back,
               gvk_encode_repeat_back)
GVK_KERNEL_ROW(GET_ROWS_BACK, ANY, get_rows_back, T_F32, T_FLOATS | T_CODED, T_I32, T_NONE,
               gvk_accepts_get_rows_back, gvk_encode_get_rows_back)
GVK_KERNEL_ROW(CROSS_ENTROPY_LOSS, ANY, cross_entropy_loss, T_F32, T_F32, T_F32, T_NONE,
               gvk_accepts_cross_entropy_loss, gvk_encode_cross_entropy_loss)
GVK_KERNEL_ROW(CROSS_ENTROPY_LOSS_BACK, ANY, cross_entropy_loss_back, T_F32, T_F32, T_F32, T_F32,
               gvk_accepts_cross_entropy_loss_back, gvk_encode_cross_entropy_loss_back)
GVK_KERNEL_ROW(OPT_STEP_ADAMW, ANY, opt_step_adamw, T_F32, T_F32, T_F32, T_F32,
               gvk_accepts_opt_step, gvk_encode_opt_step)
GVK_KERNEL_ROW(OPT_STEP_SGD, ANY, opt_step_sgd, T_F32, T_F32, T_F32, T_F32, gvk_accepts_opt_step,
               gvk_encode_opt_step)
