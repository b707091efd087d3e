// SPDX-License-Identifier: MIT
// What a recording of a graph depends on, as bytes: two graphs with equal keys are computed by the
// same recording.
#ifndef GPU_GRAPH_KEY_H
#define GPU_GRAPH_KEY_H

#include <stdint.h>

#include "ggml-graph.h"
#include "ggml-impl.h"

struct gpu_graph_key {
    uint64_t *words;
    size_t n, max;
    uint64_t hash;
};

// Makes the key again in the memory that it has. buffer_id returns a number that stands for the
// memory of a tensor. False: no memory. [stream]
bool gpu_graph_key_make(struct gpu_graph_key *key, const struct ggml_graph *graph,
                        uint64_t (*buffer_id)(const struct ggml_tensor *tensor));
// The same of a graph whose structure is known, with that in the place of what graphs of equal
// structure have alike: where its tensors lie is the rest. Such keys are equal only among
// themselves. False: no memory. [stream]
bool gpu_graph_key_make_places(struct gpu_graph_key *key, const struct ggml_graph *graph,
                               uint64_t (*buffer_id)(const struct ggml_tensor *tensor));
bool gpu_graph_key_equal(const struct gpu_graph_key *a, const struct gpu_graph_key *b);
// A copy, without room to spare where it had none; out_copy is a key. False: no memory.
bool gpu_graph_key_copy(struct gpu_graph_key *out_copy, const struct gpu_graph_key *key);
void gpu_graph_key_free(struct gpu_graph_key *key);

#endif
