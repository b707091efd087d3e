// SPDX-License-Identifier: MIT
// The compiled shaders, embedded.
#ifndef VK_SHADERS_H
#define VK_SHADERS_H

#include "plan/kernel.h"

struct vk_shader_code {
    const char *name;
    const uint32_t *words; // SPIR-V
    size_t bytes;
};

// Code of a shader; never NULL for a value of the enum. [any-thread]
const struct vk_shader_code *vk_shader_code(enum vk_shader shader);

#endif
