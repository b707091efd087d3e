// SPDX-License-Identifier: MIT
// conv_2d_dw: a filter per channel. The result has either its pixels or its channels innermost.
#include "ops/conv/patches.h"

// y[i] += w * x[i], x at a stride in bytes.
static void add_scaled(float *restrict y, const char *x, size_t stride, float w, int64_t n) {
    if (stride == sizeof(float)) {
        const float *in = (const float *)(const void *)x;
        for (int64_t i = 0; i < n; ++i)
            y[i] += w * in[i];
        return;
    }
    for (int64_t i = 0; i < n; ++i)
        y[i] += w * cpu_f32_at(x + (size_t)i * stride);
}

// The pixels of a row for which kernel column kx is inside the image.
static struct conv_span outputs(const struct conv *c, int64_t kx) {
    const int64_t shift = c->padding[0] - kx * c->dilation[0];
    const int64_t begin = MAX(conv_ceil_div(shift, c->stride[0]), 0);
    const int64_t end = MIN(conv_ceil_div(c->in[0] + shift, c->stride[0]), c->out[0]);
    return (struct conv_span){begin, end};
}

// An element of a channel's filter, which may have any plain type.
static float filter_at(const struct ggml_tensor *kernel, int64_t kx, int64_t ky, int64_t channel) {
    const struct ggml_row row = {ky, 0, channel};
    return cpu_float_at(ggml_row_data(kernel, row) + (size_t)kx * kernel->nb[0], kernel->type);
}

// A row of the result: adds each kernel element times the pixels that it meets.
static void depthwise_row(const struct ggml_tensor *dst, const struct conv *c, struct ggml_row at) {
    const struct ggml_tensor *kernel = dst->src[0];
    const char *channel =
        (const char *)c->image->data + (size_t)at.i2 * c->nb_channel + (size_t)at.i3 * c->nb_batch;
    float *y = (float *)(void *)ggml_row_data(dst, at);
    memset(y, 0, (size_t)c->out[0] * sizeof(float));
    for (int64_t ky = 0; ky < c->kernel[1]; ++ky) {
        const int64_t iy = conv_first(c, 1, at.i1) + ky * c->dilation[1];
        if (iy < 0 || iy >= c->in[1]) continue;
        for (int64_t kx = 0; kx < c->kernel[0]; ++kx) {
            const struct conv_span to = outputs(c, kx);
            const int64_t ix = conv_first(c, 0, to.begin) + kx * c->dilation[0];
            if (to.begin >= to.end) continue;
            add_scaled(y + to.begin, channel + (size_t)iy * c->nb[1] + (size_t)ix * c->nb[0],
                       c->nb[0] * (size_t)c->stride[0], filter_at(kernel, kx, ky, at.i2),
                       to.end - to.begin);
        }
    }
}

// For results with pixels innermost.
static enum ggml_status by_rows(const struct cpu_task *task, const struct conv *c) {
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(task->dst), &begin, &end);
    for (int64_t r = begin; r < end; ++r)
        depthwise_row(task->dst, c, ggml_row_at(task->dst, r));
    return GGML_STATUS_SUCCESS;
}

// --- channels innermost --------------------------------------------------------------------------

// y[i] += w[i] * x[i], x at a stride in bytes.
static void add_products(float *restrict y, const char *x, size_t stride, const float *w,
                         int64_t n) {
    if (stride == sizeof(float)) {
        const float *in = (const float *)(const void *)x;
        for (int64_t i = 0; i < n; ++i)
            y[i] += w[i] * in[i];
        return;
    }
    for (int64_t i = 0; i < n; ++i)
        y[i] += w[i] * cpu_f32_at(x + (size_t)i * stride);
}

// The channels of the pixel whose window starts at (x, y).
static void depthwise_pixel(const struct conv *c, const float *filters, const char *image,
                            int64_t x, int64_t y, float *out) {
    memset(out, 0, (size_t)c->channels * sizeof(float));
    for (int64_t k = 0; k < c->kernel[0] * c->kernel[1]; ++k) {
        const int64_t ix = x + k % c->kernel[0] * c->dilation[0];
        const int64_t iy = y + k / c->kernel[0] * c->dilation[1];
        if (ix < 0 || ix >= c->in[0] || iy < 0 || iy >= c->in[1]) continue;
        add_products(out, image + (size_t)ix * c->nb[0] + (size_t)iy * c->nb[1], c->nb_channel,
                     filters + k * c->channels, c->channels);
    }
}

// Filters as F32 with channels innermost.
static void pack_channels(const struct cpu_task *task, const struct conv *c, float *packed) {
    const struct ggml_tensor *kernel = task->dst->src[0];
    int64_t begin, end;
    cpu_task_range(task, c->kernel[0] * c->kernel[1], &begin, &end);
    for (int64_t k = begin; k < end; ++k) {
        const char *x = (const char *)kernel->data + (size_t)(k % c->kernel[0]) * kernel->nb[0] +
                        (size_t)(k / c->kernel[0]) * kernel->nb[1];
        cpu_gather_floats(packed + k * c->channels, x, kernel->nb[3], kernel->type, c->channels);
    }
}

// For results with channels innermost: the filters are transposed first.
static enum ggml_status by_pixels(const struct cpu_task *task, const struct conv *c) {
    const struct ggml_tensor *dst = task->dst;
    pack_channels(task, c, task->work);
    cpu_team_barrier(task->team, task->ith);
    int64_t begin, end;
    cpu_task_range(task, conv_pixels(c) * c->batch, &begin, &end);
    for (int64_t i = begin; i < end; ++i) {
        const int64_t x = i % c->out[0];
        const int64_t y = i / c->out[0] % c->out[1];
        const int64_t image = i / c->out[0] / c->out[1];
        char *out = (char *)dst->data + (size_t)x * dst->nb[0] + (size_t)y * dst->nb[1] +
                    (size_t)image * dst->nb[3];
        depthwise_pixel(c, task->work, (const char *)c->image->data + (size_t)image * c->nb_batch,
                        conv_first(c, 0, x), conv_first(c, 1, y), (float *)(void *)out);
    }
    return GGML_STATUS_SUCCESS;
}

// The layout of the result decides between the two loops.
enum ggml_status CPU_FN(cpu_conv_2d_dw)(const struct cpu_task *task) {
    const struct conv c = conv_of_2d(task->dst, 2, 0);
    return ggml_rows_dense(task->dst) ? by_rows(task, &c) : by_pixels(task, &c);
}
