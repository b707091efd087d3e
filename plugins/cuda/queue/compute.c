// SPDX-License-Identifier: MIT
// Graphs: put in order, found among the recordings, or recorded, and queued.
#include "device/loader.h"
#include "gpu/graph/reorder.h"
#include "memory/buffer.h"
#include "queue/stream.h"

// While times are recorded only recordings with events serve, otherwise only those without.
static bool is_current(const struct cuda_stream *stream, const struct cuda_recording *recording) {
    return (recording->times != NULL) == cuda_profile_is_on(&stream->profile);
}

// Of a graph in which nothing has changed, addresses included: none of its nodes is looked at.
// Linear searches: at most CUDA_MAX_RECORDINGS, and a hash or a number is compared first.
static struct cuda_recording *find_by_uid(const struct cuda_stream *stream, uint64_t uid) {
    for (int i = 0; i < stream->n_recordings && uid != 0; ++i) {
        struct cuda_recording *recording = stream->recordings[i];
        if (recording->uid == uid && is_current(stream, recording)) return recording;
    }
    return NULL;
}

// A recording of a graph of the same structure whose tensors lie at the same places, or NULL.
static struct cuda_recording *find_by_places(const struct cuda_stream *stream) {
    for (int i = 0; i < stream->n_recordings && stream->places.n > 0; ++i) {
        struct cuda_recording *recording = stream->recordings[i];
        if (gpu_graph_key_equal(&recording->places, &stream->places) &&
            is_current(stream, recording))
            return recording;
    }
    return NULL;
}

// A recording with the same nodes, parameters and places, or NULL.
static struct cuda_recording *find_by_key(const struct cuda_stream *stream) {
    for (int i = 0; i < stream->n_recordings; ++i) {
        struct cuda_recording *recording = stream->recordings[i];
        if (gpu_graph_key_equal(&recording->key, &stream->key) && is_current(stream, recording))
            return recording;
    }
    return NULL;
}

// The last one takes the place of the one that goes: their order means nothing.
static void drop(struct cuda_stream *stream, int i) {
    cuda_recording_free(stream->recordings[i]);
    stream->recordings[i] = stream->recordings[--stream->n_recordings];
}

// Least recently used. The driver lets a launch that is under way end; times are read before.
static void drop_oldest(struct cuda_stream *stream) {
    int oldest = 0;
    for (int i = 1; i < stream->n_recordings; ++i) {
        if (stream->recordings[i]->last_use < stream->recordings[oldest]->last_use) oldest = i;
    }
    const struct cuda_times *times = stream->recordings[oldest]->times;
    if (times && times->pending) {
        cuda_api()->cuEventSynchronize(times->events[times->n]);
        cuda_profile_collect(stream);
    }
    drop(stream, oldest);
}

// Changes the least recently used recording of the plan's shape into one of the plan, if there are
// CUDA_RECORDINGS_ALIKE of them; fewer may be of graphs that alternate, and each keeps its own.
// *out_i is its index, or -1: a new one has to be made. One whose change failed half way is
// dropped.
static enum ggml_host_status change_one(struct cuda_stream *stream,
                                        const struct cuda_recipe *recipe, int *out_i) {
    int n_alike = 0, oldest = -1;
    *out_i = -1;
    if (recipe->one_by_one || recipe->has_times) return GGML_HOST_OK;
    const uint64_t shape = cuda_plan_shape(recipe->plan);
    for (int i = 0; i < stream->n_recordings; ++i) {
        const struct cuda_recording *r = stream->recordings[i];
        if (!r->exec || r->times || r->shape != shape) continue;
        ++n_alike;
        if (oldest < 0 || r->last_use < stream->recordings[oldest]->last_use) oldest = i;
    }
    if (n_alike < CUDA_RECORDINGS_ALIKE) return GGML_HOST_OK;
    bool fits;
    const enum ggml_host_status status =
        cuda_recording_update(stream->recordings[oldest], recipe, &fits);
    if (status == GGML_HOST_OK && fits) *out_i = oldest;
    if (status != GGML_HOST_OK && fits) drop(stream, oldest);
    return status;
}

