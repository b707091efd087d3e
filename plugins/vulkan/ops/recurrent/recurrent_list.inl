// SPDX-License-Identifier: MIT
// Kernels of state-space models, linear attention and other special ops; columns: see
// ../kernel_list.inl.
GVK_KERNEL_ROW(SSM_CONV, ANY, ssm_conv, T_F32, T_F32, T_F32, T_ANY, gvk_accepts_ssm_conv,
               gvk_encode_ssm_conv)
GVK_KERNEL_ROW(SSM_SCAN, ANY, ssm_scan, T_F32, T_F32, T_F32, T_F32, gvk_accepts_ssm_scan,
               gvk_encode_ssm_scan)
GVK_KERNEL_ROW(RWKV_WKV6, ANY, rwkv_wkv6, T_F32, T_F32, T_F32, T_F32, gvk_accepts_rwkv_wkv6,
               gvk_encode_rwkv_wkv6)
GVK_KERNEL_ROW(RWKV_WKV7, ANY, rwkv_wkv7, T_F32, T_F32, T_F32, T_F32, gvk_accepts_rwkv_wkv7,
               gvk_encode_rwkv_wkv7)
GVK_KERNEL_ROW(GATED_LINEAR_ATTN, ANY, gated_linear_attn, T_F32, T_F32, T_F32, T_F32,
               gvk_accepts_gated_linear_attn, gvk_encode_gated_linear_attn)
GVK_KERNEL_ROW(GATED_DELTA_NET, ANY, delta_net, T_F32, T_F32, T_F32, T_F32,
               gvk_accepts_gated_delta_net, gvk_encode_gated_delta_net)
GVK_KERNEL_ROW(SOLVE_TRI, ANY, solve_tri, T_F32, T_F32, T_F32, T_ANY, gvk_accepts_solve_tri,
               gvk_encode_solve_tri)
GVK_KERNEL_ROW(LIGHTNING_INDEXER, ANY, indexer, T_F32, T_F32, T_FLOATS | T_CODED, T_F32,
               gvk_accepts_lightning_indexer, gvk_encode_lightning_indexer)
GVK_KERNEL_ROW(DSV4_HC_COMB, ANY, hyper_comb, T_F32, T_F32, T_F32, T_F32, gvk_accepts_dsv4_hc_comb,
               gvk_encode_dsv4_hc_comb)
GVK_KERNEL_ROW(DSV4_HC_PRE, ANY, hyper_pre, T_F32, T_F32, T_F32, T_ANY, gvk_accepts_dsv4_hc_pre,
               gvk_encode_dsv4_hc_mix)
GVK_KERNEL_ROW(DSV4_HC_POST, ANY, hyper_post, T_F32, T_F32, T_F32, T_F32, gvk_accepts_dsv4_hc_post,
               gvk_encode_dsv4_hc_mix)
