// SPDX-License-Identifier: MIT
// Public functions of this area that are declared but not implemented yet: each answers `failure` and
// leaves a message. Rows only ever leave this list.
//
// GGML_PENDING(type, name, (parameters), failure)    GGML_PENDING_VOID(name, (parameters))
GGML_PENDING_VOID(ggml_print_object, (const struct ggml_object *obj))
GGML_PENDING_VOID(ggml_print_objects, (const struct ggml_context *ctx))
GGML_PENDING(int64_t, ggml_nelements, (const struct ggml_tensor *tensor), 0)
GGML_PENDING(int64_t, ggml_nrows, (const struct ggml_tensor *tensor), 0)
GGML_PENDING(size_t, ggml_nbytes, (const struct ggml_tensor *tensor), 0)
GGML_PENDING(size_t, ggml_nbytes_pad, (const struct ggml_tensor *tensor), 0)
GGML_PENDING(const char *, ggml_op_name, (enum ggml_op op), NULL)
GGML_PENDING(const char *, ggml_op_symbol, (enum ggml_op op), NULL)
GGML_PENDING(const char *, ggml_unary_op_name, (enum ggml_unary_op op), NULL)
GGML_PENDING(const char *, ggml_glu_op_name, (enum ggml_glu_op op), NULL)
GGML_PENDING(const char *, ggml_op_desc, (const struct ggml_tensor *t), NULL)
GGML_PENDING(size_t, ggml_element_size, (const struct ggml_tensor *tensor), 0)
GGML_PENDING(bool, ggml_is_transposed, (const struct ggml_tensor *tensor), false)
GGML_PENDING(bool, ggml_is_permuted, (const struct ggml_tensor *tensor), false)
GGML_PENDING(bool, ggml_is_empty, (const struct ggml_tensor *tensor), false)
GGML_PENDING(bool, ggml_is_view, (const struct ggml_tensor *tensor), false)
GGML_PENDING(bool, ggml_is_scalar, (const struct ggml_tensor *tensor), false)
GGML_PENDING(bool, ggml_is_vector, (const struct ggml_tensor *tensor), false)
GGML_PENDING(bool, ggml_is_matrix, (const struct ggml_tensor *tensor), false)
GGML_PENDING(bool, ggml_is_3d, (const struct ggml_tensor *tensor), false)
GGML_PENDING(int, ggml_n_dims, (const struct ggml_tensor *tensor), 0)
GGML_PENDING(bool, ggml_is_contiguous, (const struct ggml_tensor *tensor), false)
GGML_PENDING(bool, ggml_is_contiguous_0, (const struct ggml_tensor *tensor), false)
GGML_PENDING(bool, ggml_is_contiguous_1, (const struct ggml_tensor *tensor), false)
GGML_PENDING(bool, ggml_is_contiguous_2, (const struct ggml_tensor *tensor), false)
GGML_PENDING(bool, ggml_is_contiguous_to_1, (const struct ggml_tensor *tensor), false)
GGML_PENDING(bool, ggml_is_contiguous_to_2, (const struct ggml_tensor *tensor), false)
GGML_PENDING(bool, ggml_is_contiguous_to_3, (const struct ggml_tensor *tensor), false)
GGML_PENDING(bool, ggml_is_contiguously_allocated, (const struct ggml_tensor *tensor), false)
GGML_PENDING(bool, ggml_is_contiguous_channels, (const struct ggml_tensor *tensor), false)
GGML_PENDING(bool, ggml_is_contiguous_rows, (const struct ggml_tensor *tensor), false)
GGML_PENDING(bool, ggml_are_same_shape, (const struct ggml_tensor *t0, const struct ggml_tensor
             *t1), false)
GGML_PENDING(bool, ggml_are_same_stride, (const struct ggml_tensor *t0, const struct ggml_tensor
             *t1), false)
GGML_PENDING(bool, ggml_can_repeat, (const struct ggml_tensor *t0, const struct ggml_tensor *t1),
             false)
