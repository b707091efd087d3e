// SPDX-License-Identifier: MIT
// Memory of devices that MPI is given addresses of, where it says that it takes them.
//
// A base address in the contract may be anything that the plugin understands. So a device has to
// say that CUDA's driver runs it, and the driver has to know the address: of device memory, in an
// allocation that holds the whole buffer. What lies behind reserved addresses, as small buffers do,
// is left out: cuIpcGetMemHandle(), by which MPI passes memory to other processes, refuses it.
//
// MPI may ask the driver in the context that is current in the thread that calls it, also about a
// transfer that another call began. So only memory of one device is given to it, the first that has
// such a buffer, and the link's thread makes its context current before it calls MPI. The plugin
// pushes and pops its own above it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"

// Numbers of the driver's binary interface.
enum {
    CU_CONTEXT = 1,
    CU_MEMORY_TYPE = 2,
    CU_IS_LEGACY_IPC_CAPABLE = 10, // true of what cuMemAlloc() returned
    CU_RANGE_START = 11,
    CU_RANGE_SIZE = 12,
    CU_MEMORY_OF_DEVICE = 2,
};

static bool is_allowed(void) {
    const char *value = getenv("GGML_MPI_DEVICE_MEMORY");
    if (!value || value[0] == '\0' || strcmp(value, "auto") == 0) return true;
    if (strcmp(value, "off") == 0) return false;
    fprintf(stderr, "ggml-node: GGML_MPI_DEVICE_MEMORY=%s is neither auto nor off, auto is taken\n",
            value);
    return true;
}

void device_memory_init(struct device_memory *memory) {
    if (!is_allowed()) return;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!library) return; // no plugin has loaded it
    *(void **)&memory->get_attributes = dlsym(library, "cuPointerGetAttributes");
    *(void **)&memory->set_current = dlsym(library, "cuCtxSetCurrent");
}

static bool is_of_cuda(ggml_backend_dev_t device) {
    const struct ggml_backend_feature *detail = ggml_backend_dev_details(device);
    for (; detail && detail->name; ++detail)
        if (strcmp(detail->name, "driver") == 0) return strcmp(detail->value, "cuda") == 0;
    return false;
}

// The context of the allocation that holds the bytes, NULL: there is none. The driver sets all
// attributes to 0 for an address that it doesn't know.
static void *context_of(const struct device_memory *memory, uint64_t address, size_t size) {
    unsigned type = 0, is_plain = 0;
    void *context = NULL;
    uint64_t begin = 0;
    size_t bytes = 0;
    int which[] = {CU_CONTEXT, CU_MEMORY_TYPE, CU_IS_LEGACY_IPC_CAPABLE, CU_RANGE_START,
                   CU_RANGE_SIZE};
    void *values[] = {&context, &type, &is_plain, &begin, &bytes};
    if (memory->get_attributes(5, which, values, address) != 0) return NULL;
    const bool holds = begin <= address && size <= bytes && address - begin <= bytes - size;
    return type == CU_MEMORY_OF_DEVICE && is_plain && holds ? context : NULL;
}

bool device_memory_is_for_mpi(struct server *server, ggml_backend_dev_t device,
                              ggml_backend_buffer_t buffer, size_t size) {
    struct device_memory *memory = &server->device_memory;
    if (!memory->get_attributes || !memory->set_current || !link_has_cuda(server->link) ||
        !is_of_cuda(device)) {
        return false;
    }
    const uint64_t base = (uintptr_t)ggml_backend_buffer_get_base(buffer);
    const uintptr_t context = (uintptr_t)context_of(memory, base, size);
    uintptr_t chosen = 0;
    if (context == 0) return false;
    return atomic_compare_exchange_strong(&memory->context, &chosen, context) || chosen == context;
}

void device_memory_enter(void *context) {
    static uintptr_t current;
    const struct device_memory *memory = &((struct server *)context)->device_memory;
    const uintptr_t wanted = atomic_load(&memory->context);
    if (current != wanted && memory->set_current((void *)wanted) == 0) current = wanted;
}
