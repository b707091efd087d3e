// SPDX-License-Identifier: MIT
// The registers of the processor that runs this, with AVX-512, VNNI and BF16 added: what avx512.h
// computes where the build option cpu_simulated is set. The operating system is said to save their
// registers.
#if defined(__linux__)
#define _GNU_SOURCE
#endif
#include "machine/cpu_features.h"

static bool cpu_features_without_simulated(struct cpuid_source *out_source);

#define cpu_features_here_cpuid cpu_features_without_simulated
#include "machine/cpu_features_here.c"
#undef cpu_features_here_cpuid

static struct cpuid_source real;

static struct cpuid_registers simulated_leaf(const void *context, uint32_t leaf, uint32_t subleaf) {
    enum { FEATURES = 7, FIRST = 0, SECOND = 1 };
    enum { F = 16, DQ = 17, CD = 28, BW = 30, VL = 31, VNNI = 11, BF16 = 5 };
    struct cpuid_registers r = real.leaf(context, leaf, subleaf);
    if (leaf == FEATURES && subleaf == FIRST) {
        if (r.eax < SECOND) r.eax = SECOND; // how many subleaves there are
        r.ebx |= 1u << F | 1u << DQ | 1u << CD | 1u << BW | 1u << VL;
        r.ecx |= 1u << VNNI;
    } else if (leaf == FEATURES && subleaf == SECOND) {
        r.eax |= 1u << BF16;
    }
    return r;
}

static uint64_t simulated_xcr0(const void *context) {
    enum { MASKS = 5, HIGH_HALVES = 6, HIGH_REGISTERS = 7 };
    return real.xcr0(context) | 1u << MASKS | 1u << HIGH_HALVES | 1u << HIGH_REGISTERS;
}

bool cpu_features_here_cpuid(struct cpuid_source *out_source) {
    if (!cpu_features_without_simulated(&real)) return false;
    *out_source = real;
    out_source->leaf = simulated_leaf;
    out_source->xcr0 = simulated_xcr0;
    return true;
}
