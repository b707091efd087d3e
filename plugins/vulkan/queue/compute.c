// SPDX-License-Identifier: MIT
// Graphs: put in order, found among the recordings, or recorded, and submitted.
#include "gpu/graph/reorder.h"
#include "memory/buffer_type.h"
#include "queue/stream.h"

static bool is_current(const struct gvk_stream *stream, const struct gvk_recording *recording) {
    if ((recording->times != NULL) != gvk_profile_is_on(&stream->profile)) return false;
    return recording->scratch_id == 0 ||
           (stream->scratch && recording->scratch_id == stream->scratch->id);
}

// Of a graph in which nothing has changed, addresses included: none of its nodes is looked at.
// Linear searches: at most GVK_MAX_RECORDINGS, and a hash or a number is compared first.
static struct gvk_recording *find_by_uid(const struct gvk_stream *stream, uint64_t uid) {
    for (int i = 0; i < stream->n_recordings && uid != 0; ++i) {
        struct gvk_recording *recording = stream->recordings[i];
        if (is_current(stream, recording) && recording->uid == uid) return recording;
    }
    return NULL;
}

// A recording of a graph of the same structure whose tensors lie at the same places, or NULL.
static struct gvk_recording *find_by_places(const struct gvk_stream *stream) {
    for (int i = 0; i < stream->n_recordings && stream->places.n > 0; ++i) {
        struct gvk_recording *recording = stream->recordings[i];
        if (is_current(stream, recording) &&
            gpu_graph_key_equal(&recording->places, &stream->places)) {
            return recording;
        }
    }
    return NULL;
}

// A recording with the same nodes, parameters and places, or NULL. O(recordings).
static struct gvk_recording *find_by_key(const struct gvk_stream *stream) {
    for (int i = 0; i < stream->n_recordings; ++i) {
        struct gvk_recording *recording = stream->recordings[i];
        if (is_current(stream, recording) && gpu_graph_key_equal(&recording->key, &stream->key))
            return recording;
    }
    return NULL;
}

// Least recently used. Its command buffer may still run, which has to be waited for; with 32 of
// them that is rare, and then long done.
static enum ggml_status drop_oldest(struct gvk_stream *stream) {
    int oldest = 0;
    for (int i = 1; i < stream->n_recordings; ++i) {
        if (stream->recordings[i]->last_use < stream->recordings[oldest]->last_use) oldest = i;
    }
    struct gvk_recording *recording = stream->recordings[oldest];
    const enum ggml_status status = gvk_timeline_wait(stream->timeline, recording->last_value);
    if (status != GGML_STATUS_SUCCESS) return status;
    gvk_profile_collect(stream);
    gvk_recording_free(recording);
    stream->recordings[oldest] = stream->recordings[--stream->n_recordings];
    return GGML_STATUS_SUCCESS;
}

// Grows only. Recordings that use the old one are found no more.
static enum ggml_status reserve_scratch(struct gvk_stream *stream, size_t bytes) {
    if (bytes == 0 || (stream->scratch && stream->scratch->size >= bytes))
        return GGML_STATUS_SUCCESS;
    const enum ggml_status status = gvk_stream_finish(stream);
    if (status != GGML_STATUS_SUCCESS) return status;
    gvk_buffer_free(stream->scratch);
    stream->scratch = NULL;
    return gvk_buffer_new(stream->context, bytes, GVK_MEMORY_DEVICE, &stream->scratch);
}

