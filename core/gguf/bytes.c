// SPDX-License-Identifier: MIT
// Byte arrays. They grow by doubling, so that appending n bytes is O(n).
#include "gguf/bytes.h"

#include <string.h>

#include "base/array.h"
#include "base/mem.h"
#include "base/status.h"

bool gguf_bytes_reserve(struct gguf_bytes *bytes, size_t extra) {
    if (array_extend(&bytes->data, &bytes->capacity, bytes->size, extra, 1)) return true;
    ggml_fail(GGML_HOST_OUT_OF_MEMORY, "gguf: no memory for %zu more bytes", extra);
    return false;
}

bool gguf_bytes_append(struct gguf_bytes *bytes, const void *data, size_t size) {
    if (!gguf_bytes_reserve(bytes, size)) return false;
    if (size > 0) memcpy((char *)bytes->data + bytes->size, data, size);
    bytes->size += size;
    return true;
}
