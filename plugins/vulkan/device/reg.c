// SPDX-License-Identifier: MIT
// Which devices there are.
#include <stdio.h>

#include "device/device.h"
#include "gpu/base/util.h"
#include "memory/buffer_type.h"

enum { MAX_PHYSICAL = 32, MAX_DEVICES = 32 };

static struct gvk_device *devices; // registry.n_devices of them
static struct gpu_reg registry = {.name = "Vulkan", .device_bytes = sizeof(struct gvk_device)};
static struct ggml_backend_reg reg_object;

// A physical device that can be used.
struct candidate {
    VkPhysicalDevice physical;
    struct gvk_probe probe;
    struct gvk_features features;
};

// --- finding -------------------------------------------------------------------------------------

// Reads what each device of the driver is and can; returns how many can be used, or -1 after the
// error was set. Others are logged with the reason.
static int read_candidates(struct candidate *candidates) {
    VkPhysicalDevice physical[MAX_PHYSICAL];
    uint32_t n_physical = MAX_PHYSICAL;
    char reason[GVK_MAX_REASON];
    int n = 0;
    const VkResult result =
        vkEnumeratePhysicalDevices(gvk_loader_instance(), &n_physical, physical);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE) {
        gvk_fail_call(result, "vkEnumeratePhysicalDevices");
        return -1;
    }
    for (uint32_t i = 0; i < n_physical; ++i) {
        struct candidate *c = &candidates[n];
        c->physical = physical[i];
        const bool answers = gvk_probe_read(physical[i], &c->probe);
        if (answers && gvk_probe_check(&c->probe, &c->features, reason)) {
            ++n;
        } else {
            GGML_LOG_INFO("vulkan: device '%s' can't be used: %s\n", c->probe.properties.deviceName,
                          answers ? reason : "its driver did not answer");
        }
    }
    if (n == 0)
        ggml_sdk_fail(GGML_HOST_NO_DEVICE,
                      "no Vulkan device can be used (%u found); the log says why", n_physical);
    return n;
}

