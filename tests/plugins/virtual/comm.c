// SPDX-License-Identifier: MIT
// Groups of streams (extension "ggml.comm"). For what concerns all ranks the streams meet, and the
// last one to arrive does the work for all; a message is copied by the sending stream, and again by
// the receiving one.
#include <stdatomic.h>
#include <stdio.h>

#include "internal.h"

struct ggml_comm_group {
    _Atomic int n_owners;
    atomic_bool has_failed;
    uint32_t n;
    struct message *first; // sent and not received, in order
    ggml_backend_t streams[];
};

static struct ggml_comm_group *group_share(struct ggml_comm_group *group) {
    atomic_fetch_add(&group->n_owners, 1);
    return group;
}

static void group_drop(struct ggml_comm_group *group) {
    if (atomic_fetch_sub(&group->n_owners, 1) == 1) ggml_aligned_free(group, 0);
}

static struct stream *stream_at(const struct ggml_comm_group *group, uint32_t rank) {
    return stream_of(group->streams[rank]);
}

static int32_t no_memory(void) {
    ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for work of a group");
    return GGML_HOST_OUT_OF_MEMORY;
}

static int32_t refuse(const char *what, uint32_t rank) {
    ggml_sdk_fail(GGML_HOST_INVALID_ARGUMENT, "%s %u", what, rank);
    return GGML_HOST_INVALID_ARGUMENT;
}

// Whether the group still works and the ranks' tensors are what they should be.
static int32_t check(const struct ggml_comm_group *group, uint32_t first, uint32_t n,
                     const struct ggml_tensor *const *tensors) {
    if (atomic_load(&group->has_failed)) {
        ggml_sdk_fail(GGML_HOST_FAILED, "a rank of the group has failed");
        return GGML_HOST_FAILED;
    }
    const int32_t status = ggml_sdk_comm_check_tensors(group->streams + first, n, tensors);
    for (uint32_t i = 0; i < n && status == GGML_HOST_OK; ++i) {
        if (memory_device(tensors[i]) != stream_at(group, first + i)->device)
            return GGML_HOST_UNSUPPORTED;
    }
    return status;
}

static struct job *new_job(const struct stream *stream, enum virtual_call call,
                           const struct ggml_tensor *tensor, struct hazard_range *ranges,
                           size_t n_ranges) {
    struct job *job = job_new();
    struct virtual_record record = {.call = call,
                                    .device = stream->device->index,
                                    .peer = -1,
                                    .stream = stream->number,
                                    .bytes = ggml_nbytes(tensor)};
    if (!job) return NULL;
    snprintf(record.text, sizeof(record.text), "%s", tensor->name);
    snprintf(job->hazard.name, sizeof(job->hazard.name), "%.40s", tensor->name);
    job->hazard.ranges = ranges;
    job->hazard.n_ranges = n_ranges;
    job->ticket = log_add(record);
    return job;
}

// --- what all ranks meet for ---------------------------------------------------------------------

struct share {
    struct meeting *meeting;
    struct job *job;
    char *in, *out;
    bool counts, has_arrived;
    struct hazard_range ranges[2];
};

struct meeting {
    struct ggml_comm_group *group;
    void (*act)(const struct meeting *meeting);
    enum ggml_type type;
    enum ggml_comm_reduction reduction;
    uint32_t root;
    size_t n_elements, n_bytes; // of a part
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    size_t n, n_arrived, n_left;
    bool is_done, has_failed;
    struct share shares[];
};

static void reduce(const struct meeting *meeting) {
    const void *parts[VIRTUAL_MAX_DEVICES];
    char *sum = meeting->shares[0].out;
    for (size_t i = 0; i < meeting->n; ++i)
        parts[i] = meeting->shares[i].counts ? meeting->shares[i].in : NULL;
    ggml_sdk_comm_combine(meeting->reduction, meeting->type, parts, meeting->n, 0,
                          meeting->n_elements, sum);
    for (size_t i = 1; i < meeting->n; ++i)
        memcpy(meeting->shares[i].out, sum, meeting->n_bytes);
}

