// SPDX-License-Identifier: MIT
// Recording of when nodes are computed, and of what the scheduler itself does meanwhile. report/
// begins and ends it.
#ifndef GGML_SCHED_RECORD_H
#define GGML_SCHED_RECORD_H

#include "ggml-ext-profile.h"
#include "sched/run.h"

// A tensor as it was when it was used: it may be gone when the profile is read.
struct profile_tensor {
    char name[GGML_MAX_NAME];
    const char *op;
    const char *type;
    int64_t ne[GGML_MAX_DIMS];
    uint64_t bytes;
};

#define PROFILE_NO_TENSOR SIZE_MAX

// Nodes that were given to a stream.
struct profile_part {
    uint64_t run;
    uint64_t uid;  // of the graph given: a part of the next run with the same has the same nodes
    size_t tensor; // of its first node
    int32_t backend;
    int32_t first; // number of its first node in the graph that was split
    int32_t n_nodes;
};

// What took the time from begin_ns to end_ns: struct ggml_sched_slice before pointers are known, as
// lists still grow.
struct profile_span {
    enum ggml_sched_slice_kind kind;
    int32_t backend, from; // stream; that a copy comes from, or -1
    int32_t node, n_nodes; // number of the first in the graph, or -1
    uint64_t run;
    size_t tensor; // into `tensors`, or PROFILE_NO_TENSOR
    uint64_t begin_ns, end_ns;
};

// Grows by doubling. Elements are only reached by index while it may grow.
struct profile_list {
    void *values;
    size_t n, capacity;
};

// How a stream records.
struct profile_stream {
    const struct ggml_extension_profile *extension; // NULL: it does not tell
    bool is_repeated; // the same stream stands before it among the scheduler's
};

// A recording under way. Parts of the last two runs tell whether nodes are described already.
struct sched_profile {
    struct profile_stream *streams;
    // Lists of elements that never move in number, as slices refer to them by it.
    struct profile_list parts;   // struct profile_part
    struct profile_list spans;   // struct profile_span
    struct profile_list tensors; // struct profile_tensor
    uint64_t begin_ns;           // of the recording: earlier slices are of something else
    uint64_t capacity;           // slices that a stream keeps until they are read
    uint64_t run;                // under way
    uint64_t lost;               // slices that there was no memory for, or that can't be
    size_t part;                 // number of the one under way, from 1; 0: none
    size_t first_part_of_last_run, first_part_of_run;
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
// Takes what the streams have recorded so far, for the recording or because a run is over.
void sched_profile_read(const struct sched_setup *setup, struct sched_runs *runs);
void sched_profile_collect(const struct sched_setup *setup, struct sched_runs *runs);
// Stops and forgets everything.
void sched_profile_drop(const struct sched_setup *setup, struct sched_runs *runs);

#endif
