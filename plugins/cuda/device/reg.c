// SPDX-License-Identifier: MIT
// Which devices there are. CUDA_VISIBLE_DEVICES is the driver's to read.
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "device/device.h"
#include "device/image.h"
#include "device/loader.h"
#include "memory/buffer.h"

enum { MAX_DEVICES = 32 };

static struct cuda_device *devices; // room for n_room
static int n_devices, n_room;
static struct ggml_backend_reg reg_object;
static pid_t owner;

bool cuda_in_owner(void) {
    return getpid() == owner;
}

static void add_detail(struct cuda_device *device, const char *key, const char *format, ...)
    GGML_ATTRIBUTE_FORMAT(3, 4);

static void add_detail(struct cuda_device *device, const char *key, const char *format, ...) {
    va_list args;
    char *text = device->texts[device->n_details];
    va_start(args, format);
    vsnprintf(text, sizeof(device->texts[0]), format, args);
    va_end(args);
    device->details[device->n_details++] = (struct ggml_backend_feature){key, text};
}

static void fill_details(struct cuda_device *device, int major, int minor) {
    const struct cu_api *api = cuda_api();
    const int version = cuda_driver_version();
    CUuuid uuid;
    add_detail(device, "driver", "cuda");
    add_detail(device, "api-version", "%d.%d", version / 1000, version % 1000 / 10);
    add_detail(device, "compute-capability", "%d.%d", major, minor);
    add_detail(device, "kernels", "%s", cuda_image_text());
    if (api->cuDeviceGetUuid(&uuid, device->handle) == CUDA_SUCCESS) {
        char text[33];
        for (int i = 0; i < 16; ++i)
            snprintf(text + 2 * i, 3, "%02x", (unsigned char)uuid.bytes[i]);
        add_detail(device, "uuid", "GPU-%.8s-%.4s-%.4s-%.4s-%.12s", text, text + 8, text + 12,
                   text + 16, text + 20);
    }
    if (device->id[0] != '\0') add_detail(device, "link", "pci");
}

// The driver's form has capital letters.
static void read_id(struct cuda_device *device) {
    if (cuda_api()->cuDeviceGetPCIBusId(device->id, sizeof(device->id), device->handle) !=
        CUDA_SUCCESS)
        device->id[0] = '\0';
    for (char *c = device->id; *c; ++c) {
        if (*c >= 'A' && *c <= 'Z') *c = (char)(*c - 'A' + 'a');
    }
}

static bool init_device(struct cuda_device *device, int index) {
    const struct cu_api *api = cuda_api();
    int major, minor, integrated;
    char model[80];
    memset(device, 0, sizeof(*device));
    if (api->cuDeviceGet(&device->handle, index) != CUDA_SUCCESS ||
        api->cuDeviceGetName(model, sizeof(model), device->handle) != CUDA_SUCCESS ||
        api->cuDeviceTotalMem(&device->memory, device->handle) != CUDA_SUCCESS ||
        api->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                  device->handle) != CUDA_SUCCESS ||
        api->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                  device->handle) != CUDA_SUCCESS ||
        api->cuDeviceGetAttribute(&integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED, device->handle) !=
            CUDA_SUCCESS) {
        GGML_LOG_WARN("cuda: device %d can't be used: the driver does not describe it\n", index);
        return false;
    }
    device->integrated = integrated != 0;
    device->base = (struct ggml_backend_device){
        .table = &cuda_device_table, .reg = &reg_object, .context = device};
    snprintf(device->name, sizeof(device->name), "CUDA%d", n_devices);
    snprintf(device->host_name, sizeof(device->host_name), "%.15s_Host", device->name);
    snprintf(device->description, sizeof(device->description), "%.79s (unverified on hardware)",
             model);
    read_id(device);
    fill_details(device, major, minor);
    pthread_mutex_init(&device->mutex, NULL);
    cuda_buffer_types_init(device);
    return true;
}

static bool make_devices(void) {
    int n = 0;
    if (cuda_api()->cuDeviceGetCount(&n) != CUDA_SUCCESS) n = 0;
    n_room = MIN(n, MAX_DEVICES);
    if (n_room > 0) devices = ggml_aligned_malloc((size_t)n_room * sizeof(*devices));
    for (int i = 0; devices && i < n_room; ++i)
        n_devices += init_device(&devices[n_devices], i);
    if (n_devices > 0) return true;
    if (n_room == 0 || devices)
        cuda_fail(GGML_HOST_NO_DEVICE,
                  "no CUDA device can be used (%d found; CUDA_VISIBLE_DEVICES may hide some)", n);
    ggml_aligned_free(devices, (size_t)n_room * sizeof(*devices));
    devices = NULL;
    return false;
}

static const char *reg_name(ggml_backend_reg_t reg) {
    (void)reg;
    return "CUDA";
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

static struct ggml_backend_reg reg_object = {.table = &reg_table};

ggml_backend_reg_t cuda_reg_start(void) {
    if (devices) return &reg_object; // for another host
    owner = getpid();
    return cuda_loader_start() && make_devices() ? &reg_object : NULL;
}

void cuda_reg_stop(void) {
    for (int i = 0; i < n_devices; ++i) {
        cuda_context_free(devices[i].context);
        pthread_mutex_destroy(&devices[i].mutex);
    }
    ggml_aligned_free(devices, (size_t)n_room * sizeof(*devices));
    devices = NULL;
    n_devices = n_room = 0;
}
