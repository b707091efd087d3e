// SPDX-License-Identifier: MIT
// Buffers in host memory.
#include <sched.h>

#include "defective.h"

enum { ALIGNMENT = 64, PADDING = 256, LARGEST = 64 << 20 };

struct memory {
    char *base; // of the host's memory, or wrapped
    size_t size;
    bool is_wrapped;
};

static char *at(const struct ggml_tensor *tensor, size_t offset) {
    return (char *)tensor->data + offset;
}

// --- changes that wait ---------------------------------------------------------------------------

static struct {
    char *to;
    const void *from;
    size_t size;
} pending;

void memory_flush(void) {
    if (pending.to) memcpy(pending.to, pending.from, pending.size);
    pending.to = NULL;
}

static void set_later(char *to, const void *from, size_t size) {
    memory_flush();
    pending.to = to;
    pending.from = from;
    pending.size = size;
}

// --- tensor access -------------------------------------------------------------------------------

static void transform(char *to, const char *from, size_t size) {
    for (size_t i = 0; i < size; ++i)
        to[i] = (char)(from[i] ^ 0x7f);
}

static bool ends_tensor(const struct ggml_tensor *tensor, size_t end) {
    return !tensor->view_src && end == ggml_nbytes(tensor);
}

// By a memory that all buffers share.
static void set_staged(char *to, const void *from, size_t size) {
    static char staging[4096];
    memcpy(staging, from, size);
    sched_yield();
    memcpy(to, staging, size);
}

static int32_t buffer_set(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                          const void *data, size_t offset, size_t size) {
    (void)buffer;
    if (HAS(view_ignored) && tensor->view_src) tensor = tensor->view_src;
    if (HAS(staging_shared) && size <= 4096) {
        set_staged(at(tensor, offset), data, size);
        return GGML_HOST_OK;
    }
    if (HAS(set_offset) && offset > 64) offset &= ~(size_t)1;
    if (HAS(set_lazy)) {
        set_later(at(tensor, offset), data, size);
        return GGML_HOST_OK;
    }
    if (HAS(host_elsewhere)) {
        transform(at(tensor, offset), data, size);
        return GGML_HOST_OK;
    }
    memcpy(at(tensor, offset), data, size);
    if (HAS(set_wrong) && size > 8) *at(tensor, offset + 7) ^= 1;
    if (HAS(quantised_wrong) && tensor->type == GGML_TYPE_Q4_0) *at(tensor, offset) ^= 1;
    if (HAS(set_beyond) && ends_tensor(tensor, offset + size)) *at(tensor, offset + size) = 9;
    return GGML_HOST_OK;
}

static int32_t buffer_get(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor,
                          void *data, size_t offset, size_t size) {
    (void)buffer;
    memory_flush();
    if (HAS(get_offset) && offset > 64) offset &= ~(size_t)1;
    if (HAS(host_elsewhere)) {
        transform(data, at(tensor, offset), size);
    } else {
        memcpy(data, at(tensor, offset), size);
    }
    return GGML_HOST_OK;
}

static int32_t buffer_memset(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                             uint8_t value, size_t offset, size_t size) {
    (void)buffer;
    memory_flush();
    if (HAS(memset_beyond) && ends_tensor(tensor, offset + size)) ++size;
    if (HAS(memset_short) && size % 2 == 1) --size;
    memset(at(tensor, offset), value, size);
    return GGML_HOST_OK;
}

static int32_t buffer_set_2d(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                             const void *data, size_t offset, size_t size, size_t n_copies,
                             size_t stride_tensor, size_t stride_data) {
    (void)buffer;
    memory_flush();
    if (HAS(set_2d_stride)) stride_tensor = stride_data;
    if (HAS(set_2d_beyond) && ends_tensor(tensor, offset + n_copies * stride_tensor))
        *at(tensor, ggml_nbytes(tensor)) = 9;
    for (size_t i = 0; i < n_copies; ++i)
        memcpy(at(tensor, offset + i * stride_tensor), (const char *)data + i * stride_data, size);
    return GGML_HOST_OK;
}

static int32_t buffer_get_2d(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor,
                             void *data, size_t offset, size_t size, size_t n_copies,
                             size_t stride_tensor, size_t stride_data) {
    (void)buffer;
    memory_flush();
    if (HAS(get_2d_stride)) stride_data = size;
    for (size_t i = 0; i < n_copies; ++i)
        memcpy((char *)data + i * stride_data, at(tensor, offset + i * stride_tensor), size);
    return GGML_HOST_OK;
}

