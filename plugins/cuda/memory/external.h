// SPDX-License-Identifier: MIT
// Buffers that others use in place (extension "ggml.external-memory"): other processes with this
// plugin, and the Vulkan plugin, whose buffers of the same GPU this one imports.
#ifndef CUDA_MEMORY_EXTERNAL_H
#define CUDA_MEMORY_EXTERNAL_H

#include "ggml-ext-external-memory.h"

extern const struct ggml_extension_external_memory cuda_external_memory;

#endif
