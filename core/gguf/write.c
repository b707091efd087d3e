// SPDX-License-Identifier: MIT
// The writer: the same bytes go to a file, to memory, or are only counted.
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "ggml-backend.h"
#include "gguf/gguf_impl.h"

enum { PIECE = 1 << 20 };

// Destination of bytes: a file, memory that is large enough, or none while counting.
struct sink {
    FILE *file;          // or NULL
    unsigned char *data; // or NULL
    size_t size;         // bytes so far
    bool good;
};

// Writes, copies or counts bytes. After a failure nothing more is written: callers need not check
// every call.
static void put(struct sink *sink, const void *data, size_t size) {
    if (!sink->good || size == 0) return;
    if (sink->data) memcpy(sink->data + sink->size, data, size);
    if (sink->file && fwrite(data, 1, size, sink->file) != size) {
        ggml_fail(GGML_HOST_IO_ERROR, "gguf: cannot write: %s", strerror(errno));
        sink->good = false;
    }
    sink->size += size;
}

static void put_u64(struct sink *sink, uint64_t value) {
    put(sink, &value, sizeof(value));
}

static void put_i32(struct sink *sink, int32_t value) {
    put(sink, &value, sizeof(value));
}

// As the format has it: length, then bytes without a final zero.
static void put_text(struct sink *sink, const char *text, size_t length) {
    put_u64(sink, length);
    put(sink, text, length);
}

// Zeros up to the next multiple of the alignment.
static void put_padding(struct sink *sink, size_t alignment) {
    static const unsigned char zeros[256];
    size_t left = (alignment - sink->size % alignment) % alignment;
    while (sink->good && left > 0) {
        const size_t n = left < sizeof(zeros) ? left : sizeof(zeros);
        put(sink, zeros, n);
        left -= n;
    }
}

// Key, type, for an array the number of elements, then the value.
static void put_pair(struct sink *sink, const struct gguf_pair *pair) {
    put_text(sink, pair->key, strlen(pair->key));
    if (pair->is_array) {
        put_i32(sink, GGUF_TYPE_ARRAY);
        put_i32(sink, (int32_t)pair->type);
        put_u64(sink, pair->n);
    } else {
        put_i32(sink, (int32_t)pair->type);
    }
    if (pair->type != GGUF_TYPE_STRING) {
        put(sink, pair->data.data, pair->data.size);
        return;
    }
    for (size_t i = 0; i < pair->n; ++i) {
        size_t length;
        const char *text = gguf_pair_string(pair, i, &length);
        put_text(sink, text, length);
    }
}

// Not ggml_n_dims(), which drops extents of 0 as well.
static int dimensions(const struct ggml_tensor *tensor) {
    int n = GGML_MAX_DIMS;
    while (n > 1 && tensor->ne[n - 1] == 1) {
        --n;
    }
    return n;
}

// Name, extents, type and offset of a tensor. Trailing extents of 1 are left out.
static void put_info(struct sink *sink, const struct gguf_info *info) {
    const int n_dims = dimensions(&info->tensor);
    put_text(sink, info->tensor.name, strlen(info->tensor.name));
    put_i32(sink, n_dims);
    put(sink, info->tensor.ne, (size_t)n_dims * sizeof(info->tensor.ne[0]));
    put_i32(sink, (int32_t)info->tensor.type);
    put_u64(sink, info->offset);
}

// Everything before the tensors' data.
static void put_meta(struct sink *sink, const struct gguf_context *ctx) {
    put(sink, GGUF_MAGIC, 4);
    put(sink, &ctx->version, sizeof(ctx->version));
    put_u64(sink, ctx->n_infos);
    put_u64(sink, ctx->n_pairs);
    for (size_t i = 0; i < ctx->n_pairs; ++i) {
        put_pair(sink, &ctx->pairs[i]);
    }
    for (size_t i = 0; i < ctx->n_infos; ++i) {
        put_info(sink, &ctx->infos[i]);
    }
    put_padding(sink, ctx->alignment);
}

