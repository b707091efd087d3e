// SPDX-License-Identifier: MIT
// The compiled shaders, embedded.
#ifndef GVK_SHADERS_H
#define GVK_SHADERS_H

#include "plan/kernel.h"

struct gvk_shader_code {
    const char *name;
    const uint32_t *words; // SPIR-V
    size_t bytes;
};

// Code of a shader; never NULL for a value of the enum. [any-thread]
const struct gvk_shader_code *gvk_shader_code(enum gvk_shader shader);

#endif
