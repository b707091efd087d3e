// SPDX-License-Identifier: MIT
// A transformer of any size, for idle devices: its weights have addresses but no data.
#ifndef GGML_BENCH_MODEL_H
#define GGML_BENCH_MODEL_H

#include <stdint.h>

#include "ggml-backend.h"

struct layer;

struct model {
    int n_layers;
    struct layer *layers;
    struct ggml_context *ctx;
    ggml_backend_buffer_t *buffers; // of weights, by device
    int n_buffers;
};

// About n_nodes nodes; layers spread evenly over all devices but device 0, the CPU. To be freed on
// failure too.
bool model_init(struct model *model, int n_nodes, int n_devices);
void model_free(struct model *model);

// What ggml_new_graph_custom() needs to hold a graph of it, and bytes of a context for one.
size_t model_graph_size(const struct model *model);
size_t model_graph_bytes(const struct model *model);

// The tensors of one pass, of which the last is returned. `structure` chooses the variant of
// each layer, n_tokens the extents.
struct ggml_tensor *model_tensors(const struct model *model, struct ggml_context *ctx, int n_tokens,
                                  uint32_t structure);
// A graph of them in a new context over the memory of model_graph_bytes().
struct ggml_cgraph *model_graph(const struct model *model, int n_tokens, uint32_t structure,
                                void *memory, struct ggml_context **out_ctx);

#endif
