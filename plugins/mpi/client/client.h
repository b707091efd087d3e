// SPDX-License-Identifier: MIT
// The program's side: nodes, what was asked of them, and the objects that the host sees.
#ifndef GGML_MPI_CLIENT_H
#define GGML_MPI_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>

#include "ggml-plugin.h"
#include "link/link.h"
#include "wire/wire.h"

enum { CLIENT_TEXT = 320, CLIENT_GRAPHS = 16, CLIENT_LINKS = 16, CLIENT_TOLD_BYTES = 1 << 20 };

struct client;
struct node;

// Work in order: a stream, or the buffers of a node. Under the client's lock.
struct line {
    uint64_t n_waiting; // requests without an answer
    uint64_t last;      // id of the newest request
    int32_t status;     // of the first one that failed since it was asked for
    char why[CLIENT_TEXT];
};

// Streams of which all fail when one does.
struct remote_group {
    struct client *client;
    uint64_t id;
    uint32_t n, first_tag;
    atomic_int n_owners; // the group, and requests without an answer
    atomic_bool has_failed;
    uint32_t peers[WIRE_MAX_RANKS];
};

struct request {
    uint64_t id;
    struct node *node;
    struct line *line; // NULL: a thread waits for this one
    struct link_op op; // the bytes that come or go by themselves
    void *copy;        // memory of the request's own that op works on, or NULL
    bool has_op, op_done, answered, done;
    bool is_abandoned;      // MPI has ended, and may have its bytes still: it is never freed
    bool may_be_told_later; // by the answer to a later request of its queue
    uint32_t queue, tag;
    int32_t status;
    char why[CLIENT_TEXT];
    void *bytes; // the answer as it came
    struct wire_message answer;
    struct remote_group *group; // of which it is a part, or NULL
    const void *rest;
    size_t rest_size;
    void *into; // where bytes that follow the answer go
    size_t into_size;
    struct request *next;
};

struct remote_device {
    struct ggml_backend_device base;
    struct ggml_backend_buffer_type buft;
    struct node *node;
    uint32_t index;
    struct wire_device about;
    char name[WIRE_TEXT + 16];
    char description[2 * WIRE_TEXT];
    struct ggml_backend_feature info[12 + CLIENT_LINKS];
    char link_names[CLIENT_LINKS][16], link_texts[CLIENT_LINKS][48];
    char node_text[16], rank_text[16], process_text[16], latency_text[32], rate_text[32];
    struct known_ops *ops;
};

struct node {
    struct client *client;
    int peer;
    struct wire_node about;
    struct remote_device *devices;
    uint32_t n_devices;
    bool joined; // of another job: it knows no other node
    bool left;   // it is lost because it said goodbye
    _Atomic bool lost;
    char why[CLIENT_TEXT];                      // of lost
    double link_seconds, link_bytes_per_second; // measured; 0: not known
    struct wire_link links[CLIENT_LINKS];       // to node i + 1, of 0: not measured
    struct request *waiting, **waiting_end;     // in the order of their ids
    double last_heard, last_asked, first_waiting;
    double last_step; // when an answer came, or bytes beside one; a ping's does not count
    struct line buffers;
    // Requests that are answered only if they fail: the newest one, the newest request whose answer
    // has come, and the bytes that were told since.
    uint64_t last_told, last_answered;
    size_t told_bytes;
    atomic_bool has_no_files;              // to read weights from
    atomic_uint_fast64_t missing_inode;    // of the file of the program's that it lacked last
    atomic_uint_fast64_t generation;       // rises when a buffer is freed
    uint64_t queues[WIRE_MAX_QUEUES / 64]; // in use
};

struct client {
    struct link *link;
    pthread_mutex_t lock;
    pthread_cond_t answered;
    struct node *nodes; // of peer 1 and on
    atomic_int n_nodes;
    atomic_int n_shown; // of which the host may see devices
    ggml_backend_reg_t reg;
    struct joiner *joiner; // that waits for nodes of other jobs, or NULL
    double deadline;
    _Atomic double last_tick; // of the link's thread
    uint64_t next_id;
    uint32_t next_tag;
    uint8_t tag_users[LINK_TAGS]; // open requests with that tag, and who is about to post them
    atomic_uint_fast64_t next_object;
    atomic_int n_waiting;
    atomic_bool group_tags[LINK_GROUP_TAGS]; // in use; taken under the lock, given back without
    atomic_bool closes;                      // set under the lock: nothing is asked any more
    bool ends;
    bool is_child; // of a fork: the link's thread is not here, and neither is MPI
};

