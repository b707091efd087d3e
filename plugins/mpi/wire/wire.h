// SPDX-License-Identifier: MIT
// What a program and the nodes that compute for it say to each other, and whether bytes that came
// from elsewhere are such a message. Nothing here knows MPI.
//
// Every message begins with a struct wire_message; what follows it is told by its kind. A request
// has an answer with the same id. Requests with the same queue are done in the order in which they
// were sent, those of different queues at the same time. Both sides are little-endian and of one
// major version.
#ifndef GGML_MPI_WIRE_H
#define GGML_MPI_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggml-impl.h"

enum {
    WIRE_MAGIC = 0x4d4c4747, // "GGLM"
    WIRE_TEXT = 128,
    WIRE_MAX_DEVICES = 256,
    WIRE_MAX_QUEUES = 256,        // queue 0 is there from the start, the others are streams
    WIRE_MAX_TENSORS = 1 << 20,   // of a graph
    WIRE_MAX_RANKS = 64,          // of a group
    WIRE_MAX_MEASURED = 16 << 20, // bytes
    // Bytes that travel within their message; more of them come by themselves, under the tag that
    // the message names.
    WIRE_INLINE_BYTES = 16384,
    WIRE_FILE_NAME = 256,
    WIRE_FILE_PIECE = 4 << 20, // bytes of a file that have a digest of their own
    WIRE_DIGEST = 32,          // SHA-256
    WIRE_BOOT = 40,
};
// Peers of one major version understand each other: what a later minor one adds is used only with
// peers that have it.
#ifndef WIRE_MAJOR
#define WIRE_MAJOR 2
#define WIRE_MINOR 3
#endif
#define WIRE_MAX_MESSAGE ((size_t)512 << 20)

enum wire_kind {
    WIRE_ANSWER = 1,      // status; what follows depends on the request, a text if it failed
    WIRE_DESCRIBE = 2,    // answer: struct wire_node, its struct wire_device
    WIRE_PING = 3,        // answer: nothing
    WIRE_BYE = 4,         // the node ends, without ending MPI if value isn't 0; no answer
    WIRE_MEMORY = 5,      // device; answer: struct wire_memory
    WIRE_BUFFER_NEW = 6,  // device, object, size
    WIRE_BUFFER_FREE = 7, // object
    WIRE_BUFFER_CLEAR = 8,
    WIRE_BUFFER_USAGE = 9,
    WIRE_ALLOC_SIZE = 10, // device, one tensor; answer: uint64_t
    WIRE_SUPPORTS = 11,   // device, tensors, the first is the node; answer: uint32_t of enum
                          // wire_support
    WIRE_STREAM_NEW = 12, // device, queue; follows: parameters, if any
    WIRE_STREAM_FREE = 13,
    WIRE_SET = 14, // queue, offset, size, value, one tensor; follow: bytes, or tag
    WIRE_GET = 15, // queue, offset, size, one tensor; the bytes follow the answer, or come by tag
    WIRE_MEMSET = 16,  // queue, offset, size, value, one tensor
    WIRE_COPY = 17,    // queue, two tensors: source and destination
    WIRE_COMPUTE = 18, // queue, object: the graph; n_tensors, n_nodes if it is new; follow: changes
    WIRE_GRAPH_FREE = 19, // object
    WIRE_SEND = 20,       // queue, size, peer, tag, one tensor: its bytes go to another node
    WIRE_RECEIVE = 21,    // queue, size, peer, tag, one tensor: they come from another node
    WIRE_WAIT = 22,       // queue, object: waits until that queue has done request number `offset`
    WIRE_LOST = 23,       // peer: that node is gone; no answer
    // queue, object: the group, value: enum ggml_comm_reduction, device: own rank, tag: the group's
    // first one, n_nodes: ranks, one tensor; follow: so many struct wire_rank. Since 2.2 peer:
    // WIRE_BY_NODES.
    WIRE_REDUCE = 24,
    WIRE_GROUP_LOST = 25, // object: a group that fails; no answer
    // peer, tag, size: times a transfer with another node, which leads it if value isn't 0; answer
    // of that one: struct wire_link
    WIRE_MEASURE = 26,
    // Since 2.1. queue, offset, size, one tensor: bytes that the node reads from its own copy of a
    // file; follow: struct wire_file, a digest of each WIRE_FILE_PIECE bytes, the last one of what
    // is left. Answer: uint64_t 1; NOT_FOUND if it has no such bytes, UNSUPPORTED if no files.
    WIRE_SET_FILE = 27,
    // Since 2.3. Follows: struct wire_program, the process that asks; no answer.
    WIRE_PROGRAM = 28,
    WIRE_KINDS = 29,
};

// `value` of WIRE_SET with its bytes in the message: nothing is answered unless it fails. What
// other queues are sent later is done later.
enum { WIRE_QUIET = 1 };

// `peer` of WIRE_REDUCE: the ranks of one node add their parts in its memory, and the first one of
// each node exchanges the sum with those of the others. All ranks of the group are told the same.
enum { WIRE_BY_NODES = 1 };

// Since 2.2. `status` of a request to a stream's queue: an answer that would only say OK may be
// left out if another request of the queue is there. `value` of an answer: every request that its
// queue was given before is done, and was answered if it failed.
enum { WIRE_OR_NEXT = 1, WIRE_IN_ORDER = 1 };

enum wire_support {
    WIRE_SUPPORTED = 1,
    WIRE_OFFLOADED = 2,
};

