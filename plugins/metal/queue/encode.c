// SPDX-License-Identifier: MIT
// Parts are taken in order, by whoever is free: the stream's thread encodes the first one, commits
// it, so that the device begins, and goes on with what nobody has taken. Without helpers, as where
// threads can't be started, it does all of it.
#include "queue/encode.h"

#include <signal.h>

#include "queue/stream.h"

static enum ggml_host_status encode_part(const struct metal_recording *recording, int first,
                                         mtl_id commands) {
    void *pool = mtl_api.pool_push();
    const enum ggml_host_status status = metal_recording_encode(
        recording, first, MIN(first + METAL_STEPS_PER_COMMIT, recording->n), commands);
    mtl_api.pool_pop(pool);
    return status;
}

// Takes part `part` and encodes it, with the mutex held before and after.
static void do_part(struct metal_encoders *e, int part) {
    const struct metal_recording *recording = e->recording;
    const int first = e->first + part * METAL_STEPS_PER_COMMIT;
    const mtl_id commands = e->parts[part].commands;
    e->n_busy++;
    pthread_mutex_unlock(&e->mutex);
    const enum ggml_host_status status = encode_part(recording, first, commands);
    pthread_mutex_lock(&e->mutex);
    e->n_busy--;
    e->parts[part].status = status;
    e->parts[part].is_done = true;
    pthread_cond_broadcast(&e->done);
}

// A helper: sleeps until parts are there to be taken, or the end.
static void *help(void *arg) {
    struct metal_encoders *e = arg;
    pthread_mutex_lock(&e->mutex);
    while (!e->ends) {
        if (e->recording && e->next < e->n_parts)
            do_part(e, e->next++);
        else
            pthread_cond_wait(&e->asked, &e->mutex);
    }
    pthread_mutex_unlock(&e->mutex);
    return NULL;
}

// Signals are left to the application's threads.
static void start(struct metal_encoders *e) {
    sigset_t all, before;
    if (e->is_started) return;
    pthread_mutex_init(&e->mutex, NULL);
    pthread_cond_init(&e->asked, NULL);
    pthread_cond_init(&e->done, NULL);
    e->is_started = true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (e->n_threads < METAL_HELPERS &&
           pthread_create(&e->threads[e->n_threads], NULL, help, e) == 0)
        e->n_threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void metal_encoders_end(struct metal_encoders *e) {
    if (!e->is_started) return;
    pthread_mutex_lock(&e->mutex);
    e->ends = true;
    pthread_cond_broadcast(&e->asked);
    pthread_mutex_unlock(&e->mutex);
    for (int i = 0; i < e->n_threads; ++i)
        pthread_join(e->threads[i], NULL);
    pthread_cond_destroy(&e->done);
    pthread_cond_destroy(&e->asked);
    pthread_mutex_destroy(&e->mutex);
    e->is_started = false;
}

// Command buffers for parts that begin with step `first`; n_parts: how many there are, after a
// failure too.
static enum ggml_host_status open_parts(struct metal_encoders *e, struct metal_stream *stream,
                                        const struct metal_recording *recording, int first) {
    e->n_parts = 0;
    for (int i = first; i < recording->n && e->n_parts < METAL_MAX_PARTS;
         i += METAL_STEPS_PER_COMMIT) {
        const mtl_id commands = metal_stream_begin(stream);
        if (!commands) return GGML_HOST_OUT_OF_MEMORY;
        e->parts[e->n_parts++] = (struct metal_part){commands, GGML_HOST_OK, false};
    }
    return GGML_HOST_OK;
}

// Waits for part i, or encodes it; meanwhile helpers take later ones.
static enum ggml_host_status get_part(struct metal_encoders *e, int i) {
    if (e->next == i) do_part(e, e->next++);
    while (!e->parts[i].is_done) {
        if (e->next < e->n_parts)
            do_part(e, e->next++);
        else
            pthread_cond_wait(&e->done, &e->mutex);
    }
    return e->parts[i].status;
}

// Encodes and commits the open parts in order. Nobody works on them afterwards.
static enum ggml_host_status run_parts(struct metal_encoders *e, struct metal_stream *stream,
                                       const struct metal_recording *recording, int first) {
    enum ggml_host_status status = GGML_HOST_OK;
    pthread_mutex_lock(&e->mutex);
    e->recording = recording;
    e->first = first;
    e->next = 0;
    pthread_cond_broadcast(&e->asked);
    for (int i = 0; i < e->n_parts && status == GGML_HOST_OK; ++i) {
        status = get_part(e, i);
        if (status != GGML_HOST_OK) continue;
        pthread_mutex_unlock(&e->mutex);
        metal_stream_commit_with(stream, e->parts[i].commands, recording->scratch);
        pthread_mutex_lock(&e->mutex);
    }
    // After a failure no part is begun any more, and those that were are waited for: the recording
    // is the caller's again.
    e->next = e->n_parts;
    while (e->n_busy > 0)
        pthread_cond_wait(&e->done, &e->mutex);
    e->recording = NULL;
    pthread_mutex_unlock(&e->mutex);
    return status;
}

// By the stream's thread alone.
static enum ggml_host_status queue_part(struct metal_stream *stream,
                                        const struct metal_recording *recording, int first) {
    const mtl_id commands = metal_stream_begin(stream);
    if (!commands) return GGML_HOST_OUT_OF_MEMORY;
    const enum ggml_host_status status = encode_part(recording, first, commands);
    if (status == GGML_HOST_OK)
        metal_stream_commit_with(stream, commands, recording->scratch);
    else
        ggml_sdk_fail(status, "metal: no command encoder");
    mtl_release(commands);
    return status;
}

enum ggml_host_status metal_encode(struct metal_encoders *e, struct metal_stream *stream,
                                   const struct metal_recording *recording) {
    enum ggml_host_status status = GGML_HOST_OK;
    const bool is_long = recording->n > (METAL_PARALLEL_PARTS - 1) * METAL_STEPS_PER_COMMIT;
    if (is_long) start(e);
    if (!is_long || e->n_threads == 0) {
        for (int i = 0; i < recording->n && status == GGML_HOST_OK; i += METAL_STEPS_PER_COMMIT)
            status = queue_part(stream, recording, i);
        return status;
    }
    // As many parts as there is room for, then the next ones.
    const int at_once = METAL_MAX_PARTS * METAL_STEPS_PER_COMMIT;
    for (int i = 0; i < recording->n && status == GGML_HOST_OK; i += at_once) {
        status = open_parts(e, stream, recording, i);
        if (status == GGML_HOST_OK) {
            status = run_parts(e, stream, recording, i);
            if (status != GGML_HOST_OK) ggml_sdk_fail(status, "metal: no command encoder");
        }
        for (int k = 0; k < e->n_parts; ++k)
            mtl_release(e->parts[k].commands);
    }
    return status;
}
