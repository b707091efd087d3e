// SPDX-License-Identifier: MIT
// State-space models, attention with a matrix as state, and other operations of single models.
// States stay in registers over all tokens.
#include "tensor.h"

GPU_FN float float_of(GPU_GLOBAL const u8 *row, i64 nb, u64 i) {
    return *(GPU_GLOBAL const float *)(row + (i64)i * nb);
}

// A row of a state is held by a block of threads, of each thread STATE_SLOTS elements that lie as
// many apart as there are threads.
enum { STATE_SLOTS = 8 };

GPU_FN float state_sum(gpu_thread g, GPU_LOCAL float *parts, float x) {
    return gpu_ntid(g) > 32 ? gpu_block_sum(g, parts, x) : gpu_warp_sum(x);
}

// --- state-space models --------------------------------------------------------------------------

// A filter per channel over neighbouring tokens; a thread per element.
GPU_KERNEL(kernel_ssm_conv, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1], &filter = p.operands[2];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at at = gpu_element_at(y, i); // channel, token, sequence
    GPU_GLOBAL const u8 *from = gpu_row(x, at.x, at.z, 0), *weights = gpu_row(filter, at.x, 0, 0);
    float sum = 0.0f;
    for (u64 k = 0; k < (u64)filter.ne[0]; ++k)
        sum = gpu_fma(float_of(from, x.nb[0], at.y + k), float_of(weights, filter.nb[0], k), sum);
    *(GPU_GLOBAL float *)gpu_address(y, at) = sum;
}

// The same for CONV_TOKENS tokens of CONV_CHANNELS channels by a block: tokens are neighbours in x,
// channels in y. The channels fill whole sectors of y's rows, and with many tokens little of x is
// read by two blocks, which both need what the taps reach beyond the first one's. numbers[0],
// numbers[1]: blocks for the channels, for the tokens.
enum {
    CONV_CHANNELS = 16,
    CONV_TOKENS = 256,
    CONV_TAPS = 9,
    SECTOR_FLOATS = 8,
    // With room for what the lanes beside the first and the last element write. Twice an odd
    // number: a token of all channels and the next one have different banks.
    CONV_PITCH = SECTOR_FLOATS + CONV_TOKENS + CONV_TAPS + 33,
    TAP_PITCH = CONV_CHANNELS + 8, // four taps of eight channels have different banks
};

GPU_KERNEL(kernel_ssm_conv_tile, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, tile, CONV_CHANNELS *CONV_PITCH);
    GPU_SHARED(float, weights, CONV_TAPS *TAP_PITCH);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1], &filter = p.operands[2];
    const u32 taps = (u32)filter.ne[0], width = CONV_TOKENS + taps - 1;
    u64 channels, tokens;
    const u64 rest = gpu_divide(gpu_bid_x(g), (u64)p.numbers[0], &channels);
    const u64 sequence = gpu_divide(rest, (u64)p.numbers[1], &tokens);
    channels *= CONV_CHANNELS;
    tokens *= CONV_TOKENS;
    // A warp reads a row from the sector on that the first element lies in, so that each of its
    // requests is of whole sectors; lanes beside the first and the last element ask for these
    // again.
    for (u32 r = gpu_tid(g) / 32; r < CONV_CHANNELS && channels + r < (u64)x.ne[1];
         r += gpu_ntid(g) / 32) {
        GPU_GLOBAL const u8 *row = gpu_row(x, channels + r, sequence, 0);
        const u64 address = x.data + (channels + r) * (u64)x.nb[1] + sequence * (u64)x.nb[2];
        const u64 left = (u64)x.ne[0] - tokens;
        const u32 before = (u32)(address / 4) % SECTOR_FLOATS, n = left < width ? (u32)left : width;
        for (u32 i = gpu_tid(g) % 32; i / 32 * 32 < before + n; i += 32) {
            const u32 t = i < before ? 0 : i - before < n ? i - before : n - 1;
            tile[r * CONV_PITCH + SECTOR_FLOATS + i - before] = float_of(row, x.nb[0], tokens + t);
        }
    }
    for (u32 i = gpu_tid(g); i < CONV_CHANNELS * taps; i += gpu_ntid(g)) {
        const u32 r = i / taps, k = i % taps;
        if (channels + r < (u64)x.ne[1])
            weights[k * TAP_PITCH + r] =
                float_of(gpu_row(filter, channels + r, 0, 0), filter.nb[0], k);
    }
    gpu_sync(g);
    const u32 c = gpu_tid(g) % CONV_CHANNELS;
    if (channels + c >= (u64)y.ne[0]) return;
    for (u32 t = gpu_tid(g) / CONV_CHANNELS; t < CONV_TOKENS && tokens + t < (u64)y.ne[1];
         t += gpu_ntid(g) / CONV_CHANNELS) {
        float sum = 0.0f;
        for (u32 k = 0; k < taps; ++k)
            sum = gpu_fma(tile[c * CONV_PITCH + SECTOR_FLOATS + t + k], weights[k * TAP_PITCH + c],
                          sum);
        const gpu_at at = {channels + c, tokens + t, sequence, 0};
        *(GPU_GLOBAL float *)gpu_address(y, at) = sum;
    }
}

