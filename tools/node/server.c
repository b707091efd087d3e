// SPDX-License-Identifier: MIT
// Messages of the program, put into queues; a thread for each queue that is used.
#define _GNU_SOURCE
#include "server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void server_init(struct server *server) {
    memset(server, 0, sizeof(*server));
    server->files = -1;
    pthread_mutex_init(&server->lock, NULL);
    link_cond_init(&server->progress);
    pthread_cond_init(&server->ended, NULL);
}

// --- queues --------------------------------------------------------------------------------------

static void free_job(struct job *job) {
    free(job->bytes);
    free(job);
}

static bool has_job(void *context) {
    const struct queue *queue = context;
    return queue->first || queue->server->ends;
}

// Waits for the queue's next job; NULL at the end.
static struct job *next_job(struct queue *queue) {
    struct server *server = queue->server;
    const struct link_waiting waiting = {&server->lock, &queue->filled, has_job, queue};
    pthread_mutex_lock(&server->lock);
    link_await(server->link, &waiting);
    struct job *job = server->ends ? NULL : queue->first;
    queue->works = job != NULL;
    if (job) queue->first = job->next;
    if (!queue->first) queue->end = &queue->first;
    while (job && queue->index != 0 && server->queues[0].n_done < job->after && !server->ends)
        pthread_cond_wait(&server->progress, &server->lock);
    pthread_mutex_unlock(&server->lock);
    return job;
}

// The thread of a queue: one job after the other, in the order in which they came.
static void *run(void *context) {
    struct queue *queue = context;
    struct server *server = queue->server;
    struct job *job;
    while ((job = next_job(queue)) != NULL) {
        work_do(queue, job);
        pthread_mutex_lock(&server->lock);
        queue->last_done = job->message.id;
        queue->works = false;
        ++queue->n_done;
        pthread_cond_broadcast(&server->progress);
        pthread_mutex_unlock(&server->lock);
        free_job(job);
    }
    return NULL;
}

// Under the lock.
static bool start(struct server *server, uint32_t index) {
    struct queue *queue = &server->queues[index];
    if (queue->runs) return true;
    queue->server = server;
    queue->index = index;
    queue->first = NULL;
    queue->end = &queue->first;
    link_cond_init(&queue->filled);
    queue->runs = pthread_create(&queue->thread, NULL, run, queue) == 0;
    return queue->runs;
}

static bool is_quiet(const struct wire_message *message) {
    return message->kind == WIRE_SET && message->tag == 0 && message->queue == 0 &&
           message->value == WIRE_QUIET;
}

// Whether the job was done without handing it to another thread. Only the caller's thread adds
// jobs, so a queue without any stays so.
static bool done_at_once(struct server *server, const struct job *job) {
    const struct queue *queue = &server->queues[0];
    if (!is_quiet(&job->message)) return false;
    pthread_mutex_lock(&server->lock);
    const bool is_idle = !queue->first && !queue->works;
    pthread_mutex_unlock(&server->lock);
    return is_idle && work_set_at_once(server, job);
}

// Appends a job to its queue, whose thread starts with the first one. False without a thread.
static bool enqueue(struct server *server, struct job *job) {
    pthread_mutex_lock(&server->lock);
    struct queue *queue = &server->queues[job->message.queue];
    const bool started = !server->ends && start(server, job->message.queue);
    if (started) {
        ++queue->n_taken;
        job->after = server->n_before;
        if (is_quiet(&job->message)) server->n_before = queue->n_taken;
        *queue->end = job;
        queue->end = &job->next;
        pthread_cond_signal(&queue->filled);
    }
    pthread_mutex_unlock(&server->lock);
    return started;
}

// --- messages ------------------------------------------------------------------------------------

