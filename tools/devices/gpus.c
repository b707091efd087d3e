// SPDX-License-Identifier: MIT
// Reads the PCI devices of display classes from /sys and their names from pci.ids. Other systems
// than Linux show none.
#define _POSIX_C_SOURCE 200809L
#include "gpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __linux__
#include <dirent.h>
#include <unistd.h>
#endif

enum { PATH_SIZE = 1024 };

struct vendor {
    unsigned id;
    const char *name;
    const char *kernel;  // what binds it, and Debian's package of that
    const char *drivers; // Vulkan drivers, and Debian's package of them; NULL: display only
};

static const struct vendor vendors[] = {
    {0x10de, "NVIDIA", "NVIDIA's kernel module (Debian: nvidia-driver)",
     "NVIDIA's Vulkan driver (Debian: nvidia-vulkan-icd)"},
    {0x1002, "AMD", "the kernel module amdgpu (Debian: firmware-amd-graphics)",
     "Mesa's Vulkan drivers (Debian: mesa-vulkan-drivers)"},
    {0x8086, "Intel", "the kernel module i915 or xe (Debian: firmware-misc-nonfree)",
     "Mesa's Vulkan drivers (Debian: mesa-vulkan-drivers)"},
    {0x1af4, "Red Hat (virtio)", "the kernel module virtio-gpu",
     "Mesa's Vulkan drivers (Debian: mesa-vulkan-drivers)"},
    {0x1ed5, "Moore Threads", "the vendor's kernel module", "the vendor's Vulkan driver"},
    {0x1234, "QEMU", "", NULL},
    {0x1b36, "Red Hat (QXL)", "", NULL},
    {0x15ad, "VMware", "", NULL},
    {0x1414, "Microsoft (Hyper-V)", "", NULL},
    {0x1013, "Cirrus Logic", "", NULL},
    {0x1a03, "ASPEED", "", NULL},
    {0x102b, "Matrox", "", NULL},
};

static const struct vendor *vendor_of(unsigned id) {
    for (size_t i = 0; i < sizeof(vendors) / sizeof(vendors[0]); ++i)
        if (vendors[i].id == id) return &vendors[i];
    return NULL;
}

const char *gpu_plugin_name(const struct gpu *gpu) {
    return gpu->display_only ? NULL : "vulkan";
}

// One sentence: what to install or do so that the GPU is used, by its driver and what became of
// the plugin.
void gpu_advise(const struct gpu *gpu, enum gpu_plugin plugin, char *out_text, size_t size) {
    const struct vendor *vendor = vendor_of(gpu->vendor);
    const char *kernel = vendor ? vendor->kernel : "its vendor's kernel module";
    const char *drivers = vendor && vendor->drivers ? vendor->drivers : "its Vulkan driver";
    if (strcmp(gpu->driver, "nouveau") == 0)
        drivers = "Mesa's Vulkan drivers (Debian: mesa-vulkan-drivers)";
    if (gpu->display_only) {
        snprintf(out_text, size, "shows pictures, and computes nothing");
    } else if (strcmp(gpu->driver, "vfio-pci") == 0) {
        snprintf(out_text, size, "is kept for a virtual machine by the driver vfio-pci");
    } else if (gpu->driver[0] == '\0') {
        snprintf(out_text, size,
                 "no kernel driver is bound to it: install %s, then %s for the plugin 'vulkan'",
                 kernel, drivers);
    } else if (plugin == GPU_PLUGIN_MISSING) {
        snprintf(out_text, size,
                 "the plugin 'vulkan' would serve it with %s, and was not found: put it into one "
                 "of the directories below",
                 drivers);
    } else if (plugin == GPU_PLUGIN_REFUSED) {
        snprintf(out_text, size,
                 "the plugin 'vulkan' would serve it with %s, and was refused: its line says why",
                 drivers);
    } else {
        snprintf(out_text, size,
                 "the plugin 'vulkan' is in use and has no device of it: install %s", drivers);
    }
}

#ifdef __linux__
// False if the file is not there or no number.
static bool read_hex(const char *root, const char *address, const char *name, unsigned *out) {
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/%s", root, address, name);
    FILE *file = fopen(path, "r");
    if (!file) return false;
    const bool read = fscanf(file, "%x", out) == 1;
    fclose(file);
    return read;
}

