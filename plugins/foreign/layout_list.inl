// SPDX-License-Identifier: MIT
// Where ggml's binaries have the members of their objects, by generation of their interface. An
// object is a row of pointers: each number is an index of such a slot.
//
// LAYOUT_ROW(member, version_2, version_3)
//   version_2  GGML_BACKEND_API_VERSION 2 as of ggml 0.21
//   version_3  GGML_BACKEND_API_VERSION 3, which ggml 0.27 has
LAYOUT_ROW(buft_get_name, 0, 0)
LAYOUT_ROW(buft_alloc_buffer, 1, 1)
LAYOUT_ROW(buft_get_alignment, 2, 3)
LAYOUT_ROW(buft_get_max_size, 3, 4)
LAYOUT_ROW(buft_get_alloc_size, 4, 5)
LAYOUT_ROW(buft_is_host, 5, 7)
LAYOUT_ROW(buft_device, 6, 8)

LAYOUT_ROW(buffer_free, 0, 0)
LAYOUT_ROW(buffer_get_base, 1, 1)
LAYOUT_ROW(buffer_init_tensor, 2, 2)
LAYOUT_ROW(buffer_memset_tensor, 3, 3)
LAYOUT_ROW(buffer_set_tensor, 4, 4)
LAYOUT_ROW(buffer_get_tensor, 5, 5)
LAYOUT_ROW(buffer_set_tensor_2d, 6, 6)
LAYOUT_ROW(buffer_get_tensor_2d, 7, 7)
LAYOUT_ROW(buffer_cpy_tensor, 8, 8)
LAYOUT_ROW(buffer_clear, 9, 9)
LAYOUT_ROW(buffer_reset, 10, 10)
LAYOUT_ROW(buffer_buft, 11, 11)
LAYOUT_ROW(buffer_size, 13, 13)

LAYOUT_ROW(stream_get_name, 1, 1)
LAYOUT_ROW(stream_free, 2, 2)
LAYOUT_ROW(stream_set_tensor_async, 3, 3)
LAYOUT_ROW(stream_get_tensor_async, 4, 4)
LAYOUT_ROW(stream_cpy_tensor_async, 7, 7)
LAYOUT_ROW(stream_synchronize, 8, 8)
LAYOUT_ROW(stream_graph_compute, 13, 13)
LAYOUT_ROW(stream_event_record, 14, 14)
LAYOUT_ROW(stream_event_wait, 15, 15)

LAYOUT_ROW(device_get_name, 0, 0)
LAYOUT_ROW(device_get_description, 1, 1)
LAYOUT_ROW(device_get_memory, 2, 2)
LAYOUT_ROW(device_get_type, 3, 3)
LAYOUT_ROW(device_get_props, 4, 4)
LAYOUT_ROW(device_init_backend, 5, 5)
LAYOUT_ROW(device_get_buffer_type, 6, 6)
LAYOUT_ROW(device_get_host_buffer_type, 7, 7)
LAYOUT_ROW(device_buffer_from_host_ptr, 8, 8)
LAYOUT_ROW(device_supports_op, 9, 9)
LAYOUT_ROW(device_supports_buft, 10, 10)
LAYOUT_ROW(device_offload_op, 11, 11)
LAYOUT_ROW(device_event_new, 12, 12)
LAYOUT_ROW(device_event_free, 13, 13)
LAYOUT_ROW(device_event_synchronize, 14, 14)

LAYOUT_ROW(reg_get_name, 1, 1)
LAYOUT_ROW(reg_get_device_count, 2, 2)
LAYOUT_ROW(reg_get_device, 3, 3)
LAYOUT_ROW(reg_get_proc_address, 4, 4)
// No slot: how many kinds of GGML_OP_GLU there are.
LAYOUT_ROW(n_glu_ops, 6, 7)
#undef LAYOUT_ROW
