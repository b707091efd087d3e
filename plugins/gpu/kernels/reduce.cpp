// SPDX-License-Identifier: MIT
// One block of threads per row: sums, norms, softmax. A result may be its source: a thread reads
// and writes the same elements.
#include "tensor.h"

GPU_FN float f32_at(GPU_ARGS gpu_operand &t, GPU_GLOBAL const u8 *row, u64 i) {
    return *(GPU_GLOBAL const float *)(row + (i64)i * t.nb[0]);
}

// Of all elements, by one block.
// Thread t of n has elements t, t + n, ...; a sum of two floats keeps what a long sum would lose.
GPU_KERNEL(kernel_sum, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, parts, GPU_MAX_WARPS);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    gpu_wide sum = {0.0f, 0.0f};
    for (u64 i = gpu_tid(g); i < gpu_count(x); i += gpu_ntid(g))
        sum = gpu_wide_add(sum, {gpu_load(x.type, gpu_address(x, gpu_element_at(x, i))), 0.0f});
    // What a float loses of a part is added up as well.
    const float total = gpu_block_sum(g, parts, sum.high), rest = gpu_block_sum(g, parts, sum.low);
    if (gpu_tid(g) == 0) gpu_store(y.type, (GPU_GLOBAL void *)y.data, total + rest);
}

// numbers[0]: 1: the mean.
GPU_KERNEL(kernel_sum_rows, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, parts, GPU_MAX_WARPS);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const gpu_at at = gpu_row_at(x, gpu_bid_x(g));
    GPU_GLOBAL const u8 *row = gpu_row(x, at.y, at.z, at.w);
    float sum = 0.0f;
    for (u64 i = gpu_tid(g); i < (u64)x.ne[0]; i += gpu_ntid(g))
        sum += f32_at(x, row, i);
    sum = gpu_block_sum(g, parts, sum);
    if (gpu_tid(g) == 0)
        *(GPU_GLOBAL float *)gpu_row(y, at.y, at.z, at.w) =
            p.numbers[0] ? sum / (float)x.ne[0] : sum;
}

// A thread per row.
// Sequential: a parallel scan adds in another order, so that results would depend on the number of
// threads.
GPU_KERNEL(kernel_cumsum, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const u64 r = gpu_index(g);
    if (r >= (u64)x.ne[1] * (u64)x.ne[2] * (u64)x.ne[3]) return;
    const gpu_at at = gpu_row_at(x, r);
    GPU_GLOBAL const u8 *from = gpu_row(x, at.y, at.z, at.w);
    GPU_GLOBAL u8 *to = gpu_row(y, at.y, at.z, at.w);
    gpu_wide sum = {0.0f, 0.0f};
    for (u64 i = 0; i < (u64)x.ne[0]; ++i) {
        sum = gpu_wide_add(sum, {f32_at(x, from, i), 0.0f});
        *(GPU_GLOBAL float *)(to + (i64)i * y.nb[0]) = sum.high;
    }
}

// A thread per row: the first of the largest.
GPU_KERNEL(kernel_argmax, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const u64 r = gpu_index(g);
    if (r >= (u64)x.ne[1]) return;
    GPU_GLOBAL const u8 *row = gpu_row(x, r, 0, 0);
    i32 best = 0;
    float largest = -GPU_INFINITY;
    for (u64 i = 0; i < (u64)x.ne[0]; ++i) {
        const float value = f32_at(x, row, i);
        if (value > largest) {
            largest = value;
            best = (i32)i;
        }
    }
    *(GPU_GLOBAL i32 *)((GPU_GLOBAL u8 *)y.data + (i64)r * y.nb[0]) = best;
}

// How many elements of two tensors, of 32 bits each, are the same; by one block.
GPU_KERNEL(kernel_count_equal, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(u64, counts, 256);
    GPU_ARGS gpu_operand &a = p.operands[1], &b = p.operands[2];
    u64 count = 0;
    for (u64 i = gpu_tid(g); i < gpu_count(a); i += gpu_ntid(g)) {
        const gpu_at at = gpu_element_at(a, i);
        count += *(GPU_GLOBAL const u32 *)gpu_address(a, at) ==
                 *(GPU_GLOBAL const u32 *)gpu_address(b, at);
    }
    counts[gpu_tid(g)] = count;
    gpu_sync(g);
    if (gpu_tid(g) != 0) return;
    u64 sum = 0;
    for (u32 i = 0; i < gpu_ntid(g); ++i)
        sum += counts[i];
    *(GPU_GLOBAL u64 *)p.operands[0].data = sum;
}

// --- norms ---------------------------------------------------------------------------------------

enum { NORM, RMS_NORM, L2_NORM, GROUP_NORM };

// Element i of the group that begins at `first`.
GPU_FN GPU_GLOBAL float *norm_place(GPU_ARGS gpu_operand &t, int kind, gpu_at first, u64 i) {
    gpu_at at = gpu_element_at(t, i);
    if (kind != GROUP_NORM) at = {i, 0, 0, 0};
    return (GPU_GLOBAL float *)(gpu_row(t, first.y + at.y, first.z + at.z, first.w) +
                                (i64)at.x * t.nb[0]);
}

