// SPDX-License-Identifier: MIT
// Public functions of this area that are declared but not implemented yet: each answers `failure` and
// leaves a message. Rows only ever leave this list.
//
// GGML_PENDING(type, name, (parameters), failure)    GGML_PENDING_VOID(name, (parameters))
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
