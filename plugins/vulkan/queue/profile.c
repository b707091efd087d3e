// SPDX-License-Identifier: MIT
// While a stream records times, its graphs are recorded again with timestamps between the spans of
// the plan. A timestamp is written when everything before it is done, so spans that overlap on the
// device are told one after the other. Its ticks become the host's time by one pair of both clocks,
// taken when recording begins; each graph moves that pair where it would have begun before it was
// submitted or ended after it was seen to be done, which keeps up with clocks that drift apart.
#include "queue/profile.h"

#include "queue/stream.h"

// --- timestamps of a recording -------------------------------------------------------------------

// Spans of the plan: launches that begin with another node.
static uint32_t count_spans(const struct gpu_plan *plan) {
    uint32_t n = 0;
    for (int i = 0; i < plan->n_launches; ++i)
        n += i == 0 || plan->spans[i].first_node != plan->spans[i - 1].first_node;
    return n;
}

// NULL with a message.
static VkQueryPool make_queries(struct gvk_context *context, uint32_t n) {
    const VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                        .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                        .queryCount = n};
    VkQueryPool pool = VK_NULL_HANDLE;
    const VkResult result = context->api.vkCreateQueryPool(context->device, &info, NULL, &pool);
    return gvk_context_check(context, result, "vkCreateQueryPool") ? pool : VK_NULL_HANDLE;
}

// One query more than spans: the time before the first. NULL after the error was set.
struct gvk_times *gvk_times_new(struct gvk_context *context, const struct gpu_plan *plan) {
    struct gvk_times *times = ggml_aligned_malloc(sizeof(*times));
    if (times) {
        *times = (struct gvk_times){.max_spans = count_spans(plan)};
        times->spans = ggml_aligned_malloc(times->max_spans * sizeof(times->spans[0]));
    }
    if (times && times->spans) times->queries = make_queries(context, times->max_spans + 1);
    if (times && times->queries) return times;
    if (!times || !times->spans)
        ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for times of nodes");
    gvk_times_free(context, times);
    return NULL;
}

// Works for times of which only a part was created.
void gvk_times_free(struct gvk_context *context, struct gvk_times *times) {
    if (!times) return;
    if (times->queries) context->api.vkDestroyQueryPool(context->device, times->queries, NULL);
    if (times->spans) ggml_aligned_free(times->spans, times->max_spans * sizeof(times->spans[0]));
    ggml_aligned_free(times, sizeof(*times));
}

// Time 0 is the beginning; every launch that is recorded has a time at its end.
void gvk_times_begin(struct gvk_context *context, struct gvk_times *times,
                     VkCommandBuffer commands) {
    context->api.vkCmdResetQueryPool(commands, times->queries, 0, times->max_spans + 1);
    context->api.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, times->queries,
                                     0);
}

// The span tells which nodes the launch computes; its time is the difference to the previous mark.
void gvk_times_mark(struct gvk_context *context, struct gvk_times *times, VkCommandBuffer commands,
                    const struct gpu_span *span) {
    GGML_ASSERT(times->n_spans < times->max_spans);
    times->spans[times->n_spans++] = *span;
    context->api.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, times->queries,
                                     times->n_spans);
}

// --- clocks --------------------------------------------------------------------------------------

static uint64_t nanoseconds(const struct gvk_context *context, uint64_t ticks) {
    return (uint64_t)((double)ticks * (double)context->probe->properties.limits.timestampPeriod);
}

// From one timestamp to a later one. The count starts again from 0 where it has fewer bits than 64.
static uint64_t ticks_between(const struct gvk_context *context, uint64_t from, uint64_t to) {
    const uint32_t bits = context->probe->timestamp_bits;
    return (to - from) & (bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX);
}

// Reads timestamps of work that is done; doesn't wait.
static bool read_ticks(struct gvk_context *context, VkQueryPool queries, uint32_t n,
                       uint64_t *out_ticks) {
    const VkResult result =
        context->api.vkGetQueryPoolResults(context->device, queries, 0, n, n * sizeof(*out_ticks),
                                           out_ticks, sizeof(*out_ticks), VK_QUERY_RESULT_64_BIT);
    return gvk_context_check(context, result, "vkGetQueryPoolResults");
}