// The one client of this process, or NULL. [any-thread]
struct client *client_get(void);
// Meets the nodes and asks what they have, for devices of that backend; NULL after the error was
// set. [init]
struct client *client_start(ggml_backend_reg_t reg);
// Whether there is a job with nodes, without starting MPI; the error says why not. [init]
bool client_may_start(unsigned *out_n_expected);
// Says goodbye; the nodes end, and are lost for who uses them later. At exit. [init]
void client_end(void);
// Asks the node of the newest peer what it has, measures the way to it and makes its devices; NULL
// after the error was set. By the thread that let it join.
struct node *client_add(struct client *client);
// Seconds in an environment variable; the default where it is not set or not sensible.
double client_seconds(const char *name, double otherwise);

// Lets nodes of other jobs join, which write the name of a port into a file, until joiner_end().
// NULL after the error was set. [init]
struct joiner *joiner_start(struct client *client, const char *path);
// False: its thread is inside of MPI, and stays there. NULL is ignored.
bool joiner_end(struct joiner *joiner);
// Whether bytes can go from the one to the other without the program.
bool nodes_reach(const struct node *a, const struct node *b);

// What goes with a request.
struct parts {
    const void *first, *second; // follow the message
    size_t first_size, second_size;
    const void *send; // bytes that travel by themselves, until the request is done
    void *receive;
    size_t bytes;
    struct remote_group *group;
    bool copies; // the bytes are copied: the memory may be used again at once
};

// Sends a request and waits for its answer. A status that is not OK was set as the error. On
// success *out_request, if not NULL, has the answer: request_free() it. [any-thread]
int32_t client_call(struct node *node, struct wire_message *message, const struct parts *parts,
                    struct request **out_request);
// Sends a request whose outcome is told by line_wait(). [any-thread]
int32_t client_post(struct node *node, struct line *line, struct wire_message *message,
                    const struct parts *parts);
// The same; `size` bytes that follow the answer go to `into`.
int32_t client_post_into(struct node *node, struct line *line, struct wire_message *message,
                         const struct parts *parts, void *into, size_t into_size);
struct posting {
    struct node *node;
    struct line *line;
    struct wire_message *message;
    const struct parts *parts;
};
// Sends two that wait for each other, or none. [any-thread]
int32_t client_post_both(const struct posting both[2]);
// Sends a request that is answered only if it fails: the next line_wait() of any line of the node
// waits for it, and tells. Blocks once CLIENT_TOLD_BYTES were sent so and no answer to a later
// request has come. [any-thread]
int32_t client_tell(struct node *node, struct wire_message *message, const struct parts *parts);
void request_free(struct request *request);
// A group of these nodes, without any tags when there are none left: NULL after the error was set.
// Each request of it is an owner too. [any-thread]
struct remote_group *group_take(struct client *client, const uint32_t *peers, uint32_t n);
void group_drop(struct remote_group *group);
void group_fail(struct remote_group *group);
// Waits for everything of the line; returns the first failure and forgets it. [any-thread]
int32_t line_wait(struct node *node, struct line *line);
// The same, without looking at what came of it. [any-thread]
void line_drain(struct node *node, struct line *line);
// Waits until request `id` of the line is done. [any-thread]
void line_wait_for(struct node *node, const struct line *line, uint64_t id);
// Whether the node can be asked; sets the error if not. [any-thread]
bool node_usable(const struct node *node);
// A tag that no transfer has, for one or for both halves of a copy; waits while there is none. Each
// request with it keeps it until it is done. The caller drops it once they are posted. [any-thread]
uint32_t client_take_tag(struct client *client);
void client_drop_tag(struct client *client, uint32_t tag);
// Tells it which process this is, and asks it for its devices; false after the error was set.
// [init]
bool node_describe(struct node *node);
// Measures the way to it, after it has described itself. [init]
void node_measure(struct node *node);
// Measures the links between all pairs of nodes, of which there are at most CLIENT_LINKS. [init]
void client_measure_links(struct client *client);

