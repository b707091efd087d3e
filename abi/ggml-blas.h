// SPDX-License-Identifier: MIT
// ggml-blas.h: ggml's calls for BLAS libraries, served by the plugin that is loaded
// (ggml-by-name.h).
//
// Programs for any device use ggml-backend.h instead. The device works in host memory and computes
// matrix products only: put its stream before the CPU's in a scheduler.
#ifndef GGML_BLAS_H
#define GGML_BLAS_H

#include "ggml-by-name.h"

#ifdef __cplusplus
extern "C" {
#endif

// A new stream of the device, which the caller frees, or NULL. May block. [any-thread]
static inline ggml_backend_t ggml_backend_blas_init(void) {
    return ggml_by_name_init("BLAS", 0);
}

// Whether the stream is of the BLAS device; false for NULL. [any-thread]
static inline bool ggml_backend_is_blas(ggml_backend_t backend) {
    return ggml_by_name_is("BLAS", backend);
}

// Threads that the library uses from the next graph on; does nothing without the plugin. [stream]
static inline void ggml_backend_blas_set_n_threads(ggml_backend_t backend_blas, int n_threads) {
    ggml_backend_set_n_threads_t call;
    if (ggml_by_name_procedure("BLAS", "ggml_backend_set_n_threads", &call))
        call(backend_blas, n_threads);
}

// The backend, or NULL if the plugin is not loaded. [any-thread]
static inline ggml_backend_reg_t ggml_backend_blas_reg(void) {
    return ggml_backend_reg_by_name("BLAS");
}

#ifdef __cplusplus
}
#endif

#endif
