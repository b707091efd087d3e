// SPDX-License-Identifier: MIT
// The tensors of a context and the offsets of their data.
#include <string.h>

#include "base/array.h"
#include "base/status.h"
#include "gguf/gguf_impl.h"

// Names for the index.
static const char *name_at(const void *owner, size_t position) {
    return ((const struct gguf_context *)owner)->infos[position].tensor.name;
}

size_t gguf_info_find(const struct gguf_context *ctx, const char *name) {
    return name_index_find(&ctx->names, name, name_at, ctx);
}

// Multiplies. Factors of 0 are ignored, so that strides can't overflow in an empty tensor either;
// false if the product would exceed the limit.
static bool multiply(size_t *value, int64_t factor) {
    const size_t limit = SIZE_MAX / 2 < INT64_MAX ? SIZE_MAX / 2 : INT64_MAX;
    if (factor == 0) return true;
    if ((uint64_t)factor > limit / *value) return false;
    *value *= (size_t)factor;
    return true;
}

// Extents come from files and applications: every product is checked.
bool gguf_tensor_pack(struct ggml_tensor *tensor, size_t *out_size) {
    const int64_t block = ggml_blck_size(tensor->type);
    size_t n_elements = 1;
    size_t size = ggml_type_size(tensor->type);
    *out_size = 0;
    if (block == 0) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "gguf: tensor '%s': %d is no tensor type",
                  tensor->name, (int)tensor->type);
        return false;
    }
    if (tensor->ne[0] % block != 0) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "gguf: tensor '%s': rows of %lld elements are not whole %s blocks of %lld",
                  tensor->name, (long long)tensor->ne[0], ggml_type_name(tensor->type),
                  (long long)block);
        return false;
    }
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        const int64_t extent = tensor->ne[i];
        if (extent < 0 || !multiply(&n_elements, extent) ||
            !multiply(&size, i == 0 ? extent / block : extent)) {
            ggml_fail(GGML_HOST_OUT_OF_RANGE,
                      "gguf: tensor '%s': extent %d (%lld) is negative or too large", tensor->name,
                      i, (long long)extent);
            return false;
        }
    }
    tensor->nb[0] = ggml_type_size(tensor->type);
    tensor->nb[1] = tensor->nb[0] * (size_t)(tensor->ne[0] / block);
    for (int i = 2; i < GGML_MAX_DIMS; ++i) {
        tensor->nb[i] = tensor->nb[i - 1] * (size_t)tensor->ne[i - 1];
    }
    *out_size = tensor->nb[3] * (size_t)tensor->ne[3];
    return true;
}

// Advances an offset by a tensor and its padding; false on overflow.
static bool advance(size_t *offset, size_t size, size_t alignment) {
    if (size > SIZE_MAX / 2 - *offset || alignment > SIZE_MAX / 2) return false;
    const size_t padded = GGML_PAD(*offset + size, alignment);
    if (padded > SIZE_MAX / 2) return false;
    *offset = padded;
    return true;
}

static bool too_large(const char *name) {
    ggml_fail(GGML_HOST_OUT_OF_RANGE, "gguf: with tensor '%s' the data is too large", name);
    return false;
}

// A tensor's data begins after the padding of the previous one. Nothing changes on failure.
bool gguf_info_put(struct gguf_context *ctx, const struct ggml_tensor *tensor, size_t size) {
    size_t end = ctx->data_size;
    if (!advance(&end, size, ctx->alignment)) return too_large(tensor->name);
    if (!ARRAY_GROW(ctx, infos, (int64_t)ctx->n_infos + 1)) return false;
    if (!name_index_reserve(&ctx->names)) return false;
    ctx->infos[ctx->n_infos] = (struct gguf_info){*tensor, ctx->data_size, size, false};
    name_index_add(&ctx->names, tensor->name, ctx->n_infos++);
    ctx->data_size = end;
    return true;
}

// Two passes: the first only checks, so that a failure leaves the old offsets.
bool gguf_infos_place(struct gguf_context *ctx, size_t alignment) {
    size_t offset = 0;
    for (size_t i = 0; i < ctx->n_infos; ++i) {
        if (!advance(&offset, ctx->infos[i].size, alignment)) {
            return too_large(ctx->infos[i].tensor.name);
        }
    }
    offset = 0;
    for (size_t i = 0; i < ctx->n_infos; ++i) {
        ctx->infos[i].offset = offset;
        advance(&offset, ctx->infos[i].size, alignment);
    }
    ctx->alignment = alignment;
    ctx->data_size = offset;
    return true;
}

// The name has to end within its array: the tensor is the application's memory.
static bool add_tensor(struct gguf_context *ctx, const struct ggml_tensor *tensor) {
    struct ggml_tensor packed;
    size_t size;
    if (!ctx || !tensor) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "gguf_add_tensor: the context or tensor is NULL");
        return false;
    }
    if (ggml_tensor_is_error(tensor)) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "gguf_add_tensor: %s", ggml_tensor_error(tensor));
        return false;
    }
    if (!memchr(tensor->name, 0, sizeof(tensor->name)) ||
        gguf_info_find(ctx, tensor->name) != NAME_NOT_FOUND) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "gguf_add_tensor: there is a tensor '%.*s' already",
                  GGML_MAX_NAME, tensor->name);
        return false;
    }
    packed = *tensor;
    return gguf_tensor_pack(&packed, &size) && gguf_info_put(ctx, tensor, size);
}

void gguf_add_tensor(struct gguf_context *ctx, const struct ggml_tensor *tensor) {
    if (!add_tensor(ctx, tensor)) gguf_note_failure(ctx);
}

// The tensor of a name; NULL with a message.
static struct gguf_info *named(const char *function, struct gguf_context *ctx, const char *name) {
    const size_t position = ctx && name ? gguf_info_find(ctx, name) : NAME_NOT_FOUND;
    if (position != NAME_NOT_FOUND) return &ctx->infos[position];
    ggml_fail(GGML_HOST_NOT_FOUND, "%s: no tensor '%s'", function, name ? name : "(NULL)");
    return NULL;
}

// Data that doesn't fit the type any more must not be written.
static void forget_data(struct gguf_info *info) {
    info->tensor.buffer = NULL;
    info->tensor.view_src = NULL;
    info->tensor.data = NULL;
}

// Whether what was added with the tensor is not what a file with the new type begins with: it would
// be read beyond its end, or in another order.
static bool is_outdated(const struct gguf_info *old, size_t size) {
    return !old->given && (size > old->size || !ggml_is_contiguous(&old->tensor));
}

void gguf_set_tensor_type(struct gguf_context *ctx, const char *name, enum ggml_type type) {
    struct gguf_info *info = named(__func__, ctx, name);
    if (!info) {
        gguf_note_failure(ctx);
        return;
    }
    const struct gguf_info old = *info;
    info->tensor.type = type;
    if (!gguf_tensor_pack(&info->tensor, &info->size) || !gguf_infos_place(ctx, ctx->alignment)) {
        gguf_note_failure(ctx);
        *info = old;
    } else if (is_outdated(&old, info->size)) {
        forget_data(info);
    }
}

// Refers to memory of the application, which has to stay valid until the file is written.
void gguf_set_tensor_data(struct gguf_context *ctx, const char *name, const void *data) {
    struct gguf_info *info = named(__func__, ctx, name);
    if (!info) {
        gguf_note_failure(ctx);
        return;
    }
    forget_data(info);
    info->tensor.data = (void *)(uintptr_t)data;
    info->given = true;
    gguf_tensor_pack(&info->tensor, &info->size);
}
