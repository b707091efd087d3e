// SPDX-License-Identifier: MIT
// The process of an isolated device: what it holds for the application.
#ifndef GGML_ISOLATE_SERVE_H
#define GGML_ISOLATE_SERVE_H

#include "ggml-graph.h"
#include "ggml-impl.h"
#include "isolate/protocol.h"

// Serves until the application closes its end, and returns the exit status. [init]
int isolate_serve(const char *plugin_path);

// One that init_tensor has attached something to, or has failed for. It lives as long as that,
// since the device may have taken its address.
struct served_tensor {
    uint64_t init;
    struct ggml_tensor tensor;
    struct ggml_tensor owner; // what it is a view of, where nothing is attached to that
    bool has_views;           // what those have of which nothing is kept:
    void *of_views;
    enum ggml_host_status failed; // OK, or why it can't be used, with a reason
    char *reason;
};

struct served_buffer {
    uint64_t id;
    ggml_backend_buffer_t buffer;
    void *mapped; // shared memory, NULL if the device has its own
    size_t size;
    struct served_tensor **tensors; // by rising numbers
    size_t n_tensors, capacity;
    bool has_forgotten; // for lack of memory: no tensor can be used until it is reset
};

// What was attached to a tensor of a graph is found by these.
struct served_name {
    uint64_t buffer; // 0: none
    uint64_t init, owner_init;
};

struct served_graph {
    uint64_t id;
    struct ggml_context *ctx;
    struct ggml_graph view;       // over the first tensors
    struct ggml_tensor **tensors; // nodes, then the others
    int32_t *use_counts;          // of the nodes
    struct served_name *names;    // of the tensors
    uint64_t attached;            // of the server, when what is attached was looked up
    size_t n_tensors;
};

struct served_stream {
    uint64_t id;
    ggml_backend_t backend;
};

struct server {
    struct host_plugin *plugin;
    ggml_backend_dev_t device;
    char *shared;
    size_t shared_size;
    struct served_buffer *buffers;
    size_t n_buffers;
    struct served_graph *graphs;
    size_t n_graphs;
    struct served_stream *streams;
    size_t n_streams;
    uint64_t attached; // rises with each change of what is attached to tensors
    // Failure of a request that was not answered, until a request that uses contents is.
    enum ggml_host_status late;
    char late_text[ISOLATE_TEXT_SIZE];
};

// NULL with a message when there is none. [stream]
struct served_buffer *server_buffer(const struct server *server, uint64_t id);
// Appends room for an item of so many bytes to a list; NULL without memory. [stream]
void *server_append(void **list, size_t *count, size_t size);

// Places one tensor that refers to no other one. [stream]
bool serve_tensor(const struct server *server, const struct isolate_tensor *from,
                  struct ggml_tensor *out_tensor);
// Calls init_tensor for a tensor that was placed, and keeps what it attaches, or why it fails: what
// uses the tensor then fails. `owner` is what the tensor is a view of, or NULL. [stream]
bool serve_init(struct server *server, const struct isolate_tensor *from,
                const struct isolate_tensor *owner);
// Frees what was kept of the buffer's tensors. [stream]
void serve_tensors_free(struct server *server, struct served_buffer *held);
// Makes the graph of a request, or changes one that is known. NULL on failure. [stream]
struct served_graph *serve_graph(struct server *server, const struct isolate_request *request);
// An id of 0 frees all. [stream]
void serve_graph_free(struct server *server, uint64_t id);

#endif
