// SPDX-License-Identifier: MIT
// Extensions that plugins may ask for: the host's own and those of the application.
#ifndef GGML_HOST_EXTENSIONS_H
#define GGML_HOST_EXTENSIONS_H

#include <stdint.h>

// As get_extension of struct ggml_host_table. [any-thread]
const void *extension_find(const char *id, uint32_t min_revision);

#endif
