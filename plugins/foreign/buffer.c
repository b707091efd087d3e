// SPDX-License-Identifier: MIT
// Buffers of ggml's binaries. Each entry of this plugin's table calls the entry of the binary's
// buffer, with a shadow in place of the tensor. An entry that the binary lacks is reported as
// GGML_HOST_UNSUPPORTED, upon which the host does it in another way.
#include "foreign.h"

// How many buffers have been freed. Shadows of graphs are kept across calls and hold pointers to
// the binary's buffers: one that was made before the last free is not used again.
static atomic_uint n_freed;

unsigned foreign_buffers_freed(void) {
    return atomic_load(&n_freed);
}

// Counted before the memory goes, so that no shadow made in between passes for a current one.
static void buffer_free(ggml_backend_buffer_t buffer) {
    struct foreign_buffer *own = buffer->context;
    atomic_fetch_add(&n_freed, 1);
    foreign_lock(own->binary);
    own->binary->base->buffer_free(own->theirs);
    foreign_unlock(own->binary);
    ggml_aligned_free(own, sizeof(*own));
    ggml_sdk_buffer_free(buffer);
}

// Of an empty one, which the host makes, only the type is this plugin's.
struct foreign_buffer *foreign_buffer_own(ggml_backend_buffer_t buffer) {
    return buffer && buffer->table->free == buffer_free ? buffer->context : NULL;
}

// Three cases: a buffer of this plugin has a counterpart, if it is of the same libggml-base; the
// host's own empty buffer of this plugin's type stands for the binary's empty one; and host memory
// of any other plugin is one of the two buffers over the whole address space. A change of usage is
// passed on the next time the buffer is seen, as the contract has no entry for it.
void *foreign_buffer_theirs(const struct foreign_binary *binary, ggml_backend_buffer_t buffer) {
    struct foreign_buffer *own = foreign_buffer_own(buffer);
    if (own) {
        if (own->binary->base != binary->base) return NULL;
        if (own->usage != buffer->usage)
            binary->base->buffer_set_usage(own->theirs, (int)buffer->usage);
        own->usage = buffer->usage;
        return own->theirs;
    }
    if (!buffer) return NULL;
    const struct foreign_buft *type = foreign_buft_own(buffer->buft);
    if (type) return type->binary->base == binary->base ? type->empty : NULL;
    const bool is_weights = buffer->usage == GGML_BACKEND_BUFFER_USAGE_WEIGHTS;
    const bool is_host = buffer->buft->table->is_host && buffer->buft->table->is_host(buffer->buft);
    return is_host ? binary->base->host_buffers[is_weights] : NULL;
}

// Whether the binary has this entry.
#define is_offered(buffer, entry)                                                                  \
    (foreign_entry(((const struct foreign_buffer *)(buffer)->context)->theirs,                     \
                   ((const struct foreign_buffer *)(buffer)->context)->binary->layout->entry))

// NULL for buffers without an address of their own; the host then gives addresses out itself.
static void *buffer_base(ggml_backend_buffer_t buffer) {
    const struct foreign_buffer *own = buffer->context;
    typedef void *(*entry_t)(void *);
    const entry_t entry = FOREIGN_ENTRY(own->binary, own->theirs, buffer_get_base, entry_t);
    return entry ? entry(own->theirs) : NULL;
}

// The binary may store something of its own in `extra`, which is copied to the tensor and comes
// back with every later shadow of it.
static int32_t buffer_init_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor) {
    struct foreign_buffer *own = buffer->context;
    struct foreign_node node;
    typedef enum ggml_status (*entry_t)(void *, struct ggml_tensor *);
    if (!is_offered(buffer, buffer_init_tensor)) return GGML_HOST_UNSUPPORTED;
    tensor->extra = NULL;
    struct ggml_tensor *shadow = foreign_shadow_node(own->binary, tensor, &node);
    const enum ggml_status status =
        FOREIGN_ENTRY(own->binary, own->theirs, buffer_init_tensor, entry_t)(own->theirs, shadow);
    tensor->extra = shadow->extra;
    const struct foreign_buft *type = foreign_buft_own(buffer->buft);
    if (status == GGML_STATUS_SUCCESS && type && type->repacked && !tensor->extra) {
        // Where none of the layouts fits, ggml's entries go on without one and crash when it is
        // set.
        ggml_sdk_fail(GGML_HOST_INVALID_ARGUMENT, "%s: no layout for tensor '%s' of %s",
                      type->buft.table->get_name(buffer->buft), tensor->name,
                      ggml_type_name(tensor->type));
        return GGML_HOST_INVALID_ARGUMENT;
    }
    return ggml_entry_status(status);
}

