// SPDX-License-Identifier: MIT
// Labels are safe for objects of broken plugins: a missing table entry or name reads as
// "unnamed".
#include <stdatomic.h>
#include <stdio.h>

#include "device/check.h"

#include "plugin/registry/live.h"

// "unnamed" for what is missing.
static const char *named(const char *name) {
    return name && name[0] ? name : "unnamed";
}

const char *device_label(ggml_backend_dev_t device) {
    if (!device) return "NULL";
    return named(device->table && device->table->get_name ? device->table->get_name(device) : NULL);
}

const char *device_buft_label(ggml_backend_buffer_type_t buft) {
    if (!buft) return "NULL";
    return named(buft->table && buft->table->get_name ? buft->table->get_name(buft) : NULL);
}

const char *device_stream_label(ggml_backend_t backend) {
    if (!backend) return "NULL";
    if (backend->device) return device_label(backend->device);
    return named(backend->table->get_name ? backend->table->get_name(backend) : NULL);
}

bool device_refuse_null(const char *function, const char *what) {
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the %s is NULL", function, what);
    return false;
}

bool device_refuse_buft(const char *function, ggml_backend_buffer_type_t buft) {
    if (!buft) return device_refuse_null(function, "buffer type");
    ggml_fail(GGML_HOST_INVALID_ARGUMENT,
              "%s: the buffer type is none of this library's: programs that make their own are "
              "compiled with its headers, not with ggml's private ones",
              function);
    return false;
}

bool device_offers(bool present, const char *function, const char *label, const char *entry) {
    if (present) return true;
    ggml_fail(GGML_HOST_UNSUPPORTED, "%s: %s does not offer %s", function, label, entry);
    return false;
}

void device_fail_default(unsigned long errors_before, enum ggml_host_status status,
                         const char *format, ...) {
    if (ggml_fail_count() != errors_before || ggml_fail_as_noted()) return;
    va_list args;
    va_start(args, format);
    ggml_fail_v(status, format, args);
    va_end(args);
}

// Texts by number, from the list of statuses; NULL for a number without a status.
static const char *const status_texts[] = {
#define GGML_HOST_STATUS_ROW(number, name, text) [number] = text,
#include "status_list.inl"
};

static const char *status_text(int32_t status) {
    const size_t n = sizeof(status_texts) / sizeof(status_texts[0]);
    return status >= 0 && (size_t)status < n ? status_texts[status] : NULL;
}

enum ggml_host_status device_check_status(int32_t status, unsigned long errors_before,
                                          const char *function, const char *label) {
    if (status == GGML_HOST_OK) return GGML_HOST_OK;
    if (!status_text(status)) {
        return ggml_fail(GGML_HOST_BAD_PLUGIN, "%s: %s answered the unknown status %d", function,
                         label, (int)status);
    }
    const enum ggml_host_status known = (enum ggml_host_status)status;
    device_fail_default(errors_before, known, "%s: %s: %s, without saying more", function, label,
                        status_text(status));
    return known;
}

// As device_check_status(), but with the caller's text where the plugin left no message.
void device_failed_to(int32_t status, unsigned long errors_before, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (!status_text(status)) {
        ggml_fail(GGML_HOST_BAD_PLUGIN, "%s: unknown status %d", text, (int)status);
    } else {
        device_fail_default(errors_before, (enum ggml_host_status)status, "%s", text);
    }
}

// ggml's API has fewer statuses: everything but lack of memory and an abort is a failure.
enum ggml_status device_graph_status(enum ggml_host_status status) {
    switch (status) {
    case GGML_HOST_OK: return GGML_STATUS_SUCCESS;
    case GGML_HOST_OUT_OF_MEMORY: return GGML_STATUS_ALLOC_FAILED;
    case GGML_HOST_ABORTED: return GGML_STATUS_ABORTED;
    default: return GGML_STATUS_FAILED;
    }
}

