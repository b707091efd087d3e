// SPDX-License-Identifier: MIT
// The library is opened when the program runs and never closed: the driver leaves threads and
// destructors behind. A function that is missing means a driver that is too old.
#include "device/loader.h"

#include <dlfcn.h>

#include "ggml-plugin.h"

enum { LEAST_VERSION = 11040 }; // the first with all functions of driver_api.h

static struct cu_api api;
static int version;
static void *library;

const struct cu_api *cuda_api(void) {
    return &api;
}

int cuda_driver_version(void) {
    return version;
}

// Also before all functions are found: a message about the driver must not need the driver.
const char *cuda_error_name(CUresult error) {
    const char *name = NULL;
    if (api.cuGetErrorName) api.cuGetErrorName(error, &name);
    return name ? name : "unknown error";
}

static bool find_functions(void) {
    void *found;
#define FIND(name, symbol, parameters)                                                             \
    found = dlsym(library, #symbol);                                                               \
    if (!found) {                                                                                  \
        ggml_sdk_fail(GGML_HOST_NO_DEVICE, "the CUDA driver has no %s: update it", #symbol);       \
        return false;                                                                              \
    }                                                                                              \
    memcpy(&api.name, &found, sizeof(found));
    CU_FUNCTIONS(FIND)
#undef FIND
#define FIND(name, symbol, parameters)                                                             \
    found = dlsym(library, #symbol);                                                               \
    memcpy(&api.name, &found, sizeof(found));
    CU_LATER_FUNCTIONS(FIND)
#undef FIND
    return true;
}

// Each failure says what to install or update, since it is what the plugin's record will show. The
// library stays open after one as well: a second dlopen would load the driver's threads again.
bool cuda_loader_start(void) {
    if (!library) library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        ggml_sdk_fail(GGML_HOST_NO_DEVICE, "no CUDA driver: install NVIDIA's (%s)", dlerror());
        return false;
    }
    if (!find_functions()) return false;
    const CUresult result = api.cuInit(0);
    if (result != CUDA_SUCCESS) {
        ggml_sdk_fail(result == CUDA_ERROR_OUT_OF_MEMORY ? GGML_HOST_OUT_OF_MEMORY
                                                         : GGML_HOST_NO_DEVICE,
                      "the CUDA driver does not start: %s", cuda_error_name(result));
        return false;
    }
    if (api.cuDriverGetVersion(&version) == CUDA_SUCCESS && version >= LEAST_VERSION) return true;
    ggml_sdk_fail(GGML_HOST_NO_DEVICE,
                  "the CUDA driver is of version %d.%d, %d.%d is needed: update it", version / 1000,
                  version % 1000 / 10, LEAST_VERSION / 1000, LEAST_VERSION % 1000 / 10);
    return false;
}
