// SPDX-License-Identifier: MIT
// ggml-cuda.h: ggml's calls for CUDA devices, served by the plugin that is loaded (ggml-by-name.h).
//
// Programs for any device use ggml-backend.h instead: device 0 here is the first device of the
// backend "CUDA" there. `device` counts from 0 in the plugin's order; one out of range is no
// device.
#ifndef GGML_CUDA_H
#define GGML_CUDA_H

#include "ggml-by-name.h"

// Name of the backend; of its matrix library, for messages; and most devices that programs provide
// for.
#define GGML_CUDA_NAME "CUDA"     // as ggml_backend_reg_name() returns it
#define GGML_CUBLAS_NAME "cuBLAS" // for messages
#define GGML_CUDA_MAX_DEVICES 16

#ifdef __cplusplus
extern "C" {
#endif

// A new stream of the device, which the caller frees, or NULL. May take long: the device's context
// is made. [any-thread]
static inline ggml_backend_t ggml_backend_cuda_init(int device) {
    return ggml_by_name_init(GGML_CUDA_NAME, (size_t)device);
}

// Whether the stream is of a CUDA device; false for NULL. [any-thread]
static inline bool ggml_backend_is_cuda(ggml_backend_t backend) {
    return ggml_by_name_is(GGML_CUDA_NAME, backend);
}

// Number of devices; 0 without the plugin. [any-thread]
static inline int ggml_backend_cuda_get_device_count(void) {
    return ggml_by_name_device_count(GGML_CUDA_NAME);
}

// What a person calls the device, cut to description_size bytes with its end; "" without the
// device. [any-thread]
static inline void ggml_backend_cuda_get_device_description(int device, char *description,
                                                            size_t description_size) {
    ggml_by_name_description(GGML_CUDA_NAME, device, description, description_size);
}

// Bytes of the device's memory; 0 without the device. Neither pointer may be NULL. May block.
// [any-thread]
static inline void ggml_backend_cuda_get_device_memory(int device, size_t *free, size_t *total) {
    ggml_by_name_memory(GGML_CUDA_NAME, device, free, total);
}

// The device's memory, or NULL. It lives as long as the plugin. [any-thread]
static inline ggml_backend_buffer_type_t ggml_backend_cuda_buffer_type(int device) {
    return ggml_by_name_buffer_type(GGML_CUDA_NAME, (size_t)device);
}

// Pinned host memory, which the devices reach fast, or NULL. [any-thread]
static inline ggml_backend_buffer_type_t ggml_backend_cuda_host_buffer_type(void) {
    return ggml_by_name_host_buffer_type(GGML_CUDA_NAME);
}

// Makes memory of the program fast to copy from and to, until it is unregistered; false if that
// can't be. The memory stays the program's and must not be freed while it is registered.
// [any-thread]
static inline bool ggml_backend_cuda_register_host_buffer(void *buffer, size_t size) {
    bool (*call)(void *, size_t);
    return ggml_by_name_procedure(GGML_CUDA_NAME, "ggml_backend_register_host_buffer", &call) &&
           call(buffer, size);
}

// Ends that; does nothing without the plugin. [any-thread]
static inline void ggml_backend_cuda_unregister_host_buffer(void *buffer) {
    void (*call)(void *);
    if (ggml_by_name_procedure(GGML_CUDA_NAME, "ggml_backend_unregister_host_buffer", &call))
        call(buffer);
}

// Adds tensors of several devices up, in place: tensors[i] is on the device of backends[i]; false
// if the plugin has no such procedure or can't. [stream]
static inline bool ggml_backend_cuda_allreduce_tensor(ggml_backend_t *backends,
                                                      struct ggml_tensor **tensors,
                                                      size_t n_backends) {
    bool (*call)(ggml_backend_t *, struct ggml_tensor **, size_t);
    return ggml_by_name_procedure(GGML_CUDA_NAME, "ggml_backend_cuda_allreduce_tensor", &call)
               ? call(backends, tensors, n_backends)
               : false;
}

// The backend, or NULL if the plugin is not loaded. [any-thread]
static inline ggml_backend_reg_t ggml_backend_cuda_reg(void) {
    return ggml_backend_reg_by_name(GGML_CUDA_NAME);
}

#ifdef __cplusplus
}
#endif

#endif
