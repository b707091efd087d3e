// SPDX-License-Identifier: MIT
// Compiles the kernels' source without fast math, so that infinities and NaN are kept, and makes
// pipelines of the kernels that are used. Here too: waiting for command buffers and what their
// failures mean.
#include "device/context.h"

#include <stdio.h>

#include "memory/residency.h"

enum { WARP = 32 };

// Called before every use of the device: Metal's objects are unusable in the child of a fork, and
// after a loss.
enum ggml_host_status metal_context_check(const struct metal_context *context) {
    if (!metal_in_owner())
        return metal_fail(GGML_HOST_FAILED,
                          "metal: Metal does not work in a child of the process that started it");
    if (atomic_load(&context->lost))
        return metal_fail(GGML_HOST_DEVICE_LOST,
                          "metal: the device was lost by an earlier failure");
    return GGML_HOST_OK;
}

static const char *text_of(mtl_id error) {
    const char *text = error ? mtl_utf8(mtl_localized_description(error)) : NULL;
    return text ? text : "no reason is given";
}

// Status for a code of Metal's command buffer errors.
static enum ggml_host_status status_of(mtl_number code) {
    switch (code) {
    case MTL_ERROR_OUT_OF_MEMORY: return GGML_HOST_OUT_OF_MEMORY;
    case MTL_ERROR_ACCESS_REVOKED:
    case MTL_ERROR_DEVICE_REMOVED: return GGML_HOST_DEVICE_LOST;
    default: return GGML_HOST_FAILED;
    }
}

// Waits on the host, and stores the first failure of the commands. A removed device marks the
// context as lost, for all its streams.
void metal_commands_wait(struct metal_context *context, mtl_id commands,
                         struct metal_failure *failure) {
    // Objects that Metal returns without ownership are released when the pool ends.
    void *pool = mtl_api.pool_push();
    mtl_wait_until_completed(commands);
    if (mtl_status(commands) != MTL_STATUS_COMPLETED) {
        const mtl_id error = mtl_error(commands);
        const mtl_number code = mtl_code(error);
        const enum ggml_host_status status = status_of(code);
        if (status == GGML_HOST_DEVICE_LOST) atomic_store(&context->lost, true);
        if (failure->status == GGML_HOST_OK) {
            failure->status = status;
            snprintf(failure->text, sizeof(failure->text), "%.120s (%ld)", text_of(error), code);
        }
    }
    mtl_api.pool_pop(pool);
}

// Lanes of a SIMD group are exchanged in groups of 32.
static enum ggml_host_status make_pipeline(struct metal_context *context, enum simt_kernel kernel) {
    const char *name = simt_kernel_names[kernel];
    mtl_id error = NULL;
    const mtl_id function =
        mtl_new_function(context->library, mtl_string(mtl_api.get_class("NSString"), name));
    if (!function) return metal_fail(GGML_HOST_FAILED, "metal: the library has no %s", name);
    const mtl_id pipeline = mtl_new_pipeline(context->device, function, &error);
    mtl_release(function);
    if (!pipeline)
        return metal_fail(GGML_HOST_FAILED, "metal: %s can't be used: %s", name, text_of(error));
    const mtl_word width = mtl_simd_width(pipeline);
    if (width == 0 || width % WARP != 0) {
        mtl_release(pipeline);
        return metal_fail(GGML_HOST_UNSUPPORTED,
                          "metal: SIMD groups of %lu lanes; a multiple of %d is needed", width,
                          WARP);
    }
    context->pipelines[kernel] = pipeline;
    return GGML_HOST_OK;
}

// Kernels are made into pipelines when they are needed: programs use a few of them.
enum ggml_host_status metal_context_pipeline(struct metal_context *context, enum simt_kernel kernel,
                                             mtl_id *out_pipeline) {
    enum ggml_host_status status = GGML_HOST_OK;
    pthread_mutex_lock(&context->pipelines_mutex);
    if (!context->pipelines[kernel]) status = make_pipeline(context, kernel);
    *out_pipeline = context->pipelines[kernel];
    pthread_mutex_unlock(&context->pipelines_mutex);
    return status;
}

// Compiles the kernels' source, and one kernel to the end, for what all need. Fast math is off: it
// would assume that there are no infinities and NaN.
static enum ggml_host_status load(struct metal_context *context) {
    mtl_id error = NULL, pipeline;
    const mtl_id text = mtl_string(mtl_api.get_class("NSString"), metal_source());
    const mtl_id options = mtl_new(mtl_api.get_class("MTLCompileOptions"));
    if (!text || !options) {
        mtl_release(options);
        return metal_fail(GGML_HOST_OUT_OF_MEMORY, "metal: no memory for the kernels' source");
    }
    mtl_set_fast_math(options, false); // infinities and NaN are kept
    context->library = mtl_new_library(context->device, text, options, &error);
    mtl_release(options);
    if (!context->library)
        return metal_fail(GGML_HOST_FAILED, "metal: the kernels can't be compiled: %s",
                          text_of(error));
    return metal_context_pipeline(context, SIMT_KERNEL_move, &pipeline);
}

// The device's pipelines, shared by its streams. NULL with a message.
struct metal_context *metal_context_new(mtl_id device) {
    struct metal_context *context = ggml_aligned_malloc(sizeof(*context));
    if (!context) return NULL;
    memset(context, 0, sizeof(*context));
    context->device = device;
    pthread_mutex_init(&context->mutex, NULL);
    pthread_mutex_init(&context->pipelines_mutex, NULL);
    pthread_mutex_init(&context->copies_mutex, NULL);
    enum ggml_host_status status = metal_context_check(context);
    if (status == GGML_HOST_OK) {
        void *pool = mtl_api.pool_push();
        status = load(context);
        if (status == GGML_HOST_OK) metal_residency_init(context);
        mtl_api.pool_pop(pool);
    }
    if (status == GGML_HOST_OK) return context;
    metal_context_free(context);
    return NULL;
}

static void release_objects(struct metal_context *context) {
    for (int i = 0; i < SIMT_KERNEL_COUNT; ++i)
        mtl_release(context->pipelines[i]);
    mtl_release(context->library);
    mtl_release(context->residency);
    mtl_release(context->staging);
    mtl_release(context->copies);
}

// Nothing of Metal is released in the child of a fork.
void metal_context_free(struct metal_context *context) {
    if (!context) return;
    if (metal_in_owner()) release_objects(context);
    pthread_mutex_destroy(&context->copies_mutex);
    pthread_mutex_destroy(&context->pipelines_mutex);
    pthread_mutex_destroy(&context->mutex);
    ggml_aligned_free(context, sizeof(*context));
}
