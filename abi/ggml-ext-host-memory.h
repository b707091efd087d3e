// SPDX-License-Identifier: MIT
// ggml-ext-host-memory.h: extension "ggml.host-memory", which the host offers: buffers of its own.
//
// A part of ggml-plugin.h; how extensions are offered and found is in ggml-plugin-extensions.h.
#ifndef GGML_EXT_HOST_MEMORY_H
#define GGML_EXT_HOST_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "ggml-backend-impl.h"
#include "ggml-plugin-host.h"

#ifdef __cplusplus
extern "C" {
#endif

// Extension "ggml.host-memory", revision 1: the host's own buffer types, so that every plugin and
// the application see the same objects.
#define GGML_EXTENSION_HOST_MEMORY "ggml.host-memory"
#define GGML_EXTENSION_HOST_MEMORY_REVISION 1
struct ggml_extension_host_memory {
    uint32_t size;
    uint32_t revision;
    // As ggml_backend_cpu_buffer_type(). [any-thread]
    ggml_backend_buffer_type_t (*buffer_type)(const struct ggml_host_table *host);
    // As ggml_backend_cpu_buffer_from_ptr(). An enum ggml_host_status: INVALID_ARGUMENT,
    // OUT_OF_MEMORY; *out_buffer is NULL then. [any-thread]
    int32_t (*buffer_from_ptr)(const struct ggml_host_table *host, void *ptr, size_t size,
                               ggml_backend_buffer_t *out_buffer);
};

#ifdef __cplusplus
}
#endif

#endif
