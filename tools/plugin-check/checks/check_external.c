// SPDX-License-Identifier: MIT
// Memory that others use too: the extension "ggml.external-memory".
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "ggml-impl.h"
#include "subject.h"

enum { N_NUMBERS = 1000, N_BYTES = N_NUMBERS * 4 };

// A buffer of a device, and what it was exported as.
struct shared {
    const struct check_run *run;
    const struct ggml_extension_external_memory *extension;
    ggml_backend_dev_t device;
    ggml_backend_buffer_t buffer;
    struct ggml_external_memory memory;
};

// Open file descriptors of this process.
static int n_files(void) {
    int n = 0;
    DIR *files = opendir("/proc/self/fd");
    while (files && readdir(files))
        ++n;
    if (files) closedir(files);
    return n;
}

// Makes a buffer and exports it; the check closes the file descriptor. False if the device has
// no such memory.
static bool shared_new(struct shared *shared) {
    const struct check_run *run = shared->run;
    const char *name = label(shared->device);
    shared->buffer = NULL;
    int32_t status = shared->extension->buffer_new(shared->device, N_BYTES, &shared->buffer);
    if (status == GGML_HOST_UNSUPPORTED) return false;
    CHECK_THAT(run, status == GGML_HOST_OK && shared->buffer && shared->buffer->table,
               "%s: no buffer, status %d (%s): %s", name, (int)status, status_text(status),
               host_counters.last_error);
    shared->memory = (struct ggml_external_memory){.size = sizeof(shared->memory), .fd = -1};
    status =
        shared->extension->buffer_export(shared->buffer, GGML_EXTERNAL_OPAQUE_FD, &shared->memory);
    if (status == GGML_HOST_UNSUPPORTED) return false;
    CHECK_THAT(run, status == GGML_HOST_OK, "%s: the buffer is not exported, status %d (%s): %s",
               name, (int)status, status_text(status), host_counters.last_error);
    CHECK_THAT(run,
               shared->memory.bytes == N_BYTES && shared->memory.allocation_bytes >= N_BYTES &&
                   shared->memory.type == GGML_EXTERNAL_OPAQUE_FD,
               "%s: the sizes or the type of what is exported are wrong", name);
    const int flags = fcntl(shared->memory.fd, F_GETFD);
    CHECK_THAT(run, flags >= 0 && flags & FD_CLOEXEC,
               "%s: the file descriptor is none, or stays open in other programs", name);
    return true;
}

static void shared_free(struct shared *shared) {
    if (shared->buffer) ggml_backend_buffer_free(shared->buffer);
}

// Runs the body for each device with such memory; skips the check if there is none.
static void for_each_device(struct check_run *run, void (*body)(struct shared *shared)) {
    struct devices devices;
    bool any = false;
    devices_open(run, &devices);
    const struct ggml_plugin_table *table = devices.subject.table;
    if (!table->get_extension) check_skip(run, "it has no extensions");
    const struct ggml_extension_external_memory *extension = table->get_extension(
        table, GGML_EXTENSION_EXTERNAL_MEMORY, GGML_EXTENSION_EXTERNAL_MEMORY_REVISION);
    if (!extension) check_skip(run, "it does not offer " GGML_EXTENSION_EXTERNAL_MEMORY);
    CHECK_THAT(run,
               extension->size >= sizeof(*extension) && extension->buffer_new &&
                   extension->buffer_export && extension->buffer_import,
               "the table of the extension is short, or an entry is missing");
    for (int i = 0; i < devices.n; ++i) {
        struct shared shared = {.run = run, .extension = extension, .device = devices.items[i]};
        if (shared_new(&shared)) {
            any = true;
            body(&shared);
            close(shared.memory.fd);
        }
        shared_free(&shared);
    }
    if (!any) check_skip(run, "no device has such memory");
}

// A tensor at the start of a buffer; its context lives as long as the process.
static struct ggml_tensor *tensor_in(const struct shared *shared, ggml_backend_buffer_t buffer) {
    struct ggml_context *ctx = ggml_init(
        (struct ggml_init_params){.mem_size = 2 * ggml_tensor_overhead(), .no_alloc = true});
    CHECK_THAT(shared->run, ctx, "no memory");
    struct ggml_tensor *tensor = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, N_NUMBERS);
    CHECK_THAT(shared->run,
               ggml_backend_tensor_alloc(buffer, tensor, ggml_backend_buffer_get_base(buffer)) ==
                   GGML_STATUS_SUCCESS,
               "%s: a tensor can't be placed", label(shared->device));
    return tensor;
}

