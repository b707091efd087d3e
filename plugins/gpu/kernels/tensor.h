// SPDX-License-Identifier: MIT
// Elements of operands by their indices, and sums over a block of threads.
#ifndef GPU_KERNELS_TENSOR_H
#define GPU_KERNELS_TENSOR_H

#include "decode.h"
#include "gpu_math.h"
#include "gpu_wide.h"

// Number of this thread among all.
GPU_FN u64 gpu_index(gpu_thread g) {
    return (u64)gpu_bid_x(g) * gpu_ntid(g) + gpu_tid(g);
}

struct gpu_at {
    u64 x, y, z, w;
};

// A quotient and a remainder; divisions of 64 bits are slow.
GPU_FN u64 gpu_divide(u64 a, u64 b, GPU_PRIVATE u64 *out_rest) {
    if (a >> 32 == 0 && b >> 32 == 0) {
        const u32 q = (u32)a / (u32)b;
        *out_rest = (u32)a - q * (u32)b;
        return q;
    }
    const u64 q = a / b;
    *out_rest = a - q * b;
    return q;
}

// Indices of element i, dimension 0 fastest, where dimension 0 has `n0` elements.
GPU_FN gpu_at gpu_at_of(GPU_ARGS gpu_operand &t, u64 n0, u64 i) {
    gpu_at at;
    const u64 row = gpu_divide(i, n0, &at.x);
    const u64 plane = gpu_divide(row, (u64)t.ne[1], &at.y);
    at.w = gpu_divide(plane, (u64)t.ne[2], &at.z);
    return at;
}
GPU_FN gpu_at gpu_element_at(GPU_ARGS gpu_operand &t, u64 i) {
    return gpu_at_of(t, (u64)t.ne[0], i);
}
GPU_FN gpu_at gpu_row_at(GPU_ARGS gpu_operand &t, u64 row) {
    return gpu_at_of(t, 1, row);
}
GPU_FN u64 gpu_count(GPU_ARGS gpu_operand &t) {
    return (u64)t.ne[0] * (u64)t.ne[1] * (u64)t.ne[2] * (u64)t.ne[3];
}
// Address of a row.
GPU_FN GPU_GLOBAL u8 *gpu_row(GPU_ARGS gpu_operand &t, u64 y, u64 z, u64 w) {
    return (GPU_GLOBAL u8 *)t.data + (i64)y * t.nb[1] + (i64)z * t.nb[2] + (i64)w * t.nb[3];
}
GPU_FN GPU_GLOBAL u8 *gpu_address(GPU_ARGS gpu_operand &t, gpu_at at) {
    return gpu_row(t, at.y, at.z, at.w) + (i64)at.x * t.nb[0];
}
// The same in a tensor that is repeated.
GPU_FN GPU_GLOBAL u8 *gpu_address_repeated(GPU_ARGS gpu_operand &t, gpu_at at) {
    const gpu_at own = {at.x % (u64)t.ne[0], at.y % (u64)t.ne[1], at.z % (u64)t.ne[2],
                        at.w % (u64)t.ne[3]};
    return gpu_address(t, own);
}
// Element i of a row, whatever the type; rows of plain types may have gaps.
GPU_FN float gpu_element(GPU_ARGS gpu_operand &t, GPU_GLOBAL const u8 *row, u64 i) {
    if (gpu_block_elements(t.type) > 1) return gpu_decode(t.type, row, (u32)i);
    return gpu_load(t.type, row + (i64)i * t.nb[0]);
}
// The same of a type with blocks, by a call.
GPU_FAR float gpu_coded_element(int type, GPU_GLOBAL const u8 *row, u64 i) {
    return gpu_decode(type, row, (u32)i);
}
GPU_FN float gpu_element_far(GPU_ARGS gpu_operand &t, GPU_GLOBAL const u8 *row, u64 i) {
    if (gpu_block_elements(t.type) > 1) return gpu_coded_element(t.type, row, i);
    return gpu_load(t.type, row + (i64)i * t.nb[0]);
}
GPU_FN float gpu_param(GPU_ARGS gpu_args &p, int i) {
    return gpu_float((u32)p.params[i]);
}
GPU_FN gpu_wide gpu_real(GPU_ARGS gpu_args &p, int i) {
    return {p.reals[i].high, p.reals[i].low};
}
// What a head's mask is multiplied by. params[1]: the largest exponent, numbers[0]: the largest
// power of two within the heads. ALiBi (Press, Smith, Lewis 2022): slopes of the first 2^m heads
// are powers of one ratio, those of the others lie between them. Exponents are of 2.
GPU_FN float gpu_alibi_slope(GPU_ARGS gpu_args &p, u64 head) {
    const float max_bias = gpu_param(p, 1);
    const i64 below = p.numbers[0], h = (i64)head;
    if (!(max_bias > 0.0f)) return 1.0f;
    const float exponent = h < below
                               ? -max_bias / (float)below * (float)(h + 1)
                               : -max_bias / (2.0f * (float)below) * (float)(2 * (h - below) + 1);
    return gpu_exp(exponent * 0.69314718055994530942f);
}
// An index, I32 or I64.
GPU_FN i64 gpu_index_of(GPU_ARGS gpu_operand &t, GPU_GLOBAL const u8 *p) {
    return t.type == TYPE_I64 ? *(GPU_GLOBAL const i64 *)p : *(GPU_GLOBAL const i32 *)p;
}

