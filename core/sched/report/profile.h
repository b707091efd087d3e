// SPDX-License-Identifier: MIT
// Recording of when nodes are computed, and of what the scheduler itself does meanwhile.
#ifndef GGML_SCHED_PROFILE_H
#define GGML_SCHED_PROFILE_H

#include "sched/run.h"

// A tensor as it was when it was used: it may be gone when the profile is read.
struct profile_tensor {
    char name[GGML_MAX_NAME];
    const char *op;
    const char *type;
    int64_t ne[GGML_MAX_DIMS];
    uint64_t bytes;
};

// A recording that has ended, which belongs to the application.
struct ggml_sched_profile {
    struct ggml_sched_slice *slices; // by the time at which they begin
    size_t n_slices;
    struct profile_tensor *tensors; // that slices point to
    char **devices;                 // by stream, in one block
    int n_streams;
    uint64_t lost; // slices
    char *text;    // written when first asked for
    char *json;
};

// Nanoseconds of the clock of "ggml.profile". [any-thread]
uint64_t sched_clock_ns(void);

// The time, above 0, or 0 while nothing is recorded.
static inline uint64_t sched_profile_clock(const struct sched_runs *runs) {
    return runs->profile ? sched_clock_ns() : 0;
}

// Before and after nodes are given to a stream; `first` is the number of the first in the graph
// that was split. Between both the stream records under a tag. What there is no memory for is
// counted as lost.
void sched_profile_enter(struct sched_profile *profile, int32_t backend, ggml_backend_t stream,
                         const struct ggml_graph *graph, int first);
void sched_profile_leave(struct sched_profile *profile, int32_t backend, ggml_backend_t stream,
                         uint64_t begin_ns);
// The host copied a tensor, or waited for a stream, until now.
void sched_profile_copy(struct sched_profile *profile, const struct sched_work *work, int32_t copy,
                        uint64_t begin_ns);
void sched_profile_wait(struct sched_profile *profile, int32_t backend, uint64_t begin_ns);
// Takes what the streams have recorded so far. A graph begins to be computed.
void sched_profile_collect(const struct sched_setup *setup, struct sched_runs *runs);
// Stops and forgets everything.
void sched_profile_drop(const struct sched_setup *setup, struct sched_runs *runs);

#endif
