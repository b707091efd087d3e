// SPDX-License-Identifier: MIT
// Elements at any stride.
#ifndef CPU_STRIDED_H
#define CPU_STRIDED_H

#include "ggml-shape.h"
#include "simd/convert.h"

static inline float cpu_f32_at(const char *x) {
    float value;
    memcpy(&value, x, sizeof(value));
    return value;
}

// One element of F32, F16 or BF16.
static inline float cpu_float_at(const char *x, enum ggml_type type) {
    float value;
    if (type == GGML_TYPE_F32) return cpu_f32_at(x);
    return *cpu_load(&value, x, type, 0, 1);
}

// n elements of `size` bytes, `stride` bytes apart, to a dense row.
static inline void cpu_gather(char *y, const char *x, size_t stride, size_t size, int64_t n) {
    if (n <= 0) return;
    if (stride == size) {
        memcpy(y, x, (size_t)n * size);
    } else if (size == sizeof(float)) {
        for (int64_t i = 0; i < n; ++i)
            memcpy(y + i * 4, x + (size_t)i * stride, 4);
    } else {
        for (int64_t i = 0; i < n; ++i)
            memcpy(y + (size_t)i * size, x + (size_t)i * stride, size);
    }
}

// n > 0 floats `stride` bytes apart as a dense row: where they lie, or in the buffer.
static inline const float *cpu_dense_floats(float *buffer, const char *x, size_t stride,
                                            int64_t n) {
    if (stride == sizeof(float)) return (const float *)(const void *)x;
    cpu_gather((char *)buffer, x, stride, sizeof(float), n);
    return buffer;
}

// n elements of F32, F16 or BF16, `stride` bytes apart, to floats.
static inline void cpu_gather_floats(float *y, const char *x, size_t stride, enum ggml_type type,
                                     int64_t n) {
    if (n <= 0) return;
    if (type == GGML_TYPE_F32) {
        cpu_gather((char *)y, x, stride, sizeof(float), n);
    } else if (stride == sizeof(ggml_fp16_t)) {
        cpu_load(y, x, type, 0, n);
    } else {
        for (int64_t i = 0; i < n; ++i)
            y[i] = cpu_float_at(x + (size_t)i * stride, type);
    }
}

// This thread's n floats of work memory; NULL if the result is F32, which needs none.
static inline float *cpu_row_buffer(const struct cpu_task *task, int64_t n) {
    if (task->dst->type == GGML_TYPE_F32) return NULL;
    return (float *)task->work + (size_t)task->ith * (size_t)n;
}

#endif
