// SPDX-License-Identifier: MIT
// Objects of ggml's backend interface as its binaries have them, version 2 and 3 (OLD_VERSION). The
// tests build a small libggml-base and backends with it, which the plugin foreign opens.
#ifndef TESTS_FOREIGN_OLD_H
#define TESTS_FOREIGN_OLD_H

#include "ggml-backend.h"

#define OLD_EXPORT __attribute__((visibility("default")))

struct old_buft {
    const char *(*get_name)(struct old_buft *buft);
    struct old_buffer *(*alloc_buffer)(struct old_buft *buft, size_t size);
#if OLD_VERSION >= 3
    struct old_buffer *(*alloc_buffer_n)(struct old_buft *buft, struct ggml_tensor **tensors,
                                         int n);
#endif
    size_t (*get_alignment)(struct old_buft *buft);
    size_t (*get_max_size)(struct old_buft *buft);
    size_t (*get_alloc_size)(struct old_buft *buft, const struct ggml_tensor *tensor);
#if OLD_VERSION >= 3
    size_t (*get_alloc_size_n)(struct old_buft *buft, struct ggml_tensor **tensors, int n);
#endif
    bool (*is_host)(struct old_buft *buft);
    struct old_device *device;
    void *context;
};

struct old_buffer {
    void (*free_buffer)(struct old_buffer *buffer);
    void *(*get_base)(struct old_buffer *buffer);
    enum ggml_status (*init_tensor)(struct old_buffer *buffer, struct ggml_tensor *tensor);
    void (*memset_tensor)(struct old_buffer *buffer, struct ggml_tensor *tensor, uint8_t value,
                          size_t offset, size_t size);
    void (*set_tensor)(struct old_buffer *buffer, struct ggml_tensor *tensor, const void *data,
                       size_t offset, size_t size);
    void (*get_tensor)(struct old_buffer *buffer, const struct ggml_tensor *tensor, void *data,
                       size_t offset, size_t size);
    void *set_tensor_2d, *get_tensor_2d;
    bool (*cpy_tensor)(struct old_buffer *buffer, const struct ggml_tensor *src,
                       struct ggml_tensor *dst);
    void (*clear)(struct old_buffer *buffer, uint8_t value);
    void (*reset)(struct old_buffer *buffer);
    struct old_buft *buft;
    void *context;
    size_t size;
    enum ggml_backend_buffer_usage usage;
};

struct old_stream {
    ggml_guid_t guid;
    const char *(*get_name)(struct old_stream *stream);
    void (*free)(struct old_stream *stream);
    void *transfers[5];
    void (*synchronize)(struct old_stream *stream);
    void *plans[4];
    enum ggml_status (*graph_compute)(struct old_stream *stream, struct ggml_cgraph *graph);
    void *event_record, *event_wait, *graph_optimize;
    struct old_device *device;
    void *context;
};

struct old_device {
    const char *(*get_name)(struct old_device *device);
    const char *(*get_description)(struct old_device *device);
    void (*get_memory)(struct old_device *device, size_t *free, size_t *total);
    enum ggml_backend_dev_type (*get_type)(struct old_device *device);
    void (*get_props)(struct old_device *device, struct ggml_backend_dev_props *props);
    struct old_stream *(*init_backend)(struct old_device *device, const char *params);
    struct old_buft *(*get_buffer_type)(struct old_device *device);
    void *get_host_buffer_type;
    void (*buffer_from_host_ptr)(void);
    bool (*supports_op)(struct old_device *device, const struct ggml_tensor *op);
    bool (*supports_buft)(struct old_device *device, struct old_buft *buft);
    void *offload_op;
    void (*events[3])(void);
    struct old_reg *reg;
    void *context;
};

struct old_reg {
    int api_version;
    const char *(*get_name)(struct old_reg *reg);
    size_t (*get_device_count)(struct old_reg *reg);
    struct old_device *(*get_device)(struct old_reg *reg, size_t index);
    void *(*get_proc_address)(struct old_reg *reg, const char *name);
    void *context;
};

// Of the small libggml-base.
OLD_EXPORT struct old_buft *old_cpu_buffer_type(void) __asm__("ggml_backend_cpu_buffer_type");
OLD_EXPORT void
old_set_usage(struct old_buffer *buffer,
              enum ggml_backend_buffer_usage usage) __asm__("ggml_backend_buffer_set_usage");
OLD_EXPORT void old_buffer_free(struct old_buffer *buffer) __asm__("ggml_backend_buffer_free");
OLD_EXPORT struct old_buffer *
old_alloc_buffer(struct old_buft *buft, size_t size) __asm__("ggml_backend_buft_alloc_buffer");
OLD_EXPORT struct old_buffer *
old_cpu_buffer_from_ptr(void *ptr, size_t size) __asm__("ggml_backend_cpu_buffer_from_ptr");

#endif