// numbers[0]: which norm; of GROUP_NORM numbers[1]: channels of a group, numbers[2]: groups.
GPU_KERNEL(kernel_norm, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, parts, GPU_MAX_WARPS);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const int kind = (int)p.numbers[0];
    gpu_at first = gpu_row_at(x, gpu_bid_x(g));
    u64 n = (u64)x.ne[0];
    if (kind == GROUP_NORM) {
        u64 group;
        first.w = gpu_divide(gpu_bid_x(g), (u64)p.numbers[2], &group);
        first.y = 0;
        first.z = group * (u64)p.numbers[1];
        if (first.z >= (u64)x.ne[2]) return;
        const u64 left = (u64)x.ne[2] - first.z;
        n *= (u64)x.ne[1] * (left < (u64)p.numbers[1] ? left : (u64)p.numbers[1]);
    }
    float sum = 0.0f;
    // The mean first, then squares of what is left: the mean of squares less the square of the mean
    // would cancel. The other two norms have no mean, which stays 0.
    if (kind == NORM || kind == GROUP_NORM) {
        for (u64 i = gpu_tid(g); i < n; i += gpu_ntid(g))
            sum += *norm_place(x, kind, first, i);
        sum = gpu_block_sum(g, parts, sum) / (float)n;
    }
    float squares = 0.0f;
    for (u64 i = gpu_tid(g); i < n; i += gpu_ntid(g)) {
        const float v = *norm_place(x, kind, first, i) - sum;
        squares += v * v;
    }
    squares = gpu_block_sum(g, parts, squares);
    // Below the root it is added; the length of L2 is at least it.
    const float eps = gpu_param(p, kind == GROUP_NORM ? 1 : 0);
    const float length = kind == L2_NORM ? gpu_sqrt(squares) : gpu_sqrt(squares / (float)n + eps);
    const float scale = 1.0f / (kind == L2_NORM ? gpu_larger(length, eps) : length);
    for (u64 i = gpu_tid(g); i < n; i += gpu_ntid(g))
        *norm_place(y, kind, first, i) = (*norm_place(x, kind, first, i) - sum) * scale;
}

// --- softmax -------------------------------------------------------------------------------------

// mask_row NULL: there is none.
GPU_FN float scaled(GPU_ARGS gpu_operand &x, GPU_GLOBAL const u8 *row, u64 i, float scale,
                    GPU_ARGS gpu_operand &mask, GPU_GLOBAL const u8 *mask_row, float slope) {
    const float z = f32_at(x, row, i) * scale;
    return mask_row ? z + slope * gpu_load(mask.type, mask_row + (i64)i * mask.nb[0]) : z;
}

// Of scale x + slope mask, with a sink in the denominator. params: scale, ALiBi's largest exponent.
GPU_KERNEL(kernel_soft_max, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, parts, GPU_MAX_WARPS);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1], &mask = p.operands[2],
                         &sinks = p.operands[3];
    const gpu_at at = gpu_row_at(x, gpu_bid_x(g));
    GPU_GLOBAL const u8 *from = gpu_row(x, at.y, at.z, at.w);
    GPU_GLOBAL const u8 *mask_row =
        mask.data ? gpu_row(mask, at.y, at.z % (u64)mask.ne[2], at.w % (u64)mask.ne[3]) : 0;
    GPU_GLOBAL u8 *to = gpu_row(y, at.y, at.z, at.w);
    const float slope = gpu_alibi_slope(p, at.z), scale = gpu_param(p, 0);
    const float sink = sinks.data ? ((GPU_GLOBAL const float *)sinks.data)[at.z] : -GPU_INFINITY;
    const u64 n = (u64)x.ne[0];
    // Three passes over the row, which may be of any length: the largest, the sum relative to it,
    // which keeps the exponentials within 1, and the result. Each forms the scores anew.
    float largest = sink;
    for (u64 i = gpu_tid(g); i < n; i += gpu_ntid(g))
        largest = gpu_larger(largest, scaled(x, from, i, scale, mask, mask_row, slope));
    largest = gpu_block_max(g, parts, largest);
    float sum = 0.0f;
    for (u64 i = gpu_tid(g); i < n; i += gpu_ntid(g))
        sum += gpu_exp(scaled(x, from, i, scale, mask, mask_row, slope) - largest);
    sum = gpu_block_sum(g, parts, sum);
    if (sinks.data) sum += gpu_exp(sink - largest);
    const float inverse = 1.0f / sum;
    for (u64 i = gpu_tid(g); i < n; i += gpu_ntid(g))
        *(GPU_GLOBAL float *)(to + (i64)i * y.nb[0]) =
            gpu_exp(scaled(x, from, i, scale, mask, mask_row, slope) - largest) * inverse;
}
