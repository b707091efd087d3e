// SPDX-License-Identifier: MIT
// Waits of the calling thread for streams and frames.
#include "sched/record/record.h"
#include "sched/run.h"

// Nothing to do for a stream that was given no work since it was waited for last.
void sched_wait(const struct sched_setup *setup, struct sched_runs *runs, int32_t backend) {
    struct sched_queue *queue = &runs->queues[backend];
    if (!queue->busy) return;
    const uint64_t begin = sched_profile_clock(runs);
    // A stream has finished its work before it was freed.
    if (!queue->watch.ended) ggml_backend_synchronize(setup->streams[backend].backend);
    if (begin) sched_profile_wait(runs->profile, backend, begin);
    queue->busy = false;
    queue->done_run = runs->run;
    for (int p = 0; p < setup->n_pools; ++p) {
        runs->uses[p * setup->n_streams + backend] = false;
    }
}

void sched_wait_for_users(const struct sched_setup *setup, struct sched_runs *runs,
                          int32_t backend) {
    for (int b = 0; b < setup->n_streams; ++b) {
        if (sched_users(setup, runs, backend)[b]) sched_wait(setup, runs, b);
    }
}

// Waits for one event of a stream, whose later work may go on.
void sched_wait_event(struct sched_runs *runs, int32_t backend, ggml_backend_event_t event) {
    const uint64_t begin = sched_profile_clock(runs);
    ggml_backend_event_synchronize(event);
    if (begin) sched_profile_wait(runs->profile, backend, begin);
}

// The streams may have work from elsewhere too.
void sched_wait_all(const struct sched_setup *setup, struct sched_runs *runs) {
    for (int b = 0; b < setup->n_streams; ++b) {
        runs->queues[b].busy = true;
        sched_wait(setup, runs, b);
    }
}

// Waits until the stream has finished a run: by its event if it has some, else for all its work.
static void wait_for_run(const struct sched_setup *setup, struct sched_runs *runs, int32_t backend,
                         uint64_t run) {
    struct sched_queue *queue = &runs->queues[backend];
    if (queue->done_run >= run) return;
    ggml_backend_event_t event = setup->streams[backend].events[runs->slot];
    if (event) {
        sched_wait_event(runs, backend, event);
        queue->done_run = run;
    } else {
        sched_wait(setup, runs, backend);
    }
}

// A graph that is computed again without being split has its copies in the same places.
void sched_wait_for_frame(const struct sched_setup *setup, struct sched_runs *runs) {
    for (int b = 0; b < setup->n_streams && setup->pipeline_depth > 1; ++b) {
        wait_for_run(setup, runs, b, sched_frame(runs)->run);
    }
}

// Without a pipeline two frames alternate: streams may look at the last graph while the next is
// split.
struct tensor_pool *sched_next_frame(const struct sched_setup *setup, struct sched_runs *runs) {
    runs->frame = setup->pipeline_depth > 1 ? runs->slot : !runs->frame;
    for (int b = 0; b < setup->n_streams; ++b) {
        wait_for_run(setup, runs, b, sched_frame(runs)->run);
    }
    struct tensor_pool *pool = &runs->pools[runs->frame];
    tensor_pool_clear(pool);
    return pool;
}
