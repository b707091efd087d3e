// SPDX-License-Identifier: MIT
// Fills the table of functions that only the CPU has: type traits, thread pools and the features in
// use.
#include "runtime/cpu_api.h"

#include <stdatomic.h>

#include "base/threadpool.h"
#include "base/util.h"
#include "runtime/device.h"
#include "runtime/level.h"
#include "runtime/stream.h"

// Of the level in use: conversions and dot products differ between levels.
static const struct ggml_type_traits_cpu *type_traits(enum ggml_type type) {
    return (unsigned)type < GGML_TYPE_COUNT ? &cpu_level()->traits[type] : NULL;
}

static uint64_t features_in_use(void) {
    return cpu_features_used();
}

static const char *level_in_use(void) {
    return cpu_level()->name;
}

// A pool knows whose it is, so that the library can pass calls on to the plugin that made it.
static struct ggml_threadpool *new_pool(const struct ggml_threadpool_params *params) {
    struct ggml_threadpool *pool = cpu_threadpool_new(params);
    if (pool) ((struct ggml_threadpool_head *)(void *)pool)->api = cpu_api();
    return pool;
}

static const struct ggml_cpu_api api = {
    .size = sizeof(api),
    .revision = GGML_CPU_API_REVISION,
    .threadpool_new = new_pool,
    .threadpool_free = cpu_threadpool_free,
    .threadpool_get_n_threads = cpu_threadpool_get_n_threads,
    .threadpool_pause = cpu_threadpool_pause,
    .threadpool_resume = cpu_threadpool_resume,
    .graph_plan = cpu_graph_plan,
    .graph_compute = cpu_graph_compute,
    .type_traits = type_traits,
    .features = features_in_use,
    .level = level_in_use,
};

const struct ggml_cpu_api *cpu_api(void) {
    return &api;
}

// --- functions that ggml's clients look up by name -------------------------------------

static struct ggml_threadpool *threadpool_new(struct ggml_threadpool_params *params) {
    return params ? new_pool(params) : NULL;
}

// One {name, "1"} per feature of the level in use that ggml names too.
static struct ggml_backend_feature *get_features(ggml_backend_reg_t reg) {
    static const struct {
        const char *name;
        uint64_t bit;
    } names[] = {
#if defined(__x86_64__) || defined(_M_X64)
#define FEATURE(name, bit) {name, GGML_CPU_BIT(GGML_CPU_X86_64_##bit)}
        FEATURE("SSE3", SSE3),
        FEATURE("SSSE3", SSSE3),
        FEATURE("AVX", AVX),
        FEATURE("AVX_VNNI", AVX_VNNI),
        FEATURE("AVX2", AVX2),
        FEATURE("F16C", F16C),
        FEATURE("FMA", FMA),
        FEATURE("BMI2", BMI2),
        FEATURE("AVX512", AVX512F),
        FEATURE("AVX512_VNNI", AVX512_VNNI),
        FEATURE("AVX512_BF16", AVX512_BF16),
#elif defined(__aarch64__) || defined(_M_ARM64)
#define FEATURE(name, bit) {name, GGML_CPU_BIT(GGML_CPU_AARCH64_##bit)}
        FEATURE("NEON", ASIMD),
        FEATURE("ARM_FMA", ASIMD),
        FEATURE("FP16_VA", FP16),
        FEATURE("MATMUL_INT8", I8MM),
        FEATURE("DOTPROD", DOTPROD),
#endif
        {NULL, 0},
    };
    static struct ggml_backend_feature features[sizeof(names) / sizeof(names[0])];
    (void)reg;
    ggml_critical_section_start();
    const uint64_t used = cpu_features_used();
    int n = 0;
    for (int i = 0; names[i].name; ++i) {
        if (used & names[i].bit) {
            features[n++] = (struct ggml_backend_feature){names[i].name, "1"};
        }
    }
    features[n] = (struct ggml_backend_feature){NULL, NULL};
    ggml_critical_section_end();
    return features;
}

// The first call decides.
static void numa_init(enum ggml_numa_strategy strategy) {
    static atomic_flag decided = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&decided)) {
        cpu_threadpool_set_spread(strategy == GGML_NUMA_STRATEGY_DISTRIBUTE);
    }
}

// Nodes that this process may use, not those of the machine.
static bool is_numa(void) {
    struct ggml_host_topology topology = {.size = sizeof(topology)};
    return ggml_sdk_topology(&topology) && topology.n_numa_nodes > 1;
}

// Clients cast what they get to the type of the function that they asked for.
void *cpu_proc_address(ggml_backend_reg_t reg, const char *name) {
    (void)reg;
    static const struct {
        const char *name;
        void (*function)(void);
    } functions[] = {
#define FUNCTION(name, function) {name, (void (*)(void))function}
        FUNCTION("ggml_backend_set_n_threads", cpu_stream_set_n_threads),
        FUNCTION("ggml_backend_set_abort_callback", cpu_stream_set_abort_callback),
        FUNCTION("ggml_backend_cpu_set_threadpool", cpu_stream_set_threadpool),
        FUNCTION("ggml_backend_cpu_set_use_ref", cpu_stream_set_use_ref),
        FUNCTION("ggml_backend_dev_get_extra_bufts", cpu_extra_buffer_types),
        FUNCTION("ggml_backend_get_features", get_features),
        FUNCTION("ggml_threadpool_new", threadpool_new),
        FUNCTION("ggml_threadpool_free", cpu_threadpool_free),
        FUNCTION("ggml_backend_cpu_numa_init", numa_init),
        FUNCTION("ggml_backend_cpu_is_numa", is_numa),
    };
    if (strcmp(name, GGML_CPU_API_PROC) == 0) return (void *)(uintptr_t)&api;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i) {
        if (strcmp(name, functions[i].name) == 0) return (void *)(uintptr_t)functions[i].function;
    }
    return NULL;
}