static bool is_mine(const struct ggml_tensor *tensor) {
    ggml_backend_buffer_t buffer = tensor->view_src ? tensor->view_src->buffer : tensor->buffer;
    return buffer && buffer->table->set_tensor == buffer_set;
}

static int32_t buffer_copy(ggml_backend_buffer_t buffer, const struct ggml_tensor *src,
                           struct ggml_tensor *dst) {
    (void)buffer;
    memory_flush();
    if (!is_mine(src)) {
        if (HAS(extra_read) && src->extra) *(volatile char *)src->extra;
        if (HAS(extra_changed)) ((struct ggml_tensor *)(uintptr_t)src)->extra = NULL;
        if (HAS(copy_half_refused)) memset(dst->data, 0, ggml_nbytes(dst) / 2);
        return GGML_HOST_UNSUPPORTED;
    }
    const size_t size = ggml_nbytes(src);
    if (HAS(copy_within) && src->buffer != dst->buffer) {
        // As if src had its place in the buffer of dst.
        const char *from = dst->buffer->table->get_base(dst->buffer);
        const char *base = src->buffer->table->get_base(src->buffer);
        memmove(dst->data, from + ((const char *)src->data - base), size);
        return GGML_HOST_OK;
    }
    memcpy(dst->data, src->data, size / (HAS(copy_partial) ? 2 : 1));
    if (HAS(copy_first_byte)) memset(dst->data, *(const char *)src->data, size);
    return GGML_HOST_OK;
}

// --- buffers -------------------------------------------------------------------------------------

static void buffer_free(ggml_backend_buffer_t buffer) {
    struct memory *memory = buffer->context;
    memory_flush();
    if (HAS(wrapped_changed) && memory->is_wrapped) memset(memory->base, 0, 16);
    if (!memory->is_wrapped && !HAS(buffer_leak))
        ggml_aligned_free(memory->base, memory->size + PADDING);
    ggml_aligned_free(memory, sizeof(*memory));
    if (!HAS(buffer_object_leak)) ggml_sdk_buffer_free(buffer);
}

static void *buffer_base(ggml_backend_buffer_t buffer) {
    const struct memory *memory = buffer->context;
    if (HAS(base_null)) return NULL;
    return memory->base + (HAS(base_unaligned) ? 8 : 0);
}

static int32_t buffer_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    const struct memory *memory = buffer->context;
    memory_flush();
    memset(memory->base, value, memory->size - (HAS(clear_partial) ? 1 : 0));
    return GGML_HOST_OK;
}

static int32_t buffer_set_nothing(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                                  const void *data, size_t offset, size_t size) {
    (void)buffer;
    (void)data;
    memset(at(tensor, offset), 0, size);
    return GGML_HOST_OK;
}

static const struct ggml_buffer_table nothing_table;

static int32_t buffer_reset(ggml_backend_buffer_t buffer) {
    if (HAS(reset_loses)) buffer->table = &nothing_table;
    (void)buffer;
    return HAS(status_unknown) ? 1000 : GGML_HOST_OK;
}

static int32_t buffer_set_usage(ggml_backend_buffer_t buffer,
                                enum ggml_backend_buffer_usage usage) {
    const struct memory *memory = buffer->context;
    if (HAS(usage_packs) && usage == GGML_BACKEND_BUFFER_USAGE_WEIGHTS)
        for (size_t i = 0; i < buffer->size; ++i)
            memory->base[i] ^= 1;
    return GGML_HOST_OK;
}

static struct ggml_buffer_table buffer_table = {
    .size = sizeof(buffer_table),
    .free = buffer_free,
    .get_base = buffer_base,
    .memset_tensor = buffer_memset,
    .set_tensor = buffer_set,
    .get_tensor = buffer_get,
    .set_tensor_2d = buffer_set_2d,
    .get_tensor_2d = buffer_get_2d,
    .cpy_tensor = buffer_copy,
    .clear = buffer_clear,
    .reset = buffer_reset,
    .set_usage = buffer_set_usage,
};

// As the other, but that set_tensor loses what it is given.
static const struct ggml_buffer_table nothing_table = {
    .size = sizeof(nothing_table),
    .free = buffer_free,
    .get_base = buffer_base,
    .memset_tensor = buffer_memset,
    .set_tensor = buffer_set_nothing,
    .get_tensor = buffer_get,
    .clear = buffer_clear,
};

