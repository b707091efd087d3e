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
    struct ggml_tensor **tensors;
    int n_tensors;
    ggml_backend_buffer_type_t buft;
    size_t alignment;
    size_t max_size;
};

// Consecutive tensors that share a buffer.
struct range {
    int first;
    int end; // the one after the last
    size_t size;
    int n_tensors; // that need memory
};

// Views have that of their roots; others may have some from elsewhere.
static bool needs_memory(const struct ggml_tensor *tensor) {
    return !tensor->data && !tensor->buffer && !tensor->view_src;
}

static void set_buft(struct request *request, ggml_backend_buffer_type_t buft) {
    request->buft = buft;
    request->alignment = ggml_backend_buft_get_alignment(buft);
    request->max_size = ggml_backend_buft_get_max_size(buft);
}

// Lists the tensors of a context; the caller frees the list in any case.
static bool of_context(struct request *request, const char *caller, struct ggml_context *ctx,
                       ggml_backend_buffer_type_t buft) {
    *request = (struct request){.caller = caller};
    if (!ctx || !buft || !ggml_get_no_alloc(ctx)) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: needs a context with no_alloc and a buffer type",
                  caller);
        return false;
    }
    int32_t capacity = 0;
    struct ggml_tensor *tensor = ggml_get_first_tensor(ctx);
    for (; tensor; tensor = ggml_get_next_tensor(ctx, tensor)) {
        if (!array_grow(&request->tensors, &capacity, (int64_t)request->n_tensors + 1,
                        sizeof(request->tensors[0]))) {
            return false;
        }
        request->tensors[request->n_tensors++] = tensor;
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
static bool next_range(const struct request *request, int first, struct range *out_range) {
    *out_range = (struct range){.first = first, .end = first};
    for (; out_range->end < request->n_tensors; ++out_range->end) {
        const struct ggml_tensor *tensor = request->tensors[out_range->end];
        const bool needs = needs_memory(tensor);
        size_t size = needs ? ggml_backend_buft_get_alloc_size(request->buft, tensor) : 0;
        if (size > SIZE_MAX / 2 - request->alignment) {
            ggml_fail(GGML_HOST_OUT_OF_RANGE, "%s: '%s' is too large", request->caller,
                      tensor->name);
            return false;
        }
        size = GGML_PAD(size, request->alignment);
        const size_t limit = request->max_size < SIZE_MAX / 2 ? request->max_size : SIZE_MAX / 2;
        const size_t used = out_range->size;
        if (used > 0 && (used > limit || size > limit - used)) break;
        out_range->size += size;
        out_range->n_tensors += needs;
    }
    return true;
}

// Bytes of all tensors that need memory, with padding.
static size_t total_size(const struct request *request) {
    size_t total = 0;
    struct range range = {0};
    while (range.end < request->n_tensors) {
        if (!next_range(request, range.end, &range)) return 0;
        total = range.size > SIZE_MAX - total ? SIZE_MAX : total + range.size;
    }
    return total;
}

size_t ggml_backend_alloc_ctx_tensors_from_buft_size(struct ggml_context *ctx,
                                                     ggml_backend_buffer_type_t buft) {
    struct request request;
    const size_t total = of_context(&request, __func__, ctx, buft) ? total_size(&request) : 0;
    ggml_mem_free(request.tensors);
    return total;
}

size_t ggml_backend_buft_get_alloc_size_n(ggml_backend_buffer_type_t buft,
                                          struct ggml_tensor **tensors, int n_tensors) {
    struct request request;
    return of_array(&request, __func__, tensors, n_tensors, buft) ? total_size(&request) : 0;
}

// Takes back what lies in the buffer.
static void forget(const struct request *request, ggml_backend_buffer_t buffer) {
    for (int i = 0; i < request->n_tensors; ++i) {
        if (request->tensors[i]->buffer != buffer) continue;
        request->tensors[i]->buffer = NULL;
        request->tensors[i]->data = NULL;
    }
}

static bool place_range(const struct request *request, const struct range *range,
                        ggml_backend_buffer_t buffer) {
    struct ggml_tallocr talloc = ggml_tallocr_new(buffer);
    for (int i = range->first; i < range->end; ++i) {
        if (needs_memory(request->tensors[i]) &&
            ggml_tallocr_alloc(&talloc, request->tensors[i]) != GGML_STATUS_SUCCESS) {
            return false;
        }
    }
    return true;
}

// Views may come before their roots, so they wait until all of them are placed.
static bool place_views(const struct request *request) {
    for (int i = 0; i < request->n_tensors; ++i) {
        struct ggml_tensor *t = request->tensors[i];
        if (!t->view_src || t->buffer || !t->view_src->buffer) continue;
        if (ggml_backend_view_init(t) != GGML_STATUS_SUCCESS) return false;
    }
    return true;
}

struct buffer_list {
    ggml_backend_buffer_t *items;
    size_t count;
    int32_t items_capacity;
};

static bool add_buffer(struct buffer_list *list, const struct request *request, size_t size) {
    if (!ARRAY_GROW(list, items, (int64_t)list->count + 1)) {
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
    struct range range = {0};
    while (range.end < request->n_tensors) {
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
    ggml_backend_buffer_t buffer = NULL;
    if (of_context(&request, "ggml_backend_alloc_ctx_tensors", ctx, buft)) {
        const bool meta = device_buft_is_meta(buft) && device_meta_functions();
        buffer = meta ? device_meta_functions()->ctx_alloc(ctx, buft) : place(&request);
    }
    ggml_mem_free(request.tensors);
    return buffer;
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