// h = exp(delta A) h + delta B x, y = <h, C>; a block per row of a state. Operands: states, x, dt,
// A, B, C, which state a sequence begins with. The result has y, then params[0] states, the newest
// first. A sequence whose first state is not there gets NaN.
GPU_KERNEL(kernel_ssm_scan, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, parts, GPU_MAX_WARPS);
    GPU_ARGS gpu_operand &first = p.operands[1], &x = p.operands[2], &dt = p.operands[3],
                         &rate = p.operands[4], &b = p.operands[5], &c = p.operands[6],
                         &ids = p.operands[7];
    const u64 n = (u64)first.ne[0], rows = (u64)first.ne[1], heads = (u64)first.ne[2];
    const u64 tokens = (u64)x.ne[2], sequences = (u64)x.ne[3];
    const u32 tid = gpu_tid(g), ntid = gpu_ntid(g);
    u64 row, head;
    const u64 sequence = gpu_divide(gpu_divide(gpu_bid_x(g), rows, &row), heads, &head);
    // Several heads share B and C.
    const u64 group = head / (heads / (u64)b.ne[1]);
    const i32 id =
        *(GPU_GLOBAL const i32 *)((GPU_GLOBAL const u8 *)ids.data + (i64)sequence * ids.nb[0]);
    const bool known = id >= 0 && id < first.ne[3];
    const bool shared_rate = rate.ne[0] == 1;
    GPU_GLOBAL const u8 *rates = gpu_row(rate, head, 0, 0);
    GPU_GLOBAL float *y = (GPU_GLOBAL float *)p.operands[0].data;
    GPU_GLOBAL float *states = y + gpu_count(x) + ((sequence * heads + head) * rows + row) * n;
    float h[STATE_SLOTS];
    for (u32 k = 0; k < STATE_SLOTS; ++k) {
        const u64 i = tid + k * ntid;
        h[k] =
            known && i < n ? float_of(gpu_row(first, row, head, (u64)id), first.nb[0], i) : GPU_NAN;
    }
    for (u64 t = 0; t < tokens; ++t) {
        const float raw = float_of(gpu_row(dt, t, sequence, 0), dt.nb[0], head);
        // softplus: the step is positive. From 20 on log(1 + e^x) is x to a float.
        const float delta = raw > 20.0f ? raw : gpu_log1p(gpu_exp(raw));
        const float input = float_of(gpu_row(x, head, t, sequence), x.nb[0], row) * delta;
        GPU_GLOBAL const u8 *b_row = gpu_row(b, group, t, sequence),
                            *c_row = gpu_row(c, group, t, sequence);
        const float decay = gpu_exp(delta * float_of(rates, 4, 0));
        float sum = 0.0f;
        for (u32 k = 0; k < STATE_SLOTS; ++k) {
            const u64 i = tid + k * ntid;
            if (i >= n) continue;
            const float own = shared_rate ? decay : gpu_exp(delta * float_of(rates, 4, i));
            h[k] = h[k] * own + float_of(b_row, 4, i) * input;
            sum = gpu_fma(h[k], float_of(c_row, 4, i), sum);
        }
        sum = state_sum(g, parts, sum);
        if (tid == 0) y[((sequence * tokens + t) * heads + head) * rows + row] = sum;
        const u64 age = tokens - 1 - t;
        for (u32 k = 0; k < STATE_SLOTS && age < (u64)p.params[0]; ++k) {
            const u64 i = tid + k * ntid;
            if (i < n) states[age * n * rows * heads * sequences + i] = h[k];
        }
    }
}

// --- linear attention ----------------------------------------------------------------------------

enum { STATE_ROWS = 16 }; // that a thread has at a time

