// SPDX-License-Identifier: MIT
// A plugin's file, opened once: what is read, checked and mapped is the same file, whatever happens
// to its name meanwhile.
#ifndef GGML_PLUGIN_IMAGE_PLUGIN_FILE_H
#define GGML_PLUGIN_IMAGE_PLUGIN_FILE_H

#include <stdbool.h>

#include "base/data/sha256.h"
#include "plugin/image/note_image.h"

// Bytes; what is longer, be it only on paper, is not looked at.
#define PLUGIN_FILE_MAX (UINT64_C(4) << 30)

// Identity of a file, whatever its path: equal device and inode are the same file.
struct plugin_file_id {
    uint64_t device;
    uint64_t inode;
    uint64_t size;
    int64_t mtime_ns;
    int64_t ctime_ns; // 0 where there is none
};

// Whether all of it is equal: the same file, not written to. [any-thread]
bool plugin_file_is_same(const struct plugin_file_id *a, const struct plugin_file_id *b);

// The file that a path leads to at this moment; false if there is none. POSIX systems only.
// [any-thread]
bool plugin_file_identify(const char *path, struct plugin_file_id *out_id);

struct plugin_file {
    intptr_t handle;   // what is read and mapped: a descriptor, on Windows a HANDLE; -1: not open
    intptr_t original; // the file if `handle` is a sealed copy of it, else -1
    struct plugin_file_id id; // of the file
};

// Opens a regular file for reading; out_file->id is set as soon as it could be opened, and
// out_file->handle is -1 on failure. Never blocks on a FIFO or device. Statuses as
// plugin_note_read. [any-thread]
enum ggml_host_status plugin_file_open(const char *path, struct plugin_file *out_file);
// Copies the file into memory that can't be changed any more and reads from that, so that what was
// checked is what is mapped even if the file's owner writes to it meanwhile. Where the system has
// no such memory, the file is used. OUT_OF_MEMORY or IO_ERROR. [any-thread]
enum ggml_host_status plugin_file_seal(struct plugin_file *file, const char *path);
// NULL or one that is not open does nothing. [stream]
void plugin_file_close(struct plugin_file *file);
// Of a sealed copy: keeps the file itself on its disk, so that no other one gets its inode, and no
// descriptor, which a program that closes all of them might have for a file of its own afterwards.
// NULL if it is none, or can't be mapped. [any-thread]
void *plugin_file_pin(const struct plugin_file *file);
// NULL does nothing. [any-thread]
void plugin_file_unpin(void *pin);
// What image readers read from; valid while the file is open and the path lives. [any-thread]
struct image_source plugin_file_source(const struct plugin_file *file, const char *path);
// DAMAGED_FILE if it was written to, moved or exchanged since it was opened; with `by_path` the
// path must lead to it as well. [any-thread]
enum ggml_host_status plugin_file_unchanged(const struct plugin_file *file, const char *path,
                                            bool by_path);
// Sum of all it holds. [any-thread]
enum ggml_host_status plugin_file_sha256(const struct plugin_file *file, const char *path,
                                         uint8_t out_digest[GGML_SHA256_SIZE]);

#endif
