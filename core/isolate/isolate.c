// SPDX-License-Identifier: MIT
// The isolated device: tables that send each call to the helper, and ggml_host_isolate().
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/data/arena.h"
#include "base/env.h"
#include "base/mem.h"
#include "device/check.h"
#include "ggml-version.h"
#include "isolate/device.h"
#include "isolate/isolate.h"
#include "plugin/discover/search_path.h"
#include "plugin/load/candidate.h"
#include "plugin/query/figures.h"
#include "plugin/registry/live.h"
#include "plugin/registry/registry.h"

enum { START_MS = 15000, MAX_DEADLINE_MS = 3600000 };

// --- device --------------------------------------------------------------------------------------
//
// What concerns the device itself is taken from the plugin in this process; what concerns its
// contents goes to the other one.

static const char *device_name(ggml_backend_dev_t device) {
    return ((struct isolated_device *)device->context)->channel.name;
}

struct isolated_device *isolated_device_of(ggml_backend_dev_t device) {
    return device && device->table->get_name == device_name ? device->context : NULL;
}

static ggml_backend_dev_t original(ggml_backend_dev_t device) {
    return ((struct isolated_device *)device->context)->original;
}

static const char *device_description(ggml_backend_dev_t device) {
    return ggml_backend_dev_description(original(device));
}

static void device_memory(ggml_backend_dev_t device, size_t *out_free, size_t *out_total) {
    ggml_backend_dev_memory(original(device), out_free, out_total);
}

static enum ggml_backend_dev_type device_type(ggml_backend_dev_t device) {
    return ggml_backend_dev_type(original(device));
}

// Calls wait for their answers, so that the device has neither asynchronous transfers nor events.
static void device_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *props) {
    ggml_backend_dev_get_props(original(device), props);
    props->name = device_name(device);
    memset(&props->caps, 0, sizeof(props->caps));
}

static int32_t device_init(ggml_backend_dev_t device, const char *params,
                           ggml_backend_t *out_stream) {
    *out_stream = isolated_stream_new(device->context, params);
    return *out_stream ? GGML_HOST_OK : ggml_last_status();
}

static ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t device) {
    return &((struct isolated_device *)device->context)->buft;
}

bool isolated_calls_application(const struct ggml_tensor *node) {
    return node->op == GGML_OP_MAP_CUSTOM1 || node->op == GGML_OP_MAP_CUSTOM2 ||
           node->op == GGML_OP_MAP_CUSTOM3 || node->op == GGML_OP_CUSTOM;
}

bool isolated_is_extended(const struct ggml_tensor *tensor) {
    static const char nothing[sizeof(tensor->padding)];
    return memcmp(tensor->padding, nothing, sizeof(nothing)) != 0;
}

// Asks the device in this process. Nodes that can't be transmitted (functions of the application,
// tensors of a newer contract) aren't supported.
static bool device_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    bool extended = isolated_is_extended(op);
    for (int i = 0; i < GGML_MAX_SRC; ++i)
        extended = extended || (op->src[i] && isolated_is_extended(op->src[i]));
    return !extended && !isolated_calls_application(op) &&
           ggml_backend_dev_supports_op(original(device), op);
}

static bool device_supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t buft) {
    return buft == device_buffer_type(device);
}

static bool device_offload_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    return ggml_backend_dev_offload_op(original(device), op);
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
    .supports_op = device_supports_op,
    .supports_buft = device_supports_buft,
    .offload_op = device_offload_op,
};

// --- backend of the one device -------------------------------------------------------------------

static const char *reg_name(ggml_backend_reg_t reg) {
    const struct isolated_device *device = reg->context;
    return ggml_backend_reg_name(device->original->reg);
}

static size_t reg_device_count(ggml_backend_reg_t reg) {
    (void)reg;
    return 1;
}

static ggml_backend_dev_t reg_device(ggml_backend_reg_t reg, size_t index) {
    return index == 0 ? &((struct isolated_device *)reg->context)->base : NULL;
}

static const struct ggml_backend_table reg_table = {
    .size = sizeof(reg_table),
    .get_name = reg_name,
    .get_device_count = reg_device_count,
    .get_device = reg_device,
};

