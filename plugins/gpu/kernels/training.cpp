// SPDX-License-Identifier: MIT
// Gradients, losses and optimiser steps.
#include "tensor.h"

// s = sigmoid(x): the derivative of x s is s (1 + x (1 - s)).
GPU_KERNEL(kernel_silu_back, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &grad = p.operands[1], &x = p.operands[2];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at at = gpu_element_at(y, i);
    const float v = gpu_load(x.type, gpu_address(x, at)), s = gpu_sigmoid(v);
    gpu_store(y.type, gpu_address(y, at),
              gpu_load(grad.type, gpu_address(grad, at)) * s * (1.0f + v * (1.0f - s)));
}

// A block of threads per row. numbers[0]: 0 rms_norm_back, 1 soft_max_back. The result may be the
// gradient.
GPU_KERNEL(kernel_row_back, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, parts, GPU_MAX_WARPS);
    GPU_ARGS gpu_operand &y = p.operands[0], &grad = p.operands[1], &x = p.operands[2];
    const gpu_at at = gpu_row_at(y, gpu_bid_x(g));
    GPU_GLOBAL const u8 *d = gpu_row(grad, at.y, at.z, at.w), *v = gpu_row(x, at.y, at.z, at.w);
    GPU_GLOBAL u8 *to = gpu_row(y, at.y, at.z, at.w);
    const u64 n = (u64)y.ne[0];
    float products = 0.0f, squares = 0.0f;
    for (u64 i = gpu_tid(g); i < n; i += gpu_ntid(g)) {
        const float a = *(GPU_GLOBAL const float *)(d + (i64)i * grad.nb[0]),
                    b = *(GPU_GLOBAL const float *)(v + (i64)i * x.nb[0]);
        products += a * b;
        squares += b * b;
    }
    products = gpu_block_sum(g, parts, products);
    squares = gpu_block_sum(g, parts, squares);
    // With g the gradient: of x / r, r^2 the mean of squares plus eps, (g - x <g, x> / (n r^2)) /
    // r; of softmax y, scaled, scale y (g - <g, y>). <g, x> is `products`.
    const float param = gpu_param(p, 0), along = products / (squares + (float)n * param);
    const float scale = 1.0f / gpu_sqrt(squares / (float)n + param);
    for (u64 i = gpu_tid(g); i < n; i += gpu_ntid(g)) {
        const float a = *(GPU_GLOBAL const float *)(d + (i64)i * grad.nb[0]),
                    b = *(GPU_GLOBAL const float *)(v + (i64)i * x.nb[0]);
        *(GPU_GLOBAL float *)(to + (i64)i * y.nb[0]) =
            p.numbers[0] ? param * b * (a - products) : (a - b * along) * scale;
    }
}

// The sum of what an element was repeated to.
GPU_KERNEL(kernel_repeat_back, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at to = gpu_element_at(y, i);
    gpu_wide sum = {0.0f, 0.0f};
    for (u64 w = to.w; w < (u64)x.ne[3]; w += (u64)y.ne[3]) {
        for (u64 z = to.z; z < (u64)x.ne[2]; z += (u64)y.ne[2]) {
            for (u64 r = to.y; r < (u64)x.ne[1]; r += (u64)y.ne[1]) {
                GPU_GLOBAL const u8 *row = gpu_row(x, r, z, w);
                for (u64 c = to.x; c < (u64)x.ne[0]; c += (u64)y.ne[0])
                    sum = gpu_wide_add(sum,
                                       {*(GPU_GLOBAL const float *)(row + (i64)c * x.nb[0]), 0.0f});
            }
        }
    }
    *(GPU_GLOBAL float *)gpu_address(y, to) = sum.high;
}

// params of the step in operand 5: alpha, beta1, beta2, eps, decay, and what the moments are scaled
// by.
// Loshchilov and Hutter, Decoupled weight decay regularization (2019): the decay is of x itself,
// and does not go through the moments, which are updated in place.
GPU_KERNEL(kernel_adamw, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1], &grad = p.operands[2];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at at = gpu_element_at(y, i);
    GPU_GLOBAL const float *s = (GPU_GLOBAL const float *)p.operands[5].data;
    GPU_GLOBAL float *m = (GPU_GLOBAL float *)gpu_address(p.operands[3], at),
                     *v = (GPU_GLOBAL float *)gpu_address(p.operands[4], at);
    const float d = *(GPU_GLOBAL const float *)gpu_address(grad, at);
    *m = *m * s[1] + d * (1.0f - s[1]);
    *v = *v * s[2] + d * d * (1.0f - s[2]);
    *(GPU_GLOBAL float *)gpu_address(y, at) =
        *(GPU_GLOBAL const float *)gpu_address(x, at) * (1.0f - s[0] * s[4]) -
        s[0] * (*m * s[5]) / (gpu_sqrt(*v * s[6]) + s[3]);
}

// params of the step in operand 3: alpha, decay.
GPU_KERNEL(kernel_sgd, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1], &grad = p.operands[2];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at at = gpu_element_at(y, i);
    GPU_GLOBAL const float *s = (GPU_GLOBAL const float *)p.operands[3].data;
    *(GPU_GLOBAL float *)gpu_address(y, at) =
        *(GPU_GLOBAL const float *)gpu_address(x, at) * (1.0f - s[0] * s[1]) -
        s[0] * *(GPU_GLOBAL const float *)gpu_address(grad, at);
}

