// SPDX-License-Identifier: MIT
// ggml-alloc.h: linear and graph allocators.
#ifndef GGML_ALLOC_H
#define GGML_ALLOC_H

#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ggml_backend_buffer_type *ggml_backend_buffer_type_t;
typedef struct ggml_backend_buffer *ggml_backend_buffer_t;
typedef struct ggml_backend *ggml_backend_t;

// A linear tensor allocator over one buffer, by value.
struct ggml_tallocr {
    ggml_backend_buffer_t buffer;
    void *base;
    size_t alignment;
    size_t offset;
};

typedef struct ggml_gallocr *ggml_gallocr_t;

// --- linear allocator ----------------------------------------------------------------------------

// An allocator at the start of the buffer, which stays the caller's and must outlive its use. A
// NULL buffer gives one that has no room. [any-thread]
GGML_API struct ggml_tallocr ggml_tallocr_new(ggml_backend_buffer_t buffer);

// Places a tensor that has no data yet behind the previous one, aligned. ALLOC_FAILED without
// effect when it does not fit, FAILED when it is placed already, else the status of the buffer's
// initialisation. [stream]
GGML_API enum ggml_status ggml_tallocr_alloc(struct ggml_tallocr *talloc,
                                             struct ggml_tensor *tensor);

// --- graph allocator -----------------------------------------------------------------------------

// Plans the memory of a graph's tensors so that lifetimes which do not overlap share it, and owns
// the buffers. Leafs and inputs are placed first; outputs are never overwritten; tensors that have
// data are left alone. Build a new graph, or free its tensors' context, before allocating it again.

// An allocator over one buffer type, or over several that the ids below index; equal ones share a
// buffer. NULL on failure. [any-thread]
GGML_API ggml_gallocr_t ggml_gallocr_new(ggml_backend_buffer_type_t buft);
GGML_API ggml_gallocr_t ggml_gallocr_new_n(ggml_backend_buffer_type_t *bufts, int n_bufs);

// Ends it with its buffers: tensors placed there become invalid. NULL does nothing. [stream]
GGML_API void ggml_gallocr_free(ggml_gallocr_t galloc);

// Plans the graph and makes buffers large enough, growing but never shrinking them; touches no
// tensor. ids: buffer of each node and leaf, NULL means 0. false when memory runs out; the
// allocator then stays usable. Blocks. [stream]
GGML_API bool ggml_gallocr_reserve(ggml_gallocr_t galloc, struct ggml_cgraph *graph);
GGML_API bool ggml_gallocr_reserve_n(ggml_gallocr_t galloc, struct ggml_cgraph *graph,
                                     const int *node_buffer_ids, const int *leaf_buffer_ids);

// Plans only: sizes[i] receives the bytes that buffer i needs, 0 on failure. Buffers made before
// stay. [stream]
GGML_API void ggml_gallocr_reserve_n_size(ggml_gallocr_t galloc, struct ggml_cgraph *graph,
                                          const int *node_buffer_ids, const int *leaf_buffer_ids,
                                          size_t *sizes);

// Gives every tensor of the graph that needs it an address. With one buffer it reserves anew where
// the graph does not fit the plan; with several that is the caller's part: false, and nothing is
// placed. [stream]
GGML_API bool ggml_gallocr_alloc_graph(ggml_gallocr_t galloc, struct ggml_cgraph *graph);

// Bytes of a buffer; 0 if there is none or if a lower id shares it. [stream]
GGML_API size_t ggml_gallocr_get_buffer_size(ggml_gallocr_t galloc, int buffer_id);

// --- all tensors of a context --------------------------------------------------------------------

// Bytes that the next function would allocate; 0 on failure. [stream]
GGML_API size_t ggml_backend_alloc_ctx_tensors_from_buft_size(struct ggml_context *ctx,
                                                              ggml_backend_buffer_type_t buft);

// Allocates every tensor of a no_alloc context that has no data, and initialises its views. Answers
// the buffer, which the caller frees (one that stands for several where the type's maximum needs
// it), or NULL when nothing needed memory or on failure: then no tensor was changed. Usage is ANY.
// Blocks. [stream]
GGML_API struct ggml_backend_buffer *
ggml_backend_alloc_ctx_tensors_from_buft(struct ggml_context *ctx, ggml_backend_buffer_type_t buft);

// The same with the default buffer type of a stream's device. [stream]
GGML_API struct ggml_backend_buffer *ggml_backend_alloc_ctx_tensors(struct ggml_context *ctx,
                                                                    ggml_backend_t backend);

#ifdef __cplusplus
}
#endif

#endif
