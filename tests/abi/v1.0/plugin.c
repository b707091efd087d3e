// SPDX-License-Identifier: MIT
// A plugin of contract 1.0, built against the frozen headers beside it and without the helper
// library: it has to load in every later 1.x host.
#define GGML_PLUGIN_BUILD
#include "ggml-plugin.h"

GGML_PLUGIN_NOTE("frozen", "v1.0", "1.0", 0, 0, 0)

static const struct ggml_host_table *attached;

static const char *name(ggml_backend_dev_t device) {
    (void)device;
    return "FROZEN0";
}

static void memory(ggml_backend_dev_t device, size_t *free, size_t *total) {
    (void)device;
    *free = *total = 0;
}

static enum ggml_backend_dev_type type(ggml_backend_dev_t device) {
    (void)device;
    return GGML_BACKEND_DEVICE_TYPE_ACCEL;
}

static void props(ggml_backend_dev_t device, struct ggml_backend_dev_props *out_props) {
    out_props->name = name(device);
    out_props->description = name(device);
    out_props->type = type(device);
}

static int32_t init_backend(ggml_backend_dev_t device, const char *params,
                            ggml_backend_t *out_stream) {
    (void)out_stream;
    (void)device;
    (void)params;
    attached->set_error(attached, GGML_HOST_UNSUPPORTED, "FROZEN0 has no streams");
    return GGML_HOST_UNSUPPORTED;
}

static ggml_backend_buffer_type_t buffer_type(ggml_backend_dev_t device) {
    (void)device;
    const struct ggml_extension_host_memory *host_memory =
        attached->get_extension(attached, GGML_EXTENSION_HOST_MEMORY, 1);
    return host_memory ? host_memory->buffer_type(attached) : NULL;
}

static bool supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    (void)device;
    switch (op->op) {
    case GGML_OP_NONE:
    case GGML_OP_RESHAPE:
    case GGML_OP_VIEW:
    case GGML_OP_PERMUTE:
    case GGML_OP_TRANSPOSE: return true;
    default: return false;
    }
}

static bool supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t buft) {
    return buft == buffer_type(device);
}

static const char *reg_name(ggml_backend_reg_t reg) {
    (void)reg;
    return "FROZEN";
}

static size_t device_count(ggml_backend_reg_t reg) {
    (void)reg;
    return 1;
}

static struct ggml_backend_reg frozen_reg;
static const struct ggml_device_table device_table = {
    .size = sizeof(device_table),
    .get_name = name,
    .get_description = name,
    .get_memory = memory,
    .get_type = type,
    .get_props = props,
    .init_backend = init_backend,
    .get_buffer_type = buffer_type,
    .supports_op = supports_op,
    .supports_buft = supports_buft,
};

static struct ggml_backend_device frozen_device = {
    .table = &device_table,
    .reg = &frozen_reg,
};

static ggml_backend_dev_t get_device(ggml_backend_reg_t reg, size_t index) {
    (void)reg;
    return index == 0 ? &frozen_device : NULL;
}

static const struct ggml_backend_table reg_table = {
    .size = sizeof(reg_table),
    .get_name = reg_name,
    .get_device_count = device_count,
    .get_device = get_device,
};

static struct ggml_backend_reg frozen_reg = {.table = &reg_table};

static const struct ggml_plugin_table table = {
    .size = sizeof(table),
    .contract_major = GGML_CONTRACT_MAJOR,
    .contract_minor = GGML_CONTRACT_MINOR,
    .reg = &frozen_reg,
};

GGML_PLUGIN_EXPORT int32_t ggml_backend_init(const struct ggml_host_table *host,
                                             const struct ggml_plugin_table **out_plugin);
GGML_PLUGIN_EXPORT int32_t ggml_backend_init(const struct ggml_host_table *host,
                                             const struct ggml_plugin_table **out_plugin) {
    attached = host;
    *out_plugin = &table;
    return GGML_HOST_OK;
}
