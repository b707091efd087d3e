// SPDX-License-Identifier: MIT
// Convolutions and their patches: a thread per element of the result, neighbours in the innermost
// dimension, so that threads of a warp read neighbouring pixels. What lies outside of the image
// is 0.
#include "tensor.h"

// Over up to three dimensions; those that an operation does not have have extent 1.
struct gpu_window {
    i64 size[3], in[3], nb[3]; // extents; bytes between the image's pixels
    int stride[3], padding[3], dilation[3];
};

// numbers of the kernels here, unless they say more: how many dimensions; extents of the grid of
// windows; channels; bytes between the image's channels and between images.
enum { WINDOW_DIMS, WINDOW_OUT, WINDOW_CHANNELS = 4, WINDOW_NB_CHANNEL, WINDOW_NB_IMAGE };

GPU_FN gpu_window window_of(GPU_ARGS gpu_args &p, GPU_ARGS gpu_operand &filters,
                            GPU_ARGS gpu_operand &image) {
    gpu_window w;
    const int dims = (int)p.numbers[WINDOW_DIMS], n = dims == 3 ? 3 : 2; // parameters of a kind
    for (int d = 0; d < 3; ++d) {
        const bool has = d < dims;
        w.size[d] = has ? filters.ne[d] : 1;
        w.in[d] = has ? image.ne[d] : 1;
        w.nb[d] = has ? image.nb[d] : 0;
        w.stride[d] = has ? p.params[d] : 1;
        w.padding[d] = has ? p.params[n + d] : 0;
        w.dilation[d] = has ? p.params[2 * n + d] : 1;
    }
    return w;
}

// Window i of all, dimension 0 fastest, and which image it is of.
struct window_at {
    i64 first[3]; // pixel of kernel element 0
    u64 image;
};
GPU_FN window_at window_number(GPU_ARGS gpu_args &p, GPU_PRIVATE const gpu_window &w, u64 i) {
    u64 x, y, z;
    const u64 row = gpu_divide(i, (u64)p.numbers[WINDOW_OUT], &x);
    const u64 plane = gpu_divide(row, (u64)p.numbers[WINDOW_OUT + 1], &y);
    window_at at;
    at.image = gpu_divide(plane, (u64)p.numbers[WINDOW_OUT + 2], &z);
    at.first[0] = (i64)x * w.stride[0] - w.padding[0];
    at.first[1] = (i64)y * w.stride[1] - w.padding[1];
    at.first[2] = (i64)z * w.stride[2] - w.padding[2];
    return at;
}

// The pixel of a channel under an element of the kernel; false: it is outside.
GPU_FN bool pixel_under(GPU_PRIVATE const gpu_window &w, GPU_PRIVATE const window_at &at, i64 kx,
                        i64 ky, i64 kz, GPU_PRIVATE i64 *out_offset) {
    const i64 x = at.first[0] + kx * w.dilation[0], y = at.first[1] + ky * w.dilation[1],
              z = at.first[2] + kz * w.dilation[2];
    *out_offset = x * w.nb[0] + y * w.nb[1] + z * w.nb[2];
    return x >= 0 && x < w.in[0] && y >= 0 && y < w.in[1] && z >= 0 && z < w.in[2];
}

// A row of y is a window of all channels, kernel columns fastest and channels slowest.
GPU_KERNEL(kernel_im2col, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &filters = p.operands[1], &image = p.operands[2];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_window w = window_of(p, filters, image);
    u64 element, kx, ky, kz;
    const u64 row = gpu_divide(i, (u64)y.ne[0], &element);
    const u64 line = gpu_divide(element, (u64)w.size[0], &kx);
    const u64 plane = gpu_divide(line, (u64)w.size[1], &ky);
    const u64 channel = gpu_divide(plane, (u64)w.size[2], &kz);
    const window_at at = window_number(p, w, row);
    i64 offset;
    const bool inside = pixel_under(w, at, (i64)kx, (i64)ky, (i64)kz, &offset);
    GPU_GLOBAL const u8 *from = (GPU_GLOBAL const u8 *)image.data +
                                (i64)channel * p.numbers[WINDOW_NB_CHANNEL] +
                                (i64)at.image * p.numbers[WINDOW_NB_IMAGE];
    const float value = inside ? gpu_load(image.type, from + offset) : 0.0f;
    gpu_store(y.type, gpu_address(y, gpu_element_at(y, i)), value);
}

// --- direct --------------------------------------------------------------------------------------

