// SPDX-License-Identifier: MIT
// Devices to test with: entry, devices, options.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"
#include "runtime/device.h"
#include "runtime/kernel_list.h"

static struct virtual_device *devices;
static size_t n_devices;
static struct ggml_backend_reg virtual_reg;

static const char *device_name(ggml_backend_dev_t device);

struct virtual_device *virtual_device_of(ggml_backend_dev_t device) {
    return device && device->table->get_name == device_name ? device->context : NULL;
}

struct virtual_config device_config(struct virtual_device *device) {
    pthread_mutex_lock(&device->mutex);
    const struct virtual_config config = device->config;
    pthread_mutex_unlock(&device->mutex);
    return config;
}

// Not what a sanitizer makes of it.
static void crash(void) {
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

enum ggml_status device_gate(struct virtual_device *device, enum gate gate) {
    static const char *const names[] = {"allocation", "transfer", "graph"};
    pthread_mutex_lock(&device->mutex);
    const int64_t limits[] = {device->config.fail_alloc_after, device->config.fail_copy_after,
                              device->config.fail_compute_after};
    int64_t total = 0;
    for (int i = 0; i < GATE_COUNT; ++i)
        total += device->n_calls[i];
    if (device->config.lose_after >= 0 && total >= device->config.lose_after)
        device->is_lost = true;
    const bool lost = device->is_lost;
    const int64_t crash_after = device->config.crash_after;
    if (gate == GATE_COMPUTE && crash_after >= 0 && device->n_calls[gate] >= crash_after) crash();
    const bool fails = device->n_calls[gate]++ == limits[gate];
    pthread_mutex_unlock(&device->mutex);
    if (lost) {
        ggml_sdk_fail(GGML_HOST_DEVICE_LOST, "%s: the device is lost", device->name);
    } else if (fails) {
        ggml_sdk_fail(GGML_HOST_FAILED, "%s: this %s was told to fail", device->name, names[gate]);
    }
    return lost || fails ? GGML_STATUS_FAILED : GGML_STATUS_SUCCESS;
}

// --- device --------------------------------------------------------------------------------------

static const char *device_name(ggml_backend_dev_t device) {
    return ((struct virtual_device *)device->context)->name;
}

static const char *device_description(ggml_backend_dev_t device) {
    (void)device;
    return "Virtual device for tests";
}

static void device_memory(ggml_backend_dev_t handle, size_t *free, size_t *total) {
    struct virtual_device *device = handle->context;
    pthread_mutex_lock(&device->mutex);
    *total = (size_t)device->config.memory;
    *free = device->used < *total ? *total - device->used : 0;
    pthread_mutex_unlock(&device->mutex);
}

static enum ggml_backend_dev_type device_type(ggml_backend_dev_t device) {
    return (enum ggml_backend_dev_type)device_config(device->context).type;
}

static void device_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *props) {
    const struct virtual_config config = device_config(device->context);
    props->name = device_name(device);
    props->description = device_description(device);
    device_memory(device, &props->memory_free, &props->memory_total);
    props->type = device_type(device);
    props->caps.async = config.async;
    props->caps.host_buffer = config.host_buffers;
    props->caps.buffer_from_host_ptr = config.host_import;
    props->caps.events = config.events;
}

static int32_t device_init(ggml_backend_dev_t device, const char *params,
                           ggml_backend_t *out_stream) {
    struct virtual_device *mine = device->context;
    (void)params;
    pthread_mutex_lock(&mine->mutex);
    const bool lost = mine->is_lost;
    pthread_mutex_unlock(&mine->mutex);
    if (lost) {
        ggml_sdk_fail(GGML_HOST_DEVICE_LOST, "%s: the device is lost", mine->name);
        return GGML_HOST_DEVICE_LOST;
    }
    *out_stream = stream_new(mine);
    return *out_stream ? GGML_HOST_OK : GGML_HOST_OUT_OF_MEMORY;
}

static ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t device) {
    return &((struct virtual_device *)device->context)->buft;
}

static ggml_backend_buffer_type_t device_host_buffer_type(ggml_backend_dev_t handle) {
    struct virtual_device *device = handle->context;
    return device_config(device).host_buffers ? &device->host_buft : NULL;
}

static int32_t device_import(ggml_backend_dev_t device, void *ptr, size_t size,
                             size_t max_tensor_size, ggml_backend_buffer_t *out_buffer) {
    (void)max_tensor_size;
    *out_buffer = memory_import(device->context, ptr, size);
    return *out_buffer ? GGML_HOST_OK : GGML_HOST_FAILED;
}

