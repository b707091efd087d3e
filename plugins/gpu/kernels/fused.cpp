// SPDX-License-Identifier: MIT
// Several nodes of a graph as one launch, and what streams of several devices combine.
#include "tensor.h"

// Row of an operand that is repeated to the rows that `at` counts.
GPU_FN GPU_GLOBAL const u8 *repeated_row(GPU_ARGS gpu_operand &t, gpu_at at) {
    return gpu_row(t, at.y % (u64)t.ne[1], at.z % (u64)t.ne[2], at.w % (u64)t.ne[3]);
}

GPU_FN float float_at(GPU_ARGS gpu_operand &t, GPU_GLOBAL const u8 *row, u64 i) {
    return *(GPU_GLOBAL const float *)(row + (i64)i * t.nb[0]);
}

// rms_norm, mul by operand 2, add of operand 3 if there is one; a block of threads per row. The
// result may be the source: a thread reads and writes the same elements.
GPU_KERNEL(kernel_norm_scaled, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, parts, GPU_MAX_WARPS);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1], &scale = p.operands[2],
                         &term = p.operands[3];
    const gpu_at at = gpu_row_at(x, gpu_bid_x(g));
    GPU_GLOBAL const u8 *from = gpu_row(x, at.y, at.z, at.w), *by = repeated_row(scale, at);
    GPU_GLOBAL const u8 *and_add = term.data ? repeated_row(term, at) : 0;
    GPU_GLOBAL u8 *to = gpu_row(y, at.y, at.z, at.w);
    const u64 n = (u64)x.ne[0];
    float squares = 0.0f;
    for (u64 i = gpu_tid(g); i < n; i += gpu_ntid(g)) {
        const float v = float_at(x, from, i);
        squares += v * v;
    }
    squares = gpu_block_sum(g, parts, squares);
    const float inverse = 1.0f / gpu_sqrt(squares / (float)n + gpu_param(p, 0));
    for (u64 i = gpu_tid(g); i < n; i += gpu_ntid(g)) {
        const float v = gpu_mul(float_at(x, from, i) * inverse, float_at(scale, by, i));
        *(GPU_GLOBAL float *)(to + (i64)i * y.nb[0]) = and_add ? v + float_at(term, and_add, i) : v;
    }
}

// Elements numbers[0] to numbers[1] of operands that are packed and of one shape: those of the bits
// numbers[2] are added up in order (numbers[3] 0), or the largest is found (1), and written to
// those of the bits numbers[4], which may be some of them.
GPU_KERNEL(kernel_combine, 256, gpu_args, p) {
    GPU_THREAD(g);
    const u64 i = (u64)p.numbers[0] + gpu_index(g);
    if (i >= (u64)p.numbers[1]) return;
    float value = 0.0f;
    bool any = false;
    for (int k = 0; k < GPU_MAX_OPERANDS; ++k) {
        if (!(p.numbers[2] >> k & 1)) continue;
        GPU_ARGS gpu_operand &t = p.operands[k];
        const float part = gpu_load(t.type, (GPU_GLOBAL const u8 *)t.data + (i64)i * t.nb[0]);
        if (!any)
            value = part;
        else
            value = p.numbers[3] ? gpu_larger(value, part) : value + part;
        any = true;
    }
    for (int k = 0; k < GPU_MAX_OPERANDS; ++k) {
        if (!(p.numbers[4] >> k & 1)) continue;
        GPU_ARGS gpu_operand &t = p.operands[k];
        gpu_store(t.type, (GPU_GLOBAL u8 *)t.data + (i64)i * t.nb[0], value);
    }
}
