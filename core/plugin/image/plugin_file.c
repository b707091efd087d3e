// SPDX-License-Identifier: MIT
// The parts that need nothing of a system: the digest of a file and whether two files are one.
#include "plugin/image/plugin_file.h"

#include "base/mem.h"
#include "base/status.h"

// Reads the file once in pieces of 64 KiB. O(size).
enum ggml_host_status plugin_file_sha256(const struct plugin_file *file, const char *path,
                                         uint8_t out_digest[GGML_SHA256_SIZE]) {
    enum { CHUNK = 1 << 16 };
    const struct image_source source = plugin_file_source(file, path);
    struct ggml_sha256 sum;
    unsigned char *chunk = ggml_mem_alloc(CHUNK);
    if (!chunk) return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory to sum up '%s'", source.label);
    enum ggml_host_status status = GGML_HOST_OK;
    ggml_sha256_init(&sum);
    for (uint64_t at = 0; at < source.size && status == GGML_HOST_OK; at += CHUNK) {
        const uint64_t left = source.size - at;
        const size_t size = left < CHUNK ? (size_t)left : CHUNK;
        status = source.read(source.context, at, chunk, size);
        if (status == GGML_HOST_OK) ggml_sha256_update(&sum, chunk, size);
    }
    ggml_sha256_final(&sum, out_digest);
    ggml_mem_free(chunk);
    return status;
}

bool plugin_file_is_same(const struct plugin_file_id *a, const struct plugin_file_id *b) {
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}