static void spread(const struct meeting *meeting) {
    for (size_t i = 0; i < meeting->n; ++i) {
        if (i != meeting->root)
            memcpy(meeting->shares[i].out, meeting->shares[meeting->root].in, meeting->n_bytes);
    }
}

static void gather(const struct meeting *meeting) {
    for (size_t i = 0; i < meeting->n; ++i) {
        for (size_t k = 0; k < meeting->n; ++k) {
            memcpy(meeting->shares[i].out + k * meeting->n_bytes, meeting->shares[k].in,
                   meeting->n_bytes);
        }
    }
}

static enum ggml_status run_share(struct stream *stream, struct job *job) {
    struct meeting *meeting = job->of.share->meeting;
    memory_delay(stream->device, NULL, meeting->n_bytes);
    pthread_mutex_lock(&meeting->mutex);
    job->of.share->has_arrived = true;
    if (++meeting->n_arrived == meeting->n) {
        meeting->act(meeting);
        meeting->is_done = true;
        pthread_cond_broadcast(&meeting->changed);
    }
    while (!meeting->is_done && !meeting->has_failed)
        pthread_cond_wait(&meeting->changed, &meeting->mutex);
    const bool is_done = meeting->is_done;
    pthread_mutex_unlock(&meeting->mutex);
    return is_done ? GGML_STATUS_SUCCESS : GGML_STATUS_FAILED;
}

static void meeting_free(struct meeting *meeting) {
    pthread_cond_destroy(&meeting->changed);
    pthread_mutex_destroy(&meeting->mutex);
    group_drop(meeting->group);
    ggml_aligned_free(meeting, 0);
}

// Those who wait for a rank whose work never began are told.
static void release_share(struct job *job) {
    const struct share *share = job->of.share;
    struct meeting *meeting = share->meeting;
    pthread_mutex_lock(&meeting->mutex);
    if (!share->has_arrived) {
        meeting->has_failed = true;
        atomic_store(&meeting->group->has_failed, true);
        pthread_cond_broadcast(&meeting->changed);
    }
    const bool is_last = --meeting->n_left == 0;
    pthread_mutex_unlock(&meeting->mutex);
    if (is_last) meeting_free(meeting);
}

static struct meeting *meeting_new(struct ggml_comm_group *group,
                                   const struct ggml_tensor *const *parts,
                                   void (*act)(const struct meeting *meeting)) {
    const size_t size = sizeof(struct meeting) + group->n * sizeof(struct share);
    struct meeting *meeting = ggml_aligned_malloc(size);
    if (!meeting) return NULL;
    memset(meeting, 0, size);
    meeting->group = group_share(group);
    meeting->act = act;
    meeting->type = parts[0]->type;
    meeting->n_elements = (size_t)ggml_nelements(parts[0]);
    meeting->n_bytes = ggml_nbytes(parts[0]);
    meeting->n = meeting->n_left = group->n;
    pthread_mutex_init(&meeting->mutex, NULL);
    pthread_cond_init(&meeting->changed, NULL);
    for (uint32_t i = 0; i < group->n; ++i) {
        meeting->shares[i].meeting = meeting;
        meeting->shares[i].counts = true;
    }
    return meeting;
}

static bool set_share(struct share *share, struct stream *stream, enum virtual_call call,
                      const struct ggml_tensor *in, const struct ggml_tensor *out) {
    share->in = memory_resolve(NULL, in, 0, ggml_nbytes(in));
    share->out = memory_resolve(NULL, out, 0, ggml_nbytes(out));
    share->ranges[0] = (struct hazard_range){share->in, share->in + ggml_nbytes(in), false};
    share->ranges[1] = (struct hazard_range){share->out, share->out + ggml_nbytes(out), true};
    share->job = new_job(stream, call, in, share->ranges, 2);
    if (!share->job) return false;
    share->job->run = run_share;
    share->job->release = release_share;
    share->job->of.share = share;
    return true;
}

