// SPDX-License-Identifier: MIT
// Public functions of this area that are declared but not implemented yet: each answers `failure` and
// leaves a message. Rows only ever leave this list.
//
// GGML_PENDING(type, name, (parameters), failure)    GGML_PENDING_VOID(name, (parameters))
GGML_PENDING(struct ggml_tallocr, ggml_tallocr_new, (ggml_backend_buffer_t buffer), (struct
             ggml_tallocr){0})
GGML_PENDING(enum ggml_status, ggml_tallocr_alloc, (struct ggml_tallocr *talloc, struct ggml_tensor
             *tensor), GGML_STATUS_FAILED)
GGML_PENDING(ggml_gallocr_t, ggml_gallocr_new, (ggml_backend_buffer_type_t buft), NULL)
GGML_PENDING(ggml_gallocr_t, ggml_gallocr_new_n, (ggml_backend_buffer_type_t *bufts, int n_bufs),
             NULL)
GGML_PENDING_VOID(ggml_gallocr_free, (ggml_gallocr_t galloc))
GGML_PENDING(bool, ggml_gallocr_reserve, (ggml_gallocr_t galloc, struct ggml_cgraph *graph), false)
GGML_PENDING_VOID(ggml_gallocr_reserve_n_size, (ggml_gallocr_t galloc, struct ggml_cgraph *graph,
             const int *node_buffer_ids, const int *leaf_buffer_ids, size_t *sizes))
GGML_PENDING(bool, ggml_gallocr_reserve_n, (ggml_gallocr_t galloc, struct ggml_cgraph *graph, const
             int *node_buffer_ids, const int *leaf_buffer_ids), false)
GGML_PENDING(bool, ggml_gallocr_alloc_graph, (ggml_gallocr_t galloc, struct ggml_cgraph *graph),
             false)
GGML_PENDING(size_t, ggml_gallocr_get_buffer_size, (ggml_gallocr_t galloc, int buffer_id), 0)
GGML_PENDING(size_t, ggml_backend_alloc_ctx_tensors_from_buft_size, (struct ggml_context *ctx,
             ggml_backend_buffer_type_t buft), 0)
GGML_PENDING(struct ggml_backend_buffer *, ggml_backend_alloc_ctx_tensors_from_buft, (struct
             ggml_context *ctx, ggml_backend_buffer_type_t buft), NULL)
GGML_PENDING(struct ggml_backend_buffer *, ggml_backend_alloc_ctx_tensors, (struct ggml_context
             *ctx, ggml_backend_t backend), NULL)
