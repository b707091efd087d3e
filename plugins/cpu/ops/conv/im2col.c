// SPDX-License-Identifier: MIT
// im2col, im2col_3d, im2col_back, col2im_1d.
#include "ops/conv/patches.h"

// Threads share windows; each window is a row of the result.
enum ggml_status CPU_FN(cpu_im2col)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const struct conv c = conv_of_im2col(dst);
    const int64_t n = conv_patch(&c);
    float *buffer = cpu_row_buffer(task, n);
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        char *row = ggml_row_data(dst, ggml_row_at(dst, r));
        float *y = cpu_target(buffer, row, dst->type, 0);
        conv_patch_at(&c, r, y);
        cpu_store(row, dst->type, 0, y, n);
    }
    return GGML_STATUS_SUCCESS;
}

// --- gradient ------------------------------------------------------------------------------------

// The window whose kernel element k meets position i; -1 if there is none.
static int64_t window_of(const struct conv *c, int d, int64_t i, int64_t k) {
    const int64_t at = i + c->padding[d] - k * c->dilation[d];
    if (at < 0 || at % c->stride[d] != 0 || at / c->stride[d] >= c->out[d]) return -1;
    return at / c->stride[d];
}

// Sum over all patches that hold the pixel (x, y) of a channel.
static float sum_patches(const struct conv *c, const struct ggml_tensor *grad, const char *patches,
                         int64_t x, int64_t y, int64_t channel) {
    float sum = 0.0f;
    for (int64_t ky = 0; ky < c->kernel[1]; ++ky) {
        const int64_t oy = window_of(c, 1, y, ky);
        if (oy < 0) continue;
        for (int64_t kx = 0; kx < c->kernel[0]; ++kx) {
            const int64_t ox = window_of(c, 0, x, kx);
            if (ox < 0) continue;
            const int64_t at = (channel * c->kernel[1] + ky) * c->kernel[0] + kx;
            sum += cpu_f32_at(patches + (size_t)ox * grad->nb[1] + (size_t)oy * grad->nb[2] +
                              (size_t)at * grad->nb[0]);
        }
    }
    return sum;
}

// Each pixel sums the patches that contain it, so that no two threads write the same element.
enum ggml_status CPU_FN(cpu_im2col_back)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const struct ggml_tensor *grad = dst->src[0];
    const struct conv c = conv_of_im2col_back(dst);
    const bool is_2d = dst->op_params[6] != 0;
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(dst, r);
        const int64_t iy = is_2d ? at.i1 : 0;
        const int64_t channel = is_2d ? at.i2 : at.i1;
        const char *patches = (const char *)grad->data +
                              (is_2d ? (size_t)at.i3 * grad->nb[3] : (size_t)at.i2 * grad->nb[2]);
        float *y = (float *)(void *)ggml_row_data(dst, at);
        for (int64_t x = 0; x < dst->ne[0]; ++x)
            y[x] = sum_patches(&c, grad, patches, x, iy, channel);
    }
    return GGML_STATUS_SUCCESS;
}

// --- columns to a sequence -----------------------------------------------------------------------

// Sum of the columns' elements that fall on position t of the sequence.
static float sum_columns(const struct ggml_tensor *a, const char *filter, int64_t size,
                         int64_t stride, int64_t t) {
    float sum = 0.0f;
    const int64_t last = MIN(t / stride, a->ne[1] - 1);
    for (int64_t i = MAX(conv_ceil_div(t - size + 1, stride), 0); i <= last; ++i) {
        const int64_t k = t - i * stride;
        sum += cpu_float_at(filter + (size_t)i * a->nb[1] + (size_t)k * a->nb[0], a->type);
    }
    return sum;
}

// Each element sums the columns that cover it.
enum ggml_status CPU_FN(cpu_col2im_1d)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const struct ggml_tensor *a = dst->src[0];
    const int64_t stride = dst->op_params[0];
    const int64_t size = a->ne[0] / dst->ne[1];
    const int64_t padding = dst->op_params[2];
    float buffer[CPU_CHUNK];
    const int64_t chunks = (dst->ne[0] + CPU_CHUNK - 1) / CPU_CHUNK;
    int64_t begin, end;
    cpu_task_range(task, chunks * dst->ne[1], &begin, &end);
    for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t channel = unit / chunks;
        const int64_t t0 = unit % chunks * CPU_CHUNK;
        const int64_t n = MIN(dst->ne[0] - t0, CPU_CHUNK);
        const char *filter = (const char *)a->data + (size_t)(channel * size) * a->nb[0];
        char *row = (char *)dst->data + (size_t)channel * dst->nb[1];
        float *y = cpu_target(buffer, row, dst->type, t0);
        for (int64_t i = 0; i < n; ++i)
            y[i] = sum_columns(a, filter, size, stride, t0 + i + padding);
        cpu_store(row, dst->type, t0, y, n);
    }
    return GGML_STATUS_SUCCESS;
}
