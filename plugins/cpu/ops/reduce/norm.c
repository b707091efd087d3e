// SPDX-License-Identifier: MIT
// norm, rms_norm (also fused with the product that follows), l2_norm, group_norm. dst may be src0.
#include <math.h>

#include "ggml-shape.h"
#include "simd/convert.h"
#include "simd/sums.h"

static float *float_row(const struct ggml_tensor *t, struct ggml_row at) {
    return (float *)(void *)ggml_row_data(t, at);
}

// A row of src that is dense: its own, or gathered in y.
static const float *dense_row(const struct ggml_tensor *src, struct ggml_row at, float *y) {
    const char *row = ggml_row_data(src, at);
    if (ggml_rows_dense(src)) return (const float *)(const void *)row;
    for (int64_t i = 0; i < src->ne[0]; ++i)
        memcpy(&y[i], row + (size_t)i * src->nb[0], sizeof(float));
    return y;
}

// The loop of all norms: (x - offset) scale. y may be x.
static void scale_row(float *y, const float *x, float offset, float scale, int64_t n) {
    CPU_INDEPENDENT
    for (int64_t i = 0; i < n; ++i)
        y[i] = (x[i] - offset) * scale;
}

typedef void (*norm_fn)(float *y, const float *x, int64_t n, float eps);

// Threads share rows; `norm` is one of the three kinds.
static enum ggml_status norm_rows(const struct cpu_task *task, norm_fn norm) {
    const struct ggml_tensor *dst = task->dst;
    const float eps = ggml_get_op_params_f32(dst, 0);
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(dst, r);
        float *y = float_row(dst, at);
        norm(y, dense_row(dst->src[0], at, y), dst->ne[0], eps);
    }
    return GGML_STATUS_SUCCESS;
}

// Two passes, mean and then squares of differences, in double: the formula with one pass cancels
// where the mean is large against the deviation.
static void norm_row(float *y, const float *x, int64_t n, float eps) {
    const double mean = cpu_sum(x, n) / (double)n;
    const double variance = cpu_sum_squares(x, mean, n) / (double)n;
    scale_row(y, x, (float)mean, (float)(1.0 / sqrt(variance + (double)eps)), n);
}

enum ggml_status CPU_FN(cpu_norm)(const struct cpu_task *task) {
    return norm_rows(task, norm_row);
}

// 1 / sqrt(mean of squares + eps)
static float rms_scale(const float *x, int64_t n, float eps) {
    return (float)(1.0 / sqrt(cpu_sum_squares(x, 0.0, n) / (double)n + (double)eps));
}

// No mean is subtracted.
static void rms_norm_row(float *y, const float *x, int64_t n, float eps) {
    scale_row(y, x, 0.0f, rms_scale(x, n, eps), n);
}

enum ggml_status CPU_FN(cpu_rms_norm)(const struct cpu_task *task) {
    return norm_rows(task, rms_norm_row);
}

// y may be x or w.
static void scale_mul_row(float *y, const float *x, float scale, const float *w, int64_t n) {
    CPU_INDEPENDENT
    for (int64_t i = 0; i < n; ++i)
        y[i] = x[i] * scale * w[i];
}

// A product, one of whose operands is a norm.
struct norm_mul {
    const struct ggml_tensor *dst, *norm, *weight;
};

static void norm_mul_rows(const struct norm_mul *m, int64_t begin, int64_t end) {
    const float eps = ggml_get_op_params_f32(m->norm, 0);
    const int64_t n = m->dst->ne[0];
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(m->dst, r);
        const float *x = float_row(m->norm->src[0], at);
        const float *w = (const float *)(const void *)ggml_row_data_repeated(m->weight, at);
        scale_mul_row(float_row(m->dst, at), x, rms_scale(x, n, eps), w, n);
    }
}

