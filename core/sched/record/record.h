// SPDX-License-Identifier: MIT
// Recording of when nodes are computed, and of what the scheduler itself does meanwhile. report/
// begins and ends it.
#ifndef GGML_SCHED_RECORD_H
#define GGML_SCHED_RECORD_H

#include "base/data/arena.h"
#include "ggml-ext-profile.h"
#include "sched/run.h"

// A stream of the scheduler, and how it records.
struct profile_stream {
    const char *device;                             // its name
    const struct ggml_extension_profile *extension; // NULL: it does not tell
};

// A slice for one tensor, as that is when it is used: it may be gone when the profile is read.
struct profile_node {
    struct ggml_sched_slice slice; // without times
    char name[GGML_MAX_NAME];
};

// Nodes that were given to a stream.
struct profile_part {
    struct profile_node *nodes;
    int n_nodes;
};

// A profile: under way as long as a scheduler has it, then the application's, which
// refers to nothing of the scheduler.
struct ggml_sched_profile {
    struct ggml_sched_slice *slices; // as they come, at the end by the time at which they begin
    size_t n_slices, slices_capacity;
    uint64_t lost; // slices that there was no memory for, or that can't be
    struct profile_stream *streams;
    int n_streams;
    struct arena arena; // of what slices point to
    char *text;         // written when first asked for
    char *json;

    // While it is under way.
    struct profile_part *parts; // slices of streams refer to them by number, from 1
    size_t n_parts, parts_capacity;
    size_t part;       // number of the one that is being given to a stream; 0: none
    uint64_t begin_ns; // of the profile: earlier slices are of something else
    uint64_t capacity; // slices that a stream keeps until they are read
    uint64_t run;
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
void sched_profile_enter(struct ggml_sched_profile *profile, int32_t backend, ggml_backend_t stream,
                         const struct ggml_graph *graph, int first);
void sched_profile_leave(struct ggml_sched_profile *profile, int32_t backend, ggml_backend_t stream,
                         uint64_t begin_ns);
// The host copied a tensor, or waited for a stream, until now.
void sched_profile_copy(struct ggml_sched_profile *profile, const struct sched_work *work,
                        int32_t copy, uint64_t begin_ns);
void sched_profile_wait(struct ggml_sched_profile *profile, int32_t backend, uint64_t begin_ns);
// Takes what the streams have recorded so far, for the profile or because a run is over.
void sched_profile_read(const struct sched_setup *setup, struct sched_runs *runs);
void sched_profile_collect(const struct sched_setup *setup, struct sched_runs *runs);
// Has the streams stop recording; the scheduler has no profile from then on. Returns it, or NULL
// if there was none.
struct ggml_sched_profile *sched_profile_stop(const struct sched_setup *setup,
                                              struct sched_runs *runs);

#endif
