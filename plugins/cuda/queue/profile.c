// SPDX-License-Identifier: MIT
// While a stream records times, its graphs are recorded anew, launch after launch with an event
// behind each. An event's time is told from another event only, so that one of which the host's
// time is known is kept: first the closest of a few that the host waited for, then the first of
// each graph, which keeps up with clocks that drift apart and spans small enough for the driver's
// floats.
#include "queue/profile.h"

#include "device/loader.h"
#include "queue/stream.h"

// --- events of a recording -----------------------------------------------------------------------

// Launches of an empty result are not queued and have no event.
static int count_launches(const struct gpu_plan *plan) {
    int n = 0;
    for (int i = 0; i < plan->n_launches; ++i)
        n += cuda_plan_at(plan, i)->work.grid[0] > 0;
    return n;
}

static enum ggml_host_status make_events(struct cuda_context *context, struct cuda_times *times) {
    for (int i = 0; i <= times->n; ++i) {
        const CUresult result = cuda_api()->cuEventCreate(&times->events[i], 0);
        if (result == CUDA_SUCCESS) continue;
        times->events[i] = NULL;
        return cuda_context_check(context, result, "cuEventCreate");
    }
    return GGML_HOST_OK;
}

// One event before the first launch and one behind each, with the nodes that each launch computes.
// On a failure *out_times is what there is so far; cuda_times_free() ends that too.
enum ggml_host_status cuda_times_new(struct cuda_context *context, const struct gpu_plan *plan,
                                     struct cuda_times **out_times) {
    const size_t n = (size_t)count_launches(plan);
    struct cuda_times *times = ggml_aligned_malloc(sizeof(*times));
    *out_times = times;
    if (!times) return GGML_HOST_OUT_OF_MEMORY;
    *times = (struct cuda_times){.n = (int)n};
    times->spans = ggml_aligned_malloc((n + 1) * sizeof(*times->spans));
    times->events = ggml_aligned_malloc((n + 1) * sizeof(*times->events));
    if (times->events) memset(times->events, 0, (n + 1) * sizeof(*times->events));
    if (!times->spans || !times->events) return GGML_HOST_OUT_OF_MEMORY;
    for (int i = 0, k = 0; i < plan->n_launches; ++i) {
        if (cuda_plan_at(plan, i)->work.grid[0] > 0) times->spans[k++] = plan->spans[i];
    }
    times->spans[n] = (struct gpu_span){.first_node = -1};
    return make_events(context, times);
}

void cuda_times_free(struct cuda_times *times) {
    if (!times) return;
    const size_t n = (size_t)times->n + 1;
    for (size_t i = 0; times->events && i < n; ++i) {
        if (times->events[i]) cuda_api()->cuEventDestroy(times->events[i]);
    }
    if (times->events) ggml_aligned_free(times->events, n * sizeof(*times->events));
    if (times->spans) ggml_aligned_free(times->spans, n * sizeof(*times->spans));
    ggml_aligned_free(times, sizeof(*times));
}

// Whether launch i is the last of its nodes: a product that is split over keys or columns takes
// several, which are one slice. The span behind the last launch has node -1, which ends every run.
static bool is_last(const struct cuda_times *times, int i) {
    return times->spans[i].first_node != times->spans[i + 1].first_node;
}

// In a graph of the driver's an event is a node of its own; the next launch comes after it.
CUresult cuda_times_add_node(struct cuda_times *times, int i, CUgraph graph, CUgraphNode after) {
    if (!is_last(times, i)) {
        times->node = after;
        return CUDA_SUCCESS;
    }
    return cuda_api()->cuGraphAddEventRecordNode(&times->node, graph, &after, 1,
                                                 times->events[i + 1]);
}

CUresult cuda_times_record(struct cuda_times *times, int i, CUstream stream) {
    return is_last(times, i) ? cuda_api()->cuEventRecord(times->events[i + 1], stream)
                             : CUDA_SUCCESS;
}

// --- clocks --------------------------------------------------------------------------------------

// From one event to a later one, which were reached. False: one wasn't yet, or the driver fails.
static bool elapsed(CUevent from, CUevent to, uint64_t *out_ns) {
    float ms = 0.0f;
    const CUresult result = cuda_api()->cuEventElapsedTime(&ms, from, to);
    *out_ns = result == CUDA_SUCCESS && ms > 0.0f ? (uint64_t)((double)ms * 1e6) : 0;
    return result == CUDA_SUCCESS;
}