// One after the other, as if they were not fused.
static void norm_then_mul(const struct norm_mul *m) {
    const float eps = ggml_get_op_params_f32(m->norm, 0);
    const int64_t n = m->dst->ne[0];
    for (int64_t r = 0; r < ggml_nrows(m->dst); ++r) {
        const struct ggml_row at = ggml_row_at(m->dst, r);
        rms_norm_row(float_row(m->norm, at), float_row(m->norm->src[0], at), n, eps);
    }
    for (int64_t r = 0; r < ggml_nrows(m->dst); ++r) {
        const struct ggml_row at = ggml_row_at(m->dst, r);
        const float *w = (const float *)(const void *)ggml_row_data_repeated(m->weight, at);
        scale_mul_row(float_row(m->dst, at), float_row(m->norm, at), 1, w, n);
    }
}

// The norm is not stored, unless the product lies upon other rows of what it is made of: nothing
// but the norm reads that, so that it may. Then one thread does all.
enum ggml_status CPU_FN(cpu_rms_norm_mul)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const bool first = dst->src[0]->op == GGML_OP_RMS_NORM;
    const struct norm_mul m = {dst, dst->src[first ? 0 : 1], dst->src[first ? 1 : 0]};
    const struct ggml_tensor *x = m.norm->src[0];
    const bool in_step = dst->data == x->data && ggml_are_same_stride(dst, x);
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    if (in_step || !cpu_overlap(dst, x))
        norm_mul_rows(&m, begin, end);
    else if (task->ith == 0)
        norm_then_mul(&m);
    return GGML_STATUS_SUCCESS;
}

// eps bounds the length from below; it is not added as in the norms above.
static void l2_norm_row(float *y, const float *x, int64_t n, float eps) {
    const double length = sqrt(cpu_sum_squares(x, 0.0, n));
    scale_row(y, x, 0.0f, (float)(1.0 / fmax(length, (double)eps)), n);
}

// Differs from the norms above by eps only.
enum ggml_status CPU_FN(cpu_l2_norm)(const struct cpu_task *task) {
    return norm_rows(task, l2_norm_row);
}

struct group {
    int64_t i3, first, last; // channels [first, last)
};

// Sum of a group's elements, or of the squares around an offset, in double.
static double group_sum(const struct ggml_tensor *src, struct group g, const double *offset) {
    double sum = 0.0;
    for (int64_t i2 = g.first; i2 < g.last; ++i2) {
        for (int64_t i1 = 0; i1 < src->ne[1]; ++i1) {
            const float *x = float_row(src, (struct ggml_row){i1, i2, g.i3});
            sum += offset ? cpu_sum_squares(x, *offset, src->ne[0]) : cpu_sum(x, src->ne[0]);
        }
    }
    return sum;
}

// Two passes: mean, then variance around it, which is exact where one pass would cancel.
static void normalise_group(const struct ggml_tensor *dst, struct group g, double eps) {
    const struct ggml_tensor *src = dst->src[0];
    const double n = (double)(src->ne[0] * src->ne[1] * (g.last - g.first));
    const double mean = group_sum(src, g, NULL) / n;
    const double variance = group_sum(src, g, &mean) / n;
    const float scale = (float)(1.0 / sqrt(variance + eps));
    for (int64_t i2 = g.first; i2 < g.last; ++i2) {
        for (int64_t i1 = 0; i1 < src->ne[1]; ++i1) {
            const struct ggml_row at = {i1, i2, g.i3};
            scale_row(float_row(dst, at), float_row(src, at), (float)mean, scale, src->ne[0]);
        }
    }
}

// Channels are divided into groups of equal size; the last one may be smaller, and groups beyond
// the channels are empty. A group of one image is a unit of work.
enum ggml_status CPU_FN(cpu_group_norm)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const int64_t wanted = ggml_get_op_params_i32(dst, 0);
    const int64_t channels = (dst->ne[2] + wanted - 1) / wanted;
    const int64_t groups = MIN(wanted, dst->ne[2]); // others have no channel
    int64_t begin, end;
    cpu_task_range(task, groups * dst->ne[3], &begin, &end);
    for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % groups * channels;
        const struct group g = {i / groups, first, MIN(first + channels, dst->ne[2])};
        if (g.first < g.last) normalise_group(dst, g, (double)ggml_get_op_params_f32(dst, 1));
    }
    return GGML_STATUS_SUCCESS;
}
