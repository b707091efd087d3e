// SPDX-License-Identifier: MIT
// Kernels of the emulator's own tests: one that is right, and the same with a defect each.
#include "test_kernels.h"

#include "gpu.h"

// Sum over the block, in every thread, by exchanges within warps and shared memory between them.
GPU_FN float block_sum(float *parts, float x) {
    for (int mask = 16; mask > 0; mask >>= 1)
        x += gpu_shfl_xor(x, mask);
    if (gpu_tid() % 32 == 0) parts[gpu_tid() / 32] = x;
    gpu_sync();
    float sum = 0.0f;
    for (u32 i = 0; i < gpu_ntid() / 32; ++i)
        sum += parts[i];
    return sum;
}

GPU_FN float row_part(const sum_args &p, u32 n) {
    const float *x = (const float *)p.x + (u64)gpu_bid_x() * (u64)p.n;
    float sum = 0.0f;
    for (u32 i = gpu_tid(); i < n; i += gpu_ntid())
        sum += x[i];
    return sum;
}

GPU_KERNEL(sum_rows_good, 256, sum_args, p) {
    GPU_SHARED(float, parts, 32);
    const float sum = block_sum(parts, row_part(p, (u32)p.n));
    if (gpu_tid() == 0) ((float *)p.y)[gpu_bid_x()] = sum;
}

GPU_KERNEL(sum_rows_no_barrier, 256, sum_args, p) {
    GPU_SHARED(float, parts, 32);
    parts[gpu_tid() / 32] = row_part(p, (u32)p.n);
    if (gpu_tid() == 0) ((float *)p.y)[gpu_bid_x()] = parts[0] + parts[1];
}

// A second sum in the same memory, which threads may still read the first one from.
GPU_KERNEL(sum_rows_no_second_barrier, 256, sum_args, p) {
    GPU_SHARED(float, parts, 32);
    const float part = row_part(p, (u32)p.n);
    const float first = block_sum(parts, part), second = block_sum(parts, first * part);
    if (gpu_tid() == 0) ((float *)p.y)[gpu_bid_x()] = second;
}

GPU_KERNEL(sum_rows_past_end, 256, sum_args, p) {
    GPU_SHARED(float, parts, 32);
    const float sum = block_sum(parts, row_part(p, (u32)p.n + 1));
    if (gpu_tid() == 0) ((float *)p.y)[gpu_bid_x()] = sum;
}

GPU_KERNEL(sum_rows_past_shared, 256, sum_args, p) {
    GPU_SHARED(float, parts, 32);
    const float sum = block_sum(parts + 31, row_part(p, (u32)p.n));
    if (gpu_tid() == 0) ((float *)p.y)[gpu_bid_x()] = sum;
}

GPU_KERNEL(sum_rows_not_set, 256, sum_args, p) {
    GPU_SHARED(float, parts, 32);
    const float sum = block_sum(parts, row_part(p, (u32)p.n)) + parts[31];
    if (gpu_tid() == 0) ((float *)p.y)[gpu_bid_x()] = sum;
}

GPU_KERNEL(sum_rows_some_wait, 256, sum_args, p) {
    if (gpu_tid() != 7) gpu_sync();
    if (gpu_tid() == 0) ((float *)p.y)[gpu_bid_x()] = row_part(p, (u32)p.n);
}

GPU_KERNEL(sum_rows_some_lanes, 256, sum_args, p) {
    float sum = row_part(p, (u32)p.n);
    if (gpu_tid() != 7) sum += gpu_shfl_xor(sum, 1);
    if (gpu_tid() == 0) ((float *)p.y)[gpu_bid_x()] = sum;
}

GPU_KERNEL(sum_rows_misaligned, 256, sum_args, p) {
    if (gpu_tid() == 0) ((float *)p.y)[gpu_bid_x()] = *(const float *)(p.x + 2);
}