// rwkv_wkv6 and gated_linear_attn: a thread per column of a state, whose rows it goes through
// STATE_ROWS at a time, over all tokens. numbers[0]: 0: operands k, v, r, bonus, decay, state; 1:
// k, v, q, gate, state; numbers[1]: sequences. All packed.
GPU_KERNEL(kernel_linear_attention, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &keys = p.operands[1];
    const bool gated = p.numbers[0] != 0;
    const u64 n = (u64)keys.ne[0], heads = (u64)keys.ne[1], sequences = (u64)p.numbers[1];
    const u64 tokens = (u64)keys.ne[2] / sequences;
    u64 j, head;
    const u64 unit = gpu_divide(gpu_index(g), n, &j);
    const u64 sequence = gpu_divide(unit, heads, &head);
    if (sequence >= sequences) return;
    GPU_GLOBAL const float *k = (GPU_GLOBAL const float *)keys.data,
                           *v = (GPU_GLOBAL const float *)p.operands[2].data,
                           *r = (GPU_GLOBAL const float *)p.operands[3].data,
                           *bonus = (GPU_GLOBAL const float *)p.operands[4].data + head * n,
                           *decay = (GPU_GLOBAL const float *)p.operands[gated ? 4 : 5].data,
                           *first = (GPU_GLOBAL const float *)p.operands[gated ? 5 : 6].data;
    GPU_GLOBAL float *y = (GPU_GLOBAL float *)p.operands[0].data;
    GPU_GLOBAL float *last = y + sequences * tokens * heads * n;
    const float scale = gpu_param(p, 0);
    for (u64 i0 = 0; i0 < n; i0 += STATE_ROWS) {
        float s[STATE_ROWS];
        for (u32 i = 0; i < STATE_ROWS; ++i)
            s[i] = i0 + i < n ? first[(unit * n + i0 + i) * n + j] : 0.0f;
        for (u64 t = 0; t < tokens; ++t) {
            const u64 at = ((sequence * tokens + t) * heads + head) * n;
            const float value = v[at + j];
            // The rows before have left their part of the sum in y, which no other thread touches.
            float sum = i0 == 0 ? 0.0f : y[at + j];
            for (u32 i = 0; i < STATE_ROWS; ++i) {
                if (i0 + i >= n) continue;
                const u64 from = at + i0 + i;
                const float added = k[from] * value;
                const float before = s[i];
                s[i] = before * decay[from] + added;
                sum = gated ? gpu_fma(s[i], r[from] * scale, sum)
                            : gpu_fma(r[from], bonus[i0 + i] * added + before, sum);
            }
            y[at + j] = sum;
        }
        for (u32 i = 0; i < STATE_ROWS; ++i) {
            if (i0 + i < n) last[(unit * n + i0 + i) * n + j] = s[i];
        }
    }
}

// rwkv_wkv7: a row of the state is multiplied by diag(w) + a b^T, and v k^T added; a block per row.
// Operands r, w, k, v, a, b, state, all packed; numbers[1]: sequences.
GPU_KERNEL(kernel_rwkv_wkv7, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, parts, GPU_MAX_WARPS);
    GPU_ARGS gpu_operand &receptance = p.operands[1];
    const u64 n = (u64)receptance.ne[0], heads = (u64)receptance.ne[1],
              sequences = (u64)p.numbers[1], tokens = (u64)receptance.ne[2] / sequences;
    const u32 tid = gpu_tid(g), ntid = gpu_ntid(g);
    u64 row, head;
    const u64 unit = gpu_divide(gpu_bid_x(g), n, &row);
    const u64 sequence = gpu_divide(unit, heads, &head);
    GPU_GLOBAL const float *r = (GPU_GLOBAL const float *)receptance.data,
                           *w = (GPU_GLOBAL const float *)p.operands[2].data,
                           *k = (GPU_GLOBAL const float *)p.operands[3].data,
                           *v = (GPU_GLOBAL const float *)p.operands[4].data,
                           *a = (GPU_GLOBAL const float *)p.operands[5].data,
                           *b = (GPU_GLOBAL const float *)p.operands[6].data,
                           *first = (GPU_GLOBAL const float *)p.operands[7].data;
    GPU_GLOBAL float *y = (GPU_GLOBAL float *)p.operands[0].data;
    GPU_GLOBAL float *last = y + sequences * tokens * heads * n + (unit * n + row) * n;
    float s[STATE_SLOTS];
    for (u32 m = 0; m < STATE_SLOTS; ++m) {
        const u64 j = tid + m * ntid;
        s[m] = j < n ? first[(unit * n + row) * n + j] : 0.0f;
    }
    for (u64 t = 0; t < tokens; ++t) {
        const u64 at = ((sequence * tokens + t) * heads + head) * n;
        float along = 0.0f;
        for (u32 m = 0; m < STATE_SLOTS; ++m) {
            const u64 j = tid + m * ntid;
            if (j < n) along = gpu_fma(a[at + j], s[m], along);
        }
        // Both sums need the whole row: two barriers of the block each, none where one warp holds
        // it.
        along = state_sum(g, parts, along);
        float sum = 0.0f;
        for (u32 m = 0; m < STATE_SLOTS; ++m) {
            const u64 j = tid + m * ntid;
            if (j >= n) continue;
            s[m] = s[m] * w[at + j] + v[at + row] * k[at + j] + along * b[at + j];
            sum = gpu_fma(s[m], r[at + j], sum);
        }
        sum = state_sum(g, parts, sum);
        if (tid == 0) y[at + row] = sum;
    }
    for (u32 m = 0; m < STATE_SLOTS; ++m) {
        const u64 j = tid + m * ntid;
        if (j < n) last[j] = s[m];
    }
}