// The closest of a few events that the host waits for: it was reached between the host's two looks
// at its clock.
static CUresult set_anchor(struct cuda_stream *stream) {
    enum { LOOKS = 4 };
    const struct cu_api *api = cuda_api();
    struct cuda_profile *profile = &stream->profile;
    uint64_t best = UINT64_MAX;
    CUresult result = api->cuStreamSynchronize(stream->handle);
    for (int i = 0; i < LOOKS && result == CUDA_SUCCESS; ++i) {
        CUevent event = NULL;
        result = api->cuEventCreate(&event, 0);
        if (result != CUDA_SUCCESS) break;
        const uint64_t before = gpu_clock_ns();
        result = api->cuEventRecord(event, stream->handle);
        if (result == CUDA_SUCCESS) result = api->cuEventSynchronize(event);
        const uint64_t after = gpu_clock_ns();
        // The first one also replaces what an end that failed has left.
        if (result == CUDA_SUCCESS && after - before < best) {
            best = after - before;
            profile->anchor_ns = before + best / 2;
            const CUevent worse = profile->anchor;
            profile->anchor = event;
            event = worse;
        }
        if (event) api->cuEventDestroy(event);
    }
    return result;
}

// --- slices --------------------------------------------------------------------------------------

// When the graph began by the host's clock. It can't have been before it was submitted or before
// the one before it ended, nor so late that it ended after now.
static uint64_t place_graph(const struct cuda_profile *profile, uint64_t guess, uint64_t length,
                            uint64_t submit_ns, uint64_t now) {
    const uint64_t least = MAX(submit_ns, profile->last_end_ns);
    const uint64_t most = now > length ? now - length : 0;
    return MAX(MIN(guess, most), least);
}

// None of the slices begins before the graph was submitted or ends after `now`.
static void add_slices(struct cuda_profile *profile, const struct cuda_times *times,
                       const uint64_t *passed, uint64_t since, uint64_t now) {
    const uint64_t begin = place_graph(profile, profile->anchor_ns + since, passed[times->n - 1],
                                       times->submit_ns, now);
    struct ggml_profile_slice slice = {.tag = times->tag, .end_ns = MIN(begin, now)};
    profile->anchor_ns = begin;
    for (int i = 0; i < times->n; ++i) {
        if (!is_last(times, i)) continue;
        slice.first_node = times->spans[i].first_node;
        slice.n_nodes = times->spans[i].n_nodes;
        slice.begin_ns = slice.end_ns;
        slice.end_ns = MAX(MIN(begin + passed[i], now), slice.begin_ns);
        gpu_slices_add(&profile->slices, &slice);
    }
    profile->last_end_ns = slice.end_ns;
}

// Reads all or none: a part of the events would be slices of unknown begin.
static bool read_events(const struct cuda_profile *profile, const struct cuda_times *times,
                        uint64_t *out_passed, uint64_t *out_since) {
    bool is_read = elapsed(profile->anchor, times->events[0], out_since);
    for (int i = 0; i < times->n && is_read; ++i) {
        if (is_last(times, i))
            is_read = elapsed(times->events[0], times->events[i + 1], &out_passed[i]);
    }
    return is_read;
}

// Without memory, or where the driver has lost them, its slices are.
static void collect(struct cuda_profile *profile, struct cuda_times *times) {
    const uint64_t now = gpu_clock_ns();
    const size_t bytes = (size_t)times->n * sizeof(uint64_t);
    uint64_t *passed = ggml_aligned_malloc(bytes), since;
    times->pending = false;
    if (passed && read_events(profile, times, passed, &since)) {
        add_slices(profile, times, passed, since, now);
        const CUevent old = profile->anchor;
        profile->anchor = times->events[0];
        times->events[0] = old;
    } else {
        for (int i = 0; i < times->n; ++i)
            profile->slices.lost += is_last(times, i);
    }
    if (passed) ggml_aligned_free(passed, bytes);
}

// Of those that wait for their slices, the one that was submitted first; NULL: none.
static struct cuda_recording *first_pending(const struct cuda_stream *stream) {
    struct cuda_recording *first = NULL;
    for (int i = 0; i < stream->n_recordings; ++i) {
        struct cuda_recording *r = stream->recordings[i];
        if (r->times && r->times->pending && (!first || r->last_use < first->last_use)) first = r;
    }
    return first;
}

static bool is_done(const struct cuda_times *times) {
    return cuda_api()->cuEventQuery(times->events[times->n]) != CUDA_ERROR_NOT_READY;
}

// Takes the slices of graphs that are done, in the order in which they were submitted, without
// waiting.
void cuda_profile_collect(struct cuda_stream *stream) {
    if (!cuda_profile_is_on(&stream->profile)) return;
    struct cuda_recording *r = first_pending(stream);
    for (; r && is_done(r->times); r = first_pending(stream))
        collect(&stream->profile, r->times);
}

