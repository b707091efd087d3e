// SPDX-License-Identifier: MIT
// The skeleton of a plugin, to be cloned: it loads and shows one device that computes nothing. Each
// "replace" says what to put there; docs/writing-a-plugin.md is the walk through.
#include "ggml-impl.h"
#include "ggml-plugin.h"
#include "ggml-shape.h"

// --- stream --------------------------------------------------------------------------------------

// replace: what a queue of work of your hardware needs; reached through backend->context.
struct null_stream {
    size_t n_graphs;
};

static const char *stream_name(ggml_backend_t backend) {
    (void)backend;
    return "null";
}

static void stream_free(ggml_backend_t backend) {
    ggml_aligned_free(backend->context, sizeof(struct null_stream));
    ggml_aligned_free(backend, sizeof(*backend));
}

// replace: run the nodes in order. Nodes that move no data and those without the flag COMPUTE are
// skipped; the host sends only nodes that supports_op accepted.
static int32_t stream_graph_compute(ggml_backend_t backend, const struct ggml_graph *graph) {
    struct null_stream *stream = backend->context;
    for (int i = 0; i < graph->n_nodes; ++i) {
        const struct ggml_tensor *node = graph->nodes[i];
        if (ggml_op_is_empty(node->op) || !(node->flags & GGML_TENSOR_FLAG_COMPUTE)) continue;
        return ggml_sdk_fail(GGML_HOST_UNSUPPORTED, "null: it computes nothing");
    }
    ++stream->n_graphs;
    return GGML_HOST_OK;
}

// replace: add set_tensor_async, synchronize ... when work can overlap with the host. Entries that
// are left out mean "not supported", and the host does without.
static const struct ggml_stream_table stream_table = {
    .size = sizeof(struct ggml_stream_table),
    .guid = {0x6e, 0x75, 0x6c, 0x6c, 0x2d, 0x67, 0x67, 0x6d, 0x6c, 0x2d, 0x68, 0x6f, 0x73, 0x74,
             0x00, 0x01}, // replace: random bytes of your own
    .get_name = stream_name,
    .free = stream_free,
    .graph_compute = stream_graph_compute,
};

// --- device --------------------------------------------------------------------------------------

static const char *device_name(ggml_backend_dev_t device) {
    (void)device;
    return "NULL0";
}

static const char *device_description(ggml_backend_dev_t device) {
    (void)device;
    return "Skeleton device that computes nothing";
}

// replace: bytes of the device's memory. Must not create a compute context: it is called for
// listing.
static void device_memory(ggml_backend_dev_t device, size_t *free, size_t *total) {
    (void)device;
    *free = 0;
    *total = 0;
}

// replace: GPU for one with memory of its own, IGPU for one that shares the host's.
static enum ggml_backend_dev_type device_type(ggml_backend_dev_t device) {
    (void)device;
    return GGML_BACKEND_DEVICE_TYPE_ACCEL;
}

// replace: device_id is the PCI address "dddd:bb:dd.f" if there is one; caps say what the interface
// tables of this file really do.
static void device_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *props) {
    props->name = device_name(device);
    props->description = device_description(device);
    device_memory(device, &props->memory_free, &props->memory_total);
    props->type = device_type(device);
}

static int32_t device_init_backend(ggml_backend_dev_t device, const char *params,
                                   ggml_backend_t *out_stream) {
    (void)params;
    struct ggml_backend *backend = ggml_aligned_malloc(sizeof(*backend));
    struct null_stream *stream = ggml_aligned_malloc(sizeof(*stream));
    if (!backend || !stream) goto fail;
    memset(backend, 0, sizeof(*backend));
    memset(stream, 0, sizeof(*stream));
    backend->table = &stream_table;
    backend->device = device;
    backend->context = stream;
    *out_stream = backend;
    return GGML_HOST_OK;
fail:
    ggml_aligned_free(stream, sizeof(*stream));
    ggml_aligned_free(backend, sizeof(*backend));
    return GGML_HOST_OUT_OF_MEMORY;
}

// replace: a buffer type of the device's own memory (struct ggml_backend_buffer_type, made once). A
// device that works on host memory keeps this: the host's own buffer type, which the SDK asks the
// host for.
static ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t device) {
    (void)device;
    return ggml_backend_cpu_buffer_type();
}

// replace: true for the ops, types and layouts that graph_compute runs, and for those that only
// describe a view. The tensors may have no buffers yet. A node that means more than the headers
// know that you build with gets false: that line stays.
static bool device_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    (void)device;
    if (!ggml_node_is_known(op)) return false;
    return ggml_op_is_empty(op->op);
}

// replace: true for your own buffer types as well, if you have any.
static bool device_supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t buft) {
    return buft == device_buffer_type(device);
}

static const struct ggml_device_table device_table = {
    .size = sizeof(device_table),
    .get_name = device_name,
    .get_description = device_description,
    .get_memory = device_memory,
    .get_type = device_type,
    .get_props = device_props,
    .init_backend = device_init_backend,
    .get_buffer_type = device_buffer_type,
    .supports_op = device_supports_op,
    .supports_buft = device_supports_buft,
};

// --- backend -------------------------------------------------------------------------------------

static struct ggml_backend_reg null_reg;
static struct ggml_backend_device null_device = {
    // replace: one per device that is found
    .table = &device_table,
    .reg = &null_reg,
};

static const char *reg_name(ggml_backend_reg_t reg) {
    (void)reg;
    return "NULL";
}

static size_t reg_device_count(ggml_backend_reg_t reg) {
    (void)reg;
    return 1;
}

static ggml_backend_dev_t reg_device(ggml_backend_reg_t reg, size_t index) {
    (void)reg;
    (void)index;
    return &null_device;
}

static const struct ggml_backend_table reg_table = {
    .size = sizeof(reg_table),
    .get_name = reg_name,
    .get_device_count = reg_device_count,
    .get_device = reg_device,
};

static struct ggml_backend_reg null_reg = {.table = &reg_table};

// replace: open the driver and look for devices. Without any, set the error and return NULL:
// ggml_sdk_fail(GGML_HOST_NO_DEVICE, "no such hardware: ...").
// It can be called again: after the shutdown, or by a second host in the same process, while the
// first one uses the devices.
static ggml_backend_reg_t null_start(void) {
    return &null_reg;
}

// replace: end threads, free everything, close the driver. The library may be unmapped right after.
static void null_shutdown(void) {
}

// replace: the name, a version of your own, and the CPU features that the code of this file is
// compiled for, such as GGML_CPU_BIT(GGML_CPU_X86_64_AVX2).
GGML_PLUGIN_NOTE("null", "", "1.0", 0, 0, 0)
GGML_PLUGIN_ENTRY(null_start, NULL, null_shutdown, NULL)