// --- sums and maxima over the block --------------------------------------------------------------

enum { GPU_MAX_WARPS = 32 };

GPU_FN float gpu_larger(float a, float b) {
    return b > a ? b : a;
}

// An element as it is, of any type that is not coded; zeros where it lies outside of x.
GPU_FN void gpu_move_element(GPU_ARGS gpu_operand &y, gpu_at to, GPU_ARGS gpu_operand &x,
                             gpu_at from, bool inside) {
    const u32 size = gpu_block_bytes(y.type);
    GPU_GLOBAL u8 *at = gpu_address(y, to);
    const gpu_at nowhere = {0, 0, 0, 0};
    GPU_GLOBAL const u8 *source = gpu_address(x, inside ? from : nowhere);
    for (u32 k = 0; k < size; ++k)
        at[k] = inside ? source[k] : (u8)0;
}

// All 32 lanes call it, and get the sum.
GPU_FN float gpu_warp_sum(float x) {
    for (int mask = 16; mask > 0; mask >>= 1)
        x += gpu_shfl_xor(x, mask);
    return x;
}

// Every thread of the block calls it, and gets the result; blocks are whole warps. parts:
// GPU_MAX_WARPS floats in shared memory, which the next call may use again.
GPU_FN float gpu_block_sum(gpu_thread g, GPU_LOCAL float *parts, float x) {
    x = gpu_warp_sum(x);
    gpu_sync(g); // a former result may still be read
    if (gpu_tid(g) % 32 == 0) parts[gpu_tid(g) / 32] = x;
    gpu_sync(g);
    float sum = 0.0f;
    for (u32 i = 0; i < gpu_ntid(g) / 32; ++i)
        sum += parts[i];
    return sum;
}
GPU_FN float gpu_block_max(gpu_thread g, GPU_LOCAL float *parts, float x) {
    for (int mask = 16; mask > 0; mask >>= 1)
        x = gpu_larger(x, gpu_shfl_xor(x, mask));
    gpu_sync(g);
    if (gpu_tid(g) % 32 == 0) parts[gpu_tid(g) / 32] = x;
    gpu_sync(g);
    float largest = parts[0];
    for (u32 i = 1; i < gpu_ntid(g) / 32; ++i)
        largest = gpu_larger(largest, parts[i]);
    return largest;
}

#endif
