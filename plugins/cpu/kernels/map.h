// SPDX-License-Identifier: MIT
// The skeleton of functions of one operand: dst[i] = f(src0[i]).
#ifndef CPU_MAP_H
#define CPU_MAP_H

#include "convert.h"
#include "ggml-shape.h"

// y[i] = f(x[i]); y may be x. `params` are the node's as floats.
typedef void (*cpu_map_fn)(float *y, const float *x, int64_t n, const float *params);

static inline void cpu_map_chunk(const struct ggml_tensor *dst, struct ggml_row at, int64_t i0,
                                 int64_t n, cpu_map_fn map, const float *params) {
    float x_buffer[CPU_CHUNK];
    float y_buffer[CPU_CHUNK];
    const struct ggml_tensor *src = dst->src[0];
    char *row = ggml_row_data(dst, at);
    const float *x = cpu_load(x_buffer, ggml_row_data(src, at), src->type, i0, n);
    float *y = cpu_target(y_buffer, row, dst->type, i0);
    map(y, x, n, params);
    cpu_store(row, dst->type, i0, y, n);
}

// Threads share chunks of rows, so that a single long row is split too.
static inline enum ggml_status cpu_map(const struct cpu_task *task, cpu_map_fn map) {
    const struct ggml_tensor *dst = task->dst;
    float params[GGML_MAX_OP_PARAMS / sizeof(float)];
    memcpy(params, dst->op_params, sizeof(params));
    const int64_t n = dst->ne[0];
    const int64_t chunks = (n + CPU_CHUNK - 1) / CPU_CHUNK;
    int64_t begin, end;
    cpu_task_range(task, chunks * ggml_nrows(dst), &begin, &end);
    for (int64_t chunk = begin; chunk < end; ++chunk) {
        const int64_t i0 = chunk % chunks * CPU_CHUNK;
        cpu_map_chunk(dst, ggml_row_at(dst, chunk / chunks), i0, MIN(n - i0, CPU_CHUNK), map,
                      params);
    }
    return GGML_STATUS_SUCCESS;
}

// Defines a cpu_map_fn from an expression in x and p (the parameters).
#define CPU_MAP(name, expression)                                                                  \
    static void name(float *out, const float *in, int64_t n, const float *p) {                     \
        (void)p;                                                                                   \
        CPU_INDEPENDENT                                                                            \
        for (int64_t i = 0; i < n; ++i) {                                                          \
            const float x = in[i];                                                                 \
            out[i] = (expression);                                                                 \
        }                                                                                          \
    }

#endif