// --- which plugin --------------------------------------------------------------------------------

struct plugin_place {
    char path[PROBE_PATH_MAX];
    struct isolate_start start;
};

// The plugin's file and the device's number in its list. UNSUPPORTED for devices that the
// application registered itself, which have none (plugin may be NULL).
static enum ggml_host_status take_place(const struct host_plugin *plugin, size_t number,
                                        const char *label, struct plugin_place *out) {
    const char *path = plugin ? plugin->path : "";
    if (path[0] == '\0' || strlen(path) >= sizeof(out->path)) {
        return ggml_fail(GGML_HOST_UNSUPPORTED,
                         "ggml_host_isolate: device %s is not of a plugin that another process "
                         "could load",
                         label);
    }
    snprintf(out->path, sizeof(out->path), "%s", path);
    snprintf(out->start.plugin, sizeof(out->start.plugin), "%s", plugin->name);
    out->start.is_builtin = strcmp(path, BUILTIN_PATH) == 0;
    out->start.file = plugin->id;
    out->start.device = (uint32_t)number;
    return GGML_HOST_OK;
}

// Under the registry's lock.
static enum ggml_host_status find_place(ggml_backend_dev_t device, struct plugin_place *out) {
    if (isolated_device_of(device)) {
        return ggml_fail(GGML_HOST_UNSUPPORTED, "ggml_host_isolate: %s is isolated already",
                         device_label(device));
    }
    if (!registry_lock("ggml_host_isolate")) return GGML_HOST_BUSY;
    const struct host_plugin *plugin = registry_find_device(device);
    size_t number = 0;
    for (size_t i = 0; plugin && i < plugin_devices(plugin)->count; ++i)
        if (plugin_devices(plugin)->items[i].device == device) number = i;
    const enum ggml_host_status status = take_place(plugin, number, device_label(device), out);
    registry_unlock();
    return status;
}

// The file must be the one that is loaded here; the other process checks its sum.
static enum ggml_host_status sum_plugin(struct plugin_place *place) {
    struct plugin_file file;
    if (place->start.is_builtin) return GGML_HOST_OK;
    enum ggml_host_status status = plugin_file_open(place->path, &file);
    if (status == GGML_HOST_OK && !plugin_file_is_same(&file.id, &place->start.file)) {
        status = ggml_fail(GGML_HOST_DAMAGED_FILE,
                           "ggml_host_isolate: '%s' changed since it was loaded", place->path);
    }
    if (status == GGML_HOST_OK)
        status = plugin_file_sha256(&file, place->path, place->start.sha256);
    plugin_file_close(&file);
    return status;
}

// --- figures -------------------------------------------------------------------------------------

static ggml_backend_dev_t original_of(ggml_backend_dev_t device) {
    const struct isolated_device *isolated = isolated_device_of(device);
    return isolated ? isolated->original : NULL;
}

// --- starting ------------------------------------------------------------------------------------

// Checks the options, as far as their size member says that they are set.
static enum ggml_host_status take_options(const struct ggml_isolate_options *given,
                                          struct ggml_isolate_options *out_options) {
    *out_options = (struct ggml_isolate_options){.size = sizeof(*out_options)};
    if (!given) return GGML_HOST_OK;
    if (given->size < sizeof(*given) || given->deadline_ms > MAX_DEADLINE_MS ||
        (given->helper && !search_path_is_absolute(given->helper))) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                         "ggml_host_isolate: options->size is not set, the helper's path is not "
                         "absolute, or the deadline is beyond %d ms",
                         MAX_DEADLINE_MS);
    }
    *out_options = *given;
    return GGML_HOST_OK;
}

// Finds the helper program, subject to the policy for trusted files.
static enum ggml_host_status find_helper(const char *given, char out_path[PROBE_PATH_MAX]) {
    struct arena arena = {0};
    struct load_policy policy;
    enum ggml_host_status status = policy_get(&arena, &policy);
    if (status == GGML_HOST_OK) status = probe_helper_find(given, &policy, out_path);
    arena_free(&arena);
    return status;
}

