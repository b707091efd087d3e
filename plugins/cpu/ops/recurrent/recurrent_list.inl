// SPDX-License-Identifier: MIT
// Kernels of state-space models, linear attention and other special ops; columns: see
// ../kernel_list.inl.
CPU_KERNEL_ROW(SSM_CONV, ANY, cpu_ssm_conv, T_F32, T_F32, T_F32, T_ANY, cpu_accepts_ssm_conv,
               cpu_work_none, cpu_cost_dst_heavy)
CPU_KERNEL_ROW(SSM_SCAN, ANY, cpu_ssm_scan, T_F32, T_F32, T_F32, T_F32, cpu_accepts_ssm_scan,
               cpu_work_none, cpu_cost_ssm_scan)
CPU_KERNEL_ROW(RWKV_WKV6, ANY, cpu_linear_attention, T_F32, T_F32, T_F32, T_F32,
               cpu_accepts_rwkv_wkv6, cpu_work_none, cpu_cost_state)
CPU_KERNEL_ROW(RWKV_WKV7, ANY, cpu_linear_attention, T_F32, T_F32, T_F32, T_F32,
               cpu_accepts_rwkv_wkv7, cpu_work_none, cpu_cost_state)
CPU_KERNEL_ROW(GATED_LINEAR_ATTN, ANY, cpu_linear_attention, T_F32, T_F32, T_F32, T_F32,
               cpu_accepts_gated_linear_attn, cpu_work_none, cpu_cost_state)
CPU_KERNEL_ROW(GATED_DELTA_NET, ANY, cpu_gated_delta_net, T_F32, T_F32, T_F32, T_F32,
               cpu_accepts_gated_delta_net, cpu_work_gated_delta_net, cpu_cost_gated_delta_net)
CPU_KERNEL_ROW(SOLVE_TRI, ANY, cpu_solve_tri, T_F32, T_F32, T_F32, T_ANY, cpu_accepts_solve_tri,
               cpu_work_none, cpu_cost_solve_tri)
CPU_KERNEL_ROW(LIGHTNING_INDEXER, ANY, cpu_lightning_indexer, T_F32, T_F32, T_FLOATS | T_QUANTS,
               T_F32, cpu_accepts_lightning_indexer, cpu_work_lightning_indexer,
               cpu_cost_lightning_indexer)
CPU_KERNEL_ROW(DSV4_HC_COMB, ANY, cpu_dsv4_hc_comb, T_F32, T_F32, T_F32, T_F32,
               cpu_accepts_dsv4_hc_comb, cpu_work_none, cpu_cost_dst_heavy)
CPU_KERNEL_ROW(DSV4_HC_PRE, ANY, cpu_dsv4_hc_pre, T_F32, T_F32, T_F32, T_ANY,
               cpu_accepts_dsv4_hc_pre, cpu_work_none, cpu_cost_src0)
CPU_KERNEL_ROW(DSV4_HC_POST, ANY, cpu_dsv4_hc_post, T_F32, T_F32, T_F32, T_F32,
               cpu_accepts_dsv4_hc_post, cpu_work_none, cpu_cost_dst)
// Copies of new states, with the recurrence whose result they are part of.
CPU_KERNEL_ROW(CPY, CPU_SUB_KEPT_STATES, cpu_kept_ssm_scan, T_F32, T_F32, T_ANY, T_ANY,
               cpu_accepts_kept_ssm_scan, cpu_work_none, cpu_cost_kept_states)
CPU_KERNEL_ROW(CPY, CPU_SUB_KEPT_STATES, cpu_kept_linear_attention, T_F32, T_F32, T_ANY, T_ANY,
               cpu_accepts_kept_linear_attention, cpu_work_none, cpu_cost_kept_states)
CPU_KERNEL_ROW(CPY, CPU_SUB_KEPT_STATES, cpu_kept_delta_net, T_F32, T_F32, T_ANY, T_ANY,
               cpu_accepts_kept_delta_net, cpu_work_kept_delta_net, cpu_cost_kept_states)
