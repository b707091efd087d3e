// SPDX-License-Identifier: MIT
// Messages, and transfers straight from and to the callers' memory, by MPI. Used by the plugin and
// by ggml-node.
//
// A thread of the link's alone calls MPI, from its start, if nobody has started it, to its end:
// only that thread is lost where a call never returns. All traffic, but the first meeting, goes
// over a communicator of its own, so the program may use MPI for itself.
#ifndef GGML_MPI_LINK_H
#define GGML_MPI_LINK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct link;

enum {
    LINK_MAX_PEERS = 4096,
    LINK_MAX_JOINED = 64, // of other jobs
    LINK_FIRST_TAG = 16,
    LINK_TAGS = 16384,
    LINK_FIRST_GROUP_TAG = LINK_FIRST_TAG + LINK_TAGS,
    LINK_GROUP_TAGS = 16364, // so that the last one is less than what every MPI has
    LINK_TEXT = 256,
    LINK_PIECE = 4 << 20, // what is longer travels in pieces of so many bytes, on both sides
};

// A transfer. Its memory, and this struct, stay the caller's until it is done.
struct link_op {
    int peer;
    int tag; // from LINK_FIRST_TAG, less than LINK_FIRST_GROUP_TAG + LINK_GROUP_TAGS
    bool receives;
    void *data;
    size_t size;
    // NULL, or called when it is done by the link's thread, which then touches it no more.
    void (*on_done)(struct link_op *op);
    void *context; // the caller's
    // The link's:
    unsigned pending;
    bool failed, done, is_message, is_patient;
    atomic_bool is_cancelled;
    struct link_op *next;
};

struct link_options {
    bool is_node;
    unsigned n_expected;  // nodes that are waited for; 0: every other process of the job
    double start_seconds; // how long, from link_open() on
    double start_until;   // the link's: when that is over
    bool is_alone;        // a client without nodes in its job
    // NULL, or of a node of another job, which waits for a program that is told this name of a
    // port; false: it can't be told.
    bool (*on_port)(void *context, const char *port);
    // A call of MPI that takes longer never returns: every peer is lost then. 0: MPI is trusted to
    // return.
    double stuck_seconds;
    // By the link's thread, which may not wait for the link.
    // A message came; its bytes are the callee's from now on (free).
    void (*on_message)(void *context, int peer, void *bytes, size_t size);
    // A transfer with this peer failed.
    void (*on_failure)(void *context, int peer, const char *why);
    // NULL, or called when bytes of a transfer have gone to this peer, or come from it, which MPI
    // does only with its help.
    void (*on_progress)(void *context, int peer);
    // Time passed, in seconds of the monotonic clock. Returns whether messages are expected: if
    // not, the link's thread sleeps until it is given something to do.
    bool (*on_tick)(void *context, double now);
    // NULL, or of a node: called with the reason why the program has not taken it, before
    // link_open() waits for the program to end MPI.
    void (*on_refused)(void *context, const char *why);
    // NULL, or called by the link's thread before it calls MPI for messages and transfers: makes
    // current what MPI needs to reach memory of devices.
    void (*on_enter)(void *context);
    // NULL, or called when the program ends MPI, which it started itself: link_close() is due.
    void (*on_finalize)(void *context);
    void *context;
    struct link **out_link; // set before any of them is called
};

// Whether the MPI that is called is of the kind that this was built with; false with the reason.
// Calls nothing that starts MPI. [any-thread]
bool link_has_own_mpi(char out_why[LINK_TEXT]);
// Whether this process was started by an MPI launcher that names the processes, or MPI runs in it
// already; *out_rank and *out_size may be -1 for not known, *out_programs is how many different
// programs were started, 0: not known. Calls nothing of MPI that starts it. [any-thread]
bool link_launched(int *out_rank, int *out_size, int *out_programs);

// Starts the thread, MPI if need be, and meets the others. A client (rank 0) meets nodes. NULL with
// the reason in out_why. Blocks for at most start_seconds, and a node that was refused until the
// program ends MPI; MPI that did not start in time is left alone. The reason is empty if
// on_refused() was told. [any-thread]
struct link *link_open(const struct link_options *options, char out_why[LINK_TEXT]);
// Makes a node of another job, which waits at an MPI port of that name, the next peer. false with
// the reason. Blocks, for good if nobody waits there. By one thread at a time. [any-thread]
bool link_join(struct link *link, const char *port, char out_why[LINK_TEXT]);
// Number of peers: the client is 0, nodes are 1 to count - 1. Own number. [any-thread]
int link_count(const struct link *link);
int link_self(const struct link *link);
// Whether transfers of a node may be from and to CUDA's device memory. [any-thread]
bool link_has_cuda(const struct link *link);
// Minor version of the protocol that a node speaks, to the client. [any-thread]
unsigned link_minor(const struct link *link, int peer);
// About a process that was refused as a node, "": none was. [any-thread]
const char *link_refused(const struct link *link);
// Ends the thread, and MPI if the link started it and `finalize`. A thread that never came back
// from MPI is left there, with the link's memory. A client may still await after it, but nothing
// comes, and nothing may be posted. [any-thread]
void link_close(struct link *link, bool finalize);

// A condition of the monotonic clock.
void link_cond_init(pthread_cond_t *cond);
// What a thread waits for: a condition of link_cond_init() that is signalled under the lock once
// is_over() is true, which is called under it.
struct link_waiting {
    pthread_mutex_t *lock;
    pthread_cond_t *cond;
    bool (*is_over)(void *context);
    void *context;
};
// Waits, and gives up on the link's thread if that does not come back from MPI. The caller holds
// the lock and no other one; it is given back now and then. [any-thread]
void link_await(struct link *link, const struct link_waiting *waiting);

// Queues a transfer, which the link's thread starts. [any-thread]
void link_post(struct link *link, struct link_op *op);
// Waits until a transfer without on_done is done; false: it failed. [any-thread]
bool link_wait(struct link *link, struct link_op *op);
// Waits as well, and gives up once gives_up(context), which it calls again and again: then the
// transfer is cancelled and has failed, but MPI may use its memory still, now or later.
// [any-thread]
bool link_wait_unless(struct link *link, struct link_op *op, bool (*gives_up)(void *context),
                      void *context);
// Makes a transfer that was posted fail soon, unless it is done before. MPI may use its memory
// still, now or later. [any-thread]
void link_cancel(struct link *link, struct link_op *op);
// Queues a message, which it frees. [any-thread]
bool link_send(struct link *link, int peer, void *bytes, size_t size);
// The same, for a message that may wait for the next one to any peer: no thread is woken to send
// it, which costs more than a small message does. [any-thread]
bool link_send_later(struct link *link, int peer, void *bytes, size_t size);
// Sends a message, which stays the caller's, and waits until it has left, for at most so many
// seconds; false: it can't, or is given up, and its memory has to stay, as MPI may still read it.
// [any-thread]
bool link_tell(struct link *link, int peer, void *bytes, size_t size, double seconds);
// Makes every transfer with that peer fail, from now on. [any-thread]
void link_drop(struct link *link, int peer);
// Makes the thread look at on_tick again. [any-thread]
void link_wake(struct link *link);

double link_now(void);

#endif
