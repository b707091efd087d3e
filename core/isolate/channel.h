// SPDX-License-Identifier: MIT
// Connection to the process of an isolated device. A process that ends or misses the deadline is
// lost: it is killed together with its group, and every later call fails with DEVICE_LOST.
#ifndef GGML_ISOLATE_CHANNEL_H
#define GGML_ISOLATE_CHANNEL_H

#include <pthread.h>
#include <stdatomic.h>

#include "isolate/protocol.h"
#include "isolate/wait.h"
#include "plugin/probe/process/probe_process.h"

struct channel {
    pthread_mutex_t mutex;
    char name[64];                // of the device, for messages
    atomic_bool lost;             // set once, after `why`
    char why[256];                // reason for the loss, for messages
    bool logs_loss;               // the application doesn't know that it might ask for the reason
    long owner;                   // process that made it: a child of a fork may not use it
    char *ours;                   // 1, and 0 in a child of a fork; NULL: goes by `owner`
    uint32_t deadline_ms;         // for an answer; 0: none
    struct probe_process process; // fd: the socket
    atomic_long pid;              // process number while it runs, else 0
    uint64_t number;              // of the last request; needs the lock
    struct wait_habit habits[2];  // with the lock held: of other answers, of those that computed
    int64_t answered_ns;          // with the lock held: when the last one came
    int64_t asked_us;             // likewise: from when the deadline of the last request counts
    char *shared;                 // mapped in both
    size_t shared_size;
    unsigned n_unused; // with the lock held: times in a row that most of it was not needed
};

// Memory that another process can map too.
struct shared_memory {
    int fd;
    void *data;
    size_t size; // whole pages
};

// Starts the helper. The channel is to be closed even if that fails. UNSUPPORTED, OUT_OF_MEMORY,
// BUSY, IO_ERROR. [any-thread]
enum ggml_host_status channel_open(struct channel *channel, const char *helper, const char *plugin,
                                   const char *name, uint32_t deadline_ms);
// Lets the process end by itself, or ends it if that takes too long. [stream]
void channel_close(struct channel *channel);

// Whether it can still be used; fails with DEVICE_LOST if not. [any-thread]
bool channel_usable(struct channel *channel);

// Between these two calls no other thread uses `shared`. false, with DEVICE_LOST and without the
// lock, if the channel can't be used: a child of a fork neither waits for a thread that exists only
// in its parent, nor writes to memory that it shares with it. [any-thread]
bool channel_lock(struct channel *channel);
void channel_unlock(struct channel *channel);

// With the lock held: makes room for so many bytes in `shared`, whose contents are lost.
// OUT_OF_MEMORY, DEVICE_LOST. [stream]
enum ggml_host_status channel_reserve(struct channel *channel, size_t size);
// With the lock held: sends a request and waits for the answer. fd >= 0 is passed along. Returns
// the status of the other side, or DEVICE_LOST; out_answer may be NULL. [stream]
enum ggml_host_status channel_call(struct channel *channel, struct isolate_request *request, int fd,
                                   struct isolate_answer *out_answer);
// The two parts of channel_call(), for who does something else before the answer. Every request
// that was sent has its answer waited for, before the next one and with the lock held all the time.
// channel_send() fails with DEVICE_LOST, and nothing is to be waited for then. [stream]
enum ggml_host_status channel_send(struct channel *channel, struct isolate_request *request,
                                   int fd);
enum ggml_host_status channel_wait(struct channel *channel, const struct isolate_request *request,
                                   struct isolate_answer *out_answer);
// With the lock held: sends a request of the kind ISOLATE_TENSOR_POST, with so many bytes, up to
// ISOLATE_POST_BYTES, and doesn't wait. GGML_HOST_OK or DEVICE_LOST. [stream]
enum ggml_host_status channel_post(struct channel *channel, struct isolate_request *request,
                                   const struct isolate_tensor *tensor, const void *bytes,
                                   size_t size);
// Takes the lock and calls. [any-thread]
enum ggml_host_status channel_ask(struct channel *channel, struct isolate_request *request, int fd);

// Zeroed memory of at least that size. Pages are taken at once, so that a lack of memory shows here
// and not when they are written to. OUT_OF_MEMORY, UNSUPPORTED. [any-thread]
enum ggml_host_status shared_memory_new(size_t size, struct shared_memory *out_memory);
void shared_memory_free(struct shared_memory *memory);

#endif
