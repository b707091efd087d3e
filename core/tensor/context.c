// SPDX-License-Identifier: MIT
// The arena of a context: objects are taken from the front of one block of memory and freed all
// together, so that making one costs the same however many there are. Look-ups walk the list of
// objects in the order in which they were made.
#include "tensor/context.h"

#include "base/mem.h"
#include "base/status.h"
#include "base/thread_guard.h"

enum { ARENA_ALIGNMENT = 64 };

size_t ggml_tensor_overhead(void) {
    return sizeof(struct ggml_object) + sizeof(struct ggml_tensor);
}

// Memory of the caller must be aligned; without any, it is allocated at once, as it never grows.
struct ggml_context *ggml_init(struct ggml_init_params params) {
    struct ggml_context *ctx = NULL;
    const size_t wanted = params.mem_size > 0 ? params.mem_size : GGML_MEM_ALIGN;
    if (params.mem_buffer && (uintptr_t)params.mem_buffer % GGML_MEM_ALIGN != 0) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_init: mem_buffer must be aligned to %d bytes",
                  GGML_MEM_ALIGN);
        return NULL;
    }
    if (wanted > SIZE_MAX / 2) goto fail;
    ctx = ggml_mem_calloc(1, sizeof(*ctx));
    if (!ctx) goto fail;
    ctx->no_alloc = params.no_alloc;
    ctx->mem_buffer = params.mem_buffer;
    ctx->mem_size = params.mem_size;
    if (!ctx->mem_buffer) {
        ctx->mem_size = GGML_PAD(wanted, (size_t)GGML_MEM_ALIGN);
        ctx->mem_buffer = ggml_mem_aligned_alloc(ARENA_ALIGNMENT, ctx->mem_size);
        ctx->owns_buffer = true;
        if (!ctx->mem_buffer) goto fail;
    }
    return ctx;
fail:
    ggml_mem_free(ctx);
    ggml_fail(GGML_HOST_OUT_OF_MEMORY, "ggml_init: no memory for a context of %zu bytes", wanted);
    return NULL;
}

// Forgets all objects without walking over them; the memory keeps its content.
void ggml_reset(struct ggml_context *ctx) {
    THREAD_GUARD_VOID(ctx);
    if (!ctx) return;
    ctx->first = NULL;
    ctx->last = NULL;
    ctx->error.message[0] = '\0';
}

void ggml_free(struct ggml_context *ctx) {
    THREAD_GUARD_END(ctx);
    if (!ctx) return;
    if (ctx->owns_buffer) ggml_mem_aligned_free(ctx->mem_buffer);
    ggml_mem_free(ctx);
}

size_t ggml_used_mem(const struct ggml_context *ctx) {
    return ctx && ctx->last ? ctx->last->offs + ctx->last->size : 0;
}

bool ggml_get_no_alloc(struct ggml_context *ctx) {
    return ctx && ctx->no_alloc;
}

void ggml_set_no_alloc(struct ggml_context *ctx, bool no_alloc) {
    THREAD_GUARD_VOID(ctx);
    if (ctx) ctx->no_alloc = no_alloc;
}

void *ggml_get_mem_buffer(const struct ggml_context *ctx) {
    return ctx ? ctx->mem_buffer : NULL;
}

size_t ggml_get_mem_size(const struct ggml_context *ctx) {
    return ctx ? ctx->mem_size : 0;
}

// O(objects): for programs that choose a buffer's size.
size_t ggml_get_max_tensor_size(const struct ggml_context *ctx) {
    size_t largest = 0;
    struct ggml_tensor *tensor = ctx ? ggml_get_first_tensor(ctx) : NULL;
    for (; tensor; tensor = ggml_get_next_tensor(ctx, tensor)) {
        largest = MAX(largest, ggml_nbytes(tensor));
    }
    return largest;
}