static ggml_backend_buffer_t new_object(ggml_backend_buffer_type_t buft, char *base, size_t size,
                                        bool is_wrapped) {
    struct memory *memory = ggml_aligned_malloc(sizeof(*memory));
    if (!memory) return NULL;
    *memory = (struct memory){base, size, is_wrapped};
    const size_t told = HAS(buffer_short) ? size - 1 : size;
    ggml_backend_buffer_t buffer = ggml_sdk_buffer_new(buft, &buffer_table, memory, told);
    if (!buffer) {
        if (!HAS(buffer_half_made)) ggml_aligned_free(memory, sizeof(*memory));
        return NULL;
    }
    if (HAS(buffer_reserved)) buffer->reserved[1] = buffer;
    if (HAS(buffer_table_missing)) buffer->table = NULL;
    if (HAS(buffer_table_short)) buffer_table.size = 40;
    if (HAS(buffer_usage)) buffer->usage = GGML_BACKEND_BUFFER_USAGE_COMPUTE;
    return buffer;
}

static bool is_too_large(size_t size) {
    if (size <= LARGEST) return false;
    return !(HAS(limit_ignored) && size <= 2 * LARGEST) &&
           !(HAS(size_overflow) && size > SIZE_MAX - PADDING);
}

static int32_t type_alloc(ggml_backend_buffer_type_t buft, size_t size,
                          ggml_backend_buffer_t *out_buffer) {
    if (is_too_large(size)) return fail(GGML_HOST_OUT_OF_MEMORY, "a buffer that is too large");
    char *base = ggml_aligned_malloc(size + PADDING);
    if (!base) return GGML_HOST_OUT_OF_MEMORY;
    *out_buffer = new_object(buft, base, size, false);
    if (*out_buffer) return GGML_HOST_OK;
    ggml_aligned_free(base, size + PADDING);
    return GGML_HOST_OUT_OF_MEMORY;
}

ggml_backend_buffer_t memory_wrap(ggml_backend_dev_t device, void *memory, size_t size,
                                  size_t max_tensor_size) {
    (void)max_tensor_size;
    if (HAS(wrapped_written)) *(volatile char *)memory = *(volatile char *)memory;
    if (!HAS(caps_host_ptr)) return new_object(memory_type(device), memory, size, true);
    fail(GGML_HOST_UNSUPPORTED, "host memory can't be wrapped");
    return NULL;
}

// --- buffer types --------------------------------------------------------------------------------

static const char *type_name(ggml_backend_buffer_type_t buft) {
    (void)buft;
    return HAS(buft_name_null) ? NULL : "DEFECT";
}

static size_t type_alignment(ggml_backend_buffer_type_t buft) {
    (void)buft;
    return HAS(alignment_three) ? 3 : ALIGNMENT;
}

static size_t type_max_size(ggml_backend_buffer_type_t buft) {
    (void)buft;
    return HAS(max_size_zero) ? 0 : LARGEST;
}

static size_t type_alloc_size(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor) {
    (void)buft;
    const size_t size = ggml_nbytes(tensor);
    return HAS(alloc_size_small) && size > 0 ? size - 1 : size;
}

static bool type_is_host(ggml_backend_buffer_type_t buft) {
    static int n;
    (void)buft;
    return HAS(host_sometimes) ? n++ % 2 == 0 : true;
}

static struct ggml_buffer_type_table type_table = {
    .size = sizeof(type_table),
    .get_name = type_name,
    .alloc_buffer = type_alloc,
    .get_alignment = type_alignment,
    .get_max_size = type_max_size,
    .get_alloc_size = type_alloc_size,
    .is_host = type_is_host,
};

ggml_backend_buffer_type_t memory_type(ggml_backend_dev_t device) {
    static struct ggml_backend_buffer_type types[2 * N_DEVICES];
    static int n;
    int index = (int)(device - defective_devices);
    if (HAS(type_changes)) index += N_DEVICES * (n++ % 2);
    struct ggml_backend_buffer_type *type = &types[index];
    type->table = HAS(buft_table_missing) ? NULL : &type_table;
    if (HAS(buft_alloc_missing)) type_table.alloc_buffer = NULL;
    if (HAS(buft_table_reserved)) type_table.reserved[3] = (void (*)(void))type_alloc;
    type->device = HAS(buft_homeless) ? NULL : device;
    if (HAS(buft_reserved)) type->reserved[0] = type;
    return type;
}
