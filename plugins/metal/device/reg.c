// SPDX-License-Identifier: MIT
// Which devices there are: those of Metal 3, whose kernels can follow addresses, and whose SIMD
// groups have 32 lanes or more.
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "device/device.h"
#include "memory/buffer.h"

enum { MAX_DEVICES = 8 };

static struct metal_device *devices; // room for MAX_DEVICES
static int n_devices;
static struct ggml_backend_reg reg_object;
static pid_t owner;

// Whether this is the process that started Metal, and not a child of it.
bool metal_in_owner(void) {
    return getpid() == owner;
}

static void add_detail(struct metal_device *device, const char *key, const char *format, ...)
    GGML_ATTRIBUTE_FORMAT(3, 4);

// Formats a value into the device's own text: details have to live as long as the device.
static void add_detail(struct metal_device *device, const char *key, const char *format, ...) {
    va_list args;
    char *text = device->texts[device->n_details];
    va_start(args, format);
    vsnprintf(text, sizeof(device->texts[0]), format, args);
    va_end(args);
    device->details[device->n_details++] = (struct ggml_backend_feature){key, text};
}

// The newest family of Apple's GPUs is listed, which includes the older ones.
static void fill_details(struct metal_device *device) {
    add_detail(device, "driver", "metal");
    for (int family = MTL_FAMILY_APPLE_9; family >= MTL_FAMILY_APPLE_1; --family) {
        if (!mtl_supports_family(device->handle, family)) continue;
        add_detail(device, "family", "apple%d", family - MTL_FAMILY_APPLE_1 + 1);
        break;
    }
    if (mtl_supports_family(device->handle, MTL_FAMILY_MAC_2)) add_detail(device, "family", "mac2");
    add_detail(device, "unified-memory", "%s", device->unified ? "yes" : "no");
    add_detail(device, "max-buffer", "%zu", device->max_buffer);
}

// What kernels need and the device does not have, or NULL. GPUs that share the host's memory and
// are none of Apple's, which are Intel's, have SIMD groups of 8 or 16 lanes for some kernels, as
// the compiler likes.
static const char *lack_of(mtl_id handle) {
    if (!mtl_supports_family(handle, MTL_FAMILY_METAL_3)) return "it is not of Metal 3";
    if (mtl_has_unified_memory(handle) && !mtl_supports_family(handle, MTL_FAMILY_APPLE_1))
        return "its SIMD groups may have fewer than 32 lanes";
    return NULL;
}

// Takes over the reference.
static bool init_device(struct metal_device *device, mtl_id handle) {
    const char *model = mtl_utf8(mtl_name(handle));
    if (!model) model = "a device without a name";
    memset(device, 0, sizeof(*device));
    const char *lack = lack_of(handle);
    if (lack) {
        GGML_LOG_WARN("metal: %s can't be used: %s\n", model, lack);
        mtl_release(handle);
        return false;
    }
    // Nothing can fail from here on: the number is taken.
    device->handle = handle;
    device->memory = mtl_working_set(handle);
    device->max_buffer = mtl_max_buffer_length(handle);
    device->unified = mtl_has_unified_memory(handle);
    device->base = (struct ggml_backend_device){
        .table = &metal_device_table, .reg = &reg_object, .context = device};
    snprintf(device->name, sizeof(device->name), "Metal%d", n_devices);
    snprintf(device->description, sizeof(device->description), "%.79s (unverified on hardware)",
             model);
    snprintf(device->id, sizeof(device->id), "metal:%016llx",
             (unsigned long long)mtl_registry_id(handle));
    fill_details(device);
    pthread_mutex_init(&device->mutex, NULL);
    metal_buffer_types_init(device);
    return true;
}

// All devices or, where the list is empty, the default one. init_device() takes ownership of the
// handle.
static void find_devices(void) {
    const mtl_id all = mtl_api.all_devices ? mtl_api.all_devices() : NULL;
    const mtl_word n = mtl_count(all);
    for (mtl_word i = 0; i < n && n_devices < MAX_DEVICES; ++i)
        n_devices += init_device(&devices[n_devices], mtl_retain(mtl_object_at(all, i)));
    mtl_release(all);
    const mtl_id device = n == 0 ? mtl_api.default_device() : NULL;
    if (device) n_devices += init_device(&devices[n_devices], device);
}

// false with NO_DEVICE if no device can be used.
static bool make_devices(void) {
    devices = ggml_aligned_malloc(MAX_DEVICES * sizeof(*devices));
    if (!devices) return false;
    void *pool = mtl_api.pool_push();
    find_devices();
    mtl_api.pool_pop(pool);
    if (n_devices > 0) return true;
    ggml_sdk_fail(GGML_HOST_NO_DEVICE, "no device of Metal 3 with SIMD groups of 32 lanes");
    ggml_aligned_free(devices, MAX_DEVICES * sizeof(*devices));
    devices = NULL;
    return false;
}

static const char *reg_name(ggml_backend_reg_t reg) {
    (void)reg;
    return "Metal";
}

static size_t reg_device_count(ggml_backend_reg_t reg) {
    (void)reg;
    return (size_t)n_devices;
}

static ggml_backend_dev_t reg_device(ggml_backend_reg_t reg, size_t index) {
    (void)reg;
    return index < (size_t)n_devices ? &devices[index].base : NULL;
}

static const struct ggml_backend_table reg_table = {
    .size = sizeof(reg_table),
    .get_name = reg_name,
    .get_device_count = reg_device_count,
    .get_device = reg_device,
};

// One registration for all hosts of the process, as there is one list of devices.
static struct ggml_backend_reg reg_object = {.table = &reg_table};

// A second host of the same process gets the same registry entry.
ggml_backend_reg_t metal_reg_start(void) {
    if (devices) return &reg_object; // for another host
    owner = getpid();
    return mtl_start() && make_devices() ? &reg_object : NULL;
}

// After the last host: streams and buffers are gone by then.
void metal_reg_stop(void) {
    for (int i = 0; i < n_devices; ++i) {
        metal_context_free(devices[i].context);
        if (metal_in_owner()) mtl_release(devices[i].handle);
        pthread_mutex_destroy(&devices[i].mutex);
    }
    ggml_aligned_free(devices, MAX_DEVICES * sizeof(*devices));
    devices = NULL;
    n_devices = 0;
}
