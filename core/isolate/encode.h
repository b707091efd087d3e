// SPDX-License-Identifier: MIT
// Encoding of graphs without addresses, and a record of those that the other process knows.
#ifndef GGML_ISOLATE_ENCODE_H
#define GGML_ISOLATE_ENCODE_H

#include "isolate/device.h"

enum { ENCODE_GRAPHS = 16 };

// A graph as it was when it was sent last.
struct known_graph {
    uint64_t id; // 0: none
    uint64_t used;
    uint64_t uid; // of the graph then
    int n_nodes;
    size_t n_tensors;
    const struct ggml_tensor **tensors; // the nodes, then what they refer to
    struct ggml_tensor *copies;         // of each
    int32_t *uses;                      // of the nodes
};

struct graph_cache {
    struct isolated_device *device;
    uint64_t generation;
    uint64_t clock;
    struct known_graph graphs[ENCODE_GRAPHS];
};

// Describes one tensor that refers to no other one.
void encode_tensor(const struct isolated_device *device, const struct ggml_tensor *tensor,
                   struct isolate_tensor *out_tensor);

// With the channel's lock held: fills in `request`, and shared memory, with what the other side
// needs to know of the graph to compute it. OUT_OF_MEMORY, UNSUPPORTED, INVALID_ARGUMENT,
// DEVICE_LOST. [stream]
enum ggml_host_status graph_cache_encode(struct graph_cache *cache, const struct ggml_graph *graph,
                                         struct isolate_request *request);
// Removes the graph of the request: the other side may not know it.
void graph_cache_drop(struct graph_cache *cache, uint64_t id);
void graph_cache_free(struct graph_cache *cache);

#endif
