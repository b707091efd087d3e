// SPDX-License-Identifier: MIT
// Short reads, of which a header has many, are served from a read-ahead buffer; long ones go
// straight to the caller's memory. Every read is bounded by the end of the file, whatever sizes the
// file claims.
#include "gguf/source.h"

#include <stdarg.h>
#include <string.h>

#include "base/status.h"

enum { FIRST_STEP = 65536 };

uint64_t gguf_source_left(const struct gguf_source *source) {
    return source->end - source->offset;
}

bool gguf_source_damaged(const struct gguf_source *source, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    ggml_fail(GGML_HOST_DAMAGED_FILE, "gguf: at byte %llu: %s", (unsigned long long)source->offset,
              text);
    return false;
}

// Calls the reader once; returns the number of bytes, 0 at the end. A reader that returns more than
// it was asked for counts as ended.
static size_t fetch(struct gguf_source *source, void *out, uint64_t offset, size_t size) {
    if (source->max_chunk > 0 && size > source->max_chunk) size = source->max_chunk;
    const size_t got = source->read(source->userdata, out, offset, size);
    return got <= size ? got : 0;
}

// Records the premature end; always false.
static bool ended(struct gguf_source *source, size_t size) {
    return gguf_source_damaged(source, "the file ends before the next %zu bytes", size);
}

// Long reads go straight to the caller's memory, in pieces of at most max_chunk.
static bool fetch_all(struct gguf_source *source, unsigned char *out, size_t size) {
    for (size_t n = 0; n < size;) {
        const size_t got = fetch(source, out + n, source->offset + n, size - n);
        if (got == 0) return ended(source, size);
        n += got;
    }
    source->offset += size;
    return true;
}

// Fills the read-ahead buffer from the current offset.
static void fetch_ahead(struct gguf_source *source) {
    size_t size = sizeof(source->ahead);
    if (gguf_source_left(source) < size) size = (size_t)gguf_source_left(source);
    source->n_held = fetch(source, source->ahead, source->offset, size);
    source->n_ahead = source->n_held;
}

// Takes bytes from the read-ahead buffer; returns their number.
static size_t take_ahead(struct gguf_source *source, void *out, size_t size) {
    const size_t n = size < source->n_ahead ? size : source->n_ahead;
    if (n == 0) return 0;
    memcpy(out, source->ahead + source->n_held - source->n_ahead, n);
    source->n_ahead -= n;
    source->offset += n;
    return n;
}

bool gguf_source_read(struct gguf_source *source, void *out, size_t size) {
    unsigned char *bytes = out;
    if (size > gguf_source_left(source)) return ended(source, size);
    source->taken = source->offset + size;
    size_t n = take_ahead(source, bytes, size);
    if (size - n >= sizeof(source->ahead)) return fetch_all(source, bytes + n, size - n);
    while (n < size) {
        fetch_ahead(source);
        const size_t got = take_ahead(source, bytes + n, size - n);
        if (got == 0) return ended(source, size - n);
        n += got;
    }
    return true;
}

// Memory grows as bytes arrive: a size that is merely claimed allocates nothing.
bool gguf_source_append(struct gguf_source *source, struct gguf_bytes *bytes, size_t size) {
    if (size > gguf_source_left(source)) return ended(source, size);
    while (size > 0) {
        size_t step = bytes->size > FIRST_STEP ? bytes->size : FIRST_STEP;
        if (step > size) step = size;
        if (!gguf_bytes_reserve(bytes, step)) return false;
        if (!gguf_source_read(source, (char *)bytes->data + bytes->size, step)) return false;
        bytes->size += step;
        size -= step;
    }
    return true;
}

// Drops padding from the read-ahead buffer; the rest of it is skipped by the offset alone.
bool gguf_source_align(struct gguf_source *source, size_t alignment) {
    const uint64_t past = (source->offset - source->begin) % alignment;
    const uint64_t left = (alignment - past) % alignment;
    if (left > gguf_source_left(source)) return ended(source, (size_t)left);
    const uint64_t held = left < source->n_ahead ? left : source->n_ahead;
    source->n_ahead -= (size_t)held;
    source->offset += left;
    return true;
}

// A file in memory as a source.
static size_t read_memory(void *userdata, void *out, uint64_t offset, size_t size) {
    memcpy(out, (const unsigned char *)userdata + offset, size);
    return size;
}

// The memory is not kept: everything is copied.
struct gguf_context *gguf_init_from_buffer(const void *data, size_t size,
                                           struct gguf_init_params params) {
    struct gguf_source source = {// The cast drops const; read_memory() only reads.
                                 .read = read_memory,
                                 .userdata = (void *)(uintptr_t)data,
                                 .end = size};
    if (!data) source.end = 0;
    return gguf_read(&source, params);
}

struct gguf_context *gguf_init_from_callback(gguf_reader_callback_t callback, void *userdata,
                                             size_t max_chunk_read, uint64_t max_expected_size,
                                             struct gguf_init_params params) {
    struct gguf_source source = {.read = callback,
                                 .userdata = userdata,
                                 .max_chunk = max_chunk_read,
                                 .end = max_expected_size};
    if (!callback) source.end = 0;
    return gguf_read(&source, params);
}