// The plan's launches as a graph of the driver's: changed from one that is there, or made anew.
static enum ggml_host_status record(struct cuda_stream *stream,
                                    struct cuda_recording **out_recording) {
    CUdeviceptr scratch;
    enum ggml_host_status status =
        cuda_scratch_get(stream->context, &stream->scratch, stream->plan.scratch_bytes, &scratch);
    if (status != GGML_HOST_OK) return status;
    const struct cuda_recipe recipe = {.context = stream->context,
                                       .key = &stream->key,
                                       .plan = &stream->plan,
                                       .overlap = stream->overlap,
                                       .scratch = scratch,
                                       .one_by_one = stream->one_by_one,
                                       .has_times = cuda_profile_is_on(&stream->profile)};
    int changed;
    status = change_one(stream, &recipe, &changed);
    if (status != GGML_HOST_OK) return status;
    if (changed >= 0) {
        *out_recording = stream->recordings[changed];
        return GGML_HOST_OK;
    }
    if (stream->n_recordings == CUDA_MAX_RECORDINGS) drop_oldest(stream);
    status = cuda_recording_new(&recipe, out_recording);
    if (status == GGML_HOST_OK) stream->recordings[stream->n_recordings++] = *out_recording;
    return status;
}

// Plans and records a graph, where memory runs out by kernels that need less. *out_recording stays
// NULL for one without launches, which is no failure.
static enum ggml_host_status make_recording(struct cuda_stream *stream,
                                            const struct ggml_graph *graph,
                                            struct cuda_recording **out_recording) {
    *out_recording = NULL;
    if (!stream->overlap) {
        stream->overlap = ggml_aligned_malloc(sizeof(*stream->overlap));
        if (!stream->overlap) return GGML_HOST_OUT_OF_MEMORY;
    }
    enum ggml_host_status result;
    do {
        const enum ggml_status status = gpu_plan_graph(&stream->plan, graph);
        if (status != GGML_STATUS_SUCCESS)
            return status == GGML_STATUS_ALLOC_FAILED ? GGML_HOST_OUT_OF_MEMORY
                                                      : GGML_HOST_UNSUPPORTED;
        if (stream->plan.n_launches == 0) return GGML_HOST_OK;
        result = record(stream, out_recording);
    } while (result == GGML_HOST_OUT_OF_MEMORY && cuda_plan_use_less(&stream->plan));
    return result;
}

// An id is never used again, so that memory which was freed and allocated at the same address is
// not taken for the old.
static uint64_t buffer_id(const struct ggml_tensor *tensor) {
    const struct cuda_buffer *buffer = cuda_buffer_of(tensor);
    return buffer ? buffer->id : 0;
}

// A graph with the number of an earlier one is that; one of known structure is looked for by where
// it lies alone, which is a fraction of the words. The structure may be new although the recording
// is not, as after the host has met another graph.
static enum ggml_host_status get_recording(struct cuda_stream *stream,
                                           const struct ggml_graph *graph,
                                           struct cuda_recording **out_recording) {
    enum ggml_host_status status = GGML_HOST_OK;
    *out_recording = find_by_uid(stream, graph->uid);
    if (*out_recording) return status;
    stream->places.n = 0;
    if (graph->structure != 0 && !gpu_graph_key_make_places(&stream->places, graph, buffer_id))
        return GGML_HOST_OUT_OF_MEMORY;
    *out_recording = find_by_places(stream);
    if (*out_recording) return status;
    if (!gpu_graph_key_make(&stream->key, graph, buffer_id)) return GGML_HOST_OUT_OF_MEMORY;
    *out_recording = find_by_key(stream);
    if (!*out_recording) status = make_recording(stream, graph, out_recording);
    if (status != GGML_HOST_OK || !*out_recording) return status;
    // Without memory for a copy it is found by its key again.
    if (stream->places.n > 0) gpu_graph_key_copy(&(*out_recording)->places, &stream->places);
    (*out_recording)->uid = graph->uid;
    return status;
}

// After a failure what was queued before goes on; the core synchronises before it frees anything.
static enum ggml_host_status compute(struct cuda_stream *stream, const struct ggml_graph *graph) {
    struct cuda_recording *recording;
    enum ggml_host_status status = get_recording(stream, graph, &recording);
    if (status != GGML_HOST_OK || !recording) return status;
    status = cuda_profile_submit(stream, recording);
    if (status != GGML_HOST_OK) return status;
    recording->last_use = ++stream->n_graphs;
    status = cuda_recording_queue(recording, stream->handle);
    if (status == GGML_HOST_OK && recording->times) recording->times->pending = recording->n > 0;
    return status;
}

int32_t cuda_stream_compute(ggml_backend_t backend, const struct ggml_graph *graph) {
    struct cuda_stream *stream = backend->context;
    enum ggml_host_status status = cuda_context_enter(stream->context);
    if (status != GGML_HOST_OK) return status;
    status = compute(stream, graph);
    cuda_context_leave();
    return status;
}

// Called by the scheduler when it splits a graph, not for each run.
int32_t cuda_stream_optimize(ggml_backend_t backend, struct ggml_graph *graph) {
    struct cuda_stream *stream = backend->context;
    if (!stream->keeps_order) gpu_reorder(graph, &stream->plan);
    return GGML_HOST_OK;
}
