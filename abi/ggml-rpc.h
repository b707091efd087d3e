// SPDX-License-Identifier: MIT
// ggml-rpc.h: ggml's calls for ggml servers on other machines, served by the plugin that is loaded
// (ggml-by-name.h).
//
// Without the RPC plugin nothing here does anything. An endpoint is "host:port". What the
// connection protects against, if anything, is the plugin's matter: ggml's protocol is neither
// encrypted nor authenticated, for trusted networks only.
#ifndef GGML_RPC_H
#define GGML_RPC_H

#include "ggml-by-name.h"

// Most servers that programs provide for.
#define GGML_RPC_MAX_SERVERS 16

#ifdef __cplusplus
extern "C" {
#endif

// The backend of a server "host:port", whose devices ggml_backend_register() adds; NULL without the
// plugin or the server. Connects; may block as long as the network lets it. [any-thread]
static inline ggml_backend_reg_t ggml_backend_rpc_add_server(const char *endpoint) {
    ggml_backend_reg_t (*call)(const char *);
    return ggml_by_name_procedure("RPC", "ggml_backend_rpc_add_server", &call) ? call(endpoint)
                                                                               : NULL;
}

// Device number `device` of a server, from 0, or NULL. May block. [any-thread]
static inline ggml_backend_dev_t ggml_backend_rpc_device(const char *endpoint, uint32_t device) {
    ggml_backend_reg_t reg = ggml_backend_rpc_add_server(endpoint);
    if (!reg || device >= ggml_backend_reg_dev_count(reg)) return NULL;
    return ggml_backend_reg_dev_get(reg, device);
}

// A new stream of a server's device, which the caller frees, or NULL. May block. [any-thread]
static inline ggml_backend_t ggml_backend_rpc_init(const char *endpoint, uint32_t device) {
    ggml_backend_dev_t found = ggml_backend_rpc_device(endpoint, device);
    return found ? ggml_backend_dev_init(found, NULL) : NULL;
}

// Whether the stream is on a server, whose backend is called "RPC[host:port]"; false for NULL.
// [any-thread]
static inline bool ggml_backend_is_rpc(ggml_backend_t backend) {
    ggml_backend_dev_t device = backend ? ggml_backend_get_device(backend) : NULL;
    ggml_backend_reg_t reg = device ? ggml_backend_dev_backend_reg(device) : NULL;
    return (reg && strncmp(ggml_backend_reg_name(reg), "RPC[", 4) == 0) ||
           ggml_by_name_is("RPC", backend);
}

// The memory of a server's device, or NULL. May block. [any-thread]
static inline ggml_backend_buffer_type_t ggml_backend_rpc_buffer_type(const char *endpoint,
                                                                      uint32_t device) {
    ggml_backend_dev_t found = ggml_backend_rpc_device(endpoint, device);
    return found ? ggml_backend_dev_buffer_type(found) : NULL;
}

// Bytes of the memory of a server's device, as the server says; 0 without the device. Neither
// pointer may be NULL. May block. [any-thread]
static inline void ggml_backend_rpc_get_device_memory(const char *endpoint, uint32_t device,
                                                      size_t *free, size_t *total) {
    ggml_backend_dev_t found = ggml_backend_rpc_device(endpoint, device);
    *free = *total = 0;
    if (found) ggml_backend_dev_memory(found, free, total);
}

// Offers n_devices devices to other machines at endpoint and never returns, unless the plugin is
// missing. cache_dir: folder for tensors that were sent before, or NULL. n_threads: of a CPU device
// among them. [any-thread]
static inline void ggml_backend_rpc_start_server(const char *endpoint, const char *cache_dir,
                                                 size_t n_threads, size_t n_devices,
                                                 ggml_backend_dev_t *devices) {
    void (*call)(const char *, const char *, size_t, size_t, ggml_backend_dev_t *);
    if (ggml_by_name_procedure("RPC", "ggml_backend_rpc_start_server", &call))
        call(endpoint, cache_dir, n_threads, n_devices, devices);
}

// The backend of no server in particular, or NULL if the plugin is not loaded. [any-thread]
static inline ggml_backend_reg_t ggml_backend_rpc_reg(void) {
    return ggml_backend_reg_by_name("RPC");
}

#ifdef __cplusplus
}
#endif

#endif