GGML_PENDING(size_t, ggml_tensor_overhead, (void), 0)
GGML_PENDING(struct ggml_context *, ggml_init, (struct ggml_init_params params), NULL)
GGML_PENDING_VOID(ggml_reset, (struct ggml_context *ctx))
GGML_PENDING_VOID(ggml_free, (struct ggml_context *ctx))
GGML_PENDING(size_t, ggml_used_mem, (const struct ggml_context *ctx), 0)
GGML_PENDING(bool, ggml_get_no_alloc, (struct ggml_context *ctx), false)
GGML_PENDING_VOID(ggml_set_no_alloc, (struct ggml_context *ctx, bool no_alloc))
GGML_PENDING(void *, ggml_get_mem_buffer, (const struct ggml_context *ctx), NULL)
GGML_PENDING(size_t, ggml_get_mem_size, (const struct ggml_context *ctx), 0)
GGML_PENDING(size_t, ggml_get_max_tensor_size, (const struct ggml_context *ctx), 0)
GGML_PENDING(struct ggml_tensor *, ggml_new_tensor, (struct ggml_context *ctx, enum ggml_type type,
             int n_dims, const int64_t *ne), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_new_tensor_1d, (struct ggml_context *ctx, enum ggml_type
             type, int64_t ne0), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_new_tensor_2d, (struct ggml_context *ctx, enum ggml_type
             type, int64_t ne0, int64_t ne1), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_new_tensor_3d, (struct ggml_context *ctx, enum ggml_type
             type, int64_t ne0, int64_t ne1, int64_t ne2), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_new_tensor_4d, (struct ggml_context *ctx, enum ggml_type
             type, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3), NULL)
GGML_PENDING(void *, ggml_new_buffer, (struct ggml_context *ctx, size_t nbytes), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_dup_tensor, (struct ggml_context *ctx, const struct
             ggml_tensor *src), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_view_tensor, (struct ggml_context *ctx, struct ggml_tensor
             *src), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_get_first_tensor, (const struct ggml_context *ctx), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_get_next_tensor, (const struct ggml_context *ctx, struct
             ggml_tensor *tensor), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_get_tensor, (struct ggml_context *ctx, const char *name),
             NULL)
GGML_PENDING_VOID(ggml_unravel_index, (const struct ggml_tensor *tensor, int64_t i, int64_t *i0,
             int64_t *i1, int64_t *i2, int64_t *i3))
GGML_PENDING(enum ggml_unary_op, ggml_get_unary_op, (const struct ggml_tensor *tensor), 0)
GGML_PENDING(enum ggml_glu_op, ggml_get_glu_op, (const struct ggml_tensor *tensor), 0)
GGML_PENDING(void *, ggml_get_data, (const struct ggml_tensor *tensor), NULL)
GGML_PENDING(float *, ggml_get_data_f32, (const struct ggml_tensor *tensor), NULL)
GGML_PENDING(const char *, ggml_get_name, (const struct ggml_tensor *tensor), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_set_name, (struct ggml_tensor *tensor, const char *name),
             NULL)
GGML_PENDING(struct ggml_tensor *, ggml_format_name, (struct ggml_tensor *tensor, const char *fmt,
             ...), NULL)
GGML_PENDING_VOID(ggml_set_input, (struct ggml_tensor *tensor))
GGML_PENDING_VOID(ggml_set_output, (struct ggml_tensor *tensor))
GGML_PENDING_VOID(ggml_set_param, (struct ggml_tensor *tensor))
GGML_PENDING_VOID(ggml_set_loss, (struct ggml_tensor *tensor))
GGML_PENDING(struct ggml_tensor *, ggml_build_forward_select, (struct ggml_cgraph *cgraph, struct
             ggml_tensor **tensors, int n_tensors, int idx), NULL)
GGML_PENDING_VOID(ggml_build_forward_expand, (struct ggml_cgraph *cgraph, struct ggml_tensor
             *tensor))
GGML_PENDING_VOID(ggml_build_forward_order, (struct ggml_cgraph *cgraph, struct ggml_tensor
             *tensor))
GGML_PENDING(struct ggml_cgraph *, ggml_new_graph, (struct ggml_context *ctx), NULL)
GGML_PENDING(struct ggml_cgraph *, ggml_new_graph_custom, (struct ggml_context *ctx, size_t size,
             bool grads), NULL)
GGML_PENDING(struct ggml_cgraph *, ggml_graph_dup, (struct ggml_context *ctx, struct ggml_cgraph
             *cgraph, bool force_grads), NULL)