// Reads a tensor from its device in pieces of PIECE bytes, so that the whole isn't copied.
static void put_device_data(struct sink *sink, const struct gguf_info *info, char *piece) {
    for (size_t at = 0; sink->good && at < info->size;) {
        const size_t n = info->size - at < PIECE ? info->size - at : PIECE;
        const unsigned long failures = ggml_fail_count();
        ggml_backend_tensor_get(&info->tensor, piece, at, n);
        sink->good = ggml_fail_count() == failures;
        put(sink, piece, n);
        at += n;
    }
}

// A tensor's data, from a buffer or from memory of the application.
static void put_tensor(struct sink *sink, const struct gguf_info *info, char *piece) {
    const struct ggml_tensor *tensor = &info->tensor;
    const struct ggml_tensor *root = tensor->view_src ? tensor->view_src : tensor;
    if (info->size == 0) return;
    if (!ggml_is_contiguous(tensor) || ggml_nbytes(tensor) != info->size) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "gguf: tensor '%s' is not contiguous; add the result of ggml_cont", tensor->name);
        sink->good = false;
    } else if (root->buffer) {
        put_device_data(sink, info, piece);
    } else if (tensor->data) {
        put(sink, tensor->data, info->size);
    } else {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "gguf: tensor '%s' has no data; call gguf_set_tensor_data", tensor->name);
        sink->good = false;
    }
}

// Metadata, then each tensor followed by padding.
static void put_all(struct sink *sink, const struct gguf_context *ctx, bool only_meta) {
    put_meta(sink, ctx);
    if (only_meta || !sink->good || ctx->n_infos == 0) return;
    char *piece = ggml_mem_alloc(PIECE);
    if (!piece) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "gguf: no memory to copy tensors");
        sink->good = false;
    }
    for (size_t i = 0; sink->good && i < ctx->n_infos; ++i) {
        put_tensor(sink, &ctx->infos[i], piece);
        put_padding(sink, ctx->alignment);
    }
    ggml_mem_free(piece);
}

// Refuses to write a context that lacks something the program tried to put in: the file would look
// complete.
static bool is_whole(const char *function, const struct gguf_context *ctx) {
    if (ctx->failure[0] == '\0') return true;
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: not everything could be put in: %s", function,
              ctx->failure);
    return false;
}

bool gguf_write_to_file_ptr(const struct gguf_context *ctx, FILE *file, bool only_meta) {
    struct sink sink = {.file = file, .good = true};
    if (!ctx || !file) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "gguf_write_to_file_ptr: the context or the file is NULL");
        return false;
    }
    if (!is_whole(__func__, ctx)) return false;
    put_all(&sink, ctx, only_meta);
    if (sink.good && fflush(file) != 0) {
        ggml_fail(GGML_HOST_IO_ERROR, "gguf: cannot write: %s", strerror(errno));
        sink.good = false;
    }
    return sink.good;
}

// A failure leaves an unfinished file behind.
bool gguf_write_to_file(const struct gguf_context *ctx, const char *fname, bool only_meta) {
    if (ctx && !is_whole(__func__, ctx)) return false;
    FILE *file = ctx && fname ? ggml_fopen(fname, "wb") : NULL;
    if (!file) {
        ggml_fail(GGML_HOST_IO_ERROR, "gguf_write_to_file: cannot create '%s': %s",
                  fname ? fname : "(NULL)", ctx && fname ? strerror(errno) : "an argument is NULL");
        return false;
    }
    bool good = gguf_write_to_file_ptr(ctx, file, only_meta);
    if (fclose(file) != 0 && good) {
        ggml_fail(GGML_HOST_IO_ERROR, "gguf_write_to_file: cannot write '%s': %s", fname,
                  strerror(errno));
        good = false;
    }
    return good;
}

// Counted by the code that writes, so that both sizes agree.
size_t gguf_get_meta_size(const struct gguf_context *ctx) {
    struct sink sink = {.good = true};
    if (ctx && is_whole(__func__, ctx)) put_meta(&sink, ctx);
    return sink.size;
}

void gguf_get_meta_data(const struct gguf_context *ctx, void *data) {
    struct sink sink = {.data = data, .good = true};
    if (!ctx || !data) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "gguf_get_meta_data: the context or data is NULL");
        return;
    }
    if (is_whole(__func__, ctx)) put_meta(&sink, ctx);
}
