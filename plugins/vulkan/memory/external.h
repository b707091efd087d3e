// SPDX-License-Identifier: MIT
// Buffers that another process may use in place (extension "ggml.external-memory").
#ifndef GVK_EXTERNAL_H
#define GVK_EXTERNAL_H

#include "ggml-ext-external-memory.h"

extern const struct ggml_extension_external_memory gvk_external_memory;

#endif
