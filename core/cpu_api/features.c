// SPDX-License-Identifier: MIT
// ggml_cpu_has_*() and ggml_get_type_traits_cpu().
#include "cpu_api/find.h"
#include "ggml-plugin.h"

// Features of another machine's instruction set are absent without asking the plugin.
static int has(const char *function, enum ggml_machine machine, enum ggml_cpu_feature feature) {
    const struct ggml_cpu_api *api = machine == GGML_MACHINE_HERE ? cpu_api_find(function) : NULL;
    return api && (api->features() & GGML_CPU_BIT(feature)) != 0;
}

#define CPU_HAS_ROW(function, machine, feature)                                                    \
    int function(void) {                                                                           \
        return has(#function, GGML_MACHINE_##machine, GGML_CPU_##machine##_##feature);             \
    }
#define CPU_HAS_NOT_ROW(function)                                                                  \
    int function(void) {                                                                           \
        return 0;                                                                                  \
    }
#include "cpu_api/has_list.inl"

const struct ggml_type_traits_cpu *ggml_get_type_traits_cpu(enum ggml_type type) {
    if ((int)type < 0 || type >= GGML_TYPE_COUNT) return NULL;
    const struct ggml_cpu_api *api = cpu_api_find(__func__);
    return api ? api->type_traits(type) : NULL;
}
