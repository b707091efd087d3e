// SPDX-License-Identifier: MIT
// Public functions of this area that are declared but not implemented yet: each answers `failure` and
// leaves a message. Rows only ever leave this list.
//
// GGML_PENDING(type, name, (parameters), failure)    GGML_PENDING_VOID(name, (parameters))
GGML_PENDING(const char *, ggml_backend_buft_name, (ggml_backend_buffer_type_t buft), NULL)
GGML_PENDING(ggml_backend_buffer_t, ggml_backend_buft_alloc_buffer, (ggml_backend_buffer_type_t
             buft, size_t size), NULL)
GGML_PENDING(size_t, ggml_backend_buft_get_alignment, (ggml_backend_buffer_type_t buft), 0)
GGML_PENDING(size_t, ggml_backend_buft_get_max_size, (ggml_backend_buffer_type_t buft), 0)
GGML_PENDING(size_t, ggml_backend_buft_get_alloc_size, (ggml_backend_buffer_type_t buft, const
             struct ggml_tensor *tensor), 0)
GGML_PENDING(bool, ggml_backend_buft_is_host, (ggml_backend_buffer_type_t buft), false)
GGML_PENDING(ggml_backend_dev_t, ggml_backend_buft_get_device, (ggml_backend_buffer_type_t buft),
             NULL)
GGML_PENDING(const char *, ggml_backend_buffer_name, (ggml_backend_buffer_t buffer), NULL)
GGML_PENDING_VOID(ggml_backend_buffer_free, (ggml_backend_buffer_t buffer))
GGML_PENDING(void *, ggml_backend_buffer_get_base, (ggml_backend_buffer_t buffer), NULL)
GGML_PENDING(size_t, ggml_backend_buffer_get_size, (ggml_backend_buffer_t buffer), 0)
GGML_PENDING(enum ggml_status, ggml_backend_buffer_init_tensor, (ggml_backend_buffer_t buffer,
             struct ggml_tensor *tensor), GGML_STATUS_FAILED)
GGML_PENDING(size_t, ggml_backend_buffer_get_alignment, (ggml_backend_buffer_t buffer), 0)
GGML_PENDING(size_t, ggml_backend_buffer_get_max_size, (ggml_backend_buffer_t buffer), 0)
GGML_PENDING(size_t, ggml_backend_buffer_get_alloc_size, (ggml_backend_buffer_t buffer, const struct
             ggml_tensor *tensor), 0)
GGML_PENDING_VOID(ggml_backend_buffer_clear, (ggml_backend_buffer_t buffer, uint8_t value))
GGML_PENDING(bool, ggml_backend_buffer_is_host, (ggml_backend_buffer_t buffer), false)
GGML_PENDING_VOID(ggml_backend_buffer_set_usage, (ggml_backend_buffer_t buffer, enum
             ggml_backend_buffer_usage usage))
GGML_PENDING(enum ggml_backend_buffer_usage, ggml_backend_buffer_get_usage, (ggml_backend_buffer_t
             buffer), 0)
GGML_PENDING(ggml_backend_buffer_type_t, ggml_backend_buffer_get_type, (ggml_backend_buffer_t
             buffer), NULL)
GGML_PENDING_VOID(ggml_backend_buffer_reset, (ggml_backend_buffer_t buffer))
GGML_PENDING_VOID(ggml_backend_tensor_copy, (const struct ggml_tensor *src, struct ggml_tensor
             *dst))
GGML_PENDING(ggml_guid_t, ggml_backend_guid, (ggml_backend_t backend), NULL)
GGML_PENDING(const char *, ggml_backend_name, (ggml_backend_t backend), NULL)
GGML_PENDING_VOID(ggml_backend_free, (ggml_backend_t backend))
GGML_PENDING(ggml_backend_buffer_type_t, ggml_backend_get_default_buffer_type, (ggml_backend_t
             backend), NULL)
GGML_PENDING(ggml_backend_buffer_t, ggml_backend_alloc_buffer, (ggml_backend_t backend, size_t
             size), NULL)
