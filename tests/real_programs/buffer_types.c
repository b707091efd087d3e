// SPDX-License-Identifier: MIT
// Buffer types that a program made by ggml's private headers (ggml 0.27), as this library's: loaded
// before it, so that ggml's own test of allocators runs. Objects of both sides are told apart by
// lists, and nothing that the program made is freed before the process ends but by the program.
#define _GNU_SOURCE // RTLD_NEXT
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-alloc.h"
#include "ggml-backend-impl.h"
#include "ggml-host.h"

#define ADAPTER_API __attribute__((visibility("default")))
#define NEXT(function) (__extension__(__typeof__(&function)) next_function(#function))

static void *next_function(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) abort();
    return found;
}

// --- the program's objects -----------------------------------------------------------------------

struct their_type {
    const char *(*get_name)(struct their_type *type);
    struct their_buffer *(*alloc_buffer)(struct their_type *type, size_t size);
    void *alloc_buffer_n;
    size_t (*get_alignment)(struct their_type *type);
    size_t (*get_max_size)(struct their_type *type);
    size_t (*get_alloc_size)(struct their_type *type, const struct ggml_tensor *tensor);
    void *get_alloc_size_n;
    bool (*is_host)(struct their_type *type);
    void *device, *context;
};

struct their_buffer_entries {
    void (*free)(struct their_buffer *buffer);
    void *(*get_base)(struct their_buffer *buffer);
    int (*init_tensor)(struct their_buffer *buffer, struct ggml_tensor *tensor);
    void *others[8];
};

struct their_buffer {
    struct their_buffer_entries entries;
    void *type, *context;
    size_t size;
    int usage;
    struct ggml_backend_buffer own; // of this library
    struct their_buffer *next;
};

static struct their_buffer *buffers;

static struct their_buffer *find_buffer(const void *theirs) {
    struct their_buffer *b = buffers;
    while (b && b != theirs)
        b = b->next;
    return b;
}

// --- buffers -------------------------------------------------------------------------------------

static void free_buffer(ggml_backend_buffer_t buffer) {
    struct their_buffer *b = buffer->context, **at = &buffers;
    while (*at != b)
        at = &(*at)->next;
    if (b->entries.free) b->entries.free(b);
    *at = b->next;
    free(b);
}

static void *get_base(ggml_backend_buffer_t buffer) {
    struct their_buffer *b = buffer->context;
    return b->entries.get_base(b);
}

static int32_t init_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor) {
    struct their_buffer *b = buffer->context;
    const bool good = !b->entries.init_tensor || b->entries.init_tensor(b, tensor) == 0;
    return good ? GGML_HOST_OK : GGML_HOST_FAILED;
}

// No data is ever moved by such a program.
static int32_t refuse_set(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                          const void *data, size_t offset, size_t size) {
    (void)buffer, (void)tensor, (void)data, (void)offset, (void)size;
    return GGML_HOST_FAILED;
}

static int32_t refuse_get(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor,
                          void *data, size_t offset, size_t size) {
    (void)buffer, (void)tensor, (void)data, (void)offset, (void)size;
    return GGML_HOST_FAILED;
}

static int32_t refuse_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    (void)buffer, (void)value;
    return GGML_HOST_FAILED;
}

static const struct ggml_buffer_table buffer_table = {.size = sizeof(buffer_table),
                                                      .free = free_buffer,
                                                      .get_base = get_base,
                                                      .init_tensor = init_tensor,
                                                      .set_tensor = refuse_set,
                                                      .get_tensor = refuse_get,
                                                      .clear = refuse_clear};

// --- buffer types --------------------------------------------------------------------------------

static const char *get_name(ggml_backend_buffer_type_t buft) {
    struct their_type *type = buft->context;
    return type->get_name ? type->get_name(type) : "the program's";
}

static int32_t alloc_buffer(ggml_backend_buffer_type_t buft, size_t size,
                            ggml_backend_buffer_t *out_buffer) {
    struct their_type *type = buft->context;
    struct their_buffer *b = find_buffer(type->alloc_buffer(type, size));
    if (!b) return GGML_HOST_OUT_OF_MEMORY;
    b->own.buft = buft;
    *out_buffer = &b->own;
    return GGML_HOST_OK;
}

static size_t get_alignment(ggml_backend_buffer_type_t buft) {
    struct their_type *type = buft->context;
    return type->get_alignment(type);
}

