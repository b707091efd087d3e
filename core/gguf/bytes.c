// SPDX-License-Identifier: MIT
// Byte arrays. Each growth is by at least half of the capacity, so that appending n bytes is O(n).
#include "gguf/bytes.h"

#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"

static bool no_memory(size_t size) {
    ggml_fail(GGML_HOST_OUT_OF_MEMORY, "gguf: no memory for %zu bytes", size);
    return false;
}

bool gguf_bytes_reserve(struct gguf_bytes *bytes, size_t extra) {
    if (extra <= bytes->capacity - bytes->size) return true;
    const size_t step = extra > bytes->capacity / 2 ? extra : bytes->capacity / 2;
    // Below half of the address space, so that sums of two sizes can't wrap around.
    if (step > SIZE_MAX / 2 - bytes->size) return no_memory(SIZE_MAX);
    const size_t capacity = bytes->size + step;
    void *data = ggml_mem_realloc(bytes->data, capacity);
    if (!data) return no_memory(capacity);
    bytes->data = data;
    bytes->capacity = capacity;
    return true;
}

bool gguf_bytes_append(struct gguf_bytes *bytes, const void *data, size_t size) {
    if (!gguf_bytes_reserve(bytes, size)) return false;
    if (size > 0) memcpy((char *)bytes->data + bytes->size, data, size);
    bytes->size += size;
    return true;
}
