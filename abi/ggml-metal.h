// SPDX-License-Identifier: MIT
// ggml-metal.h: ggml's calls for Apple's GPUs, served by the plugin that is loaded
// (ggml-by-name.h).
//
// Programs for any device use ggml-backend.h instead: the device here is the first one of the
// backend "Metal" there. Procedures that the plugin does not have do nothing.
#ifndef GGML_METAL_H
#define GGML_METAL_H

#include "ggml-by-name.h"

#ifdef __cplusplus
extern "C" {
#endif

// A new stream of the first device, which the caller frees, or NULL. May take long: shaders are
// loaded. [any-thread]
static inline ggml_backend_t ggml_backend_metal_init(void) {
    return ggml_by_name_init("Metal", 0);
}

// Whether the stream is of a Metal device; false for NULL. [any-thread]
static inline bool ggml_backend_is_metal(ggml_backend_t backend) {
    return ggml_by_name_is("Metal", backend);
}

// The callback is asked between parts of a graph, and ends it by returning true: the compute
// returns ABORTED. user_data is passed on. NULL: none. [stream]
static inline void ggml_backend_metal_set_abort_callback(ggml_backend_t backend,
                                                         ggml_abort_callback abort_callback,
                                                         void *user_data) {
    void (*call)(ggml_backend_t, ggml_abort_callback, void *);
    if (ggml_by_name_procedure("Metal", "ggml_backend_set_abort_callback", &call))
        call(backend, abort_callback, user_data);
}

// Whether the device is of Apple's GPU family (number 1.. of MTLGPUFamilyApple); false without the
// procedure. [stream]
static inline bool ggml_backend_metal_supports_family(ggml_backend_t backend, int family) {
    bool (*call)(ggml_backend_t, int);
    return ggml_by_name_procedure("Metal", "ggml_backend_metal_supports_family", &call)
               ? call(backend, family)
               : false;
}

// Records the next graph for Apple's debugger, if the process may be captured. [stream]
static inline void ggml_backend_metal_capture_next_compute(ggml_backend_t backend) {
    void (*call)(ggml_backend_t);
    if (ggml_by_name_procedure("Metal", "ggml_backend_metal_capture_next_compute", &call))
        call(backend);
}

// The backend, or NULL if the plugin is not loaded. [any-thread]
static inline ggml_backend_reg_t ggml_backend_metal_reg(void) {
    return ggml_backend_reg_by_name("Metal");
}

#ifdef __cplusplus
}
#endif

#endif