// Vulkan's entry fills whole words. Of what it would get wrong the host sets the bytes.
static bool is_in_words(const struct ggml_tensor *tensor, size_t offset, size_t size) {
    return ((uintptr_t)tensor->data | offset | size) % sizeof(uint32_t) == 0;
}

static int32_t buffer_memset_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                                    uint8_t value, size_t offset, size_t size) {
    if (!is_offered(buffer, buffer_memset_tensor) || !is_in_words(tensor, offset, size))
        return GGML_HOST_UNSUPPORTED;
    const struct foreign_buffer *own = buffer->context;
    struct foreign_shadow shadow;
    typedef void (*entry_t)(void *, struct ggml_tensor *, uint8_t, size_t, size_t);
    FOREIGN_ENTRY(own->binary, own->theirs, buffer_memset_tensor, entry_t)
    (own->theirs, foreign_shadow(own->binary, tensor, &shadow), value, offset, size);
    return GGML_HOST_OK;
}

// The entries below pass their arguments on as they are: bounds are checked by the host before.
static int32_t buffer_set_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                                 const void *data, size_t offset, size_t size) {
    if (!is_offered(buffer, buffer_set_tensor)) return GGML_HOST_UNSUPPORTED;
    const struct foreign_buffer *own = buffer->context;
    struct foreign_shadow shadow;
    typedef void (*entry_t)(void *, struct ggml_tensor *, const void *, size_t, size_t);
    FOREIGN_ENTRY(own->binary, own->theirs, buffer_set_tensor, entry_t)
    (own->theirs, foreign_shadow(own->binary, tensor, &shadow), data, offset, size);
    return GGML_HOST_OK;
}

static int32_t buffer_get_tensor(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor,
                                 void *data, size_t offset, size_t size) {
    if (!is_offered(buffer, buffer_get_tensor)) return GGML_HOST_UNSUPPORTED;
    const struct foreign_buffer *own = buffer->context;
    struct foreign_shadow shadow;
    typedef void (*entry_t)(void *, const struct ggml_tensor *, void *, size_t, size_t);
    FOREIGN_ENTRY(own->binary, own->theirs, buffer_get_tensor, entry_t)
    (own->theirs, foreign_shadow(own->binary, tensor, &shadow), data, offset, size);
    return GGML_HOST_OK;
}

static int32_t buffer_set_tensor_2d(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                                    const void *data, size_t offset, size_t size, size_t n_copies,
                                    size_t stride_tensor, size_t stride_data) {
    if (!is_offered(buffer, buffer_set_tensor_2d)) return GGML_HOST_UNSUPPORTED;
    const struct foreign_buffer *own = buffer->context;
    struct foreign_shadow shadow;
    typedef void (*entry_t)(void *, struct ggml_tensor *, const void *, size_t, size_t, size_t,
                            size_t, size_t);
    FOREIGN_ENTRY(own->binary, own->theirs, buffer_set_tensor_2d, entry_t)
    (own->theirs, foreign_shadow(own->binary, tensor, &shadow), data, offset, size, n_copies,
     stride_tensor, stride_data);
    return GGML_HOST_OK;
}

static int32_t buffer_get_tensor_2d(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor,
                                    void *data, size_t offset, size_t size, size_t n_copies,
                                    size_t stride_tensor, size_t stride_data) {
    if (!is_offered(buffer, buffer_get_tensor_2d)) return GGML_HOST_UNSUPPORTED;
    const struct foreign_buffer *own = buffer->context;
    struct foreign_shadow shadow;
    typedef void (*entry_t)(void *, const struct ggml_tensor *, void *, size_t, size_t, size_t,
                            size_t, size_t);
    FOREIGN_ENTRY(own->binary, own->theirs, buffer_get_tensor_2d, entry_t)
    (own->theirs, foreign_shadow(own->binary, tensor, &shadow), data, offset, size, n_copies,
     stride_tensor, stride_data);
    return GGML_HOST_OK;
}

// A source that the binary has no object for has no buffer in its shadow; ggml's entries read it
// unchecked.
static int32_t buffer_cpy_tensor(ggml_backend_buffer_t buffer, const struct ggml_tensor *src,
                                 struct ggml_tensor *dst) {
    const struct foreign_buffer *own = buffer->context;
    struct foreign_shadow from, to;
    typedef bool (*entry_t)(void *, const struct ggml_tensor *, struct ggml_tensor *);
    const struct ggml_tensor *src_shadow = foreign_shadow(own->binary, src, &from);
    if (!src_shadow->buffer || !is_offered(buffer, buffer_cpy_tensor)) return GGML_HOST_UNSUPPORTED;
    const bool done = FOREIGN_ENTRY(own->binary, own->theirs, buffer_cpy_tensor, entry_t)(
        own->theirs, src_shadow, foreign_shadow(own->binary, dst, &to));
    return done ? GGML_HOST_OK : GGML_HOST_UNSUPPORTED;
}