// Devices, buffers and streams. [any-thread]
void remote_device_init(struct remote_device *device, struct node *node, uint32_t index,
                        const struct wire_device *about, ggml_backend_reg_t reg);
void remote_buft_init(struct remote_device *device);
int32_t remote_stream_new(struct remote_device *device, const char *params,
                          ggml_backend_t *out_stream);
int32_t remote_event_new(struct remote_device *device, ggml_backend_event_t *out_event);
bool remote_supports(struct remote_device *device, const struct ggml_tensor *op, uint32_t which);

struct remote_buffer {
    struct node *node;
    struct remote_device *device;
    uint64_t id;
    char *base; // addresses that nobody may use
    size_t size;
};
// The buffer of this plugin in which the tensor lies, or NULL. [any-thread]
struct remote_buffer *remote_buffer_of(const struct ggml_tensor *tensor);
// Whether it lies in memory of that node, or nowhere; false after the error was set. [any-thread]
bool remote_lies_at(const struct node *node, const struct ggml_tensor *tensor);
// Describes a tensor; one of other memory as lying nowhere. [any-thread]
void remote_describe_any(const struct node *node, const struct ggml_tensor *tensor,
                         struct wire_tensor *out_tensor);
// Describes a tensor with where it lies; false after the error was set. [any-thread]
bool remote_describe(const struct node *node, const struct ggml_tensor *tensor,
                     struct wire_tensor *out_tensor);
// Transfers within a line of requests. [any-thread]
int32_t remote_set(struct node *node, struct line *line, uint32_t queue,
                   const struct ggml_tensor *tensor, const void *data, size_t offset, size_t size);
// Whether the node has set it from a file of its own; false, without an error: it is to be sent.
// [any-thread]
bool remote_set_from_file(struct node *node, const struct ggml_tensor *tensor, const void *data,
                          size_t offset, size_t size);
int32_t remote_get(struct node *node, struct line *line, uint32_t queue,
                   const struct ggml_tensor *tensor, void *data, size_t offset, size_t size);

int32_t remote_copy_within(struct node *node, struct line *line, uint32_t queue,
                           const struct ggml_tensor *src, const struct ggml_tensor *dst);
// One end of a copy between nodes.
struct remote_end {
    struct node *node;
    struct line *line;
    uint32_t queue;
    const struct ggml_tensor *tensor;
    struct remote_group *group; // that fails with the copy, or NULL
};
int32_t remote_copy_between(const struct remote_end *from, const struct remote_end *to);
// Between or within nodes, in the order of both queues. [stream]
int32_t remote_copy(const struct remote_end *from, const struct remote_end *to);
// Where a stream of this plugin queues; false: it is none. [any-thread]
bool remote_stream_end(ggml_backend_t stream, struct remote_end *out_end,
                       struct remote_device **out_device);
// What several queues do together enters them between these. [any-thread]
void remote_order_lock(void);
void remote_order_unlock(void);
extern const struct ggml_extension_comm remote_comm;
size_t remote_alloc_size(struct remote_device *device, const struct ggml_tensor *tensor);

// Graphs that a node knows. [stream]
struct graph_image;
struct known_graph {
    uint64_t id; // 0: none
    uint64_t used, uid, structure;
    uint32_t n_nodes;
    size_t n_tensors;
    struct wire_tensor *tensors;
    struct graph_image *image; // of one without a uid; NULL: none
};
struct graph_cache {
    uint64_t generation, clock;
    struct known_graph graphs[CLIENT_GRAPHS];
};
// Fills in the message, and *out_changes (free), for the node to compute the graph. *out_forgotten
// is a graph that the node may forget, 0: none.
int32_t graph_encode(struct graph_cache *cache, struct node *node, const struct ggml_graph *graph,
                     struct wire_message *message, struct wire_change **out_changes,
                     uint64_t *out_forgotten);
// Whether what it knows may lie in a buffer that was freed since.
bool graph_cache_is_old(const struct graph_cache *cache, const struct node *node);
void graph_cache_drop(struct graph_cache *cache, uint64_t id);
void graph_cache_free(struct graph_cache *cache);

#endif
