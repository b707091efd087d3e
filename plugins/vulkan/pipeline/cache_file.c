// SPDX-License-Identifier: MIT
// The name of a file tells the device and its driver; what it holds is checked before the driver
// gets it.
#include "pipeline/cache_file.h"

#include <errno.h>
#include <stdio.h>

#include "pipeline/cache_disk.h"

#define MOST_BYTES ((size_t)256 << 20)

enum { MAX_PATH_BYTES = 1024 };

// Before the driver's data: a driver may not survive a file that was cut short.
struct header {
    char magic[8];
    uint64_t size;
    uint64_t hash;
};

static const char magic[8] = {'G', 'G', 'M', 'L', 'V', 'K', 'C', '1'};

// FNV-1a, 64 bits: finds files that were cut or damaged; it is no protection against forgery.
static uint64_t hash_bytes(const unsigned char *bytes, size_t n) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < n; ++i)
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    return hash;
}

// --- where ---------------------------------------------------------------------------------------

// The directory, "" if there is none.
static void directory(char *out_path, size_t size) {
    const char *own = gpu_config("GGML_VULKAN_CACHE");
    if (*own == '\0') {
        gvk_disk_default_dir(out_path, size);
    } else {
        snprintf(out_path, size, "%s", gvk_disk_is_absolute(own) ? own : "");
    }
}

bool gvk_cache_file_wanted(void) {
    char path[MAX_PATH_BYTES];
    directory(path, sizeof(path));
    return path[0] != '\0';
}

// The file's path, which names device, driver version and the driver's cache format; false where
// there is no directory for caches. With `makes` the directory is made.
static bool file_path(const struct gvk_probe *probe, bool makes, char *out_path, size_t size) {
    char path[MAX_PATH_BYTES];
    char uuid[2 * VK_UUID_SIZE + 1];
    directory(path, sizeof(path));
    if (path[0] == '\0' || !gvk_disk_enter(path, makes)) return false;
    for (size_t i = 0; i < VK_UUID_SIZE; ++i)
        snprintf(uuid + 2 * i, 3, "%02x", probe->properties.pipelineCacheUUID[i]);
    const int n = snprintf(out_path, size, "%s/vulkan-%04x-%04x-%08x-%s.bin", path,
                           probe->properties.vendorID, probe->properties.deviceID,
                           probe->properties.driverVersion, uuid);
    return n > 0 && (size_t)n < size;
}

// --- reading -------------------------------------------------------------------------------------

// Bytes of a pipeline cache begin with what they were made for.
static bool is_for(const struct gvk_probe *probe, const void *data, size_t size) {
    VkPipelineCacheHeaderVersionOne head;
    if (size < sizeof(head)) return false;
    memcpy(&head, data, sizeof(head));
    return head.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE &&
           head.vendorID == probe->properties.vendorID &&
           head.deviceID == probe->properties.deviceID &&
           memcmp(head.pipelineCacheUUID, probe->properties.pipelineCacheUUID, VK_UUID_SIZE) == 0;
}

// The data of an intact file of this device; NULL otherwise. The caller frees *out_size bytes.
static void *read_file(FILE *file, const struct gvk_probe *probe, size_t *out_size) {
    struct header header;
    if (fread(&header, sizeof(header), 1, file) != 1 ||
        memcmp(header.magic, magic, sizeof(magic)) != 0 || header.size == 0 ||
        header.size > MOST_BYTES)
        return NULL;
    const size_t size = (size_t)header.size;
    void *data = ggml_aligned_malloc(size);
    if (!data) return NULL;
    if (fread(data, 1, size, file) == size && hash_bytes(data, size) == header.hash &&
        is_for(probe, data, size)) {
        *out_size = size;
        return data;
    }
    ggml_aligned_free(data, size);
    return NULL;
}

// The driver's data of an earlier run, freed by the caller; NULL without a usable file. Header and
// checksum are verified, since drivers trust the data.
void *gvk_cache_file_read(const struct gvk_probe *probe, size_t *out_size) {
    char path[MAX_PATH_BYTES + 128];
    *out_size = 0;
    // A file that another user owns isn't passed to the driver.
    FILE *file = file_path(probe, false, path, sizeof(path)) ? gvk_disk_open_own(path) : NULL;
    if (!file) return NULL;
    void *data = read_file(file, probe, out_size);
    fclose(file);
    if (!data) GGML_LOG_DEBUG("vulkan: %s is not a cache of this device and driver\n", path);
    return data;
}

// --- writing -------------------------------------------------------------------------------------

// Writes a file beside the old one and renames it, so that other processes see one or the other.
// Failures are only logged: the next start compiles again. A driver that keeps nothing may return
// data that is shorter than its header (lavapipe of Mesa 26.2: 20 bytes); no reader would take it.
void gvk_cache_file_write(const struct gvk_probe *probe, const void *data, size_t size) {
    char path[MAX_PATH_BYTES + 128];
    char temporary[MAX_PATH_BYTES + 160];
    struct header header = {.size = size, .hash = hash_bytes(data, size)};
    memcpy(header.magic, magic, sizeof(magic));
    if (size > MOST_BYTES || !is_for(probe, data, size) ||
        !file_path(probe, true, path, sizeof(path)))
        return;
    FILE *file = gvk_disk_create_beside(path, temporary, sizeof(temporary));
    if (!file) {
        GGML_LOG_DEBUG("vulkan: can't write %s: %s\n", temporary, strerror(errno));
        return;
    }
    bool ok = fwrite(&header, sizeof(header), 1, file) == 1 && fwrite(data, 1, size, file) == size;
    ok = fclose(file) == 0 && ok;
    if (ok && gvk_disk_rename(temporary, path)) return;
    GGML_LOG_DEBUG("vulkan: can't write %s: %s\n", path, strerror(errno));
    gvk_disk_remove(temporary);
}
