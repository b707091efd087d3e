// SPDX-License-Identifier: MIT
// The meta device and its buffer type: the tables, and creation from several devices.
#include <stdio.h>

#include "base/mem.h"
#include "device/check.h"
#include "meta/meta.h"

static const char *buft_name(ggml_backend_buffer_type_t buft);

// The meta device of a buffer type, recognised by its get_name entry; NULL for any other type.
struct meta_device *meta_buft_device(ggml_backend_buffer_type_t buft) {
    return buft && buft->table->get_name == buft_name ? buft->context : NULL;
}

// --- device --------------------------------------------------------------------------------------

// Entries of the device table. The members were checked when the device was made.
static const char *device_name(ggml_backend_dev_t device) {
    return ((struct meta_device *)device->context)->name;
}

// Sums over the members, with saturation.
static void device_memory(ggml_backend_dev_t device, size_t *out_free, size_t *out_total) {
    const struct meta_device *meta = device->context;
    *out_free = *out_total = 0;
    for (size_t j = 0; j < meta->n; ++j) {
        size_t free_bytes, total_bytes;
        ggml_backend_dev_memory(meta->devices[j], &free_bytes, &total_bytes);
        *out_free += MIN(free_bytes, SIZE_MAX - *out_free);
        *out_total += MIN(total_bytes, SIZE_MAX - *out_total);
    }
}

static enum ggml_backend_dev_type device_type(ggml_backend_dev_t device) {
    (void)device;
    return GGML_BACKEND_DEVICE_TYPE_META;
}

// Capabilities are those that all members have.
static void device_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *props) {
    const struct meta_device *meta = device->context;
    props->name = props->description = meta->name;
    props->type = GGML_BACKEND_DEVICE_TYPE_META;
    device_memory(device, &props->memory_free, &props->memory_total);
    props->caps.async = props->caps.mmap_support = true;
    for (size_t j = 0; j < meta->n; ++j) {
        struct ggml_backend_dev_props member;
        ggml_backend_dev_get_props(meta->devices[j], &member);
        props->caps.async = props->caps.async && member.caps.async;
        props->caps.mmap_support = props->caps.mmap_support && member.caps.mmap_support;
    }
}

// A stream of the meta device has one stream on each member.
static int32_t device_init(ggml_backend_dev_t device, const char *params,
                           ggml_backend_t *out_stream) {
    *out_stream = meta_stream_new(device->context, params);
    return *out_stream ? GGML_HOST_OK : ggml_last_status();
}

static ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t device) {
    return &((struct meta_device *)device->context)->buft;
}

// The members' type if they share one: staging memory has to suit each of them. NULL otherwise.
static ggml_backend_buffer_type_t device_host_buffer_type(ggml_backend_dev_t device) {
    const struct meta_device *meta = device->context;
    ggml_backend_buffer_type_t common = ggml_backend_dev_host_buffer_type(meta->devices[0]);
    for (size_t j = 1; j < meta->n; ++j) {
        if (ggml_backend_dev_host_buffer_type(meta->devices[j]) != common) return NULL;
    }
    return common;
}

// The members compute slices of the node, with the same operation and types.
static bool device_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    const struct meta_device *meta = device->context;
    for (size_t j = 0; j < meta->n; ++j) {
        if (!ggml_backend_dev_supports_op(meta->devices[j], op)) return false;
    }
    return true;
}

// Meta devices over the same members in the same order read each other's memory.
static bool device_supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t buft) {
    const struct meta_device *meta = device->context;
    const struct meta_device *other = meta_buft_device(buft);
    return other && other->n == meta->n &&
           memcmp(other->devices, meta->devices, meta->n * sizeof(meta->devices[0])) == 0;
}

static const struct ggml_device_table device_table = {
    .size = sizeof(device_table),
    .get_name = device_name,
    .get_description = device_name,
    .get_memory = device_memory,
    .get_type = device_type,
    .get_props = device_props,
    .init_backend = device_init,
    .get_buffer_type = device_buffer_type,
    .get_host_buffer_type = device_host_buffer_type,
    .supports_op = device_supports_op,
    .supports_buft = device_supports_buft,
};

// --- buffer type ---------------------------------------------------------------------------------

static const char *buft_name(ggml_backend_buffer_type_t buft) {
    return ((struct meta_device *)buft->context)->name;
}

static ggml_backend_buffer_type_t member_type(const struct meta_device *meta, size_t j) {
    return ggml_backend_dev_buffer_type(meta->devices[j]);
}

// The largest of the members' alignments; they are powers of two, so it suits all.
static size_t buft_alignment(ggml_backend_buffer_type_t buft) {
    const struct meta_device *meta = buft->context;
    size_t alignment = 1;
    for (size_t j = 0; j < meta->n; ++j) {
        alignment = MAX(alignment, ggml_backend_buft_get_alignment(member_type(meta, j)));
    }
    return alignment;
}

