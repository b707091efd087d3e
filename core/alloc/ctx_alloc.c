// SPDX-License-Identifier: MIT
// Memory for all tensors of a context or of an array, in as few buffers as the buffer type allows.
#include "base/array.h"
#include "base/mem.h"
#include "base/status.h"
#include "device/check.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"

// The tensors to place, and where they go.
struct request {
    const char *caller; // named in messages
    struct ggml_context *ctx;
    struct ggml_tensor **tensors; // instead of ctx
    int n_tensors;
    ggml_backend_buffer_type_t buft;
    size_t alignment;
    size_t max_size;
};

// A position among the tensors; past the last one `tensor` is NULL.
struct cursor {
    struct ggml_tensor *tensor;
    int index; // in the array
};

// Consecutive tensors that share a buffer.
struct range {
    struct cursor first;
    struct cursor end; // the one after the last
    size_t size;
    int n_tensors; // that need memory
};

static struct cursor at_index(const struct request *request, int index) {
    return (struct cursor){index < request->n_tensors ? request->tensors[index] : NULL, index};
}

static struct cursor first_tensor(const struct request *request) {
    return request->ctx ? (struct cursor){ggml_get_first_tensor(request->ctx), 0}
                        : at_index(request, 0);
}

static struct cursor next_tensor(const struct request *request, struct cursor at) {
    return request->ctx ? (struct cursor){ggml_get_next_tensor(request->ctx, at.tensor), 0}
                        : at_index(request, at.index + 1);
}

static bool is_at(struct cursor a, struct cursor b) {
    return a.tensor == b.tensor && a.index == b.index;
}

// Views have that of their roots; others may have some from elsewhere.
static bool needs_memory(const struct ggml_tensor *tensor) {
    return !tensor->data && !tensor->buffer && !tensor->view_src;
}

static void set_buft(struct request *request, ggml_backend_buffer_type_t buft) {
    request->buft = buft;
    request->alignment = ggml_backend_buft_get_alignment(buft);
    request->max_size = ggml_backend_buft_get_max_size(buft);
}

static bool of_context(struct request *request, const char *caller, struct ggml_context *ctx,
                       ggml_backend_buffer_type_t buft) {
    *request = (struct request){.caller = caller, .ctx = ctx};
    if (!ctx || !buft || !ggml_get_no_alloc(ctx)) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: needs a context with no_alloc and a buffer type",
                  caller);
        return false;
    }
    set_buft(request, buft);
    return true;
}

static bool of_array(struct request *request, const char *caller, struct ggml_tensor **tensors,
                     int n_tensors, ggml_backend_buffer_type_t buft) {
    *request = (struct request){.caller = caller, .tensors = tensors, .n_tensors = n_tensors};
    bool complete = buft && n_tensors >= 0 && (tensors || n_tensors == 0);
    for (int i = 0; complete && i < n_tensors; ++i)
        complete = tensors[i] != NULL;
    if (!complete) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: needs a buffer type and tensors, none NULL",
                  caller);
        return false;
    }
    set_buft(request, buft);
    return true;
}

// The longest range from `first` that fits one buffer. A tensor that is too large has one to
// itself.
static bool next_range(const struct request *request, struct cursor first,
                       struct range *out_range) {
    struct range range = {.first = first};
    struct cursor at = first;
    *out_range = range;
    for (; at.tensor; at = next_tensor(request, at)) {
        const bool needs = needs_memory(at.tensor);
        size_t size = needs ? ggml_backend_buft_get_alloc_size(request->buft, at.tensor) : 0;
        if (size > SIZE_MAX / 2 - request->alignment) {
            ggml_fail(GGML_HOST_OUT_OF_RANGE, "%s: '%s' is too large", request->caller,
                      at.tensor->name);
            return false;
        }
        size = GGML_PAD(size, request->alignment);
        const size_t limit = request->max_size < SIZE_MAX / 2 ? request->max_size : SIZE_MAX / 2;
        if (range.size > 0 && (range.size > limit || size > limit - range.size)) break;
        range.size += size;
        range.n_tensors += needs;
    }
    range.end = at;
    *out_range = range;
    return true;
}

// Bytes of all tensors that need memory, with padding.
static size_t total_size(const struct request *request) {
    size_t total = 0;
    struct range range = {.end = first_tensor(request)};
    while (range.end.tensor) {
        if (!next_range(request, range.end, &range)) return 0;
        total = range.size > SIZE_MAX - total ? SIZE_MAX : total + range.size;
    }
    return total;
}

