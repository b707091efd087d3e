// SPDX-License-Identifier: MIT
// Public functions of this area that are declared but not implemented yet: each answers `failure` and
// leaves a message. Rows only ever leave this list.
//
// GGML_PENDING(type, name, (parameters), failure)    GGML_PENDING_VOID(name, (parameters))
GGML_PENDING(ggml_backend_sched_t, ggml_backend_sched_new, (ggml_backend_t *backends,
             ggml_backend_buffer_type_t *bufts, int n_backends, size_t graph_size, bool parallel,
             bool op_offload), NULL)
GGML_PENDING_VOID(ggml_backend_sched_free, (ggml_backend_sched_t sched))
GGML_PENDING_VOID(ggml_backend_sched_reserve_size, (ggml_backend_sched_t sched, struct ggml_cgraph
             *measure_graph, size_t *sizes))
GGML_PENDING(bool, ggml_backend_sched_reserve, (ggml_backend_sched_t sched, struct ggml_cgraph
             *measure_graph), false)
GGML_PENDING(int, ggml_backend_sched_get_n_backends, (ggml_backend_sched_t sched), 0)
GGML_PENDING(ggml_backend_t, ggml_backend_sched_get_backend, (ggml_backend_sched_t sched, int i),
             NULL)
GGML_PENDING(int, ggml_backend_sched_get_n_splits, (ggml_backend_sched_t sched), 0)
GGML_PENDING(int, ggml_backend_sched_get_n_copies, (ggml_backend_sched_t sched), 0)
GGML_PENDING(ggml_backend_buffer_type_t, ggml_backend_sched_get_buffer_type, (ggml_backend_sched_t
             sched, ggml_backend_t backend), NULL)
GGML_PENDING(size_t, ggml_backend_sched_get_buffer_size, (ggml_backend_sched_t sched, ggml_backend_t
             backend), 0)
GGML_PENDING_VOID(ggml_backend_sched_set_tensor_backend, (ggml_backend_sched_t sched, struct
             ggml_tensor *node, ggml_backend_t backend))
GGML_PENDING(ggml_backend_t, ggml_backend_sched_get_tensor_backend, (ggml_backend_sched_t sched,
             struct ggml_tensor *node), NULL)
GGML_PENDING_VOID(ggml_backend_sched_split_graph, (ggml_backend_sched_t sched, struct ggml_cgraph
             *graph))
GGML_PENDING(bool, ggml_backend_sched_alloc_graph, (ggml_backend_sched_t sched, struct ggml_cgraph
             *graph), false)
GGML_PENDING(enum ggml_status, ggml_backend_sched_graph_compute, (ggml_backend_sched_t sched, struct
             ggml_cgraph *graph), GGML_STATUS_FAILED)
GGML_PENDING(enum ggml_status, ggml_backend_sched_graph_compute_async, (ggml_backend_sched_t sched,
             struct ggml_cgraph *graph), GGML_STATUS_FAILED)
GGML_PENDING_VOID(ggml_backend_sched_synchronize, (ggml_backend_sched_t sched))
GGML_PENDING_VOID(ggml_backend_sched_reset, (ggml_backend_sched_t sched))
GGML_PENDING_VOID(ggml_backend_sched_set_eval_callback, (ggml_backend_sched_t sched,
             ggml_backend_sched_eval_callback callback, void *user_data))
GGML_PENDING(const char *, ggml_backend_meta_split_axis_name, (enum ggml_backend_meta_split_axis
             split_axis), NULL)
GGML_PENDING(ggml_backend_dev_t, ggml_backend_meta_device, (ggml_backend_dev_t *devs, size_t n_devs,
             ggml_backend_meta_get_split_state_t get_split_state, void *get_split_state_ud), NULL)
