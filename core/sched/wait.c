// SPDX-License-Identifier: MIT
// Waits of the calling thread for streams and frames.
#include "sched/report/profile.h"
#include "sched/sched.h"

// Nothing to do for a stream that was given no work since it was waited for last.
void sched_wait(struct ggml_backend_sched *sched, int32_t backend) {
    struct sched_queue *queue = &sched->queues[backend];
    if (!queue->busy) return;
    const uint64_t begin = sched_profile_clock(sched);
    // A stream has finished its work before it was freed.
    if (!queue->watch.ended) ggml_backend_synchronize(sched->setup.streams[backend].backend);
    if (begin) sched_profile_wait(sched, backend, begin);
    queue->busy = false;
    queue->done_run = sched->run;
}

// Waits for one event of a stream, whose later work may go on.
void sched_wait_event(struct ggml_backend_sched *sched, int32_t backend,
                      ggml_backend_event_t event) {
    const uint64_t begin = sched_profile_clock(sched);
    ggml_backend_event_synchronize(event);
    if (begin) sched_profile_wait(sched, backend, begin);
}

// The streams may have work from elsewhere too.
void sched_wait_all(struct ggml_backend_sched *sched) {
    for (int b = 0; b < sched->setup.n_streams; ++b) {
        sched->queues[b].busy = true;
        sched_wait(sched, b);
    }
}

// Waits until the stream has finished a run: by its event if it has some, else for all its work.
static void wait_for_run(struct ggml_backend_sched *sched, int32_t backend, uint64_t run) {
    struct sched_queue *queue = &sched->queues[backend];
    if (queue->done_run >= run) return;
    ggml_backend_event_t event = sched->setup.streams[backend].events[sched->cur_copy];
    if (event) {
        sched_wait_event(sched, backend, event);
        queue->done_run = run;
    } else {
        sched_wait(sched, backend);
    }
}

// Without a pipeline two frames alternate: streams may look at the last graph while the next is
// split.
struct tensor_pool *sched_next_frame(struct ggml_backend_sched *sched) {
    sched->cur_frame = sched->setup.pipeline_depth > 1 ? sched->cur_copy : !sched->cur_frame;
    for (int b = 0; b < sched->setup.n_streams; ++b) {
        wait_for_run(sched, b, sched_frame(sched)->run);
    }
    struct tensor_pool *pool = &sched->pools[sched->cur_frame];
    tensor_pool_clear(pool);
    return pool;
}
