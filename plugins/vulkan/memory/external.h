// SPDX-License-Identifier: MIT
#ifndef VK_EXTERNAL_H
#define VK_EXTERNAL_H

#include "ggml-plugin-extensions.h"

extern const struct ggml_extension_external_memory vk_external_memory;

#endif
