// SPDX-License-Identifier: MIT
// The registers of the processor that runs this, per platform.
#if defined(__linux__)
#define _GNU_SOURCE
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#endif

#include <string.h>

#include "machine/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>

static struct cpuid_registers here_leaf(const void *context, uint32_t leaf, uint32_t subleaf) {
    struct cpuid_registers r;
    (void)context;
    __cpuid_count(leaf, subleaf, r.eax, r.ebx, r.ecx, r.edx);
    return r;
}

// XCR0, by the instruction: the intrinsic needs a compiler flag for the whole file.
static uint64_t here_xcr0(const void *context) {
    uint32_t low;
    uint32_t high;
    (void)context;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool here_amx_grantable(const void *context) {
    (void)context;
#if defined(__linux__)
    enum { ARCH_GET_XCOMP_SUPPORTED = 0x1021, TILE_DATA_BIT = 18 };
    uint64_t supported = 0;
    return syscall(SYS_arch_prctl, ARCH_GET_XCOMP_SUPPORTED, &supported) == 0 &&
           (supported >> TILE_DATA_BIT & 1);
#else
    return false;
#endif
}

bool cpu_features_here_cpuid(struct cpuid_source *out_source) {
    *out_source = (struct cpuid_source){here_leaf, here_xcr0, here_amx_grantable, NULL};
    return true;
}
#else
bool cpu_features_here_cpuid(struct cpuid_source *out_source) {
    memset(out_source, 0, sizeof(*out_source));
    return false;
}
#endif

#if defined(__aarch64__) && defined(__linux__)
uint64_t cpu_features_here_other(void) {
    return cpu_features_from_hwcap(getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
}
#elif defined(__aarch64__) && defined(__APPLE__)
uint64_t cpu_features_here_other(void) {
    // Features without a row are absent: macOS has no SVE outside of streaming mode.
    static const struct {
        const char *name;
        enum ggml_cpu_feature feature;
    } rows[] = {
        {"hw.optional.arm.FEAT_FP16", GGML_CPU_AARCH64_FP16},
        {"hw.optional.arm.FEAT_DotProd", GGML_CPU_AARCH64_DOTPROD},
        {"hw.optional.arm.FEAT_I8MM", GGML_CPU_AARCH64_I8MM},
        {"hw.optional.arm.FEAT_BF16", GGML_CPU_AARCH64_BF16},
        {"hw.optional.arm.FEAT_SME", GGML_CPU_AARCH64_SME},
    };
    uint64_t features = GGML_CPU_BIT(GGML_CPU_AARCH64_ASIMD);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        int value = 0;
        size_t size = sizeof(value);
        if (sysctlbyname(rows[i].name, &value, &size, NULL, 0) != 0 || value == 0) continue;
        features |= GGML_CPU_BIT(rows[i].feature);
    }
    return features;
}
#elif defined(__aarch64__) && defined(_WIN32)
uint64_t cpu_features_here_other(void) {
    enum { DOTPROD_FEATURE = 43 }; // PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE
    uint64_t features = GGML_CPU_BIT(GGML_CPU_AARCH64_ASIMD);
    if (IsProcessorFeaturePresent(DOTPROD_FEATURE)) {
        features |= GGML_CPU_BIT(GGML_CPU_AARCH64_DOTPROD);
    }
    return features;
}
#else
uint64_t cpu_features_here_other(void) {
    return 0;
}
#endif