// How memory is shared with the helper: as host memory, wrapped by its device, or copied because
// only the device can address its memory, or needs more alignment than a page's.
static enum isolate_memory choose_memory(ggml_backend_dev_t device,
                                         ggml_backend_buffer_type_t buft) {
    struct ggml_backend_dev_props props;
    if (buft == ggml_backend_cpu_buffer_type()) return ISOLATE_MEMORY_HOST;
    ggml_backend_dev_get_props(device, &props);
    const bool wraps = props.caps.buffer_from_host_ptr && ggml_backend_buft_is_host(buft) &&
                       ggml_backend_buft_get_alignment(buft) <= (size_t)sysconf(_SC_PAGESIZE);
    return wraps ? ISOLATE_MEMORY_WRAP : ISOLATE_MEMORY_OWN;
}

// Has the helper load the plugin. Version and layout are compared there: the helper may be of
// another build.
static enum ggml_host_status start_plugin(struct isolated_device *device,
                                          struct plugin_place *place) {
    struct channel *channel = &device->channel;
    struct isolate_request request = {.kind = ISOLATE_START};
    place->start.parent = (uint32_t)getpid();
    place->start.layout = GGML_PLUGIN_LAYOUT_HASH;
    snprintf(place->start.version, sizeof(place->start.version), "%s", ggml_version());
    snprintf(place->start.commit, sizeof(place->start.commit), "%s", ggml_commit());
    if (!channel_lock(channel)) return GGML_HOST_DEVICE_LOST;
    enum ggml_host_status status = channel_reserve(channel, sizeof(place->start));
    if (status == GGML_HOST_OK) {
        memcpy(channel->shared, &place->start, sizeof(place->start));
        status = channel_call(channel, &request, -1, NULL);
    }
    channel_unlock(channel);
    return status;
}

// The tables need nothing of the other process yet.
static void set_up(struct isolated_device *device, ggml_backend_dev_t of) {
    device->original = of;
    device->original_buft = ggml_backend_dev_buffer_type(of);
    device->memory = choose_memory(of, device->original_buft);
    device->base = (struct ggml_backend_device){
        .table = &device_table, .reg = &device->reg, .context = device};
    device->reg = (struct ggml_backend_reg){.table = &reg_table, .context = device};
    isolated_buft_init(device);
}

// Starts the process. NULL on failure.
static struct isolated_device *start(ggml_backend_dev_t device, const char *helper,
                                     uint32_t deadline_ms, struct plugin_place *place,
                                     enum ggml_host_status *out_status) {
    struct isolated_device *isolated = ggml_mem_calloc(1, sizeof(*isolated));
    if (!isolated) {
        *out_status = ggml_fail(GGML_HOST_OUT_OF_MEMORY, "ggml_host_isolate: no memory");
        return NULL;
    }
    figures_set_stand_in(original_of);
    const uint32_t start_ms = deadline_ms > START_MS ? deadline_ms : START_MS;
    *out_status =
        channel_open(&isolated->channel, helper, place->path, device_label(device), start_ms);
    if (*out_status == GGML_HOST_OK) *out_status = start_plugin(isolated, place);
    if (*out_status == GGML_HOST_OK) {
        isolated->channel.deadline_ms = deadline_ms;
        set_up(isolated, device);
        return isolated;
    }
    channel_close(&isolated->channel);
    ggml_mem_free(isolated);
    return NULL;
}

// The original device is held while the isolated one lives, so that its plugin can't be
// unloaded.
enum ggml_host_status ggml_host_isolate(ggml_backend_dev_t device,
                                        const struct ggml_isolate_options *given,
                                        ggml_backend_dev_t *out_device) {
    struct ggml_isolate_options options;
    struct plugin_place place = {.path = ""};
    char helper[PROBE_PATH_MAX];
    if (out_device) *out_device = NULL;
    if (!device_require_arg(device, __func__, "device") ||
        !device_require_arg(out_device, __func__, "result"))
        return GGML_HOST_INVALID_ARGUMENT;
    enum ggml_host_status status = take_options(given, &options);
    if (status == GGML_HOST_OK) status = find_place(device, &place);
    if (status == GGML_HOST_OK) status = find_helper(options.helper, helper);
    if (status == GGML_HOST_OK) status = sum_plugin(&place);
    if (status != GGML_HOST_OK) return status;
    host_live_add(device);
    struct isolated_device *isolated = start(device, helper, options.deadline_ms, &place, &status);
    if (isolated) {
        *out_device = &isolated->base;
    } else {
        host_live_remove(device);
    }
    return status;
}

