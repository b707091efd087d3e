// SPDX-License-Identifier: MIT
// Waits of the calling thread for streams and frames.
#include "sched/profile.h"
#include "sched/sched.h"

void sched_wait(struct ggml_backend_sched *sched, int32_t backend) {
    struct sched_stream *stream = &sched->streams[backend];
    if (!stream->busy) return;
    const uint64_t begin = sched_profile_clock(sched);
    // A stream has finished its work before it was freed.
    if (!stream->watch.ended) ggml_backend_synchronize(stream->backend);
    if (UNLIKELY(begin)) sched_profile_wait(sched, backend, begin);
    stream->busy = false;
    stream->done_run = sched->run;
}

void sched_wait_event(struct ggml_backend_sched *sched, int32_t backend,
                      ggml_backend_event_t event) {
    const uint64_t begin = sched_profile_clock(sched);
    ggml_backend_event_synchronize(event);
    if (UNLIKELY(begin)) sched_profile_wait(sched, backend, begin);
}

// The streams may have work from elsewhere too.
void sched_wait_all(struct ggml_backend_sched *sched) {
    for (int b = 0; b < sched->n_backends; ++b) {
        sched->streams[b].busy = true;
        sched_wait(sched, b);
    }
}

static void wait_for_run(struct ggml_backend_sched *sched, int32_t backend, uint64_t run) {
    struct sched_stream *stream = &sched->streams[backend];
    if (stream->done_run >= run) return;
    ggml_backend_event_t event = stream->events[sched->cur_copy];
    if (event) {
        sched_wait_event(sched, backend, event);
        stream->done_run = run;
    } else {
        sched_wait(sched, backend);
    }
}

void sched_next_frame(struct ggml_backend_sched *sched) {
    sched->cur_frame = sched->pipeline_depth > 1 ? sched->cur_copy : !sched->cur_frame;
    struct sched_frame *frame = sched_frame(sched);
    for (int b = 0; b < sched->n_backends; ++b) {
        wait_for_run(sched, b, frame->run);
    }
    tensor_pool_clear(&frame->pool);
}
