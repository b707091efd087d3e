// SPDX-License-Identifier: MIT
// The pairs of a context, and the context itself.
#include <string.h>

#include "base/array.h"
#include "base/mem.h"
#include "base/status.h"
#include "gguf/gguf_impl.h"

struct gguf_context *gguf_init_empty(void) {
    struct gguf_context *ctx = ggml_mem_calloc(1, sizeof(*ctx));
    if (!ctx) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "gguf_init_empty: no memory for a context");
        return NULL;
    }
    ctx->version = GGUF_VERSION;
    ctx->alignment = GGUF_DEFAULT_ALIGNMENT;
    return ctx;
}

void gguf_pair_free(struct gguf_pair *pair) {
    ggml_mem_free(pair->key);
    ggml_mem_free(pair->data.data);
    ggml_mem_free(pair->starts.data);
    *pair = (struct gguf_pair){0};
}

void gguf_free(struct gguf_context *ctx) {
    if (!ctx) return;
    for (size_t i = 0; i < ctx->n_pairs; ++i) {
        gguf_pair_free(&ctx->pairs[i]);
    }
    ggml_mem_free(ctx->pairs);
    ggml_mem_free(ctx->infos);
    name_index_free(&ctx->keys);
    name_index_free(&ctx->names);
    ggml_mem_free(ctx);
}

// Names for the index, which keeps positions only.
static const char *key_at(const void *owner, size_t position) {
    return ((const struct gguf_context *)owner)->pairs[position].key;
}

size_t gguf_pair_find(const struct gguf_context *ctx, const char *key) {
    return name_index_find(&ctx->keys, key, key_at, ctx);
}

const char *gguf_pair_string(const struct gguf_pair *pair, size_t i, size_t *out_length) {
    const size_t *starts = pair->starts.data;
    const size_t end = i + 1 < pair->n ? starts[i + 1] : pair->data.size;
    *out_length = end - starts[i] - 1;
    return (const char *)pair->data.data + starts[i];
}

// Strings are stored one after the other, each with a final zero, so that readers get C strings
// without a copy.
bool gguf_pair_add_string(struct gguf_pair *pair, const char *text, size_t length) {
    const size_t start = pair->data.size;
    if (length > GGUF_MAX_LENGTH) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE, "gguf: a string of '%s' has more than 2^30 bytes",
                  pair->key);
        return false;
    }
    if (!gguf_bytes_append(&pair->data, text, length)) return false;
    if (!gguf_bytes_append(&pair->data, "", 1)) return false;
    return gguf_bytes_append(&pair->starts, &start, sizeof(start));
}

// Pairs keep the order of the file: the later ones move down. O(pairs).
static void remove_at(struct gguf_context *ctx, size_t position) {
    name_index_remove(&ctx->keys, position);
    gguf_pair_free(&ctx->pairs[position]);
    ctx->n_pairs--;
    memmove(ctx->pairs + position, ctx->pairs + position + 1,
            (ctx->n_pairs - position) * sizeof(ctx->pairs[0]));
}

// This key's value also decides where tensors are placed.
static bool is_alignment(const char *key) {
    return strcmp(key, GGUF_KEY_GENERAL_ALIGNMENT) == 0;
}

// The alignment as a power of two; the padding of data is defined for no other.
static bool alignment_from(const struct gguf_pair *pair, size_t *out_alignment) {
    uint32_t value = 0;
    *out_alignment = 0;
    if (pair->type == GGUF_TYPE_UINT32 && !pair->is_array) {
        memcpy(&value, pair->data.data, sizeof(value));
    }
    if (value == 0 || (value & (value - 1)) != 0) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "gguf: '%s' must be one u32 that is a power of two (it is %s %s, value %u)",
                  pair->key, pair->is_array ? "an array of" : "a", gguf_type_name(pair->type),
                  (unsigned)value);
        return false;
    }
    *out_alignment = value;
    return true;
}

// Everything that can fail comes before the context is changed.
bool gguf_pair_put(struct gguf_context *ctx, struct gguf_pair *pair) {
    size_t alignment;
    if (pair->key[0] == '\0') {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "gguf: a key is empty");
        goto fail;
    }
    if (!ARRAY_GROW(ctx, pairs, (int64_t)ctx->n_pairs + 1)) goto fail;
    if (!name_index_reserve(&ctx->keys)) goto fail;
    if (is_alignment(pair->key) &&
        (!alignment_from(pair, &alignment) || !gguf_infos_place(ctx, alignment))) {
        goto fail;
    }
    // Its memory may be what the new value was copied from, but the copy is complete.
    const size_t old = gguf_pair_find(ctx, pair->key);
    if (old != NAME_NOT_FOUND) remove_at(ctx, old);
    name_index_add(&ctx->keys, pair->key, ctx->n_pairs);
    ctx->pairs[ctx->n_pairs++] = *pair;
    *pair = (struct gguf_pair){0};
    return true;
fail:
    gguf_pair_free(pair);
    return false;
}

// Without its key the alignment is the default one.
int64_t gguf_remove_key(struct gguf_context *ctx, const char *key) {
    const size_t position = ctx && key ? gguf_pair_find(ctx, key) : NAME_NOT_FOUND;
    if (position == NAME_NOT_FOUND) return -1;
    if (is_alignment(key) && !gguf_infos_place(ctx, GGUF_DEFAULT_ALIGNMENT)) return -1;
    remove_at(ctx, position);
    return (int64_t)position;
}