// --- losses --------------------------------------------------------------------------------------

// The largest logit of a row, and the sum of e^(x - largest), for a block of threads.
struct logit_sums {
    float largest, sum;
};
// The logarithm of a softmax is x - largest - log(sum): no exponential is above 1.
GPU_FN logit_sums logit_sums_of(gpu_thread g, GPU_LOCAL float *parts, GPU_ARGS gpu_operand &logits,
                                GPU_GLOBAL const u8 *row) {
    float largest = -GPU_INFINITY, sum = 0.0f;
    for (u64 i = gpu_tid(g); i < (u64)logits.ne[0]; i += gpu_ntid(g))
        largest = gpu_larger(largest, *(GPU_GLOBAL const float *)(row + (i64)i * logits.nb[0]));
    largest = gpu_block_max(g, parts, largest);
    for (u64 i = gpu_tid(g); i < (u64)logits.ne[0]; i += gpu_ntid(g))
        sum += gpu_exp(*(GPU_GLOBAL const float *)(row + (i64)i * logits.nb[0]) - largest);
    return {largest, gpu_block_sum(g, parts, sum)};
}

// The mean over rows of -sum(target log softmax(logits)), by one block.
GPU_KERNEL(kernel_cross_entropy, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, parts, GPU_MAX_WARPS);
    GPU_ARGS gpu_operand &logits = p.operands[1], &targets = p.operands[2];
    const u64 rows = (u64)logits.ne[1] * (u64)logits.ne[2] * (u64)logits.ne[3];
    gpu_wide loss = {0.0f, 0.0f};
    for (u64 r = 0; r < rows; ++r) {
        const gpu_at at = gpu_row_at(logits, r);
        GPU_GLOBAL const u8 *row = gpu_row(logits, at.y, at.z, at.w),
                            *target = gpu_row(targets, at.y, at.z, at.w);
        const logit_sums sums = logit_sums_of(g, parts, logits, row);
        const float log_sum = gpu_log(sums.sum);
        for (u64 i = gpu_tid(g); i < (u64)logits.ne[0]; i += gpu_ntid(g)) {
            const float x = *(GPU_GLOBAL const float *)(row + (i64)i * logits.nb[0]),
                        wanted = *(GPU_GLOBAL const float *)(target + (i64)i * targets.nb[0]);
            loss = gpu_wide_add(loss, {-wanted * ((x - sums.largest) - log_sum), 0.0f});
        }
    }
    const float total = gpu_block_sum(g, parts, loss.high),
                rest = gpu_block_sum(g, parts, loss.low);
    if (gpu_tid(g) == 0)
        *(GPU_GLOBAL float *)p.operands[0].data = rows > 0 ? (total + rest) / (float)rows : 0.0f;
}

// (softmax(logits) - targets) times the loss' gradient over the number of rows; a block per row.
GPU_KERNEL(kernel_cross_entropy_back, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, parts, GPU_MAX_WARPS);
    GPU_ARGS gpu_operand &y = p.operands[0], &logits = p.operands[2], &targets = p.operands[3];
    const gpu_at at = gpu_row_at(y, gpu_bid_x(g));
    GPU_GLOBAL const u8 *row = gpu_row(logits, at.y, at.z, at.w),
                        *target = gpu_row(targets, at.y, at.z, at.w);
    GPU_GLOBAL u8 *to = gpu_row(y, at.y, at.z, at.w);
    const float scale =
        *(GPU_GLOBAL const float *)p.operands[1].data / (float)(y.ne[1] * y.ne[2] * y.ne[3]);
    const logit_sums sums = logit_sums_of(g, parts, logits, row);
    const float inverse = 1.0f / sums.sum;
    for (u64 i = gpu_tid(g); i < (u64)y.ne[0]; i += gpu_ntid(g)) {
        const float x = *(GPU_GLOBAL const float *)(row + (i64)i * logits.nb[0]),
                    wanted = *(GPU_GLOBAL const float *)(target + (i64)i * targets.nb[0]);
        *(GPU_GLOBAL float *)(to + (i64)i * y.nb[0]) =
            (gpu_exp(x - sums.largest) * inverse - wanted) * scale;
    }
}

// Row r of y is the sum of those rows of operand 1 whose index is r; a thread per element.
GPU_KERNEL(kernel_get_rows_back, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &grad = p.operands[1], &ids = p.operands[2];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at to = gpu_element_at(y, i);
    float sum = 0.0f;
    // Linear in the rows for each element: no atomics, and the order of the sum is always the same.
    for (u64 r = 0; r < (u64)ids.ne[0]; ++r) {
        const gpu_at id_at = {r, 0, 0, 0};
        if (*(GPU_GLOBAL const i32 *)gpu_address(ids, id_at) == (i32)to.y)
            sum += gpu_element_far(grad, gpu_row(grad, r, 0, 0), to.x);
    }
    *(GPU_GLOBAL float *)gpu_address(y, to) = sum;
}