static bool in_set(const uint64_t *set, int bit) {
    return bit >= 0 && bit < 256 && (set[bit / 64] >> (bit % 64) & 1);
}

bool device_computes(struct virtual_device *device, const struct ggml_tensor *node) {
    const struct virtual_config config = device_config(device);
    if (in_set(config.refused_ops, (int)node->op)) return false;
    if (in_set(config.refused_types, (int)node->type)) return false;
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        if (node->src[i] && in_set(config.refused_types, (int)node->src[i]->type)) return false;
    }
    if (!cpu_supports_op(node)) return false;
    return !config.supports_op || config.supports_op(config.user, device->index, node);
}

static bool device_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *node) {
    return device_computes(device->context, node);
}

static bool device_supports_buft(ggml_backend_dev_t handle, ggml_backend_buffer_type_t buft) {
    struct virtual_device *device = handle->context;
    const struct virtual_config config = device_config(device);
    if (buft->device == handle) return true;
    if (config.reads_peers && memory_type_is_mine(buft)) return true;
    return config.reads_host && buft->table->is_host && buft->table->is_host(buft);
}

static bool device_offload_op(ggml_backend_dev_t device, const struct ggml_tensor *node) {
    (void)node;
    return device_config(device->context).offload;
}

static int32_t device_event_new(ggml_backend_dev_t device, ggml_backend_event_t *out_event) {
    *out_event = event_new(device);
    return *out_event ? GGML_HOST_OK : GGML_HOST_FAILED;
}

static const struct ggml_device_table device_table = {
    .size = sizeof(device_table),
    .get_name = device_name,
    .get_description = device_description,
    .get_memory = device_memory,
    .get_type = device_type,
    .get_props = device_props,
    .init_backend = device_init,
    .get_buffer_type = device_buffer_type,
    .get_host_buffer_type = device_host_buffer_type,
    .buffer_from_host_ptr = device_import,
    .supports_op = device_supports_op,
    .supports_buft = device_supports_buft,
    .offload_op = device_offload_op,
    .event_new = device_event_new,
};

// --- functions by name ---------------------------------------------------------------------------

static bool is_valid(const struct virtual_config *config) {
    const int64_t alignment = config->alignment;
    return config->type >= GGML_BACKEND_DEVICE_TYPE_CPU &&
           config->type <= GGML_BACKEND_DEVICE_TYPE_ACCEL && config->memory >= 0 &&
           config->max_buffer >= 0 && config->padding >= 0 && alignment >= 1 &&
           alignment <= VIRTUAL_MAX_ALIGNMENT && (alignment & (alignment - 1)) == 0;
}

static void set_up(struct virtual_device *device, const struct virtual_config *config) {
    pthread_mutex_lock(&device->mutex);
    device->config = *config;
    device->is_lost = false;
    memset(device->n_calls, 0, sizeof(device->n_calls));
    pthread_mutex_unlock(&device->mutex);
}

static bool configure(int index, const struct virtual_config *config) {
    if (index < -1 || index >= (int)n_devices || !config || !is_valid(config)) return false;
    for (int i = 0; i < (int)n_devices; ++i) {
        if (index == -1 || index == i) set_up(&devices[i], config);
    }
    return true;
}

static bool lose(ggml_backend_dev_t device) {
    struct virtual_device *mine = device->context;
    pthread_mutex_lock(&mine->mutex);
    mine->is_lost = true;
    pthread_mutex_unlock(&mine->mutex);
    return true;
}

static void *storage(const struct ggml_tensor *tensor) {
    return memory_device(tensor) ? memory_resolve(NULL, tensor, 0, ggml_nbytes(tensor)) : NULL;
}

typedef void (*any_function)(void);

static void *reg_proc_address(ggml_backend_reg_t reg, const char *name) {
    static const struct {
        const char *name;
        any_function function;
    } functions[] = {
        {"virtual_configure", (any_function)configure},
        {"virtual_default_config", (any_function)config_default},
        {"virtual_log_clear", (any_function)log_clear},
        {"virtual_log_count", (any_function)log_count},
        {"virtual_log_get", (any_function)log_get},
        {"virtual_violations", (any_function)log_violations},
        {"ggml_backend_test_lose_device", (any_function)lose},
        {"virtual_storage", (any_function)storage},
    };
    (void)reg;
    void *address = NULL;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i) {
        if (strcmp(functions[i].name, name) != 0) continue;
        memcpy(&address, &functions[i].function, sizeof(address));
    }
    return address;
}