// Clears through set_tensor() by a tensor of I8 that spans the whole buffer, 64 KiB at a time:
// slower than one call of the binary's entry, but right for every value.
static int32_t clear_in_pieces(ggml_backend_buffer_t buffer, uint8_t value) {
    enum { PIECE = 1 << 16 };
    struct ggml_tensor bytes = {
        .type = GGML_TYPE_I8, .buffer = buffer, .data = buffer_base(buffer)};
    uint8_t *piece = ggml_aligned_malloc(PIECE);
    if (!piece) {
        ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "no memory to clear a buffer");
        return GGML_HOST_OUT_OF_MEMORY;
    }
    int32_t status = GGML_HOST_OK;
    memset(piece, value, PIECE);
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        bytes.ne[i] = i ? 1 : (int64_t)buffer->size;
        bytes.nb[i] = i ? buffer->size : 1;
    }
    if (is_offered(buffer, buffer_init_tensor)) status = buffer_init_tensor(buffer, &bytes);
    for (size_t at = 0; at < buffer->size && status == GGML_HOST_OK; at += PIECE)
        status = buffer_set_tensor(buffer, &bytes, piece, at, MIN(PIECE, buffer->size - at));
    ggml_aligned_free(piece, PIECE);
    return status;
}

static int32_t buffer_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    if (!is_offered(buffer, buffer_clear)) return GGML_HOST_UNSUPPORTED;
    const struct foreign_buffer *own = buffer->context;
    const ggml_backend_buffer_type_t buft = buffer->buft;
    const struct foreign_buft *type = foreign_buft_own(buft);
    const bool is_bytes = buft->table->is_host(buft) || (type && type->repacked);
    // Of another value Vulkan's entry writes one byte in each word.
    if (value != 0 && !is_bytes && is_offered(buffer, buffer_set_tensor))
        return clear_in_pieces(buffer, value);
    typedef void (*entry_t)(void *, uint8_t);
    FOREIGN_ENTRY(own->binary, own->theirs, buffer_clear, entry_t)(own->theirs, value);
    return GGML_HOST_OK;
}

// Forgets what init_tensor() has allocated for tensors of this buffer.
static int32_t buffer_reset(ggml_backend_buffer_t buffer) {
    if (!is_offered(buffer, buffer_reset)) return GGML_HOST_UNSUPPORTED;
    const struct foreign_buffer *own = buffer->context;
    typedef void (*entry_t)(void *);
    FOREIGN_ENTRY(own->binary, own->theirs, buffer_reset, entry_t)(own->theirs);
    return GGML_HOST_OK;
}

#define TABLE                                                                                      \
    .size = sizeof(struct ggml_buffer_table), .free = buffer_free, .get_base = buffer_base,        \
    .memset_tensor = buffer_memset_tensor, .set_tensor = buffer_set_tensor,                        \
    .get_tensor = buffer_get_tensor, .set_tensor_2d = buffer_set_tensor_2d,                        \
    .get_tensor_2d = buffer_get_tensor_2d, .cpy_tensor = buffer_cpy_tensor, .clear = buffer_clear, \
    .reset = buffer_reset

// Without an entry that attaches anything hosts need not tell of each tensor that is placed.
static const struct ggml_buffer_table plain_table = {TABLE};
static const struct ggml_buffer_table buffer_table = {TABLE, .init_tensor = buffer_init_tensor};

// The binary's object is freed on failure, as the caller has no other use for it. Its size is read
// from the object: it may be larger than what was asked for.
ggml_backend_buffer_t foreign_buffer_adopt(struct foreign_binary *binary, void *theirs) {
    size_t size;
    struct foreign_buffer *own = ggml_aligned_malloc(sizeof(*own));
    ggml_backend_buffer_type_t buft =
        foreign_buft_of(binary, foreign_pointer(theirs, binary->layout->buffer_buft));
    ggml_backend_buffer_t buffer = NULL;
    memcpy(&size, foreign_slot(theirs, binary->layout->buffer_size), sizeof(size));
    if (own && buft) {
        *own = (struct foreign_buffer){binary, theirs, GGML_BACKEND_BUFFER_USAGE_ANY};
        buffer = ggml_sdk_buffer_new(buft, &buffer_table, own, size);
    }
    if (buffer && !is_offered(buffer, buffer_init_tensor)) buffer->table = &plain_table;
    if (buffer) return buffer;
    if (own) ggml_aligned_free(own, sizeof(*own));
    binary->base->buffer_free(theirs);
    return NULL;
}