// Writes random bytes on one side and reads them on the other.
static void pass_numbers(const struct shared *shared, struct ggml_tensor *from,
                         const struct ggml_tensor *to) {
    struct numbers numbers = {shared->run->seed + (from > to)};
    char sent[N_BYTES], seen[N_BYTES];
    numbers_fill(&numbers, sent, sizeof(sent));
    ggml_backend_tensor_set(from, sent, 0, sizeof(sent));
    ggml_backend_tensor_get(to, seen, 0, sizeof(seen));
    CHECK_THAT(shared->run, memcmp(sent, seen, sizeof(sent)) == 0,
               "%s: what one side writes the other does not see", label(shared->device));
}

// Imports what was exported, closes the file descriptor, and passes bytes both ways; the memory
// lives on in the second buffer when the first one is freed.
static void body_shared(struct shared *shared) {
    struct ggml_external_memory memory = shared->memory;
    ggml_backend_buffer_t other = NULL;
    memory.fd = fcntl(shared->memory.fd, F_DUPFD_CLOEXEC, 0);
    const int32_t status = shared->extension->buffer_import(shared->device, &memory, &other);
    CHECK_THAT(shared->run, status == GGML_HOST_OK && other,
               "%s: what was exported is not imported, status %d (%s): %s", label(shared->device),
               (int)status, status_text(status), host_counters.last_error);
    CHECK_THAT(shared->run, close(memory.fd) == 0,
               "%s: importing closes the caller's file descriptor", label(shared->device));
    CHECK_THAT(shared->run, other->size == N_BYTES, "%s: the buffer is %zu bytes long",
               label(shared->device), other->size);
    struct ggml_tensor *here = tensor_in(shared, shared->buffer);
    struct ggml_tensor *there = tensor_in(shared, other);
    pass_numbers(shared, here, there);
    pass_numbers(shared, there, here);
    ggml_backend_buffer_free(shared->buffer);
    shared->buffer = NULL;
    pass_numbers(shared, there, there);
    ggml_backend_buffer_free(other);
}

void buffer_external(struct check_run *run) {
    for_each_device(run, body_shared);
}

// Imports something wrong: INVALID_ARGUMENT, and no buffer.
static void must_refuse(const struct shared *shared, const struct ggml_external_memory *memory,
                        const char *what) {
    ggml_backend_buffer_t other = NULL;
    const int32_t status = shared->extension->buffer_import(shared->device, memory, &other);
    CHECK_THAT(shared->run, status == GGML_HOST_INVALID_ARGUMENT && !other,
               "%s: %s gets status %d (%s) instead of INVALID_ARGUMENT", label(shared->device),
               what, (int)status, status_text(status));
}

// Wrong descriptors, devices, drivers and sizes. None may be closed or kept open by it.
static void body_refused(struct shared *shared) {
    const int before = n_files();
    struct ggml_external_memory memory = shared->memory;
    memory.fd = -1;
    must_refuse(shared, &memory, "no file descriptor");
    memory.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    must_refuse(shared, &memory, "a file");
    close(memory.fd);
    must_refuse(shared, &memory, "a file that is closed");
    memory = shared->memory;
    memory.device_uuid[0] ^= 1;
    must_refuse(shared, &memory, "memory of another device");
    memory = shared->memory;
    memory.driver_uuid[15] ^= 1;
    must_refuse(shared, &memory, "memory of another driver");
    memory = shared->memory;
    memory.bytes = memory.allocation_bytes + 1;
    must_refuse(shared, &memory, "a buffer longer than its memory");
    memory.bytes = memory.allocation_bytes = UINT64_C(1) << 34;
    must_refuse(shared, &memory, "more memory than there is");
    CHECK_THAT(shared->run, n_files() == before, "%s: refusing leaves %d files open",
               label(shared->device), n_files() - before);
}

void buffer_external_refused(struct check_run *run) {
    for_each_device(run, body_refused);
}
