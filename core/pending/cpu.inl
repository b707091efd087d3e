// SPDX-License-Identifier: MIT
// Public functions of this area that are declared but not implemented yet: each answers `failure` and
// leaves a message. Rows only ever leave this list.
//
// GGML_PENDING(type, name, (parameters), failure)    GGML_PENDING_VOID(name, (parameters))
GGML_PENDING(struct ggml_threadpool_params, ggml_threadpool_params_default, (int n_threads), (struct
             ggml_threadpool_params){0})
GGML_PENDING_VOID(ggml_threadpool_params_init, (struct ggml_threadpool_params *p, int n_threads))
GGML_PENDING(bool, ggml_threadpool_params_match, (const struct ggml_threadpool_params *p0, const
             struct ggml_threadpool_params *p1), false)
GGML_PENDING_VOID(ggml_numa_init, (enum ggml_numa_strategy numa))
GGML_PENDING(bool, ggml_is_numa, (void), false)
GGML_PENDING(struct ggml_tensor *, ggml_new_i32, (struct ggml_context *ctx, int32_t value), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_new_f32, (struct ggml_context *ctx, float value), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_set_i32, (struct ggml_tensor *tensor, int32_t value), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_set_f32, (struct ggml_tensor *tensor, float value), NULL)
GGML_PENDING(int32_t, ggml_get_i32_1d, (const struct ggml_tensor *tensor, int i), 0)
GGML_PENDING_VOID(ggml_set_i32_1d, (const struct ggml_tensor *tensor, int i, int32_t value))
GGML_PENDING(int32_t, ggml_get_i32_nd, (const struct ggml_tensor *tensor, int i0, int i1, int i2,
             int i3), 0)
GGML_PENDING_VOID(ggml_set_i32_nd, (const struct ggml_tensor *tensor, int i0, int i1, int i2, int
             i3, int32_t value))
GGML_PENDING(float, ggml_get_f32_1d, (const struct ggml_tensor *tensor, int i), 0)
GGML_PENDING_VOID(ggml_set_f32_1d, (const struct ggml_tensor *tensor, int i, float value))
GGML_PENDING(float, ggml_get_f32_nd, (const struct ggml_tensor *tensor, int i0, int i1, int i2, int
             i3), 0)
GGML_PENDING_VOID(ggml_set_f32_nd, (const struct ggml_tensor *tensor, int i0, int i1, int i2, int
             i3, float value))
GGML_PENDING(struct ggml_threadpool *, ggml_threadpool_new, (struct ggml_threadpool_params *params),
             NULL)
GGML_PENDING_VOID(ggml_threadpool_free, (struct ggml_threadpool *threadpool))
GGML_PENDING(int, ggml_threadpool_get_n_threads, (struct ggml_threadpool *threadpool), 0)
GGML_PENDING_VOID(ggml_threadpool_pause, (struct ggml_threadpool *threadpool))
GGML_PENDING_VOID(ggml_threadpool_resume, (struct ggml_threadpool *threadpool))
GGML_PENDING(struct ggml_cplan, ggml_graph_plan, (const struct ggml_cgraph *cgraph, int n_threads,
             struct ggml_threadpool *threadpool), (struct ggml_cplan){0})
GGML_PENDING(enum ggml_status, ggml_graph_compute, (struct ggml_cgraph *cgraph, struct ggml_cplan
             *cplan), GGML_STATUS_FAILED)
GGML_PENDING(enum ggml_status, ggml_graph_compute_with_ctx, (struct ggml_context *ctx, struct
             ggml_cgraph *cgraph, int n_threads), GGML_STATUS_FAILED)
