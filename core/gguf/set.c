// SPDX-License-Identifier: MIT
// Setting pairs. Values are copied first: they may be part of the pair that is replaced.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "gguf/gguf_impl.h"

// Only the first failure is kept.
void gguf_note_failure(struct gguf_context *ctx) {
    if (ctx && ctx->failure[0] == '\0')
        snprintf(ctx->failure, sizeof(ctx->failure), "%s", ggml_last_error());
}

// Begins a pair with a copy of its key. False after the error was set.
static bool start(const char *function, const struct gguf_context *ctx, const char *key,
                  struct gguf_pair *out_pair) {
    *out_pair = (struct gguf_pair){0};
    if (!ctx || !key) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the context or the key is NULL", function);
        return false;
    }
    out_pair->key = ggml_mem_strdup(key);
    if (out_pair->key) return true;
    ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory for '%s'", function, key);
    return false;
}

// Copies the elements and puts the pair into the context, which then owns it; frees it on
// failure.
static bool set_numbers(struct gguf_context *ctx, struct gguf_pair *pair, const void *data) {
    if (!gguf_bytes_append(&pair->data, data, pair->n * gguf_type_size(pair->type))) {
        gguf_pair_free(pair);
        return false;
    }
    uint8_t *bytes = pair->type == GGUF_TYPE_BOOL ? (uint8_t *)pair->data.data : NULL;
    for (size_t i = 0; bytes && i < pair->n; ++i) {
        bytes[i] = bytes[i] != 0; // programs read it as a bool
    }
    return gguf_pair_put(ctx, pair);
}

// A value that is one number, in the bytes of its type.
static bool set_scalar(const char *function, struct gguf_context *ctx, const char *key,
                       enum gguf_type type, const void *value) {
    struct gguf_pair pair;
    if (!start(function, ctx, key, &pair)) return false;
    pair.type = type;
    pair.n = 1;
    return set_numbers(ctx, &pair, value);
}

#define GGUF_SCALAR_ROW(NAME, suffix, c_type)                                                      \
    void gguf_set_val_##suffix(struct gguf_context *ctx, const char *key, c_type val) {            \
        if (!set_scalar(__func__, ctx, key, GGUF_TYPE_##NAME, &val)) gguf_note_failure(ctx);       \
    }
#include "gguf/scalar_list.inl"

// As set_numbers(), for n texts, each ended by a NUL.
static bool set_strings(const char *function, struct gguf_context *ctx, struct gguf_pair *pair,
                        const char *const *texts, size_t n) {
    pair->type = GGUF_TYPE_STRING;
    for (; pair->n < n; pair->n++) {
        if (!texts[pair->n]) {
            ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: string %zu of '%s' is NULL", function,
                      pair->n, pair->key);
            goto fail;
        }
        if (!gguf_pair_add_string(pair, texts[pair->n], strlen(texts[pair->n]))) goto fail;
    }
    return gguf_pair_put(ctx, pair);
fail:
    gguf_pair_free(pair);
    return false;
}

void gguf_set_val_str(struct gguf_context *ctx, const char *key, const char *val) {
    struct gguf_pair pair;
    if (!start(__func__, ctx, key, &pair) || !set_strings(__func__, ctx, &pair, &val, 1))
        gguf_note_failure(ctx);
}

// The limits are those of readers; below them sizes in bytes can't overflow.
static bool array_is_possible(const char *function, const char *key, const void *data, size_t n) {
    if ((data || n == 0) && n <= GGUF_MAX_LENGTH && n <= SIZE_MAX / 16) return true;
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: '%s': %zu elements %s", function, key ? key : "", n,
              data ? "are too many" : "at NULL");
    return false;
}

// Shared by all element types that are numbers.
static bool set_array(struct gguf_context *ctx, const char *key, enum gguf_type type,
                      const void *data, size_t n) {
    static const char function[] = "gguf_set_arr_data";
    struct gguf_pair pair;
    if (gguf_type_size(type) == 0) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "%s: elements of type %d are not numbers; for strings use gguf_set_arr_str",
                  function, (int)type);
        return false;
    }
    if (!array_is_possible(function, key, data, n) || !start(function, ctx, key, &pair))
        return false;
    pair.type = type;
    pair.is_array = true;
    pair.n = n;
    return set_numbers(ctx, &pair, data);
}

void gguf_set_arr_data(struct gguf_context *ctx, const char *key, enum gguf_type type,
                       const void *data, size_t n) {
    if (!set_array(ctx, key, type, data, n)) gguf_note_failure(ctx);
}

static bool set_array_of_strings(struct gguf_context *ctx, const char *key, const char **data,
                                 size_t n) {
    static const char function[] = "gguf_set_arr_str";
    struct gguf_pair pair;
    if (!array_is_possible(function, key, data, n) || !start(function, ctx, key, &pair))
        return false;
    pair.is_array = true;
    return set_strings(function, ctx, &pair, data, n);
}

void gguf_set_arr_str(struct gguf_context *ctx, const char *key, const char **data, size_t n) {
    if (!set_array_of_strings(ctx, key, data, n)) gguf_note_failure(ctx);
}

// Copies a pair with its memory, so that the contexts share nothing.
static bool copy_pair(const struct gguf_pair *src, struct gguf_pair *out_pair) {
    *out_pair = (struct gguf_pair){.type = src->type, .is_array = src->is_array, .n = src->n};
    out_pair->key = ggml_mem_strdup(src->key);
    if (!out_pair->key) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "gguf_set_kv: no memory for '%s'", src->key);
        return false;
    }
    if (gguf_bytes_append(&out_pair->data, src->data.data, src->data.size) &&
        gguf_bytes_append(&out_pair->starts, src->starts.data, src->starts.size)) {
        return true;
    }
    gguf_pair_free(out_pair);
    return false;
}

// Copies all pairs; keys that exist are replaced. Stops at the first failure, which is noted.
void gguf_set_kv(struct gguf_context *ctx, const struct gguf_context *src) {
    if (!ctx || !src) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "gguf_set_kv: a context is NULL");
        gguf_note_failure(ctx);
        return;
    }
    // A context copied into itself stays as it is.
    for (size_t i = 0; src != ctx && i < src->n_pairs; ++i) {
        struct gguf_pair pair;
        if (!copy_pair(&src->pairs[i], &pair) || !gguf_pair_put(ctx, &pair)) {
            gguf_note_failure(ctx);
            return;
        }
    }
}
