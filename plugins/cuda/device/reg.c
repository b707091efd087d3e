// SPDX-License-Identifier: MIT
// The driver is started once per process, by the first host, and its devices are those of the
// moment: CUDA does not add devices to a process that runs. cuInit is the costly call; no context
// is made here, which would take some hundred MiB of each device for a program that only lists
// them. Which devices there are. CUDA_VISIBLE_DEVICES is the driver's to read.
#include <stdio.h>
#include <unistd.h>

#include "device/device.h"
#include "device/image.h"
#include "device/loader.h"
#include "memory/buffer.h"

enum { MAX_DEVICES = 32 };

static struct cuda_device *devices; // room for n_room
static int n_room;
static struct gpu_reg registry = {.name = "CUDA", .device_bytes = sizeof(struct cuda_device)};
static struct ggml_backend_reg reg_object;
// The process that started the driver: CUDA does not survive a fork.
static pid_t owner;

bool cuda_in_owner(void) {
    return getpid() == owner;
}

// What is read only from driver calls that need no context.
static void fill_details(struct cuda_device *device, int major, int minor) {
    struct gpu_details *details = &device->base.details;
    const struct cu_api *api = cuda_api();
    const int version = cuda_driver_version();
    CUuuid uuid;
    gpu_details_add(details, "driver", "cuda");
    gpu_details_add(details, "api-version", "%d.%d", version / 1000, version % 1000 / 10);
    gpu_details_add(details, "compute-capability", "%d.%d", major, minor);
    gpu_details_add(details, "kernels", "%s", cuda_images_text());
    if (api->cuDeviceGetUuid(&uuid, device->handle) == CUDA_SUCCESS) {
        char text[33];
        for (int i = 0; i < 16; ++i)
            snprintf(text + 2 * i, 3, "%02x", (unsigned char)uuid.bytes[i]);
        // A part of a device (MIG) has a name that says so, and a UUID of its own.
        const char *kind = strstr(device->base.description, " MIG ") ? "MIG" : "GPU";
        gpu_details_add(details, "uuid", "%s-%.8s-%.4s-%.4s-%.4s-%.12s", kind, text, text + 8,
                        text + 12, text + 16, text + 20);
    }
    if (device->base.id[0] != '\0') gpu_details_add(details, "link", "pci");
}

// The driver's form has capital letters.
static void read_id(struct cuda_device *device) {
    if (cuda_api()->cuDeviceGetPCIBusId(device->base.id, sizeof(device->base.id), device->handle) !=
        CUDA_SUCCESS)
        device->base.id[0] = '\0';
    for (char *c = device->base.id; *c; ++c) {
        if (*c >= 'A' && *c <= 'Z') *c = (char)(*c - 'A' + 'a');
    }
}

static bool can_register(CUdevice device) {
    int can = 0;
    return cuda_api()->cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED,
                                            device) == CUDA_SUCCESS &&
           can;
}

static char refused[320]; // why the last device was that has no kernels

// PTX runs on every later capability; older ones have no code at all.
static bool has_kernels(const char *model, int major, int minor) {
    int least = cuda_image(0)->least_capability;
    for (int i = 1; i < cuda_n_images(); ++i)
        least = MIN(least, cuda_image(i)->least_capability);
    if (10 * major + minor >= least) return true;
    snprintf(refused, sizeof(refused),
             "%.79s has compute capability %d.%d, the plugin's kernels (%s) need %d.%d or later",
             model, major, minor, cuda_images_text(), least / 10, least % 10);
    GGML_LOG_WARN("cuda: device can't be used: %s\n", refused);
    return false;
}

// Devices that don't answer are left out, with a warning: a GPU that fell off the bus must not take
// the others with it. Numbers have no gaps, names follow the driver's order.
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
    if (!has_kernels(model, major, minor)) return false;
    // Nothing can fail from here on: the number is taken.
    cuda_buffer_types_init(device, &reg_object, registry.n_devices);
    device->integrated = integrated != 0;
    device->registers = can_register(device->handle) && gpu_is_set("GGML_CUDA_REGISTER_HOST");
    device->unpinned = gpu_is_set("GGML_CUDA_NO_PINNED");
    snprintf(device->base.description, sizeof(device->base.description),
             "%.79s (unverified on hardware)", model);
    read_id(device);
    fill_details(device, major, minor);
    pthread_mutex_init(&device->mutex, NULL);
    return true;
}

static bool make_devices(void) {
    int n = 0;
    refused[0] = '\0';
    if (cuda_api()->cuDeviceGetCount(&n) != CUDA_SUCCESS) n = 0;
    n_room = MIN(n, MAX_DEVICES);
    if (n_room > 0) devices = ggml_aligned_malloc((size_t)n_room * sizeof(*devices));
    for (int i = 0; devices && i < n_room; ++i)
        registry.n_devices += init_device(&devices[registry.n_devices], i);
    registry.devices = devices;
    if (registry.n_devices > 0) return true;
    if (refused[0] != '\0')
        ggml_sdk_fail(GGML_HOST_NO_DEVICE, "no CUDA device can be used: %s", refused);
    else if (n_room == 0 || devices)
        ggml_sdk_fail(GGML_HOST_NO_DEVICE,
                      "no CUDA device can be used (%d found; CUDA_VISIBLE_DEVICES may hide some)",
                      n);
    ggml_aligned_free(devices, (size_t)n_room * sizeof(*devices));
    registry.devices = devices = NULL;
    return false;
}

static const struct ggml_backend_table reg_table = {
    .size = sizeof(reg_table),
    .get_name = gpu_reg_name,
    .get_device_count = gpu_reg_device_count,
    .get_device = gpu_reg_device,
};

static struct ggml_backend_reg reg_object = {.table = &reg_table, .context = &registry};

ggml_backend_reg_t cuda_reg(void) {
    return &reg_object;
}

ggml_backend_reg_t cuda_reg_start(void) {
    if (devices) return &reg_object; // for another host
    owner = getpid();
    return cuda_loader_start() && make_devices() ? &reg_object : NULL;
}

// The library stays open and initialised: the application may use the driver itself.
void cuda_reg_stop(void) {
    for (int i = 0; i < registry.n_devices; ++i) {
        cuda_context_free(devices[i].context);
        pthread_mutex_destroy(&devices[i].mutex);
    }
    ggml_aligned_free(devices, (size_t)n_room * sizeof(*devices));
    registry.devices = devices = NULL;
    registry.n_devices = n_room = 0;
}
