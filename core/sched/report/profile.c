// SPDX-License-Identifier: MIT
// Begins and ends a profile, which then is the application's, with slices sorted by time.
#include <stdlib.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/thread_guard.h"
#include "device/check.h"
#include "plugin/query/profile.h"
#include "sched/record/record.h"
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
        stream->extension = sched->runs.profile->streams[first].extension;
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

// The scheduler has the profile from here on, also if there is no memory for all of it: then
// false.
static bool make_profile(struct ggml_backend_sched *sched, size_t max_slices) {
    const size_t n = (size_t)sched->setup.n_streams;
    struct ggml_sched_profile *profile = ggml_mem_calloc(1, sizeof(*profile));
    sched->runs.profile = profile;
    if (!profile) return false;
    profile->begin_ns = sched_clock_ns();
    profile->capacity = max_slices ? MIN(max_slices, MOST_SLICES) : DEFAULT_SLICES;
    profile->n_streams = sched->setup.n_streams;
    profile->streams = arena_alloc(&profile->arena, n * sizeof(profile->streams[0]));
    bool made = profile->streams != NULL;
    for (size_t b = 0; b < n && made; ++b) {
        const char *label = sched_stream_label(&sched->setup, (int32_t)b);
        profile->streams[b].device = arena_strdup(&profile->arena, label);
        made = profile->streams[b].device != NULL;
    }
    return made;
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
    if (!make_profile(sched, max_slices)) {
        ggml_sched_profile_free(sched_profile_stop(&sched->setup, &sched->runs));
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to record", __func__);
    }
    for (int b = 0; b < sched->setup.n_streams; ++b) {
        const enum ggml_host_status status = begin_stream(sched, b, sched->runs.profile->capacity);
        if (status == GGML_HOST_OK) continue;
        // The message is kept, as stopping the streams before may fail too.
        char reason[256];
        snprintf(reason, sizeof(reason), "%s", ggml_last_error());
        ggml_sched_profile_free(sched_profile_stop(&sched->setup, &sched->runs));
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

// Waits for what is queued, which belongs to the profile.
ggml_sched_profile_t ggml_sched_profile_end(ggml_backend_sched_t sched) {
    THREAD_GUARD(sched, NULL);
    if (!sched || !sched->runs.profile) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: %s", __func__,
                  sched ? "the scheduler records nothing" : "the scheduler is NULL");
        return NULL;
    }
    sched_wait_all(&sched->setup, &sched->runs);
    sched_profile_read(&sched->setup, &sched->runs);
    ggml_sched_profile_t profile = sched_profile_stop(&sched->setup, &sched->runs);
    if (profile->n_slices > 0)
        qsort(profile->slices, profile->n_slices, sizeof(profile->slices[0]), compare_slices);
    return profile;
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
