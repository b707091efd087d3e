// SPDX-License-Identifier: MIT
#include "pipeline/shaders.h"

#include "shader_code.inl"

static const struct vk_shader_code codes[] = {
#define VK_SHADER_ROW(name) {#name, vk_spirv_##name, sizeof(vk_spirv_##name)},
#include "shader_list.inl"
};

const struct vk_shader_code *vk_shader_code(enum vk_shader shader) {
    return &codes[shader];
}
