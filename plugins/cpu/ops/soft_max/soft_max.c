// SPDX-License-Identifier: MIT
// soft_max with scale, mask, ALiBi and sinks; and the causal mask itself.
#include "ggml-shape.h"
#include "ops/attention/alibi.h"
#include "simd/convert.h"
#include "simd/simd.h"
#include "simd/vmath.h"

// y = scale * x + slope * mask; returns the largest.
static float scale_and_mask(float *y, const float *x, float scale, float slope,
                            const struct ggml_tensor *mask, const char *mask_row, int64_t n) {
    float buffer[CPU_CHUNK];
    vf largest = vf_set(-INFINITY);
    float rest = -INFINITY;
    for (int64_t i0 = 0; i0 < n; i0 += CPU_CHUNK) {
        const int64_t count = MIN(n - i0, CPU_CHUNK);
        const float *m = mask ? cpu_load(buffer, mask_row, mask->type, i0, count) : NULL;
        int64_t i = 0;
        for (; i + LANES <= count; i += LANES) {
            vf z = vf_load(x + i0 + i) * scale;
            if (m) z += vf_load(m + i) * slope;
            largest = vf_max(largest, z);
            vf_store(y + i0 + i, z);
        }
        for (; i < count; ++i) {
            const float z = x[i0 + i] * scale + (m ? m[i] * slope : 0.0f);
            rest = z > rest ? z : rest;
            y[i0 + i] = z;
        }
    }
    const float all = vf_largest(largest);
    return rest > all ? rest : all;
}

// y = e^(y - max); returns the sum, in double over chunks.
static double exponentials(float *y, float max, int64_t n) {
    double sum = 0.0;
    for (int64_t i0 = 0; i0 < n; i0 += CPU_CHUNK) {
        const int64_t count = MIN(n - i0, CPU_CHUNK);
        CPU_INDEPENDENT
        for (int64_t i = i0; i < i0 + count; ++i)
            y[i] = cpu_expf(y[i] - max);
        sum += (double)vf_sum_row(y + i0, count);
    }
    return sum;
}

struct soft_max {
    const struct ggml_tensor *dst;
    const struct ggml_tensor *mask; // F16 or F32, repeated over heads and batches; may be NULL
    const float *sinks;             // one for each head, or NULL
    float scale;
    float max_bias; // of ALiBi; 0: the mask is added as it is
};

// Subtracts the largest value, sinks included, before e^x: all exponents are at most 0, so nothing
// overflows. Sinks add to the sum only.
static void soft_max_row(const struct soft_max *s, struct ggml_row at) {
    const int64_t n = s->dst->ne[0];
    const float *x = (const float *)(const void *)ggml_row_data(s->dst->src[0], at);
    float *y = (float *)(void *)ggml_row_data(s->dst, at);
    const char *mask_row = NULL;
    if (s->mask) {
        const struct ggml_row from = {at.i1, at.i2 % s->mask->ne[2], at.i3 % s->mask->ne[3]};
        mask_row = ggml_row_data(s->mask, from);
    }
    const float slope = cpu_alibi_slope(s->max_bias, s->dst->ne[2], at.i2);
    const float sink = s->sinks ? s->sinks[at.i2] : 0; // y may be the memory of the only one
    float max = scale_and_mask(y, x, s->scale, slope, s->mask, mask_row, n);
    if (s->sinks && sink > max) max = sink;
    double sum = exponentials(y, max, n);
    if (s->sinks) sum += exp((double)sink - (double)max);
    const float inverse = (float)(1.0 / sum);
    CPU_INDEPENDENT
    for (int64_t i = 0; i < n; ++i)
        y[i] *= inverse;
}

// Threads share rows.
enum ggml_status CPU_FN(cpu_soft_max)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const struct soft_max s = {
        .dst = dst,
        .mask = dst->src[1],
        .sinks = dst->src[2] ? dst->src[2]->data : NULL,
        .scale = ggml_get_op_params_f32(dst, 0),
        .max_bias = ggml_get_op_params_f32(dst, 1),
    };
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t row = begin; row < end; ++row)
        soft_max_row(&s, ggml_row_at(dst, row));
    return GGML_STATUS_SUCCESS;
}

// Column j of row i is masked when j > n_past + i.
// In place or not: what is kept is copied only into other memory.
static enum ggml_status diag_mask(const struct cpu_task *task, float value) {
    const struct ggml_tensor *dst = task->dst;
    const int64_t n_past = ggml_get_op_params_i32(dst, 0);
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t row = begin; row < end; ++row) {
        const struct ggml_row at = ggml_row_at(dst, row);
        const char *x = ggml_row_data(dst->src[0], at);
        float *y = (float *)(void *)ggml_row_data(dst, at);
        const int64_t kept = MAX(0, MIN(n_past + at.i1 + 1, dst->ne[0]));
        if (x != (char *)y) memcpy(y, x, (size_t)kept * sizeof(float));
        for (int64_t i = kept; i < dst->ne[0]; ++i)
            y[i] = value;
    }
    return GGML_STATUS_SUCCESS;
}

enum ggml_status CPU_FN(cpu_diag_mask_inf)(const struct cpu_task *task) {
    return diag_mask(task, -INFINITY);
}

enum ggml_status CPU_FN(cpu_diag_mask_zero)(const struct cpu_task *task) {
    return diag_mask(task, 0.0f);
}
