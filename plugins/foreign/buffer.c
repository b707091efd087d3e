// SPDX-License-Identifier: MIT
// Buffers of ggml's binaries.
#include "foreign.h"

static atomic_uint n_freed;

unsigned foreign_buffers_freed(void) {
    return atomic_load(&n_freed);
}

static void buffer_free(ggml_backend_buffer_t buffer) {
    struct foreign_buffer *own = buffer->context;
    atomic_fetch_add(&n_freed, 1);
    foreign_lock(own->binary);
    own->binary->base->buffer_free(own->theirs);
    foreign_unlock(own->binary);
    ggml_aligned_free(own, sizeof(*own));
}

// Of an empty one, which the host makes, only the type is this plugin's.
struct foreign_buffer *foreign_buffer_own(ggml_backend_buffer_t buffer) {
    return buffer && buffer->iface.free_buffer == buffer_free ? buffer->context : NULL;
}

void *foreign_buffer_theirs(const struct foreign_binary *binary, ggml_backend_buffer_t buffer) {
    struct foreign_buffer *own = foreign_buffer_own(buffer);
    if (own) {
        if (own->binary->base != binary->base) return NULL;
        if (own->usage != buffer->usage) binary->base->buffer_set_usage(own->theirs, buffer->usage);
        own->usage = buffer->usage;
        return own->theirs;
    }
    if (!buffer) return NULL;
    const struct foreign_buft *type = foreign_buft_own(buffer->buft);
    if (type) return type->binary->base == binary->base ? type->empty : NULL;
    const bool is_weights = buffer->usage == GGML_BACKEND_BUFFER_USAGE_WEIGHTS;
    const bool is_host = buffer->buft->iface.is_host && buffer->buft->iface.is_host(buffer->buft);
    return is_host ? binary->base->host_buffers[is_weights] : NULL;
}

static void *buffer_base(ggml_backend_buffer_t buffer) {
    const struct foreign_buffer *own = buffer->context;
    typedef void *(*entry_t)(void *);
    const entry_t entry = FOREIGN_ENTRY(own->binary, own->theirs, buffer_get_base, entry_t);
    return entry ? entry(own->theirs) : NULL;
}

static enum ggml_status buffer_init_tensor(ggml_backend_buffer_t buffer,
                                           struct ggml_tensor *tensor) {
    struct foreign_buffer *own = buffer->context;
    struct foreign_node node;
    typedef enum ggml_status (*entry_t)(void *, struct ggml_tensor *);
    tensor->extra = NULL;
    struct ggml_tensor *shadow = foreign_shadow_node(own->binary, tensor, &node);
    const enum ggml_status status =
        FOREIGN_ENTRY(own->binary, own->theirs, buffer_init_tensor, entry_t)(own->theirs, shadow);
    tensor->extra = shadow->extra;
    return status;
}

static void buffer_memset_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                                 uint8_t value, size_t offset, size_t size) {
    const struct foreign_buffer *own = buffer->context;
    struct foreign_shadow shadow;
    typedef void (*entry_t)(void *, struct ggml_tensor *, uint8_t, size_t, size_t);
    FOREIGN_ENTRY(own->binary, own->theirs, buffer_memset_tensor, entry_t)
    (own->theirs, foreign_shadow(own->binary, tensor, &shadow), value, offset, size);
}

static void buffer_set_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                              const void *data, size_t offset, size_t size) {
    const struct foreign_buffer *own = buffer->context;
    struct foreign_shadow shadow;
    typedef void (*entry_t)(void *, struct ggml_tensor *, const void *, size_t, size_t);
    FOREIGN_ENTRY(own->binary, own->theirs, buffer_set_tensor, entry_t)
    (own->theirs, foreign_shadow(own->binary, tensor, &shadow), data, offset, size);
}

static void buffer_get_tensor(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor,
                              void *data, size_t offset, size_t size) {
    const struct foreign_buffer *own = buffer->context;
    struct foreign_shadow shadow;
    typedef void (*entry_t)(void *, const struct ggml_tensor *, void *, size_t, size_t);
    FOREIGN_ENTRY(own->binary, own->theirs, buffer_get_tensor, entry_t)
    (own->theirs, foreign_shadow(own->binary, tensor, &shadow), data, offset, size);
}

