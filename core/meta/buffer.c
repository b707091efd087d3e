// SPDX-License-Identifier: MIT
// Memory of the meta device. Addresses in it mean nothing: a graph's buffer is as large on every
// device, and what lies at an offset here lies at that offset there; static tensors get memory for
// their slices only.
#include <stdatomic.h>

#include "base/mem.h"
#include "meta/meta.h"

static void buffer_free(ggml_backend_buffer_t buffer);

static _Atomic uint64_t generation = 1;

uint64_t meta_generation(void) {
    return atomic_load(&generation);
}

// Makes all plans stale. One counter for all meta devices suffices: buffers are created and freed
// seldom compared with graphs.
static void generation_next(void) {
    atomic_fetch_add(&generation, 1);
}

// The context of a meta buffer, recognised by its `free` entry, which no other table has; NULL for
// any other buffer.
struct meta_buffer *meta_buffer_of(ggml_backend_buffer_t buffer) {
    return buffer && buffer->table->free == buffer_free ? buffer->context : NULL;
}

// The meta buffer that holds a tensor's memory. A view may be planned before it has a buffer, so
// that its root's counts.
struct meta_buffer *meta_buffer_with(const struct ggml_tensor *tensor) {
    const struct ggml_tensor *root = meta_root(tensor);
    return meta_buffer_of(root->buffer ? root->buffer : tensor->buffer);
}

// Frees records before members: slices are tensors in the members' memory.
static void meta_buffer_free(struct meta_buffer *buffer) {
    if (!buffer) return;
    generation_next();
    meta_lock();
    meta_records_free(buffer);
    meta_unlock();
    for (size_t j = 0; j < META_MAX_DEVICES; ++j) {
        for (size_t i = 0; i < buffer->n_members[j]; ++i) {
            ggml_backend_buffer_free(buffer->members[j][i]);
        }
        ggml_mem_free(buffer->members[j]);
    }
    ggml_mem_free(buffer);
}

// All members of all devices; a tensor's usage isn't known here.
void meta_buffer_set_usage(ggml_backend_buffer_t handle, enum ggml_backend_buffer_usage usage) {
    struct meta_buffer *buffer = meta_buffer_of(handle);
    for (size_t j = 0; buffer && j < META_MAX_DEVICES; ++j) {
        for (size_t i = 0; i < buffer->n_members[j]; ++i) {
            ggml_backend_buffer_set_usage(buffer->members[j][i], usage);
        }
    }
}

static void buffer_free(ggml_backend_buffer_t buffer) {
    meta_buffer_free(buffer->context);
    ggml_sdk_buffer_free(buffer);
}

// A fixed address: tensors get distinct addresses by their offsets, and nothing is ever read from
// there.
static void *buffer_base(ggml_backend_buffer_t buffer) {
    (void)buffer;
    return META_BASE;
}

// Marks the tensor's record as unresolved, unless it has the memory of a static tensor, as that is.
// Resolving waits for the first use, since operands may be placed after their results.
static int32_t buffer_init_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor) {
    (void)buffer;
    generation_next();
    meta_lock();
    struct meta_record *record = meta_record_get(tensor);
    if (record) record->is_resolved = record->owner != NULL;
    meta_unlock();
    return record ? GGML_HOST_OK : GGML_HOST_OUT_OF_MEMORY;
}

// Transfers without a stream block until all devices are done.
static int32_t buffer_set(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                          const void *data, size_t offset, size_t size) {
    (void)buffer;
    return meta_set(NULL, tensor, data, offset, size) ? GGML_HOST_OK : ggml_last_status();
}

static int32_t buffer_get(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor,
                          void *data, size_t offset, size_t size) {
    (void)buffer;
    return meta_get(NULL, tensor, data, offset, size) ? GGML_HOST_OK : ggml_last_status();
}

// Failures of members are recorded by their own wrappers.
static int32_t buffer_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    struct meta_buffer *meta = buffer->context;
    for (size_t j = 0; j < meta->device->n; ++j) {
        for (size_t i = 0; i < meta->n_members[j]; ++i) {
            ggml_backend_buffer_clear(meta->members[j][i], value);
        }
    }
    return GGML_HOST_OK;
}

// Called before another graph is placed in the buffer. Records of tensors that two graphs have not
// touched are freed.
static int32_t buffer_reset(ggml_backend_buffer_t buffer) {
    struct meta_buffer *meta = buffer->context;
    for (size_t j = 0; j < meta->device->n; ++j) {
        for (size_t i = 0; i < meta->n_members[j]; ++i) {
            ggml_backend_buffer_reset(meta->members[j][i]);
        }
    }
    generation_next();
    meta_lock();
    meta_records_expire(meta);
    meta_unlock();
    return GGML_HOST_OK;
}

