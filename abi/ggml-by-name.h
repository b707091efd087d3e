// SPDX-License-Identifier: MIT
// What ggml-cuda.h, ggml-vulkan.h and their kin are made of: a program that names a backend in its
// source finds that backend among the plugins that are loaded. Without the plugin there is no
// device: counts are 0, pointers NULL.
//
// Why in line: the functions of such headers are exported by ggml's backends themselves; here no
// library has them, so that a program written for ggml compiles and links without any backend being
// there.
//
// Names of backends are compared as ggml_backend_reg_by_name() does. Nothing here loads plugins:
// call ggml_backend_load_all() before. Calls that return a pointer or false leave a message where
// they fail, but for a backend that is not there.
#ifndef GGML_BY_NAME_H
#define GGML_BY_NAME_H

#include <stdio.h>
#include <string.h>

#include "ggml-backend.h"

#ifdef __cplusplus
extern "C" {
#endif

// Device `index` of the backend, in its own order; NULL if there are not so many, or no backend.
// [any-thread]
static inline ggml_backend_dev_t ggml_by_name_device(const char *backend, size_t index) {
    ggml_backend_reg_t reg = ggml_backend_reg_by_name(backend);
    if (!reg || index >= ggml_backend_reg_dev_count(reg)) return NULL;
    return ggml_backend_reg_dev_get(reg, index);
}

// Number of the backend's devices. [any-thread]
static inline int ggml_by_name_device_count(const char *backend) {
    ggml_backend_reg_t reg = ggml_backend_reg_by_name(backend);
    return reg ? (int)ggml_backend_reg_dev_count(reg) : 0;
}

// A new stream of the device; the caller frees it. NULL without the device. May block. [any-thread]
static inline ggml_backend_t ggml_by_name_init(const char *backend, size_t index) {
    ggml_backend_dev_t device = ggml_by_name_device(backend, index);
    return device ? ggml_backend_dev_init(device, NULL) : NULL;
}

// The device's memory; NULL without the device. [any-thread]
static inline ggml_backend_buffer_type_t ggml_by_name_buffer_type(const char *backend,
                                                                  size_t index) {
    ggml_backend_dev_t device = ggml_by_name_device(backend, index);
    return device ? ggml_backend_dev_buffer_type(device) : NULL;
}

// Host memory that the backend's devices reach fast; NULL if it has none. [any-thread]
static inline ggml_backend_buffer_type_t ggml_by_name_host_buffer_type(const char *backend) {
    ggml_backend_dev_t device = ggml_by_name_device(backend, 0);
    return device ? ggml_backend_dev_host_buffer_type(device) : NULL;
}

// The device's description, cut to `size` bytes with its end; "" without the device. A size of 0
// writes nothing. [any-thread]
static inline void ggml_by_name_description(const char *backend, int index, char *out_text,
                                            size_t size) {
    ggml_backend_dev_t device = index < 0 ? NULL : ggml_by_name_device(backend, (size_t)index);
    if (size > 0)
        snprintf(out_text, size, "%s", device ? ggml_backend_dev_description(device) : "");
}

// The device's memory in bytes, free and total; 0 without the device. Neither pointer may be NULL.
// May block. [any-thread]
static inline void ggml_by_name_memory(const char *backend, int index, size_t *out_free,
                                       size_t *out_total) {
    ggml_backend_dev_t device = index < 0 ? NULL : ggml_by_name_device(backend, (size_t)index);
    *out_free = *out_total = 0;
    if (device) ggml_backend_dev_memory(device, out_free, out_total);
}

// Stores the address of the backend's procedure, of size sizeof(a function pointer), at
// out_procedure, NULL if it has none of that name; returns whether it has. As memory, since C
// converts no object pointers to function pointers:
//
//     void (*set_n_threads)(ggml_backend_t, int);
//     if (ggml_by_name_procedure("BLAS", "ggml_backend_set_n_threads", &set_n_threads))
//         set_n_threads(stream, 8);
// [any-thread]
static inline bool ggml_by_name_procedure(const char *backend, const char *name,
                                          void *out_procedure) {
    ggml_backend_reg_t reg = ggml_backend_reg_by_name(backend);
    void *address = reg ? ggml_backend_reg_get_proc_address(reg, name) : NULL;
    memcpy(out_procedure, &address, sizeof(address));
    return address != NULL;
}

// Whether a stream belongs to the backend, by its exact name; false for NULL. A plugin that
// represents several backends has all of their devices in one: it is asked for the others by
// "ggml_backend_reg_has_device", a procedure of theirs. [any-thread]
static inline bool ggml_by_name_is(const char *backend, ggml_backend_t stream) {
    ggml_backend_dev_t device = stream ? ggml_backend_get_device(stream) : NULL;
    ggml_backend_reg_t reg = device ? ggml_backend_dev_backend_reg(device) : NULL;
    bool (*has_device)(ggml_backend_reg_t, ggml_backend_dev_t);
    if (reg && strcmp(ggml_backend_reg_name(reg), backend) == 0) return true;
    return reg && ggml_by_name_procedure(backend, "ggml_backend_reg_has_device", &has_device) &&
           has_device(ggml_backend_reg_by_name(backend), device);
}

#ifdef __cplusplus
}
#endif

#endif
