// SPDX-License-Identifier: MIT
// Files as sources.
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "gguf/source.h"

#ifdef _WIN32
#define seek_file _fseeki64
#define tell_file _ftelli64
typedef __int64 file_offset;
#else
#define seek_file fseeko
#define tell_file ftello
typedef off_t file_offset;
#endif

// A file and its present position, to avoid seeking between consecutive reads.
struct file_place {
    FILE *file;
    uint64_t offset;
};

// Seeks only if the offset isn't the current one.
static size_t read_file(void *userdata, void *out, uint64_t offset, size_t size) {
    struct file_place *place = userdata;
    if (offset != place->offset && seek_file(place->file, (file_offset)offset, SEEK_SET) != 0) {
        return 0;
    }
    const size_t got = fread(out, 1, size, place->file);
    place->offset = offset + got;
    return got;
}

// Current position and end of the file; false if it isn't seekable.
static bool measure(FILE *file, uint64_t *out_start, uint64_t *out_end) {
    const file_offset start = tell_file(file);
    *out_start = *out_end = 0;
    if (start < 0 || seek_file(file, 0, SEEK_END) != 0) return false;
    const file_offset end = tell_file(file);
    if (end < 0 || seek_file(file, start, SEEK_SET) != 0) return false;
    *out_start = (uint64_t)start;
    // A GGUF file may be embedded in another one: it begins at the current position.
    *out_end = (uint64_t)(end > start ? end : start);
    return true;
}

struct gguf_context *gguf_init_from_file_ptr(FILE *file, struct gguf_init_params params) {
    struct gguf_source source = {.read = read_file};
    struct file_place place = {.file = file};
    if (params.ctx) *params.ctx = NULL;
    if (!file) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "gguf_init_from_file_ptr: the file is NULL");
        return NULL;
    }
    if (!measure(file, &source.offset, &source.end)) {
        ggml_fail(GGML_HOST_IO_ERROR, "gguf_init_from_file_ptr: cannot position the file: %s",
                  strerror(errno));
        return NULL;
    }
    source.userdata = &place;
    place.offset = source.begin = source.taken = source.offset;
    struct gguf_context *ctx = gguf_read(&source, params);
    // Not behind what was read ahead: what follows is the caller's.
    seek_file(file, (file_offset)source.taken, SEEK_SET);
    return ctx;
}

// Opened for this call only.
struct gguf_context *gguf_init_from_file(const char *fname, struct gguf_init_params params) {
    if (params.ctx) *params.ctx = NULL;
    FILE *file = fname ? ggml_fopen(fname, "rb") : NULL;
    if (!file) {
        ggml_fail(GGML_HOST_IO_ERROR, "gguf_init_from_file: cannot open '%s': %s",
                  fname ? fname : "(NULL)", fname ? strerror(errno) : "no name");
        return NULL;
    }
    struct gguf_context *ctx = gguf_init_from_file_ptr(file, params);
    fclose(file);
    return ctx;
}
