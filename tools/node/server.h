// SPDX-License-Identifier: MIT
// ggml-node: what it holds for the program, and how it does what it is told. Requests of one queue
// are done by a thread of its own, one after the other.
#ifndef GGML_NODE_SERVER_H
#define GGML_NODE_SERVER_H

#include <pthread.h>

#include "ggml-backend-impl.h"
#include "ggml-ext-comm.h"
#include "ggml-host.h"
#include "ggml-impl.h"
#include "link/link.h"
#include "wire/wire.h"

enum { NODE_LOST_GROUPS = 64 };

// The program's buffer. What uses it holds a reference, so that it is there while it is used.
struct held_buffer {
    uint64_t id;
    unsigned n_references;
    ggml_backend_buffer_t buffer;
    size_t size;
    bool is_host;
    bool is_for_mpi;          // MPI may read and write it itself
    struct ggml_tensor *root; // all of its bytes, NULL: nothing has viewed them yet
    struct held_buffer *next;
};

struct held_graph {
    uint64_t id;
    uint32_t queue; // that computes it
    unsigned n_references;
    struct ggml_context *ctx;
    struct ggml_cgraph *graph;
    struct ggml_tensor **tensors; // the nodes, then what they refer to
    struct held_buffer **buffers; // of each tensor, NULL: none
    uint32_t n_tensors, n_nodes;
    struct held_graph *next;
};

struct job {
    void *bytes;
    struct wire_message message;
    const void *rest;
    size_t rest_size;
    const char *refusal; // why it is not done, NULL: it is
    uint64_t after;      // so many jobs of queue 0 are done first
    struct job *next;
};

struct queue {
    struct server *server;
    uint32_t index;
    pthread_t thread;
    bool runs, works;
    struct job *first, **end;
    pthread_cond_t filled;
    ggml_backend_t backend; // of a stream; the queue's thread alone uses it
    uint32_t device;
    uint64_t last_done;       // request
    uint64_t n_taken, n_done; // jobs
    void *scratch;            // of sums
    size_t scratch_size;
    ggml_backend_buffer_t device_scratch; // of sums by the device, NULL: none yet
};

// What the driver is asked for, NULL: nothing; see device_memory.c.
struct device_memory {
    int (*get_attributes)(unsigned n, int *which, void **out_values, uint64_t address);
    int (*set_current)(void *context);
    atomic_uintptr_t context;   // of the one device whose memory MPI is given, 0: none yet
    atomic_uint_fast64_t bytes; // that MPI has moved from and to it
};

// The program's process, where it can be watched; see program.c.
struct program {
    bool is_watched;
    int process, wake; // descriptors
    pthread_t thread;
};

struct server {
    struct link *link;
    struct program program;
    struct device_memory device_memory;
    pthread_mutex_t lock;
    pthread_cond_t progress; // a request was done, or the end has come
    pthread_cond_t ended;
    bool ends, ended_by_program;
    bool leaves_mpi; // a process is lost for which ending MPI would wait
    ggml_backend_dev_t devices[WIRE_MAX_DEVICES];
    uint32_t n_devices;
    atomic_uint_fast64_t bytes_from_files, n_messages_taken, n_messages_sent, n_left_out;
    int files;         // descriptor of the folder of files that tensors may be read from, -1: none
    uint64_t n_before; // jobs of queue 0 up to the last one that the program does not wait for
    struct held_buffer *buffers;
    struct held_graph *graphs;
    struct meeting *meetings; // that ranks are waited for
    struct queue queues[WIRE_MAX_QUEUES];
    atomic_uint_fast64_t lost_groups[NODE_LOST_GROUPS], n_lost_groups; // the newest; of all
};

// --- server.c ------------------------------------------------------------------------------------

void server_init(struct server *server);
// What a link calls when a message came.
void server_take(void *context, int peer, void *bytes, size_t size);
// Waits until the program has said goodbye, or is gone.
void server_wait(struct server *server);
// Ends all threads; `why`, unless the program asked for it, is printed.
void server_end(struct server *server, const char *why);
// Waits until nothing is done any more, for at most so many seconds; false: something is.
bool server_rests(struct server *server, double seconds);
// Frees everything; nothing comes any more.
void server_free(struct server *server);

// --- answer.c ------------------------------------------------------------------------------------

// Answers a request with the status; data follows if it is OK, else the last error's text.
void answer(struct server *server, uint64_t id, enum ggml_host_status status, const void *data,
            size_t size);
// Whether a request that was done need not be answered, as a later one of its queue will be.
bool answer_can_wait(struct server *server, const struct job *job);
// Answers a message that no queue has taken; nothing that the thread noted changes.
void answer_refusal(struct server *server, uint64_t id, enum ggml_host_status status,
                    const char *why);
// Notes why the current request fails, for its answer; refuse() is INVALID_ARGUMENT. Returns the
// status.
enum ggml_host_status fail(enum ggml_host_status status, const char *why);
enum ggml_host_status refuse(const char *why);
// Forgets what failed before.
void forget_failure(void);
// The status that was noted or that the library set last, OK if there is none.
enum ggml_host_status last_status(void);

// --- hold.c --------------------------------------------------------------------------------------

enum ggml_host_status buffer_make(struct server *server, const struct wire_message *message);
enum ggml_host_status buffer_end(struct server *server, uint64_t id);
// With a reference, NULL after a failure; buffer_release() gives it back.
struct held_buffer *buffer_find(struct server *server, uint64_t id);
void buffer_release(struct server *server, struct held_buffer *buffer);
// A tensor that was described, in its buffer, which is referred to until it is released. false
// after a failure: then nothing is to be released.
bool tensor_place(struct server *server, const struct wire_tensor *from, struct ggml_tensor *tensor,
                  struct held_buffer **out_buffer);

