// SPDX-License-Identifier: MIT
// The table of the one device. The processor's name is read once, the memory whenever it is asked
// for.
#include "runtime/device.h"

#include <pthread.h>
#include <stdio.h>

#include "base/platform.h"
#include "base/threadpool.h"
#include "base/util.h"
#include "runtime/cpu_api.h"
#include "runtime/kernel_list.h"
#include "runtime/level.h"
#include "runtime/plan.h"
#include "runtime/stream.h"
#include "types/repacked.h"

static const char *device_name(ggml_backend_dev_t dev) {
    (void)dev;
    return "CPU";
}

static char description[128];

// Reads a file on some systems, thus once.
static void read_description(void) {
    if (!cpu_model(description, sizeof(description)))
        snprintf(description, sizeof(description), "CPU");
}

// Read once: /proc/cpuinfo is slow on machines with many cores.
static const char *device_description(ggml_backend_dev_t dev) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)dev;
    pthread_once(&once, read_description);
    return description;
}

static void device_memory(ggml_backend_dev_t dev, size_t *out_free, size_t *out_total) {
    (void)dev;
    cpu_memory(out_free, out_total);
}

static enum ggml_backend_dev_type device_type(ggml_backend_dev_t dev) {
    (void)dev;
    return GGML_BACKEND_DEVICE_TYPE_CPU;
}

// Memory of the application can be used in place, so files can be mapped and weights need no copy.
static void device_props(ggml_backend_dev_t dev, struct ggml_backend_dev_props *props) {
    props->name = device_name(dev);
    props->description = device_description(dev);
    props->type = device_type(dev);
    props->device_id = NULL;
    props->caps =
        (struct ggml_backend_dev_caps){.buffer_from_host_ptr = true, .mmap_support = true};
    device_memory(dev, &props->memory_free, &props->memory_total);
}

// Parameters are ignored: threads are set by the procedures of cpu_api.c.
static int32_t device_init(ggml_backend_dev_t dev, const char *params, ggml_backend_t *out_stream) {
    (void)params;
    *out_stream = cpu_stream_new(dev);
    return *out_stream ? GGML_HOST_OK : GGML_HOST_OUT_OF_MEMORY;
}

// Host memory is the host's own buffer type, so that tensors of several plugins can share it. NULL
// if the host does not offer it.
static const struct ggml_extension_host_memory *host_memory(const struct ggml_host_table *host) {
    return host ? host->get_extension(host, GGML_EXTENSION_HOST_MEMORY,
                                      GGML_EXTENSION_HOST_MEMORY_REVISION)
                : NULL;
}

// Memory of the host's own type, so that tensors on the CPU are shared with it.
static ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t dev) {
    const struct ggml_host_table *host = ggml_sdk_host_hold();
    const struct ggml_extension_host_memory *memory = host_memory(host);
    (void)dev;
    ggml_backend_buffer_type_t type = memory ? memory->buffer_type(host) : NULL;
    ggml_sdk_host_release(host);
    return type;
}

// The host makes the buffer; on the CPU any memory of the process is usable. max_tensor_size
// matters to devices that map memory in pieces.
static int32_t device_buffer_from_ptr(ggml_backend_dev_t dev, void *ptr, size_t size,
                                      size_t max_tensor_size, ggml_backend_buffer_t *out_buffer) {
    const struct ggml_host_table *host = ggml_sdk_host_hold();
    const struct ggml_extension_host_memory *memory = host_memory(host);
    (void)dev;
    (void)max_tensor_size;
    *out_buffer = NULL;
    const int32_t status =
        memory ? memory->buffer_from_ptr(host, ptr, size, out_buffer) : GGML_HOST_UNSUPPORTED;
    ggml_sdk_host_release(host);
    return status;
}

static bool device_supports_op(ggml_backend_dev_t dev, const struct ggml_tensor *node) {
    (void)dev;
    return cpu_supports_op(node);
}

// Whatever the processor can address, whichever plugin allocated it, and repacked weights.
static bool device_supports_buft(ggml_backend_dev_t dev, ggml_backend_buffer_type_t buft) {
    (void)dev;
    if (buft->table == &cpu_repacked_table) return true;
    return buft->table->is_host && buft->table->is_host(buft);
}

static const char *reg_name(ggml_backend_reg_t reg) {
    (void)reg;
    return "CPU";
}

static size_t reg_device_count(ggml_backend_reg_t reg) {
    (void)reg;
    return 1;
}

static struct ggml_backend_reg reg_object;

static const struct ggml_device_table device_table = {
    .size = sizeof(device_table),
    .get_name = device_name,
    .get_description = device_description,
    .get_memory = device_memory,
    .get_type = device_type,
    .get_props = device_props,
    .init_backend = device_init,
    .get_buffer_type = device_buffer_type,
    .buffer_from_host_ptr = device_buffer_from_ptr,
    .supports_op = device_supports_op,
    .supports_buft = device_supports_buft,
};

static struct ggml_backend_device device_object = {.table = &device_table, .reg = &reg_object};

static int repacked_rows(enum ggml_type type) {
    return cpu_level()->repacked_rows(type);
}

static struct cpu_repacking repacking = {.rows = repacked_rows};
static struct ggml_backend_buffer_type repacked_type = {
    .table = &cpu_repacked_table,
    .device = &device_object,
    .context = &repacking,
};

ggml_backend_buffer_type_t *cpu_extra_buffer_types(ggml_backend_dev_t device) {
    static ggml_backend_buffer_type_t repacked[] = {&repacked_type, NULL}, none[] = {NULL};
    (void)device;
    const bool repacks = repacked_rows(GGML_TYPE_Q2_K) > 0; // if any type, this one
    return repacks && !cpu_rounding_is_disabled() ? repacked : none;
}

static ggml_backend_dev_t reg_device(ggml_backend_reg_t reg, size_t index) {
    (void)reg;
    return index == 0 ? &device_object : NULL;
}

static const struct ggml_backend_table reg_table = {
    .size = sizeof(reg_table),
    .get_name = reg_name,
    .get_device_count = reg_device_count,
    .get_device = reg_device,
    .get_proc_address = cpu_proc_address,
};

static struct ggml_backend_reg reg_object = {.table = &reg_table};

ggml_backend_reg_t cpu_reg(void) {
    return &reg_object;
}

// Joins the threads: the code that they run goes when the plugin is unloaded.
void cpu_shutdown(void) {
    cpu_threadpool_shutdown();
    cpu_level_reset();
}
