// SPDX-License-Identifier: MIT
// argsort and top_k: the place of each element is how many come before it; a thread per element, n
// compares each. Equal elements keep their order; NaN comes last in either.
#include "tensor.h"

GPU_FN i32 key_of(float value, bool descending) {
    const u32 bits = gpu_bits(value);
    const i32 ascending = (i32)(bits & 0x80000000u ? bits ^ 0x7fffffffu : bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffffff;
    if ((bits & 0x7fffffffu) == 0) return descending ? -1 : 0;
    return descending ? ~ascending : ascending;
}

// numbers[0]: 1: from the largest on.
GPU_KERNEL(kernel_sort, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(x)) return;
    const gpu_at at = gpu_element_at(x, i);
    GPU_GLOBAL const u8 *row = gpu_row(x, at.y, at.z, at.w);
    const bool descending = p.numbers[0] != 0;
    const i32 own = key_of(*(GPU_GLOBAL const float *)(row + (i64)at.x * x.nb[0]), descending);
    u64 rank = 0;
    for (u64 k = 0; k < (u64)x.ne[0]; ++k) {
        const i32 key = key_of(*(GPU_GLOBAL const float *)(row + (i64)k * x.nb[0]), descending);
        rank += key < own || (key == own && k < at.x);
    }
    if (rank < (u64)y.ne[0])
        *(GPU_GLOBAL i32 *)(gpu_row(y, at.y, at.z, at.w) + (i64)rank * y.nb[0]) = (i32)at.x;
}
