// SPDX-License-Identifier: MIT
// flash_attn_ext: a block of threads per row of queries, keys a tile at a time with the softmax
// taken online. A masked key contributes nothing, not even its NaN.
#include "tensor.h"

enum { ATTENTION_KEYS = 128, ATTENTION_CHANNELS = 1024 };

// numbers[0]: largest power of two within the heads.
GPU_FN float attention_slope(GPU_ARGS gpu_args &p, u64 head) {
    const float max_bias = gpu_param(p, 1);
    const i64 below = p.numbers[0], h = (i64)head;
    if (!(max_bias > 0.0f)) return 1.0f;
    const float exponent = h < below
                               ? -max_bias / (float)below * (float)(h + 1)
                               : -max_bias / (2.0f * (float)below) * (float)(2 * (h - below) + 1);
    return gpu_exp(exponent * 0.69314718055994530942f);
}

GPU_KERNEL(kernel_flash_attn, 128, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, parts, GPU_MAX_WARPS);
    GPU_SHARED(float, query, ATTENTION_CHANNELS);
    GPU_SHARED(float, out, ATTENTION_CHANNELS);
    GPU_SHARED(float, weights, ATTENTION_KEYS);
    GPU_ARGS gpu_operand &y = p.operands[0], &q = p.operands[1], &k = p.operands[2],
                         &v = p.operands[3];
    GPU_ARGS gpu_operand &mask = p.operands[4], &sinks = p.operands[5];
    const u32 t = gpu_tid(g);
    const gpu_at at = gpu_row_at(q, gpu_bid_x(g)); // query, head, sequence
    const u64 n_keys = (u64)k.ne[1], n = (u64)k.ne[0], nv = (u64)v.ne[0];
    const u64 k_head = at.z / (u64)(q.ne[2] / k.ne[2]), v_head = at.z / (u64)(q.ne[2] / v.ne[2]);
    GPU_GLOBAL const u8 *q_row = gpu_row(q, at.y, at.z, at.w);
    GPU_GLOBAL const u8 *mask_row =
        mask.data ? gpu_row(mask, at.y, at.z % (u64)mask.ne[2], at.w % (u64)mask.ne[3]) : 0;
    const float slope = attention_slope(p, at.z), scale = gpu_param(p, 0),
                softcap = gpu_param(p, 2);
    for (u64 c = t; c < n; c += gpu_ntid(g))
        query[c] = *(GPU_GLOBAL const float *)(q_row + (i64)c * q.nb[0]);
    for (u64 c = t; c < nv; c += gpu_ntid(g))
        out[c] = 0.0f;
    float largest = -GPU_INFINITY, sum = 0.0f;
    gpu_sync(g);
    for (u64 first = 0; first < n_keys; first += ATTENTION_KEYS) {
        const u64 key = first + t;
        float score = -GPU_INFINITY;
        const float bias =
            mask_row && key < n_keys ? gpu_load(mask.type, mask_row + (i64)key * mask.nb[0]) : 0.0f;
        if (key < n_keys && bias != -GPU_INFINITY) {
            GPU_GLOBAL const u8 *row = gpu_row(k, key, k_head, at.w);
            float dot = 0.0f;
            for (u64 c = 0; c < n; ++c)
                dot = gpu_fma(query[c], gpu_element(k, row, c), dot);
            score = dot * scale;
            if (softcap != 0.0f) score = softcap * gpu_tanh(score / softcap);
            if (mask_row) score += slope * bias;
        }
        const float before = largest;
        largest = gpu_block_max(g, parts, gpu_larger(largest, score));
        const float factor = before == largest ? 1.0f : gpu_exp(before - largest);
        const float weight = score == -GPU_INFINITY ? 0.0f : gpu_exp(score - largest);
        weights[t] = weight;
        sum = sum * factor + gpu_block_sum(g, parts, weight); // ends with a barrier behind weights
        const u64 here = n_keys - first < ATTENTION_KEYS ? n_keys - first : (u64)ATTENTION_KEYS;
        for (u64 c = t; c < nv; c += gpu_ntid(g)) {
            float value = out[c] * factor;
            for (u64 j = 0; j < here; ++j) {
                if (weights[j] != 0.0f)
                    value = gpu_fma(weights[j],
                                    gpu_element(v, gpu_row(v, first + j, v_head, at.w), c), value);
            }
            out[c] = value;
        }
        gpu_sync(g);
    }
    float inverse = sum > 0.0f ? 1.0f / sum : sum == 0.0f ? 0.0f : GPU_NAN, factor = 1.0f;
    if (sinks.data) {
        const float sink = ((GPU_GLOBAL const float *)sinks.data)[at.z],
                    top = gpu_larger(largest, sink);
        factor = gpu_exp(largest - top);
        inverse = 1.0f / (sum * factor + gpu_exp(sink - top));
    }
    for (u64 c = t; c < nv; c += gpu_ntid(g))
        *(GPU_GLOBAL float *)(gpu_row(y, at.z, at.y, at.w) + (i64)c * y.nb[0]) =
            out[c] * factor * inverse;
}