// Those of equal rank stay in the driver's order.
// Insertion sort: few devices, and stable.
static void sort_candidates(int *order, const struct candidate *candidates, int n) {
    for (int i = 0; i < n; ++i) {
        int at = i;
        const int rank = gvk_probe_rank(&candidates[i].probe);
        for (; at > 0 && gvk_probe_rank(&candidates[order[at - 1]].probe) > rank; --at)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

// The list in GGML_VULKAN_DEVICES, or all. A number may come twice: two devices that share
// hardware.
static int read_filter(int *chosen, int n) {
    const char *text = gpu_config("GGML_VULKAN_DEVICES");
    int n_chosen = 0;
    if (*text == '\0') {
        for (; n_chosen < n; ++n_chosen)
            chosen[n_chosen] = n_chosen;
        return n_chosen;
    }
    while (*text && n_chosen < MAX_DEVICES) {
        char *end;
        const long number = strtol(text, &end, 10);
        if (end == text) break;
        if (number >= 0 && number < n)
            chosen[n_chosen++] = (int)number;
        else
            GGML_LOG_WARN("vulkan: GGML_VULKAN_DEVICES names device %ld of %d\n", number, n);
        text = *end == ',' ? end + 1 : end;
    }
    return n_chosen;
}

// --- devices -------------------------------------------------------------------------------------

static void list_features(void);

// Whether the first n characters of a, without case, are b. ASCII only, as locales would change
// it.
static bool equal_but_for_case(const char *a, size_t n, const char *b) {
    if (n != strlen(b)) return false;
    for (size_t i = 0; i < n; ++i) {
        const char x = a[i] >= 'A' && a[i] <= 'Z' ? (char)(a[i] - 'A' + 'a') : a[i];
        const char y = b[i] >= 'A' && b[i] <= 'Z' ? (char)(b[i] - 'A' + 'a') : b[i];
        if (x != y) return false;
    }
    return true;
}

// Whether GGML_DEVICES asks for the device itself, by its name or id; the host reads the rest of
// it.
static bool is_named(const struct gpu_device *device) {
    for (const char *list = gpu_config("GGML_DEVICES"); *list;) {
        list += strspn(list, ", \t");
        size_t n = strcspn(list, ",");
        const char *next = list + n;
        while (n > 0 && (list[n - 1] == ' ' || list[n - 1] == '\t'))
            --n;
        if (equal_but_for_case(list, n, device->name) || equal_but_for_case(list, n, device->id))
            return true;
        list = next;
    }
    return false;
}

// Fills in a device. Its id has to differ from those of others, as the host takes devices of one
// id for the same hardware.
static void init_device(struct gvk_device *device, const struct candidate *candidate, int number) {
    memset(device, 0, sizeof(*device));
    gvk_buffer_types_init(device, &reg_object, number);
    struct gpu_device *base = &device->base;
    device->physical = candidate->physical;
    device->probe = candidate->probe;
    device->features = candidate->features;
    if (gpu_has_word(gpu_config("GGML_VULKAN_DEBUG"), "gpu")) device->features.cpu = false;
    pthread_mutex_init(&device->mutex, NULL);
    snprintf(device->import_name, sizeof(device->import_name), "%.20s_Imported", base->name);
    gvk_probe_description(&device->probe, base->description, sizeof(base->description));
    gvk_probe_id(&device->probe, base->id, sizeof(base->id));
    // The same hardware a second time is another device all the same.
    for (int i = 0; i < number; ++i) {
        if (devices[i].physical == device->physical)
            snprintf(base->id + strlen(base->id), sizeof(base->id) - strlen(base->id), "#%d",
                     number);
        if (devices[i].physical == device->physical) break;
    }
    gvk_details_fill(&base->details, &device->probe);
    device->named = is_named(base);
}

// Candidates are large, hence on the heap; what is chosen is copied into the devices.
static bool make_devices(void) {
    const size_t size = MAX_PHYSICAL * sizeof(struct candidate);
    struct candidate *candidates = ggml_aligned_malloc(size);
    int order[MAX_PHYSICAL], chosen[MAX_DEVICES];
    if (!candidates) return false;
    const int n = read_candidates(candidates);
    if (n > 0) {
        sort_candidates(order, candidates, n);
        const int n_chosen = read_filter(chosen, n);
        if (n_chosen > 0)
            devices = ggml_aligned_malloc((size_t)n_chosen * sizeof(*devices));
        else
            ggml_sdk_fail(GGML_HOST_NO_DEVICE, "GGML_VULKAN_DEVICES leaves none of %d devices", n);
        registry.devices = devices;
        registry.n_devices = devices ? n_chosen : 0;
        for (int i = 0; i < registry.n_devices; ++i)
            init_device(&devices[i], &candidates[order[chosen[i]]], i);
    }
    ggml_aligned_free(candidates, size);
    list_features();
    return devices != NULL;
}

// --- features ------------------------------------------------------------------------------------

enum { FEATURES_PER_DEVICE = 6 };

// Of all devices, with an empty one at the end; made with the devices.
static struct ggml_backend_feature features[MAX_DEVICES * FEATURES_PER_DEVICE + 1];
static struct {
    char name[64];
    char value[16];
} feature_texts[MAX_DEVICES * FEATURES_PER_DEVICE];

// Appends "DEVICE.NAME" with a value to the list of features, unless it is 0; returns the new
// length.
static int add_feature(int n, const struct gvk_device *device, const char *name, uint32_t value) {
    if (value == 0) return n;
    snprintf(feature_texts[n].name, sizeof(feature_texts[n].name), "%s.%s", device->base.name,
             name);
    snprintf(feature_texts[n].value, sizeof(feature_texts[n].value), "%u", value);
    features[n] = (struct ggml_backend_feature){feature_texts[n].name, feature_texts[n].value};
    return n + 1;
}

// Lists features of all devices under names with the device's number. The list ends with an empty
// row.
static void list_features(void) {
    int n = 0;
    for (int i = 0; i < registry.n_devices; ++i) {
        const struct gvk_features *has = &devices[i].features;
        n = add_feature(n, &devices[i], "FP16", has->fp16);
        n = add_feature(n, &devices[i], "BF16", has->bf16);
        n = add_feature(n, &devices[i], "INT_DOT", has->int_dot);
        n = add_feature(n, &devices[i], "COOPMAT", has->coopmat);
        n = add_feature(n, &devices[i], "SUBGROUP_ARITHMETIC", has->subgroup_arithmetic);
        n = add_feature(n, &devices[i], "SUBGROUP_SIZE", has->subgroup_size);
    }
    features[n] = (struct ggml_backend_feature){NULL, NULL};
}

static struct ggml_backend_feature *get_features(ggml_backend_reg_t reg) {
    (void)reg;
    return features;
}

static void *reg_proc_address(ggml_backend_reg_t reg, const char *name) {
    (void)reg;
    if (strcmp(name, "ggml_backend_get_features") == 0) return (void *)(uintptr_t)get_features;
    return NULL;
}

// --- backend -------------------------------------------------------------------------------------

static const struct ggml_backend_table reg_table = {
    .size = sizeof(reg_table),
    .get_name = gpu_reg_name,
    .get_device_count = gpu_reg_device_count,
    .get_device = gpu_reg_device,
    .get_proc_address = reg_proc_address,
};

static struct ggml_backend_reg reg_object = {.table = &reg_table, .context = &registry};

// Started once for all hosts of the process. NULL after the error was set.
ggml_backend_reg_t gvk_reg_start(void) {
    if (devices) return &reg_object; // for another host
    if (!gvk_loader_start()) return NULL;
    if (make_devices()) return &reg_object;
    gvk_loader_stop();
    return NULL;
}

// Threads of all contexts end first: one may wait for another device's work.
void gvk_reg_stop(void) {
    for (int i = 0; i < registry.n_devices; ++i)
        gvk_context_end_threads(devices[i].context);
    for (int i = 0; i < registry.n_devices; ++i) {
        gvk_context_free(devices[i].context);
        pthread_mutex_destroy(&devices[i].mutex);
    }
    ggml_aligned_free(devices, (size_t)registry.n_devices * sizeof(*devices));
    registry.devices = devices = NULL;
    registry.n_devices = 0;
    gvk_loader_stop();
}