size_t ggml_backend_alloc_ctx_tensors_from_buft_size(struct ggml_context *ctx,
                                                     ggml_backend_buffer_type_t buft) {
    struct request request;
    return of_context(&request, __func__, ctx, buft) ? total_size(&request) : 0;
}

size_t ggml_backend_buft_get_alloc_size_n(ggml_backend_buffer_type_t buft,
                                          struct ggml_tensor **tensors, int n_tensors) {
    struct request request;
    return of_array(&request, __func__, tensors, n_tensors, buft) ? total_size(&request) : 0;
}

// Takes back what lies in the buffer.
static void forget(const struct request *request, ggml_backend_buffer_t buffer) {
    for (struct cursor at = first_tensor(request); at.tensor; at = next_tensor(request, at)) {
        if (at.tensor->buffer != buffer) continue;
        at.tensor->buffer = NULL;
        at.tensor->data = NULL;
    }
}

static bool place_range(const struct request *request, const struct range *range,
                        ggml_backend_buffer_t buffer) {
    struct ggml_tallocr talloc = ggml_tallocr_new(buffer);
    for (struct cursor at = range->first; !is_at(at, range->end); at = next_tensor(request, at)) {
        if (needs_memory(at.tensor) &&
            ggml_tallocr_alloc(&talloc, at.tensor) != GGML_STATUS_SUCCESS) {
            return false;
        }
    }
    return true;
}

// Views may come before their roots, so they wait until all of them are placed.
static bool place_views(const struct request *request) {
    for (struct cursor at = first_tensor(request); at.tensor; at = next_tensor(request, at)) {
        struct ggml_tensor *t = at.tensor;
        if (!t->view_src || t->buffer || !t->view_src->buffer) continue;
        if (ggml_backend_view_init(t) != GGML_STATUS_SUCCESS) return false;
    }
    return true;
}

struct buffer_list {
    ggml_backend_buffer_t *items;
    size_t count;
    int32_t capacity;
};

static bool add_buffer(struct buffer_list *list, const struct request *request, size_t size) {
    if (!array_grow(&list->items, &list->capacity, (int64_t)list->count + 1,
                    sizeof(list->items[0]))) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to list the buffers", request->caller);
        return false;
    }
    // Tensors without elements need an address too.
    list->items[list->count] =
        ggml_backend_buft_alloc_buffer(request->buft, size > 0 ? size : request->alignment);
    if (!list->items[list->count]) return false;
    ++list->count;
    return true;
}

// Places the tensors that have no memory yet; NULL without a message if there are none.
static ggml_backend_buffer_t place(const struct request *request) {
    struct buffer_list list = {0};
    ggml_backend_buffer_t result = NULL;
    struct range range = {.end = first_tensor(request)};
    while (range.end.tensor) {
        if (!next_range(request, range.end, &range)) goto fail;
        if (range.n_tensors == 0) continue;
        if (!add_buffer(&list, request, range.size)) goto fail;
        if (!place_range(request, &range, list.items[list.count - 1])) goto fail;
    }
    if (!place_views(request)) goto fail;
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
        forget(request, list.items[i]);
        ggml_backend_buffer_free(list.items[i]);
    }
    ggml_mem_free(list.items);
    return NULL;
}

struct ggml_backend_buffer *
ggml_backend_alloc_ctx_tensors_from_buft(struct ggml_context *ctx,
                                         ggml_backend_buffer_type_t buft) {
    struct request request;
    if (!of_context(&request, "ggml_backend_alloc_ctx_tensors", ctx, buft)) return NULL;
    if (device_buft_is_meta(buft) && device_meta_functions()) {
        return device_meta_functions()->ctx_alloc(ctx, buft);
    }
    return place(&request);
}

ggml_backend_buffer_t ggml_backend_buft_alloc_buffer_n(ggml_backend_buffer_type_t buft,
                                                       struct ggml_tensor **tensors,
                                                       int n_tensors) {
    struct request request;
    return of_array(&request, __func__, tensors, n_tensors, buft) ? place(&request) : NULL;
}

struct ggml_backend_buffer *ggml_backend_alloc_ctx_tensors(struct ggml_context *ctx,
                                                           ggml_backend_t backend) {
    return ggml_backend_alloc_ctx_tensors_from_buft(ctx,
                                                    ggml_backend_get_default_buffer_type(backend));
}