struct wire_message {
    uint32_t magic;
    uint32_t kind; // enum wire_kind
    uint64_t id;
    int32_t status; // enum ggml_host_status, of an answer; of a request 0 or WIRE_OR_NEXT
    uint32_t queue;
    uint32_t device;
    uint32_t value;
    uint64_t object;
    uint64_t offset;
    uint64_t size;
    uint32_t tag; // under which bytes come by themselves; 0: they are in the message
    uint32_t peer;
    uint32_t n_tensors;
    uint32_t n_nodes;
    uint64_t structure; // as in struct ggml_graph
};

// A tensor without addresses. Numbers of others are indices into the same list, -1: none.
struct wire_tensor {
    int32_t type;
    int32_t op;
    int32_t flags;
    int32_t use_count;
    int64_t ne[GGML_MAX_DIMS];
    uint64_t nb[GGML_MAX_DIMS];
    int32_t op_params[GGML_MAX_OP_PARAMS / sizeof(int32_t)];
    int32_t src[GGML_MAX_SRC];
    int32_t view_src;  // of a tensor beyond lists and graphs: 0 if it is a view
    uint32_t reserved; // 0
    uint64_t view_offs;
    uint64_t buffer; // id, 0: it lies nowhere
    uint64_t offset; // of its data from the buffer's base
    char name[GGML_MAX_NAME];
};

struct wire_change {
    uint64_t index;
    struct wire_tensor tensor;
};

// What rank a sends to rank b goes under the group's first tag + a * ranks + b.
struct wire_rank {
    uint32_t peer;
    uint32_t counts; // 0: its part is not added
};

// Where bytes are in a file: a name without folders, since each side has its own.
struct wire_file {
    uint64_t offset;
    uint64_t size; // of the whole file
    char name[WIRE_FILE_NAME];
};

// A process, for those of the same machine.
struct wire_program {
    char boot[WIRE_BOOT]; // which the kernel has drawn when it was started
    uint64_t space;       // of numbers of processes
    uint32_t process;
    uint32_t reserved; // 0
};

struct wire_memory {
    uint64_t free;
    uint64_t total;
};

struct wire_link {
    double seconds; // one way, of a few bytes
    double bytes_per_second;
};

struct wire_node {
    char host[WIRE_TEXT];
    char version[WIRE_TEXT];
    uint32_t process;
    uint32_t n_devices;
};

// What a client needs to know of a device before it uses it.
struct wire_device {
    char name[WIRE_TEXT];
    char description[WIRE_TEXT];
    char id[WIRE_TEXT]; // "": none
    struct wire_memory memory;
    uint64_t alignment;
    uint64_t max_size;
    uint32_t type;        // enum ggml_backend_dev_type
    uint32_t plain_sizes; // 1: tensors take ggml_nbytes()
    uint32_t async;
    uint32_t has_figures;
    double flops; // as struct ggml_device_figures
    double bytes_per_second;
    double launch_seconds;
    double flops_of[64];
};

// Reads what came into *out_message; *out_rest is what follows it. Checks everything that can be
// told from the bytes alone: sizes, numbers of things, kinds, types, operations, extents, strides,
// references. On failure *out_why says what is wrong. [any-thread]
bool wire_read(const void *bytes, size_t size, struct wire_message *out_message,
               const void **out_rest, const char **out_why);
// Reads tensor i of those that follow a message which wire_read() has accepted. [any-thread]
void wire_read_tensor(const void *rest, size_t i, struct wire_tensor *out_tensor);
void wire_read_change(const void *rest, size_t i, struct wire_change *out_change);
void wire_read_rank(const void *rest, size_t i, struct wire_rank *out_rank); // of WIRE_REDUCE
void wire_read_program(const void *rest, struct wire_program *out_program);  // of WIRE_PROGRAM
// Of WIRE_SET_FILE: the file, how many digests there are, and where they are. [any-thread]
void wire_read_file(const void *rest, struct wire_file *out_file);
size_t wire_pieces(uint64_t size);
const uint8_t *wire_digests(const void *rest);
// How many tensors or changes follow an accepted message; the bytes after them. [any-thread]
size_t wire_count(const struct wire_message *message);
size_t wire_fixed_size(const struct wire_message *message);
// As wire_read(), what follows the answer to WIRE_DESCRIBE. [any-thread]
bool wire_read_node(const void *rest, size_t size, struct wire_node *out_node,
                    struct wire_device *out_devices, const char **out_why);

// Whether the tensor is sound by itself: a list has `count` of them. *out_span: bytes from its
// first to its last one. [any-thread]
bool wire_tensor_sound(const struct wire_tensor *tensor, size_t count, uint64_t *out_span,
                       const char **out_why);

// Whether blocks of a quantised type, which is sound, don't lie side by side in a row: a view that
// may be undone by another one, but that nothing can read. [any-thread]
bool wire_has_transposed_blocks(const struct wire_tensor *tensor);

// Whether the operation calls a function of the program, whose address means nothing elsewhere.
// [any-thread]
bool wire_calls_program(int32_t op);

// Describes a tensor that refers to no other one; where it lies, the caller says. [any-thread]
void wire_describe(const struct ggml_tensor *tensor, struct wire_tensor *out_tensor);
// The opposite: a tensor that lies nowhere and refers to none. [any-thread]
void wire_restore(const struct wire_tensor *from, struct ggml_tensor *tensor);

#endif