// --- backend -------------------------------------------------------------------------------------

static const char *reg_name(ggml_backend_reg_t reg) {
    (void)reg;
    return "VIRTUAL";
}

static size_t reg_device_count(ggml_backend_reg_t reg) {
    (void)reg;
    return n_devices;
}

static ggml_backend_dev_t reg_device(ggml_backend_reg_t reg, size_t index) {
    (void)reg;
    return index < n_devices ? &devices[index].base : NULL;
}

static const struct ggml_backend_table reg_table = {
    .size = sizeof(reg_table),
    .get_name = reg_name,
    .get_device_count = reg_device_count,
    .get_device = reg_device,
    .get_proc_address = reg_proc_address,
};

static struct ggml_backend_reg virtual_reg = {.table = &reg_table};

static void device_start(struct virtual_device *device, int index,
                         const struct virtual_config *config) {
    *device = (struct virtual_device){.index = index, .config = *config};
    device->base = (struct ggml_backend_device){
        .table = &device_table, .reg = &virtual_reg, .context = device};
    snprintf(device->name, sizeof(device->name), "VIRTUAL%d", index);
    pthread_mutex_init(&device->mutex, NULL);
    device_place(device);
    memory_init_types(device);
}

static ggml_backend_reg_t virtual_start(void) {
    struct virtual_config config;
    const char *text = getenv("GGML_VIRTUAL");
    if (n_devices > 0) return &virtual_reg; // a second host
    const size_t count = config_parse(text, &config);
    if (count == 0 || !is_valid(&config)) {
        ggml_sdk_fail(GGML_HOST_INVALID_ARGUMENT, "GGML_VIRTUAL: '%s' is not key=number,...", text);
        return NULL;
    }
    devices = ggml_aligned_malloc(count * sizeof(*devices));
    if (!devices) return NULL;
    n_devices = count;
    for (size_t i = 0; i < count; ++i)
        device_start(&devices[i], (int)i, &config);
    return &virtual_reg;
}

static int32_t figures(ggml_backend_dev_t handle, struct ggml_device_figures *out_figures) {
    struct virtual_device *device = virtual_device_of(handle);
    if (!device) return GGML_HOST_INVALID_ARGUMENT;
    return device_figures(device, out_figures) ? GGML_HOST_OK : GGML_HOST_UNSUPPORTED;
}

static const struct ggml_extension_device_figures figures_extension = {
    .size = (uint32_t)sizeof(figures_extension),
    .revision = GGML_EXTENSION_DEVICE_FIGURES_REVISION,
    .figures = figures,
    .link = device_link,
};

static const struct ggml_extension_device_info info_extension = {
    .size = (uint32_t)sizeof(info_extension),
    .revision = GGML_EXTENSION_DEVICE_INFO_REVISION,
    .info = device_info,
};

static const void *get_extension(const char *id, uint32_t min_revision) {
    const struct virtual_config config =
        n_devices > 0 ? device_config(&devices[0]) : (struct virtual_config){0};
    if (strcmp(id, GGML_EXTENSION_PROFILE) == 0) return hostile_profile(config.hostile_profile);
    if (strcmp(id, GGML_EXTENSION_DEVICE_FIGURES) == 0)
        return min_revision <= figures_extension.revision ? &figures_extension : NULL;
    if (strcmp(id, GGML_EXTENSION_DEVICE_INFO) == 0)
        return min_revision <= info_extension.revision ? &info_extension : NULL;
    if (strcmp(id, GGML_EXTENSION_COMM) == 0 && config.hostile_comm != 0)
        return hostile_comm(config.hostile_comm);
    if (strcmp(id, GGML_EXTENSION_COMM) == 0)
        return min_revision <= comm_extension.revision ? &comm_extension : NULL;
    return NULL;
}

static void virtual_shutdown(void) {
    for (size_t i = 0; i < n_devices; ++i)
        pthread_mutex_destroy(&devices[i].mutex);
    ggml_aligned_free(devices, n_devices * sizeof(*devices));
    devices = NULL;
    n_devices = 0;
    log_free();
    cpu_shutdown();
}

GGML_PLUGIN_NOTE("virtual", "", "1.0", 0, 0, 0)
GGML_PLUGIN_ENTRY(virtual_start, NULL, virtual_shutdown, get_extension)