static const struct ggml_buffer_table buffer_table = {
    .size = sizeof(buffer_table),
    .free = buffer_free,
    .get_base = buffer_base,
    .init_tensor = buffer_init_tensor,
    .set_tensor = buffer_set,
    .get_tensor = buffer_get,
    .clear = buffer_clear,
    .reset = buffer_reset,
};

// Allocates another buffer on device j and appends it to the list, so that it is freed with the
// others.
static ggml_backend_buffer_t add_member(struct meta_buffer *buffer, size_t j, size_t size) {
    ggml_backend_buffer_type_t buft = ggml_backend_dev_buffer_type(buffer->device->devices[j]);
    const size_t n = buffer->n_members[j];
    ggml_backend_buffer_t *members =
        ggml_mem_realloc(buffer->members[j], (n + 1) * sizeof(members[0]));
    if (!members) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "meta device: no memory to list its buffers");
        return NULL;
    }
    buffer->members[j] = members;
    members[n] = buft ? ggml_backend_buft_alloc_buffer(buft, size) : NULL;
    if (!members[n]) return NULL;
    buffer->n_members[j] = n + 1;
    return members[n];
}

// The first address in a member that is aligned as tensors must be. Members are allocated larger by
// one alignment for that.
static char *aligned_base(ggml_backend_buffer_t buffer) {
    const uintptr_t alignment = ggml_backend_buffer_get_alignment(buffer);
    const uintptr_t base = (uintptr_t)ggml_backend_buffer_get_base(buffer);
    return (char *)((base + alignment - 1) & ~(alignment - 1));
}

// Epochs start at 1: a record with epoch 0 was never used.
static struct meta_buffer *meta_buffer_new(ggml_backend_buffer_type_t buft, bool is_static) {
    struct meta_buffer *buffer = ggml_mem_calloc(1, sizeof(*buffer));
    if (!buffer) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "meta device: no memory for a buffer object");
        return NULL;
    }
    buffer->device = meta_buft_device(buft);
    buffer->is_static = is_static;
    buffer->epoch = 1;
    return buffer;
}

// Memory for graphs: the whole size on every device, as it is not known yet which tensors will be
// split.
int32_t meta_buffer_alloc(ggml_backend_buffer_type_t buft, size_t size,
                          ggml_backend_buffer_t *out_buffer) {
    struct meta_buffer *buffer = meta_buffer_new(buft, false);
    if (!buffer) return ggml_last_status();
    for (size_t j = 0; j < buffer->device->n; ++j) {
        ggml_backend_buffer_type_t member_type =
            ggml_backend_dev_buffer_type(buffer->device->devices[j]);
        const size_t alignment = ggml_backend_buft_get_alignment(member_type);
        if (size > SIZE_MAX - alignment) {
            ggml_fail(GGML_HOST_OUT_OF_MEMORY, "meta device: no memory for %zu bytes", size);
            goto fail;
        }
        ggml_backend_buffer_t member = add_member(buffer, j, size + alignment);
        if (!member) goto fail;
        buffer->bases[j] = aligned_base(member);
    }
    *out_buffer = ggml_sdk_buffer_new(buft, &buffer_table, buffer, size);
    if (*out_buffer) return GGML_HOST_OK;
fail:
    meta_buffer_free(buffer);
    return ggml_last_status();
}

// --- static memory -------------------------------------------------------------------------------

// Tensors of a context that are not allocated yet and own their memory.
static bool needs_memory(const struct ggml_tensor *tensor) {
    return !tensor->data && !tensor->buffer && !tensor->view_src;
}

// Undoes enter() after a failure.
static void forget(struct ggml_context *ctx, ggml_backend_buffer_t buffer) {
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        if (t->buffer != buffer) continue;
        t->buffer = NULL;
        t->data = NULL;
    }
}

// Assigns placeholder addresses to the context's tensors and their views; returns the bytes, 0 if
// none needs memory.
static size_t enter(struct ggml_context *ctx, ggml_backend_buffer_t buffer) {
    const size_t alignment = ggml_backend_buffer_get_alignment(buffer);
    size_t size = 0;
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        if (!needs_memory(t)) continue;
        t->buffer = buffer;
        t->data = META_BASE + size;
        size += GGML_PAD(MAX(ggml_nbytes(t), 1), alignment);
    }
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        if (!t->view_src || t->buffer || t->view_src->buffer != buffer) continue;
        t->buffer = buffer;
        t->data = (char *)t->view_src->data + t->view_offs;
    }
    return size;
}

