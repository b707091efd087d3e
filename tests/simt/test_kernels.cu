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

// What begins before the launches before it have ended: it waits for them before it reads what they
// write, too late, and not at all; it writes before that.
GPU_FN void early_sum(gpu_thread g, const sum_args &p, float *parts, bool is_late) {
    if (!is_late) gpu_wait_for_launches();
    const float part = row_part(g, p, (u32)p.n);
    if (is_late) gpu_wait_for_launches();
    const float sum = block_sum(g, parts, part);
    if (gpu_tid(g) == 0) ((float *)p.y)[gpu_bid_x(g)] = sum;
}
GPU_KERNEL(sum_rows_early, 256, sum_args, p) {
    GPU_THREAD_EARLY(g);
    GPU_SHARED(float, parts, 32);
    early_sum(g, p, parts, false);
}
GPU_KERNEL(sum_rows_waits_late, 256, sum_args, p) {
    GPU_THREAD_EARLY(g);
    GPU_SHARED(float, parts, 32);
    early_sum(g, p, parts, true);
}
GPU_KERNEL(sum_rows_never_waits, 256, sum_args, p) {
    GPU_THREAD_EARLY(g);
    row_part(g, p, (u32)p.n);
}
GPU_KERNEL(sum_rows_writes_early, 256, sum_args, p) {
    GPU_THREAD_EARLY(g);
    if (gpu_tid(g) == 0) ((float *)p.y)[gpu_bid_x(g)] = 0.0f;
    gpu_wait_for_launches();
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

// Each thread has a part of the row, which another one reads: from device memory.
GPU_FN void rotate(gpu_thread g, const sum_args &p, bool orders_global) {
    float *y = (float *)p.y;
    if (gpu_tid(g) == gpu_bid_x(g)) y[gpu_bid_x(g)] = 1.0f;
    if (orders_global)
        gpu_sync_global(g);
    else
        gpu_sync(g);
    if (gpu_tid(g) == 5) y[gpu_bid_x(g)] += 1.0f;
}
GPU_KERNEL(global_good, 256, sum_args, p) {
    GPU_THREAD(g);
    rotate(g, p, true);
}
GPU_KERNEL(global_weak_barrier, 256, sum_args, p) {
    GPU_THREAD(g);
    rotate(g, p, false);
}

// All blocks write the same element.
GPU_KERNEL(global_blocks, 256, sum_args, p) {
    GPU_THREAD(g);
    if (gpu_tid(g) == 0) *(float *)p.y = 1.0f;
}

// Bytes of one word by different threads, which is no race.
GPU_KERNEL(global_bytes, 256, sum_args, p) {
    GPU_THREAD(g);
    if (gpu_tid(g) < 4) ((u8 *)p.y)[4 * gpu_bid_x(g) + gpu_tid(g)] = (u8)gpu_tid(g);
}

// The same, and then one of them is read by a thread that did not write it, or the rest of a word.
GPU_FN void some_bytes(gpu_thread g, const sum_args &p, u32 read) {
    u8 *y = (u8 *)p.y + 4 * gpu_bid_x(g);
    if (gpu_tid(g) < 2) y[gpu_tid(g)] = (u8)gpu_tid(g);
    gpu_sync(g);
    if (gpu_tid(g) == 9) y[3] = y[read];
}
GPU_KERNEL(global_bytes_read, 256, sum_args, p) {
    GPU_THREAD(g);
    some_bytes(g, p, 1);
}
GPU_KERNEL(global_bytes_apart, 256, sum_args, p) {
    GPU_THREAD(g);
    some_bytes(g, p, 2);
}

// A lane reads what another wrote to shared memory before an exchange.
GPU_KERNEL(shared_exchange, 256, sum_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, parts, 256);
    parts[gpu_tid(g)] = 1.0f;
    const float other = gpu_shfl_xor(1.0f, 1);
    const float sum = parts[gpu_tid(g) ^ 1u] + other;
    if (gpu_tid(g) == 0) ((float *)p.y)[gpu_bid_x(g)] = sum;
}

// --- turns of loops ------------------------------------------------------------------------------

// Copies n rows of 32 numbers, of which each thread leaves one of eight out.
GPU_KERNEL(copy_rows_with_gaps, 32, sum_args, p) {
    GPU_THREAD(g);
    for (u32 row = 0; row < (u32)p.n; ++row) {
        const float value = ((const float *)p.x)[row * 32 + gpu_tid(g)];
        if (row % 8 != gpu_tid(g) % 8) ((float *)p.y)[row * 32 + gpu_tid(g)] = value;
    }
}

// n times: thread t adds up one to four numbers, as t says, from as many rows of x.
GPU_KERNEL(sum_ragged_rows, 32, sum_args, p) {
    GPU_THREAD(g);
    for (u32 row = 0; row < (u32)p.n; ++row) {
        float sum = 0.0f;
        for (u32 i = 0; i <= gpu_tid(g) % 4; ++i)
            sum += ((const float *)p.x)[i * 32 + gpu_tid(g)];
        ((float *)p.y)[row * 32 + gpu_tid(g)] = sum;
    }
}
