// SPDX-License-Identifier: MIT
// Numbers and texts in a row of bytes: what probes send and what the cache keeps. Little-endian.
#ifndef GGML_PLUGIN_PROBE_PROBE_BYTES_H
#define GGML_PLUGIN_PROBE_PROBE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/data/arena.h"

enum { PROBE_TEXT_MAX = 4096 };

// Grows as it is written to; zero-initialised is empty. [stream]
struct probe_writer {
    unsigned char *data;
    size_t size;
    size_t capacity;
    bool failed; // memory ran out; what follows is ignored
};

void probe_put_bytes(struct probe_writer *writer, const void *bytes, size_t size);
void probe_put_u32(struct probe_writer *writer, uint32_t value);
void probe_put_u64(struct probe_writer *writer, uint64_t value);
// Its length and bytes, the first PROBE_TEXT_MAX of them; NULL counts as "".
void probe_put_text(struct probe_writer *writer, const char *text);
void probe_writer_free(struct probe_writer *writer);

// Reads what another process wrote: never beyond `size`. [stream]
struct probe_reader {
    const unsigned char *data;
    size_t size;
    size_t at;
    bool damaged;   // what was asked for is not there; everything returns zero from then on
    bool no_memory; // the same, for want of memory
};

// NULL when that many bytes are not left.
const unsigned char *probe_get_bytes(struct probe_reader *reader, size_t size);
uint32_t probe_get_u32(struct probe_reader *reader);
uint64_t probe_get_u64(struct probe_reader *reader);
// A copy in the arena, "" on failure. A text that holds a zero byte is damaged.
const char *probe_get_text(struct probe_reader *reader, struct arena *arena);

#endif
