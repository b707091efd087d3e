// SPDX-License-Identifier: MIT
// Reads the input as a GGUF file, then asks for every pair and tensor, reads the data, and
// writes the file again.
#include "fuzz/inputs/gguf_input.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "gguf.h"

static void require(bool holds) {
    if (!holds) abort();
}

static volatile size_t sum; // keeps the reads

static void touch(const void *data, size_t size) {
    const unsigned char *bytes = data;
    size_t local = 0;
    for (size_t i = 0; i < size; ++i) {
        local += bytes[i];
    }
    sum += local;
}

static size_t element_size(enum gguf_type type) {
    switch (type) {
    case GGUF_TYPE_UINT16:
    case GGUF_TYPE_INT16: return 2;
    case GGUF_TYPE_UINT32:
    case GGUF_TYPE_INT32:
    case GGUF_TYPE_FLOAT32: return 4;
    case GGUF_TYPE_UINT64:
    case GGUF_TYPE_INT64:
    case GGUF_TYPE_FLOAT64: return 8;
    default: return 1;
    }
}

static void ask_for_pairs(const struct gguf_context *ctx) {
    for (int64_t i = 0; i < gguf_get_n_kv(ctx); ++i) {
        const enum gguf_type type = gguf_get_kv_type(ctx, i);
        const enum gguf_type element = type == GGUF_TYPE_ARRAY ? gguf_get_arr_type(ctx, i) : type;
        const size_t n = gguf_get_arr_n(ctx, i);
        require(gguf_find_key(ctx, gguf_get_key(ctx, i)) == i);
        require(gguf_type_name(element) != NULL && element != GGUF_TYPE_ARRAY);
        if (element != GGUF_TYPE_STRING) {
            touch(gguf_get_arr_data(ctx, i), n * element_size(element));
        }
        for (size_t k = 0; element == GGUF_TYPE_STRING && k < n; ++k) {
            touch(gguf_get_arr_str(ctx, i, k), strlen(gguf_get_arr_str(ctx, i, k)) + 1);
        }
        gguf_get_val_u32(ctx, i);
        gguf_get_val_str(ctx, i);
    }
}

static void ask_for_tensors(const struct gguf_context *ctx) {
    size_t end = 0;
    for (int64_t i = 0; i < gguf_get_n_tensors(ctx); ++i) {
        require(gguf_find_tensor(ctx, gguf_get_tensor_name(ctx, i)) == i);
        require(gguf_get_tensor_offset(ctx, i) % gguf_get_alignment(ctx) == 0);
        require(gguf_get_tensor_offset(ctx, i) >= end);
        end = gguf_get_tensor_offset(ctx, i) + gguf_get_tensor_size(ctx, i);
        require(ggml_type_name(gguf_get_tensor_type(ctx, i)) != NULL);
    }
}

// The writer's meta data must be read back and written to the same bytes.
static void write_again(const struct gguf_context *ctx) {
    enum { LARGEST = 16 << 20 };
    const size_t size = gguf_get_meta_size(ctx);
    // A small file may ask for an alignment of gigabytes: then what is written is padded to that.
    if (size > LARGEST) return;
    unsigned char *first = malloc(size);
    unsigned char *second = malloc(size);
    require(first && second);
    gguf_get_meta_data(ctx, first);
    struct gguf_context *copy =
        gguf_init_from_buffer(first, size, (struct gguf_init_params){.no_alloc = true});
    require(copy != NULL && gguf_get_meta_size(copy) == size);
    gguf_get_meta_data(copy, second);
    require(memcmp(first, second, size) == 0);
    gguf_free(copy);
    free(first);
    free(second);
}

static void read_tensors(const unsigned char *data, size_t size) {
    struct ggml_context *tensors = NULL;
    struct gguf_context *ctx =
        gguf_init_from_buffer(data, size, (struct gguf_init_params){.ctx = &tensors});
    require((ctx != NULL) == (tensors != NULL));
    if (!ctx) return;
    int64_t n = -1; // the data itself is the first tensor
    for (struct ggml_tensor *tensor = ggml_get_first_tensor(tensors); tensor; ++n) {
        touch(tensor->data, ggml_nbytes(tensor));
        tensor = ggml_get_next_tensor(tensors, tensor);
    }
    require(n == gguf_get_n_tensors(ctx));
    gguf_free(ctx);
    ggml_free(tensors);
}

bool run_gguf_input(const unsigned char *data, size_t size) {
    ggml_clear_error();
    struct gguf_context *ctx =
        gguf_init_from_buffer(data, size, (struct gguf_init_params){.no_alloc = true});
    if (!ctx) {
        require(ggml_last_status() != GGML_HOST_OK && ggml_last_error()[0] != '\0');
        return false;
    }
    ask_for_pairs(ctx);
    ask_for_tensors(ctx);
    write_again(ctx);
    gguf_free(ctx);
    read_tensors(data, size);
    return true;
}
