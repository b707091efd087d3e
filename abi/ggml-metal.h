// SPDX-License-Identifier: MIT
// ggml-metal.h: ggml's calls for Apple's GPUs, answered by the plugin that is loaded
// (ggml-by-name.h).
#ifndef GGML_METAL_H
#define GGML_METAL_H

#include "ggml-by-name.h"

#ifdef __cplusplus
extern "C" {
#endif

// A new stream of the device, which the caller frees, or NULL. May block. [any-thread]
static inline ggml_backend_t ggml_backend_metal_init(void) {
    return ggml_by_name_init("Metal", 0);
}

// [any-thread]
static inline bool ggml_backend_is_metal(ggml_backend_t backend) {
    return ggml_by_name_is("Metal", backend);
}

// The callback is asked between parts of a graph, and ends it by answering true. [stream]
static inline void ggml_backend_metal_set_abort_callback(ggml_backend_t backend,
                                                         ggml_abort_callback abort_callback,
                                                         void *user_data) {
    void (*call)(ggml_backend_t, ggml_abort_callback, void *);
    if (ggml_by_name_procedure("Metal", "ggml_backend_set_abort_callback", &call))
        call(backend, abort_callback, user_data);
}

// Whether the device is of Apple's GPU family. [stream]
static inline bool ggml_backend_metal_supports_family(ggml_backend_t backend, int family) {
    bool (*call)(ggml_backend_t, int);
    return ggml_by_name_procedure("Metal", "ggml_backend_metal_supports_family", &call)
               ? call(backend, family)
               : false;
}

// Records the next graph for Apple's debugger. [stream]
static inline void ggml_backend_metal_capture_next_compute(ggml_backend_t backend) {
    void (*call)(ggml_backend_t);
    if (ggml_by_name_procedure("Metal", "ggml_backend_metal_capture_next_compute", &call))
        call(backend);
}

// NULL if the plugin is not loaded. [any-thread]
static inline ggml_backend_reg_t ggml_backend_metal_reg(void) {
    return ggml_backend_reg_by_name("Metal");
}

#ifdef __cplusplus
}
#endif

#endif
