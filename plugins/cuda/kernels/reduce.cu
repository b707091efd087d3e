// SPDX-License-Identifier: MIT
// One block of threads per row: sums, norms, softmax. A result may be its source: a thread reads
// and writes the same elements.
#include "tensor.h"

GPU_FN float f32_at(const cuda_operand &t, const u8 *row, u64 i) {
    return *(const float *)(row + (i64)i * t.nb[0]);
}

// Of all elements, by one block.
GPU_KERNEL(cuda_sum, 256, cuda_args, p) {
    GPU_SHARED(float, parts, GPU_MAX_WARPS);
    const cuda_operand &y = p.operands[0], &x = p.operands[1];
    double sum = 0.0;
    for (u64 i = gpu_tid(); i < gpu_count(x); i += gpu_ntid())
        sum += (double)gpu_load(x.type, gpu_address(x, gpu_element_at(x, i)));
    // What a float loses of a part is added up as well.
    const float high = (float)sum, low = (float)(sum - (double)high);
    const float total = gpu_block_sum(parts, high), rest = gpu_block_sum(parts, low);
    if (gpu_tid() == 0) gpu_store(y.type, (void *)y.data, total + rest);
}

// numbers[0]: 1: the mean.
GPU_KERNEL(cuda_sum_rows, 256, cuda_args, p) {
    GPU_SHARED(float, parts, GPU_MAX_WARPS);
    const cuda_operand &y = p.operands[0], &x = p.operands[1];
    const gpu_at at = gpu_row_at(x, gpu_bid_x());
    const u8 *row = gpu_row(x, at.y, at.z, at.w);
    float sum = 0.0f;
    for (u64 i = gpu_tid(); i < (u64)x.ne[0]; i += gpu_ntid())
        sum += f32_at(x, row, i);
    sum = gpu_block_sum(parts, sum);
    if (gpu_tid() == 0)
        *(float *)gpu_row(y, at.y, at.z, at.w) = p.numbers[0] ? sum / (float)x.ne[0] : sum;
}

// A thread per row.
GPU_KERNEL(cuda_cumsum, 256, cuda_args, p) {
    const cuda_operand &y = p.operands[0], &x = p.operands[1];
    const u64 r = gpu_index();
    if (r >= (u64)x.ne[1] * (u64)x.ne[2] * (u64)x.ne[3]) return;
    const gpu_at at = gpu_row_at(x, r);
    const u8 *from = gpu_row(x, at.y, at.z, at.w);
    u8 *to = gpu_row(y, at.y, at.z, at.w);
    double sum = 0.0;
    for (u64 i = 0; i < (u64)x.ne[0]; ++i) {
        sum += (double)f32_at(x, from, i);
        *(float *)(to + (i64)i * y.nb[0]) = (float)sum;
    }
}

// A thread per row: the first of the largest.
GPU_KERNEL(cuda_argmax, 256, cuda_args, p) {
    const cuda_operand &y = p.operands[0], &x = p.operands[1];
    const u64 r = gpu_index();
    if (r >= (u64)x.ne[1]) return;
    const u8 *row = gpu_row(x, r, 0, 0);
    i32 best = 0;
    float largest = -GPU_INFINITY;
    for (u64 i = 0; i < (u64)x.ne[0]; ++i) {
        const float value = f32_at(x, row, i);
        if (value > largest) {
            largest = value;
            best = (i32)i;
        }
    }
    *(i32 *)((u8 *)y.data + (i64)r * y.nb[0]) = best;
}

// --- norms ---------------------------------------------------------------------------------------

enum { NORM, RMS_NORM, L2_NORM, GROUP_NORM };

