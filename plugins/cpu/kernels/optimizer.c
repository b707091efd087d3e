// SPDX-License-Identifier: MIT
// opt_step_adamw and opt_step_sgd: parameters, and their moments, are updated where they lie.
#include <math.h>

#include "convert.h"
#include "ggml-shape.h"

static float *row_of(const struct ggml_tensor *t, struct ggml_row at, int64_t i0) {
    return (float *)(void *)ggml_row_data(t, at) + i0;
}

// p: alpha, beta1, beta2, eps, wd, beta1h, beta2h.
static void adamw(const struct ggml_tensor *dst, struct ggml_row at, int64_t i0, int64_t n,
                  const float *p) {
    const float *x = row_of(dst->src[0], at, i0);
    const float *grad = row_of(dst->src[1], at, i0);
    float *m = row_of(dst->src[2], at, i0);
    float *v = row_of(dst->src[3], at, i0);
    float *y = row_of(dst, at, i0);
    const float keep = 1.0f - p[0] * p[4];
    CPU_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
        const float g = grad[i];
        m[i] = m[i] * p[1] + g * (1.0f - p[1]);
        v[i] = v[i] * p[2] + g * g * (1.0f - p[2]);
        y[i] = x[i] * keep - p[0] * (m[i] * p[5]) / (sqrtf(v[i] * p[6]) + p[3]);
    }
}

// p: alpha, wd.
static void sgd(const struct ggml_tensor *dst, struct ggml_row at, int64_t i0, int64_t n,
                const float *p) {
    const float *x = row_of(dst->src[0], at, i0);
    const float *grad = row_of(dst->src[1], at, i0);
    float *y = row_of(dst, at, i0);
    const float keep = 1.0f - p[0] * p[1];
    CPU_INDEPENDENT
    for (int64_t i = 0; i < n; ++i)
        y[i] = x[i] * keep - p[0] * grad[i];
}

typedef void (*step_fn)(const struct ggml_tensor *dst, struct ggml_row at, int64_t i0, int64_t n,
                        const float *params);

static enum ggml_status run(const struct cpu_task *task, step_fn step, const float *params) {
    const struct ggml_tensor *dst = task->dst;
    const int64_t n = dst->ne[0];
    const int64_t chunks = (n + CPU_CHUNK - 1) / CPU_CHUNK;
    int64_t begin, end;
    cpu_task_range(task, chunks * ggml_nrows(dst), &begin, &end);
    for (int64_t chunk = begin; chunk < end; ++chunk) {
        const int64_t i0 = chunk % chunks * CPU_CHUNK;
        step(dst, ggml_row_at(dst, chunk / chunks), i0, MIN(n - i0, CPU_CHUNK), params);
    }
    return GGML_STATUS_SUCCESS;
}

enum ggml_status CPU_FN(cpu_opt_step_adamw)(const struct cpu_task *task) {
    return run(task, adamw, task->dst->src[4]->data);
}

enum ggml_status CPU_FN(cpu_opt_step_sgd)(const struct cpu_task *task) {
    return run(task, sgd, task->dst->src[2]->data);
}
