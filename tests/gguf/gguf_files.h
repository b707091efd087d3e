// SPDX-License-Identifier: MIT
// Files for the tests: a writer of its own that can also write what no file may contain.
#ifndef GGML_TESTS_GGUF_FILES_H
#define GGML_TESTS_GGUF_FILES_H

#include <stddef.h>
#include <stdint.h>

struct file_image {
    unsigned char bytes[65536];
    size_t size;
};

void put_bytes(struct file_image *file, const void *data, size_t size);
void put_u32(struct file_image *file, uint32_t value);
void put_u64(struct file_image *file, uint64_t value);
void put_text(struct file_image *file, const char *text);
void put_header(struct file_image *file, uint32_t version, uint64_t n_tensors, uint64_t n_pairs);
void put_u32_pair(struct file_image *file, const char *key, uint32_t value);
void put_tensor(struct file_image *file, const char *name, uint32_t n_dims, const int64_t *ne,
                uint32_t type, uint64_t offset);
void put_zeros(struct file_image *file, size_t alignment);

// A good file with a pair of every type, arrays, and two tensors.
void build_good_file(struct file_image *file);

#endif