// numbers[0]: which norm; of GROUP_NORM numbers[1]: channels of a group, numbers[2]: groups.
GPU_KERNEL(cuda_norm, 256, cuda_args, p) {
    GPU_SHARED(float, parts, GPU_MAX_WARPS);
    const cuda_operand &y = p.operands[0], &x = p.operands[1];
    const int kind = (int)p.numbers[0];
    gpu_at first = gpu_row_at(x, gpu_bid_x());
    u64 n = (u64)x.ne[0];
    if (kind == GROUP_NORM) {
        u64 group;
        first.w = gpu_divide(gpu_bid_x(), (u64)p.numbers[2], &group);
        first.y = 0;
        first.z = group * (u64)p.numbers[1];
        if (first.z >= (u64)x.ne[2]) return;
        const u64 left = (u64)x.ne[2] - first.z;
        n *= (u64)x.ne[1] * (left < (u64)p.numbers[1] ? left : (u64)p.numbers[1]);
    }
    // Element i of the group.
    auto place = [&](const cuda_operand &t, u64 i) {
        gpu_at at = gpu_element_at(t, i);
        if (kind != GROUP_NORM) at.x = i, at.y = 0, at.z = 0;
        return gpu_row(t, first.y + at.y, first.z + at.z, first.w) + (i64)at.x * t.nb[0];
    };
    float sum = 0.0f;
    if (kind == NORM || kind == GROUP_NORM) {
        for (u64 i = gpu_tid(); i < n; i += gpu_ntid())
            sum += *(const float *)place(x, i);
        sum = gpu_block_sum(parts, sum) / (float)n;
    }
    float squares = 0.0f;
    for (u64 i = gpu_tid(); i < n; i += gpu_ntid()) {
        const float v = *(const float *)place(x, i) - sum;
        squares += v * v;
    }
    squares = gpu_block_sum(parts, squares);
    const float eps = gpu_param(p, kind == GROUP_NORM ? 1 : 0);
    const float length = kind == L2_NORM ? gpu_sqrt(squares) : gpu_sqrt(squares / (float)n + eps);
    const float scale = 1.0f / (kind == L2_NORM ? gpu_larger(length, eps) : length);
    for (u64 i = gpu_tid(); i < n; i += gpu_ntid())
        *(float *)place(y, i) = (*(const float *)place(x, i) - sum) * scale;
}

// --- softmax -------------------------------------------------------------------------------------

// Of scale x + slope mask, with a sink in the denominator. numbers[0]: largest power of two within
// the heads.
GPU_FN float alibi_slope(const cuda_args &p, float max_bias, u64 head) {
    const i64 below = p.numbers[0], h = (i64)head;
    if (!(max_bias > 0.0f)) return 1.0f;
    const float exponent = h < below
                               ? -max_bias / (float)below * (float)(h + 1)
                               : -max_bias / (2.0f * (float)below) * (float)(2 * (h - below) + 1);
    return gpu_exp(exponent * 0.69314718055994530942f);
}

GPU_KERNEL(cuda_soft_max, 256, cuda_args, p) {
    GPU_SHARED(float, parts, GPU_MAX_WARPS);
    const cuda_operand &y = p.operands[0], &x = p.operands[1], &mask = p.operands[2],
                       &sinks = p.operands[3];
    const gpu_at at = gpu_row_at(x, gpu_bid_x());
    const u8 *from = gpu_row(x, at.y, at.z, at.w);
    const u8 *mask_row =
        mask.data ? gpu_row(mask, at.y, at.z % (u64)mask.ne[2], at.w % (u64)mask.ne[3]) : 0;
    u8 *to = gpu_row(y, at.y, at.z, at.w);
    const float slope = alibi_slope(p, gpu_param(p, 1), at.z), scale = gpu_param(p, 0);
    const float sink = sinks.data ? ((const float *)sinks.data)[at.z] : -GPU_INFINITY;
    const u64 n = (u64)x.ne[0];
    auto scaled = [&](u64 i) {
        const float z = f32_at(x, from, i) * scale;
        return mask_row ? z + slope * gpu_load(mask.type, mask_row + (i64)i * mask.nb[0]) : z;
    };
    float largest = sink;
    for (u64 i = gpu_tid(); i < n; i += gpu_ntid())
        largest = gpu_larger(largest, scaled(i));
    largest = gpu_block_max(parts, largest);
    float sum = 0.0f;
    for (u64 i = gpu_tid(); i < n; i += gpu_ntid())
        sum += gpu_exp(scaled(i) - largest);
    sum = gpu_block_sum(parts, sum);
    if (sinks.data) sum += gpu_exp(sink - largest);
    const float inverse = 1.0f / sum;
    for (u64 i = gpu_tid(); i < n; i += gpu_ntid())
        *(float *)(to + (i64)i * y.nb[0]) = gpu_exp(scaled(i) - largest) * inverse;
}
