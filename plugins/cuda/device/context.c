// SPDX-License-Identifier: MIT
// Primary contexts are counted by the driver: an application that uses the runtime API shares ours,
// its pointers and events included, and keeps it when we release. After some errors (an illegal
// address, a launch failure, memory that can't be corrected, ...) the context is lost for the whole
// process, so that the first such result is remembered and every later call fails at once with
// DEVICE_LOST.
#include "device/context.h"

#include "device/image.h"
#include "device/loader.h"
#include "device/peer.h"
#include "memory/budget.h"

// CUDA_ERROR_UNKNOWN is a failure of the call: where the device is gone, the next call says the
// same.
static enum ggml_host_status status_of(CUresult result) {
    switch (result) {
    case CUDA_SUCCESS: return GGML_HOST_OK;
    case CUDA_ERROR_OUT_OF_MEMORY: return GGML_HOST_OUT_OF_MEMORY;
    case CUDA_ERROR_NO_DEVICE: return GGML_HOST_NO_DEVICE;
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_JIT_COMPILATION_DISABLED: return GGML_HOST_UNSUPPORTED;
    default: return cu_ends_context(result) ? GGML_HOST_DEVICE_LOST : GGML_HOST_FAILED;
    }
}

enum ggml_host_status cuda_context_check(struct cuda_context *context, CUresult result,
                                         const char *call) {
    const enum ggml_host_status status = status_of(result);
    if (status == GGML_HOST_OK) return status;
    if (status == GGML_HOST_DEVICE_LOST) atomic_store(&context->lost, true);
    return ggml_sdk_fail(status, "cuda: %s fails: %s (%d)", call, cuda_error_name(result), result);
}

enum ggml_host_status cuda_check_owner(void) {
    if (cuda_in_owner()) return GGML_HOST_OK;
    return ggml_sdk_fail(
        GGML_HOST_FAILED,
        "cuda: the driver does not work in a child of the process that started it");
}

// A current context is per thread and a stack: push and pop leave the application's as it was.
enum ggml_host_status cuda_context_enter(struct cuda_context *context) {
    const enum ggml_host_status status = cuda_check_owner();
    if (status != GGML_HOST_OK) return status;
    if (atomic_load(&context->lost))
        return ggml_sdk_fail(GGML_HOST_DEVICE_LOST,
                             "cuda: the device was lost by an earlier failure");
    return cuda_context_check(context, cuda_api()->cuCtxPushCurrent(context->handle),
                              "cuCtxPushCurrent");
}

void cuda_context_leave(void) {
    CUcontext ignored;
    cuda_api()->cuCtxPopCurrent(&ignored);
}

// Tensor cores of 7.5 and later are asked in one way, from 8.0 on also for BF16, and those of 9.0
// also in one that no other capability has.
static enum ggml_host_status find_features(struct cuda_context *context,
                                           const struct cuda_image *image) {
    int major = 0, minor = 0;
    CUresult result = cuda_api()->cuDeviceGetAttribute(
        &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, context->device);
    if (result == CUDA_SUCCESS)
        result = cuda_api()->cuDeviceGetAttribute(
            &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, context->device);
    if (10 * major + minor >= 75 && image->has_tensor_cores) context->features |= SIMT_TENSOR_F16;
    if (major >= 8 && image->has_tensor_cores) context->features |= SIMT_TENSOR_BF16;
    if (major == 9 && image->has_warpgroups) context->features |= SIMT_WARPGROUPS;
    // PTX for older capabilities is compiled without what waits, also for later devices.
    atomic_store(&context->begins_early, (context->features & SIMT_WARPGROUPS) != 0 &&
                                             cuda_api()->cuGraphAddDependencies &&
                                             !gpu_is_set("GGML_CUDA_DISABLE_EARLY"));
    return cuda_context_check(context, result, "cuDeviceGetAttribute");
}

// Where an image has no code for the device's capability the driver compiles its PTX, and keeps the
// result in a cache of its own: the first start on such a device takes much longer. A driver that
// is older than the compiler of the first image knows its code and PTX perhaps not, but that of the
// second.
static enum ggml_host_status load_module(struct cuda_context *context) {
    const int version = cuda_driver_version();
    CUresult result = CUDA_ERROR_INVALID_IMAGE;
    for (int i = 0; i < cuda_n_images(); ++i) {
        result = cuda_api()->cuModuleLoadData(&context->module, cuda_image(i)->data);
        if (result == CUDA_SUCCESS) return find_features(context, cuda_image(i));
        if (status_of(result) != GGML_HOST_UNSUPPORTED)
            return cuda_context_check(context, result, "cuModuleLoadData");
        context->module = NULL;
    }
    return ggml_sdk_fail(
        GGML_HOST_UNSUPPORTED,
        "cuda: the driver, of CUDA %d.%d, takes none of the plugin's kernels (%s): %s (%d); "
        "update the driver, or build the plugin for this device (plugin_cuda_arch)",
        version / 1000, version % 1000 / 10, cuda_images_text(), cuda_error_name(result), result);
}

