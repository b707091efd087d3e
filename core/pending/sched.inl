// SPDX-License-Identifier: MIT
// Public functions of this area that are declared but not implemented yet: each answers `failure` and
// leaves a message. Rows only ever leave this list.
//
// GGML_PENDING(type, name, (parameters), failure)    GGML_PENDING_VOID(name, (parameters))
GGML_PENDING(const char *, ggml_backend_meta_split_axis_name, (enum ggml_backend_meta_split_axis
             split_axis), NULL)
GGML_PENDING(ggml_backend_dev_t, ggml_backend_meta_device, (ggml_backend_dev_t *devs, size_t n_devs,
             ggml_backend_meta_get_split_state_t get_split_state, void *get_split_state_ud), NULL)
