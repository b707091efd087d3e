// SPDX-License-Identifier: MIT
// A plugin that claims every operation whose number its headers have, and looks at nothing else of
// a node. Built twice: against the frozen headers of 1.0 and against those whose lists have grown.
// It needs neither the helper library nor the host's symbols.
#define GGML_PLUGIN_BUILD
#include <stdlib.h>
#include <string.h>

#include "ggml-plugin.h"

GGML_PLUGIN_NOTE(NAIVE_NAME, "", "1.0", 0, 0, 0)

static const struct ggml_host_table *attached;

static const char *name(ggml_backend_dev_t device) {
    (void)device;
    return NAIVE_NAME;
}

static void memory(ggml_backend_dev_t device, size_t *free, size_t *total) {
    (void)device;
    *free = *total = 0;
}

static enum ggml_backend_dev_type type(ggml_backend_dev_t device) {
    (void)device;
    return NAIVE_TYPE;
}

static void props(ggml_backend_dev_t device, struct ggml_backend_dev_props *out_props) {
    out_props->name = name(device);
    out_props->description = name(device);
    out_props->type = type(device);
}

static const char *stream_name(ggml_backend_t stream) {
    (void)stream;
    return NAIVE_NAME;
}

static void stream_free(ggml_backend_t stream) {
    free(stream);
}

static int32_t compute(ggml_backend_t stream, const struct ggml_graph *graph) {
    (void)stream;
    (void)graph;
    return GGML_HOST_OK;
}

static const struct ggml_stream_table stream_table = {
    .size = sizeof(struct ggml_stream_table),
    .guid = {'g', 'r', 'o', 'w', 'n'},
    .get_name = stream_name,
    .free = stream_free,
    .graph_compute = compute,
};

static int32_t init_backend(ggml_backend_dev_t device, const char *params,
                            ggml_backend_t *out_stream) {
    (void)params;
    struct ggml_backend *stream = calloc(1, sizeof(*stream));
    if (!stream) return GGML_HOST_OUT_OF_MEMORY;
    stream->table = &stream_table;
    stream->device = device;
    *out_stream = stream;
    return GGML_HOST_OK;
}

static ggml_backend_buffer_type_t buffer_type(ggml_backend_dev_t device) {
    (void)device;
    const struct ggml_extension_host_memory *host_memory =
        attached->get_extension(attached, GGML_EXTENSION_HOST_MEMORY, 1);
    return host_memory ? host_memory->buffer_type(attached) : NULL;
}

// A buffer type for questions alone: there is no memory in it.
static struct ggml_backend_device plugin_device;

static const char *buft_name(ggml_backend_buffer_type_t buft) {
    (void)buft;
    return NAIVE_NAME;
}

static size_t buft_alignment(ggml_backend_buffer_type_t buft) {
    (void)buft;
    return 32;
}

// Single numbers of 4 bytes, if the headers have the type; nothing else is asked about.
static size_t buft_alloc_size(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor) {
    (void)buft;
    return (int)tensor->type < GGML_TYPE_COUNT ? 4 * (size_t)tensor->ne[0] : 0;
}

static const struct ggml_buffer_type_table buft_table = {
    .size = sizeof(buft_table),
    .get_name = buft_name,
    .get_alignment = buft_alignment,
    .get_alloc_size = buft_alloc_size,
};

static struct ggml_backend_buffer_type questions = {
    .table = &buft_table,
    .device = &plugin_device,
};

static ggml_backend_buffer_type_t host_buffer_type(ggml_backend_dev_t device) {
    (void)device;
    return &questions;
}

static bool supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    (void)device;
    return (int)op->op < GGML_OP_COUNT;
}

static bool supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t buft) {
    return buft == buffer_type(device);
}

static const char *reg_name(ggml_backend_reg_t reg) {
    (void)reg;
    return NAIVE_NAME;
}

static size_t device_count(ggml_backend_reg_t reg) {
    (void)reg;
    return 1;
}

static struct ggml_backend_reg plugin_reg;
static const struct ggml_device_table device_table = {
    .size = sizeof(device_table),
    .get_name = name,
    .get_description = name,
    .get_memory = memory,
    .get_type = type,
    .get_props = props,
    .init_backend = init_backend,
    .get_buffer_type = buffer_type,
    .get_host_buffer_type = host_buffer_type,
    .supports_op = supports_op,
    .supports_buft = supports_buft,
};

static struct ggml_backend_device plugin_device = {
    .table = &device_table,
    .reg = &plugin_reg,
};

static ggml_backend_dev_t get_device(ggml_backend_reg_t reg, size_t index) {
    (void)reg;
    return index == 0 ? &plugin_device : NULL;
}

static const struct ggml_backend_table reg_table = {
    .size = sizeof(reg_table),
    .get_name = reg_name,
    .get_device_count = device_count,
    .get_device = get_device,
};

static struct ggml_backend_reg plugin_reg = {.table = &reg_table};

static const struct ggml_plugin_table table = {
    .size = sizeof(table),
    .contract_major = GGML_CONTRACT_MAJOR,
    .contract_minor = GGML_CONTRACT_MINOR,
    .reg = &plugin_reg,
};

GGML_PLUGIN_EXPORT int32_t ggml_backend_init(const struct ggml_host_table *host,
                                             const struct ggml_plugin_table **out_plugin);
GGML_PLUGIN_EXPORT int32_t ggml_backend_init(const struct ggml_host_table *host,
                                             const struct ggml_plugin_table **out_plugin) {
    attached = host;
    *out_plugin = &table;
    return GGML_HOST_OK;
}