GGML_PENDING(size_t, ggml_backend_get_alignment, (ggml_backend_t backend), 0)
GGML_PENDING(size_t, ggml_backend_get_max_size, (ggml_backend_t backend), 0)
GGML_PENDING_VOID(ggml_backend_tensor_set_async, (ggml_backend_t backend, struct ggml_tensor
             *tensor, const void *data, size_t offset, size_t size))
GGML_PENDING_VOID(ggml_backend_tensor_get_async, (ggml_backend_t backend, const struct ggml_tensor
             *tensor, void *data, size_t offset, size_t size))
GGML_PENDING_VOID(ggml_backend_tensor_set_2d_async, (ggml_backend_t backend, struct ggml_tensor
             *tensor, const void *data, size_t offset, size_t size, size_t n_copies, size_t
             stride_tensor, size_t stride_data))
GGML_PENDING_VOID(ggml_backend_tensor_get_2d_async, (ggml_backend_t backend, const struct
             ggml_tensor *tensor, void *data, size_t offset, size_t size, size_t n_copies, size_t
             stride_tensor, size_t stride_data))
GGML_PENDING_VOID(ggml_backend_tensor_set, (struct ggml_tensor *tensor, const void *data, size_t
             offset, size_t size))
GGML_PENDING_VOID(ggml_backend_tensor_get, (const struct ggml_tensor *tensor, void *data, size_t
             offset, size_t size))
GGML_PENDING_VOID(ggml_backend_tensor_set_2d, (struct ggml_tensor *tensor, const void *data, size_t
             offset, size_t size, size_t n_copies, size_t stride_tensor, size_t stride_data))
GGML_PENDING_VOID(ggml_backend_tensor_get_2d, (const struct ggml_tensor *tensor, void *data, size_t
             offset, size_t size, size_t n_copies, size_t stride_tensor, size_t stride_data))
GGML_PENDING_VOID(ggml_backend_tensor_memset, (struct ggml_tensor *tensor, uint8_t value, size_t
             offset, size_t size))
GGML_PENDING_VOID(ggml_backend_synchronize, (ggml_backend_t backend))
GGML_PENDING(ggml_backend_graph_plan_t, ggml_backend_graph_plan_create, (ggml_backend_t backend,
             struct ggml_cgraph *cgraph), NULL)
GGML_PENDING_VOID(ggml_backend_graph_plan_free, (ggml_backend_t backend, ggml_backend_graph_plan_t
             plan))
GGML_PENDING(enum ggml_status, ggml_backend_graph_plan_compute, (ggml_backend_t backend,
             ggml_backend_graph_plan_t plan), GGML_STATUS_FAILED)
GGML_PENDING(enum ggml_status, ggml_backend_graph_compute, (ggml_backend_t backend, struct
             ggml_cgraph *cgraph), GGML_STATUS_FAILED)
GGML_PENDING(enum ggml_status, ggml_backend_graph_compute_async, (ggml_backend_t backend, struct
             ggml_cgraph *cgraph), GGML_STATUS_FAILED)
GGML_PENDING(bool, ggml_backend_supports_op, (ggml_backend_t backend, const struct ggml_tensor *op),
             false)
GGML_PENDING(bool, ggml_backend_supports_buft, (ggml_backend_t backend, ggml_backend_buffer_type_t
             buft), false)
GGML_PENDING(bool, ggml_backend_offload_op, (ggml_backend_t backend, const struct ggml_tensor *op),
             false)
GGML_PENDING_VOID(ggml_backend_tensor_copy_async, (ggml_backend_t backend_src, ggml_backend_t
             backend_dst, const struct ggml_tensor *src, struct ggml_tensor *dst))
