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
        return ggml_sdk_fail(
            GGML_HOST_FAILED,
            "metal: Metal does not work in a child of the process that started it");
    if (atomic_load(&context->lost))
        return ggml_sdk_fail(GGML_HOST_DEVICE_LOST,
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

const char *metal_kernel_name(int kernel) {
    static const char *const own[] = {
#define METAL_KERNEL(name) "kernel_" #name,
#include "kernels/metal_kernel_list.inl"
    };
    return kernel < SIMT_KERNEL_COUNT ? simt_kernel_names[kernel] : own[kernel - SIMT_KERNEL_COUNT];
}

// The function in the library, with the variant's values in the place of its constants.
static mtl_id find_function(struct metal_context *context, const struct metal_variant *variant) {
    const mtl_id name =
        mtl_string(mtl_api.get_class("NSString"), metal_kernel_name(variant->kernel));
    mtl_id error = NULL;
    if (variant->kernel < SIMT_KERNEL_COUNT) return mtl_new_function(context->library, name);
    const mtl_id values = mtl_new(mtl_api.get_class("MTLFunctionConstantValues"));
    if (!values) return NULL;
    for (int i = 0; i < METAL_SPECIAL; ++i)
        mtl_set_constant(values, &variant->values[i], MTL_TYPE_INT, (mtl_word)i);
    const mtl_id function = mtl_new_function_with(context->library, name, values, &error);
    mtl_release(values);
    return function;
}

// Lanes of a SIMD group are exchanged in groups of 32.
static enum ggml_host_status make_pipeline(struct metal_context *context,
                                           const struct metal_variant *variant,
                                           mtl_id *out_pipeline) {
    const char *name = metal_kernel_name(variant->kernel);
    mtl_id error = NULL;
    const mtl_id function = find_function(context, variant);
    if (!function) return ggml_sdk_fail(GGML_HOST_FAILED, "metal: the library has no %s", name);
    const mtl_id pipeline =
        metal_archive_pipeline(&context->archive, context->device, function, &error);
    mtl_release(function);
    if (!pipeline)
        return ggml_sdk_fail(GGML_HOST_FAILED, "metal: %s can't be used: %s", name, text_of(error));
    const mtl_word width = mtl_simd_width(pipeline);
    if (width == 0 || width % WARP != 0) {
        mtl_release(pipeline);
        return ggml_sdk_fail(GGML_HOST_UNSUPPORTED,
                             "metal: SIMD groups of %lu lanes; a multiple of %d is needed", width,
                             WARP);
    }
    *out_pipeline = pipeline;
    return GGML_HOST_OK;
}

// A kernel of the plugin's own that is specialised for something.
struct metal_special {
    struct metal_variant variant;
    mtl_id pipeline;
    struct metal_special *next;
};

// Where the variant's pipeline is, or is to be. NULL: no memory. Linear: a model needs a few dozen,
// and they are looked up when a graph is new.
static mtl_id *find_special(struct metal_context *context, const struct metal_variant *variant) {
    struct metal_special *s = context->special;
    while (s && memcmp(&s->variant, variant, sizeof(*variant)) != 0)
        s = s->next;
    if (!s && (s = ggml_aligned_malloc(sizeof(*s)))) {
        *s = (struct metal_special){*variant, NULL, context->special};
        context->special = s;
    }
    return s ? &s->pipeline : NULL;
}

// Kernels are made into pipelines when they are needed: programs use a few of them.
enum ggml_host_status metal_context_pipeline(struct metal_context *context,
                                             const struct metal_variant *variant,
                                             mtl_id *out_pipeline) {
    enum ggml_host_status status = GGML_HOST_OK;
    pthread_mutex_lock(&context->pipelines_mutex);
    mtl_id *pipeline = variant->kernel < SIMT_KERNEL_COUNT ? &context->pipelines[variant->kernel]
                                                           : find_special(context, variant);
    if (!pipeline)
        status = GGML_HOST_OUT_OF_MEMORY;
    else if (!*pipeline)
        status = make_pipeline(context, variant, pipeline);
    *out_pipeline = pipeline ? *pipeline : NULL;
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
        return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "metal: no memory for the kernels' source");
    }
    mtl_set_fast_math(options, false); // infinities and NaN are kept
    context->library = mtl_new_library(context->device, text, options, &error);
    mtl_release(options);
    if (!context->library)
        return ggml_sdk_fail(GGML_HOST_FAILED, "metal: the kernels can't be compiled: %s",
                             text_of(error));
    metal_archive_open(&context->archive, context->device, metal_source());
    return metal_context_pipeline(context, &(struct metal_variant){.kernel = SIMT_KERNEL_move},
                                  &pipeline);
}

// The device's pipelines, shared by its streams. NULL with a message.
struct metal_context *metal_context_new(mtl_id device) {
    struct metal_context *context = ggml_aligned_malloc(sizeof(*context));
    if (!context) return NULL;
    memset(context, 0, sizeof(*context));
    context->device = device;
    context->has_matrices = mtl_supports_family(device, MTL_FAMILY_APPLE_7);
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

void metal_context_keep(struct metal_context *context) {
    void *pool = mtl_api.pool_push();
    pthread_mutex_lock(&context->pipelines_mutex);
    metal_archive_write(&context->archive);
    pthread_mutex_unlock(&context->pipelines_mutex);
    mtl_api.pool_pop(pool);
}

static void release_objects(struct metal_context *context) {
    for (int i = 0; i < SIMT_KERNEL_COUNT; ++i)
        mtl_release(context->pipelines[i]);
    for (struct metal_special *s = context->special; s; s = s->next)
        mtl_release(s->pipeline);
    mtl_release(context->archive.handle);
    mtl_release(context->library);
    mtl_release(context->residency);
    mtl_release(context->staging);
    mtl_release(context->copies);
}

// Nothing of Metal is released in the child of a fork.
void metal_context_free(struct metal_context *context) {
    if (!context) return;
    if (metal_in_owner()) release_objects(context);
    while (context->special) {
        struct metal_special *next = context->special->next;
        ggml_aligned_free(context->special, sizeof(*next));
        context->special = next;
    }
    pthread_mutex_destroy(&context->copies_mutex);
    pthread_mutex_destroy(&context->pipelines_mutex);
    pthread_mutex_destroy(&context->mutex);
    ggml_aligned_free(context, sizeof(*context));
}
