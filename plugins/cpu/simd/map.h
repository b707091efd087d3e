// SPDX-License-Identifier: MIT
// The skeleton of functions of one operand: dst[i] = f(src0[i]).
#ifndef CPU_MAP_H
#define CPU_MAP_H

#include "ggml-shape.h"
#include "simd/convert.h"

// y[i] = f(x[i]); y may be x. `params` are the node's as floats.
typedef void (*cpu_map_fn)(float *y, const float *x, int64_t n, const float *params);

struct cpu_map {
    cpu_map_fn fn;
    float params[GGML_MAX_OP_PARAMS / sizeof(float)];
};

// Applies the map to n elements of a row from i0 on, through F32: operands of other types are
// converted into buffers on the stack; F32 rows are used in place.
static inline void cpu_map_chunk(const struct ggml_tensor *dst, struct ggml_row at, int64_t i0,
                                 int64_t n, const void *argument) {
    const struct cpu_map *map = argument;
    float x_buffer[CPU_CHUNK];
    float y_buffer[CPU_CHUNK];
    const struct ggml_tensor *src = dst->src[0];
    char *row = ggml_row_data(dst, at);
    const float *x = cpu_load(x_buffer, ggml_row_data(src, at), src->type, i0, n);
    float *y = cpu_target(y_buffer, row, dst->type, i0);
    map->fn(y, x, n, map->params);
    cpu_store(row, dst->type, i0, y, n);
}

// Runs the map over all elements of the node.
static inline enum ggml_status cpu_map(const struct cpu_task *task, cpu_map_fn map) {
    struct cpu_map argument = {.fn = map};
    memcpy(argument.params, task->dst->op_params, sizeof(argument.params));
    return cpu_each_chunk(task, cpu_map_chunk, &argument);
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
