// SPDX-License-Identifier: MIT
// A row of queries against some of the keys, by a block of threads, at least ATTENTION_KEYS: keys a
// tile at a time with the softmax taken online. A masked key contributes nothing, not even its NaN.
#ifndef GPU_KERNELS_ATTENTION_H
#define GPU_KERNELS_ATTENTION_H

#include "tensor.h"

enum { ATTENTION_KEYS = 128, ATTENTION_CHANNELS = 1024 };

// The largest score of a row, and the sum of the weights relative to it.
struct attention_sum {
    float largest, sum;
};

// What the row's sums of weighted values are multiplied by at the end, the head's sink included.
GPU_FN float attention_factor(GPU_ARGS gpu_args &p, u64 head, attention_sum s) {
    GPU_ARGS gpu_operand &sinks = p.operands[5];
    if (!sinks.data) return s.sum > 0.0f ? 1.0f / s.sum : s.sum == 0.0f ? 0.0f : GPU_NAN;
    const float sink = ((GPU_GLOBAL const float *)sinks.data)[head],
                top = gpu_larger(s.largest, sink), factor = gpu_exp(s.largest - top);
    return factor / (s.sum * factor + gpu_exp(sink - top));
}

// Memory of the block: parts as gpu_block_sum(), as many floats for `query` and `out` as there are
// channels, ATTENTION_KEYS for `weights`.
struct attention_memory {
    GPU_LOCAL float *parts, *query, *out, *weights;
};

// Row at.y of head at.z, sequence at.w, against keys [begin, end). The sums of weighted values are
// in memory.out afterwards.
GPU_FN attention_sum attention_row(gpu_thread g, GPU_ARGS gpu_args &p, gpu_at at, u64 begin,
                                   u64 end, attention_memory m) {
    GPU_ARGS gpu_operand &q = p.operands[1], &k = p.operands[2], &v = p.operands[3],
                         &mask = p.operands[4];
    const u32 t = gpu_tid(g);
    const u64 n = (u64)k.ne[0], nv = (u64)v.ne[0];
    const u64 k_head = at.z / (u64)(q.ne[2] / k.ne[2]), v_head = at.z / (u64)(q.ne[2] / v.ne[2]);
    GPU_GLOBAL const u8 *q_row = gpu_row(q, at.y, at.z, at.w);
    GPU_GLOBAL const u8 *mask_row =
        mask.data ? gpu_row(mask, at.y, at.z % (u64)mask.ne[2], at.w % (u64)mask.ne[3]) : 0;
    const float slope = gpu_alibi_slope(p, at.z), scale = gpu_param(p, 0),
                softcap = gpu_param(p, 2);
    for (u64 c = t; c < n; c += gpu_ntid(g))
        m.query[c] = *(GPU_GLOBAL const float *)(q_row + (i64)c * q.nb[0]);
    for (u64 c = t; c < nv; c += gpu_ntid(g))
        m.out[c] = 0.0f;
    attention_sum s = {-GPU_INFINITY, 0.0f};
    gpu_sync(g);
    for (u64 first = begin; first < end; first += ATTENTION_KEYS) {
        const u64 key = first + t;
        const bool has_key = key < end && t < ATTENTION_KEYS;
        float score = -GPU_INFINITY;
        const float bias =
            mask_row && has_key ? gpu_load(mask.type, mask_row + (i64)key * mask.nb[0]) : 0.0f;
        if (has_key && bias != -GPU_INFINITY) {
            GPU_GLOBAL const u8 *row = gpu_row(k, key, k_head, at.w);
            float dot = 0.0f;
            for (u64 c = 0; c < n; ++c)
                dot = gpu_fma(m.query[c], gpu_element(k, row, c), dot);
            score = dot * scale;
            if (softcap != 0.0f) score = softcap * gpu_tanh(score / softcap);
            if (mask_row) score += slope * bias;
        }
        // Online softmax (Milakov, Gimelshein 2018): when the largest score grows, the sums so far
        // are scaled down to it.
        const float before = s.largest;
        s.largest = gpu_block_max(g, m.parts, gpu_larger(s.largest, score));
        const float factor = before == s.largest ? 1.0f : gpu_exp(before - s.largest);
        const float weight = score == -GPU_INFINITY ? 0.0f : gpu_exp(score - s.largest);
        if (t < ATTENTION_KEYS) m.weights[t] = weight;
        // Ends with a barrier behind weights.
        s.sum = s.sum * factor + gpu_block_sum(g, m.parts, weight);
        const u64 here = end - first < ATTENTION_KEYS ? end - first : (u64)ATTENTION_KEYS;
        for (u64 c = t; c < nv; c += gpu_ntid(g)) {
            // A thread has channel c, the block neighbouring ones: rows of V are read side by side.
            float value = m.out[c] * factor;
            for (u64 j = 0; j < here; ++j) {
                if (m.weights[j] != 0.0f)
                    value = gpu_fma(m.weights[j],
                                    gpu_element(v, gpu_row(v, first + j, v_head, at.w), c), value);
            }
            m.out[c] = value;
        }
        gpu_sync(g);
    }
    return s;
}

#endif
