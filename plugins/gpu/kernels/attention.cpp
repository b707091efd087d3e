// SPDX-License-Identifier: MIT
// flash_attn_ext: a block of threads per row of queries.
#include "attention.h"

GPU_KERNEL(kernel_flash_attn, 128, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, parts, GPU_MAX_WARPS);
    GPU_SHARED(float, query, ATTENTION_CHANNELS);
    GPU_SHARED(float, out, ATTENTION_CHANNELS);
    GPU_SHARED(float, weights, ATTENTION_KEYS);
    GPU_ARGS gpu_operand &y = p.operands[0];
    const gpu_at at = gpu_row_at(p.operands[1], gpu_bid_x(g)); // query, head, sequence
    const attention_memory memory = {parts, query, out, weights};
    const attention_sum s = attention_row(g, p, at, 0, (u64)p.operands[2].ne[1], memory);
    const float factor = attention_factor(p, at.z, s);
    for (u64 c = gpu_tid(g); c < (u64)y.ne[0]; c += gpu_ntid(g))
        *(GPU_GLOBAL float *)(gpu_row(y, at.z, at.y, at.w) + (i64)c * y.nb[0]) = out[c] * factor;
}