// sum + a filter's elements for one channel times the pixels under them.
GPU_FN float window_sum(GPU_ARGS gpu_operand &filters, GPU_ARGS gpu_operand &image,
                        GPU_PRIVATE const gpu_window &w, GPU_PRIVATE const window_at &at,
                        GPU_GLOBAL const u8 *filter, GPU_GLOBAL const u8 *channel, float sum) {
    for (i64 kz = 0; kz < w.size[2]; ++kz) {
        for (i64 ky = 0; ky < w.size[1]; ++ky) {
            for (i64 kx = 0; kx < w.size[0]; ++kx) {
                i64 offset;
                if (!pixel_under(w, at, kx, ky, kz, &offset)) continue;
                const i64 element = kx * filters.nb[0] + ky * filters.nb[1] +
                                    (w.size[2] > 1 ? kz * filters.nb[2] : 0);
                sum = gpu_fma(gpu_load(filters.type, filter + element),
                              gpu_load(image.type, channel + offset), sum);
            }
        }
    }
    return sum;
}

// y is packed: pixels, then filters, then images. numbers[7]: filters.
GPU_KERNEL(kernel_conv, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &filters = p.operands[1], &image = p.operands[2];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_window w = window_of(p, filters, image);
    const u64 pixels =
        (u64)(p.numbers[WINDOW_OUT] * p.numbers[WINDOW_OUT + 1] * p.numbers[WINDOW_OUT + 2]);
    const i64 channels = p.numbers[WINDOW_CHANNELS];
    const bool is_3d = p.numbers[WINDOW_DIMS] == 3;
    u64 pixel, filter;
    const u64 picture = gpu_divide(gpu_divide(i, pixels, &pixel), (u64)p.numbers[7], &filter);
    const window_at at = window_number(p, w, pixel);
    // Filters and channels share dimension 3 of a kernel for three dimensions.
    const i64 nb_channel = is_3d ? filters.nb[3] : filters.nb[2],
              nb_filter = is_3d ? filters.nb[3] * channels : filters.nb[3];
    GPU_GLOBAL const u8 *weights = (GPU_GLOBAL const u8 *)filters.data + (i64)filter * nb_filter;
    GPU_GLOBAL const u8 *from =
        (GPU_GLOBAL const u8 *)image.data + (i64)picture * p.numbers[WINDOW_NB_IMAGE];
    float sum = 0.0f;
    for (i64 c = 0; c < channels; ++c)
        sum = window_sum(filters, image, w, at, weights + c * nb_channel,
                         from + c * p.numbers[WINDOW_NB_CHANNEL], sum);
    gpu_store(y.type, (GPU_GLOBAL u8 *)y.data + i * gpu_block_bytes(y.type), sum);
}

// A filter per channel. y may have its pixels or its channels innermost.
GPU_KERNEL(kernel_conv_depthwise, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &filters = p.operands[1], &image = p.operands[2];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_window w = window_of(p, filters, image);
    gpu_at to;
    if (y.nb[2] < y.nb[0]) { // channels innermost
        u64 channel;
        const u64 rest = gpu_divide(i, (u64)y.ne[2], &channel);
        const u64 line = gpu_divide(rest, (u64)y.ne[0], &to.x);
        to.w = gpu_divide(line, (u64)y.ne[1], &to.y);
        to.z = channel;
    } else {
        to = gpu_element_at(y, i);
    }
    const window_at at = window_number(p, w, to.x + to.y * (u64)y.ne[0]);
    const float sum = window_sum(filters, image, w, at,
                                 (GPU_GLOBAL const u8 *)filters.data + (i64)to.z * filters.nb[3],
                                 gpu_row(image, 0, to.z, to.w), 0.0f);
    *(GPU_GLOBAL float *)gpu_address(y, to) = sum;
}

// --- transposed ----------------------------------------------------------------------------------

// One channel: elements of the kernel times the pixels that they bring to (x, y).
GPU_FN float transposed_sum(GPU_ARGS gpu_operand &filters, GPU_ARGS gpu_operand &image, i64 stride,
                            bool flat, i64 x, i64 y, GPU_GLOBAL const u8 *filter,
                            GPU_GLOBAL const u8 *channel, float sum) {
    const i64 height = flat ? 1 : filters.ne[1], rows = flat ? 1 : image.ne[1];
    // y = iy stride + ky: only every stride-th row of the kernel, from y % stride on, brings a
    // pixel here.
    for (i64 ky = y % stride; ky < height && ky <= y; ky += stride) {
        const i64 iy = (y - ky) / stride;
        if (iy >= rows) continue;
        for (i64 kx = x % stride; kx < filters.ne[0] && kx <= x; kx += stride) {
            const i64 ix = (x - kx) / stride;
            if (ix >= image.ne[0]) continue;
            const i64 element = kx * filters.nb[0] + (flat ? 0 : ky * filters.nb[1]),
                      pixel = ix * image.nb[0] + (flat ? 0 : iy * image.nb[1]);
            sum = gpu_fma(gpu_load(filters.type, filter + element),
                          gpu_load(image.type, channel + pixel), sum);
        }
    }
    return sum;
}