GGML_PENDING_VOID(ggml_graph_cpy, (struct ggml_cgraph *src, struct ggml_cgraph *dst))
GGML_PENDING_VOID(ggml_graph_reset, (struct ggml_cgraph *cgraph))
GGML_PENDING_VOID(ggml_graph_clear, (struct ggml_cgraph *cgraph))
GGML_PENDING(int, ggml_graph_size, (struct ggml_cgraph *cgraph), 0)
GGML_PENDING(struct ggml_tensor *, ggml_graph_node, (struct ggml_cgraph *cgraph, int i), NULL)
GGML_PENDING(struct ggml_tensor **, ggml_graph_nodes, (struct ggml_cgraph *cgraph), NULL)
GGML_PENDING(int, ggml_graph_n_nodes, (struct ggml_cgraph *cgraph), 0)
GGML_PENDING_VOID(ggml_graph_add_node, (struct ggml_cgraph *cgraph, struct ggml_tensor *tensor))
GGML_PENDING(size_t, ggml_graph_overhead, (void), 0)
GGML_PENDING(size_t, ggml_graph_overhead_custom, (size_t size, bool grads), 0)
GGML_PENDING(struct ggml_tensor *, ggml_graph_get_tensor, (const struct ggml_cgraph *cgraph, const
             char *name), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_graph_get_grad, (const struct ggml_cgraph *cgraph, const
             struct ggml_tensor *node), NULL)
GGML_PENDING(struct ggml_tensor *, ggml_graph_get_grad_acc, (const struct ggml_cgraph *cgraph, const
             struct ggml_tensor *node), NULL)
GGML_PENDING_VOID(ggml_graph_print, (const struct ggml_cgraph *cgraph))
GGML_PENDING_VOID(ggml_graph_dump_dot, (const struct ggml_cgraph *gb, const struct ggml_cgraph
             *cgraph, const char *filename))
GGML_PENDING(struct ggml_tensor *, ggml_set_zero, (struct ggml_tensor *tensor), NULL)
GGML_PENDING(struct ggml_hash_set, ggml_hash_set_new, (size_t min_sz), (struct ggml_hash_set){0})
GGML_PENDING_VOID(ggml_hash_set_free, (struct ggml_hash_set *hash_set))
GGML_PENDING(size_t, ggml_hash_size, (size_t min_sz), 0)
GGML_PENDING_VOID(ggml_hash_set_reset, (struct ggml_hash_set *hash_set))
GGML_PENDING(struct ggml_cgraph, ggml_graph_view, (struct ggml_cgraph *cgraph, int i0, int i1),
             (struct ggml_cgraph){0})
GGML_PENDING(uint64_t, ggml_graph_next_uid, (void), 0)
GGML_PENDING(int32_t, ggml_node_get_use_count, (const struct ggml_cgraph *cgraph, int node_idx), 0)
GGML_PENDING(bool, ggml_node_has_n_uses, (const struct ggml_cgraph *cgraph, int node_idx, int32_t
             n_uses), false)
GGML_PENDING(bool, ggml_can_fuse_ext, (const struct ggml_cgraph *cgraph, const int *node_idxs, const
             enum ggml_op *ops, int num_ops), false)
GGML_PENDING(bool, ggml_can_fuse, (const struct ggml_cgraph *cgraph, int node_idx, const enum
             ggml_op *ops, int num_ops), false)
GGML_PENDING(bool, ggml_can_fuse_subgraph_ext, (const struct ggml_cgraph *cgraph, const int
             *node_idxs, int count, const enum ggml_op *ops, const int *outputs, int num_outputs),
             false)
GGML_PENDING(bool, ggml_can_fuse_subgraph, (const struct ggml_cgraph *cgraph, int node_idx, int
             count, const enum ggml_op *ops, const int *outputs, int num_outputs), false)
GGML_PENDING(bool, ggml_check_edges, (const struct ggml_cgraph *cgraph, int start_idx, const int
             (*edges)[3], int num_edges), false)
GGML_PENDING(bool, ggml_are_same_layout, (const struct ggml_tensor *a, const struct ggml_tensor *b),
             false)
GGML_PENDING(bool, ggml_op_can_inplace, (enum ggml_op op), false)
GGML_PENDING(bool, ggml_tensor_is_error, (const struct ggml_tensor *tensor), false)
GGML_PENDING(const char *, ggml_tensor_error, (const struct ggml_tensor *tensor), NULL)
GGML_PENDING(const char *, ggml_graph_error, (const struct ggml_cgraph *cgraph), NULL)
