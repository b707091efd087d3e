// SPDX-License-Identifier: MIT
// A stream: a queue of jobs and the thread that works through it.
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>

#include "internal.h"
#include "runtime/device.h"
#include "runtime/stream.h"

static const char *stream_name(ggml_backend_t backend) {
    return ((struct stream *)backend->context)->name;
}

struct stream *stream_of(ggml_backend_t backend) {
    return backend && backend->table->get_name == stream_name ? backend->context : NULL;
}

struct job *job_new(void) {
    struct job *job = ggml_aligned_malloc(sizeof(*job));
    if (!job) return NULL;
    memset(job, 0, sizeof(*job));
    job->gate = GATE_COUNT;
    return job;
}

static void run_job(struct stream *stream, struct job *job) {
    enum ggml_status status = GGML_STATUS_SUCCESS;
    log_begin(job->ticket);
    hazard_start(&job->hazard);
    if (job->gate != GATE_COUNT) status = device_gate(stream->device, job->gate);
    if (status == GGML_STATUS_SUCCESS) status = job->run(stream, job);
    hazard_done(&job->hazard);
    log_end(job->ticket, status);
    if (job->release) job->release(job);
    ggml_aligned_free(job, sizeof(*job));
    if (status == GGML_STATUS_SUCCESS) return;
    pthread_mutex_lock(&stream->mutex);
    stream->status = status;
    pthread_mutex_unlock(&stream->mutex);
}

static void *work(void *context) {
    struct stream *stream = context;
#ifdef __linux__
    pthread_setname_np(pthread_self(), "ggml-virtual");
#endif
    pthread_mutex_lock(&stream->mutex);
    for (;;) {
        stream->is_busy = false;
        pthread_cond_broadcast(&stream->changed);
        while (!stream->first && !stream->ends) {
            pthread_cond_wait(&stream->changed, &stream->mutex);
        }
        struct job *job = stream->first;
        if (!job) break;
        stream->first = job->next;
        if (!stream->first) stream->last = NULL;
        stream->is_busy = true;
        pthread_mutex_unlock(&stream->mutex);
        run_job(stream, job);
        pthread_mutex_lock(&stream->mutex);
    }
    pthread_mutex_unlock(&stream->mutex);
    return NULL;
}

void stream_queue(struct stream *stream, struct job *job) {
    job->hazard.stream = stream;
    job->hazard.device = stream->device->index;
    hazard_queue(&job->hazard);
    pthread_mutex_lock(&stream->mutex);
    if (stream->last)
        stream->last->next = job;
    else
        stream->first = job;
    stream->last = job;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->mutex);
    if (!stream->base.table->synchronize) stream_wait(stream);
}

void stream_wait(struct stream *stream) {
    pthread_mutex_lock(&stream->mutex);
    while (stream->first || stream->is_busy)
        pthread_cond_wait(&stream->changed, &stream->mutex);
    pthread_mutex_unlock(&stream->mutex);
}

static enum ggml_status run_wait(struct stream *stream, struct job *job) {
    (void)stream;
    fence_wait(job->of.fence);
    return GGML_STATUS_SUCCESS;
}

static void release_fence(struct job *job) {
    fence_drop(job->of.fence);
}

bool stream_wait_for(struct stream *stream, struct fence *fence) {
    struct job *job = job_new();
    if (!job) {
        fence_wait(fence);
        fence_drop(fence);
        return false;
    }
    job->run = run_wait;
    job->release = release_fence;
    job->of.fence = fence;
    job->ticket = log_add((struct virtual_record){.call = VIRTUAL_CALL_WAIT,
                                                  .device = stream->device->index,
                                                  .peer = -1,
                                                  .stream = stream->number});
    stream_queue(stream, job);
    return true;
}

enum ggml_status stream_gate(struct stream *stream, enum gate gate, struct job *job) {
    const bool late = stream->base.table->synchronize && device_config(stream->device).fail_late;
    if (!late) return device_gate(stream->device, gate);
    job->gate = gate;
    return GGML_STATUS_SUCCESS;
}

void stream_fail_late(struct stream *stream) {
    pthread_mutex_lock(&stream->device->mutex);
    const bool lost = stream->device->is_lost;
    pthread_mutex_unlock(&stream->device->mutex);
    ggml_sdk_fail(lost ? GGML_HOST_DEVICE_LOST : GGML_HOST_FAILED, "%s: %s", stream->device->name,
                  lost ? "the device is lost" : "queued work failed");
}