// A row of q or k, which several heads and sequences of v may share.
GPU_FN GPU_GLOBAL const u8 *delta_row(GPU_ARGS gpu_operand &t, GPU_ARGS gpu_operand &v, u64 head,
                                      u64 token, u64 sequence) {
    return gpu_row(t, head % (u64)t.ne[1], token, sequence / (u64)(v.ne[3] / t.ne[3]));
}

// gated_delta_net: what the decayed state recalls for the key is subtracted from the value, and the
// difference, times beta, added along the key; a block per row of a state. Operands q, k, v, g,
// beta, state. The result has the outputs, then params[0] states, the newest first.
GPU_KERNEL(kernel_delta_net, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, parts, GPU_MAX_WARPS);
    GPU_ARGS gpu_operand &q = p.operands[1], &k = p.operands[2], &v = p.operands[3],
                         &gate = p.operands[4], &beta = p.operands[5], &first = p.operands[6];
    const u64 n = (u64)v.ne[0], heads = (u64)v.ne[1], tokens = (u64)v.ne[2],
              sequences = (u64)v.ne[3];
    const u32 tid = gpu_tid(g), ntid = gpu_ntid(g);
    u64 row, head;
    const u64 unit = gpu_divide(gpu_bid_x(g), n, &row);
    const u64 sequence = gpu_divide(unit, heads, &head);
    const bool shared_gate = gate.ne[0] == 1;
    const float scale = 1.0f / gpu_sqrt((float)n);
    GPU_GLOBAL float *y = (GPU_GLOBAL float *)p.operands[0].data;
    GPU_GLOBAL float *states = y + gpu_count(v) + (unit * n + row) * n;
    float s[STATE_SLOTS];
    for (u32 m = 0; m < STATE_SLOTS; ++m) {
        const u64 i = tid + m * ntid;
        s[m] = i < n ? ((GPU_GLOBAL const float *)first.data)[(unit * n + row) * n + i] : 0.0f;
    }
    for (u64 t = 0; t < tokens; ++t) {
        GPU_GLOBAL const u8 *key = delta_row(k, v, head, t, sequence),
                            *query = delta_row(q, v, head, t, sequence),
                            *decays = gpu_row(gate, head, t, sequence);
        const float decay = shared_gate ? gpu_exp(float_of(decays, 4, 0)) : 0.0f;
        float recalled = 0.0f;
        for (u32 m = 0; m < STATE_SLOTS; ++m) {
            const u64 i = tid + m * ntid;
            if (i >= n) continue;
            s[m] *= shared_gate ? decay : gpu_exp(float_of(decays, 4, i));
            recalled = gpu_fma(s[m], float_of(key, 4, i), recalled);
        }
        recalled = state_sum(g, parts, recalled);
        const float value = float_of(gpu_row(v, head, t, sequence), v.nb[0], row);
        // The delta rule (Widrow, Hoff 1960): S += beta (v - S k) k^T, after S was decayed.
        const float delta = (value - recalled) * float_of(gpu_row(beta, head, t, sequence), 4, 0);
        float sum = 0.0f;
        for (u32 m = 0; m < STATE_SLOTS; ++m) {
            const u64 i = tid + m * ntid;
            if (i >= n) continue;
            s[m] = gpu_fma(delta, float_of(key, 4, i), s[m]);
            sum = gpu_fma(s[m], float_of(query, 4, i), sum);
        }
        sum = state_sum(g, parts, sum);
        if (tid == 0) y[((sequence * tokens + t) * heads + head) * n + row] = sum * scale;
        const u64 age = tokens - 1 - t;
        for (u32 m = 0; m < STATE_SLOTS && age < (u64)p.params[0]; ++m) {
            const u64 i = tid + m * ntid;
            if (i < n) states[age * n * n * heads * sequences + i] = s[m];
        }
    }
}

