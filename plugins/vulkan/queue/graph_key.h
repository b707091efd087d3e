// SPDX-License-Identifier: MIT
// What a recording of a graph depends on, as bytes: two graphs with equal keys are computed by the
// same recording.
#ifndef VK_GRAPH_KEY_H
#define VK_GRAPH_KEY_H

#include <stdint.h>

#include "plan/kernel.h"

struct vk_graph_key {
    uint64_t *words;
    size_t n, max;
    uint64_t hash;
};

// Makes the key anew in the memory that it has. buffer_id answers a number that stands for the
// memory of a tensor. False: no memory. [stream]
bool vk_graph_key_make(struct vk_graph_key *key, const struct ggml_graph *graph,
                       uint64_t (*buffer_id)(const struct ggml_tensor *tensor));
// The same of a graph whose structure is known, with that in the place of what graphs of equal
// structure have alike: where its tensors lie is the rest. Such keys are equal only among
// themselves. False: no memory. [stream]
bool vk_graph_key_make_places(struct vk_graph_key *key, const struct ggml_graph *graph,
                              uint64_t (*buffer_id)(const struct ggml_tensor *tensor));
bool vk_graph_key_equal(const struct vk_graph_key *a, const struct vk_graph_key *b);
// A copy, without room to spare where it had none; out_copy is a key. False: no memory.
bool vk_graph_key_copy(struct vk_graph_key *out_copy, const struct vk_graph_key *key);
void vk_graph_key_free(struct vk_graph_key *key);

#endif