// Told at once, whatever is being computed.
static bool is_urgent(struct server *server, const struct wire_message *message, const void *rest) {
    switch (message->kind) {
    case WIRE_PING: answer(server, message->id, GGML_HOST_OK, NULL, 0); return true;
    case WIRE_BYE:
        server->leaves_mpi = message->value != 0;
        server_end(server, NULL);
        return true;
    case WIRE_PROGRAM: program_watch(server, rest); return true;
    case WIRE_GROUP_LOST: reduce_note_lost(server, message->object); return true;
    case WIRE_LOST:
        if (message->peer > 0 && (int)message->peer < link_count(server->link))
            link_drop(server->link, (int)message->peer);
        return true;
    default: return false;
    }
}

// Whether what is no sound request can be refused by its queue, so that who waits for it there
// learns of its end.
static bool has_queue(const struct wire_message *message) {
    return message->magic == WIRE_MAGIC && message->queue < WIRE_MAX_QUEUES;
}

// Called by the link with each message, whose `bytes` belong to this function. Urgent ones are
// done at once, as their queue may be waiting.
void server_take(void *context, int peer, void *bytes, size_t size) {
    struct server *server = context;
    struct job *job = peer == 0 ? calloc(1, sizeof(*job)) : NULL; // nodes ask nothing
    const char *why = "no memory";
    if (!job) {
        free(bytes);
        return;
    }
    job->bytes = bytes;
    atomic_fetch_add(&server->n_messages_taken, 1);
    const bool is_sound = wire_read(bytes, size, &job->message, &job->rest, &why);
    if (!is_sound) job->refusal = why;
    if (!is_sound && !has_queue(&job->message)) {
        answer_refusal(server, job->message.id, GGML_HOST_INVALID_ARGUMENT, why);
    } else if (!is_sound ||
               (!is_urgent(server, &job->message, job->rest) && !done_at_once(server, job))) {
        job->rest_size = is_sound ? size - sizeof(job->message) : 0;
        if (enqueue(server, job)) return;
        answer_refusal(server, job->message.id, GGML_HOST_OUT_OF_MEMORY,
                       "what no thread could be made for");
    }
    free_job(job);
}

// --- end -----------------------------------------------------------------------------------------

void server_end(struct server *server, const char *why) {
    pthread_mutex_lock(&server->lock);
    if (!server->ends) {
        if (why) fprintf(stderr, "ggml-node: %s\n", why);
        server->ends = true;
        server->ended_by_program = why == NULL;
        for (int i = 0; i < WIRE_MAX_QUEUES; ++i)
            if (server->queues[i].runs) pthread_cond_broadcast(&server->queues[i].filled);
        pthread_cond_broadcast(&server->progress);
        pthread_cond_broadcast(&server->ended);
    }
    pthread_mutex_unlock(&server->lock);
}

void server_wait(struct server *server) {
    pthread_mutex_lock(&server->lock);
    while (!server->ends)
        pthread_cond_wait(&server->ended, &server->lock);
    pthread_mutex_unlock(&server->lock);
}

static bool is_working(const struct server *server) {
    for (int i = 0; i < WIRE_MAX_QUEUES; ++i)
        if (server->queues[i].runs && server->queues[i].works) return true;
    return false;
}

bool server_rests(struct server *server, double seconds) {
    struct timespec until;
    int late = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)seconds;
    pthread_mutex_lock(&server->lock);
    while (is_working(server) && late == 0)
        late = pthread_cond_timedwait(&server->progress, &server->lock, &until);
    const bool rests = !is_working(server);
    pthread_mutex_unlock(&server->lock);
    return rests;
}

// Waits for all threads, then frees streams, graphs and buffers.
void server_free(struct server *server) {
    program_end(server);
    for (int i = 0; i < WIRE_MAX_QUEUES; ++i) {
        struct queue *queue = &server->queues[i];
        if (!queue->runs) continue;
        pthread_join(queue->thread, NULL);
        ggml_backend_free(queue->backend);
        free(queue->scratch);
        device_sum_end(queue);
        while (queue->first) {
            struct job *next = queue->first->next;
            free_job(queue->first);
            queue->first = next;
        }
        pthread_cond_destroy(&queue->filled);
    }
    while (server->graphs)
        graph_forget(server, server->graphs->id, NULL);
    while (server->buffers)
        buffer_end(server, server->buffers->id);
    if (server->files >= 0) close(server->files);
}
