// SPDX-License-Identifier: MIT
// What the host and the process of an isolated device say to each other.
//
// Requests and answers are messages over a socket that keeps their boundaries, one answer for each
// request but ISOLATE_TENSOR_POST, which nobody waits for. What is larger (descriptions of tensors,
// bytes for memory that only the device can address) lies in memory that both have mapped. Both
// sides are of one build of the library, which the first request makes sure of.
//
// The application takes nothing from there but the bytes it asked for and what an answer has: the
// other process may have been taken over by what it computes. One that breaks the protocol is lost.
#ifndef GGML_ISOLATE_PROTOCOL_H
#define GGML_ISOLATE_PROTOCOL_H

#include <stdint.h>

#include "base/data/sha256.h"
#include "ggml-host.h"
#include "plugin/image/plugin_file.h"

enum {
    ISOLATE_SOCKET_FD = 3, // the helper's end
    ISOLATE_TEXT_SIZE = 512,
    ISOLATE_POST_BYTES = 1 << 15, // most that a message carries instead of shared memory
};

// First argument of the helper: it serves an isolated device instead of probing a plugin.
#define ISOLATE_ARGUMENT "--isolate"

enum isolate_request_kind {
    ISOLATE_START = 1,      // text: of the library; shared: struct isolate_start
    ISOLATE_SHARE = 2,      // a descriptor; size: the new shared memory
    ISOLATE_BUFFER_NEW = 3, // id, size, flag: enum isolate_memory; a descriptor unless OWN
    ISOLATE_BUFFER_FREE = 4,
    ISOLATE_BUFFER_CLEAR = 5,  // id, flag: value
    ISOLATE_TENSOR_SET = 6,    // offset, size; shared from id on: struct isolate_tensor, the bytes
    ISOLATE_TENSOR_GET = 7,    // the same; the bytes are the answer
    ISOLATE_TENSOR_MEMSET = 8, // offset, size, flag: value; shared: struct isolate_tensor
    ISOLATE_TENSOR_COPY = 9,   // shared: two struct isolate_tensor, source and destination
    ISOLATE_STREAM_NEW = 10,   // id, text: parameters, flag: whether there are any
    ISOLATE_STREAM_FREE = 11,  // id
    ISOLATE_COMPUTE = 12,      // id: stream, graph, size: struct isolate_change that lie in shared
    ISOLATE_GRAPH_FREE = 13,   // graph
    ISOLATE_BUFFER_USAGE = 14, // id, flag: enum ggml_backend_buffer_usage
    ISOLATE_TENSOR_POST = 15,  // as SET, flag: enum isolate_post; in the place of the text: struct
                               // isolate_tensor, the bytes or the second. No answer; the next use
                               // of contents, or of the tensor that is placed, fails if it failed
    ISOLATE_TENSOR_INIT = 16,  // shared: struct isolate_tensor; with a flag a second, which the
                               // first is a view of
    ISOLATE_WAIT = 17,         // for what was posted before
};

// What isn't waited for.
enum isolate_post {
    ISOLATE_POST_SET = 0,
    ISOLATE_POST_INIT = 1,  // as ISOLATE_TENSOR_INIT
    ISOLATE_POST_RESET = 2, // of the buffer that is described
};

// Where a buffer's bytes are.
enum isolate_memory {
    ISOLATE_MEMORY_HOST = 0, // shared, and the device computes on plain host memory
    ISOLATE_MEMORY_WRAP = 1, // shared, and the device wraps memory of the host
    ISOLATE_MEMORY_OWN = 2,  // the device's own
};

struct isolate_request {
    uint64_t number; // of the request; the answer has the same
    uint32_t kind;   // enum isolate_request_kind
    uint32_t flag;
    uint64_t id;
    uint64_t graph;
    uint64_t offset;
    uint64_t size;
    uint64_t n_tensors; // of a graph that is new, else 0
    uint64_t n_nodes;   // the first so many of them
    uint64_t structure; // of the graph, as in struct ggml_graph
    int64_t taken_ns;   // since the last answer came, see wait.h
    char text[ISOLATE_TEXT_SIZE];
};

struct isolate_answer {
    uint64_t number;
    int32_t status;     // enum ggml_host_status
    int32_t compute;    // enum ggml_status
    int64_t attaches;   // whether the buffer is told of its tensors, if it is new
    int64_t compute_ns; // that the device was busy with the graph, for measurements alone
    int64_t taken_ns;   // since the request came, see wait.h
    char text[ISOLATE_TEXT_SIZE];
};

// Which device of which plugin.
struct isolate_start {
    uint32_t parent; // process id
    uint32_t device; // index among the plugin's
    uint32_t is_builtin;
    uint32_t reserved;
    uint64_t layout; // GGML_PLUGIN_LAYOUT_HASH
    struct plugin_file_id file;
    uint8_t sha256[GGML_SHA256_SIZE];
    char plugin[GGML_PLUGIN_STRING_SIZE]; // name of one that is built in
    char version[64];                     // of the library
    char commit[64];
};

// A tensor without addresses. Numbers of others are indices into the same graph, -1: none.
struct isolate_tensor {
    int32_t type;
    int32_t op;
    int32_t flags;
    int32_t use_count;
    int64_t ne[GGML_MAX_DIMS];
    uint64_t nb[GGML_MAX_DIMS];
    int32_t op_params[GGML_MAX_OP_PARAMS / sizeof(int32_t)];
    int32_t src[GGML_MAX_SRC];
    int32_t view_src;
    int32_t has_data;
    uint64_t view_offs;
    uint64_t buffer;     // id, 0: none
    uint64_t offset;     // of its data from the buffer's base
    uint64_t init;       // number of its placing in a buffer that is told of its tensors, 0: none
    uint64_t owner_init; // the same of what it is a view of
    char name[GGML_MAX_NAME];
};

// A tensor of a graph that is new or differs from what the other side knows.
struct isolate_change {
    uint64_t index;
    struct isolate_tensor tensor;
};

#endif
