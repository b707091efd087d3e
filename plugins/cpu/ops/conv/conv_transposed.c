// SPDX-License-Identifier: MIT
// conv_transpose_1d and conv_transpose_2d: products of filters and pixels over the input channels,
// added to the result where each kernel element of each pixel falls. A block of the result adds its
// contributions in the same order, no matter which thread computes it.
#include "gemm/gemm.h"
#include "ops/conv/patches.h"

struct transposed {
    struct conv_transposed c;
    char *out;
    const float *filters; // [channels, width, channels_out, height]
    const float *pixels;  // [channels, width, height, batch]
    float *products;      // this thread's
};

// Part of a row of the result for a few output channels.
struct target {
    int64_t batch, y, x0, x1;
    int64_t channel, n_channels;
};

// Copies filters and pixels as floats with channels innermost; the threads share the work.
static void pack(const struct cpu_task *task, const struct conv_transposed *c, float *filters,
                 float *pixels) {
    const int64_t n_filters = c->size[0] * c->size[1] * c->channels_out;
    int64_t begin, end;
    cpu_task_range(task, n_filters + c->in[0] * c->in[1] * c->batch, &begin, &end);
    for (int64_t i = begin; i < MIN(end, n_filters); ++i) {
        const int64_t above = i / c->size[0];
        const char *x = (const char *)c->kernel->data + (size_t)(i % c->size[0]) * c->kernel_nb[0] +
                        (size_t)(above % c->channels_out) * c->kernel_nb_out +
                        (size_t)(above / c->channels_out) * c->kernel_nb[1];
        cpu_gather_floats(filters + i * c->channels, x, c->kernel_nb_in, c->kernel->type,
                          c->channels);
    }
    for (int64_t i = MAX(begin, n_filters) - n_filters; i < end - n_filters; ++i) {
        const int64_t above = i / c->in[0];
        const char *x = (const char *)c->image->data + (size_t)(i % c->in[0]) * c->image_nb[0] +
                        (size_t)(above % c->in[1]) * c->image_nb[1] +
                        (size_t)(above / c->in[1]) * c->image_nb_batch;
        cpu_gather_floats(pixels + i * c->channels, x, c->image_nb_channel, c->image->type,
                          c->channels);
    }
}

// Row of the target within one channel of the result.
static float *out_row(const struct transposed *t, const struct target *to, int64_t channel) {
    return (float *)(void *)(t->out + (size_t)channel * t->c.out_nb_channel +
                             (size_t)to->y * t->c.out_nb[1] +
                             (size_t)to->batch * t->c.out_nb_batch);
}

// Adds the products of n pixels from column x and n_rows filter elements from row `first` of the
// target's channels.
static void scatter(const struct transposed *t, const struct target *to, int64_t first, int n_rows,
                    int64_t x, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        for (int r = 0; r < n_rows; ++r) {
            const int64_t at = (x + i) * t->c.stride + (first + r) % t->c.size[0];
            if (at < to->x0 || at >= to->x1) continue;
            out_row(t, to, to->channel + (first + r) / t->c.size[0])[at] +=
                t->products[i * GEMM_MAX_ROWS + r];
        }
    }
}

// Contributions of columns [x, x + n) of an image row through kernel row ky.
static void add_columns(const struct transposed *t, const struct target *to, int64_t image_y,
                        int64_t ky, int64_t x, int64_t n) {
    const struct conv_transposed *c = &t->c;
    struct gemm_column columns[GEMM_COLUMNS];
    const float *pixels =
        t->pixels + ((to->batch * c->in[1] + image_y) * c->in[0] + x) * c->channels;
    for (int64_t i = 0; i < n; ++i) {
        columns[i] =
            (struct gemm_column){pixels + i * c->channels, t->products + i * GEMM_MAX_ROWS};
    }
    const float *filters =
        t->filters + (ky * c->channels_out + to->channel) * c->size[0] * c->channels;
    const int64_t rows = to->n_channels * c->size[0];
    for (int64_t r = 0; r < rows; r += GEMM_MAX_ROWS) {
        const int n_rows = (int)MIN(rows - r, GEMM_MAX_ROWS);
        const struct gemm_rows block = {(const char *)(filters + r * c->channels),
                                        (size_t)c->channels * sizeof(float), GGML_TYPE_F32,
                                        c->channels, false};
        CPU_FN(cpu_gemm)(&block, 0, n_rows, columns, n, NULL);
        scatter(t, to, r, n_rows, x, n);
    }
}

// Clears a part of a row of some channels, then adds the contributions of all pixels that reach it.
static void compute_target(const struct transposed *t, const struct target *to) {
    const struct conv_transposed *c = &t->c;
    const int64_t x_first = MAX(conv_ceil_div(to->x0 - c->size[0] + 1, c->stride), 0);
    const int64_t x_end = MIN((to->x1 - 1) / c->stride + 1, c->in[0]);
    const int64_t y_first = MAX(conv_ceil_div(to->y - c->size[1] + 1, c->stride), 0);
    const int64_t y_end = MIN(to->y / c->stride + 1, c->in[1]);
    for (int64_t i = 0; i < to->n_channels; ++i) {
        memset(out_row(t, to, to->channel + i) + to->x0, 0,
               (size_t)(to->x1 - to->x0) * sizeof(float));
    }
    for (int64_t y = y_first; y < y_end; ++y) {
        for (int64_t x = x_first; x < x_end; x += GEMM_COLUMNS)
            add_columns(t, to, y, to->y - y * c->stride, x, MIN(x_end - x, GEMM_COLUMNS));
    }
}

// Threads get separate parts of the result.
enum ggml_status CPU_FN(cpu_conv_transpose)(const struct cpu_task *task) {
    struct transposed t = {.c = conv_transposed_of(task->dst), .out = task->dst->data};
    const struct conv_transposed *c = &t.c;
    float *filters = task->work;
    float *pixels = filters + ggml_nelements(c->kernel);
    pack(task, c, filters, pixels);
    cpu_team_barrier(task->team, task->ith);
    t.filters = filters;
    t.pixels = pixels;
    t.products = pixels + ggml_nelements(c->image) + (size_t)task->ith * CONV_TRANSPOSED_FLOATS;
    // So many that a product fills the rows of the matrix kernel.
    const int64_t channels = MAX(GEMM_MAX_ROWS / MAX(c->size[0], 1), 1); // per target
    const int64_t groups = (c->channels_out + channels - 1) / channels;
    // Wide enough that little is computed twice at the edges: a pixel at an edge contributes to
    // both parts.
    const int64_t width = MAX(512, 8 * c->size[0]);
    const int64_t parts = (c->out[0] + width - 1) / width;
    int64_t begin, end;
    cpu_task_range(task, parts * groups * c->out[1] * c->batch, &begin, &end);
    for (int64_t unit = begin; unit < end; ++unit) {
        struct target to = {.x0 = unit % parts * width,
                            .channel = unit / parts % groups * channels};
        to.y = unit / parts / groups % c->out[1];
        to.batch = unit / parts / groups / c->out[1];
        to.x1 = MIN(to.x0 + width, c->out[0]);
        to.n_channels = MIN(channels, c->channels_out - to.channel);
        compute_target(&t, &to);
    }
    return GGML_STATUS_SUCCESS;
}
