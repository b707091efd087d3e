// SPDX-License-Identifier: MIT
// Running a graph: the results of passes that it reads, and the one state that it writes. Nothing
// here knows the scheduler itself.
#ifndef GGML_SCHED_RUN_H
#define GGML_SCHED_RUN_H

#include "device/stream_watch.h"
#include "sched/pass/copies.h"
#include "sched/pass/subgraphs.h"

struct ggml_sched_profile;

// What the host knows of the work of a stream.
struct sched_queue {
    bool busy;                     // may have queued work
    uint64_t done_run;             // runs up to this one are finished
    ggml_backend_event_t recorded; // the last of its events that was recorded, or NULL
    struct stream_watch watch;     // the application may free the stream first
};

// What streams may still look at after a run was queued, beside the tensors of copies.
struct sched_frame {
    struct sched_parts parts;
    uint64_t run; // the last that used it
};

// The state of all runs, which lives as long as the scheduler.
struct sched_runs {
    struct sched_queue *queues; // by stream
    bool *uses; // [pool][stream]: work that was queued on the stream may still use this memory
    struct sched_frame frames[SCHED_FRAMES];
    struct tensor_pool pools[SCHED_FRAMES]; // of copies, by frame
    int frame;                              // of the last graph that was split
    int slot;                               // of its pipeline copies
    int next_slot;                          // of those of the next
    uint64_t run;                           // number of the last run that was queued
    struct ggml_sched_profile *profile;     // NULL: no times are recorded
};

// What the application wants to be called for while a graph runs.
struct sched_callbacks {
    ggml_backend_sched_eval_callback eval;
    void *eval_data;
    ggml_backend_sched_copy_callback copy;
    void *copy_data;
};

// An allocated graph. Running it changes nothing of this.
struct sched_work {
    const struct sched_setup *setup;
    const struct sched_graph *graph;
    const struct sched_placement *placement;
    const struct sched_partition *partition;
    const struct sched_copies *copies;
    const struct ggml_graph *parts; // by split
    struct ggml_cgraph *source;     // the application's graph
    const struct sched_callbacks *callbacks;
};

// Queues all splits, in their order: O(splits, copies and waits). After a failure, which a message
// tells, nothing is left running.
enum ggml_status sched_run(const struct sched_work *work, struct sched_runs *runs);

// Which streams have work that may still use the memory of this one.
static inline bool *sched_users(const struct sched_setup *setup, const struct sched_runs *runs,
                                int32_t backend) {
    return runs->uses + (size_t)setup->streams[backend].pool * (size_t)setup->n_streams;
}

// Stream in whose memory the value lies.
static inline int32_t sched_owner(const struct sched_work *work, int32_t value) {
    return work->placement->placed[work->graph->values[value].root].backend;
}

// Waits for a stream, or for all.
void sched_wait(const struct sched_setup *setup, struct sched_runs *runs, int32_t backend);
void sched_wait_all(const struct sched_setup *setup, struct sched_runs *runs);
// Waits for all streams that may still use the memory of this one.
void sched_wait_for_users(const struct sched_setup *setup, struct sched_runs *runs,
                          int32_t backend);
// In a pipeline, waits for the last run of the frame.
void sched_wait_for_frame(const struct sched_setup *setup, struct sched_runs *runs);
// Waits for an event that the stream recorded.
void sched_wait_event(struct sched_runs *runs, int32_t backend, ggml_backend_event_t event);
// Takes the next frame, when nothing looks at it any more. Returns the empty pool of its copies.
struct tensor_pool *sched_next_frame(const struct sched_setup *setup, struct sched_runs *runs);

// The frame of the last graph.
static inline struct sched_frame *sched_frame(struct sched_runs *runs) {
    return &runs->frames[runs->frame];
}

// Expert-only copies: see expert.c. `known` is kept from one copy to the next of a run.
struct sched_experts {
    int32_t ids;   // value that `used` was read from, or -1
    int64_t count; // of experts
    uint8_t *used; // by expert
    int32_t used_capacity;
};
// Whether only some experts of the input have to be copied.
bool sched_is_expert_copy(const struct sched_graph *graph, const struct sched_copy *copy);
// Queues the copy of the experts that are used; false with a message.
bool sched_copy_experts(const struct sched_work *work, struct sched_runs *runs, int32_t copy,
                        struct sched_experts *known);

#endif
