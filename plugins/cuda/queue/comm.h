// SPDX-License-Identifier: MIT
// Streams of the plugin's devices that exchange tensors (extension "ggml.comm").
#ifndef CUDA_QUEUE_COMM_H
#define CUDA_QUEUE_COMM_H

#include "ggml-ext-comm.h"
#include "queue/stream.h"

enum { CUDA_MAX_RANKS = GPU_MAX_OPERANDS };

// A tensor that was sent: a copy of it in memory of the sender's device. It is kept for the next
// one when it was received.
struct cuda_message {
    struct cuda_message *next;
    uint32_t from, to;
    bool is_received;
    struct ggml_tensor tensor; // data: a device address
    CUdeviceptr memory;
    size_t room;
    CUevent sent;     // of the sender's context
    CUevent received; // of the receiver's
};

struct ggml_comm_group {
    uint32_t n;
    enum ggml_host_status failed; // OK: it hasn't
    struct cuda_stream *streams[CUDA_MAX_RANKS];
    ggml_backend_t backends[CUDA_MAX_RANKS];
    bool reaches_all;                              // each device the memory of all
    struct cuda_scratch scratches[CUDA_MAX_RANKS]; // of each rank, for parts of others
    struct cuda_message *first;                    // in order of the sends
};

extern const struct ggml_extension_comm cuda_comm;

// Returns the status that ends an entry: a failure of work that may be queued in part is the
// group's. [stream]
int32_t cuda_comm_end(ggml_comm_group_t group, enum ggml_host_status status);
// OK if the group has not failed. [stream]
int32_t cuda_comm_begin(const struct ggml_comm_group *group);
int32_t cuda_comm_no_rank(uint32_t rank);
// Entries; and before the group goes. [stream]
int32_t cuda_comm_send(ggml_comm_group_t group, uint32_t from, uint32_t to,
                       const struct ggml_tensor *tensor);
int32_t cuda_comm_receive(ggml_comm_group_t group, uint32_t to, uint32_t from,
                          struct ggml_tensor *tensor);
void cuda_comm_drop_messages(ggml_comm_group_t group);

#endif