// GGML_ISOLATE_DEADLINE; 0: none.
static uint32_t asked_deadline_ms(void) {
    const char *text = ggml_env(GGML_ENV_GGML_ISOLATE_DEADLINE);
    char *end = NULL;
    if (!text) return 0;
    const long seconds = strtol(text, &end, 10);
    if (*end == '\0' && seconds > 0 && seconds <= MAX_DEADLINE_MS / 1000)
        return (uint32_t)seconds * 1000;
    GGML_LOG_WARN("GGML_ISOLATE_DEADLINE: '%s' is no number of seconds from 1 to %d: there is no "
                  "deadline\n",
                  text, MAX_DEADLINE_MS / 1000);
    return 0;
}

// The plugin ends it before itself, so that it holds nothing.
enum ggml_host_status isolated_device_new(const struct host_plugin *plugin, size_t number,
                                          const struct host_device *device,
                                          ggml_backend_dev_t *out_device) {
    struct plugin_place place = {.path = ""};
    char helper[PROBE_PATH_MAX];
    *out_device = NULL;
    enum ggml_host_status status = take_place(plugin, number, device->name, &place);
    if (status == GGML_HOST_OK) status = find_helper(NULL, helper);
    if (status == GGML_HOST_OK) status = sum_plugin(&place);
    if (status != GGML_HOST_OK) return status;
    struct isolated_device *isolated =
        start(device->device, helper, asked_deadline_ms(), &place, &status);
    if (!isolated) return status;
    isolated->is_of_plugin = true;
    isolated->channel.logs_loss = true;
    *out_device = &isolated->base;
    return GGML_HOST_OK;
}

void isolated_device_free(ggml_backend_dev_t device) {
    struct isolated_device *isolated = isolated_device_of(device);
    if (!isolated) return;
    channel_close(&isolated->channel);
    ggml_mem_free(isolated);
}

// BUSY while streams or buffers of the device live.
enum ggml_host_status ggml_host_isolated_free(ggml_backend_dev_t device) {
    if (!device) return GGML_HOST_OK;
    struct isolated_device *isolated = isolated_device_of(device);
    if (!isolated) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: %s is not an isolated device", __func__,
                         device_label(device));
    }
    if (isolated->is_of_plugin) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                         "%s: %s was isolated by GGML_ISOLATE and ends with its plugin", __func__,
                         device_label(device));
    }
    const size_t n_alive = atomic_load(&isolated->n_alive);
    if (n_alive > 0) {
        return ggml_fail(GGML_HOST_BUSY,
                         "%s: %zu streams or buffers of %s are still alive: free them first",
                         __func__, n_alive, device_label(device));
    }
    ggml_backend_dev_t original = isolated->original;
    isolated_device_free(device);
    host_live_remove(original);
    return GGML_HOST_OK;
}

const char *ggml_host_isolated_lost(ggml_backend_dev_t device) {
    struct isolated_device *isolated = isolated_device_of(device);
    return isolated && atomic_load(&isolated->channel.lost) ? isolated->channel.why : NULL;
}

int64_t ggml_host_isolated_process(ggml_backend_dev_t device) {
    struct isolated_device *isolated = isolated_device_of(device);
    return isolated ? atomic_load(&isolated->channel.pid) : 0;
}

// The device's first: it is counted last.
void ggml_host_isolated_time(ggml_backend_dev_t device, int64_t *out_total_ns,
                             int64_t *out_device_ns) {
    struct isolated_device *isolated = isolated_device_of(device);
    if (out_device_ns) *out_device_ns = isolated ? atomic_load(&isolated->device_ns) : 0;
    if (out_total_ns) *out_total_ns = isolated ? atomic_load(&isolated->total_ns) : 0;
}
