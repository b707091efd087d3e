// SPDX-License-Identifier: MIT
// Read access to a context: missing things read as 0, false or NULL, with a message.
#include <string.h>

#include "base/status.h"
#include "gguf/gguf_impl.h"

// The pair at an index, or NULL with a message that names the valid range.
static const struct gguf_pair *pair_at(const char *function, const struct gguf_context *ctx,
                                       int64_t id) {
    const size_t n = ctx ? ctx->n_pairs : 0;
    if (id >= 0 && (uint64_t)id < n) return &ctx->pairs[id];
    ggml_fail(GGML_HOST_OUT_OF_RANGE, "%s: key %lld of %zu", function, (long long)id, n);
    return NULL;
}

// The pair if it holds elements of that type.
static const struct gguf_pair *typed_at(const char *function, const struct gguf_context *ctx,
                                        int64_t id, enum gguf_type type) {
    const struct gguf_pair *pair = pair_at(function, ctx, id);
    if (!pair || pair->type == type) return pair;
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: '%s' is of type %s", function, pair->key,
              gguf_type_name(pair->type));
    return NULL;
}

// The pair if it holds one element; arrays of one are accepted, as in ggml.
static const struct gguf_pair *single(const char *function, const struct gguf_pair *pair) {
    if (!pair || pair->n == 1) return pair;
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: '%s' is an array of %zu elements", function,
              pair->key, pair->n);
    return NULL;
}

uint32_t gguf_get_version(const struct gguf_context *ctx) {
    return ctx ? ctx->version : 0;
}

size_t gguf_get_alignment(const struct gguf_context *ctx) {
    return ctx ? ctx->alignment : 0;
}

size_t gguf_get_data_offset(const struct gguf_context *ctx) {
    return ctx ? ctx->data_offset : 0;
}

int64_t gguf_get_n_kv(const struct gguf_context *ctx) {
    return ctx ? (int64_t)ctx->n_pairs : 0;
}

// O(1) expected; -1 without a message, since asking whether a key exists is no error.
int64_t gguf_find_key(const struct gguf_context *ctx, const char *key) {
    const size_t position = ctx && key ? gguf_pair_find(ctx, key) : NAME_NOT_FOUND;
    return position == NAME_NOT_FOUND ? -1 : (int64_t)position;
}

const char *gguf_get_key(const struct gguf_context *ctx, int64_t key_id) {
    const struct gguf_pair *pair = pair_at(__func__, ctx, key_id);
    return pair ? pair->key : NULL;
}

enum gguf_type gguf_get_kv_type(const struct gguf_context *ctx, int64_t key_id) {
    const struct gguf_pair *pair = pair_at(__func__, ctx, key_id);
    if (!pair) return GGUF_TYPE_COUNT;
    return pair->is_array ? GGUF_TYPE_ARRAY : pair->type;
}

enum gguf_type gguf_get_arr_type(const struct gguf_context *ctx, int64_t key_id) {
    const struct gguf_pair *pair = pair_at(__func__, ctx, key_id);
    if (pair && pair->is_array) return pair->type;
    if (pair) ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: '%s' is no array", __func__, pair->key);
    return GGUF_TYPE_COUNT;
}

#define GGUF_SCALAR_ROW(NAME, suffix, c_type)                                                      \
    c_type gguf_get_val_##suffix(const struct gguf_context *ctx, int64_t key_id) {                 \
        const struct gguf_pair *pair =                                                             \
            single(__func__, typed_at(__func__, ctx, key_id, GGUF_TYPE_##NAME));                   \
        c_type value = 0;                                                                          \
        if (pair) memcpy(&value, pair->data.data, sizeof(value));                                  \
        return value;                                                                              \
    }
#include "gguf/scalar_list.inl"

// The string ends with a zero in the context's own memory: valid until the context changes.
const char *gguf_get_val_str(const struct gguf_context *ctx, int64_t key_id) {
    const struct gguf_pair *pair =
        single(__func__, typed_at(__func__, ctx, key_id, GGUF_TYPE_STRING));
    return pair ? pair->data.data : NULL;
}

// The elements of a pair that is not made of strings; strings have no plain array.
static const void *numbers(const char *function, const struct gguf_pair *pair) {
    if (!pair) return NULL;
    if (pair->type != GGUF_TYPE_STRING) return pair->data.data;
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: '%s' holds strings; use gguf_get_arr_str", function,
              pair->key);
    return NULL;
}

const void *gguf_get_val_data(const struct gguf_context *ctx, int64_t key_id) {
    return numbers(__func__, single(__func__, pair_at(__func__, ctx, key_id)));
}

size_t gguf_get_arr_n(const struct gguf_context *ctx, int64_t key_id) {
    const struct gguf_pair *pair = pair_at(__func__, ctx, key_id);
    return pair ? pair->n : 0;
}

const void *gguf_get_arr_data(const struct gguf_context *ctx, int64_t key_id) {
    return numbers(__func__, pair_at(__func__, ctx, key_id));
}

// O(1): starts of strings are kept.
const char *gguf_get_arr_str(const struct gguf_context *ctx, int64_t key_id, size_t i) {
    const struct gguf_pair *pair = typed_at(__func__, ctx, key_id, GGUF_TYPE_STRING);
    size_t length;
    if (!pair) return NULL;
    if (i < pair->n) return gguf_pair_string(pair, i, &length);
    ggml_fail(GGML_HOST_OUT_OF_RANGE, "%s: string %zu of %zu in '%s'", __func__, i, pair->n,
              pair->key);
    return NULL;
}

int64_t gguf_get_n_tensors(const struct gguf_context *ctx) {
    return ctx ? (int64_t)ctx->n_infos : 0;
}

int64_t gguf_find_tensor(const struct gguf_context *ctx, const char *name) {
    const size_t position = ctx && name ? gguf_info_find(ctx, name) : NAME_NOT_FOUND;
    return position == NAME_NOT_FOUND ? -1 : (int64_t)position;
}

// The entry of a tensor's index, or NULL with a message.
static const struct gguf_info *info_at(const char *function, const struct gguf_context *ctx,
                                       int64_t id) {
    const size_t n = ctx ? ctx->n_infos : 0;
    if (id >= 0 && (uint64_t)id < n) return &ctx->infos[id];
    ggml_fail(GGML_HOST_OUT_OF_RANGE, "%s: tensor %lld of %zu", function, (long long)id, n);
    return NULL;
}

size_t gguf_get_tensor_offset(const struct gguf_context *ctx, int64_t tensor_id) {
    const struct gguf_info *info = info_at(__func__, ctx, tensor_id);
    return info ? info->offset : 0;
}

const char *gguf_get_tensor_name(const struct gguf_context *ctx, int64_t tensor_id) {
    const struct gguf_info *info = info_at(__func__, ctx, tensor_id);
    return info ? info->tensor.name : NULL;
}

const int64_t *gguf_get_tensor_ne(const struct gguf_context *ctx, int64_t tensor_id) {
    const struct gguf_info *info = info_at(__func__, ctx, tensor_id);
    return info ? info->tensor.ne : NULL;
}

enum ggml_type gguf_get_tensor_type(const struct gguf_context *ctx, int64_t tensor_id) {
    const struct gguf_info *info = info_at(__func__, ctx, tensor_id);
    return info ? info->tensor.type : GGML_TYPE_COUNT;
}

size_t gguf_get_tensor_size(const struct gguf_context *ctx, int64_t tensor_id) {
    const struct gguf_info *info = info_at(__func__, ctx, tensor_id);
    return info ? info->size : 0;
}