// The device writes a timestamp while the host waits: what it shows is between the host's two looks
// at its clock.
static bool look_at_clocks(struct gvk_stream *stream, VkQueryPool queries, uint64_t *out_ticks,
                           uint64_t *out_ns, uint64_t *out_error) {
    struct gvk_context *context = stream->context;
    const VkCommandBuffer commands = gvk_stream_commands(stream);
    if (!commands) return false;
    context->api.vkCmdResetQueryPool(commands, queries, 0, 1);
    context->api.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries, 0);
    const uint64_t before = gpu_clock_ns();
    if (gvk_stream_finish(stream) != GGML_STATUS_SUCCESS) return false;
    const uint64_t after = gpu_clock_ns();
    *out_error = after - before;
    *out_ns = before + (after - before) / 2;
    return read_ticks(context, queries, 1, out_ticks);
}

// The closest of a few.
static bool set_anchor(struct gvk_stream *stream) {
    enum { LOOKS = 4 };
    struct gvk_profile *profile = &stream->profile;
    uint64_t best = UINT64_MAX;
    const VkQueryPool queries = make_queries(stream->context, 1);
    if (!queries) return false;
    for (int i = 0; i < LOOKS; ++i) {
        uint64_t ticks, ns, error;
        if (!look_at_clocks(stream, queries, &ticks, &ns, &error)) break;
        if (error >= best) continue;
        best = error;
        profile->anchor_ticks = ticks;
        profile->anchor_ns = ns;
    }
    stream->context->api.vkDestroyQueryPool(stream->context->device, queries, NULL);
    return best != UINT64_MAX;
}

// --- slices --------------------------------------------------------------------------------------

// When the graph began by the host's clock. It can't have been before it was submitted or before
// the one before it ended, nor so late that it ended after now.
static uint64_t place_graph(const struct gvk_profile *profile, uint64_t guess, uint64_t length,
                            uint64_t submit_ns, uint64_t now) {
    const uint64_t least = MAX(submit_ns, profile->last_end_ns);
    const uint64_t most = now > length ? now - length : 0;
    return MAX(MIN(guess, most), least);
}

// Turns the timestamps of one graph into slices of the host's time, none of which begins before
// the graph was submitted or ends after `now`.
static void add_slices(struct gvk_stream *stream, struct gvk_times *times, const uint64_t *ticks,
                       uint64_t now) {
    struct gvk_context *context = stream->context;
    struct gvk_profile *profile = &stream->profile;
    const uint64_t since = ticks_between(context, profile->anchor_ticks, ticks[0]);
    const uint64_t length = ticks_between(context, ticks[0], ticks[times->n_spans]);
    const uint64_t begin = place_graph(profile, profile->anchor_ns + nanoseconds(context, since),
                                       nanoseconds(context, length), times->submit_ns, now);
    struct ggml_profile_slice slice = {.tag = times->tag, .end_ns = MIN(begin, now)};
    profile->anchor_ticks = ticks[0];
    profile->anchor_ns = begin;
    for (uint32_t i = 0; i < times->n_spans; ++i) {
        const uint64_t passed = ticks_between(context, ticks[0], ticks[i + 1]);
        const uint64_t end = MIN(begin + nanoseconds(context, passed), now);
        slice.first_node = times->spans[i].first_node;
        slice.n_nodes = times->spans[i].n_nodes;
        slice.begin_ns = slice.end_ns;
        slice.end_ns = MAX(end, slice.begin_ns);
        gpu_slices_add(&profile->slices, &slice);
    }
    profile->last_end_ns = slice.end_ns;
}

// Without memory, or where the driver has lost them, its slices are.
static void collect(struct gvk_stream *stream, struct gvk_recording *recording) {
    struct gvk_times *times = recording->times;
    const uint64_t now = gpu_clock_ns();
    const size_t bytes = (times->n_spans + 1) * sizeof(uint64_t);
    uint64_t *ticks = ggml_aligned_malloc(bytes);
    times->pending = false;
    if (ticks && read_ticks(stream->context, times->queries, times->n_spans + 1, ticks))
        add_slices(stream, times, ticks, now);
    else
        stream->profile.slices.lost += times->n_spans;
    if (ticks) ggml_aligned_free(ticks, bytes);
}

// Of those that wait for their slices, the one that was submitted first; NULL: none.
static struct gvk_recording *first_pending(const struct gvk_stream *stream) {
    struct gvk_recording *first = NULL;
    for (int i = 0; i < stream->n_recordings; ++i) {
        struct gvk_recording *r = stream->recordings[i];
        if (r->times && r->times->pending && (!first || r->last_value < first->last_value))
            first = r;
    }
    return first;
}

