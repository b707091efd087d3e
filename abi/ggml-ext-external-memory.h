// SPDX-License-Identifier: MIT
// ggml-ext-external-memory.h: extension "ggml.external-memory", which plugins offer: memory that
// several instances of a plugin share.
//
// A part of ggml-plugin.h; how extensions are offered and found is in ggml-plugin-extensions.h.
#ifndef GGML_EXT_EXTERNAL_MEMORY_H
#define GGML_EXT_EXTERNAL_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "ggml-backend-impl.h"

#ifdef __cplusplus
extern "C" {
#endif

// Memory of a device that others use in place: what names it.
enum ggml_external_type {
    GGML_EXTERNAL_OPAQUE_FD = 1, // a POSIX file descriptor of the driver's
};
#define GGML_EXTERNAL_UUID_BYTES 16
// A buffer's memory as another process can import it. It may grow at the end.
struct ggml_external_memory {
    uint32_t size;             // set by the caller
    uint32_t type;             // enum ggml_external_type
    int32_t fd;                // OPAQUE_FD; -1: none
    uint32_t memory_type;      // the exporter's own
    uint64_t bytes;            // of the buffer
    uint64_t allocation_bytes; // of the memory behind the handle, at least `bytes`
    uint8_t device_uuid[GGML_EXTERNAL_UUID_BYTES]; // of the physical device
    uint8_t driver_uuid[GGML_EXTERNAL_UUID_BYTES]; // of the driver and its version
};

// Extension "ggml.external-memory", revision 1: buffers that several instances
// of a plugin use, in one process or in several, on one physical device.
//
// Entries return an enum ggml_host_status, after set_error unless it is OK or UNSUPPORTED. Work on
// either side isn't ordered with that of the other: the reader waits on the host until the
// writer's streams were synchronized. Each side frees its buffer; the memory goes with the last.
#define GGML_EXTENSION_EXTERNAL_MEMORY "ggml.external-memory"
#define GGML_EXTENSION_EXTERNAL_MEMORY_REVISION 1
struct ggml_extension_external_memory {
    uint32_t size;
    uint32_t revision;
    // A buffer of the device's default type, `bytes` > 0 long, that can be exported. [any-thread]
    int32_t (*buffer_new)(ggml_backend_dev_t device, size_t bytes,
                          ggml_backend_buffer_t *out_buffer);
    // Sets what names the memory of a buffer of buffer_new, all zero but `size` so far; the file
    // descriptor is new, close-on-exec and the caller's. UNSUPPORTED for other buffers and types.
    // [any-thread]
    int32_t (*buffer_export)(ggml_backend_buffer_t buffer, uint32_t type,
                             struct ggml_external_memory *out_memory);
    // A buffer in the memory that is named; the file descriptor stays the caller's, and may be
    // closed afterwards. INVALID_ARGUMENT if it is none, or none of such memory, for sizes that
    // don't fit and for other UUIDs than the device's. The sender is trusted to leave the memory as
    // it is. [any-thread]
    int32_t (*buffer_import)(ggml_backend_dev_t device, const struct ggml_external_memory *memory,
                             ggml_backend_buffer_t *out_buffer);
};

#ifdef __cplusplus
}
#endif

#endif