// --- triangular systems, indexer -----------------------------------------------------------------

// Forward substitution; a thread per column of the unknowns. All packed.
GPU_KERNEL(kernel_solve_tri, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0];
    const u64 columns = (u64)y.ne[0], n = (u64)y.ne[1];
    u64 column;
    const u64 matrix = gpu_divide(gpu_index(g), columns, &column);
    if (matrix >= (u64)(y.ne[2] * y.ne[3])) return;
    GPU_GLOBAL const float *a = (GPU_GLOBAL const float *)p.operands[1].data + matrix * n * n,
                           *b = (GPU_GLOBAL const float *)p.operands[2].data +
                                matrix * n * columns + column;
    GPU_GLOBAL float *x = (GPU_GLOBAL float *)y.data + matrix * n * columns + column;
    // O(n^2) for a column; unknowns that were found are read again from the result.
    for (u64 r = 0; r < n; ++r) {
        float sum = b[r * columns];
        for (u64 t = 0; t < r; ++t)
            sum = gpu_fma(-a[r * n + t], x[t * columns], sum);
        x[r * columns] = sum / a[r * n + r];
    }
}

enum { INDEXER_HELD = 256 }; // elements of a key that are decoded once for all heads

// The mask plus the weighted sum over heads of the positive part of <q, k>; a warp per key and
// token. A lane has every 32nd element of the key, in shared memory for itself.
GPU_KERNEL(kernel_indexer, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, keys, 8 * INDEXER_HELD);
    GPU_ARGS gpu_operand &y = p.operands[0], &q = p.operands[1], &k = p.operands[2],
                         &weights = p.operands[3], &mask = p.operands[4];
    const u64 i = gpu_index(g) / 32;
    if (i >= gpu_count(y)) return;
    const u32 lane = gpu_tid(g) % 32;
    const gpu_at at = gpu_element_at(y, i); // key, token, 0, sequence
    const u64 n = (u64)q.ne[0];
    GPU_GLOBAL const u8 *key = gpu_row(k, 0, at.x, at.w);
    GPU_LOCAL float *held = keys + gpu_tid(g) / 32 * INDEXER_HELD;
    for (u64 j = lane; j < n && j < INDEXER_HELD; j += 32)
        held[j] = gpu_element_far(k, key, j);
    GPU_GLOBAL const u8 *from = gpu_row(mask, at.y, 0, at.w % (u64)mask.ne[3]),
                        *by = gpu_row(weights, at.y, 0, at.w);
    float sum = gpu_load(mask.type, from + (i64)at.x * mask.nb[0]);
    for (u64 head = 0; head < (u64)q.ne[1]; ++head) {
        GPU_GLOBAL const u8 *query = gpu_row(q, head, at.y, at.w);
        float dot = 0.0f;
        for (u64 j = lane; j < n; j += 32)
            dot = gpu_fma(j < INDEXER_HELD ? held[j] : gpu_element_far(k, key, j),
                          float_of(query, 4, j), dot);
        for (int shift = 16; shift > 0; shift >>= 1)
            dot += gpu_shfl_xor(dot, shift);
        sum += (dot > 0.0f ? dot : 0.0f) * float_of(by, weights.nb[0], head);
    }
    if (lane == 0) *(GPU_GLOBAL float *)gpu_address(y, at) = sum;
}

// --- hyper-connections ---------------------------------------------------------------------------

enum { COPIES = 4 }; // of the residual stream, in the models that have these