static size_t get_max_size(ggml_backend_buffer_type_t buft) {
    struct their_type *type = buft->context;
    return type->get_max_size ? type->get_max_size(type) : SIZE_MAX;
}

static size_t get_alloc_size(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor) {
    struct their_type *type = buft->context;
    return type->get_alloc_size ? type->get_alloc_size(type, tensor) : NEXT(ggml_nbytes)(tensor);
}

static bool is_host(ggml_backend_buffer_type_t buft) {
    struct their_type *type = buft->context;
    return type->is_host && type->is_host(type);
}

static const struct ggml_buffer_type_table type_table = {.size = sizeof(type_table),
                                                         .get_name = get_name,
                                                         .alloc_buffer = alloc_buffer,
                                                         .get_alignment = get_alignment,
                                                         .get_max_size = get_max_size,
                                                         .get_alloc_size = get_alloc_size,
                                                         .is_host = is_host};

// This library's type for one of the program's, the same each time.
static ggml_backend_buffer_type_t own_type(ggml_backend_buffer_type_t theirs) {
    static struct ggml_backend_buffer_type types[64];
    size_t i = 0;
    while (i < 64 && types[i].table && types[i].context != (void *)theirs)
        ++i;
    if (i == 64) abort();
    types[i].table = &type_table;
    types[i].context = theirs;
    return &types[i];
}

static ggml_backend_buffer_t own_buffer(ggml_backend_buffer_t theirs) {
    struct their_buffer *b = find_buffer(theirs);
    return b ? &b->own : theirs;
}

// --- the functions that such a program calls -----------------------------------------------------

ADAPTER_API struct their_buffer *ggml_backend_buffer_init(void *type,
                                                          struct their_buffer_entries entries,
                                                          void *context, size_t size);
struct their_buffer *ggml_backend_buffer_init(void *type, struct their_buffer_entries entries,
                                              void *context, size_t size) {
    struct their_buffer *b = calloc(1, sizeof(*b));
    if (!b) return NULL;
    *b = (struct their_buffer){.entries = entries,
                               .type = type,
                               .context = context,
                               .size = size,
                               .own = {.table = &buffer_table, .context = b, .size = size},
                               .next = buffers};
    buffers = b;
    return b;
}

ADAPTER_API size_t ggml_backend_buffer_get_size(ggml_backend_buffer_t buffer) {
    return NEXT(ggml_backend_buffer_get_size)(own_buffer(buffer));
}

ADAPTER_API void *ggml_backend_buffer_get_base(ggml_backend_buffer_t buffer) {
    return NEXT(ggml_backend_buffer_get_base)(own_buffer(buffer));
}

ADAPTER_API void ggml_backend_buffer_free(ggml_backend_buffer_t buffer) {
    NEXT(ggml_backend_buffer_free)(own_buffer(buffer));
}

ADAPTER_API ggml_backend_buffer_type_t ggml_backend_buffer_get_type(ggml_backend_buffer_t buffer) {
    ggml_backend_buffer_type_t buft = NEXT(ggml_backend_buffer_get_type)(own_buffer(buffer));
    return buft && buft->table == &type_table ? buft->context : buft;
}

ADAPTER_API size_t ggml_backend_buft_get_max_size(ggml_backend_buffer_type_t buft) {
    return NEXT(ggml_backend_buft_get_max_size)(own_type(buft));
}

ADAPTER_API ggml_gallocr_t ggml_gallocr_new(ggml_backend_buffer_type_t buft) {
    return NEXT(ggml_gallocr_new)(own_type(buft));
}

ADAPTER_API ggml_gallocr_t ggml_gallocr_new_n(ggml_backend_buffer_type_t *bufts, int n) {
    ggml_backend_buffer_type_t own[64];
    if (n > 64) abort();
    for (int i = 0; i < n; ++i)
        own[i] = own_type(bufts[i]);
    return NEXT(ggml_gallocr_new_n)(own, n);
}

ADAPTER_API struct ggml_backend_buffer *
ggml_backend_alloc_ctx_tensors_from_buft(struct ggml_context *ctx,
                                         ggml_backend_buffer_type_t buft) {
    return NEXT(ggml_backend_alloc_ctx_tensors_from_buft)(ctx, own_type(buft));
}
