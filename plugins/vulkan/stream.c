// SPDX-License-Identifier: MIT
#include "stream.h"

#include "buffer_type.h"
#include "recording.h"
#include "timeline.h"

enum { MAX_RECORDINGS = 32 };

struct vk_stream {
    struct ggml_backend backend;
    struct vk_device *device;
    struct vk_context *context;
    struct vk_queue *queue;
    struct vk_timeline *timeline;
    VkCommandPool pool;
    struct vk_plan plan;
    struct vk_graph_key key; // of the graph that is being computed
    struct vk_recording *recordings[MAX_RECORDINGS];
    int n_recordings;
    uint64_t n_graphs;
    struct vk_buffer *scratch;
    struct vk_tracker tracker;
};

static const char *stream_name(ggml_backend_t backend) {
    const struct vk_stream *stream = backend->context;
    return stream->device->name;
}

static enum ggml_status wait_idle(struct vk_stream *stream) {
    return vk_timeline_wait(stream->timeline, atomic_load(&stream->timeline->submitted));
}

static void stream_synchronize(ggml_backend_t backend) {
    wait_idle(backend->context);
}

static void stream_destroy(struct vk_stream *stream) {
    struct vk_context *context = stream->context;
    if (stream->timeline) wait_idle(stream);
    for (int i = 0; i < stream->n_recordings; ++i) vk_recording_free(stream->recordings[i]);
    vk_buffer_free(stream->scratch);
    if (stream->pool) context->api.vkDestroyCommandPool(context->device, stream->pool, NULL);
    vk_timeline_drop(stream->timeline);
    vk_plan_free(&stream->plan);
    vk_graph_key_free(&stream->key);
    ggml_aligned_free(stream, sizeof(*stream));
}

static void stream_free(ggml_backend_t backend) {
    stream_destroy(backend->context);
}

// --- graphs --------------------------------------------------------------------------------------

static struct vk_recording *find_recording(const struct vk_stream *stream) {
    for (int i = 0; i < stream->n_recordings; ++i) {
        struct vk_recording *recording = stream->recordings[i];
        const bool current = recording->scratch_id == 0 ||
                             (stream->scratch && recording->scratch_id == stream->scratch->id);
        if (current && vk_graph_key_equal(&recording->key, &stream->key)) return recording;
    }
    return NULL;
}

static enum ggml_status drop_oldest(struct vk_stream *stream) {
    int oldest = 0;
    for (int i = 1; i < stream->n_recordings; ++i) {
        if (stream->recordings[i]->last_use < stream->recordings[oldest]->last_use) oldest = i;
    }
    struct vk_recording *recording = stream->recordings[oldest];
    const enum ggml_status status = vk_timeline_wait(stream->timeline, recording->last_value);
    if (status != GGML_STATUS_SUCCESS) return status;
    vk_recording_free(recording);
    stream->recordings[oldest] = stream->recordings[--stream->n_recordings];
    return GGML_STATUS_SUCCESS;
}

static enum ggml_status reserve_scratch(struct vk_stream *stream, size_t bytes) {
    if (bytes == 0 || (stream->scratch && stream->scratch->size >= bytes))
        return GGML_STATUS_SUCCESS;
    const enum ggml_status status = wait_idle(stream);
    if (status != GGML_STATUS_SUCCESS) return status;
    vk_buffer_free(stream->scratch);
    stream->scratch = NULL;
    return vk_buffer_new(stream->context, bytes, VK_MEMORY_DEVICE, &stream->scratch);
}

static enum ggml_status make_recording(struct vk_stream *stream, const struct ggml_cgraph *graph,
                                       struct vk_recording **out_recording) {
    enum ggml_status status = vk_plan_graph(&stream->plan, graph);
    *out_recording = NULL;
    if (status != GGML_STATUS_SUCCESS || stream->plan.n_dispatches == 0) return status;
    status = reserve_scratch(stream, stream->plan.scratch_bytes);
    if (status == GGML_STATUS_SUCCESS && stream->n_recordings == MAX_RECORDINGS)
        status = drop_oldest(stream);
    if (status != GGML_STATUS_SUCCESS) return status;
    const struct vk_recipe recipe = {
        .context = stream->context,
        .command_pool = stream->pool,
        .key = &stream->key,
        .plan = &stream->plan,
        .scratch = stream->plan.scratch_bytes ? stream->scratch : NULL,
        .tracker = &stream->tracker};
    status = vk_recording_new(&recipe, out_recording);
    if (*out_recording) stream->recordings[stream->n_recordings++] = *out_recording;
    return status;
}

static enum ggml_status stream_compute(ggml_backend_t backend, struct ggml_cgraph *graph) {
    struct vk_stream *stream = backend->context;
    enum ggml_status status = GGML_STATUS_SUCCESS;
    if (!vk_context_alive(stream->context)) return GGML_STATUS_FAILED;
    if (!vk_graph_key_make(&stream->key, graph, vk_place_id)) return GGML_STATUS_ALLOC_FAILED;
    struct vk_recording *recording = graph->error ? NULL : find_recording(stream);
    if (!recording) status = make_recording(stream, graph, &recording);
    if (!recording) return status;
    const struct vk_submission submission = {.commands = {recording->commands}, .n_commands = 1};
    recording->last_use = ++stream->n_graphs;
    return vk_timeline_submit(stream->timeline, stream->queue, &submission, &recording->last_value);
}

// --- making --------------------------------------------------------------------------------------

static ggml_guid stream_guid = {0x5d, 0x8e, 0x1f, 0x0b, 0x6c, 0x43, 0x4b, 0x27,
                                0x9a, 0x52, 0xe7, 0x31, 0xc8, 0x64, 0x0d, 0xf2};

static const struct ggml_backend_i stream_interface = {
    .get_name = stream_name,
    .free = stream_free,
    .synchronize = stream_synchronize,
    .graph_compute = stream_compute,
};

ggml_backend_t vk_stream_new(struct vk_device *device) {
    struct vk_context *context = vk_device_context(device);
    if (!context || !vk_context_alive(context)) return NULL;
    struct vk_stream *stream = ggml_aligned_malloc(sizeof(*stream));
    if (!stream) return NULL;
    memset(stream, 0, sizeof(*stream));
    stream->device = device;
    stream->context = context;
    stream->queue = vk_context_queue(context);
    vk_plan_init(&stream->plan, &device->features);
    stream->backend = (struct ggml_backend){.guid = &stream_guid,
                                            .iface = stream_interface,
                                            .device = &device->base,
                                            .context = stream};
    const VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = (uint32_t)context->probe->queue_family};
    const VkResult result =
        context->api.vkCreateCommandPool(context->device, &pool, NULL, &stream->pool);
    if (result != VK_SUCCESS) stream->pool = VK_NULL_HANDLE;
    if (vk_context_check(context, result, "vkCreateCommandPool"))
        stream->timeline = vk_timeline_new(context);
    if (stream->timeline) return &stream->backend;
    stream_destroy(stream);
    return NULL;
}
