// SPDX-License-Identifier: MIT
// Begins and ends a recording, and makes a profile of it: slices sorted by time, with the names of
// devices and tensors.
#include "sched/report/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/thread_guard.h"
#include "device/check.h"
#include "plugin/query/profile.h"
#include "sched/sched.h"

enum { DEFAULT_SLICES = 65536, MOST_SLICES = 1 << 22 };

// Has a stream record. The same stream at a second place records once; one that can't is no
// failure.
static enum ggml_host_status begin_stream(struct ggml_backend_sched *sched, int b,
                                          uint64_t max_slices) {
    struct profile_stream *stream = &sched->runs.profile->streams[b];
    ggml_backend_t backend = sched->setup.streams[b].backend;
    const int first = sched_find_stream(sched, backend);
    if (first < b) {
        *stream = (struct profile_stream){sched->runs.profile->streams[first].extension, true};
        return GGML_HOST_OK;
    }
    const struct ggml_extension_profile *extension = plugin_profile(sched->setup.streams[b].device);
    const unsigned long errors_before = ggml_fail_count();
    const int32_t status =
        extension ? extension->begin(backend, max_slices) : GGML_HOST_UNSUPPORTED;
    if (status == GGML_HOST_OK) stream->extension = extension;
    if (status == GGML_HOST_UNSUPPORTED) return GGML_HOST_OK;
    return device_check_status(status, errors_before, "ggml.profile",
                               sched_stream_label(&sched->setup, b));
}

// Waits for what is queued first, which is not to be in the profile.
enum ggml_host_status ggml_sched_profile_begin(ggml_backend_sched_t sched, size_t max_slices) {
    THREAD_GUARD(sched, GGML_HOST_BUSY);
    if (!sched) return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the scheduler is NULL", __func__);
    if (sched->runs.profile)
        return ggml_fail(GGML_HOST_BUSY, "%s: the scheduler records already", __func__);
    for (int b = 0; b < sched->setup.n_streams; ++b) {
        if (!sched_stream_is_live(sched, b, __func__)) return GGML_HOST_INVALID_ARGUMENT;
    }
    sched_wait_all(&sched->setup, &sched->runs);
    struct sched_profile *profile = ggml_mem_calloc(1, sizeof(*profile));
    sched->runs.profile = profile;
    if (profile)
        profile->streams =
            ggml_mem_calloc((size_t)sched->setup.n_streams, sizeof(profile->streams[0]));
    if (!profile || !profile->streams) {
        sched_profile_drop(&sched->setup, &sched->runs);
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to record", __func__);
    }
    profile->begin_ns = sched_clock_ns();
    profile->capacity = max_slices ? MIN(max_slices, MOST_SLICES) : DEFAULT_SLICES;
    for (int b = 0; b < sched->setup.n_streams; ++b) {
        const enum ggml_host_status status = begin_stream(sched, b, profile->capacity);
        if (status == GGML_HOST_OK) continue;
        // The message is kept, as stopping the streams before may fail too.
        char reason[256];
        snprintf(reason, sizeof(reason), "%s", ggml_last_error());
        sched_profile_drop(&sched->setup, &sched->runs);
        return ggml_fail(status, "%s: %s: %s", __func__, sched_stream_label(&sched->setup, b),
                         reason);
    }
    return GGML_HOST_OK;
}

// Those that begin first, and of these those that contain others.
static int compare_slices(const void *a, const void *b) {
    const struct ggml_sched_slice *left = a;
    const struct ggml_sched_slice *right = b;
    if (left->begin_ns != right->begin_ns) return left->begin_ns < right->begin_ns ? -1 : 1;
    if (left->end_ns != right->end_ns) return left->end_ns > right->end_ns ? -1 : 1;
    return (left->node > right->node) - (left->node < right->node);
}

