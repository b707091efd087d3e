// SPDX-License-Identifier: MIT
// dsv4_hc_comb, dsv4_hc_pre, dsv4_hc_post: the hyper-connections of a residual stream in several
// copies.
#include <math.h>

#include "simd/strided.h"
#include "simd/vmath.h"

// The kernel is for four copies, as in the models that have the operation.
enum { COPIES = 4 };

// Half a step of Sinkhorn's iteration: each column sums up to 1, but for eps.
static void normalise_sources(double v[COPIES][COPIES], double eps) {
    for (int d = 0; d < COPIES; ++d) {
        double sum = eps;
        for (int s = 0; s < COPIES; ++s)
            sum += v[s][d];
        for (int s = 0; s < COPIES; ++s)
            v[s][d] /= sum;
    }
}

// Half a step of Sinkhorn's iteration: each row sums up to 1.
static void normalise_destinations(double v[COPIES][COPIES], double eps) {
    for (int s = 0; s < COPIES; ++s) {
        double sum = eps;
        for (int d = 0; d < COPIES; ++d)
            sum += v[s][d];
        for (int d = 0; d < COPIES; ++d)
            v[s][d] /= sum;
    }
}

// Softmax of COPIES numbers, with eps added to each so that none is 0.
static void softmax(double *x, double eps) {
    double largest = x[0];
    double sum = 0.0;
    for (int i = 1; i < COPIES; ++i)
        largest = x[i] > largest ? x[i] : largest;
    for (int i = 0; i < COPIES; ++i) {
        x[i] = exp(x[i] - largest);
        sum += x[i];
    }
    for (int i = 0; i < COPIES; ++i)
        x[i] = x[i] / sum + eps;
}

// An element of a two-dimensional tensor with any strides.
static double element(const struct ggml_tensor *t, int64_t i0, int64_t i1) {
    return (double)cpu_f32_at((const char *)t->data + (size_t)i0 * t->nb[0] +
                              (size_t)i1 * t->nb[1]);
}

// A matrix that Sinkhorn's iteration makes nearly doubly stochastic.
static void combine(const struct ggml_tensor *dst, int64_t t) {
    const double eps = (double)ggml_get_op_params_f32(dst, 0);
    const int n_iter = ggml_get_op_params_i32(dst, 1);
    const double scale = element(dst->src[1], 2, 0);
    double v[COPIES][COPIES];
    // The matrix comes after the weights of the two other operations in the row of the token.
    for (int s = 0; s < COPIES; ++s) {
        for (int d = 0; d < COPIES; ++d) {
            const int at = 2 * COPIES + d + COPIES * s;
            v[s][d] = element(dst->src[0], at, t) * scale + element(dst->src[2], at, 0);
        }
        softmax(v[s], eps);
    }
    normalise_sources(v, eps);
    for (int i = 1; i < n_iter; ++i) {
        normalise_destinations(v, eps);
        normalise_sources(v, eps);
    }
    for (int s = 0; s < COPIES; ++s) {
        float *y = (float *)(void *)ggml_row_data(dst, (struct ggml_row){s, t, 0});
        for (int d = 0; d < COPIES; ++d)
            y[d] = (float)v[s][d];
    }
}

// Tokens are independent: they are divided among the threads.
enum ggml_status CPU_FN(cpu_dsv4_hc_comb)(const struct cpu_task *task) {
    int64_t begin, end;
    cpu_task_range(task, task->dst->ne[2], &begin, &end);
    for (int64_t t = begin; t < end; ++t)
        combine(task->dst, t);
    return GGML_STATUS_SUCCESS;
}

// y[i] += weight * x[i]; the first summand is set instead. x may have any stride.
static void add_scaled(float *y, const struct ggml_tensor *x, const char *from, float weight,
                       int64_t n, bool first) {
    float buffer[CPU_CHUNK];
    const float *in = cpu_dense_floats(buffer, from, x->nb[0], n);
    CPU_INDEPENDENT
    for (int64_t i = 0; i < n; ++i)
        y[i] = (first ? 0.0f : y[i]) + weight * in[i];
}

// Elements [i0, i0 + n) of a row of x.
static const char *chunk_of(const struct ggml_tensor *x, int64_t i0, int64_t i1, int64_t i2) {
    return ggml_row_data(x, (struct ggml_row){i1, i2, 0}) + (size_t)i0 * x->nb[0];
}