static int32_t stream_synchronize(ggml_backend_t backend) {
    struct stream *stream = backend->context;
    const uint64_t ticket = log_add((struct virtual_record){.call = VIRTUAL_CALL_SYNCHRONIZE,
                                                            .device = stream->device->index,
                                                            .peer = -1,
                                                            .stream = stream->number});
    log_begin(ticket);
    stream_wait(stream);
    pthread_mutex_lock(&stream->mutex);
    const enum ggml_status status = stream->status;
    stream->status = GGML_STATUS_SUCCESS;
    pthread_mutex_unlock(&stream->mutex);
    log_end(ticket, status);
    if (status != GGML_STATUS_SUCCESS) stream_fail_late(stream);
    return ggml_entry_status(status);
}

static int32_t stream_optimize(ggml_backend_t backend, struct ggml_graph *graph) {
    const struct stream *stream = backend->context;
    (void)graph;
    log_once(VIRTUAL_CALL_OPTIMIZE, stream->device->index, stream->number, 0, "");
    return GGML_HOST_OK;
}

static void stream_free(ggml_backend_t backend) {
    struct stream *stream = backend->context;
    pthread_mutex_lock(&stream->mutex);
    stream->ends = true;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->mutex);
    pthread_join(stream->worker, NULL);
    log_once(VIRTUAL_CALL_STREAM_FREE, stream->device->index, stream->number, 0, "");
    stream->cpu->table->free(stream->cpu);
    pthread_cond_destroy(&stream->changed);
    pthread_mutex_destroy(&stream->mutex);
    ggml_aligned_free(stream, sizeof(*stream));
}

#define STREAM_GUID                                                                                \
    {                                                                                              \
        0x8d, 0x1f, 0x02, 0x5c, 0x61, 0x9a, 0x4e, 0x37, 0xb2, 0x44, 0x90, 0x0e, 0x7b, 0xc3, 0x5a,  \
            0xd6                                                                                   \
    }

static const struct ggml_stream_table stream_table = {
    .size = sizeof(struct ggml_stream_table),
    .guid = STREAM_GUID,
    .get_name = stream_name,
    .free = stream_free,
    .set_tensor_async = stream_set_async,
    .get_tensor_async = stream_get_async,
    .set_tensor_2d_async = stream_set_2d_async,
    .get_tensor_2d_async = stream_get_2d_async,
    .cpy_tensor_async = stream_copy_async,
    .synchronize = stream_synchronize,
    .graph_compute = stream_graph_compute,
    .event_record = stream_event_record,
    .event_wait = stream_event_wait,
    .graph_optimize = stream_optimize,
};

static const struct ggml_stream_table waiting_table = {
    .size = sizeof(struct ggml_stream_table),
    .guid = STREAM_GUID,
    .get_name = stream_name,
    .free = stream_free,
    .graph_compute = stream_graph_compute,
    .event_record = stream_event_record,
    .event_wait = stream_event_wait,
    .graph_optimize = stream_optimize,
};

ggml_backend_t stream_new(struct virtual_device *device) {
    static _Atomic uint32_t n_streams;
    struct stream *stream = ggml_aligned_malloc(sizeof(*stream));
    ggml_backend_dev_t cpu = cpu_reg()->table->get_device(cpu_reg(), 0);
    if (!stream) return NULL;
    memset(stream, 0, sizeof(*stream));
    stream->device = device;
    stream->number = atomic_fetch_add(&n_streams, 1) + 1;
    snprintf(stream->name, sizeof(stream->name), "%s", device->name);
    stream->base = (struct ggml_backend){
        .table = device_config(device).async ? &stream_table : &waiting_table,
        .device = &device->base,
        .context = stream,
    };
    stream->cpu = cpu_stream_new(cpu);
    if (!stream->cpu) goto fail;
    cpu_stream_set_n_threads(stream->cpu, 1);
    pthread_mutex_init(&stream->mutex, NULL);
    pthread_cond_init(&stream->changed, NULL);
    if (pthread_create(&stream->worker, NULL, work, stream) != 0) goto fail;
    log_once(VIRTUAL_CALL_STREAM_NEW, device->index, stream->number, 0, "");
    return &stream->base;
fail:
    ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory or thread for a stream", device->name);
    if (stream->cpu) stream->cpu->table->free(stream->cpu);
    ggml_aligned_free(stream, sizeof(*stream));
    return NULL;
}
