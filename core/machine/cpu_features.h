// SPDX-License-Identifier: MIT
// CPU features that code may use here: the processor has them, and the operating system saves their
// registers. The decoders also take recorded registers, so that tests can replay other machines.
#ifndef GGML_MACHINE_CPU_FEATURES_H
#define GGML_MACHINE_CPU_FEATURES_H

#include <stdbool.h>

#include "ggml-plugin.h"

// Bit set (GGML_CPU_BIT) of this machine; 0 where it can't be told. Kept after the first call,
// because CPUID is slow in virtual machines. [any-thread]
uint64_t cpu_features_detect(void);

struct cpuid_registers {
    uint32_t eax, ebx, ecx, edx;
};

// An x86-64 processor, real or recorded.
struct cpuid_source {
    // Only asked for leaves that the maximum of leaf 0 or 0x80000000 covers.
    struct cpuid_registers (*leaf)(const void *context, uint32_t leaf, uint32_t subleaf);
    // Only asked if CPUID says OSXSAVE.
    uint64_t (*xcr0)(const void *context);
    // Whether the operating system hands out AMX tiles on request; the request itself is left to
    // the code that uses them.
    bool (*amx_grantable)(const void *context);
    const void *context;
};
uint64_t cpu_features_from_cpuid(const struct cpuid_source *source);

// From AT_HWCAP and AT_HWCAP2 of AArch64 Linux.
uint64_t cpu_features_from_hwcap(uint64_t hwcap, uint64_t hwcap2);

// The processor that runs this; false if it is not x86-64.
bool cpu_features_here_cpuid(struct cpuid_source *out_source);
// The same for everything but x86-64.
uint64_t cpu_features_here_other(void);

#endif
