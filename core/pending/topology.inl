// SPDX-License-Identifier: MIT
// Public functions of this area that are declared but not implemented yet: each answers `failure` and
// leaves a message. Rows only ever leave this list.
//
// GGML_PENDING(type, name, (parameters), failure)    GGML_PENDING_VOID(name, (parameters))
GGML_PENDING(enum ggml_host_status, ggml_host_get_topology, (struct ggml_host_topology
             *out_topology), GGML_HOST_NOT_IMPLEMENTED)
GGML_PENDING(int, ggml_host_default_threads, (void), 0)
