// SPDX-License-Identifier: MIT
// Writes one slice for each step, from its start to the start of the next. The record has the
// capacity that was asked for; slices that no longer fit are only counted.
#include "runtime/profile.h"

#include <string.h>

#include "base/platform.h"
#include "base/util.h"
#include "runtime/plan.h"
#include "runtime/stream.h"

// Writes the slice of the step that was going on.
static void close_slice(struct cpu_profile *profile, uint64_t now) {
    const struct cpu_step *step = profile->step;
    profile->step = NULL;
    if (!step || step->n_nodes == 0) return;
    if (profile->n == profile->capacity) {
        ++profile->lost;
        return;
    }
    profile->slices[profile->n++] = (struct ggml_profile_slice){
        .tag = profile->tag,
        .first_node = step->first_node,
        .n_nodes = step->n_nodes,
        .begin_ns = profile->begin_ns,
        .end_ns = now,
    };
}

// Called at the beginning of each step, and with NULL at the end of a graph.
void cpu_profile_step(struct cpu_profile *profile, const struct cpu_step *step) {
    const uint64_t now = cpu_clock_ns();
    close_slice(profile, now);
    profile->step = step;
    profile->begin_ns = now;
}

void cpu_profile_stop(struct cpu_profile *profile) {
    if (profile->step) close_slice(profile, cpu_clock_ns());
}

void cpu_profile_free(struct cpu_profile *profile) {
    ggml_aligned_free(profile->slices, (size_t)profile->capacity * sizeof(profile->slices[0]));
    *profile = (struct cpu_profile){0};
}

// --- extension

static int32_t refuse(enum ggml_host_status status, const char *reason) {
    cpu_fail(GGML_STATUS_FAILED, status, "%s", reason);
    return status;
}

// The stream's record; NULL after the error was set.
static struct cpu_profile *recording(ggml_backend_t stream) {
    struct cpu_profile *profile = cpu_stream_profile(stream);
    if (profile && profile->slices) return profile;
    refuse(GGML_HOST_INVALID_ARGUMENT, "the stream records no times of nodes");
    return NULL;
}

// Allocates the room for all slices beforehand, so that recording allocates nothing. BUSY if the
// stream is recording.
static int32_t begin(ggml_backend_t stream, uint64_t capacity) {
    struct cpu_profile *profile = cpu_stream_profile(stream);
    if (!profile || capacity == 0)
        return refuse(GGML_HOST_INVALID_ARGUMENT, "no stream, or no room, for times of nodes");
    if (profile->slices) return refuse(GGML_HOST_BUSY, "the stream records times of nodes already");
    if (capacity <= SIZE_MAX / 2 / sizeof(profile->slices[0]))
        profile->slices = ggml_aligned_malloc((size_t)capacity * sizeof(profile->slices[0]));
    if (!profile->slices) return refuse(GGML_HOST_OUT_OF_MEMORY, "no memory for times of nodes");
    profile->capacity = capacity;
    return GGML_HOST_OK;
}

// Slices recorded from now on carry the tag, by which the caller tells graphs apart.
static int32_t tag(ggml_backend_t stream, uint64_t value) {
    struct cpu_profile *profile = recording(stream);
    if (!profile) return GGML_HOST_INVALID_ARGUMENT;
    profile->tag = value;
    return GGML_HOST_OK;
}

// Gives out the oldest slices and keeps the rest.
static int32_t read(ggml_backend_t stream, struct ggml_profile_slice *slices, uint64_t max,
                    uint64_t *out_count, uint64_t *out_lost) {
    *out_count = *out_lost = 0;
    struct cpu_profile *profile = recording(stream);
    if (!profile) return GGML_HOST_INVALID_ARGUMENT;
    const uint64_t n = MIN(max, profile->n);
    if (n > 0) {
        memcpy(slices, profile->slices, (size_t)n * sizeof(slices[0]));
        profile->n -= n;
        memmove(profile->slices, profile->slices + n,
                (size_t)profile->n * sizeof(profile->slices[0]));
    }
    *out_count = n;
    *out_lost = profile->lost;
    profile->lost = 0;
    return GGML_HOST_OK;
}

// Frees the recorded slices; the caller has read them.
static int32_t end(ggml_backend_t stream) {
    struct cpu_profile *profile = recording(stream);
    if (!profile) return GGML_HOST_INVALID_ARGUMENT;
    cpu_profile_free(profile);
    return GGML_HOST_OK;
}

const struct ggml_extension_profile cpu_profile_extension = {
    .size = sizeof(cpu_profile_extension),
    .revision = GGML_EXTENSION_PROFILE_REVISION,
    .begin = begin,
    .tag = tag,
    .read = read,
    .end = end,
};