// Takes the meeting.
static int32_t hold(struct meeting *meeting, enum virtual_call call,
                    const struct ggml_tensor *const *parts, struct ggml_tensor *const *results) {
    struct ggml_comm_group *group = meeting->group;
    int32_t status = GGML_HOST_OK;
    uint32_t n = 0;
    while (n < group->n &&
           set_share(&meeting->shares[n], stream_at(group, n), call, parts[n], results[n]))
        ++n;
    if (n < group->n) status = no_memory();
    for (uint32_t i = 0; i < group->n && status == GGML_HOST_OK; ++i) {
        if (stream_gate(stream_at(group, i), GATE_COPY, meeting->shares[i].job) ==
            GGML_STATUS_SUCCESS)
            continue;
        atomic_store(&group->has_failed, true);
        status = GGML_HOST_FAILED;
    }
    // The last job that is queued may free the meeting at any time.
    const uint32_t n_ranks = group->n;
    for (uint32_t i = 0; i < n_ranks && status == GGML_HOST_OK; ++i)
        stream_queue(stream_at(group, i), meeting->shares[i].job);
    if (status == GGML_HOST_OK) return status;
    for (uint32_t i = 0; i < n; ++i) {
        log_end(meeting->shares[i].job->ticket, GGML_STATUS_FAILED);
        ggml_aligned_free(meeting->shares[i].job, sizeof(struct job));
    }
    meeting_free(meeting);
    return status;
}

static int32_t all_reduce(ggml_comm_group_t group, enum ggml_comm_reduction reduction,
                          struct ggml_tensor *const *parts, const uint8_t *counts) {
    const struct ggml_tensor *const *in = (const struct ggml_tensor *const *)parts;
    const int32_t status = check(group, 0, group->n, in);
    if (status != GGML_HOST_OK) return status;
    if (!ggml_sdk_comm_combines(reduction, parts[0]->type)) return GGML_HOST_UNSUPPORTED;
    struct meeting *meeting = meeting_new(group, in, reduce);
    if (!meeting) return no_memory();
    meeting->reduction = reduction;
    for (uint32_t i = 0; i < group->n && counts; ++i)
        meeting->shares[i].counts = counts[i] != 0;
    return hold(meeting, VIRTUAL_CALL_REDUCE, in, parts);
}

static int32_t broadcast(ggml_comm_group_t group, uint32_t root,
                         struct ggml_tensor *const *tensors) {
    if (root >= group->n) return refuse("the group has no rank", root);
    const struct ggml_tensor *const *in = (const struct ggml_tensor *const *)tensors;
    const int32_t status = check(group, 0, group->n, in);
    if (status != GGML_HOST_OK) return status;
    struct meeting *meeting = meeting_new(group, in, spread);
    if (!meeting) return no_memory();
    meeting->root = root;
    return hold(meeting, VIRTUAL_CALL_EXCHANGE, in, tensors);
}

static int32_t all_gather(ggml_comm_group_t group, const struct ggml_tensor *const *parts,
                          struct ggml_tensor *const *results) {
    int32_t status = check(group, 0, group->n, parts);
    if (status == GGML_HOST_OK)
        status = check(group, 0, group->n, (const struct ggml_tensor *const *)results);
    for (uint32_t i = 0; i < group->n && status == GGML_HOST_OK; ++i)
        status = ggml_sdk_comm_check_copy(parts[i], group->n, results[i]);
    if (status != GGML_HOST_OK) return status;
    struct meeting *meeting = meeting_new(group, parts, gather);
    return meeting ? hold(meeting, VIRTUAL_CALL_EXCHANGE, parts, results) : no_memory();
}