static void buffer_set_tensor_2d(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                                 const void *data, size_t offset, size_t size, size_t n_copies,
                                 size_t stride_tensor, size_t stride_data) {
    const struct foreign_buffer *own = buffer->context;
    struct foreign_shadow shadow;
    typedef void (*entry_t)(void *, struct ggml_tensor *, const void *, size_t, size_t, size_t,
                            size_t, size_t);
    FOREIGN_ENTRY(own->binary, own->theirs, buffer_set_tensor_2d, entry_t)
    (own->theirs, foreign_shadow(own->binary, tensor, &shadow), data, offset, size, n_copies,
     stride_tensor, stride_data);
}

static void buffer_get_tensor_2d(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor,
                                 void *data, size_t offset, size_t size, size_t n_copies,
                                 size_t stride_tensor, size_t stride_data) {
    const struct foreign_buffer *own = buffer->context;
    struct foreign_shadow shadow;
    typedef void (*entry_t)(void *, const struct ggml_tensor *, void *, size_t, size_t, size_t,
                            size_t, size_t);
    FOREIGN_ENTRY(own->binary, own->theirs, buffer_get_tensor_2d, entry_t)
    (own->theirs, foreign_shadow(own->binary, tensor, &shadow), data, offset, size, n_copies,
     stride_tensor, stride_data);
}

static bool buffer_cpy_tensor(ggml_backend_buffer_t buffer, const struct ggml_tensor *src,
                              struct ggml_tensor *dst) {
    const struct foreign_buffer *own = buffer->context;
    struct foreign_shadow from, to;
    typedef bool (*entry_t)(void *, const struct ggml_tensor *, struct ggml_tensor *);
    const struct ggml_tensor *src_shadow = foreign_shadow(own->binary, src, &from);
    if (!src_shadow->buffer) return false;
    return FOREIGN_ENTRY(own->binary, own->theirs, buffer_cpy_tensor,
                         entry_t)(own->theirs, src_shadow, foreign_shadow(own->binary, dst, &to));
}

static void buffer_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    const struct foreign_buffer *own = buffer->context;
    typedef void (*entry_t)(void *, uint8_t);
    FOREIGN_ENTRY(own->binary, own->theirs, buffer_clear, entry_t)(own->theirs, value);
}

static void buffer_reset(ggml_backend_buffer_t buffer) {
    const struct foreign_buffer *own = buffer->context;
    typedef void (*entry_t)(void *);
    FOREIGN_ENTRY(own->binary, own->theirs, buffer_reset, entry_t)(own->theirs);
}

// What the binary leaves out is left out here.
static struct ggml_backend_buffer_i interface_of(const struct foreign_binary *binary,
                                                 const void *theirs) {
    struct ggml_backend_buffer_i iface = {.free_buffer = buffer_free, .get_base = buffer_base};
#define FORWARD(entry)                                                                             \
    if (foreign_entry(theirs, binary->layout->buffer_##entry)) iface.entry = buffer_##entry
    FORWARD(init_tensor);
    FORWARD(memset_tensor);
    FORWARD(set_tensor);
    FORWARD(get_tensor);
    FORWARD(set_tensor_2d);
    FORWARD(get_tensor_2d);
    FORWARD(cpy_tensor);
    FORWARD(clear);
    FORWARD(reset);
#undef FORWARD
    return iface;
}

ggml_backend_buffer_t foreign_buffer_adopt(struct foreign_binary *binary, void *theirs) {
    size_t size;
    struct foreign_buffer *own = ggml_aligned_malloc(sizeof(*own));
    ggml_backend_buffer_type_t buft =
        foreign_buft_of(binary, foreign_pointer(theirs, binary->layout->buffer_buft));
    ggml_backend_buffer_t buffer = NULL;
    memcpy(&size, foreign_slot(theirs, binary->layout->buffer_size), sizeof(size));
    if (own && buft) {
        *own = (struct foreign_buffer){binary, theirs, GGML_BACKEND_BUFFER_USAGE_ANY};
        buffer = ggml_backend_buffer_init(buft, interface_of(binary, theirs), own, size);
    }
    if (buffer) return buffer;
    if (own) ggml_aligned_free(own, sizeof(*own));
    binary->base->buffer_free(theirs);
    return NULL;
}