// A matrix per token made nearly doubly stochastic by Sinkhorn's iteration. params: eps, rounds. It
// comes behind 8 numbers for other operations.
// Sinkhorn and Knopp (1967): rows and columns are divided by their sums in turn. The first division
// of the rows is that of a softmax.
GPU_KERNEL(kernel_hyper_comb, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &mixes = p.operands[1], &scales = p.operands[2],
                         &base = p.operands[3];
    const u64 token = gpu_index(g);
    if (token >= (u64)y.ne[2]) return;
    const float eps = gpu_param(p, 0);
    const float scale = float_of((GPU_GLOBAL const u8 *)scales.data, scales.nb[0], 2);
    float v[COPIES * COPIES]; // by source and destination
    for (u32 s = 0; s < COPIES; ++s) {
        float largest = -GPU_INFINITY, sum = 0.0f;
        for (u32 d = 0; d < COPIES; ++d) {
            const u32 at = 2 * COPIES + d + COPIES * s;
            v[COPIES * s + d] = float_of(gpu_row(mixes, token, 0, 0), mixes.nb[0], at) * scale +
                                float_of((GPU_GLOBAL const u8 *)base.data, base.nb[0], at);
            largest = gpu_larger(largest, v[COPIES * s + d]);
        }
        for (u32 d = 0; d < COPIES; ++d)
            sum += v[COPIES * s + d] = gpu_exp(v[COPIES * s + d] - largest);
        for (u32 d = 0; d < COPIES; ++d)
            v[COPIES * s + d] = v[COPIES * s + d] / sum + eps;
    }
    for (int round = 0; round < (p.params[1] > 1 ? p.params[1] : 1); ++round) {
        for (u32 s = 0; s < COPIES && round > 0; ++s) {
            float sum = eps;
            for (u32 d = 0; d < COPIES; ++d)
                sum += v[COPIES * s + d];
            for (u32 d = 0; d < COPIES; ++d)
                v[COPIES * s + d] /= sum;
        }
        for (u32 d = 0; d < COPIES; ++d) {
            float sum = eps;
            for (u32 s = 0; s < COPIES; ++s)
                sum += v[COPIES * s + d];
            for (u32 s = 0; s < COPIES; ++s)
                v[COPIES * s + d] /= sum;
        }
    }
    for (u32 s = 0; s < COPIES; ++s) {
        for (u32 d = 0; d < COPIES; ++d)
            *(GPU_GLOBAL float *)(gpu_row(y, s, token, 0) + (i64)d * y.nb[0]) = v[COPIES * s + d];
    }
}

// The copies times the token's weights, added up; or, params[1] being 1, times sigmoids of gates
// of their own and times params[0].
GPU_KERNEL(kernel_hyper_pre, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1], &weights = p.operands[2];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at at = gpu_element_at(y, i); // channel, token
    const bool gated = p.params[1] != 0;
    float sum = 0.0f;
    for (u64 copy = 0; copy < (u64)x.ne[1]; ++copy) {
        const gpu_at from = {at.x, copy, at.y, 0}, weight_at = {copy, at.y, 0, 0};
        const float value = *(GPU_GLOBAL const float *)gpu_address(x, from);
        const float weight =
            *(GPU_GLOBAL const float *)gpu_address(weights, gated ? from : weight_at);
        sum += gated ? value * gpu_sigmoid(weight) : value * weight;
    }
    *(GPU_GLOBAL float *)gpu_address(y, at) = gated ? sum * gpu_param(p, 0) : sum;
}

// The layer's output times a copy's weight, plus the copies as the matrix of operand 4 combines
// them, or the copy itself without one.
GPU_KERNEL(kernel_hyper_post, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1], &residual = p.operands[2],
                         &post = p.operands[3], &comb = p.operands[4];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at at = gpu_element_at(y, i); // channel, copy, token
    const gpu_at x_at = {at.x, at.z, 0, 0}, post_at = {at.y, at.z, 0, 0};
    float sum = *(GPU_GLOBAL const float *)gpu_address(x, x_at) *
                *(GPU_GLOBAL const float *)gpu_address(post, post_at);
    if (!comb.data) sum += *(GPU_GLOBAL const float *)gpu_address(residual, at);
    for (u64 copy = 0; copy < (u64)residual.ne[1] && comb.data; ++copy) {
        const gpu_at from = {at.x, copy, at.z, 0}, weight_at = {at.y, copy, at.z, 0};
        sum = gpu_fma(*(GPU_GLOBAL const float *)gpu_address(comb, weight_at),
                      *(GPU_GLOBAL const float *)gpu_address(residual, from), sum);
    }
    *(GPU_GLOBAL float *)gpu_address(y, at) = sum;
}