// A tensor of a request that is about it alone. A view is one of the whole buffer: what a device
// keeps for a tensor that is none is not made for it, nor what lies behind it changed.
struct placed {
    struct ggml_tensor tensor;
    struct held_buffer *held;
};
// The same for it; it stays where it is.
bool tensor_place_alone(struct server *server, const struct wire_tensor *from,
                        struct placed *placed);

// --- device_memory.c -----------------------------------------------------------------------------

// Finds the driver, after plugins were loaded, unless the setting forbids it.
void device_memory_init(struct device_memory *memory);
// Whether MPI may be given addresses of a device's new buffer.
bool device_memory_is_for_mpi(struct server *server, ggml_backend_dev_t device,
                              ggml_backend_buffer_t buffer, size_t size);
// By a thread that is about to call MPI.
void device_memory_enter(void *context);

// --- graph.c -------------------------------------------------------------------------------------

// The graph of a request, made or changed as it says, with a reference; NULL after a failure.
struct held_graph *graph_take(struct server *server, const struct wire_message *message,
                              const void *rest);
void graph_release(struct server *server, struct held_graph *graph);
// Forgets a graph, or every one that uses the buffer.
void graph_forget(struct server *server, uint64_t id, const struct held_buffer *buffer);
// Forgets every graph of a queue, by its thread.
void graph_forget_queue(struct server *server, uint32_t queue);

// --- file.c --------------------------------------------------------------------------------------

// A descriptor for `files`, or -1.
int file_open_folder(const char *path);
// Sets a tensor from a file of this machine as WIRE_SET_FILE says, once its digests agree.
// NOT_FOUND: it has no such bytes; the tensor may be set in part.
enum ggml_host_status file_set(struct server *server, const struct wire_message *message,
                               const void *rest, struct ggml_tensor *tensor);

// --- transfer.c ----------------------------------------------------------------------------------

// Bytes of a tensor to or from a peer, by themselves. They travel whatever happens, so that the
// other side doesn't wait: `status` is what went wrong before.
enum ggml_host_status transfer_out(struct server *server, const struct wire_message *message,
                                   const struct ggml_tensor *tensor,
                                   const struct held_buffer *buffer, int peer,
                                   enum ggml_host_status status);
enum ggml_host_status transfer_in(struct server *server, const struct wire_message *message,
                                  struct ggml_tensor *tensor, const struct held_buffer *buffer,
                                  int peer, enum ggml_host_status status);

// Leads or follows a transfer with another node that is timed, and answers.
void transfer_measure(struct server *server, const struct wire_message *message);

// --- reduce.c ------------------------------------------------------------------------------------

// One rank's part of an all-reduce. DEVICE_LOST: another rank is gone, or the group has failed.
enum ggml_host_status reduce(struct queue *queue, const struct job *job);
void reduce_note_lost(struct server *server, uint64_t group);

// --- device_sum.c --------------------------------------------------------------------------------

// Memory of the device for so many bytes that other ranks send, which the queue's device adds to
// those of a buffer, and MPI may be given both; NULL: the host has to add. By the queue's thread.
char *device_sum_begin(struct queue *queue, const struct held_buffer *held, size_t size);
// Adds n F32 from that memory to those at `mine`, which lie in the buffer, or copies them there.
// Waits. By the queue's thread.
enum ggml_host_status device_sum_add(struct queue *queue, const struct held_buffer *held,
                                     char *mine, const char *other, size_t n, bool adds);
// Frees the memory.
void device_sum_end(struct queue *queue);

// --- join.c --------------------------------------------------------------------------------------

// Prepares to join a program by way of that file; from here on SIGTERM and SIGINT say goodbye.
// Before any other thread is made. False after saying why.
bool join_begin(struct server *server, const char *path);
// Writes the name of a port to the file, once no other node's is there. By the link.
bool join_publish(void *context, const char *port);
// The program is there: what ends this node tells it.
void join_done(struct server *server);

// --- program.c -----------------------------------------------------------------------------------

// Has the node end when that process, which follows the message WIRE_PROGRAM, is gone. By the
// link's thread.
void program_watch(struct server *server, const void *rest);
// Watches it no more.
void program_end(struct server *server);

// --- meeting.c -----------------------------------------------------------------------------------

// What ranks of this node that add their parts have to agree on.
struct local_sum {
    uint64_t group;
    enum ggml_comm_reduction how;
    enum ggml_type type;
    size_t n_elements, bytes;
    uint32_t n;                     // of this node
    uint8_t counts[WIRE_MAX_RANKS]; // 0: its part is not added
};
struct meeting;
// Waits for the other ranks of this node, of which the caller is number `self`, and adds a slice of
// all parts to the first one's memory. NULL after a failure: gives_up(context) said so, or they do
// not agree.
struct meeting *meeting_enter(struct server *server, const struct local_sum *sum, uint32_t self,
                              char *memory, bool (*gives_up)(void *context), void *context);
// By rank 0, when its memory has the result or there is none: waits until the others have it.
void meeting_end(struct meeting *meeting, bool good);
// By each of the others: copies the result to its memory; false: there is none.
bool meeting_leave(struct meeting *meeting, char *memory);

// --- work.c --------------------------------------------------------------------------------------

// Does what a request says and answers it. By the queue's thread.
void work_do(struct queue *queue, const struct job *job);
// Does a set that is not answered, if it takes no device: false if it has to wait for its queue's
// thread. By the thread that took the message; queue 0 has nothing else to do.
bool work_set_at_once(struct server *server, const struct job *job);

#endif