// Threads share chunks of the rows of the result.
static enum ggml_status for_chunks(const struct cpu_task *task,
                                   void (*compute)(const struct ggml_tensor *dst,
                                                   struct ggml_row at, int64_t i0, int64_t n,
                                                   float *y)) {
    const struct ggml_tensor *dst = task->dst;
    const int64_t chunks = (dst->ne[0] + CPU_CHUNK - 1) / CPU_CHUNK;
    int64_t begin, end;
    cpu_task_range(task, chunks * ggml_nrows(dst), &begin, &end);
    for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t i0 = unit % chunks * CPU_CHUNK;
        const struct ggml_row at = ggml_row_at(dst, unit / chunks);
        float *y = (float *)(void *)ggml_row_data(dst, at) + i0;
        compute(dst, at, i0, MIN(dst->ne[0] - i0, CPU_CHUNK), y);
    }
    return GGML_STATUS_SUCCESS;
}

// y[i] += x[i] sigmoid(gate[i]); the first summand is set instead. Any strides.
static void add_gated(float *y, const struct ggml_tensor *x, const char *from,
                      const struct ggml_tensor *gate, const char *gate_from, int64_t n,
                      bool first) {
    float buffers[2][CPU_CHUNK];
    const float *in = cpu_dense_floats(buffers[0], from, x->nb[0], n);
    const float *g = cpu_dense_floats(buffers[1], gate_from, gate->nb[0], n);
    CPU_INDEPENDENT
    for (int64_t i = 0; i < n; ++i)
        y[i] = (first ? 0.0f : y[i]) + in[i] / (1.0f + cpu_expf(-g[i]));
}

// Elements [i0, i0 + n) of the sum of copies times sigmoid gates.
static void pre_gated_chunk(const struct ggml_tensor *dst, struct ggml_row at, int64_t i0,
                            int64_t n, float *y) {
    const struct ggml_tensor *x = dst->src[0];
    const struct ggml_tensor *gate = dst->src[1];
    const float scale = ggml_get_op_params_f32(dst, 0);
    memset(y, 0, (size_t)n * sizeof(float));
    for (int64_t h = 0; h < x->ne[1]; ++h) {
        add_gated(y, x, chunk_of(x, i0, h, at.i1), gate, chunk_of(gate, i0, h, at.i1), n, h == 0);
    }
    for (int64_t i = 0; i < n; ++i)
        y[i] *= scale;
}

// Elements [i0, i0 + n) of the sum of copies times the token's weights.
static void pre_chunk(const struct ggml_tensor *dst, struct ggml_row at, int64_t i0, int64_t n,
                      float *y) {
    const struct ggml_tensor *x = dst->src[0];
    memset(y, 0, (size_t)n * sizeof(float));
    for (int64_t h = 0; h < x->ne[1]; ++h) {
        const float weight = (float)element(dst->src[1], h, at.i1);
        add_scaled(y, x, chunk_of(x, i0, h, at.i1), weight, n, h == 0);
    }
}

enum ggml_status CPU_FN(cpu_dsv4_hc_pre)(const struct cpu_task *task) {
    const bool gated = ggml_get_op_params_i32(task->dst, 1) != 0;
    return for_chunks(task, gated ? pre_gated_chunk : pre_chunk);
}

// Elements [i0, i0 + n) of a copy: the layer's output times a weight, plus the combined copies,
// or the old copy where there is no matrix.
static void post_chunk(const struct ggml_tensor *dst, struct ggml_row at, int64_t i0, int64_t n,
                       float *y) {
    const struct ggml_tensor *x = dst->src[0];
    const struct ggml_tensor *residual = dst->src[1];
    const struct ggml_tensor *comb = dst->src[3];
    add_scaled(y, x, chunk_of(x, i0, at.i2, 0), (float)element(dst->src[2], at.i1, at.i2), n, true);
    if (comb == NULL) {
        add_scaled(y, residual, chunk_of(residual, i0, at.i1, at.i2), 1.0f, n, false);
        return;
    }
    for (int64_t s = 0; s < residual->ne[1]; ++s) {
        const float weight = cpu_f32_at(chunk_of(comb, at.i1, s, at.i2));
        add_scaled(y, residual, chunk_of(residual, i0, s, at.i2), weight, n, false);
    }
}

enum ggml_status CPU_FN(cpu_dsv4_hc_post)(const struct cpu_task *task) {
    return for_chunks(task, post_chunk);
}
