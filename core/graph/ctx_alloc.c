// SPDX-License-Identifier: MIT
// Memory for all tensors of a context, in as few buffers as the buffer type allows.
#include "base/mem.h"
#include "base/status.h"
#include "device/check.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"

// Consecutive tensors that share a buffer.
struct range {
    struct ggml_tensor *first;
    struct ggml_tensor *end; // the one after the last, or NULL
    size_t size;
    int n_tensors; // that need memory
};

struct ctx_alloc {
    struct ggml_context *ctx;
    ggml_backend_buffer_type_t buft;
    size_t alignment;
    size_t max_size;
};

static bool needs_memory(const struct ggml_tensor *tensor) {
    return !tensor->data && !tensor->buffer && !tensor->view_src;
}

static bool start(struct ctx_alloc *alloc, struct ggml_context *ctx,
                  ggml_backend_buffer_type_t buft) {
    *alloc = (struct ctx_alloc){.ctx = ctx, .buft = buft};
    if (!ctx || !buft || !ggml_get_no_alloc(ctx)) {
        ggml_fail(
            GGML_HOST_INVALID_ARGUMENT,
            "ggml_backend_alloc_ctx_tensors: needs a context with no_alloc and a buffer type");
        return false;
    }
    alloc->alignment = ggml_backend_buft_get_alignment(buft);
    alloc->max_size = ggml_backend_buft_get_max_size(buft);
    return true;
}

// The longest range from `first` that fits one buffer. A tensor that is too large has one to
// itself.
static bool next_range(const struct ctx_alloc *alloc, struct ggml_tensor *first,
                       struct range *out_range) {
    struct range range = {.first = first};
    *out_range = range;
    for (struct ggml_tensor *t = first; t; t = ggml_get_next_tensor(alloc->ctx, t)) {
        const bool needs = needs_memory(t);
        size_t size = needs ? ggml_backend_buft_get_alloc_size(alloc->buft, t) : 0;
        if (size > SIZE_MAX / 2 - alloc->alignment) {
            ggml_fail(GGML_HOST_OUT_OF_RANGE, "ggml_backend_alloc_ctx_tensors: '%s' is too large",
                      t->name);
            return false;
        }
        size = GGML_PAD(size, alloc->alignment);
        const size_t limit = alloc->max_size < SIZE_MAX / 2 ? alloc->max_size : SIZE_MAX / 2;
        if (range.size > 0 && (range.size > limit || size > limit - range.size)) {
            range.end = t;
            break;
        }
        range.size += size;
        range.n_tensors += needs;
    }
    *out_range = range;
    return true;
}

size_t ggml_backend_alloc_ctx_tensors_from_buft_size(struct ggml_context *ctx,
                                                     ggml_backend_buffer_type_t buft) {
    struct ctx_alloc alloc;
    size_t total = 0;
    if (!start(&alloc, ctx, buft)) return 0;
    struct range range = {.end = ggml_get_first_tensor(ctx)};
    while (range.end) {
        if (!next_range(&alloc, range.end, &range)) return 0;
        total = range.size > SIZE_MAX - total ? SIZE_MAX : total + range.size;
    }
    return total;
}

// Takes back what lies in the buffer.
static void forget(const struct ctx_alloc *alloc, ggml_backend_buffer_t buffer) {
    struct ggml_tensor *t = ggml_get_first_tensor(alloc->ctx);
    for (; t; t = ggml_get_next_tensor(alloc->ctx, t)) {
        if (t->buffer != buffer) continue;
        t->buffer = NULL;
        t->data = NULL;
    }
}

static bool place_range(const struct ctx_alloc *alloc, const struct range *range,
                        ggml_backend_buffer_t buffer) {
    struct ggml_tallocr talloc = ggml_tallocr_new(buffer);
    for (struct ggml_tensor *t = range->first; t != range->end;
         t = ggml_get_next_tensor(alloc->ctx, t)) {
        if (needs_memory(t) && ggml_tallocr_alloc(&talloc, t) != GGML_STATUS_SUCCESS) return false;
    }
    return true;
}

// Views may come before their roots, so they wait until all of them are placed.
static bool place_views(const struct ctx_alloc *alloc) {
    struct ggml_tensor *t = ggml_get_first_tensor(alloc->ctx);
    for (; t; t = ggml_get_next_tensor(alloc->ctx, t)) {
        if (!t->view_src || t->buffer || !t->view_src->buffer) continue;
        if (ggml_backend_view_init(t) != GGML_STATUS_SUCCESS) return false;
    }
    return true;
}

struct buffer_list {
    ggml_backend_buffer_t *items;
    size_t count;
    size_t capacity;
};

static bool add_buffer(struct buffer_list *list, const struct ctx_alloc *alloc, size_t size) {
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity > 0 ? 2 * list->capacity : 4;
        ggml_backend_buffer_t *items =
            ggml_mem_realloc(list->items, capacity * sizeof(list->items[0]));
        if (!items) {
            ggml_fail(GGML_HOST_OUT_OF_MEMORY, "ggml_backend_alloc_ctx_tensors: no memory to list "
                                               "the buffers");
            return false;
        }
        list->items = items;
        list->capacity = capacity;
    }
    // Tensors without elements need an address too.
    list->items[list->count] =
        ggml_backend_buft_alloc_buffer(alloc->buft, size > 0 ? size : alloc->alignment);
    if (!list->items[list->count]) return false;
    ++list->count;
    return true;
}

struct ggml_backend_buffer *
ggml_backend_alloc_ctx_tensors_from_buft(struct ggml_context *ctx,
                                         ggml_backend_buffer_type_t buft) {
    struct ctx_alloc alloc;
    struct buffer_list list = {0};
    struct ggml_backend_buffer *result = NULL;
    if (!start(&alloc, ctx, buft)) return NULL;
    if (device_buft_is_meta(buft) && device_meta_functions()) {
        return device_meta_functions()->ctx_alloc(ctx, buft);
    }
    struct range range = {.end = ggml_get_first_tensor(ctx)};
    while (range.end) {
        if (!next_range(&alloc, range.end, &range)) goto fail;
        if (range.n_tensors == 0) continue;
        if (!add_buffer(&list, &alloc, range.size)) goto fail;
        if (!place_range(&alloc, &range, list.items[list.count - 1])) goto fail;
    }
    if (!place_views(&alloc)) goto fail;
    if (list.count > 1) {
        result = ggml_backend_multi_buffer_alloc_buffer(list.items, list.count);
        if (!result) goto fail;
    } else if (list.count == 1) {
        result = list.items[0];
    }
    ggml_mem_free(list.items);
    return result;
fail:
    for (size_t i = 0; i < list.count; ++i) {
        forget(&alloc, list.items[i]);
        ggml_backend_buffer_free(list.items[i]);
    }
    ggml_mem_free(list.items);
    return NULL;
}

struct ggml_backend_buffer *ggml_backend_alloc_ctx_tensors(struct ggml_context *ctx,
                                                           ggml_backend_t backend) {
    return ggml_backend_alloc_ctx_tensors_from_buft(ctx,
                                                    ggml_backend_get_default_buffer_type(backend));
}
