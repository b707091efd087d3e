// SPDX-License-Identifier: MIT
// Tensors from files of this machine, of which the program says where the bytes are in its own
// copy. No byte reaches a tensor before its piece's digest was compared, so that another file of
// the same name costs a refusal, never wrong weights.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/data/sha256.h"
#include "server.h"

int file_open_folder(const char *path) {
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

// A regular file of that size, which lies in the folder itself: no link leads out of it, and
// nothing that blocks is opened. -1 after a failure was noted.
static int open_file(const struct server *server, const struct wire_file *file) {
    struct stat about;
    const int fd = openat(server->files, file->name,
                          O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode) &&
        (uint64_t)about.st_size == file->size) {
        return fd;
    }
    if (fd >= 0) close(fd);
    fail(GGML_HOST_NOT_FOUND, "a file that this node does not have");
    return -1;
}

// False: the file ends before, or can't be read.
static bool read_all(int fd, char *bytes, size_t size, uint64_t offset) {
    for (size_t at = 0; at < size;) {
        const ssize_t n = pread(fd, bytes + at, size - at, (off_t)(offset + at));
        if (n <= 0) return false;
        at += (size_t)n;
    }
    return true;
}

static bool has_digest(const char *bytes, size_t size, const uint8_t *digest) {
    uint8_t own[GGML_SHA256_SIZE];
    struct ggml_sha256 sum;
    ggml_sha256_init(&sum);
    ggml_sha256_update(&sum, bytes, size);
    ggml_sha256_final(&sum, own);
    return memcmp(own, digest, sizeof(own)) == 0;
}

enum ggml_host_status file_set(struct server *server, const struct wire_message *message,
                               const void *rest, struct ggml_tensor *tensor) {
    enum ggml_host_status status = GGML_HOST_OK;
    struct wire_file file;
    wire_read_file(rest, &file);
    if (server->files < 0)
        return fail(GGML_HOST_UNSUPPORTED, "a file, of which this node has none");
    const int fd = open_file(server, &file);
    if (fd < 0) return last_status();
    char *piece = malloc(message->size < WIRE_FILE_PIECE ? message->size : WIRE_FILE_PIECE);
    if (!piece) status = fail(GGML_HOST_OUT_OF_MEMORY, "no memory");
    const uint8_t *digest = wire_digests(rest);
    for (uint64_t at = 0; status == GGML_HOST_OK && at < message->size; at += WIRE_FILE_PIECE) {
        const uint64_t left = message->size - at;
        const size_t n = left < WIRE_FILE_PIECE ? (size_t)left : WIRE_FILE_PIECE;
        if (read_all(fd, piece, n, file.offset + at) && has_digest(piece, n, digest)) {
            ggml_backend_tensor_set(tensor, piece, (size_t)(message->offset + at), n);
            status = last_status();
            atomic_fetch_add(&server->bytes_from_files, n);
        } else {
            status = fail(GGML_HOST_NOT_FOUND, "bytes that this node's file does not have");
        }
        digest += WIRE_DIGEST;
    }
    free(piece);
    close(fd);
    return status;
}
