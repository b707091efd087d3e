// SPDX-License-Identifier: MIT
// Watches are linked into each other, so that watching allocates nothing and stopping is O(1).
#include "device/stream_watch.h"

#include <pthread.h>
#include <stddef.h>

#include "base/fork_lock.h"

// One list for all streams: there are few watches, and streams are freed rarely.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORK_LOCK(lock);
static struct stream_watch *watches;

// [any-thread]; the watch must not move while it is in the list.
void stream_watch_start(struct stream_watch *out_watch, ggml_backend_t stream) {
    out_watch->stream = stream;
    atomic_store(&out_watch->ended, false);
    pthread_mutex_lock(&lock);
    out_watch->next = watches;
    out_watch->previous = &watches;
    if (watches != NULL) watches->previous = &out_watch->next;
    watches = out_watch;
    pthread_mutex_unlock(&lock);
}

void stream_watch_stop(struct stream_watch *watch) {
    if (watch->previous == NULL) return;
    pthread_mutex_lock(&lock);
    *watch->previous = watch->next;
    if (watch->next != NULL) watch->next->previous = watch->previous;
    pthread_mutex_unlock(&lock);
    watch->previous = NULL;
}

// Streams are compared by address: called before the memory is freed.
void stream_watch_end(ggml_backend_t stream) {
    pthread_mutex_lock(&lock);
    for (struct stream_watch *watch = watches; watch != NULL; watch = watch->next) {
        if (watch->stream == stream) atomic_store(&watch->ended, true);
    }
    pthread_mutex_unlock(&lock);
}
