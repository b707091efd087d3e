// SPDX-License-Identifier: MIT
// Reader of the metadata. Nothing in a file is trusted: declared sizes are compared with the rest
// of the file before memory is allocated.
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "ggml-impl.h"
#include "gguf/gguf_impl.h"
#include "gguf/source.h"

// Smallest size in bytes of a pair (key length, one character, type, value) and of a tensor (name
// length, dimensions, type, offset).
enum { MIN_PAIR_BYTES = 8 + 1 + 4 + 1, MIN_INFO_BYTES = 8 + 4 + 4 + 8 };

// Every tensor and pair takes a few bytes at least: the rest of the file bounds their numbers.
static bool read_counts(struct gguf_source *source, uint64_t *out_n_infos, uint64_t *out_n_pairs) {
    int64_t counts[2] = {0, 0};
    *out_n_infos = *out_n_pairs = 0;
    if (!gguf_source_read(source, counts, sizeof(counts))) return false;
    const uint64_t left = gguf_source_left(source);
    if (counts[0] < 0 || (uint64_t)counts[0] > left / MIN_INFO_BYTES) {
        return gguf_source_damaged(source, "%lld tensors don't fit into the %llu bytes left",
                                   (long long)counts[0], (unsigned long long)left);
    }
    if (counts[1] < 0 || (uint64_t)counts[1] > left / MIN_PAIR_BYTES) {
        return gguf_source_damaged(source, "%lld pairs don't fit into the %llu bytes left",
                                   (long long)counts[1], (unsigned long long)left);
    }
    *out_n_infos = (uint64_t)counts[0];
    *out_n_pairs = (uint64_t)counts[1];
    return true;
}

// Magic and version. If the lower half of the version is 0, the file has the other byte order.
static bool read_version(struct gguf_source *source, uint32_t *out_version) {
    unsigned char magic[4];
    *out_version = 0;
    if (!gguf_source_read(source, magic, sizeof(magic))) return false;
    if (memcmp(magic, GGUF_MAGIC, sizeof(magic)) != 0) {
        return gguf_source_damaged(source, "not a GGUF file: it starts with %02x %02x %02x %02x",
                                   magic[0], magic[1], magic[2], magic[3]);
    }
    if (!gguf_source_read(source, out_version, sizeof(*out_version))) return false;
    if (*out_version != 0 && (*out_version & 0xFFFF) == 0) {
        return gguf_source_damaged(source,
                                   "version 0x%08x looks byte-swapped: the file is for machines of "
                                   "the other byte order; convert it",
                                   (unsigned)*out_version);
    }
    if (*out_version < 2 || *out_version > GGUF_VERSION) {
        return gguf_source_damaged(source, "version %u is not supported, only 2 and %d",
                                   (unsigned)*out_version, GGUF_VERSION);
    }
    return true;
}

// Length of a text, which has to fit into the rest of the file.
static bool read_length(struct gguf_source *source, size_t *out_length) {
    uint64_t length;
    *out_length = 0;
    if (!gguf_source_read(source, &length, sizeof(length))) return false;
    if (length > GGUF_MAX_LENGTH || length > gguf_source_left(source)) {
        return gguf_source_damaged(source, "a string of %llu bytes, but %llu are left",
                                   (unsigned long long)length,
                                   (unsigned long long)gguf_source_left(source));
    }
    *out_length = (size_t)length;
    return true;
}

// Appends a string and a final zero.
static bool read_text(struct gguf_source *source, struct gguf_bytes *bytes) {
    size_t length;
    return read_length(source, &length) && gguf_source_append(source, bytes, length) &&
           gguf_bytes_append(bytes, "", 1);
}

// A key is a text without zero bytes and occurs once.
static bool read_key(struct gguf_source *source, const struct gguf_context *ctx,
                     struct gguf_pair *pair) {
    struct gguf_bytes text = {0};
    const bool good = read_text(source, &text);
    pair->key = text.data;
    if (!good) return false;
    if (text.size == 1 || strlen(pair->key) + 1 != text.size) {
        return gguf_source_damaged(source, "a key is empty or contains a zero byte");
    }
    if (gguf_pair_find(ctx, pair->key) != NAME_NOT_FOUND) {
        return gguf_source_damaged(source, "key '%s' is there twice", pair->key);
    }
    return true;
}

// Type of a value, and for an array the number of its elements.
static bool read_type(struct gguf_source *source, struct gguf_pair *pair) {
    int32_t type;
    uint64_t n = 1;
    if (!gguf_source_read(source, &type, sizeof(type))) return false;
    if (type == GGUF_TYPE_ARRAY) {
        pair->is_array = true;
        if (!gguf_source_read(source, &type, sizeof(type)) ||
            !gguf_source_read(source, &n, sizeof(n))) {
            return false;
        }
    }
    pair->type = (enum gguf_type)type;
    const size_t size = pair->type == GGUF_TYPE_STRING ? 8 : gguf_type_size(pair->type);
    if (size == 0) {
        return gguf_source_damaged(source, "key '%s' has %s %d", pair->key,
                                   pair->is_array ? "an array of type" : "type", (int)type);
    }
    // SIZE_MAX / 16: sizes of the arrays in memory can't wrap around where size_t has 32 bits.
    if (n > GGUF_MAX_LENGTH || n > SIZE_MAX / 16 || n > gguf_source_left(source) / size) {
        return gguf_source_damaged(source, "key '%s' has %llu elements, but %llu bytes are left",
                                   pair->key, (unsigned long long)n,
                                   (unsigned long long)gguf_source_left(source));
    }
    pair->n = (size_t)n;
    return true;
}

