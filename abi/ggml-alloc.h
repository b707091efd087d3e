// SPDX-License-Identifier: MIT
// ggml-alloc.h: linear and graph allocators, which give tensors memory in buffers.
//
// Which to use:
//   weights, inputs, caches    ggml_backend_alloc_ctx_tensors(): all tensors of a no_alloc context,
//                              each with memory of its own
//   results of a graph         ggml_gallocr: results that are not needed at the same time share
//                              memory; on several devices the scheduler (ggml-backend.h) does it
//   anything else              ggml_tallocr: one after the other in a buffer of the program's
//
// A graph with weights in one context and results in another:
//
//     ggml_gallocr_t galloc = ggml_gallocr_new(ggml_backend_get_default_buffer_type(stream));
//     if (!galloc || !ggml_gallocr_reserve(galloc, build(largest_batch))) return fail();
//
//     for (;;) {
//         ggml_reset(ctx_graph); // forgets the last graph and its tensors, not the weights
//         struct ggml_cgraph *graph = build(batch); // in ctx_graph, which is no_alloc
//         if (!ggml_gallocr_alloc_graph(galloc, graph)) return fail();
//         ggml_backend_tensor_set(tokens, batch->tokens, 0, ggml_nbytes(tokens)); // set_input()
//         if (ggml_backend_graph_compute(stream, graph) != GGML_STATUS_SUCCESS) return fail();
//         ggml_backend_tensor_get(logits, out, 0, ggml_nbytes(logits)); // set_output()
//     }
//     ggml_gallocr_free(galloc);
#ifndef GGML_ALLOC_H
#define GGML_ALLOC_H

#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ggml_backend_buffer_type *ggml_backend_buffer_type_t; // kind of memory
typedef struct ggml_backend_buffer *ggml_backend_buffer_t;           // piece of it
typedef struct ggml_backend *ggml_backend_t;                         // stream: ggml-backend.h

// A linear tensor allocator over one buffer, by value: copying it forks it. Members are for
// reading.
struct ggml_tallocr {
    ggml_backend_buffer_t buffer; // the caller's; NULL: no room
    void *base;                   // its first address
    size_t alignment;             // bytes, a power of two
    size_t offset;                // bytes from base at which the next tensor goes, aligned
};

// A graph allocator. Opaque.
typedef struct ggml_gallocr *ggml_gallocr_t;

// --- linear allocator ----------------------------------------------------------------------------

// An allocator at the start of the buffer, which stays the caller's and must outlive its use. A
// NULL buffer gives one that has no room, with a message. Two over one buffer overlap. [any-thread]
GGML_API struct ggml_tallocr ggml_tallocr_new(ggml_backend_buffer_t buffer);

// Places a tensor that has no data yet behind the previous one, aligned. ALLOC_FAILED without
// effect when it does not fit (ggml 0.27 aborts), FAILED when it is placed already, is a view or
// NULL, else the status of the buffer's initialisation. There is no way to give memory back.
// [stream]
GGML_API enum ggml_status ggml_tallocr_alloc(struct ggml_tallocr *talloc,
                                             struct ggml_tensor *tensor);

// --- graph allocator -----------------------------------------------------------------------------

// Plans the memory of a graph's tensors so that lifetimes which do not overlap share it, and owns
// the buffers. Leafs and inputs are placed first; outputs are never overwritten; tensors that have
// data are left alone. Build a new graph, or free its tensors' context, before allocating it again.

// An allocator over one buffer type, or over n_bufs of them that the ids below index; equal ones
// share a buffer. It makes no buffer yet. The array is needed during the call only. NULL on
// failure. [any-thread]
GGML_API ggml_gallocr_t ggml_gallocr_new(ggml_backend_buffer_type_t buft);
GGML_API ggml_gallocr_t ggml_gallocr_new_n(ggml_backend_buffer_type_t *bufts, int n_bufs);

// Ends it with its buffers: tensors placed there become invalid. No queued work may still use them.
// NULL does nothing. [stream]
GGML_API void ggml_gallocr_free(ggml_gallocr_t galloc);

// Plans the graph and makes buffers large enough; touches no tensor. A buffer that is too small is
// freed and then made as planned: what was placed in it becomes invalid. Where its type limits
// sizes it consists of several, of which then none stays. One that is large enough stays as it is.
// ids: buffer of each node and leaf, by index in the graph; NULL means 0. A node that is computed
// in the memory of a source lies where that lies, whatever its id. false when memory runs out; the
// allocator then stays usable. Reserve with the largest graph at start-up, so that later ones
// allocate nothing. Blocks. [stream]
GGML_API bool ggml_gallocr_reserve(ggml_gallocr_t galloc, struct ggml_cgraph *graph);
GGML_API bool ggml_gallocr_reserve_n(ggml_gallocr_t galloc, struct ggml_cgraph *graph,
                                     const int *node_buffer_ids, const int *leaf_buffer_ids);

// Plans only: sizes[i] receives the bytes that buffer i needs, 0 on failure. Buffers made before
// stay, and so does the plan in use. Ids that share a buffer report it each. [stream]
GGML_API void ggml_gallocr_reserve_n_size(ggml_gallocr_t galloc, struct ggml_cgraph *graph,
                                          const int *node_buffer_ids, const int *leaf_buffer_ids,
                                          size_t *sizes);

// Gives every tensor of the graph that needs it an address. With one buffer it reserves again where
// the graph does not fit the plan; with several that is the caller's part: false, and nothing is
// placed. A graph fits if it is like the reserved one, node by node: sources, lifetimes and flags
// agree and nothing needs more bytes. A graph in error is refused. Inputs can be set afterwards.
// Moves no data; linear in the number of nodes. [stream]
GGML_API bool ggml_gallocr_alloc_graph(ggml_gallocr_t galloc, struct ggml_cgraph *graph);

// Bytes of a buffer; 0 if there is none or if a lower id shares it, so that the sum over ids is the
// total. [stream]
GGML_API size_t ggml_gallocr_get_buffer_size(ggml_gallocr_t galloc, int buffer_id);

// --- all tensors of a context --------------------------------------------------------------------

// The tensors get what their buffer type says, one after the other in order of creation, aligned.

// Bytes that the next function would allocate; 0 on failure, with a message, and when nothing needs
// memory. [stream]
GGML_API size_t ggml_backend_alloc_ctx_tensors_from_buft_size(struct ggml_context *ctx,
                                                              ggml_backend_buffer_type_t buft);

// Allocates every tensor of a no_alloc context that has no data, and initialises its views. Returns
// the buffer, which the caller frees (one that stands for several where the type's maximum needs
// it), or NULL when nothing needed memory (without a message) or on failure: then no tensor was
// changed. Usage is ANY: set WEIGHTS for weights. Content is undefined. The buffer and the context
// are independent: end both, in any order, after the last use. Blocks. [stream]
GGML_API struct ggml_backend_buffer *
ggml_backend_alloc_ctx_tensors_from_buft(struct ggml_context *ctx, ggml_backend_buffer_type_t buft);

// The same with the default buffer type of a stream's device. The stream may be freed before the
// buffer. [stream]
GGML_API struct ggml_backend_buffer *ggml_backend_alloc_ctx_tensors(struct ggml_context *ctx,
                                                                    ggml_backend_t backend);

#ifdef __cplusplus
}
#endif

#endif
