// SPDX-License-Identifier: MIT
// The instruction-set levels and which one is used.
#ifndef CPU_LEVEL_H
#define CPU_LEVEL_H

#include "ggml-cpu.h"
#include "runtime/kernel_list.h"

struct cpu_level {
    const char *name;
    uint64_t features, optional;  // GGML_CPU_BIT: all needed, and used if they are there
    const cpu_kernel_fn *kernels; // by row of kernel_list.inl
    const struct ggml_type_traits_cpu *traits; // by type
    int (*repacked_rows)(enum ggml_type type); // see cpu_repacked_rows()
};

// Features that not every processor of a level has.
struct cpu_optional {
    bool bf16; // products of BF16 numbers
    bool vnni; // AVX-VNNI
};

// All levels of this machine type, oldest first. [any-thread]
const struct cpu_level *cpu_levels(int *out_count);
// Chooses for the usable features (GGML_CPU_BIT); `limit` is NULL or the highest level allowed, by
// name. [any-thread]
const struct cpu_level *cpu_level_choose(uint64_t features, const char *limit);
// The level in use; chosen at the first call. [any-thread]
const struct cpu_level *cpu_level(void);
// Features that CPU and operating system let this process use. [any-thread]
uint64_t cpu_features(void);
// Those of them that kernels of the level in use make use of. [any-thread]
uint64_t cpu_features_used(void);
// Which of these kernels ask for. [any-thread]
struct cpu_optional cpu_optional_used(void);
// Chooses again at the next call: the environment or the host may have changed. [init]
void cpu_level_reset(void);

#endif