// Names of all streams. false without memory.
static bool copy_devices(const struct ggml_backend_sched *sched, ggml_sched_profile_t result) {
    const size_t n = (size_t)sched->setup.n_streams;
    result->devices = arena_alloc(&result->arena, n * sizeof(result->devices[0]));
    bool copied = result->devices != NULL;
    for (size_t b = 0; b < n && copied; ++b) {
        const char *label = sched_stream_label(&sched->setup, (int32_t)b);
        result->devices[b] = arena_strdup(&result->arena, label);
        copied = result->devices[b] != NULL;
    }
    return copied;
}

// A span as the application sees it, with times since the recording began.
static struct ggml_sched_slice make_slice(const struct ggml_sched_profile *result,
                                          const struct profile_span *span, uint64_t begin_ns) {
    static const struct profile_tensor none = {.op = "", .type = ""};
    const struct profile_tensor *tensor =
        span->tensor != PROFILE_NO_TENSOR ? &result->tensors[span->tensor] : &none;
    struct ggml_sched_slice slice = {
        .kind = span->kind,
        .stream = span->backend,
        .from = span->from,
        .node = span->node,
        .n_nodes = span->n_nodes,
        .run = span->run,
        .device = result->devices[span->backend],
        .name = tensor->name,
        .op = tensor->op,
        .type = tensor->type,
        .bytes = tensor->bytes,
        .begin_ns = span->begin_ns - begin_ns,
        .end_ns = span->end_ns - begin_ns,
    };
    memcpy(slice.ne, tensor->ne, sizeof(slice.ne));
    return slice;
}

// Takes over the descriptions of tensors, copies the rest and sorts slices by time. NULL without
// memory.
static ggml_sched_profile_t make_result(struct ggml_backend_sched *sched) {
    struct sched_profile *profile = sched->runs.profile;
    const size_t n = profile->spans.n;
    ggml_sched_profile_t result = ggml_mem_calloc(1, sizeof(*result));
    if (!result) return NULL;
    result->slices = ggml_mem_calloc(n > 0 ? n : 1, sizeof(result->slices[0]));
    if (!result->slices || !copy_devices(sched, result)) {
        ggml_sched_profile_free(result);
        return NULL;
    }
    result->tensors = profile->tensors.values;
    profile->tensors.values = NULL;
    for (size_t i = 0; i < n; ++i) {
        result->slices[i] = make_slice(
            result, (const struct profile_span *)profile->spans.values + i, profile->begin_ns);
    }
    result->n_slices = n;
    result->n_streams = sched->setup.n_streams;
    result->lost = profile->lost;
    qsort(result->slices, n, sizeof(result->slices[0]), compare_slices);
    return result;
}

// Waits for what is queued, which belongs to the profile. The recording ends also on failure.
ggml_sched_profile_t ggml_sched_profile_end(ggml_backend_sched_t sched) {
    THREAD_GUARD(sched, NULL);
    if (!sched || !sched->runs.profile) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: %s", __func__,
                  sched ? "the scheduler records nothing" : "the scheduler is NULL");
        return NULL;
    }
    sched_wait_all(&sched->setup, &sched->runs);
    sched_profile_read(&sched->setup, &sched->runs);
    ggml_sched_profile_t result = make_result(sched);
    if (!result) ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory for a profile", __func__);
    sched_profile_drop(&sched->setup, &sched->runs);
    return result;
}

// Independent of the scheduler, which may be gone.
void ggml_sched_profile_free(ggml_sched_profile_t profile) {
    if (!profile) return;
    ggml_mem_free(profile->slices);
    ggml_mem_free(profile->tensors);
    arena_free(&profile->arena);
    ggml_mem_free(profile->text);
    ggml_mem_free(profile->json);
    ggml_mem_free(profile);
}

// --- questions: 0 or NULL for no profile

size_t ggml_sched_profile_count(ggml_sched_profile_t profile) {
    return profile ? profile->n_slices : 0;
}

const struct ggml_sched_slice *ggml_sched_profile_get(ggml_sched_profile_t profile, size_t i) {
    return profile && i < profile->n_slices ? &profile->slices[i] : NULL;
}

uint64_t ggml_sched_profile_lost(ggml_sched_profile_t profile) {
    return profile ? profile->lost : 0;
}