// --- messages ------------------------------------------------------------------------------------

struct message {
    struct message *next;
    struct ggml_comm_group *group;
    uint32_t from, to;
    struct ggml_tensor tensor; // as it was sent, without where it lies
    char *in, *out;
    struct hazard_range in_range, out_range;
    struct fence *fence;
    _Atomic int n_owners; // the sending job; the list, then the receiving job
    atomic_bool is_copied, is_received;
    char data[];
};

static void message_drop(struct message *message) {
    if (!message || atomic_fetch_sub(&message->n_owners, 1) > 1) return;
    fence_drop(message->fence);
    group_drop(message->group);
    ggml_aligned_free(message, 0);
}

static enum ggml_status run_send(struct stream *stream, struct job *job) {
    struct message *message = job->of.message;
    memory_delay(stream->device, NULL, ggml_nbytes(&message->tensor));
    memcpy(message->data, message->in, ggml_nbytes(&message->tensor));
    atomic_store(&message->is_copied, true);
    return GGML_STATUS_SUCCESS;
}

static void release_send(struct job *job) {
    struct message *message = job->of.message;
    if (!atomic_load(&message->is_copied)) atomic_store(&message->group->has_failed, true);
    fence_signal(message->fence);
    message_drop(message);
}

static enum ggml_status run_receive(struct stream *stream, struct job *job) {
    struct message *message = job->of.message;
    fence_wait(message->fence);
    if (!atomic_load(&message->is_copied)) return GGML_STATUS_FAILED;
    memory_delay(stream->device, NULL, ggml_nbytes(&message->tensor));
    memcpy(message->out, message->data, ggml_nbytes(&message->tensor));
    atomic_store(&message->is_received, true);
    return GGML_STATUS_SUCCESS;
}

static void release_receive(struct job *job) {
    struct message *message = job->of.message;
    if (!atomic_load(&message->is_received)) atomic_store(&message->group->has_failed, true);
    message_drop(message);
}

static struct message *message_new(struct ggml_comm_group *group, uint32_t from, uint32_t to,
                                   const struct ggml_tensor *tensor) {
    const size_t n_bytes = ggml_nbytes(tensor);
    struct message *message = ggml_aligned_malloc(sizeof(*message) + n_bytes);
    if (!message) return NULL;
    memset(message, 0, sizeof(*message));
    message->group = group_share(group);
    message->from = from;
    message->to = to;
    message->tensor = *tensor;
    message->tensor.buffer = NULL;
    message->tensor.view_src = NULL;
    message->tensor.data = message->data;
    message->in = memory_resolve(NULL, tensor, 0, n_bytes);
    message->in_range = (struct hazard_range){message->in, message->in + n_bytes, false};
    message->fence = fence_new();
    atomic_init(&message->n_owners, message->fence ? 2 : 1);
    if (message->fence) return message;
    message_drop(message);
    return NULL;
}

// Queues one end of a message; the job takes a share of it.
static int32_t queue_end(struct message *message, struct stream *stream, struct job *job) {
    if (!job) return no_memory();
    job->of.message = message;
    if (stream_gate(stream, GATE_COPY, job) != GGML_STATUS_SUCCESS) {
        log_end(job->ticket, GGML_STATUS_FAILED);
        ggml_aligned_free(job, sizeof(*job));
        atomic_store(&message->group->has_failed, true);
        return GGML_HOST_FAILED;
    }
    stream_queue(stream, job);
    return GGML_HOST_OK;
}