// O(1). The failure says how much was needed and left.
void *ggml_context_take(struct ggml_context *ctx, enum ggml_object_type type, size_t size,
                        const char *what) {
    if (!ctx) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the context is NULL", what);
        return NULL;
    }
    THREAD_GUARD_AS(ctx, what, return NULL);
    // Payloads are padded, so what is left counts in whole units. A size that passes this can be
    // padded below without overflow.
    const size_t header = sizeof(struct ggml_object);
    const size_t used = ggml_used_mem(ctx);
    const size_t left = ctx->mem_size > used ? ctx->mem_size - used : 0;
    if (left < header || size > (left - header) / GGML_MEM_ALIGN * GGML_MEM_ALIGN) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY,
                  "%s: the context is full (%zu bytes needed, %zu of %zu left); create it with a "
                  "larger mem_size",
                  what, size + header, left, ctx->mem_size);
        return NULL;
    }
    struct ggml_object *object = (struct ggml_object *)(void *)(ctx->mem_buffer + used);
    *object = (struct ggml_object){
        .offs = used + header,
        .size = GGML_PAD(size, (size_t)GGML_MEM_ALIGN),
        .type = type,
    };
    if (ctx->last) {
        ctx->last->next = object;
    } else {
        ctx->first = object;
    }
    ctx->last = object;
    return ctx->mem_buffer + object->offs;
}

void *ggml_new_buffer(struct ggml_context *ctx, size_t nbytes) {
    THREAD_GUARD(ctx, NULL);
    return ggml_context_take(ctx, GGML_OBJECT_TYPE_WORK_BUFFER, nbytes, "ggml_new_buffer");
}

static struct ggml_tensor *tensor_from(const struct ggml_context *ctx, struct ggml_object *object) {
    while (object && object->type != GGML_OBJECT_TYPE_TENSOR) {
        object = object->next;
    }
    return object ? (struct ggml_tensor *)(void *)(ctx->mem_buffer + object->offs) : NULL;
}

struct ggml_tensor *ggml_get_first_tensor(const struct ggml_context *ctx) {
    return ctx ? tensor_from(ctx, ctx->first) : NULL;
}

// The next tensor after one of this context. The object header in front of the tensor is read,
// hence the range check; that an object really begins there is not checked.
struct ggml_tensor *ggml_get_next_tensor(const struct ggml_context *ctx,
                                         struct ggml_tensor *tensor) {
    if (!ctx || !tensor) return NULL;
    const uintptr_t first = (uintptr_t)ctx->mem_buffer + sizeof(struct ggml_object);
    const uintptr_t end = (uintptr_t)ctx->mem_buffer + ggml_used_mem(ctx);
    if ((uintptr_t)tensor < first || (uintptr_t)tensor >= end) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "ggml_get_next_tensor: the tensor is not in this context");
        return NULL;
    }
    struct ggml_object *object = (struct ggml_object *)(void *)tensor - 1;
    return tensor_from(ctx, object->next);
}

// The first tensor made with this name. Linear in the number of objects: names may change at any
// time, so that there is no index of them.
struct ggml_tensor *ggml_get_tensor(struct ggml_context *ctx, const char *name) {
    struct ggml_tensor *tensor = name ? ggml_get_first_tensor(ctx) : NULL;
    while (tensor && strcmp(tensor->name, name) != 0) {
        tensor = ggml_get_next_tensor(ctx, tensor);
    }
    return tensor;
}

void ggml_print_object(const struct ggml_object *obj) {
    if (!obj) return;
    GGML_LOG_INFO(" - ggml_object: type = %d, offset = %zu, size = %zu, next = %p\n",
                  (int)obj->type, obj->offs, obj->size, (void *)obj->next);
}

void ggml_print_objects(const struct ggml_context *ctx) {
    if (!ctx) return;
    GGML_LOG_INFO("%s: objects in context %p:\n", __func__, (const void *)ctx);
    for (const struct ggml_object *object = ctx->first; object; object = object->next) {
        ggml_print_object(object);
    }
    GGML_LOG_INFO("%s: --- end ---\n", __func__);
}
