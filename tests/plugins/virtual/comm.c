// SPDX-License-Identifier: MIT
// All-reduce: the streams meet, the last one to arrive sums for all, in the order of the devices.
#include <stdio.h>

#include "internal.h"

struct comm {
    size_t n;
    ggml_backend_t backends[];
};

struct share {
    char *data;
    bool counts; // false: taken as zeros
};

struct reduction {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum ggml_type type;
    size_t n_elements;
    size_t n, n_arrived, n_left;
    bool is_done;
    struct share shares[];
};

void *comm_init(ggml_backend_t *backends, size_t n_backends) {
    for (size_t i = 0; i < n_backends; ++i) {
        const struct stream *stream = stream_of(backends[i]);
        if (!stream || !stream->base.table->synchronize) return NULL;
        if (!device_config(stream->device).communicator) return NULL;
    }
    struct comm *comm = ggml_aligned_malloc(sizeof(*comm) + n_backends * sizeof(comm->backends[0]));
    if (!comm) return NULL;
    comm->n = n_backends;
    memcpy(comm->backends, backends, n_backends * sizeof(comm->backends[0]));
    return comm;
}

void comm_free(void *comm) {
    ggml_aligned_free(comm, 0);
}

static float load(const struct reduction *reduction, const char *data, size_t i) {
    if (reduction->type == GGML_TYPE_F32) return ((const float *)(const void *)data)[i];
    return ggml_compute_fp16_to_fp32(((const ggml_fp16_t *)(const void *)data)[i]);
}

static void store(const struct reduction *reduction, char *data, size_t i, float value) {
    if (reduction->type == GGML_TYPE_F32) {
        ((float *)(void *)data)[i] = value;
    } else {
        ((ggml_fp16_t *)(void *)data)[i] = ggml_compute_fp32_to_fp16(value);
    }
}

static void sum(const struct reduction *reduction) {
    for (size_t i = 0; i < reduction->n_elements; ++i) {
        float value = 0.0f;
        for (size_t k = 0; k < reduction->n; ++k) {
            if (reduction->shares[k].counts) value += load(reduction, reduction->shares[k].data, i);
        }
        for (size_t k = 0; k < reduction->n; ++k)
            store(reduction, reduction->shares[k].data, i, value);
    }
}

static enum ggml_status run_share(struct stream *stream, struct job *job) {
    struct reduction *reduction = job->of.share.reduction;
    memory_delay(stream->device, NULL, reduction->n_elements * ggml_type_size(reduction->type));
    pthread_mutex_lock(&reduction->mutex);
    if (++reduction->n_arrived == reduction->n) {
        sum(reduction);
        reduction->is_done = true;
        pthread_cond_broadcast(&reduction->changed);
    }
    while (!reduction->is_done)
        pthread_cond_wait(&reduction->changed, &reduction->mutex);
    pthread_mutex_unlock(&reduction->mutex);
    return GGML_STATUS_SUCCESS;
}

static void reduction_drop(struct reduction *reduction, size_t n) {
    pthread_mutex_lock(&reduction->mutex);
    const bool last = (reduction->n_left -= n) == 0;
    pthread_mutex_unlock(&reduction->mutex);
    if (!last) return;
    pthread_cond_destroy(&reduction->changed);
    pthread_mutex_destroy(&reduction->mutex);
    ggml_aligned_free(reduction, 0);
}

static void release_share(struct job *job) {
    reduction_drop(job->of.share.reduction, 1);
}

static bool is_reducible(const struct comm *comm, struct ggml_tensor **tensors) {
    const enum ggml_type type = tensors[0]->type;
    if (type != GGML_TYPE_F32 && type != GGML_TYPE_F16) return false;
    for (size_t i = 0; i < comm->n; ++i) {
        const struct stream *stream = stream_of(comm->backends[i]);
        if (memory_device(tensors[i]) != stream->device || tensors[i]->type != type) return false;
        if (!ggml_is_contiguous(tensors[i])) return false;
        if (ggml_nelements(tensors[i]) != ggml_nelements(tensors[0])) return false;
    }
    return true;
}

static struct reduction *reduction_new(const struct comm *comm, struct ggml_tensor **tensors) {
    struct reduction *reduction =
        ggml_aligned_malloc(sizeof(*reduction) + comm->n * sizeof(reduction->shares[0]));
    if (!reduction) return NULL;
    *reduction = (struct reduction){.type = tensors[0]->type,
                                    .n_elements = (size_t)ggml_nelements(tensors[0]),
                                    .n = comm->n,
                                    .n_left = comm->n};
    pthread_mutex_init(&reduction->mutex, NULL);
    pthread_cond_init(&reduction->changed, NULL);
    for (size_t i = 0; i < comm->n; ++i) {
        reduction->shares[i] =
            (struct share){memory_resolve(NULL, tensors[i], 0, ggml_nbytes(tensors[i])),
                           (tensors[i]->flags & GGML_TENSOR_FLAG_COMPUTE) != 0};
    }
    return reduction;
}

static void queue_share(struct stream *stream, struct job *job, struct reduction *reduction,
                        const struct ggml_tensor *tensor) {
    struct virtual_record record = {.call = VIRTUAL_CALL_REDUCE,
                                    .device = stream->device->index,
                                    .peer = -1,
                                    .stream = stream->number,
                                    .bytes = ggml_nbytes(tensor)};
    snprintf(record.text, sizeof(record.text), "%s", tensor->name);
    job->run = run_share;
    job->release = release_share;
    job->of.share.reduction = reduction;
    job->ticket = log_add(record);
    stream_queue(stream, job);
}

bool comm_allreduce_tensor(void *handle, struct ggml_tensor **tensors) {
    const struct comm *comm = handle;
    struct job *jobs = NULL; // linked by next
    size_t n_jobs = 0;
    if (!is_reducible(comm, tensors)) return false;
    for (; n_jobs < comm->n; ++n_jobs) {
        struct job *job = job_new();
        if (!job) break;
        job->next = jobs;
        jobs = job;
    }
    struct reduction *reduction = n_jobs == comm->n ? reduction_new(comm, tensors) : NULL;
    for (size_t i = 0; i < n_jobs; ++i) {
        struct job *job = jobs;
        jobs = job->next;
        job->next = NULL;
        if (reduction)
            queue_share(stream_of(comm->backends[i]), job, reduction, tensors[i]);
        else
            ggml_aligned_free(job, sizeof(*job));
    }
    return reduction != NULL;
}