static int32_t send(ggml_comm_group_t group, uint32_t from, uint32_t to,
                    const struct ggml_tensor *tensor) {
    if (from >= group->n) return refuse("the group has no rank", from);
    if (to >= group->n || to == from) return refuse("nothing can be sent to rank", to);
    int32_t status = check(group, from, 1, &tensor);
    if (status != GGML_HOST_OK) return status;
    struct stream *stream = stream_at(group, from);
    struct message *message = message_new(group, from, to, tensor);
    if (!message) return no_memory();
    struct job *job = new_job(stream, VIRTUAL_CALL_EXCHANGE, tensor, &message->in_range, 1);
    if (job) {
        job->run = run_send;
        job->release = release_send;
    }
    status = queue_end(message, stream, job);
    if (status != GGML_HOST_OK) {
        message_drop(message);
        message_drop(message);
        return status;
    }
    struct message **last = &group->first;
    while (*last)
        last = &(*last)->next;
    *last = message;
    return GGML_HOST_OK;
}

static int32_t receive(ggml_comm_group_t group, uint32_t to, uint32_t from,
                       struct ggml_tensor *tensor) {
    if (to >= group->n) return refuse("the group has no rank", to);
    if (from >= group->n || from == to) return refuse("nothing is received from rank", from);
    const struct ggml_tensor *received = tensor;
    int32_t status = check(group, to, 1, &received);
    if (status != GGML_HOST_OK) return status;
    struct message **at = &group->first;
    while (*at && ((*at)->from != from || (*at)->to != to))
        at = &(*at)->next;
    struct message *message = *at;
    if (!message) return refuse("nothing was sent by rank", from);
    status = ggml_sdk_comm_check_copy(&message->tensor, 1, tensor);
    if (status != GGML_HOST_OK) return status;
    message->out = memory_resolve(NULL, tensor, 0, ggml_nbytes(tensor));
    message->out_range =
        (struct hazard_range){message->out, message->out + ggml_nbytes(tensor), true};
    struct stream *stream = stream_at(group, to);
    struct job *job = new_job(stream, VIRTUAL_CALL_EXCHANGE, tensor, &message->out_range, 1);
    if (job) {
        job->run = run_receive;
        job->release = release_receive;
    }
    *at = message->next;
    status = queue_end(message, stream, job);
    if (status == GGML_HOST_OK) return status;
    message->next = *at;
    *at = message;
    return status;
}

// --- groups --------------------------------------------------------------------------------------

static int32_t group_new(const struct ggml_comm_ranks *ranks, ggml_comm_group_t *out_group) {
    const struct stream *first =
        ranks && ranks->streams && ranks->n_streams > 0 ? stream_of(ranks->streams[0]) : NULL;
    const int32_t status = ggml_sdk_comm_check_ranks(ranks, first ? first->device->base.reg : NULL);
    if (status != GGML_HOST_OK) return status;
    if (ranks->n_ranks > VIRTUAL_MAX_DEVICES) return GGML_HOST_UNSUPPORTED;
    for (uint32_t i = 0; i < ranks->n_ranks; ++i) {
        const struct stream *stream = stream_of(ranks->streams[i]);
        if (!stream->base.table->synchronize || !device_config(stream->device).communicator)
            return GGML_HOST_UNSUPPORTED;
    }
    const size_t size = ranks->n_ranks * sizeof(ggml_backend_t);
    struct ggml_comm_group *group = ggml_aligned_malloc(sizeof(*group) + size);
    if (!group) return no_memory();
    memset(group, 0, sizeof(*group));
    atomic_init(&group->n_owners, 1);
    group->n = ranks->n_ranks;
    memcpy(group->streams, ranks->streams, size);
    *out_group = group;
    return GGML_HOST_OK;
}

static void group_free(ggml_comm_group_t group) {
    if (!group) return;
    while (group->first) {
        struct message *message = group->first;
        group->first = message->next;
        message_drop(message);
    }
    group_drop(group);
}

const struct ggml_extension_comm comm_extension = {
    .size = sizeof(comm_extension),
    .revision = GGML_EXTENSION_COMM_REVISION,
    .group_new = group_new,
    .group_free = group_free,
    .all_reduce = all_reduce,
    .broadcast = broadcast,
    .all_gather = all_gather,
    .send = send,
    .receive = receive,
};
