// SPDX-License-Identifier: MIT
// Memory that others use too: files in memory, mapped.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "defective.h"

enum { PAGE = 4096, MAX_SHARED = 16 };

static const uint8_t uuid[GGML_EXTERNAL_UUID_BYTES] = "defective device";

// Never taken out: the buffers are few.
static struct {
    ggml_backend_buffer_t buffer;
    int fd;
    size_t size;
} shared[MAX_SHARED];
static int n_shared;

static int32_t map(ggml_backend_dev_t device, int fd, size_t bytes, size_t size,
                   ggml_backend_buffer_t *out_buffer) {
    const int flags = HAS(external_copied) ? MAP_PRIVATE : MAP_SHARED;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
    *out_buffer = memory != MAP_FAILED ? memory_wrap(device, memory, bytes, bytes) : NULL;
    return *out_buffer ? GGML_HOST_OK : fail(GGML_HOST_FAILED, "no memory to share");
}

static int32_t buffer_new(ggml_backend_dev_t device, size_t bytes,
                          ggml_backend_buffer_t *out_buffer) {
    const size_t size = (bytes + PAGE - 1) / PAGE * PAGE;
    if (n_shared == MAX_SHARED) return GGML_HOST_UNSUPPORTED;
    const int fd = memfd_create("defect", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, (off_t)size) != 0) return fail(GGML_HOST_FAILED, "no file");
    const int32_t status = map(device, fd, bytes, size, out_buffer);
    if (status != GGML_HOST_OK) return status;
    shared[n_shared].buffer = *out_buffer;
    shared[n_shared].size = size;
    shared[n_shared++].fd = fd;
    return status;
}

static int32_t buffer_export(ggml_backend_buffer_t buffer, uint32_t type,
                             struct ggml_external_memory *out_memory) {
    for (int i = n_shared - 1; i >= 0; --i) {
        if (shared[i].buffer != buffer) continue;
        out_memory->type = type;
        out_memory->fd =
            fcntl(shared[i].fd, HAS(external_not_cloexec) ? F_DUPFD : F_DUPFD_CLOEXEC, 0);
        out_memory->bytes = buffer->size;
        out_memory->allocation_bytes = shared[i].size;
        memcpy(out_memory->device_uuid, uuid, sizeof(uuid));
        memcpy(out_memory->driver_uuid, uuid, sizeof(uuid));
        return GGML_HOST_OK;
    }
    return GGML_HOST_UNSUPPORTED;
}

static int32_t buffer_import(ggml_backend_dev_t device, const struct ggml_external_memory *memory,
                             ggml_backend_buffer_t *out_buffer) {
    struct stat about;
    const bool mine = memcmp(memory->device_uuid, uuid, sizeof(uuid)) == 0 &&
                      memcmp(memory->driver_uuid, uuid, sizeof(uuid)) == 0;
    if (HAS(external_refuses_by_crash) && memory->fd < 0) abort();
    const int kept = HAS(external_leaks_files) ? dup(memory->fd) : -1;
    (void)kept;
    if (!mine && !HAS(external_id_unchecked))
        return fail(GGML_HOST_INVALID_ARGUMENT, "of another device");
    const bool is_memory = fstat(memory->fd, &about) == 0 && fcntl(memory->fd, F_GET_SEALS) >= 0;
    if (!is_memory) return fail(GGML_HOST_INVALID_ARGUMENT, "no such memory");
    const bool fits = memory->bytes <= memory->allocation_bytes &&
                      memory->allocation_bytes <= (uint64_t)about.st_size;
    if (!fits && !HAS(external_size_unchecked))
        return fail(GGML_HOST_INVALID_ARGUMENT, "of another size");
    const int32_t status = map(device, memory->fd, memory->bytes, memory->bytes, out_buffer);
    if (HAS(external_takes_file)) close(memory->fd);
    return status;
}

const struct ggml_extension_external_memory *external_extension(void) {
    static const struct ggml_extension_external_memory extension = {.size = sizeof(extension),
                                                                    .revision = 1,
                                                                    .buffer_new = buffer_new,
                                                                    .buffer_export = buffer_export,
                                                                    .buffer_import = buffer_import};
    return &extension;
}
