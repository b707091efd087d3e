// SPDX-License-Identifier: MIT
// Graphs: put in order, found among the recordings, or planned and recorded, then encoded into
// command buffers, which are committed as soon as they are full.
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

static enum ggml_host_status record(struct metal_stream *stream, const struct ggml_graph *graph,
                                    struct metal_recording **out_recording) {
    const enum ggml_status planned = gpu_plan_graph(&stream->plan, graph);
    if (planned != GGML_STATUS_SUCCESS)
        return planned == GGML_STATUS_ALLOC_FAILED ? GGML_HOST_OUT_OF_MEMORY
                                                   : GGML_HOST_UNSUPPORTED;
    const enum ggml_host_status status = metal_recording_new(
        stream->context, &stream->plan, &stream->key, &stream->tracker, out_recording);
    if (status == GGML_HOST_OK) *make_room(stream) = *out_recording;
    return status;
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
    if (!*out_recording) status = record(stream, graph, out_recording);
    if (status != GGML_HOST_OK) return status;
    (*out_recording)->uid = graph->uid;
    (*out_recording)->generation = generation;
    return status;
}

// One command buffer of the recording's. What is not committed is never run.
static enum ggml_host_status queue_part(struct metal_stream *stream,
                                        const struct metal_recording *recording, int first) {
    const mtl_id commands = metal_stream_begin(stream);
    if (!commands) return GGML_HOST_OUT_OF_MEMORY;
    const enum ggml_host_status status = metal_recording_encode(
        recording, first, MIN(first + METAL_STEPS_PER_COMMIT, recording->n), commands);
    if (status == GGML_HOST_OK) metal_stream_commit(stream, commands);
    mtl_release(commands);
    return status;
}

// After a failure what was queued before goes on; the core synchronises before it frees anything.
static enum ggml_host_status compute(struct metal_stream *stream, const struct ggml_graph *graph) {
    struct metal_recording *recording;
    enum ggml_host_status status = get_recording(stream, graph, &recording);
    if (status != GGML_HOST_OK) return status;
    recording->last_use = ++stream->n_graphs;
    for (int i = 0; i < recording->n && status == GGML_HOST_OK; i += METAL_STEPS_PER_COMMIT)
        status = queue_part(stream, recording, i);
    return status;
}

int32_t metal_stream_compute(ggml_backend_t backend, const struct ggml_graph *graph) {
    struct metal_stream *stream = backend->context;
    enum ggml_host_status status = metal_context_check(stream->context);
    if (status != GGML_HOST_OK) return status;
    void *pool = mtl_api.pool_push();
    status = compute(stream, graph);
    mtl_api.pool_pop(pool);
    return status;
}

// Called by the scheduler when it splits a graph, not for each run.
int32_t metal_stream_optimize(ggml_backend_t backend, struct ggml_graph *graph) {
    struct metal_stream *stream = backend->context;
    if (!stream->keeps_order) gpu_reorder(graph, &stream->plan);
    return GGML_HOST_OK;
}
