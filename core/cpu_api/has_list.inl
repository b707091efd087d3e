// SPDX-License-Identifier: MIT
// Queries of ggml-cpu.h for instruction sets.
//
// CPU_HAS_ROW(function, machine, FEATURE)   a feature of abi/cpu_feature_list.inl
// CPU_HAS_NOT_ROW(function)                 one that no kernel employs
CPU_HAS_ROW(ggml_cpu_has_sse3, X86_64, SSE3)
CPU_HAS_ROW(ggml_cpu_has_ssse3, X86_64, SSSE3)
CPU_HAS_ROW(ggml_cpu_has_avx, X86_64, AVX)
CPU_HAS_ROW(ggml_cpu_has_avx_vnni, X86_64, AVX_VNNI)
CPU_HAS_ROW(ggml_cpu_has_avx2, X86_64, AVX2)
CPU_HAS_ROW(ggml_cpu_has_bmi2, X86_64, BMI2)
CPU_HAS_ROW(ggml_cpu_has_f16c, X86_64, F16C)
CPU_HAS_ROW(ggml_cpu_has_fma, X86_64, FMA)
CPU_HAS_ROW(ggml_cpu_has_avx512, X86_64, AVX512F)
CPU_HAS_ROW(ggml_cpu_has_avx512_vbmi, X86_64, AVX512_VBMI)
CPU_HAS_ROW(ggml_cpu_has_avx512_vnni, X86_64, AVX512_VNNI)
CPU_HAS_ROW(ggml_cpu_has_avx512_bf16, X86_64, AVX512_BF16)
CPU_HAS_ROW(ggml_cpu_has_amx_int8, X86_64, AMX_INT8)
CPU_HAS_ROW(ggml_cpu_has_neon, AARCH64, ASIMD)
CPU_HAS_ROW(ggml_cpu_has_arm_fma, AARCH64, ASIMD)
CPU_HAS_ROW(ggml_cpu_has_fp16_va, AARCH64, FP16)
CPU_HAS_ROW(ggml_cpu_has_dotprod, AARCH64, DOTPROD)
CPU_HAS_ROW(ggml_cpu_has_matmul_int8, AARCH64, I8MM)
CPU_HAS_ROW(ggml_cpu_has_sve, AARCH64, SVE)
CPU_HAS_ROW(ggml_cpu_has_sme, AARCH64, SME)
CPU_HAS_NOT_ROW(ggml_cpu_has_sme2)
CPU_HAS_NOT_ROW(ggml_cpu_has_riscv_v)
CPU_HAS_NOT_ROW(ggml_cpu_has_vsx)
CPU_HAS_NOT_ROW(ggml_cpu_has_vxe)
CPU_HAS_NOT_ROW(ggml_cpu_has_wasm_simd)
CPU_HAS_NOT_ROW(ggml_cpu_has_llamafile)
CPU_HAS_NOT_ROW(ggml_cpu_get_sve_cnt)
CPU_HAS_NOT_ROW(ggml_cpu_get_rvv_vlen)
#undef CPU_HAS_ROW
#undef CPU_HAS_NOT_ROW
