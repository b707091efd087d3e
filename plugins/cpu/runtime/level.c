// SPDX-License-Identifier: MIT
// Levels from oldest to newest: the last whose features the processor has is used, unless
// GGML_CPU_LEVEL limits it.
#include "runtime/level.h"

#include <stdatomic.h>
#include <string.h>

#include "ggml-plugin.h"

#define CPU_LEVEL_ROW(name, text, lanes, bytes, registers, features, optional)                     \
    extern const cpu_kernel_fn cpu_kernel_table_##name[];                                          \
    extern const struct ggml_type_traits_cpu cpu_type_traits_##name[];                             \
    extern int cpu_repacked_rows_##name(enum ggml_type type);
#include "runtime/level_list.inl"

static const struct cpu_level levels[] = {
#define CPU_LEVEL_ROW(name, text, lanes, bytes, registers, features, optional)                     \
    {text,                                                                                         \
     features,                                                                                     \
     optional,                                                                                     \
     cpu_kernel_table_##name,                                                                      \
     cpu_type_traits_##name,                                                                       \
     cpu_repacked_rows_##name},
#include "runtime/level_list.inl"
};

enum { N_LEVELS = sizeof(levels) / sizeof(levels[0]) };

static _Atomic(const struct cpu_level *) chosen;

const struct cpu_level *cpu_levels(int *out_count) {
    *out_count = N_LEVELS;
    return levels;
}

// -1 for an unknown name.
static int level_by_name(const char *name) {
    for (int i = 0; i < N_LEVELS; ++i) {
        if (strcmp(levels[i].name, name) == 0) return i;
    }
    return -1;
}

// The best level that the features allow, up to the limit. Level 0 is plain C and needs nothing. An
// unknown limit is reported and ignored.
const struct cpu_level *cpu_level_choose(uint64_t features, const char *limit) {
    int last = limit ? level_by_name(limit) : N_LEVELS - 1;
    if (last < 0) {
        GGML_LOG_WARN(
            "GGML_CPU_LEVEL: there is no level \"%s\" on this machine; the best is used\n", limit);
        last = N_LEVELS - 1;
    }
    // Levels are ordered and each includes the previous one's features.
    while (last > 0 && (levels[last].features & ~features) != 0)
        --last;
    return &levels[last];
}

// From the host rather than from CPUID: so that a test can present another machine.
uint64_t cpu_features(void) {
    const struct ggml_host_table *host = ggml_sdk_host_hold();
    const struct ggml_extension_cpu_features *extension =
        host ? host->get_extension(host, GGML_EXTENSION_CPU_FEATURES,
                                   GGML_EXTENSION_CPU_FEATURES_REVISION)
             : NULL;
    const uint64_t features = extension ? extension->features(host) : 0;
    ggml_sdk_host_release(host);
    return features;
}

// Chosen once per process. Threads that come here at the same time compute the same value, so that
// no lock is needed.
const struct cpu_level *cpu_level(void) {
    const struct cpu_level *level = atomic_load_explicit(&chosen, memory_order_acquire);
    if (level) return level;
    level = cpu_level_choose(cpu_features(), ggml_sdk_config("GGML_CPU_LEVEL"));
    atomic_store_explicit(&chosen, level, memory_order_release);
    return level;
}

uint64_t cpu_features_used(void) {
    const struct cpu_level *level = cpu_level();
    return level->features | (level->optional ? level->optional & cpu_features() : 0);
}

struct cpu_optional cpu_optional_used(void) {
    struct cpu_optional used = {false, false};
#if defined(__x86_64__) || defined(_M_X64)
    const uint64_t features = cpu_features_used();
    used.bf16 = features & GGML_CPU_BIT(GGML_CPU_X86_64_AVX512_BF16);
    used.vnni = features & GGML_CPU_BIT(GGML_CPU_X86_64_AVX_VNNI);
#elif defined(__aarch64__) || defined(_M_ARM64)
    used.bf16 = cpu_features_used() & GGML_CPU_BIT(GGML_CPU_AARCH64_BF16);
#endif
    return used;
}

void cpu_level_reset(void) {
    atomic_store(&chosen, NULL);
}
