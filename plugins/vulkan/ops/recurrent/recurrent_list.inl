// SPDX-License-Identifier: MIT
// Kernels of state-space models, linear attention and other special ops; columns: see
// ../kernel_list.inl.
VK_KERNEL_ROW(SSM_CONV, ANY, ssm_conv, T_F32, T_F32, T_F32, T_ANY, vk_accepts_ssm_conv,
              vk_encode_ssm_conv)
VK_KERNEL_ROW(SSM_SCAN, ANY, ssm_scan, T_F32, T_F32, T_F32, T_F32, vk_accepts_ssm_scan,
              vk_encode_ssm_scan)
VK_KERNEL_ROW(RWKV_WKV6, ANY, rwkv_wkv6, T_F32, T_F32, T_F32, T_F32, vk_accepts_rwkv_wkv6,
              vk_encode_rwkv_wkv6)
VK_KERNEL_ROW(RWKV_WKV7, ANY, rwkv_wkv7, T_F32, T_F32, T_F32, T_F32, vk_accepts_rwkv_wkv7,
              vk_encode_rwkv_wkv7)
VK_KERNEL_ROW(GATED_LINEAR_ATTN, ANY, gated_linear_attn, T_F32, T_F32, T_F32, T_F32,
              vk_accepts_gated_linear_attn, vk_encode_gated_linear_attn)
VK_KERNEL_ROW(GATED_DELTA_NET, ANY, delta_net, T_F32, T_F32, T_F32, T_F32,
              vk_accepts_gated_delta_net, vk_encode_gated_delta_net)
VK_KERNEL_ROW(SOLVE_TRI, ANY, solve_tri, T_F32, T_F32, T_F32, T_ANY, vk_accepts_solve_tri,
              vk_encode_solve_tri)
VK_KERNEL_ROW(LIGHTNING_INDEXER, ANY, indexer, T_F32, T_F32, T_FLOATS | T_CODED, T_F32,
              vk_accepts_lightning_indexer, vk_encode_lightning_indexer)
VK_KERNEL_ROW(DSV4_HC_COMB, ANY, hyper_comb, T_F32, T_F32, T_F32, T_F32, vk_accepts_dsv4_hc_comb,
              vk_encode_dsv4_hc_comb)
VK_KERNEL_ROW(DSV4_HC_PRE, ANY, hyper_pre, T_F32, T_F32, T_F32, T_ANY, vk_accepts_dsv4_hc_pre,
              vk_encode_dsv4_hc_mix)
VK_KERNEL_ROW(DSV4_HC_POST, ANY, hyper_post, T_F32, T_F32, T_F32, T_F32, vk_accepts_dsv4_hc_post,
              vk_encode_dsv4_hc_mix)