// Plans and records a graph. A full list loses its oldest recording. *out_recording stays NULL
// for a graph without launches, which is no failure.
static enum ggml_status make_recording(struct gvk_stream *stream, const struct ggml_graph *graph,
                                       struct gvk_recording **out_recording) {
    enum ggml_status status = gvk_plan_graph(&stream->plan, graph);
    *out_recording = NULL;
    if (status != GGML_STATUS_SUCCESS || gvk_plan_count(&stream->plan) == 0) return status;
    status = reserve_scratch(stream, stream->plan.base.scratch_bytes);
    if (status == GGML_STATUS_SUCCESS && stream->n_recordings == GVK_MAX_RECORDINGS)
        status = drop_oldest(stream);
    if (status != GGML_STATUS_SUCCESS) return status;
    const struct gvk_recipe recipe = {.context = stream->context,
                                      .command_pool = stream->pool,
                                      .key = &stream->key,
                                      .plan = &stream->plan,
                                      .scratch =
                                          stream->plan.base.scratch_bytes ? stream->scratch : NULL,
                                      .tracker = &stream->tracker,
                                      .has_times = gvk_profile_is_on(&stream->profile)};
    status = gvk_recording_new(&recipe, out_recording);
    if (!*out_recording) return status;
    stream->recordings[stream->n_recordings++] = *out_recording;
    if (gpu_has_word(gpu_config("GGML_VULKAN_DEBUG"), "record"))
        GGML_LOG_INFO("vulkan: recorded %d nodes as %d dispatches with %d barriers between them\n",
                      graph->n_nodes, gvk_plan_count(&stream->plan), (*out_recording)->n_barriers);
    return status;
}

// A graph with the number of an earlier one is that; one of known structure is looked for by where
// it lies alone, which is a fraction of the words. The structure may be new although the recording
// is not, as after the host has met another graph.
static enum ggml_status get_recording(struct gvk_stream *stream, const struct ggml_graph *graph,
                                      struct gvk_recording **out_recording) {
    enum ggml_status status = GGML_STATUS_SUCCESS;
    *out_recording = find_by_uid(stream, graph->uid);
    if (*out_recording) return status;
    stream->places.n = 0;
    if (graph->structure != 0 && !gpu_graph_key_make_places(&stream->places, graph, gvk_place_id)) {
        return GGML_STATUS_ALLOC_FAILED;
    }
    *out_recording = find_by_places(stream);
    if (*out_recording) return status;
    if (!gpu_graph_key_make(&stream->key, graph, gvk_place_id)) return GGML_STATUS_ALLOC_FAILED;
    *out_recording = find_by_key(stream);
    if (!*out_recording) status = make_recording(stream, graph, out_recording);
    // Without memory for a copy it is found by its key again.
    if (*out_recording && stream->places.n > 0)
        gpu_graph_key_copy(&(*out_recording)->places, &stream->places);
    if (*out_recording) (*out_recording)->uid = graph->uid;
    return status;
}

// Submits a graph behind the transfers that are open. A failure of an earlier queued transfer is
// reported here: those calls had returned by then. Of a lost device its loss is.
static enum ggml_status compute(struct gvk_stream *stream, const struct ggml_graph *graph) {
    enum ggml_status status = stream->late;
    if (!gvk_context_alive(stream->context)) return GGML_STATUS_FAILED;
    if (status != GGML_STATUS_SUCCESS) {
        return gpu_fail_graph(status == GGML_STATUS_ALLOC_FAILED ? GGML_HOST_OUT_OF_MEMORY
                                                                 : GGML_HOST_FAILED,
                              "vulkan: a transfer that was queued before this graph failed");
    }
    struct gvk_recording *recording;
    status = get_recording(stream, graph, &recording);
    if (!recording) return status;
    uint64_t value;
    status = gvk_profile_submit(stream, recording);
    if (status != GGML_STATUS_SUCCESS) return status;
    recording->last_use = ++stream->n_graphs;
    status = gvk_stream_flush(stream, recording->commands, &value);
    if (status != GGML_STATUS_SUCCESS) return status;
    recording->last_value = value;
    if (recording->times) recording->times->pending = true;
    return status;
}

// What a failure takes along of the transfers before it is told with it, once.
int32_t gvk_stream_compute(ggml_backend_t backend, const struct ggml_graph *graph) {
    struct gvk_stream *stream = backend->context;
    const enum ggml_status status = compute(stream, graph);
    if (status != GGML_STATUS_SUCCESS) stream->late = GGML_STATUS_SUCCESS;
    return ggml_entry_status(status);
}

int32_t gvk_stream_optimize(ggml_backend_t backend, struct ggml_graph *graph) {
    struct gvk_stream *stream = backend->context;
    if (!stream->keeps_order) gpu_reorder(graph, &stream->plan.base);
    return GGML_HOST_OK;
}
