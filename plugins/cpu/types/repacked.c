// SPDX-License-Identifier: MIT
// Memory for weights that are repacked when they are set. Tensors that can't be lie there as they
// are, for nobody to compute with.
#include "types/repacked.h"

#include "ggml-impl.h"
#include "ggml-plugin.h"

enum { ALIGNMENT = 64 };

static const char *type_name(ggml_backend_buffer_type_t buft) {
    (void)buft;
    return "CPU_REPACKED";
}

static size_t type_alignment(ggml_backend_buffer_type_t buft) {
    (void)buft;
    return ALIGNMENT;
}

static struct repacked_format format_of(ggml_backend_buffer_type_t buft,
                                        const struct ggml_tensor *tensor) {
    const struct cpu_repacking *repacking = buft->context;
    return repacked_format(tensor->type, repacking->rows(tensor->type));
}

// By type and extents alone, so that it stays the same for as long as the tensor lives.
static bool can_repack(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor) {
    const struct repacked_format f = format_of(buft, tensor);
    return f.rows > 0 && tensor->ne[1] % f.rows == 0 && ggml_is_contiguous(tensor) &&
           !tensor->view_src;
}

static bool is_repacked_view(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor) {
    return tensor->view_src && can_repack(buft, tensor->view_src);
}

// Repacked weights are set and read as a whole, as rows are woven into one another.
static size_t type_access_unit(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor) {
    return can_repack(buft, tensor) || is_repacked_view(buft, tensor) ? SIZE_MAX : 1;
}

// --- buffers -------------------------------------------------------------------------------------

static void buffer_free(ggml_backend_buffer_t buffer) {
    ggml_aligned_free(buffer->context, buffer->size);
    ggml_sdk_buffer_free(buffer);
}

static void *buffer_base(ggml_backend_buffer_t buffer) {
    return buffer->context;
}

// Parts of rows that lie side by side have no addresses of their own.
static int32_t refuse_view(void) {
    return ggml_sdk_fail(GGML_HOST_UNSUPPORTED,
                         "a view of weights that were repacked can't be read or written");
}

// Repacks what is set: rows side by side share memory as long as themselves.
static int32_t buffer_set(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                          const void *data, size_t offset, size_t size) {
    if (is_repacked_view(buffer->buft, tensor)) return refuse_view();
    if (!can_repack(buffer->buft, tensor)) {
        memcpy((char *)tensor->data + offset, data, size);
        return GGML_HOST_OK;
    }
    const struct repacked_format f = format_of(buffer->buft, tensor);
    for (int64_t row = 0; row < ggml_nrows(tensor); row += f.rows) {
        const size_t at = (size_t)row * tensor->nb[1];
        repacked_write(f, (const char *)data + at, tensor->nb[1], tensor->ne[0] / f.size,
                       (char *)tensor->data + at);
    }
    return GGML_HOST_OK;
}

// The way back: what is read is what was set, to the byte.
static int32_t buffer_get(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor,
                          void *data, size_t offset, size_t size) {
    if (is_repacked_view(buffer->buft, tensor)) return refuse_view();
    if (!can_repack(buffer->buft, tensor)) {
        memcpy(data, (const char *)tensor->data + offset, size);
        return GGML_HOST_OK;
    }
    const struct repacked_format f = format_of(buffer->buft, tensor);
    char *to = data;
    for (int64_t row = 0; row < ggml_nrows(tensor); ++row) {
        const char *all = (const char *)tensor->data + (size_t)(row - row % f.rows) * tensor->nb[1];
        repacked_read(f, all, (int)(row % f.rows), tensor->ne[0] / f.size,
                      to + (size_t)row * tensor->nb[1]);
    }
    return GGML_HOST_OK;
}

static int32_t buffer_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    memset(buffer->context, value, buffer->size);
    return GGML_HOST_OK;
}

static const struct ggml_buffer_table buffer_table = {
    .size = sizeof(buffer_table),
    .free = buffer_free,
    .get_base = buffer_base,
    .set_tensor = buffer_set,
    .get_tensor = buffer_get,
    .clear = buffer_clear,
};

static int32_t type_alloc_buffer(ggml_backend_buffer_type_t buft, size_t size,
                                 ggml_backend_buffer_t *out_buffer) {
    void *memory = ggml_aligned_malloc(size);
    *out_buffer = memory ? ggml_sdk_buffer_new(buft, &buffer_table, memory, size) : NULL;
    if (*out_buffer) return GGML_HOST_OK;
    ggml_aligned_free(memory, size);
    return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for repacked weights");
}

// --- the type ------------------------------------------------------------------------------------

const struct ggml_buffer_type_table cpu_repacked_table = {
    .size = sizeof(cpu_repacked_table),
    .get_name = type_name,
    .alloc_buffer = type_alloc_buffer,
    .get_alignment = type_alignment,
    .get_access_unit = type_access_unit,
};

// Tensors in this memory that were not repacked are nothing that a kernel takes. A view that has no
// buffer yet lies where its owner does.
enum cpu_layout cpu_layout_of(const struct ggml_tensor *tensor) {
    const struct ggml_tensor *owner = tensor->view_src ? tensor->view_src : tensor;
    const ggml_backend_buffer_t buffer = tensor->buffer ? tensor->buffer : owner->buffer;
    if (!buffer || !buffer->buft || buffer->buft->table != &cpu_repacked_table)
        return CPU_LAYOUT_PLAIN;
    return can_repack(buffer->buft, tensor) ? CPU_LAYOUT_REPACKED : CPU_LAYOUT_OTHER;
}
