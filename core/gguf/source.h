// SPDX-License-Identifier: MIT
// Input of a GGUF file: read once, from beginning to end.
#ifndef GGML_GGUF_SOURCE_H
#define GGML_GGUF_SOURCE_H

#include <stdint.h>

#include "gguf.h"
#include "gguf/bytes.h"

struct gguf_source {
    gguf_reader_callback_t read;
    void *userdata;
    size_t max_chunk; // most bytes per call of `read`, 0: any
    uint64_t begin;   // of the file, from which padding is counted
    uint64_t offset;  // of the next byte
    uint64_t taken;   // behind the last byte that was asked for
    uint64_t end;     // no byte lies at or behind it
    size_t n_ahead;   // bytes already read from `offset` on, at the end of what `ahead` holds
    size_t n_held;
    unsigned char ahead[4096];
};

// Bytes that may still follow. [stream]
uint64_t gguf_source_left(const struct gguf_source *source);
// The next bytes; false with a message if there are not as many. [stream]
bool gguf_source_read(struct gguf_source *source, void *out, size_t size);
// Appends the next bytes; allocates memory only as they arrive. [stream]
bool gguf_source_append(struct gguf_source *source, struct gguf_bytes *bytes, size_t size);
// Skips to the next multiple of a power of two behind the beginning. [stream]
bool gguf_source_align(struct gguf_source *source, size_t alignment);
// Records a damaged file at the present offset; always false. [stream]
bool gguf_source_damaged(const struct gguf_source *source, const char *format, ...)
    GGML_ATTRIBUTE_FORMAT(2, 3);

// Reads a whole file: meta data, and tensors as the parameters say. NULL with a message. [stream]
struct gguf_context *gguf_read(struct gguf_source *source, struct gguf_init_params params);
// Makes the tensors of a context that was read, with their data if the parameters ask for it; false
// with a message. [stream]
bool gguf_read_tensors(const struct gguf_context *ctx, struct gguf_source *source,
                       struct gguf_init_params params);

#endif
