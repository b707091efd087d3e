// SPDX-License-Identifier: MIT
// Writes GGUF files field by field, without a check, so that wrong ones can be made.
#include "gguf_files.h"

#include <stdlib.h>
#include <string.h>

#include "gguf.h"

void put_bytes(struct file_image *file, const void *data, size_t size) {
    if (size > sizeof(file->bytes) - file->size) abort();
    memcpy(file->bytes + file->size, data, size);
    file->size += size;
}

void put_u32(struct file_image *file, uint32_t value) {
    put_bytes(file, &value, sizeof(value));
}

void put_u64(struct file_image *file, uint64_t value) {
    put_bytes(file, &value, sizeof(value));
}

void put_text(struct file_image *file, const char *text) {
    put_u64(file, strlen(text));
    put_bytes(file, text, strlen(text));
}

void put_header(struct file_image *file, uint32_t version, uint64_t n_tensors, uint64_t n_pairs) {
    file->size = 0;
    put_bytes(file, GGUF_MAGIC, 4);
    put_u32(file, version);
    put_u64(file, n_tensors);
    put_u64(file, n_pairs);
}

void put_u32_pair(struct file_image *file, const char *key, uint32_t value) {
    put_text(file, key);
    put_u32(file, GGUF_TYPE_UINT32);
    put_u32(file, value);
}

void put_tensor(struct file_image *file, const char *name, uint32_t n_dims, const int64_t *ne,
                uint32_t type, uint64_t offset) {
    put_text(file, name);
    put_u32(file, n_dims);
    put_bytes(file, ne, n_dims * sizeof(ne[0]));
    put_u32(file, type);
    put_u64(file, offset);
}

void put_zeros(struct file_image *file, size_t alignment) {
    while (file->size % alignment != 0) {
        put_bytes(file, "", 1);
    }
}

static void put_scalars(struct file_image *file) {
    static const unsigned sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    for (uint32_t type = 0; type < GGUF_TYPE_COUNT; ++type) {
        char key[] = "scalar.a";
        if (sizes[type] == 0) continue;
        key[sizeof(key) - 2] = (char)('a' + type);
        put_text(file, key);
        put_u32(file, type);
        put_bytes(file, "\1\2\3\4\5\6\7\10", sizes[type]);
    }
}

void build_good_file(struct file_image *file) {
    const int64_t ne[] = {4, 3, 2};
    put_header(file, GGUF_VERSION, 2, 15);
    put_u32_pair(file, "general.alignment", 64);
    put_scalars(file);
    put_text(file, "text");
    put_u32(file, GGUF_TYPE_STRING);
    put_text(file, "a string");
    put_text(file, "array.texts");
    put_u32(file, GGUF_TYPE_ARRAY);
    put_u32(file, GGUF_TYPE_STRING);
    put_u64(file, 2);
    put_text(file, "first");
    put_text(file, "");
    put_text(file, "array.shorts");
    put_u32(file, GGUF_TYPE_ARRAY);
    put_u32(file, GGUF_TYPE_INT16);
    put_u64(file, 3);
    put_bytes(file, "\1\0\2\0\3\0", 6);
    put_tensor(file, "weight", 3, ne, GGML_TYPE_F16, 0);
    put_tensor(file, "bias", 1, ne, GGML_TYPE_F32, 64);
    put_zeros(file, 64);
    for (int i = 0; i < 128; ++i) {
        const unsigned char value = (unsigned char)i;
        put_bytes(file, &value, 1);
    }
}
