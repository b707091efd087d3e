// SPDX-License-Identifier: MIT
// Work is gathered in one open command buffer of transfers and submitted with the next graph, event
// or wait: a submission costs the driver far more than recording a copy. Each submission raises the
// value of the stream's timeline semaphore by one; that value stands for the work in events, rings
// and read-backs. All calls but those of the timeline are of one thread.
#include "queue/stream.h"

#include "gpu/base/tables.h"
#include "pipeline/pipeline.h"
#include "queue/event.h"

static const char *stream_name(ggml_backend_t backend) {
    const struct gvk_stream *stream = backend->context;
    return stream->device->base.name;
}

// Blocks until everything is done, copies what was read back, and reads times of nodes. A failure
// that is told here is no later graph's.
static int32_t stream_synchronize(ggml_backend_t backend) {
    struct gvk_stream *stream = backend->context;
    const enum ggml_status status = gvk_stream_finish(stream);
    gvk_profile_collect(stream);
    if (status != GGML_STATUS_SUCCESS) stream->late = GGML_STATUS_SUCCESS;
    return ggml_entry_status(status);
}

// --- submitting ----------------------------------------------------------------------------------

// A command buffer that the device is done with.
static int find_spare(struct gvk_stream *stream) {
    struct gvk_context *context = stream->context;
    const uint64_t reached = gvk_timeline_reached(stream->timeline);
    int oldest = 0;
    for (int i = 0; i < stream->n_spares; ++i) {
        if (stream->spares[i].value <= reached) return i;
        if (stream->spares[i].value < stream->spares[oldest].value) oldest = i;
    }
    if (stream->n_spares == GVK_MAX_SPARES) {
        return gvk_timeline_wait(stream->timeline, stream->spares[oldest].value) ==
                       GGML_STATUS_SUCCESS
                   ? oldest
                   : -1;
    }
    const VkCommandBufferAllocateInfo info = {.sType =
                                                  VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = stream->pool,
                                              .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                              .commandBufferCount = 1};
    VkCommandBuffer handle;
    const VkResult result = context->api.vkAllocateCommandBuffers(context->device, &info, &handle);
    if (!gvk_context_check(context, result, "vkAllocateCommandBuffers")) return -1;
    stream->spares[stream->n_spares].handle = handle;
    stream->spares[stream->n_spares].value = 0;
    return stream->n_spares++;
}

// The open command buffer for transfers, begun if there is none. NULL after the error was set.
VkCommandBuffer gvk_stream_commands(struct gvk_stream *stream) {
    struct gvk_context *context = stream->context;
    if (stream->open) return stream->open;
    if (!gvk_context_alive(context)) return VK_NULL_HANDLE;
    const int spare = find_spare(stream);
    if (spare < 0) return VK_NULL_HANDLE;
    const VkCommandBuffer commands = stream->spares[spare].handle;
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                           .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    const VkResult result = context->api.vkBeginCommandBuffer(commands, &info);
    if (!gvk_context_check(context, result, "vkBeginCommandBuffer")) return VK_NULL_HANDLE;
    gvk_barrier_full(context, commands);
    gpu_tracker_clear(&stream->open_tracker);
    stream->open = commands;
    stream->open_spare = spare;
    stream->open_bytes = 0;
    return commands;
}

// Ends the open command buffer and adds it to the submission.
static bool close_commands(struct gvk_stream *stream, struct gvk_submission *submission) {
    struct gvk_context *context = stream->context;
    if (!stream->open) return true;
    const VkCommandBuffer commands = stream->open;
    stream->open = VK_NULL_HANDLE;
    gvk_barrier_full(context, commands);
    const VkResult result = context->api.vkEndCommandBuffer(commands);
    submission->commands[submission->n_commands++] = commands;
    return gvk_context_check(context, result, "vkEndCommandBuffer");
}

// Each wait shares the ownership of a timeline, whose stream may be freed in the meantime.
static void drop_waits(struct gvk_stream *stream) {
    for (uint32_t i = 0; i < stream->n_waits; ++i)
        gvk_timeline_drop(stream->waits[i].timeline);
    stream->n_waits = 0;
}

// Submits open transfers, then `commands`, after the waits. *out_value is the timeline's value
// that stands for all of it. Nothing is submitted where there is nothing to do. Transfers that are
// lost fail the next graph, which would compute without them: the callers that queued them may not
// have looked.
enum ggml_status gvk_stream_flush(struct gvk_stream *stream, VkCommandBuffer commands,
                                  uint64_t *out_value) {
    struct gvk_submission submission = {.n_waits = stream->n_waits};
    const bool was_open = stream->open != VK_NULL_HANDLE;
    enum ggml_status status = GGML_STATUS_FAILED;
    *out_value = atomic_load(&stream->timeline->submitted);
    if (!was_open && !commands && stream->n_waits == 0) return GGML_STATUS_SUCCESS;
    memcpy(submission.waits, stream->waits, sizeof(submission.waits));
    if (close_commands(stream, &submission)) {
        if (commands) submission.commands[submission.n_commands++] = commands;
        status = gvk_timeline_submit(stream->timeline, stream->queue, &submission, out_value);
    }
    // Copies that were never made are not read back, and hold no staging memory.
    if (status != GGML_STATUS_SUCCESS) {
        gvk_timeline_forget(stream->timeline);
        gpu_ring_forget(&stream->ring, atomic_load(&stream->timeline->submitted));
        if (was_open && stream->late == GGML_STATUS_SUCCESS) stream->late = status;
    }
    if (status == GGML_STATUS_SUCCESS && was_open)
        stream->spares[stream->open_spare].value = *out_value;
    // After a failure there is still something to wait for.
    if (status == GGML_STATUS_SUCCESS) drop_waits(stream);
    return status;
}