// Reads the times of all recordings that the device has finished, without waiting.
void gvk_profile_collect(struct gvk_stream *stream) {
    if (!gvk_profile_is_on(&stream->profile)) return;
    struct gvk_recording *recording = first_pending(stream);
    const uint64_t reached = recording ? gvk_timeline_reached(stream->timeline) : 0;
    for (; recording && recording->last_value <= reached; recording = first_pending(stream))
        collect(stream, recording);
}

// Times of the previous run of the recording are read before they are overwritten, even if that
// means waiting.
enum ggml_status gvk_profile_submit(struct gvk_stream *stream, struct gvk_recording *recording) {
    if (!recording->times) return GGML_STATUS_SUCCESS;
    if (recording->times->pending) {
        const enum ggml_status status = gvk_timeline_wait(stream->timeline, recording->last_value);
        if (status != GGML_STATUS_SUCCESS) return status;
        gvk_profile_collect(stream);
    }
    recording->times->tag = stream->profile.slices.tag;
    recording->times->submit_ns = gpu_clock_ns();
    return GGML_STATUS_SUCCESS;
}

// --- extension -----------------------------------------------------------------------------------

static int32_t refuse(enum ggml_host_status status, const char *reason) {
    return ggml_sdk_fail(status, "vulkan: %s", reason);
}

// The stream if it is of this plugin and records; NULL after the error was set.
static struct gvk_stream *recording_stream(ggml_backend_t backend) {
    struct gvk_stream *stream = gvk_stream_of(backend);
    if (stream && gvk_profile_is_on(&stream->profile)) return stream;
    refuse(GGML_HOST_INVALID_ARGUMENT, "the stream records no times of nodes");
    return NULL;
}

// UNSUPPORTED where the device's queues have no timestamps.
static int32_t begin(ggml_backend_t backend, uint64_t capacity) {
    struct gvk_stream *stream = gvk_stream_of(backend);
    if (!stream || capacity == 0)
        return refuse(GGML_HOST_INVALID_ARGUMENT, "no stream, or no room, for times of nodes");
    if (gvk_profile_is_on(&stream->profile))
        return refuse(GGML_HOST_BUSY, "the stream records times of nodes already");
    if (stream->context->probe->timestamp_bits == 0) return GGML_HOST_UNSUPPORTED;
    if (!gvk_context_alive(stream->context)) return GGML_HOST_DEVICE_LOST;
    if (!set_anchor(stream)) return GGML_HOST_FAILED;
    return gpu_slices_open(&stream->profile.slices, capacity);
}

// Slices of graphs from now on carry the tag.
static int32_t tag(ggml_backend_t backend, uint64_t value) {
    struct gvk_stream *stream = recording_stream(backend);
    if (!stream) return GGML_HOST_INVALID_ARGUMENT;
    stream->profile.slices.tag = value;
    return GGML_HOST_OK;
}

// Copies finished slices to the caller and tells how many were lost for lack of room.
static int32_t read(ggml_backend_t backend, struct ggml_profile_slice *slices, uint64_t max,
                    uint64_t *out_count, uint64_t *out_lost) {
    *out_count = *out_lost = 0;
    struct gvk_stream *stream = recording_stream(backend);
    if (!stream) return GGML_HOST_INVALID_ARGUMENT;
    gvk_profile_collect(stream);
    *out_count = gpu_slices_read(&stream->profile.slices, slices, max, out_lost);
    return GGML_HOST_OK;
}

// Recordings with timestamps are of no use any more.
static int32_t end(ggml_backend_t backend) {
    struct gvk_stream *stream = recording_stream(backend);
    if (!stream) return GGML_HOST_INVALID_ARGUMENT;
    gvk_stream_finish(stream);
    for (int i = stream->n_recordings - 1; i >= 0; --i) {
        if (!stream->recordings[i]->times) continue;
        gvk_recording_free(stream->recordings[i]);
        stream->recordings[i] = stream->recordings[--stream->n_recordings];
    }
    gpu_slices_close(&stream->profile.slices);
    stream->profile = (struct gvk_profile){0};
    return GGML_HOST_OK;
}

const struct ggml_extension_profile gvk_profile_extension = {
    .size = sizeof(gvk_profile_extension),
    .revision = GGML_EXTENSION_PROFILE_REVISION,
    .begin = begin,
    .tag = tag,
    .read = read,
    .end = end,
};