// params[0]: the stride. numbers[0]: 1: of one dimension, channels in dimension 1.
GPU_KERNEL(kernel_conv_transpose, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &filters = p.operands[1], &image = p.operands[2];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const bool flat = p.numbers[0] != 0;
    const gpu_at to = gpu_element_at(y, i);
    const u64 filter = flat ? to.y : to.z, picture = flat ? to.z : to.w;
    GPU_GLOBAL const u8 *weights =
        (GPU_GLOBAL const u8 *)filters.data + (i64)filter * (flat ? filters.nb[1] : filters.nb[2]);
    GPU_GLOBAL const u8 *from =
        (GPU_GLOBAL const u8 *)image.data + (i64)picture * (flat ? image.nb[2] : image.nb[3]);
    const i64 nb_in = flat ? filters.nb[2] : filters.nb[3],
              nb_channel = flat ? image.nb[1] : image.nb[2];
    const i64 channels = flat ? image.ne[1] : image.ne[2];
    float sum = 0.0f;
    for (i64 c = 0; c < channels; ++c)
        sum = transposed_sum(filters, image, p.params[0], flat, (i64)to.x, flat ? 0 : (i64)to.y,
                             weights + c * nb_in, from + c * nb_channel, sum);
    *(GPU_GLOBAL float *)gpu_address(y, to) = sum;
}

// --- back to an image ----------------------------------------------------------------------------

// The window whose kernel element k lies on pixel i; -1: there is none.
GPU_FN i64 window_over(GPU_PRIVATE const gpu_window &w, int d, i64 out, i64 i, i64 k) {
    const i64 at = i + w.padding[d] - k * w.dilation[d];
    if (at < 0 || at % w.stride[d] != 0 || at / w.stride[d] >= out) return -1;
    return at / w.stride[d];
}

// Each pixel is the sum over the patches that hold it. Operand 2 has the kernel's extents.
GPU_KERNEL(kernel_im2col_back, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &grad = p.operands[1], &filters = p.operands[2];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_window w = window_of(p, filters, y);
    const bool is_2d = p.numbers[WINDOW_DIMS] == 2;
    const gpu_at to = gpu_element_at(y, i);
    const i64 row = is_2d ? (i64)to.y : 0, channel = is_2d ? (i64)to.z : (i64)to.y;
    GPU_GLOBAL const u8 *patches = (GPU_GLOBAL const u8 *)grad.data +
                                   (is_2d ? (i64)to.w * grad.nb[3] : (i64)to.z * grad.nb[2]);
    float sum = 0.0f;
    for (i64 ky = 0; ky < w.size[1]; ++ky) {
        const i64 oy = window_over(w, 1, p.numbers[WINDOW_OUT + 1], row, ky);
        for (i64 kx = 0; kx < w.size[0] && oy >= 0; ++kx) {
            const i64 ox = window_over(w, 0, p.numbers[WINDOW_OUT], (i64)to.x, kx);
            if (ox < 0) continue;
            const i64 element = (channel * w.size[1] + ky) * w.size[0] + kx;
            sum += *(GPU_GLOBAL const float *)(patches + ox * grad.nb[1] + oy * grad.nb[2] +
                                               element * grad.nb[0]);
        }
    }
    *(GPU_GLOBAL float *)gpu_address(y, to) = sum;
}

// Columns of a, each a piece of the sequence at a stride. params: stride, channels, padding.
GPU_KERNEL(kernel_col2im_1d, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &a = p.operands[1];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at to = gpu_element_at(y, i);
    const i64 stride = p.params[0], size = a.ne[0] / p.params[1], t = (i64)to.x + p.params[2];
    // Column c covers t where c stride <= t < c stride + size.
    const i64 before = t - size + 1; // the first column begins there or later
    float sum = 0.0f;
    for (i64 c = before > 0 ? (before - 1) / stride + 1 : 0; c * stride <= t && c < a.ne[1]; ++c) {
        const i64 element = (i64)to.y * size + t - c * stride;
        sum += gpu_load(a.type, gpu_row(a, (u64)c, 0, 0) + element * a.nb[0]);
    }
    gpu_store(y.type, gpu_address(y, to), sum);
}
