// SPDX-License-Identifier: MIT
// A buffer made of several, for allocations above the largest buffer size.
#include <string.h>

#include "base/mem.h"
#include "device/check.h"

struct multi_buffer {
    size_t n_members;
    ggml_backend_buffer_t members[];
};

// The members are owned, and freed with it.
static void multi_free(ggml_backend_buffer_t buffer) {
    struct multi_buffer *multi = buffer->context;
    for (size_t i = 0; i < multi->n_members; ++i)
        ggml_backend_buffer_free(multi->members[i]);
    ggml_mem_free(multi);
    ggml_sdk_buffer_free(buffer);
}

// Failures of members are recorded by their own wrappers.
static int32_t multi_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    struct multi_buffer *multi = buffer->context;
    for (size_t i = 0; i < multi->n_members; ++i)
        ggml_backend_buffer_clear(multi->members[i], value);
    return GGML_HOST_OK;
}

// Adds up the members' sizes; false after recording what is wrong.
static bool members_size(const char *function, ggml_backend_buffer_t *buffers, size_t n_buffers,
                         size_t *out_size) {
    *out_size = 0;
    for (size_t i = 0; i < n_buffers; ++i) {
        if (!device_require_arg(buffers[i], function, "member buffer")) return false;
        if (buffers[i]->size > SIZE_MAX - *out_size) {
            ggml_fail(GGML_HOST_OUT_OF_RANGE, "%s: the sizes of %zu buffers overflow", function,
                      n_buffers);
            return false;
        }
        *out_size += buffers[i]->size;
    }
    return true;
}

// NULL if the size of the list overflows or memory runs out.
static struct multi_buffer *multi_new(ggml_backend_buffer_t *buffers, size_t n_buffers) {
    if (n_buffers > (SIZE_MAX - sizeof(struct multi_buffer)) / sizeof(buffers[0])) return NULL;
    struct multi_buffer *multi = ggml_mem_alloc(sizeof(*multi) + n_buffers * sizeof(buffers[0]));
    if (!multi) return NULL;
    multi->n_members = n_buffers;
    memcpy(multi->members, buffers, n_buffers * sizeof(buffers[0]));
    return multi;
}

// Takes ownership of the members on success only. There is no get_base: a multi-buffer has no
// single address, tensors are in its members.
ggml_backend_buffer_t ggml_backend_multi_buffer_alloc_buffer(ggml_backend_buffer_t *buffers,
                                                             size_t n_buffers) {
    static const struct ggml_buffer_table table = {
        .size = sizeof(table),
        .free = multi_free,
        .clear = multi_clear,
    };
    size_t size;
    if (!device_require_arg(n_buffers > 0 ? buffers : NULL, __func__, "list of buffers"))
        return NULL;
    if (!members_size(__func__, buffers, n_buffers, &size)) return NULL;
    struct multi_buffer *multi = multi_new(buffers, n_buffers);
    if (!multi) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to list %zu buffers", __func__,
                  n_buffers);
        return NULL;
    }
    ggml_backend_buffer_t buffer = ggml_sdk_buffer_new(buffers[0]->buft, &table, multi, size);
    if (!buffer) ggml_mem_free(multi);
    return buffer;
}

// Identified by its entry for freeing, which no other table has.
bool ggml_backend_buffer_is_multi_buffer(ggml_backend_buffer_t buffer) {
    return device_require_arg(buffer, __func__, "buffer") && buffer->table->free == multi_free;
}

// Members may be of different types; each is set by its own wrapper.
void ggml_backend_multi_buffer_set_usage(ggml_backend_buffer_t buffer,
                                         enum ggml_backend_buffer_usage usage) {
    if (!device_require_arg(buffer, __func__, "buffer")) return;
    if (!ggml_backend_buffer_is_multi_buffer(buffer)) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: a buffer of type %s is not a multi-buffer",
                  __func__, device_buft_label(buffer->buft));
        return;
    }
    struct multi_buffer *multi = buffer->context;
    for (size_t i = 0; i < multi->n_members; ++i) {
        ggml_backend_buffer_set_usage(multi->members[i], usage);
    }
}
