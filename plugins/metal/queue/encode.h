// SPDX-License-Identifier: MIT
// Encodes a recording into command buffers, long ones by several threads: each command buffer is
// encoded by one of them, and all are committed in order by the stream's own.
#ifndef METAL_QUEUE_ENCODE_H
#define METAL_QUEUE_ENCODE_H

#include <pthread.h>

#include "queue/recording.h"

enum {
    METAL_HELPERS = 2, // threads of a stream beside its own; started for its first long graph
    METAL_PARALLEL_PARTS = 3, // command buffers of a graph from which on they are asked
    METAL_MAX_PARTS = 32,     // command buffers that are open at a time
};

struct metal_part {
    mtl_id commands; // a reference
    enum ggml_host_status status;
    bool is_done;
};

struct metal_stream;

// What the stream's thread and its helpers share. Zero-initialised: nobody was asked yet.
struct metal_encoders {
    bool is_started; // the rest is initialised
    int n_threads;
    pthread_t threads[METAL_HELPERS];
    pthread_mutex_t mutex; // of what follows
    pthread_cond_t asked, done;
    bool ends;
    const struct metal_recording *recording; // NULL: there is nothing to do
    int first, n_parts, next, n_busy;        // step that part 0 begins with; part to be taken next
    struct metal_part parts[METAL_MAX_PARTS];
};

// Queues the recording on the stream. What is not committed after a failure is never run. A pool is
// open. [stream]
enum ggml_host_status metal_encode(struct metal_encoders *encoders, struct metal_stream *stream,
                                   const struct metal_recording *recording);
// Ends the helpers. Not in a child of the process, which has none of them. [stream]
void metal_encoders_end(struct metal_encoders *encoders);

#endif
