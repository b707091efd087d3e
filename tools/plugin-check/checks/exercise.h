// SPDX-License-Identifier: MIT
// What an application does with a plugin, in short.
#ifndef PLUGIN_CHECK_EXERCISE_H
#define PLUGIN_CHECK_EXERCISE_H

#include "subject.h"

// Enumerates the devices, and on each allocates and fills a buffer, makes a stream, computes an
// addition if the device claims it, and frees everything. What fails is passed over; returns how
// many devices made a stream, which added right if it was to add. [init]
int exercise(const struct subject *subject);

// A context with two tensors of n numbers and their sum, without data; freed with ggml_free.
struct sum_graph {
    struct ggml_context *ctx;
    struct ggml_tensor *a;
    struct ggml_tensor *b;
    struct ggml_tensor *sum;
    struct ggml_cgraph *graph;
    ggml_backend_buffer_t buffer;
};
bool sum_graph_new(struct sum_graph *out_graph, int64_t n);
// The same with the graph and its tensors in memory of the caller, sum_graph_bytes() of it.
bool sum_graph_new_in(struct sum_graph *out_graph, int64_t n, void *memory);
size_t sum_graph_bytes(void);
// Places the tensors in a new buffer of the device's default type.
bool sum_graph_place(struct sum_graph *graph, ggml_backend_dev_t device);
void sum_graph_free(struct sum_graph *graph);

#endif
