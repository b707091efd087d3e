// SPDX-License-Identifier: MIT
// Entry, backend and devices.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "defective.h"

struct ggml_backend_device defective_devices[N_DEVICES];
static struct ggml_plugin_table *table;
static void *state; // memory of the host, for as long as it is attached

// --- devices -------------------------------------------------------------------------------------

static const char *device_name(ggml_backend_dev_t device) {
    static const char *const names[] = {"DEFECT0", "DEFECT1"};
    static char text[512];
    static int n;
    if (HAS(name_empty)) return "";
    if (HAS(name_invalid)) return "\xc3\x28";
    if (HAS(name_twins)) return "DEFECT";
    if (HAS(name_endless)) return memset(text, 'x', sizeof(text) - 1);
    if (HAS(name_changes)) {
        snprintf(text, sizeof(text), "DEFECT%td-%d", device - defective_devices, n++);
        return text;
    }
    return names[device - defective_devices];
}

static const char *device_description(ggml_backend_dev_t device) {
    (void)device;
    return HAS(description_null) ? NULL : "A device with a defect";
}

static void *end_at_once(void *unused) {
    for (;;)
        pause();
    return unused;
}

static void device_memory(ggml_backend_dev_t device, size_t *free_bytes, size_t *total) {
    pthread_t thread;
    (void)device;
    *free_bytes = HAS(memory_free) ? 3u << 20 : 1u << 20;
    *total = 2u << 20;
    if (HAS(listing_thread)) pthread_create(&thread, NULL, end_at_once, NULL);
    if (HAS(listing_file)) open("/dev/null", O_RDONLY);
}

static enum ggml_backend_dev_type device_type(ggml_backend_dev_t device) {
    (void)device;
    return HAS(type_unknown) ? (enum ggml_backend_dev_type)77 : GGML_BACKEND_DEVICE_TYPE_ACCEL;
}

static void device_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *props) {
    static const char *const ids[] = {"0000:0a:00.0", "0000:0b:00.0"};
    static char id[32];
    static int n;
    static const char *volatile shared;
    props->name = HAS(props_name) ? "ANOTHER" : device_name(device);
    props->description = HAS(props_description) ? "another" : device_description(device);
    props->type = HAS(props_type) ? GGML_BACKEND_DEVICE_TYPE_GPU : device_type(device);
    device_memory(device, &props->memory_free, &props->memory_total);
    if (HAS(props_memory)) props->memory_total = 12345 + (3u << 20);
    if (HAS(memory_free)) props->memory_free = 0;
    props->device_id = ids[device - defective_devices];
    if (HAS(listing_shared)) {
        shared = props->device_id;
        sched_yield();
        props->device_id = shared;
    }
    if (HAS(id_upper_case)) props->device_id = "0000:0A:00.0";
    if (HAS(id_changes)) {
        snprintf(id, sizeof(id), "serial-%d", n++);
        props->device_id = id;
    }
    props->caps.async = true;
    props->caps.host_buffer = !HAS(host_sometimes) && !HAS(caps_host_buffer_hidden);
    props->caps.buffer_from_host_ptr = !HAS(caps_host_ptr_hidden);
    props->caps.events = !HAS(caps_events_hidden);
}

static ggml_backend_buffer_type_t device_host_buffer_type(ggml_backend_dev_t device) {
    return HAS(caps_host_buffer) || HAS(host_sometimes) ? NULL : memory_type(device);
}

static bool device_supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t buft) {
    (void)device;
    if (HAS(declines_own)) return false;
    if (HAS(supports_strange)) return true;
    return buft == memory_type(&defective_devices[0]) || buft == memory_type(&defective_devices[1]);
}

static int32_t device_init(ggml_backend_dev_t device, const char *params,
                           ggml_backend_t *out_stream) {
    if (stream_is_lost(device) && !HAS(lost_opens))
        return fail(GGML_HOST_DEVICE_LOST, "the device is lost");
    *out_stream = stream_new(device, params);
    return *out_stream || HAS(stream_invented) ? GGML_HOST_OK : GGML_HOST_OUT_OF_MEMORY;
}

static int32_t device_wrap(ggml_backend_dev_t device, void *memory, size_t size,
                           size_t max_tensor_size, ggml_backend_buffer_t *out_buffer) {
    *out_buffer = memory_wrap(device, memory, size, max_tensor_size);
    return *out_buffer ? GGML_HOST_OK : GGML_HOST_FAILED;
}

static int32_t device_event_new(ggml_backend_dev_t device, ggml_backend_event_t *out_event) {
    *out_event = event_new(device);
    return *out_event ? GGML_HOST_OK : GGML_HOST_OUT_OF_MEMORY;
}