GGML_PENDING(ggml_backend_dev_t, ggml_backend_get_device, (ggml_backend_t backend), NULL)
GGML_PENDING(ggml_backend_event_t, ggml_backend_event_new, (ggml_backend_dev_t device), NULL)
GGML_PENDING_VOID(ggml_backend_event_free, (ggml_backend_event_t event))
GGML_PENDING_VOID(ggml_backend_event_record, (ggml_backend_event_t event, ggml_backend_t backend))
GGML_PENDING_VOID(ggml_backend_event_synchronize, (ggml_backend_event_t event))
GGML_PENDING_VOID(ggml_backend_event_wait, (ggml_backend_t backend, ggml_backend_event_t event))
GGML_PENDING(const char *, ggml_backend_dev_name, (ggml_backend_dev_t device), NULL)
GGML_PENDING(const char *, ggml_backend_dev_description, (ggml_backend_dev_t device), NULL)
GGML_PENDING_VOID(ggml_backend_dev_memory, (ggml_backend_dev_t device, size_t *free, size_t *total))
GGML_PENDING(enum ggml_backend_dev_type, ggml_backend_dev_type, (ggml_backend_dev_t device), 0)
GGML_PENDING_VOID(ggml_backend_dev_get_props, (ggml_backend_dev_t device, struct
             ggml_backend_dev_props *props))
GGML_PENDING(ggml_backend_reg_t, ggml_backend_dev_backend_reg, (ggml_backend_dev_t device), NULL)
GGML_PENDING(ggml_backend_t, ggml_backend_dev_init, (ggml_backend_dev_t device, const char *params),
             NULL)
GGML_PENDING(ggml_backend_buffer_type_t, ggml_backend_dev_buffer_type, (ggml_backend_dev_t device),
             NULL)
GGML_PENDING(ggml_backend_buffer_type_t, ggml_backend_dev_host_buffer_type, (ggml_backend_dev_t
             device), NULL)
GGML_PENDING(ggml_backend_buffer_t, ggml_backend_dev_buffer_from_host_ptr, (ggml_backend_dev_t
             device, void *ptr, size_t size, size_t max_tensor_size), NULL)
GGML_PENDING(bool, ggml_backend_dev_supports_op, (ggml_backend_dev_t device, const struct
             ggml_tensor *op), false)
GGML_PENDING(bool, ggml_backend_dev_supports_buft, (ggml_backend_dev_t device,
             ggml_backend_buffer_type_t buft), false)
GGML_PENDING(bool, ggml_backend_dev_offload_op, (ggml_backend_dev_t device, const struct ggml_tensor
             *op), false)
GGML_PENDING(struct ggml_backend_graph_copy, ggml_backend_graph_copy, (ggml_backend_t backend,
             struct ggml_cgraph *graph), (struct ggml_backend_graph_copy){0})
GGML_PENDING_VOID(ggml_backend_graph_copy_free, (struct ggml_backend_graph_copy copy))
GGML_PENDING(bool, ggml_backend_compare_graph_backend, (ggml_backend_t backend1, ggml_backend_t
             backend2, struct ggml_cgraph *graph, ggml_backend_eval_callback callback, void
             *user_data, struct ggml_tensor const *const *test_nodes, size_t num_test_nodes), false)
GGML_PENDING(enum ggml_status, ggml_backend_tensor_alloc, (ggml_backend_buffer_t buffer, struct
             ggml_tensor *tensor, void *addr), GGML_STATUS_FAILED)
GGML_PENDING(enum ggml_status, ggml_backend_view_init, (struct ggml_tensor *tensor),
             GGML_STATUS_FAILED)
GGML_PENDING(ggml_backend_buffer_t, ggml_backend_cpu_buffer_from_ptr, (void *ptr, size_t size),
             NULL)
GGML_PENDING(ggml_backend_buffer_type_t, ggml_backend_cpu_buffer_type, (void), NULL)
GGML_PENDING(ggml_backend_buffer_t, ggml_backend_buffer_init, (ggml_backend_buffer_type_t buft,
             struct ggml_backend_buffer_i iface, void *context, size_t size), NULL)
GGML_PENDING(bool, ggml_backend_buffer_copy_tensor, (const struct ggml_tensor *src, struct
             ggml_tensor *dst), false)
GGML_PENDING(ggml_backend_buffer_t, ggml_backend_multi_buffer_alloc_buffer, (ggml_backend_buffer_t
             *buffers, size_t n_buffers), NULL)
GGML_PENDING(bool, ggml_backend_buffer_is_multi_buffer, (ggml_backend_buffer_t buffer), false)
GGML_PENDING_VOID(ggml_backend_multi_buffer_set_usage, (ggml_backend_buffer_t buffer, enum
             ggml_backend_buffer_usage usage))
