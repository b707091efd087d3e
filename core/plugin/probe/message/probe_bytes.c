// SPDX-License-Identifier: MIT
// Bytes of messages and cache entries. A writer that ran out of memory, or a reader that came to
// the end, stays failed, so that callers check once at the end.
#include "plugin/probe/message/probe_bytes.h"

#include <string.h>

#include "base/array.h"
#include "base/mem.h"

void probe_put_bytes(struct probe_writer *writer, const void *bytes, size_t size) {
    if (size == 0 || writer->failed) return;
    writer->failed = !array_extend(&writer->data, &writer->capacity, writer->size, size, 1);
    if (writer->failed) return;
    memcpy(writer->data + writer->size, bytes, size);
    writer->size += size;
}

// Little-endian, whatever the machine.
static void put_number(struct probe_writer *writer, uint64_t value, size_t size) {
    unsigned char bytes[sizeof(value)];
    for (size_t i = 0; i < size; ++i)
        bytes[i] = (unsigned char)(value >> 8 * i);
    probe_put_bytes(writer, bytes, size);
}

void probe_put_u32(struct probe_writer *writer, uint32_t value) {
    put_number(writer, value, sizeof(value));
}

void probe_put_u64(struct probe_writer *writer, uint64_t value) {
    put_number(writer, value, sizeof(value));
}

// Texts are cut at PROBE_TEXT_MAX, so that a plugin can't make messages of any length.
void probe_put_text(struct probe_writer *writer, const char *text) {
    const char *given = text ? text : "";
    const char *end = memchr(given, '\0', PROBE_TEXT_MAX);
    const size_t length = end ? (size_t)(end - given) : PROBE_TEXT_MAX;
    probe_put_u32(writer, (uint32_t)length);
    probe_put_bytes(writer, given, length);
}

void probe_writer_free(struct probe_writer *writer) {
    ggml_mem_free(writer->data);
    memset(writer, 0, sizeof(*writer));
}

// Points into the reader's data.
const unsigned char *probe_get_bytes(struct probe_reader *reader, size_t size) {
    if (size > reader->size - reader->at) reader->damaged = true;
    if (reader->damaged || reader->no_memory) return NULL;
    const unsigned char *bytes = reader->data + reader->at;
    reader->at += size;
    return bytes;
}

// Little-endian on every machine, since the helper may be of another build. 0 after the end.
static uint64_t get_number(struct probe_reader *reader, size_t size) {
    const unsigned char *bytes = probe_get_bytes(reader, size);
    uint64_t value = 0;
    for (size_t i = 0; bytes && i < size; ++i)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

uint32_t probe_get_u32(struct probe_reader *reader) {
    return (uint32_t)get_number(reader, sizeof(uint32_t));
}

uint64_t probe_get_u64(struct probe_reader *reader) {
    return get_number(reader, sizeof(uint64_t));
}

// Longer texts than a writer makes are damage.
const char *probe_get_text(struct probe_reader *reader, struct arena *arena) {
    const uint32_t length = probe_get_u32(reader);
    if (length > PROBE_TEXT_MAX) reader->damaged = true;
    const unsigned char *bytes = probe_get_bytes(reader, length);
    if (!bytes || length == 0) return "";
    if (memchr(bytes, '\0', length)) {
        reader->damaged = true;
        return "";
    }
    char *text = arena_alloc(arena, (size_t)length + 1);
    if (!text) {
        reader->no_memory = true;
        return "";
    }
    memcpy(text, bytes, length);
    return text;
}
