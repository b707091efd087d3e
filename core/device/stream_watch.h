// SPDX-License-Identifier: MIT
// Notifies holders of a stream that it has been freed, so that objects and streams can be freed in
// any order.
#ifndef GGML_DEVICE_STREAM_WATCH_H
#define GGML_DEVICE_STREAM_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>

#include "ggml-backend.h"

// Owned by the watcher; must not move while it is started.
struct stream_watch {
    struct stream_watch *next, **previous; // in the list of all; previous NULL: not started
    ggml_backend_t stream;
    atomic_bool ended; // the stream has been freed: it must not be touched any more
};

// Watches a live stream until stream_watch_stop(). [any-thread]
void stream_watch_start(struct stream_watch *out_watch, ggml_backend_t stream);
// Nothing if the watch was never started. [any-thread]
void stream_watch_stop(struct stream_watch *watch);
// Marks every watch of the stream; called before the stream is freed. [any-thread]
void stream_watch_end(ggml_backend_t stream);

#endif
