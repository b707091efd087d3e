// SPDX-License-Identifier: MIT
// Tables of devices, streams and buffers whose entries return at once. Nothing is mapped behind
// their addresses: reading them would crash.
#include "idle.h"

#include <stdint.h>
#include <stdio.h>

#include "ggml-plugin.h"

struct idle_device {
    struct ggml_backend_device device;
    struct ggml_backend_buffer_type buft;
    struct ggml_backend stream;
    struct ggml_stream_table stream_table;
    char name[16];
};

static struct idle_device devices[IDLE_DEVICES];

static const char *device_name(ggml_backend_dev_t device) {
    return ((struct idle_device *)device->context)->name;
}

// Device 0 is the CPU, which a scheduler wants last; the others are GPUs.
static enum ggml_backend_dev_type device_type(ggml_backend_dev_t device) {
    return device->context == &devices[0] ? GGML_BACKEND_DEVICE_TYPE_CPU
                                          : GGML_BACKEND_DEVICE_TYPE_GPU;
}

static ggml_backend_buffer_type_t device_buft(ggml_backend_dev_t device) {
    return &((struct idle_device *)device->context)->buft;
}

static bool device_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    return device && op;
}

static bool device_supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t buft) {
    return buft->device == device;
}

static const char *buft_name(ggml_backend_buffer_type_t buft) {
    return device_name(buft->device);
}

static size_t buft_alignment(ggml_backend_buffer_type_t buft) {
    return buft ? IDLE_ALIGNMENT : 0;
}

static void *buffer_base(ggml_backend_buffer_t buffer) {
    return buffer->context;
}

// Addresses only: nothing is ever read or written.
static int32_t buft_alloc(ggml_backend_buffer_type_t buft, size_t size,
                          ggml_backend_buffer_t *out_buffer) {
    static const struct ggml_buffer_table table = {
        .size = sizeof(table), .free = ggml_sdk_buffer_free, .get_base = buffer_base};
    *out_buffer = ggml_sdk_buffer_new(buft, &table, (void *)((uintptr_t)1 << 40), size);
    return *out_buffer ? GGML_HOST_OK : GGML_HOST_OUT_OF_MEMORY;
}

static const struct ggml_buffer_type_table buft_table = {
    .size = sizeof(buft_table),
    .get_name = buft_name,
    .alloc_buffer = buft_alloc,
    .get_alignment = buft_alignment,
};

static const char *stream_name(ggml_backend_t stream) {
    return device_name(stream->device);
}

static int32_t stream_compute(ggml_backend_t stream, const struct ggml_graph *graph) {
    return stream && graph ? GGML_HOST_OK : GGML_HOST_FAILED;
}

static int32_t stream_copy(ggml_backend_t from, ggml_backend_t to, const struct ggml_tensor *src,
                           struct ggml_tensor *dst) {
    return from && to && src && dst ? GGML_HOST_OK : GGML_HOST_FAILED;
}

// Not constant: tests change what it supports.
static struct ggml_device_table device_table = {
    .size = sizeof(device_table),
    .get_name = device_name,
    .get_description = device_name,
    .get_type = device_type,
    .get_buffer_type = device_buft,
    .supports_op = device_supports_op,
    .supports_buft = device_supports_buft,
};

void idle_support_with(bool (*supports_op)(ggml_backend_dev_t, const struct ggml_tensor *)) {
    device_table.supports_op = supports_op ? supports_op : device_supports_op;
}

// Each stream has a table of its own, so that tests can change one entry of one.
static void make_device(struct idle_device *idle, int i) {
    snprintf(idle->name, sizeof(idle->name), "IDLE%d", i);
    idle->device.context = idle;
    idle->device.table = &device_table;
    idle->buft.device = &idle->device;
    idle->buft.table = &buft_table;
    idle->stream.device = &idle->device;
    idle->stream.table = &idle->stream_table;
    idle->stream_table = (struct ggml_stream_table){
        .size = sizeof(struct ggml_stream_table),
        .get_name = stream_name,
        .graph_compute = stream_compute,
        .cpy_tensor_async = stream_copy,
    };
}

// Made at first use, by one thread; nothing frees it.
static struct idle_device *idle_device(int i) {
    if (!devices[i].device.context) make_device(&devices[i], i);
    return &devices[i];
}

ggml_backend_t idle_stream(int i) {
    return &idle_device(i)->stream;
}

void idle_optimize_with(int i, int32_t (*optimize)(ggml_backend_t, struct ggml_graph *)) {
    idle_device(i)->stream_table.graph_optimize = optimize;
}

void idle_compute_with(int i, int32_t (*compute)(ggml_backend_t, const struct ggml_graph *)) {
    idle_device(i)->stream_table.graph_compute = compute ? compute : stream_compute;
}

ggml_backend_buffer_type_t idle_memory(int i) {
    return &idle_device(i)->buft;
}
