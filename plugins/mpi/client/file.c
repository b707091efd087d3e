// SPDX-License-Identifier: MIT
// Weights that a node reads from its own copy of a file. Where the caller's bytes lie in a mapping
// of a file, the node is told the file's name and size, where in it they are, and their digests;
// it takes its own bytes if they have these, and else they are sent.
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/data/sha256.h"
#include "client.h"

// Less is sent sooner than asked for.
enum { FILE_LEAST = 1 << 20 };

// The file in which a path ends, if it is still the one that is mapped. The digests are of the
// bytes in memory: a mapping or path that misleads costs a refusal, never wrong bytes.
static bool take_file(const char *path, uint64_t inode, uint64_t at, struct wire_file *out) {
    struct stat about;
    const char *name = strrchr(path, '/');
    if (!name || stat(path, &about) != 0 || !S_ISREG(about.st_mode)) return false;
    if ((uint64_t)about.st_ino != inode || about.st_size < 0) return false;
    if (strlen(name + 1) >= sizeof(out->name)) return false;
    memset(out, 0, sizeof(*out));
    strcpy(out->name, name + 1);
    out->offset = at;
    out->size = (uint64_t)about.st_size;
    return true;
}

// Looks for the mapping in which the bytes lie; false: none, or it is of no file.
static bool find_file(const void *data, size_t size, uint64_t *out_inode, struct wire_file *out) {
    const uint64_t first = (uint64_t)(uintptr_t)data;
    FILE *maps = fopen("/proc/self/maps", "re");
    char *line = NULL;
    size_t capacity = 0;
    bool found = false, over = !maps;
    while (!over && getline(&line, &capacity, maps) > 0) {
        uint64_t begin, end, offset;
        int path = 0;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %" SCNu64 " %n", &begin, &end,
                   &offset, out_inode, &path) < 4) {
            continue;
        }
        over = begin > first;
        if (over || first >= end) continue;
        over = true;
        line[strcspn(line, "\n")] = '\0';
        found = size <= end - first &&
                take_file(line + path, *out_inode, offset + (first - begin), out);
    }
    free(line);
    if (maps) fclose(maps);
    return found;
}

// What follows the tensor in the message; NULL: no memory. The caller frees it.
static char *make_rest(const struct wire_file *file, const char *data, size_t size,
                       size_t *out_size) {
    *out_size = sizeof(*file) + wire_pieces(size) * WIRE_DIGEST;
    char *rest = malloc(*out_size);
    if (!rest) return NULL;
    memcpy(rest, file, sizeof(*file));
    uint8_t *digest = (uint8_t *)rest + sizeof(*file);
    for (size_t at = 0; at < size; at += WIRE_FILE_PIECE, digest += WIRE_DIGEST) {
        struct ggml_sha256 sum;
        ggml_sha256_init(&sum);
        ggml_sha256_update(&sum, data + at,
                           size - at < WIRE_FILE_PIECE ? size - at : WIRE_FILE_PIECE);
        ggml_sha256_final(&sum, digest);
    }
    return rest;
}

// A node that knows no files, or not this one, is not asked again. No error is left behind: the
// bytes are sent then.
static bool ask(struct node *node, const struct wire_tensor *described, size_t offset, size_t size,
                const char *rest, size_t rest_size, uint64_t inode) {
    struct wire_message message = {.kind = WIRE_SET_FILE, .offset = offset, .size = size};
    const struct parts parts = {.first = described,
                                .first_size = sizeof(*described),
                                .second = rest,
                                .second_size = rest_size};
    struct line line = {0};
    uint64_t taken = 0;
    if (client_post_into(node, &line, &message, &parts, &taken, sizeof(taken)) != GGML_HOST_OK)
        return false;
    line_drain(node, &line);
    if (line.status == GGML_HOST_OK && taken == 1) return true;
    if (line.status == GGML_HOST_UNSUPPORTED || line.status == GGML_HOST_INVALID_ARGUMENT)
        atomic_store(&node->has_no_files, true);
    atomic_store(&node->missing_inode, inode);
    return false;
}

bool remote_set_from_file(struct node *node, const struct ggml_tensor *tensor, const void *data,
                          size_t offset, size_t size) {
    struct wire_file file;
    struct wire_tensor described;
    uint64_t inode = 0;
    size_t rest_size;
    if (size < FILE_LEAST || atomic_load(&node->has_no_files)) return false;
    if (!find_file(data, size, &inode, &file) || inode == atomic_load(&node->missing_inode))
        return false;
    if (!remote_describe(node, tensor, &described)) return false;
    char *rest = make_rest(&file, data, size, &rest_size);
    const bool taken = rest && ask(node, &described, offset, size, rest, rest_size, inode);
    free(rest);
    return taken;
}
