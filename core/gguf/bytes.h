// SPDX-License-Identifier: MIT
// Memory that grows at its end.
#ifndef GGML_GGUF_BYTES_H
#define GGML_GGUF_BYTES_H

#include <stdbool.h>
#include <stddef.h>

struct gguf_bytes {
    void *data;
    size_t size;
    size_t capacity;
};

// Room for `extra` more bytes; false with a message when memory runs out. [stream]
bool gguf_bytes_reserve(struct gguf_bytes *bytes, size_t extra);
// Appends; false as above. [stream]
bool gguf_bytes_append(struct gguf_bytes *bytes, const void *data, size_t size);

#endif
