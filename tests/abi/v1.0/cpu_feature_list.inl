// SPDX-License-Identifier: MIT
// Every CPU feature that a plugin's note can require, once. Bits are append-only per machine.
//
// GGML_CPU_FEATURE_ROW(machine, bit, NAME, name)
//   machine  suffix of GGML_MACHINE_<machine>; each machine has its own 64 bits
//   bit      bit in ggml_plugin_note.cpu_features; the constant is GGML_CPU_<machine>_<NAME>
//   name     as users know it
GGML_CPU_FEATURE_ROW(X86_64, 0, SSE3, "SSE3") // horizontal adds
GGML_CPU_FEATURE_ROW(X86_64, 1, SSSE3, "SSSE3") // byte shuffles
GGML_CPU_FEATURE_ROW(X86_64, 2, SSE41, "SSE4.1") // blends, dot products
GGML_CPU_FEATURE_ROW(X86_64, 3, SSE42, "SSE4.2") // string compares
GGML_CPU_FEATURE_ROW(X86_64, 4, POPCNT, "POPCNT") // bit counts
GGML_CPU_FEATURE_ROW(X86_64, 5, AVX, "AVX") // 256-bit floats; wide registers saved by the system
GGML_CPU_FEATURE_ROW(X86_64, 6, F16C, "F16C") // conversions of binary16
GGML_CPU_FEATURE_ROW(X86_64, 7, FMA, "FMA") // fused multiply and add
GGML_CPU_FEATURE_ROW(X86_64, 8, BMI1, "BMI1") // bit fields
GGML_CPU_FEATURE_ROW(X86_64, 9, BMI2, "BMI2") // bit fields, flagless shifts
GGML_CPU_FEATURE_ROW(X86_64, 10, LZCNT, "LZCNT") // leading zeros
GGML_CPU_FEATURE_ROW(X86_64, 11, MOVBE, "MOVBE") // byte-swapping moves
GGML_CPU_FEATURE_ROW(X86_64, 12, AVX2, "AVX2") // 256-bit integers
GGML_CPU_FEATURE_ROW(X86_64, 13, AVX512F, "AVX512F") // 512-bit; their registers saved by the system
GGML_CPU_FEATURE_ROW(X86_64, 14, AVX512CD, "AVX512CD") // conflict detection
GGML_CPU_FEATURE_ROW(X86_64, 15, AVX512BW, "AVX512BW") // bytes and words
GGML_CPU_FEATURE_ROW(X86_64, 16, AVX512DQ, "AVX512DQ") // double and quad words
GGML_CPU_FEATURE_ROW(X86_64, 17, AVX512VL, "AVX512VL") // the same for 128 and 256 bits
GGML_CPU_FEATURE_ROW(X86_64, 18, AVX512_VBMI, "AVX512_VBMI") // byte permutations
GGML_CPU_FEATURE_ROW(X86_64, 19, AVX512_VNNI, "AVX512_VNNI") // dot products of bytes
GGML_CPU_FEATURE_ROW(X86_64, 20, AVX512_BF16, "AVX512_BF16") // dot products of bfloat16
GGML_CPU_FEATURE_ROW(X86_64, 21, AVX512_FP16, "AVX512_FP16") // arithmetic of binary16
GGML_CPU_FEATURE_ROW(X86_64, 22, AVX_VNNI, "AVX_VNNI") // dot products of bytes, 256-bit encoding
GGML_CPU_FEATURE_ROW(X86_64, 23, AMX_TILE, "AMX_TILE") // tile registers; allowed by the system
GGML_CPU_FEATURE_ROW(X86_64, 24, AMX_INT8, "AMX_INT8") // tile products of bytes
GGML_CPU_FEATURE_ROW(X86_64, 25, AMX_BF16, "AMX_BF16") // tile products of bfloat16
GGML_CPU_FEATURE_ROW(AARCH64, 0, ASIMD, "ASIMD") // Neon
GGML_CPU_FEATURE_ROW(AARCH64, 1, FP16, "FP16") // arithmetic of binary16
GGML_CPU_FEATURE_ROW(AARCH64, 2, DOTPROD, "DOTPROD") // dot products of bytes
GGML_CPU_FEATURE_ROW(AARCH64, 3, I8MM, "I8MM") // 2 x 2 products of bytes
GGML_CPU_FEATURE_ROW(AARCH64, 4, BF16, "BF16") // products of bfloat16
GGML_CPU_FEATURE_ROW(AARCH64, 5, SVE, "SVE") // scalable vectors
GGML_CPU_FEATURE_ROW(AARCH64, 6, SVE2, "SVE2") // its second edition
GGML_CPU_FEATURE_ROW(AARCH64, 7, SME, "SME") // scalable matrices
#undef GGML_CPU_FEATURE_ROW
