// SPDX-License-Identifier: MIT
// clang-format off
// Instruction-set levels of the CPU plugin, from oldest to newest: the last whose features are all
// usable, and that GGML_CPU_LEVEL does not forbid, is taken. The compiler flags of each are in
// meson.build, under the same name: a level that is missing there does not link, one that is missing
// here does not compile.
//
// meson.build defines CPU_WITHOUT_name for each level that its option cpu_levels leaves out.
//
// CPU_LEVEL_ROW(name, text, lanes, bytes, registers, features, optional)
//   name       CPU_LEVEL of the objects
//   text       what users write in GGML_CPU_LEVEL
//   lanes      floats in a vector
//   bytes      bytes in a vector of bytes
//   registers  vector registers: how large a tile of a product may be before it is spilled
//   features   that the level needs: bits of abi/cpu_feature_list.inl
//   optional   that kernels of the level ask for: cpu_features_used()
CPU_LEVEL_ROW(scalar,         "scalar",          1, 16, 16, 0, 0)
#if defined(__x86_64__) || defined(_M_X64)
#define V2 (X(SSE3) | X(SSSE3) | X(SSE41) | X(SSE42) | X(POPCNT))
#define V3 (V2 | X(AVX) | X(AVX2) | X(FMA) | X(F16C) | X(BMI1) | X(BMI2) | X(LZCNT))
#define V4 (V3 | X(AVX512F) | X(AVX512CD) | X(AVX512BW) | X(AVX512DQ) | X(AVX512VL))
#define X(name) GGML_CPU_BIT(GGML_CPU_X86_64_##name)
#ifndef CPU_WITHOUT_x86_64_v2
CPU_LEVEL_ROW(x86_64_v2,      "x86-64-v2",       4, 16, 16, V2, 0)
#endif
#ifndef CPU_WITHOUT_x86_64_v3
CPU_LEVEL_ROW(x86_64_v3,      "x86-64-v3",       8, 32, 16, V3, X(AVX_VNNI))
#endif
#ifndef CPU_WITHOUT_x86_64_v4
CPU_LEVEL_ROW(x86_64_v4,      "x86-64-v4",      16, 32, 32, V4, 0)
#endif
#ifndef CPU_WITHOUT_x86_64_v4_vnni
CPU_LEVEL_ROW(x86_64_v4_vnni, "x86-64-v4-vnni", 16, 32, 32, V4 | X(AVX512_VNNI), X(AVX512_BF16))
#endif
#elif defined(__aarch64__) || defined(_M_ARM64)
#define X(name) GGML_CPU_BIT(GGML_CPU_AARCH64_##name)
#ifndef CPU_WITHOUT_neon
CPU_LEVEL_ROW(neon,           "neon",            4, 16, 32, X(ASIMD), 0)
#endif
#ifndef CPU_WITHOUT_dotprod
CPU_LEVEL_ROW(dotprod,        "dotprod",         4, 16, 32, X(ASIMD) | X(FP16) | X(DOTPROD), 0)
#endif
#ifndef CPU_WITHOUT_i8mm
CPU_LEVEL_ROW(i8mm,           "i8mm",            4, 16, 32, X(ASIMD) | X(FP16) | X(DOTPROD) | X(I8MM) | X(BF16), 0)
#endif
#endif
#undef X
#undef V2
#undef V3
#undef V4
#undef CPU_LEVEL_ROW
// clang-format on