GGML_PENDING(int, ggml_cpu_has_sse3, (void), 0)
GGML_PENDING(int, ggml_cpu_has_ssse3, (void), 0)
GGML_PENDING(int, ggml_cpu_has_avx, (void), 0)
GGML_PENDING(int, ggml_cpu_has_avx_vnni, (void), 0)
GGML_PENDING(int, ggml_cpu_has_avx2, (void), 0)
GGML_PENDING(int, ggml_cpu_has_bmi2, (void), 0)
GGML_PENDING(int, ggml_cpu_has_f16c, (void), 0)
GGML_PENDING(int, ggml_cpu_has_fma, (void), 0)
GGML_PENDING(int, ggml_cpu_has_avx512, (void), 0)
GGML_PENDING(int, ggml_cpu_has_avx512_vbmi, (void), 0)
GGML_PENDING(int, ggml_cpu_has_avx512_vnni, (void), 0)
GGML_PENDING(int, ggml_cpu_has_avx512_bf16, (void), 0)
GGML_PENDING(int, ggml_cpu_has_amx_int8, (void), 0)
GGML_PENDING(int, ggml_cpu_has_neon, (void), 0)
GGML_PENDING(int, ggml_cpu_has_arm_fma, (void), 0)
GGML_PENDING(int, ggml_cpu_has_fp16_va, (void), 0)
GGML_PENDING(int, ggml_cpu_has_dotprod, (void), 0)
GGML_PENDING(int, ggml_cpu_has_matmul_int8, (void), 0)
GGML_PENDING(int, ggml_cpu_has_sve, (void), 0)
GGML_PENDING(int, ggml_cpu_get_sve_cnt, (void), 0)
GGML_PENDING(int, ggml_cpu_has_sme, (void), 0)
GGML_PENDING(int, ggml_cpu_has_sme2, (void), 0)
GGML_PENDING(int, ggml_cpu_has_riscv_v, (void), 0)
GGML_PENDING(int, ggml_cpu_get_rvv_vlen, (void), 0)
GGML_PENDING(int, ggml_cpu_has_vsx, (void), 0)
GGML_PENDING(int, ggml_cpu_has_vxe, (void), 0)
GGML_PENDING(int, ggml_cpu_has_wasm_simd, (void), 0)
GGML_PENDING(int, ggml_cpu_has_llamafile, (void), 0)
GGML_PENDING(const struct ggml_type_traits_cpu *, ggml_get_type_traits_cpu, (enum ggml_type type),
             NULL)
GGML_PENDING_VOID(ggml_cpu_init, (void))
GGML_PENDING(ggml_backend_t, ggml_backend_cpu_init, (void), NULL)
GGML_PENDING(bool, ggml_backend_is_cpu, (ggml_backend_t backend), false)
GGML_PENDING_VOID(ggml_backend_cpu_set_n_threads, (ggml_backend_t backend_cpu, int n_threads))
GGML_PENDING_VOID(ggml_backend_cpu_set_threadpool, (ggml_backend_t backend_cpu, ggml_threadpool_t
             threadpool))
GGML_PENDING_VOID(ggml_backend_cpu_set_abort_callback, (ggml_backend_t backend_cpu,
             ggml_abort_callback abort_callback, void *abort_callback_data))
GGML_PENDING_VOID(ggml_backend_cpu_set_use_ref, (ggml_backend_t backend_cpu, bool use_ref))
GGML_PENDING(ggml_backend_reg_t, ggml_backend_cpu_reg, (void), NULL)
GGML_PENDING_VOID(ggml_cpu_fp32_to_fp32, (const float *arg0, float *arg1, int64_t arg2))
GGML_PENDING_VOID(ggml_cpu_fp32_to_i32, (const float *arg0, int32_t *arg1, int64_t arg2))
GGML_PENDING_VOID(ggml_cpu_fp32_to_fp16, (const float *arg0, ggml_fp16_t *arg1, int64_t arg2))
GGML_PENDING_VOID(ggml_cpu_fp16_to_fp32, (const ggml_fp16_t *arg0, float *arg1, int64_t arg2))
GGML_PENDING_VOID(ggml_cpu_fp32_to_bf16, (const float *arg0, ggml_bf16_t *arg1, int64_t arg2))
GGML_PENDING_VOID(ggml_cpu_bf16_to_fp32, (const ggml_bf16_t *arg0, float *arg1, int64_t arg2))