// Numbers are taken as they are. Booleans become 0 or 1: other bytes are undefined as a bool of C.
static bool read_value(struct gguf_source *source, struct gguf_pair *pair) {
    if (pair->type != GGUF_TYPE_STRING) {
        if (!gguf_source_append(source, &pair->data, pair->n * gguf_type_size(pair->type))) {
            return false;
        }
        unsigned char *bytes = pair->data.data;
        for (size_t i = 0; pair->type == GGUF_TYPE_BOOL && i < pair->n; ++i) {
            bytes[i] = bytes[i] != 0;
        }
        return true;
    }
    for (size_t i = 0; i < pair->n; ++i) {
        const size_t begin = pair->data.size;
        if (!gguf_bytes_append(&pair->starts, &begin, sizeof(begin))) return false;
        if (!read_text(source, &pair->data)) return false;
    }
    return true;
}

// One key with its type and value; the pair is freed here on failure and by gguf_pair_put()
// otherwise.
static bool read_pair(struct gguf_source *source, struct gguf_context *ctx) {
    struct gguf_pair pair = {0};
    if (!read_key(source, ctx, &pair) || !read_type(source, &pair) || !read_value(source, &pair)) {
        gguf_pair_free(&pair);
        return false;
    }
    return gguf_pair_put(ctx, &pair);
}

// A name fits into a tensor's array and occurs once.
static bool read_name(struct gguf_source *source, const struct gguf_context *ctx,
                      struct ggml_tensor *tensor) {
    size_t length;
    if (!read_length(source, &length)) return false;
    if (length >= sizeof(tensor->name)) {
        return gguf_source_damaged(source, "a tensor name has %zu bytes, at most %zu are possible",
                                   length, sizeof(tensor->name) - 1);
    }
    if (!gguf_source_read(source, tensor->name, length)) return false;
    if (strlen(tensor->name) != length) {
        return gguf_source_damaged(source, "a tensor name contains a zero byte");
    }
    if (gguf_info_find(ctx, tensor->name) != NAME_NOT_FOUND) {
        return gguf_source_damaged(source, "tensor '%s' is there twice", tensor->name);
    }
    return true;
}

// Extents and type; gguf_tensor_pack() checks whether they are possible.
static bool read_shape(struct gguf_source *source, struct ggml_tensor *tensor) {
    uint32_t n_dims;
    int32_t type;
    if (!gguf_source_read(source, &n_dims, sizeof(n_dims))) return false;
    if (n_dims > GGML_MAX_DIMS) {
        return gguf_source_damaged(source, "tensor '%s' has %u dimensions", tensor->name,
                                   (unsigned)n_dims);
    }
    for (uint32_t i = 0; i < GGML_MAX_DIMS; ++i) {
        tensor->ne[i] = 1;
    }
    if (!gguf_source_read(source, tensor->ne, n_dims * sizeof(tensor->ne[0])) ||
        !gguf_source_read(source, &type, sizeof(type))) {
        return false;
    }
    tensor->type = (enum ggml_type)type;
    return true;
}

// Each tensor has to begin where the previous one's padding ends: so none overlaps another.
static bool read_info(struct gguf_source *source, struct gguf_context *ctx) {
    struct ggml_tensor tensor = {0};
    uint64_t offset;
    size_t size;
    if (!read_name(source, ctx, &tensor) || !read_shape(source, &tensor) ||
        !gguf_source_read(source, &offset, sizeof(offset)) || !gguf_tensor_pack(&tensor, &size)) {
        return false;
    }
    if (offset != ctx->data_size) {
        return gguf_source_damaged(source,
                                   "tensor '%s' lies at %llu, but the one before ends at %zu",
                                   tensor.name, (unsigned long long)offset, ctx->data_size);
    }
    return gguf_info_put(ctx, &tensor, size);
}

// Version, counts, pairs, tensors, then padding up to the data.
static bool read_meta(struct gguf_source *source, struct gguf_context *ctx) {
    uint64_t n_infos;
    uint64_t n_pairs;
    if (!read_version(source, &ctx->version) || !read_counts(source, &n_infos, &n_pairs)) {
        return false;
    }
    for (uint64_t i = 0; i < n_pairs; ++i) {
        if (!read_pair(source, ctx)) return false;
    }
    for (uint64_t i = 0; i < n_infos; ++i) {
        if (!read_info(source, ctx)) return false;
    }
    if (n_infos > 0 && !gguf_source_align(source, ctx->alignment)) return false;
    ctx->data_offset = (size_t)source->offset;
    return true;
}

// NULL after the error was set and logged.
struct gguf_context *gguf_read(struct gguf_source *source, struct gguf_init_params params) {
    if (params.ctx) *params.ctx = NULL;
    struct gguf_context *ctx = gguf_init_empty();
    if (!ctx || !read_meta(source, ctx)) goto fail;
    if (params.ctx && !gguf_read_tensors(ctx, source, params)) goto fail;
    return ctx;
fail:
    GGML_LOG_ERROR("%s\n", ggml_last_error());
    gguf_free(ctx);
    return NULL;
}