// Views share the memory of their root.
static bool is_owner(const struct ggml_tensor *tensor, ggml_backend_buffer_t buffer) {
    return tensor->buffer == buffer && !tensor->view_src;
}

// The end of the run of owners from `first` that fits into one buffer of device j. The first one is
// taken even if it is too large, so that allocating fails with the plugin's message.
static size_t range_end(const struct meta_buffer *meta, size_t j, size_t first, size_t *out_size) {
    ggml_backend_buffer_type_t buft = ggml_backend_dev_buffer_type(meta->device->devices[j]);
    const size_t alignment = ggml_backend_buft_get_alignment(buft);
    const size_t limit = ggml_backend_buft_get_max_size(buft);
    size_t size = alignment;
    size_t i = first;
    for (; i < meta->n_owners; ++i) {
        const size_t bytes = ggml_backend_buft_get_alloc_size(buft, &meta->owners[i]->slices[j]);
        const size_t padded = GGML_PAD(MAX(bytes, 1), alignment);
        if (size > alignment && (size > limit || padded > limit - size)) break;
        size += padded;
    }
    *out_size = size;
    return i;
}

// Allocates one member buffer and places the slices of the run in it, one after the other. False
// after the error was set.
static bool place_range(struct meta_buffer *meta, size_t j, size_t first, size_t end, size_t size) {
    ggml_backend_buffer_t member = add_member(meta, j, size);
    if (!member) return false;
    const size_t alignment = ggml_backend_buffer_get_alignment(member);
    char *address = aligned_base(member);
    for (size_t i = first; i < end; ++i) {
        struct ggml_tensor *slice = &meta->owners[i]->slices[j];
        if (ggml_backend_tensor_alloc(member, slice, address) != GGML_STATUS_SUCCESS) return false;
        address += GGML_PAD(MAX(ggml_backend_buffer_get_alloc_size(member, slice), 1), alignment);
    }
    return true;
}

// Greedy: each member takes as many owners in order as its type's largest buffer holds. O(owners).
static bool place_all(struct meta_buffer *meta, size_t j) {
    size_t first = 0;
    while (first < meta->n_owners) {
        size_t size;
        const size_t end = range_end(meta, j, first, &size);
        if (!place_range(meta, j, first, end, size)) return false;
        first = end;
    }
    return true;
}

// Derives states and slices of all tensors before any of their memory is allocated: their sizes
// depend on it.
static bool resolve_all(struct ggml_context *ctx, ggml_backend_buffer_t buffer) {
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        if (!is_owner(t, buffer)) continue;
        struct meta_record *record = meta_resolve(t);
        if (!record || !meta_record_own(buffer->context, record)) return false;
    }
    return true;
}

// Nobody else knows the buffer yet: while devices allocate, which may take long, the lock is free
// for others.
static bool place(struct ggml_context *ctx, ggml_backend_buffer_t buffer) {
    struct meta_buffer *meta = buffer->context;
    meta_lock();
    bool placed = resolve_all(ctx, buffer);
    meta_unlock();
    for (size_t j = 0; j < meta->device->n && placed; ++j)
        placed = place_all(meta, j);
    if (!placed) return false;
    meta_lock();
    meta_records_settle(meta);
    meta_unlock();
    return true;
}

// Views of tensors in other buffers, as far as those are placed.
static bool place_views(struct ggml_context *ctx) {
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        if (!t->view_src || t->buffer || !t->view_src->buffer) continue;
        if (ggml_backend_view_init(t) != GGML_STATUS_SUCCESS) return false;
    }
    return true;
}

// Memory for weights: each device gets what its slices take, in as many buffers as its limit asks
// for.
ggml_backend_buffer_t meta_buffer_alloc_ctx(struct ggml_context *ctx,
                                            ggml_backend_buffer_type_t buft) {
    struct meta_buffer *meta = meta_buffer_new(buft, true);
    ggml_backend_buffer_t buffer = meta ? ggml_sdk_buffer_new(buft, &buffer_table, meta, 0) : NULL;
    if (!buffer) {
        meta_buffer_free(meta);
        return NULL;
    }
    buffer->size = enter(ctx, buffer);
    bool placed = buffer->size > 0 && place(ctx, buffer);
    // Without tensors that need memory there is no buffer, but there may be views all the same.
    if (placed || buffer->size == 0) placed = place_views(ctx) && placed;
    if (placed) return buffer;
    forget(ctx, buffer);
    ggml_backend_buffer_free(buffer);
    return NULL;
}