// The kernel driver that is bound to the device; empty if none is.
static void read_driver(const char *root, struct gpu *gpu) {
    char path[PATH_SIZE], target[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/driver", root, gpu->address);
    const ssize_t length = readlink(path, target, sizeof(target) - 1);
    if (length <= 0) return;
    target[length] = '\0';
    const char *slash = strrchr(target, '/');
    snprintf(gpu->driver, sizeof(gpu->driver), "%.31s", slash ? slash + 1 : target);
}

// Displays, accelerators and coprocessors.
static bool is_gpu_class(unsigned class_code) {
    const unsigned base = class_code >> 16, sub = class_code >> 8 & 0xff;
    return base == 0x03 || base == 0x12 || (base == 0x0b && sub == 0x40);
}

// Reads one PCI device; false if it is no GPU.
static bool read_gpu(const char *root, const char *address, struct gpu *out_gpu) {
    unsigned class_code = 0;
    memset(out_gpu, 0, sizeof(*out_gpu));
    if (strlen(address) >= sizeof(out_gpu->address)) return false;
    if (!read_hex(root, address, "class", &class_code) || !is_gpu_class(class_code)) return false;
    if (!read_hex(root, address, "vendor", &out_gpu->vendor)) return false;
    read_hex(root, address, "device", &out_gpu->device);
    snprintf(out_gpu->address, sizeof(out_gpu->address), "%s", address);
    read_driver(root, out_gpu);
    const struct vendor *vendor = vendor_of(out_gpu->vendor);
    if (vendor) snprintf(out_gpu->vendor_name, sizeof(out_gpu->vendor_name), "%s", vendor->name);
    out_gpu->display_only = vendor && !vendor->drivers;
    return true;
}

static int compare(const void *a, const void *b) {
    return strcmp(((const struct gpu *)a)->address, ((const struct gpu *)b)->address);
}

// --- names: lines "VVVV  vendor", and below each "\tDDDD  device"

// The list of PCI names (pci.ids) where distributions have it; NULL without it.
static FILE *open_names(const char *root) {
    static const char *const places[] = {"usr/share/misc/pci.ids", "usr/share/hwdata/pci.ids"};
    for (int i = 0; i < 2; ++i) {
        char path[PATH_SIZE];
        snprintf(path, sizeof(path), "%s/%s", root, places[i]);
        FILE *file = fopen(path, "r");
        if (file) return file;
    }
    return NULL;
}

// One pass over pci.ids, which lists a vendor and then its devices, indented.
static void name_gpus(const char *root, struct gpu *gpus, size_t count) {
    char line[512];
    unsigned vendor = 0;
    FILE *file = open_names(root);
    while (file && fgets(line, sizeof(line), file)) {
        const bool is_device = line[0] == '\t';
        char *end = NULL;
        const unsigned number = (unsigned)strtoul(line + is_device, &end, 16);
        if (end != line + is_device + 4 || strncmp(end, "  ", 2) != 0) continue;
        end[2 + strcspn(end + 2, "\r\n")] = '\0';
        if (!is_device) vendor = number;
        for (size_t i = 0; i < count; ++i) {
            struct gpu *gpu = &gpus[i];
            if (gpu->vendor != vendor) continue;
            if (!is_device && gpu->vendor_name[0] == '\0')
                snprintf(gpu->vendor_name, sizeof(gpu->vendor_name), "%.31s", end + 2);
            if (is_device && gpu->device == number)
                snprintf(gpu->model, sizeof(gpu->model), "%.95s", end + 2);
        }
    }
    if (file) fclose(file);
}

// All GPUs below `root`, sorted by address; the caller frees *out_gpus.
size_t gpus_find(const char *root, struct gpu **out_gpus) {
    char path[PATH_SIZE];
    size_t count = 0;
    *out_gpus = NULL;
    snprintf(path, sizeof(path), "%s/sys/bus/pci/devices", root);
    DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)) != NULL) {
        struct gpu gpu;
        if (entry->d_name[0] == '.' || !read_gpu(root, entry->d_name, &gpu)) continue;
        struct gpu *grown = realloc(*out_gpus, (count + 1) * sizeof(*grown));
        if (!grown) break;
        *out_gpus = grown;
        grown[count++] = gpu;
    }
    if (folder) closedir(folder);
    if (count > 0) qsort(*out_gpus, count, sizeof(**out_gpus), compare);
    if (count > 0) name_gpus(root, *out_gpus, count);
    return count;
}
#else
size_t gpus_find(const char *root, struct gpu **out_gpus) {
    (void)root;
    *out_gpus = NULL;
    return 0;
}
#endif
