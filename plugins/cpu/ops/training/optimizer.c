// SPDX-License-Identifier: MIT
// opt_step_adamw and opt_step_sgd: parameters and their moments are updated in place.
#include <math.h>

#include "ggml-shape.h"
#include "simd/convert.h"

// Address of element i0 of a row.
static float *row_of(const struct ggml_tensor *t, struct ggml_row at, int64_t i0) {
    return (float *)(void *)ggml_row_data(t, at) + i0;
}

// AdamW (Loshchilov and Hutter, 2019). p: alpha, beta1, beta2, eps, wd, beta1h, beta2h; the last
// two correct the moments' bias.
static void adamw(const struct ggml_tensor *dst, struct ggml_row at, int64_t i0, int64_t n,
                  const void *argument) {
    const float *p = argument;
    const float *x = row_of(dst->src[0], at, i0);
    const float *grad = row_of(dst->src[1], at, i0);
    float *m = row_of(dst->src[2], at, i0);
    float *v = row_of(dst->src[3], at, i0);
    float *y = row_of(dst, at, i0);
    // Weight decay is decoupled from the gradient.
    const float keep = 1.0f - p[0] * p[4];
    CPU_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
        const float g = grad[i];
        m[i] = m[i] * p[1] + g * (1.0f - p[1]);
        v[i] = v[i] * p[2] + g * g * (1.0f - p[2]);
        y[i] = x[i] * keep - p[0] * (m[i] * p[5]) / (sqrtf(v[i] * p[6]) + p[3]);
    }
}

// Gradient descent with weight decay. p: alpha, wd.
static void sgd(const struct ggml_tensor *dst, struct ggml_row at, int64_t i0, int64_t n,
                const void *argument) {
    const float *p = argument;
    const float *x = row_of(dst->src[0], at, i0);
    const float *grad = row_of(dst->src[1], at, i0);
    float *y = row_of(dst, at, i0);
    const float keep = 1.0f - p[0] * p[1];
    CPU_INDEPENDENT
    for (int64_t i = 0; i < n; ++i)
        y[i] = x[i] * keep - p[0] * grad[i];
}

// The parameters are the fifth source.
enum ggml_status CPU_FN(cpu_opt_step_adamw)(const struct cpu_task *task) {
    return cpu_each_chunk(task, adamw, task->dst->src[4]->data);
}

// The parameters are the third source.
enum ggml_status CPU_FN(cpu_opt_step_sgd)(const struct cpu_task *task) {
    return cpu_each_chunk(task, sgd, task->dst->src[2]->data);
}