// Members that the wrappers use without checking them again.
bool device_buffer_usable(const char *function, const char *label, ggml_backend_buffer_t buffer) {
    const struct ggml_buffer_table *table = buffer ? buffer->table : NULL;
    if (table && table->size >= offsetof(struct ggml_buffer_table, reserved) && table->free &&
        table->get_base && buffer->buft && buffer->buft->table)
        return true;
    ggml_fail(GGML_HOST_BAD_PLUGIN, "%s: %s made %s", function, label,
              buffer ? "a buffer without a type or table, or with one that lacks free or get_base"
                     : "no buffer, and says that it did");
    return false;
}

// `slot` is the member of the new object that records for which device it was counted.
void device_live_transfer(void **slot, ggml_backend_dev_t device) {
    if (slot && !*slot) {
        *slot = device;
    } else {
        host_live_remove(device);
    }
}

// Whether addresses of the type's buffers are those of host memory. So are a CPU device's where it
// arranges bytes in its own way, and therefore does not say that others may read them.
static bool is_in_host_memory(ggml_backend_buffer_type_t buft) {
    ggml_backend_dev_t device = buft->device;
    if (buft->table->is_host && buft->table->is_host(buft)) return true;
    return device && device->table && device->table->get_type &&
           device->table->get_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU;
}

// Address range of a buffer in host memory, 0 and 0 for others. A range that would wrap around
// counts as none.
static void find_range(struct device_host_range *range, ggml_backend_buffer_t buffer) {
    ggml_backend_buffer_type_t buft = buffer->buft;
    *range = (struct device_host_range){.buffer = buffer};
    if (!buft || !is_in_host_memory(buft)) return;
    const void *base = buffer->table->get_base ? buffer->table->get_base(buffer) : NULL;
    if (!base || buffer->size > UINTPTR_MAX - (uintptr_t)base) return;
    range->begin = (uintptr_t)base;
    range->end = (uintptr_t)base + buffer->size;
}

// Bytes from the first to the last element, as ggml_nbytes(), but SIZE_MAX instead of wrapping
// around: extents and strides may have been written by a client.
static size_t span_of(const struct ggml_tensor *tensor) {
    const size_t block = (size_t)ggml_blck_size(tensor->type);
    size_t bytes = ggml_type_size(tensor->type), more;
    if (ggml_is_empty(tensor) || block == 0) return 0;
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        size_t steps = (size_t)tensor->ne[i] - 1;
        if (i == 0) steps /= block;
        if (__builtin_mul_overflow(steps, tensor->nb[i], &more) ||
            __builtin_add_overflow(bytes, more, &bytes)) {
            return SIZE_MAX;
        }
    }
    return bytes;
}

// O(1): compared with the viewed tensor only, whose own range is checked against its buffer.
bool device_is_inside(const struct ggml_tensor *tensor) {
    if (!tensor->view_src) return true;
    const size_t room = span_of(tensor->view_src), bytes = span_of(tensor);
    return bytes == 0 || (tensor->view_offs <= room && bytes <= room - tensor->view_offs);
}

bool device_is_in_buffer(const struct ggml_tensor *tensor, struct device_host_range *range) {
    ggml_backend_buffer_t buffer = device_tensor_buffer(tensor);
    if (!buffer || !tensor->data) return true;
    if (buffer != range->buffer) find_range(range, buffer);
    if (range->end == 0) return true;
    const size_t bytes = span_of(tensor);
    const uintptr_t data = (uintptr_t)tensor->data;
    return bytes == 0 || (data >= range->begin && data <= range->end && bytes <= range->end - data);
}

bool device_buft_is_meta(ggml_backend_buffer_type_t buft) {
    ggml_backend_dev_t device = buft ? buft->device : NULL;
    return device && device->table && device->table->get_type &&
           device->table->get_type(device) == GGML_BACKEND_DEVICE_TYPE_META;
}

// Set once, when the first device of that kind is made.
static _Atomic(const struct device_meta_functions *) meta_functions;

const struct device_meta_functions *device_meta_functions(void) {
    return atomic_load(&meta_functions);
}

void device_set_meta_functions(const struct device_meta_functions *functions) {
    atomic_store(&meta_functions, functions);
}