// Waits if the recording's events still hold the times of its last run, which would be overwritten.
enum ggml_host_status cuda_profile_submit(struct cuda_stream *stream,
                                          struct cuda_recording *recording) {
    struct cuda_times *times = recording->times;
    CUresult result = CUDA_SUCCESS;
    if (!times || times->n == 0) return GGML_HOST_OK;
    if (times->pending) {
        result = cuda_api()->cuEventSynchronize(times->events[times->n]);
        cuda_profile_collect(stream);
    }
    times->tag = stream->profile.slices.tag;
    times->submit_ns = gpu_clock_ns();
    if (result == CUDA_SUCCESS)
        result = cuda_api()->cuEventRecord(times->events[0], stream->handle);
    return cuda_context_check(stream->context, result, "the time of a graph");
}

// Forgets times that were not read.
void cuda_profile_drop(struct cuda_stream *stream) {
    if (stream->profile.anchor) cuda_api()->cuEventDestroy(stream->profile.anchor);
    gpu_slices_close(&stream->profile.slices);
    stream->profile = (struct cuda_profile){0};
}

// --- extension -----------------------------------------------------------------------------------

// The stream if it is of this plugin and records; NULL after the error was set.
static struct cuda_stream *recording_stream(ggml_backend_t backend) {
    struct cuda_stream *stream = cuda_stream_of(backend);
    if (stream && cuda_profile_is_on(&stream->profile)) return stream;
    ggml_sdk_fail(GGML_HOST_INVALID_ARGUMENT, "cuda: the stream records no times of nodes");
    return NULL;
}

static int32_t begin(ggml_backend_t backend, uint64_t capacity) {
    struct cuda_stream *stream = cuda_stream_of(backend);
    if (!stream || capacity == 0)
        return ggml_sdk_fail(GGML_HOST_INVALID_ARGUMENT,
                             "cuda: no stream, or no room, for times of nodes");
    if (cuda_profile_is_on(&stream->profile))
        return ggml_sdk_fail(GGML_HOST_BUSY, "cuda: the stream records times of nodes already");
    enum ggml_host_status status = cuda_context_enter(stream->context);
    if (status != GGML_HOST_OK) return status;
    status = cuda_context_check(stream->context, set_anchor(stream), "an event");
    if (status == GGML_HOST_OK) status = gpu_slices_open(&stream->profile.slices, capacity);
    if (status != GGML_HOST_OK) cuda_profile_drop(stream);
    cuda_context_leave();
    return status;
}

static int32_t tag(ggml_backend_t backend, uint64_t value) {
    struct cuda_stream *stream = recording_stream(backend);
    if (!stream) return GGML_HOST_INVALID_ARGUMENT;
    stream->profile.slices.tag = value;
    return GGML_HOST_OK;
}

static int32_t read(ggml_backend_t backend, struct ggml_profile_slice *slices, uint64_t max,
                    uint64_t *out_count, uint64_t *out_lost) {
    *out_count = *out_lost = 0;
    struct cuda_stream *stream = recording_stream(backend);
    if (!stream) return GGML_HOST_INVALID_ARGUMENT;
    const enum ggml_host_status status = cuda_context_enter(stream->context);
    if (status != GGML_HOST_OK) return status;
    cuda_profile_collect(stream);
    cuda_context_leave();
    *out_count = gpu_slices_read(&stream->profile.slices, slices, max, out_lost);
    return GGML_HOST_OK;
}

// Recordings with times are of no use any more. Where the driver can't be called they go with the
// stream.
static int32_t end(ggml_backend_t backend) {
    struct cuda_stream *stream = recording_stream(backend);
    if (!stream) return GGML_HOST_INVALID_ARGUMENT;
    enum ggml_host_status status = cuda_context_enter(stream->context);
    if (status != GGML_HOST_OK) {
        gpu_slices_close(&stream->profile.slices);
        return status;
    }
    status = cuda_context_check(stream->context, cuda_api()->cuStreamSynchronize(stream->handle),
                                "work that was queued");
    for (int i = stream->n_recordings - 1; i >= 0; --i) {
        if (!stream->recordings[i]->times) continue;
        cuda_recording_free(stream->recordings[i]);
        stream->recordings[i] = stream->recordings[--stream->n_recordings];
    }
    cuda_profile_drop(stream);
    cuda_context_leave();
    return status;
}

const struct ggml_extension_profile cuda_profile_extension = {
    .size = sizeof(cuda_profile_extension),
    .revision = GGML_EXTENSION_PROFILE_REVISION,
    .begin = begin,
    .tag = tag,
    .read = read,
    .end = end,
};
