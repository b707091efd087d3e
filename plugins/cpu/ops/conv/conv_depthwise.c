// SPDX-License-Identifier: MIT
// conv_2d_dw: a filter per channel. The result has either its pixels or its channels innermost.
#include "ops/conv/patches.h"
#include "simd/bytes.h"

enum { CHANNEL_VECTORS = 4 }; // that are summed together

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
    const int64_t row = conv_first(c, 1, at.i1);
    const struct conv_span rows = conv_inside(c, 1, row);
    memset(y, 0, (size_t)c->out[0] * sizeof(float));
    for (int64_t kx = 0; kx < c->kernel[0]; ++kx) {
        const struct conv_span to = outputs(c, kx);
        if (to.begin >= to.end) continue;
        const int64_t ix = conv_first(c, 0, to.begin) + kx * c->dilation[0];
        for (int64_t ky = rows.begin; ky < rows.end; ++ky)
            add_scaled(y + to.begin,
                       channel + (size_t)(row + ky * c->dilation[1]) * c->nb[1] +
                           (size_t)ix * c->nb[0],
                       c->nb[0] * (size_t)c->stride[0], filter_at(kernel, kx, ky, at.i2),
                       to.end - to.begin);
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

// The part of a window that lies inside the image, from its first pixel and that one's filters on.
struct taps {
    const char *x;
    const float *w;
    int64_t columns, rows;
    size_t next_column, next_row; // bytes from a pixel to the next
    int64_t n_filters;            // floats of a pixel's
    int64_t row_filters;          // and of those of a whole row
};

// The sums of `vectors` vectors of channels from `first` on, which lie side by side.
CPU_INLINE void sum_channels(const struct taps *t, int64_t first, const int vectors, float *y) {
    vf sums[CHANNEL_VECTORS] = {0};
    for (int64_t r = 0; r < t->rows; ++r) {
        const float *w = t->w + r * t->row_filters + first;
        const char *x = t->x + (size_t)r * t->next_row + (size_t)first * sizeof(float);
        for (int64_t k = 0; k < t->columns; ++k, x += t->next_column, w += t->n_filters) {
            CPU_UNROLLED
            for (int v = 0; v < vectors; ++v)
                sums[v] +=
                    vf_load(w + v * LANES) * vf_load((const float *)(const void *)x + v * LANES);
        }
    }
    CPU_UNROLLED
    for (int v = 0; v < vectors; ++v)
        vf_store(y + first + v * LANES, sums[v]);
}

// That of one channel, wherever it lies.
static float sum_channel(const struct taps *t, int64_t channel, size_t stride) {
    float sum = 0;
    for (int64_t r = 0; r < t->rows; ++r) {
        const float *w = t->w + r * t->row_filters + channel;
        const char *x = t->x + (size_t)r * t->next_row + (size_t)channel * stride;
        for (int64_t k = 0; k < t->columns; ++k)
            sum += w[k * t->n_filters] * cpu_f32_at(x + (size_t)k * t->next_column);
    }
    return sum;
}

// All channels of a pixel; the last vector may repeat some.
static void depthwise_pixel(const struct conv *c, const struct taps *t, float *y) {
    int64_t i = 0;
    if (c->nb_channel != sizeof(float) || c->channels < LANES) {
        for (; i < c->channels; ++i)
            y[i] = sum_channel(t, i, c->nb_channel);
        return;
    }
    for (; i + CHANNEL_VECTORS * LANES <= c->channels; i += CHANNEL_VECTORS * LANES)
        sum_channels(t, i, CHANNEL_VECTORS, y);
    for (; i < c->channels; i += LANES)
        sum_channels(t, MIN(i, c->channels - LANES), 1, y);
}

// Where the first element of a span lies along dim d, whose window begins at `first`; 0 if there is
// none.
static int64_t first_inside(const struct conv *c, int d, int64_t first, struct conv_span span) {
    return span.begin < span.end ? first + span.begin * c->dilation[d] : 0;
}

// Pixels [begin, end) of a line; lines of all images are numbered through.
static void depthwise_line(const struct cpu_task *task, const struct conv *c, int64_t line,
                           int64_t begin, int64_t end) {
    const struct ggml_tensor *dst = task->dst;
    const int64_t y = line % c->out[1], image = line / c->out[1], row = conv_first(c, 1, y);
    const struct conv_span rows = conv_inside(c, 1, row);
    const char *data = (const char *)c->image->data + (size_t)image * c->nb_batch +
                       (size_t)first_inside(c, 1, row, rows) * c->nb[1];
    struct taps t = {.rows = rows.end - rows.begin,
                     .next_column = c->nb[0] * (size_t)c->dilation[0],
                     .next_row = c->nb[1] * (size_t)c->dilation[1],
                     .n_filters = c->channels,
                     .row_filters = c->channels * c->kernel[0]};
    char *out = (char *)dst->data + (size_t)y * dst->nb[1] + (size_t)image * dst->nb[3];
    for (int64_t x = begin; x < end; ++x) {
        const int64_t first = conv_first(c, 0, x);
        const int64_t last = first + (c->kernel[0] - 1) * c->dilation[0];
        const struct conv_span columns = first >= 0 && last < c->in[0]
                                             ? (struct conv_span){0, c->kernel[0]}
                                             : conv_span(c, first);
        t.columns = columns.end - columns.begin;
        t.x = data + (size_t)first_inside(c, 0, first, columns) * c->nb[0];
        t.w = (const float *)task->work + rows.begin * t.row_filters + columns.begin * c->channels;
        depthwise_pixel(c, &t, (float *)(void *)(out + (size_t)x * dst->nb[0]));
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
    pack_channels(task, c, task->work);
    cpu_team_barrier(task->team, task->ith);
    int64_t begin, end;
    cpu_task_range(task, conv_pixels(c) * c->batch, &begin, &end);
    for (int64_t i = begin, n; i < end; i += n) {
        const int64_t x = i % c->out[0];
        n = MIN(end - i, c->out[0] - x);
        depthwise_line(task, c, i / c->out[0], x, x + n);
    }
    return GGML_STATUS_SUCCESS;
}

// The layout of the result decides between the two loops.
enum ggml_status CPU_FN(cpu_conv_2d_dw)(const struct cpu_task *task) {
    const struct conv c = conv_of_2d(task->dst, 2, 0);
    return ggml_rows_dense(task->dst) ? by_rows(task, &c) : by_pixels(task, &c);
}
