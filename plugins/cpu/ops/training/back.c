// SPDX-License-Identifier: MIT
// Gradients of silu, rms_norm and soft_max. Results may take the memory of either operand.
#include "ggml-shape.h"
#include "simd/sums.h"
#include "simd/vmath.h"

// g s (1 + x (1 - s)) with s = sigmoid(x).
static void silu_back_chunk(const struct ggml_tensor *dst, struct ggml_row at, int64_t i0,
                            int64_t n, const void *argument) {
    (void)argument;
    float buffers[3][CPU_CHUNK];
    const struct ggml_tensor *grad = dst->src[0];
    const struct ggml_tensor *src = dst->src[1];
    char *row = ggml_row_data(dst, at);
    const float *g = cpu_load(buffers[0], ggml_row_data(grad, at), grad->type, i0, n);
    const float *x = cpu_load(buffers[1], ggml_row_data(src, at), src->type, i0, n);
    float *y = cpu_target(buffers[2], row, dst->type, i0);
    CPU_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
        const float s = cpu_sigmoidf(x[i]);
        y[i] = g[i] * s * (1.0f + x[i] * (1.0f - s));
    }
    cpu_store(row, dst->type, i0, y, n);
}

enum ggml_status CPU_FN(cpu_silu_back)(const struct cpu_task *task) {
    return cpu_each_chunk(task, silu_back_chunk, NULL);
}

// Calls `row` for each of this thread's rows with the operands' rows and parameters.
typedef void (*back_fn)(float *y, const float *grad, const float *x, int64_t n, float param);

// Threads share rows; `param` is eps or the scale.
static enum ggml_status run_rows(const struct cpu_task *task, back_fn row) {
    const struct ggml_tensor *dst = task->dst;
    const float param = ggml_get_op_params_f32(dst, 0);
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(dst, r);
        row((float *)(void *)ggml_row_data(dst, at),
            (const float *)(const void *)ggml_row_data(dst->src[0], at),
            (const float *)(const void *)ggml_row_data(dst->src[1], at), dst->ne[0], param);
    }
    return GGML_STATUS_SUCCESS;
}

// (g - x <g, x> / (<x, x> + n eps)) / rms(x).
static void rms_norm_back_row(float *y, const float *grad, const float *x, int64_t n, float eps) {
    const double squares = cpu_sum_squares(x, 0.0, n);
    const double products = cpu_sum_products(grad, x, n);
    const float along = (float)(products / (squares + (double)n * (double)eps));
    const float scale = (float)(1.0 / sqrt(squares / (double)n + (double)eps));
    CPU_INDEPENDENT
    for (int64_t i = 0; i < n; ++i)
        y[i] = (grad[i] - x[i] * along) * scale;
}

enum ggml_status CPU_FN(cpu_rms_norm_back)(const struct cpu_task *task) {
    return run_rows(task, rms_norm_back_row);
}

// dx = scale y (g - <g, y>), where y is the forward result.
static void soft_max_back_row(float *dx, const float *grad, const float *y, int64_t n,
                              float scale) {
    const float mean = (float)cpu_sum_products(grad, y, n);
    CPU_INDEPENDENT
    for (int64_t i = 0; i < n; ++i)
        dx[i] = scale * y[i] * (grad[i] - mean);
}

enum ggml_status CPU_FN(cpu_soft_max_back)(const struct cpu_task *task) {
    return run_rows(task, soft_max_back_row);
}
