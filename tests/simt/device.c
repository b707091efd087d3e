// SPDX-License-Identifier: MIT
// simt.h on a GPU, by the driver, for the tests of the primitives: SIMT_IMAGE is the file of their
// kernels, as nvcc compiles primitives.cu; without it there is the name of none, for the fake
// driver. SIMT_DEVICE: which device (0). Defects are not looked for: there is nobody who would find
// them.
#include "simt.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/driver_api.h"
#include "primitives.h"

enum { MOST_MEMORY = 16, MOST_SHARED = 227 * 1024, STATIC_SHARED = 48 * 1024 };

// What kernels may use, and its copy on the device.
static struct memory {
    char *begin;
    size_t size;
    CUdeviceptr copy;
} all[MOST_MEMORY];
static int n_all;
static CUmodule module;
static CUstream stream;
static struct cu_api api;
static int device_capability; // 10 * major + minor

bool simt_finds_defects(void) {
    return false;
}

static void *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    void *data = NULL;
    long size;
    if (file && fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) > 0) {
        rewind(file);
        data = calloc(1, (size_t)size + 1);
        if (data && fread(data, 1, (size_t)size, file) != (size_t)size) data = NULL;
    }
    if (file) fclose(file);
    return data;
}

static bool find_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *symbol = library;
#define FIND(name, function, parameters)                                                           \
    if (symbol) symbol = dlsym(library, #function);                                                \
    memcpy(&api.name, &symbol, sizeof(symbol));
    CU_FUNCTIONS(FIND)
#undef FIND
    return symbol != NULL;
}

// The module stays until the program ends.
static CUresult start(void) {
    const char *number = getenv("SIMT_DEVICE"), *path = getenv("SIMT_IMAGE");
    const void *image = path ? read_file(path) : ".version 9.0 // emulated";
    CUdevice device;
    CUcontext context;
    int major = 0, minor = 0;
    CUresult result = find_driver() ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
    if (result == CUDA_SUCCESS) result = image ? api.cuInit(0) : CUDA_ERROR_INVALID_IMAGE;
    if (result == CUDA_SUCCESS) result = api.cuDeviceGet(&device, number ? atoi(number) : 0);
    if (result == CUDA_SUCCESS)
        result =
            api.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    if (result == CUDA_SUCCESS)
        result =
            api.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    device_capability = 10 * major + minor;
    if (result == CUDA_SUCCESS) result = api.cuDevicePrimaryCtxRetain(&context, device);
    if (result == CUDA_SUCCESS) result = api.cuCtxPushCurrent(context);
    if (result == CUDA_SUCCESS) result = api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (result == CUDA_SUCCESS) result = api.cuModuleLoadData(&module, image);
    return result;
}

static bool find(const char *kernel, CUfunction *out_function, char *message, size_t size) {
    static CUresult started = -1;
    if (started == -1) started = start();
    CUresult result = started;
    if (result == CUDA_SUCCESS) result = api.cuModuleGetFunction(out_function, module, kernel);
    if (result == CUDA_SUCCESS) return true;
    snprintf(message, size, "%s: the driver says %d", kernel, result);
    return false;
}

bool simt_has(const char *kernel) {
    char message[100];
    CUfunction function;
    return find(kernel, &function, message, sizeof(message));
}

void simt_set_seed(uint64_t seed) {
    (void)seed; // the device's order is its own
}

void simt_set_capability(unsigned capability) {
    (void)capability; // likewise
}

unsigned simt_get_capability(void) {
    return (unsigned)device_capability;
}

void simt_memory_show(void *begin, size_t size) {
    if (n_all == MOST_MEMORY) abort();
    all[n_all++] = (struct memory){begin, size, 0};
}

void simt_memory_add(void *begin, size_t size) {
    memset(begin, 0xff, size);
    simt_memory_show(begin, size);
}

void simt_memory_remove(void *begin) {
    int i = 0;
    while (i < n_all && all[i].begin != begin)
        ++i;
    if (i < n_all) all[i] = all[--n_all];
}

// Of an address in memory that kernels may use, that of its copy; 0 for 0.
static unsigned long long copy_of(unsigned long long address) {
    for (int i = 0; i < n_all; ++i) {
        const unsigned long long begin = (uintptr_t)all[i].begin;
        if (address >= begin && address < begin + all[i].size)
            return all[i].copy + (address - begin);
    }
    return 0;
}

static CUresult copy_in(void) {
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < n_all && result == CUDA_SUCCESS; ++i) {
        all[i].copy = 0;
        result = api.cuMemAlloc(&all[i].copy, all[i].size);
        if (result == CUDA_SUCCESS)
            result = api.cuMemcpyHtoDAsync(all[i].copy, all[i].begin, all[i].size, stream);
    }
    return result;
}

static CUresult copy_out(void) {
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < n_all && result == CUDA_SUCCESS; ++i)
        result = api.cuMemcpyDtoHAsync(all[i].begin, all[i].copy, all[i].size, stream);
    if (result == CUDA_SUCCESS) result = api.cuStreamSynchronize(stream);
    for (int i = 0; i < n_all; ++i) {
        if (all[i].copy) api.cuMemFree(all[i].copy);
    }
    return result;
}

bool simt_run(const struct simt_launch *l, char *message, size_t message_size) {
    CUfunction function;
    if (!find(l->kernel, &function, message, message_size)) return false;
    CUresult result = CUDA_SUCCESS;
    if (l->shared > STATIC_SHARED)
        result = api.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        (int)l->shared);
    else if (l->shared > 0) // the fake driver wants to be asked for any
        result = api.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        STATIC_SHARED);
    if (result == CUDA_SUCCESS) result = copy_in();
    if (result == CUDA_SUCCESS) {
        struct primitive_args args = *(const struct primitive_args *)l->args;
        void *params[] = {&args};
        args.x = copy_of(args.x);
        args.y = copy_of(args.y);
        args.z = copy_of(args.z);
        args.out = copy_of(args.out);
        result = api.cuLaunchKernel(function, l->grid[0], l->grid[1], l->grid[2], l->threads, 1, 1,
                                    (unsigned)l->shared, stream, params, NULL);
        const CUresult copied = copy_out();
        if (result == CUDA_SUCCESS) result = copied;
    }
    if (result != CUDA_SUCCESS)
        snprintf(message, message_size, "%s: the driver says %d", l->kernel, result);
    return result == CUDA_SUCCESS;
}