static struct ggml_device_table device_table = {
    .size = sizeof(device_table),
    .get_name = device_name,
    .get_description = device_description,
    .get_memory = device_memory,
    .get_type = device_type,
    .get_props = device_props,
    .init_backend = device_init,
    .get_buffer_type = memory_type,
    .get_host_buffer_type = device_host_buffer_type,
    .buffer_from_host_ptr = device_wrap,
    .supports_op = op_is_claimed,
    .supports_buft = device_supports_buft,
    .event_new = device_event_new,
};

static void devices_begin(void) {
    for (int i = 0; i < N_DEVICES; ++i) {
        struct ggml_backend_device *device = &defective_devices[i];
        device->table = HAS(device_table_missing) ? NULL : &device_table;
        if (HAS(device_table_reserved)) device_table.reserved[0] = (void (*)(void))device_init;
        device->reg = HAS(device_stray) ? NULL : &defective_reg;
        if (HAS(newer)) device_table.reserved[0] = (void (*)(void))device_init;
        if (HAS(device_entry_missing)) device_table.get_type = NULL;
        if (HAS(device_reserved)) device->reserved[1] = device;
    }
}

// --- backend -------------------------------------------------------------------------------------

static const char *reg_name(ggml_backend_reg_t reg) {
    (void)reg;
    return HAS(backend_name_empty) ? "" : "DEFECT";
}

static size_t reg_count(ggml_backend_reg_t reg) {
    static size_t n = N_DEVICES;
    (void)reg;
    if (HAS(table_changes)) table->reserved[2] = table;
    return HAS(count_grows) ? n++ : N_DEVICES;
}

static ggml_backend_dev_t reg_device(ggml_backend_reg_t reg, size_t index) {
    (void)reg;
    if (HAS(device_null) && index == 1) return NULL;
    return &defective_devices[HAS(device_twice) ? 0 : index % N_DEVICES];
}

static struct ggml_backend_feature *reg_features(ggml_backend_reg_t reg) {
    static struct ggml_backend_feature features[1100] = {{"NOTHING", "1"}};
    (void)reg;
    for (int i = 0; i < 1100 && HAS(features_endless); ++i)
        features[i] = features[0];
    return features;
}

static void *reg_function(ggml_backend_reg_t reg, const char *name) {
    (void)reg;
    if (HAS(function_invented)) return &table;
    if (strcmp(name, "ggml_backend_get_features") == 0) return (void *)(uintptr_t)reg_features;
    if (strcmp(name, "ggml_backend_set_abort_callback") == 0)
        return (void *)(uintptr_t)stream_set_abort;
    if (strcmp(name, "ggml_backend_test_lose_device") == 0) return (void *)(uintptr_t)stream_lose;
    return NULL;
}

struct ggml_backend_reg defective_reg;

static void reg_begin(void) {
    static struct ggml_backend_table backend_table = {
        .size = sizeof(backend_table),
        .get_name = reg_name,
        .get_device_count = reg_count,
        .get_device = reg_device,
        .get_proc_address = reg_function,
    };
    defective_reg.table = HAS(backend_table_missing) ? NULL : &backend_table;
    if (HAS(backend_table_short)) backend_table.size = 16;
    if (HAS(backend_entry_missing)) backend_table.get_device = NULL;
    if (HAS(backend_table_reserved)) backend_table.reserved[1] = (void (*)(void))reg_count;
    if (HAS(backend_reserved)) defective_reg.reserved[0] = &defective_reg;
}

// --- entry ---------------------------------------------------------------------------------------

static int n_attached;
static pid_t process; // that of the first host
static bool is_gone;  // as a defect has it
static const struct ggml_host_table *newest;

bool is_attached(void) {
    return n_attached > 0 && !is_gone;
}

bool is_forked(void) {
    return getpid() != process;
}

int32_t fail(enum ggml_host_status status, const char *text, ...) {
    const struct ggml_host_table *host = ggml_sdk_host();
    va_list none;
    if (HAS(one_host_told)) {
        host->set_error(host, status, text);
        return status;
    }
    va_start(none, text);
    ggml_sdk_fail_v(status, text, none);
    va_end(none);
    return status;
}

static bool state_begin(void) {
    const struct ggml_host_table *host = ggml_sdk_host();
    if (state) return true;
    if (HAS(failure_silent)) {
        state = host->alloc(host, 64, 16);
        return state != NULL;
    }
    state = ggml_aligned_malloc(64);
    if (state || HAS(memory_unchecked)) memset(state, 0, 64);
    return state != NULL;
}

// Whether the host's extension for more devices does what the defect takes for granted.
static bool registry_pleases(const struct ggml_host_table *host) {
    static bool is_known;
    const struct ggml_extension_registry *registry =
        host->get_extension(host, GGML_EXTENSION_REGISTRY, 1);
    if (!registry) return true;
    if (HAS(registry_required)) return registry->devices_changed(host) == GGML_HOST_OK;
    const bool is_first = !is_known;
    is_known = true;
    return is_first || !HAS(registry_kept);
}