// More than 48 KB of shared memory for a block have to be asked for.
static enum ggml_host_status allow_shared(struct cuda_context *context) {
    enum ggml_host_status status = GGML_HOST_OK;
    for (int i = 0; i < SIMT_ALL_KERNELS && status == GGML_HOST_OK; ++i) {
        const unsigned bytes = simt_kernel_shared((enum simt_kernel)i, context->features);
        if (bytes == 0) continue;
        status = cuda_context_check(
            context,
            cuda_api()->cuFuncSetAttribute(
                context->functions[i], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes),
            "cuFuncSetAttribute");
    }
    return status;
}

// Memory that grows in place needs a driver that puts memory behind addresses. Who is told not to
// use it, as where a tool knows whole allocations alone, has each buffer as one.
static enum ggml_host_status find_memory(struct cuda_context *context) {
    const struct cu_api *api = cuda_api();
    int maps = 0, exports = 0;
    CUresult result = api->cuDeviceTotalMem(&context->memory, context->device);
    if (result == CUDA_SUCCESS)
        result = api->cuDeviceGetAttribute(
            &maps, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, context->device);
    if (result == CUDA_SUCCESS)
        result = api->cuDeviceGetAttribute(
            &exports, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
            context->device);
    const enum ggml_host_status status =
        cuda_context_check(context, result, "cuDeviceGetAttribute");
    if (status != GGML_HOST_OK || !maps || gpu_is_set("GGML_CUDA_NO_VMM")) return status;
    context->unit = cuda_range_unit(context, 0);
    context->exports = exports != 0;
    return context->unit > 0 ? GGML_HOST_OK : GGML_HOST_FAILED;
}

static enum ggml_host_status load(struct cuda_context *context) {
    const struct cu_api *api = cuda_api();
    enum ggml_host_status status = find_memory(context);
    if (status == GGML_HOST_OK) status = load_module(context);
    for (int i = 0; i < SIMT_ALL_KERNELS && status == GGML_HOST_OK; ++i)
        status = cuda_context_check(
            context,
            api->cuModuleGetFunction(&context->functions[i], context->module, simt_kernel_names[i]),
            simt_kernel_names[i]);
    if (status == GGML_HOST_OK) status = allow_shared(context);
    if (status == GGML_HOST_OK)
        status = cuda_context_check(
            context, api->cuStreamCreate(&context->transfers, CU_STREAM_NON_BLOCKING),
            "cuStreamCreate");
    return status;
}

// Retaining makes the primary context if nobody has; each step that fails undoes those before it.
struct cuda_context *cuda_context_new(CUdevice device) {
    struct cuda_context *context = ggml_aligned_malloc(sizeof(*context));
    if (!context) return NULL;
    memset(context, 0, sizeof(*context));
    context->device = device;
    pthread_mutex_init(&context->mutex, NULL);
    cuda_pool_init(&context->pool);
    context->limit = cuda_budget_limit();
    CUcontext handle = NULL;
    enum ggml_host_status status = cuda_context_check(
        context, cuda_api()->cuDevicePrimaryCtxRetain(&handle, device), "cuDevicePrimaryCtxRetain");
    if (status == GGML_HOST_OK) {
        context->handle = handle;
        status = cuda_context_enter(context);
    }
    if (status == GGML_HOST_OK) {
        status = load(context);
        cuda_context_leave();
    }
    if (status == GGML_HOST_OK) {
        cuda_peers_add(context);
        return context;
    }
    cuda_context_free(context);
    return NULL;
}

// Also of a lost device, whose objects the driver still counts.
void cuda_context_free(struct cuda_context *context) {
    const struct cu_api *api = cuda_api();
    if (!context) return;
    cuda_peers_remove(context);
    const bool here = cuda_in_owner();
    if (here && context->handle && api->cuCtxPushCurrent(context->handle) == CUDA_SUCCESS) {
        if (context->transfers) api->cuStreamDestroy(context->transfers);
        if (context->module) api->cuModuleUnload(context->module);
        cuda_pool_free(context);
        cuda_context_leave();
    }
    if (here && context->handle) api->cuDevicePrimaryCtxRelease(context->device);
    pthread_mutex_destroy(&context->mutex);
    ggml_aligned_free(context, sizeof(*context));
}
