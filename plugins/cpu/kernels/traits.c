// SPDX-License-Identifier: MIT
// This level's conversions and dot products by type: what ggml_get_type_traits_cpu() answers.
#include "ggml-cpu.h"
#include "kernel.h"

extern const struct ggml_type_traits_cpu CPU_FN(cpu_type_traits)[];
const struct ggml_type_traits_cpu CPU_FN(cpu_type_traits)[GGML_TYPE_COUNT] = {
    [GGML_TYPE_F32] = {NULL, NULL, GGML_TYPE_F32, 1},
};
