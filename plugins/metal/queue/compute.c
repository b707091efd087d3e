// SPDX-License-Identifier: MIT
// Graphs: put in order, found among the recordings, or planned and recorded, then encoded into
// command buffers, which are committed in order as soon as they are full.
#include "gpu/graph/reorder.h"
#include "memory/buffer.h"
#include "queue/stream.h"

// Of a graph in which nothing has changed since, addresses included: none of its nodes is looked
// at. Not after a buffer has been freed: which one is not known here.
static struct metal_recording *find_by_uid(const struct metal_stream *stream, uint64_t uid,
                                           uint64_t generation) {
    for (int i = 0; i < stream->n_recordings && uid != 0; ++i) {
        struct metal_recording *r = stream->recordings[i];
        if (r->uid == uid && r->generation == generation) return r;
    }
    return NULL;
}

// A recording with the same nodes, parameters and places, or NULL.
static struct metal_recording *find_by_key(const struct metal_stream *stream) {
    for (int i = 0; i < stream->n_recordings; ++i) {
        if (gpu_graph_key_equal(&stream->recordings[i]->key, &stream->key))
            return stream->recordings[i];
    }
    return NULL;
}

// The place of a new recording: the least recently used one goes if there is no room. Command
// buffers have copies of what they were encoded from.
static struct metal_recording **make_room(struct metal_stream *stream) {
    if (stream->n_recordings < METAL_MAX_RECORDINGS)
        return &stream->recordings[stream->n_recordings++];
    int oldest = 0;
    for (int i = 1; i < stream->n_recordings; ++i) {
        if (stream->recordings[i]->last_use < stream->recordings[oldest]->last_use) oldest = i;
    }
    metal_recording_free(stream->recordings[oldest]);
    return &stream->recordings[oldest];
}

// Scratch memory of the stream's, as large as its largest graph needs. What uses smaller memory
// that it had before keeps that. False: there is not so much.
static bool get_scratch(struct metal_stream *stream, size_t bytes) {
    if (bytes <= stream->scratch_bytes) return true;
    if (bytes > stream->device->max_buffer || bytes > metal_device_room(stream->device))
        return false;
    const mtl_id scratch = mtl_new_buffer(stream->context->device, bytes, MTL_STORAGE_PRIVATE);
    if (!scratch) return false;
    mtl_release(stream->scratch);
    stream->scratch = scratch;
    stream->scratch_bytes = bytes;
    return true;
}

// The plan of a graph and its scratch memory. Where there is none, a plan that needs none: slower
// for attention with few blocks.
static enum ggml_host_status make_plan(struct metal_stream *stream,
                                       const struct ggml_graph *graph) {
    enum ggml_status planned = gpu_plan_graph(&stream->plan, graph);
    if (planned == GGML_STATUS_SUCCESS && !get_scratch(stream, stream->plan.scratch_bytes)) {
        stream->planner.has_scratch = false;
        planned = gpu_plan_graph(&stream->plan, graph);
        stream->planner.has_scratch = true;
    }
    if (planned == GGML_STATUS_SUCCESS) return GGML_HOST_OK;
    return planned == GGML_STATUS_ALLOC_FAILED ? GGML_HOST_OUT_OF_MEMORY : GGML_HOST_UNSUPPORTED;
}

// key: NULL: nobody will look for the recording.
static enum ggml_host_status record(struct metal_stream *stream, const struct ggml_graph *graph,
                                    const struct gpu_graph_key *key,
                                    struct metal_recording **out_recording) {
    const enum ggml_host_status status = make_plan(stream, graph);
    if (status != GGML_HOST_OK) return status;
    return metal_recording_new(stream->context, &stream->plan, key,
                               stream->plan.scratch_bytes > 0 ? stream->scratch : NULL,
                               &stream->tracker, out_recording);
}

static enum ggml_host_status get_recording(struct metal_stream *stream,
                                           const struct ggml_graph *graph,
                                           struct metal_recording **out_recording) {
    const uint64_t generation = atomic_load(&stream->context->generation);
    enum ggml_host_status status = GGML_HOST_OK;
    *out_recording = find_by_uid(stream, graph->uid, generation);
    if (*out_recording) return status;
    if (!gpu_graph_key_make(&stream->key, graph, metal_buffer_id)) return GGML_HOST_OUT_OF_MEMORY;
    *out_recording = find_by_key(stream);
    if (!*out_recording) {
        status = record(stream, graph, &stream->key, out_recording);
        if (status != GGML_HOST_OK) return status;
        *make_room(stream) = *out_recording;
    }
    (*out_recording)->uid = graph->uid;
    (*out_recording)->generation = generation;
    return status;
}

// Queues all of a recording.
static enum ggml_host_status queue(struct metal_stream *stream, struct metal_recording *recording) {
    recording->last_use = ++stream->n_graphs;
    return metal_encode(&stream->encoders, stream, recording);
}

// After a failure what was queued before goes on; the core synchronises before it frees anything.
int32_t metal_stream_compute(ggml_backend_t backend, const struct ggml_graph *graph) {
    struct metal_stream *stream = backend->context;
    struct metal_recording *recording;
    enum ggml_host_status status = metal_context_check(stream->context);
    if (status != GGML_HOST_OK) return status;
    void *pool = mtl_api.pool_push();
    status = get_recording(stream, graph, &recording);
    if (status == GGML_HOST_OK) status = queue(stream, recording);
    mtl_api.pool_pop(pool);
    return status;
}

// --- plans of the application's ------------------------------------------------------------------

// A plan is a recording that the stream does not list.
int32_t metal_stream_plan_create(ggml_backend_t backend, const struct ggml_graph *graph,
                                 ggml_backend_graph_plan_t *out_plan) {
    struct metal_stream *stream = backend->context;
    struct metal_recording *recording = NULL;
    enum ggml_host_status status = metal_context_check(stream->context);
    if (status != GGML_HOST_OK) return status;
    void *pool = mtl_api.pool_push();
    status = record(stream, graph, NULL, &recording);
    mtl_api.pool_pop(pool);
    *out_plan = recording;
    return status;
}

// Queued command buffers have copies of what they were encoded from.
void metal_stream_plan_free(ggml_backend_t backend, ggml_backend_graph_plan_t plan) {
    (void)backend;
    metal_recording_free(plan);
}

int32_t metal_stream_plan_compute(ggml_backend_t backend, ggml_backend_graph_plan_t plan) {
    struct metal_stream *stream = backend->context;
    enum ggml_host_status status = metal_context_check(stream->context);
    if (status != GGML_HOST_OK) return status;
    void *pool = mtl_api.pool_push();
    status = queue(stream, plan);
    mtl_api.pool_pop(pool);
    return status;
}

// --- order ---------------------------------------------------------------------------------------

// Called by the scheduler when it splits a graph, not for each run.
int32_t metal_stream_optimize(ggml_backend_t backend, struct ggml_graph *graph) {
    struct metal_stream *stream = backend->context;
    if (!stream->keeps_order) gpu_reorder(graph, &stream->plan);
    return GGML_HOST_OK;
}