static bool may_start(const struct ggml_host_table *host) {
    static int n_started;
    if (HAS(init_hangs)) hang();
    if (HAS(init_crashes)) abort();
    if (HAS(init_exits)) exit(0);
    const bool refused =
        HAS(init_fails) || (HAS(init_once) && n_started > 0) || (HAS(one_host) && n_attached > 0) ||
        (HAS(host_exact) && host->contract_minor != GGML_CONTRACT_MINOR) || !registry_pleases(host);
    if (refused) fail(GGML_HOST_FAILED, "the driver is on strike");
    if (HAS(host_beyond) && host->reserved[3]) abort();
    if (HAS(extension_assumed)) {
        const struct ggml_extension_host_memory *memory =
            host->get_extension(host, GGML_EXTENSION_HOST_MEMORY, 1);
        memory->buffer_type(host);
    }
    if (HAS(extension_beyond)) {
        const volatile char *features = host->get_extension(host, GGML_EXTENSION_CPU_FEATURES, 1);
        if (features) (void)features[sizeof(struct ggml_extension_cpu_features)];
    }
    if (HAS(topology_unsized)) {
        struct ggml_host_topology topology = {0};
        host->get_topology(host, &topology);
    }
    ++n_started;
    return !refused;
}

static ggml_backend_reg_t start(void) {
    if (!may_start(ggml_sdk_host()) || !state_begin()) return NULL;
    if (n_attached++ > 0) return &defective_reg;
    process = getpid();
    process_begin();
    reg_begin();
    devices_begin();
    return &defective_reg;
}

static void stop(void) {
    if (HAS(shutdown_hangs)) hang();
    if (HAS(shutdown_crashes)) abort();
    n_attached = 0;
    if (!HAS(leaves_memory)) ggml_aligned_free(state, 64);
    state = NULL;
}

static int score(void) {
    static int n = 1;
    return HAS(score_changes) ? n++ : 1;
}

static const struct ggml_backend_feature *device_details(ggml_backend_dev_t device) {
    static const struct ggml_backend_feature sound[] = {{"driver", "defective"}, {NULL, NULL}};
    static const struct ggml_backend_feature twice[] = {
        {"driver", "defective"}, {"driver", "another"}, {NULL, NULL}};
    static const struct ggml_backend_feature spaced[] = {{"The Driver", "defective"}, {NULL, NULL}};
    (void)device;
    if (HAS(details_twice)) return twice;
    return HAS(details_key) ? spaced : sound;
}

static const void *extension(const char *id, uint32_t min_revision) {
    static const struct ggml_extension_device_info info = {
        .size = sizeof(info), .revision = 1, .info = device_details};
    if (HAS(extension_invented)) return &table;
    if (strcmp(id, GGML_EXTENSION_DEVICE_INFO) == 0) return min_revision <= 1 ? &info : NULL;
    if (strcmp(id, GGML_EXTENSION_PROFILE) == 0)
        return min_revision <= 1 ? profile_extension() : NULL;
    if (strcmp(id, GGML_EXTENSION_COMM) == 0) return min_revision <= 1 ? comm_extension() : NULL;
    if (strcmp(id, GGML_EXTENSION_EXTERNAL_MEMORY) == 0)
        return min_revision <= 1 ? external_extension() : NULL;
    return NULL;
}

static void (*detach)(const struct ggml_plugin_table *self, const struct ggml_host_table *host);

// As the helper library's, but that the newest host takes everything with it.
static void leave(const struct ggml_plugin_table *self, const struct ggml_host_table *host) {
    is_gone = host == newest;
    detach(self, host);
}

int32_t defective_init(const struct ggml_host_table *host,
                       const struct ggml_plugin_table **out_plugin) {
    static struct ggml_sdk_plugin plugin = {
        .start = start, .score = score, .shutdown = stop, .get_extension = extension};
    table = &plugin.table;
    const int32_t status = ggml_sdk_enter(&plugin, host, out_plugin);
    newest = host;
    is_gone = false;
    if (HAS(host_of_newest)) {
        if (!detach) detach = table->shutdown;
        table->shutdown = leave;
    }
    if (HAS(newer)) {
        ++table->contract_minor;
        table->reserved[0] = table;
    }
    if (HAS(table_missing)) *out_plugin = NULL;
    if (HAS(table_short)) table->size = 12;
    if (HAS(table_major)) ++table->contract_major;
    if (HAS(table_no_backend)) table->reg = NULL;
    if (HAS(table_reserved)) table->reserved[0] = table;
    return status;
}
