// SPDX-License-Identifier: MIT
// Kernels of the emulator's own tests: one that is right, and the same with a defect each.
#include "test_kernels.h"

#include "gpu.h"

// Sum over the block, in every thread, by exchanges within warps and shared memory between them.
GPU_FN float block_sum(gpu_thread g, float *parts, float x) {
    for (int mask = 16; mask > 0; mask >>= 1)
        x += gpu_shfl_xor(x, mask);
    if (gpu_tid(g) % 32 == 0) parts[gpu_tid(g) / 32] = x;
    gpu_sync(g);
    float sum = 0.0f;
    for (u32 i = 0; i < gpu_ntid(g) / 32; ++i)
        sum += parts[i];
    return sum;
}

GPU_FN float row_part(gpu_thread g, const sum_args &p, u32 n) {
    const float *x = (const float *)p.x + (u64)gpu_bid_x(g) * (u64)p.n;
    float sum = 0.0f;
    for (u32 i = gpu_tid(g); i < n; i += gpu_ntid(g))
        sum += x[i];
    return sum;
}

GPU_KERNEL(sum_rows_good, 256, sum_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, parts, 32);
    const float sum = block_sum(g, parts, row_part(g, p, (u32)p.n));
    if (gpu_tid(g) == 0) ((float *)p.y)[gpu_bid_x(g)] = sum;
}

GPU_KERNEL(sum_rows_no_barrier, 256, sum_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, parts, 32);
    parts[gpu_tid(g) / 32] = row_part(g, p, (u32)p.n);
    if (gpu_tid(g) == 0) ((float *)p.y)[gpu_bid_x(g)] = parts[0] + parts[1];
}

// A second sum in the same memory, which threads may still read the first one from.
GPU_KERNEL(sum_rows_no_second_barrier, 256, sum_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, parts, 32);
    const float part = row_part(g, p, (u32)p.n);
    const float first = block_sum(g, parts, part), second = block_sum(g, parts, first * part);
    if (gpu_tid(g) == 0) ((float *)p.y)[gpu_bid_x(g)] = second;
}

GPU_KERNEL(sum_rows_past_end, 256, sum_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, parts, 32);
    const float sum = block_sum(g, parts, row_part(g, p, (u32)p.n + 1));
    if (gpu_tid(g) == 0) ((float *)p.y)[gpu_bid_x(g)] = sum;
}

GPU_KERNEL(sum_rows_past_shared, 256, sum_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, parts, 32);
    const float sum = block_sum(g, parts + 31, row_part(g, p, (u32)p.n));
    if (gpu_tid(g) == 0) ((float *)p.y)[gpu_bid_x(g)] = sum;
}

GPU_KERNEL(sum_rows_not_set, 256, sum_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, parts, 32);
    const float sum = block_sum(g, parts, row_part(g, p, (u32)p.n)) + parts[31];
    if (gpu_tid(g) == 0) ((float *)p.y)[gpu_bid_x(g)] = sum;
}

GPU_KERNEL(sum_rows_some_wait, 256, sum_args, p) {
    GPU_THREAD(g);
    if (gpu_tid(g) != 7) gpu_sync(g);
    if (gpu_tid(g) == 0) ((float *)p.y)[gpu_bid_x(g)] = row_part(g, p, (u32)p.n);
}

GPU_KERNEL(sum_rows_some_lanes, 256, sum_args, p) {
    GPU_THREAD(g);
    float sum = row_part(g, p, (u32)p.n);
    if (gpu_tid(g) != 7) sum += gpu_shfl_xor(sum, 1);
    if (gpu_tid(g) == 0) ((float *)p.y)[gpu_bid_x(g)] = sum;
}

GPU_KERNEL(sum_rows_misaligned, 256, sum_args, p) {
    GPU_THREAD(g);
    if (gpu_tid(g) == 0) ((float *)p.y)[gpu_bid_x(g)] = *(const float *)(p.x + 2);
}