// One wait per timeline, for the highest value: a timeline that has reached it has reached all that
// are lower. Beyond GVK_MAX_WAITS they are submitted as they are, or, if that fails, waited for
// here.
void gvk_stream_wait_for(struct gvk_stream *stream, struct gvk_timeline *timeline, uint64_t value) {
    uint64_t ignored;
    if (timeline == stream->timeline || value == 0) return;
    for (uint32_t i = 0; i < stream->n_waits; ++i) {
        if (stream->waits[i].timeline != timeline) continue;
        stream->waits[i].value = MAX(stream->waits[i].value, value);
        return;
    }
    if (stream->n_waits == GVK_MAX_WAITS &&
        gvk_stream_flush(stream, VK_NULL_HANDLE, &ignored) != GGML_STATUS_SUCCESS) {
        gvk_timeline_wait(timeline, value);
        return;
    }
    stream->waits[stream->n_waits++] = (struct gvk_wait){gvk_timeline_share(timeline), value};
}

enum ggml_status gvk_stream_finish(struct gvk_stream *stream) {
    uint64_t value;
    const enum ggml_status status = gvk_stream_flush(stream, VK_NULL_HANDLE, &value);
    return status == GGML_STATUS_SUCCESS ? gvk_timeline_wait(stream->timeline, value) : status;
}

bool gvk_stream_is_idle(struct gvk_stream *stream) {
    return !stream->open && stream->n_waits == 0 &&
           gvk_timeline_reached(stream->timeline) == atomic_load(&stream->timeline->submitted);
}

// --- making --------------------------------------------------------------------------------------

// Waits for the device before anything that it uses is freed. After a failure, or on a lost device,
// what was to be read back is forgotten instead.
static void stream_destroy(struct gvk_stream *stream) {
    struct gvk_context *context = stream->context;
    if (stream->timeline) {
        gvk_stream_finish(stream);
        gvk_timeline_forget(stream->timeline);
    }
    for (int i = 0; i < stream->n_recordings; ++i)
        gvk_recording_free(stream->recordings[i]);
    gvk_buffer_free(stream->scratch);
    gvk_buffer_free(stream->staging);
    if (stream->pool) context->api.vkDestroyCommandPool(context->device, stream->pool, NULL);
    drop_waits(stream);
    gvk_timeline_drop(stream->timeline);
    gvk_plan_free(&stream->plan);
    gpu_graph_key_free(&stream->key);
    gpu_graph_key_free(&stream->places);
    gpu_slices_close(&stream->profile.slices);
    ggml_aligned_free(stream, sizeof(*stream));
}

static void stream_free(ggml_backend_t backend) {
    struct gvk_stream *stream = backend->context;
    gvk_pipelines_save(stream->context->pipelines);
    stream_destroy(stream);
}

static const struct ggml_stream_table stream_table = {
    .size = sizeof(struct ggml_stream_table),
    .guid = {0x5d, 0x8e, 0x1f, 0x0b, 0x6c, 0x43, 0x4b, 0x27, 0x9a, 0x52, 0xe7, 0x31, 0xc8, 0x64,
             0x0d, 0xf2},
    .get_name = stream_name,
    .free = stream_free,
    .set_tensor_async = gpu_stream_set,
    .get_tensor_async = gpu_stream_get,
    .set_tensor_2d_async = gvk_stream_set_2d,
    .get_tensor_2d_async = gvk_stream_get_2d,
    .cpy_tensor_async = gvk_stream_copy,
    .synchronize = stream_synchronize,
    .graph_compute = gvk_stream_compute,
    .event_record = gvk_event_record,
    .event_wait = gvk_event_wait,
    .graph_optimize = gvk_stream_optimize,
};

struct gvk_stream *gvk_stream_of(ggml_backend_t backend) {
    return backend && backend->table == &stream_table ? backend->context : NULL;
}

// Takes the device's next queue, which it may share. NULL after the error was set.
ggml_backend_t gvk_stream_new(struct gvk_device *device) {
    struct gvk_context *context = gvk_device_context(device);
    if (!context || !gvk_context_alive(context)) return NULL;
    struct gvk_stream *stream = ggml_aligned_malloc(sizeof(*stream));
    if (!stream) return NULL;
    memset(stream, 0, sizeof(*stream));
    stream->device = device;
    stream->context = context;
    stream->queue = gvk_context_queue(context);
    gvk_plan_init(&stream->plan, &device->features);
    stream->keeps_order = strcmp(gpu_config("GGML_VULKAN_DISABLE_REORDER"), "1") == 0;
    stream->backend = (struct ggml_backend){
        .table = &stream_table, .device = &device->base.base, .context = stream};
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                          .queueFamilyIndex =
                                              (uint32_t)context->probe->queue_family};
    const VkResult result =
        context->api.vkCreateCommandPool(context->device, &pool, NULL, &stream->pool);
    if (result != VK_SUCCESS) stream->pool = VK_NULL_HANDLE;
    if (gvk_context_check(context, result, "vkCreateCommandPool"))
        stream->timeline = gvk_timeline_new(context);
    if (stream->timeline) return &stream->backend;
    stream_destroy(stream);
    return NULL;
}
