// SPDX-License-Identifier: MIT
#ifndef GVK_EXTERNAL_H
#define GVK_EXTERNAL_H

#include "ggml-plugin-extensions.h"

extern const struct ggml_extension_external_memory gvk_external_memory;

#endif
