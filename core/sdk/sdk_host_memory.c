// SPDX-License-Identifier: MIT
// Inside a plugin: the host's own buffer types. They are taken from the host, because buffer types
// are compared by address across plugins.
#include "base/status.h"
#include "ggml-plugin.h"

static const struct ggml_extension_host_memory *host_memory(const struct ggml_host_table *host,
                                                            const char *function) {
    const struct ggml_extension_host_memory *memory =
        host && host->get_extension ? host->get_extension(host, GGML_EXTENSION_HOST_MEMORY,
                                                          GGML_EXTENSION_HOST_MEMORY_REVISION)
                                    : NULL;
    if (memory && memory->size >= sizeof(*memory)) return memory;
    ggml_fail(GGML_HOST_UNSUPPORTED, "%s: no host with " GGML_EXTENSION_HOST_MEMORY " is attached",
              function);
    return NULL;
}

ggml_backend_buffer_type_t ggml_backend_cpu_buffer_type(void) {
    const struct ggml_host_table *host = ggml_sdk_host_hold();
    const struct ggml_extension_host_memory *memory = host_memory(host, __func__);
    ggml_backend_buffer_type_t type = memory ? memory->buffer_type(host) : NULL;
    ggml_sdk_host_release(host);
    return type;
}

ggml_backend_buffer_t ggml_backend_cpu_buffer_from_ptr(void *ptr, size_t size) {
    const struct ggml_host_table *host = ggml_sdk_host_hold();
    const struct ggml_extension_host_memory *memory = host_memory(host, __func__);
    ggml_backend_buffer_t buffer = NULL;
    if (memory) memory->buffer_from_ptr(host, ptr, size, &buffer);
    ggml_sdk_host_release(host);
    return buffer;
}
