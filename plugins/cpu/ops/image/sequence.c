// SPDX-License-Identifier: MIT
// arange and timestep_embedding.
#include <math.h>

#include "simd/strided.h"

// Every element is computed from its index: adding up steps would accumulate rounding errors, and
// the result would depend on the number of threads. In double, since F32 can't count above 2^24.
enum ggml_status CPU_FN(cpu_arange)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const double start = (double)ggml_get_op_params_f32(dst, 0);
    const double step = (double)ggml_get_op_params_f32(dst, 2);
    float *y = dst->data;
    int64_t begin, end;
    cpu_task_range(task, dst->ne[0], &begin, &end);
    for (int64_t i = begin; i < end; ++i)
        y[i] = (float)(start + step * (double)i);
    return GGML_STATUS_SUCCESS;
}

// Cosines, then sines, of the timestep times falling frequencies. The phases are in double
// precision: they are as large as the timestep.
enum ggml_status CPU_FN(cpu_timestep_embedding)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const struct ggml_tensor *timesteps = dst->src[0];
    const int64_t half = dst->ne[0] / 2;
    const double log_period = log((double)ggml_get_op_params_i32(dst, 1));
    int64_t begin, end;
    cpu_task_range(task, dst->ne[1], &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        const char *from = (const char *)timesteps->data + (size_t)r * timesteps->nb[0];
        const double timestep = (double)cpu_f32_at(from);
        float *y = (float *)(void *)((char *)dst->data + (size_t)r * dst->nb[1]);
        for (int64_t j = 0; j < half; ++j) {
            const double phase = timestep * exp(-log_period * (double)j / (double)half);
            y[j] = (float)cos(phase);
            y[j + half] = (float)sin(phase);
        }
        // An odd extent leaves one element.
        if (dst->ne[0] % 2 != 0) y[2 * half] = 0.0f;
    }
    return GGML_STATUS_SUCCESS;
}
