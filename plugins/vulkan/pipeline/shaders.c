// SPDX-License-Identifier: MIT
// The table of SPIR-V, included from what the build compiled.
#include "pipeline/shaders.h"

#include "shader_code.inl"

static const struct gvk_shader_code codes[] = {
#define GVK_SHADER_ROW(name) {#name, gvk_spirv_##name, sizeof(gvk_spirv_##name)},
#include "shader_list.inl"
};

const struct gvk_shader_code *gvk_shader_code(enum gvk_shader shader) {
    return &codes[shader];
}