// Buffers for graphs are as large on every member, so the smallest limit counts.
static size_t buft_max_size(ggml_backend_buffer_type_t buft) {
    const struct meta_device *meta = buft->context;
    size_t size = SIZE_MAX;
    for (size_t j = 0; j < meta->n; ++j) {
        // Room to align the base.
        const size_t alignment = ggml_backend_buft_get_alignment(member_type(meta, j));
        const size_t limit = ggml_backend_buft_get_max_size(member_type(meta, j));
        size = MIN(size, limit > 2 * alignment ? limit - alignment : limit);
    }
    return size;
}

// The largest of the members' sizes for the whole tensor, though each holds a part only.
static size_t buft_alloc_size(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor) {
    const struct meta_device *meta = buft->context;
    size_t size = 0;
    for (size_t j = 0; j < meta->n; ++j) {
        size = MAX(size, ggml_backend_buft_get_alloc_size(member_type(meta, j), tensor));
    }
    return size;
}

static const struct ggml_buffer_type_table buft_table = {
    .size = sizeof(buft_table),
    .get_name = buft_name,
    .alloc_buffer = meta_buffer_alloc,
    .get_alignment = buft_alignment,
    .get_max_size = buft_max_size,
    .get_alloc_size = buft_alloc_size,
};

// --- making one ----------------------------------------------------------------------------------

static struct meta_device *first_device; // of the list; with the lock of all meta devices

// "Meta(A,B)" of the members' names; the caller frees it. NULL without memory.
static char *make_name(ggml_backend_dev_t *devs, size_t n) {
    size_t size = sizeof("Meta()");
    for (size_t j = 0; j < n; ++j)
        size += strlen(ggml_backend_dev_name(devs[j])) + 1;
    char *name = ggml_mem_alloc(size);
    if (!name) return NULL;
    size_t used = (size_t)snprintf(name, size, "Meta(");
    for (size_t j = 0; j < n; ++j) {
        used += (size_t)snprintf(name + used, size - used, "%s%s", j > 0 ? "," : "",
                                 ggml_backend_dev_name(devs[j]));
    }
    snprintf(name + used, size - used, ")");
    return name;
}

// A device for the same members, callback and user data is made once. With the lock held.
static struct meta_device *find_device(ggml_backend_dev_t *devs, size_t n,
                                       ggml_backend_meta_get_split_state_t get_split_state,
                                       void *user_data) {
    struct meta_device *meta = first_device;
    for (; meta; meta = meta->next) {
        if (meta->n == n && meta->get_split_state == get_split_state &&
            meta->user_data == user_data && memcmp(meta->devices, devs, n * sizeof(devs[0])) == 0) {
            break;
        }
    }
    return meta;
}

static const struct device_meta_functions functions = {
    .ctx_alloc = meta_buffer_alloc_ctx,
    .set_usage = meta_buffer_set_usage,
};

// Devices live as long as the process: they are never freed. With the lock held.
static struct meta_device *make_device(ggml_backend_dev_t *devs, size_t n,
                                       ggml_backend_meta_get_split_state_t get_split_state,
                                       void *user_data) {
    struct meta_device *meta = ggml_mem_calloc(1, sizeof(*meta));
    if (!meta) return NULL;
    meta->name = make_name(devs, n);
    if (!meta->name) {
        ggml_mem_free(meta);
        return NULL;
    }
    meta->base = (struct ggml_backend_device){.table = &device_table, .context = meta};
    meta->buft = (struct ggml_backend_buffer_type){
        .table = &buft_table, .device = &meta->base, .context = meta};
    meta->n = n;
    memcpy(meta->devices, devs, n * sizeof(devs[0]));
    meta->get_split_state = get_split_state;
    meta->user_data = user_data;
    meta->next = first_device;
    first_device = meta;
    device_set_meta_functions(&functions);
    return meta;
}

// Members must exist, and meta devices do not nest.
static bool devices_given(ggml_backend_dev_t *devs, size_t n_devs) {
    for (size_t j = 0; j < n_devs; ++j) {
        if (!devs[j] || ggml_backend_dev_type(devs[j]) == GGML_BACKEND_DEVICE_TYPE_META)
            return false;
    }
    return true;
}

// Same arguments, same device: backends compare devices by address.
ggml_backend_dev_t ggml_backend_meta_device(ggml_backend_dev_t *devs, size_t n_devs,
                                            ggml_backend_meta_get_split_state_t get_split_state,
                                            void *get_split_state_ud) {
    if (!devs || n_devs < 1 || n_devs > META_MAX_DEVICES || !get_split_state ||
        !devices_given(devs, n_devs)) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "%s: needs 1 to %d devices that are no meta devices, and a callback", __func__,
                  META_MAX_DEVICES);
        return NULL;
    }
    meta_lock();
    struct meta_device *meta = find_device(devs, n_devs, get_split_state, get_split_state_ud);
    if (!meta) meta = make_device(devs, n_devs, get_split_state, get_split_state_ud);
    meta_unlock();
    if (!meta) ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory for the device", __func__);
    return meta ? &meta->base : NULL;
}
