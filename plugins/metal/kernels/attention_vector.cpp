// SPDX-License-Identifier: MIT
// flash_attn_ext for few queries: a block of threads has up to eight rows, which share K and V, and
// some of the keys; its SIMD groups take 32 keys each in turn, with a softmax of their own that is
// taken online. K is read by eight lanes per key, V by all lanes per key, four elements at a time
// of any type. A masked key contributes nothing, not even its NaN.
#include "attention_parts.h"

enum {
    VECTOR_KEYS = 32, // of a SIMD group at a time
    VECTOR_MAX_ROWS = 8,
    VECTOR_QUERIES = 2048, // floats: rows times channels of K
    VECTOR_FOURS = 8,      // rows times fours of channels of V that a lane has
};

#define ROWS(p) ((u32)GPU_SPECIAL(p, 1))
#define FOURS(p) ((u32)GPU_SPECIAL(p, 3))

// Of a SIMD group; scores become weights.
struct vector_state {
    GPU_LOCAL float *query, *scores;
    float slopes[VECTOR_MAX_ROWS], largest[VECTOR_MAX_ROWS], sums[VECTOR_MAX_ROWS];
    float values[VECTOR_FOURS][4];
};

// Whether any row sees any of the keys. Each lane has a key.
GPU_FN bool vector_biases(gpu_thread g, GPU_ARGS gpu_args &p, attention_block o, u64 key0,
                          GPU_PRIVATE float *biases) {
    float seen = 0.0f;
    for (u32 r = 0; r < ROWS(p); ++r) {
        biases[r] =
            attention_bias(p, o, r, attention_mask(p, attention_at(o, r)), key0 + gpu_tid(g) % 32);
        if (biases[r] != -GPU_INFINITY) seen = 1.0f;
    }
    return gpu_warp_sum(seen) > 0.0f;
}

// Products of the rows with four keys at a time.
GPU_FN void vector_products(gpu_thread g, GPU_ARGS gpu_args &p, attention_block o, u64 key0,
                            GPU_PRIVATE vector_state &s) {
    GPU_ARGS gpu_operand &k = p.operands[2];
    const u32 lane = gpu_tid(g) % 32, n = (u32)k.ne[0];
    for (u32 j = lane / 8; j < VECTOR_KEYS; j += 4) {
        float dots[VECTOR_MAX_ROWS] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
        const bool inside = key0 + j < o.end;
        GPU_GLOBAL const u8 *row = gpu_row(k, inside ? key0 + j : o.begin, o.kv_head, o.batch);
        for (u32 c = 4 * (lane % 8); c < n && inside; c += 32) {
            float x[4];
            four_weights(K_TYPE(p), row, c, x);
            for (u32 r = 0; r < ROWS(p); ++r) {
                for (u32 e = 0; e < 4; ++e)
                    dots[r] = gpu_fma(x[e], s.query[r * n + c + e], dots[r]);
            }
        }
        for (u32 r = 0; r < ROWS(p); ++r) {
            // Eight lanes share a key, with an eighth of its channels each.
            for (int mask = 4; mask > 0; mask >>= 1)
                dots[r] += gpu_shfl_xor(dots[r], mask);
            if (lane % 8 == 0) s.scores[r * VECTOR_KEYS + j] = dots[r];
        }
    }
}

// From products to weights; what was added up before is scaled to the new largest score.
GPU_FN void vector_weights(gpu_thread g, GPU_ARGS gpu_args &p, GPU_PRIVATE float *biases,
                           GPU_PRIVATE vector_state &s) {
    for (u32 r = 0; r < ROWS(p); ++r) {
        GPU_LOCAL float *mine = s.scores + r * VECTOR_KEYS + gpu_tid(g) % 32;
        const float score = attention_score(p, *mine, s.slopes[r], biases[r]);
        float largest = gpu_larger(s.largest[r], score);
        for (int mask = 16; mask > 0; mask >>= 1)
            largest = gpu_larger(largest, gpu_shfl_xor(largest, mask));
        const float factor = attention_rescale(s.largest[r], largest);
        const float weight = score == -GPU_INFINITY ? 0.0f : gpu_exp(score - largest);
        *mine = weight;
        s.largest[r] = largest;
        s.sums[r] = s.sums[r] * factor + gpu_warp_sum(weight);
        for (u32 i = 0; i < FOURS(p); ++i) {
            for (u32 e = 0; e < 4; ++e)
                s.values[r * FOURS(p) + i][e] *= factor;
        }
    }
}

// A lane has fours of channels 128 apart, of all rows: a row of V is read once, by the whole SIMD
// group side by side.
GPU_FN void vector_values(gpu_thread g, GPU_ARGS gpu_args &p, attention_block o, u64 key0,
                          GPU_PRIVATE vector_state &s) {
    GPU_ARGS gpu_operand &v = p.operands[3];
    const u32 n = (u32)v.ne[0];
    for (u32 j = 0; j < VECTOR_KEYS && key0 + j < o.end; ++j) {
        GPU_GLOBAL const u8 *row = gpu_row(v, key0 + j, o.kv_head, o.batch);
        for (u32 i = 0; i < FOURS(p); ++i) {
            const u32 c = 4 * (gpu_tid(g) % 32) + 128 * i;
            if (c >= n) continue;
            float x[4];
            four_weights(V_TYPE(p), row, c, x);
            for (u32 r = 0; r < ROWS(p); ++r) {
                const float weight = s.scores[r * VECTOR_KEYS + j];
                for (u32 e = 0; e < 4 && weight != 0.0f; ++e)
                    s.values[r * FOURS(p) + i][e] =
                        gpu_fma(weight, x[e], s.values[r * FOURS(p) + i][e]);
            }
        }
    }
}

// Adds up what the SIMD groups have, 128 channels of a row at a time, in the memory of the queries.
// state: the largest score and the sum of the weights of each group and row.
GPU_FN void vector_store(gpu_thread g, GPU_ARGS gpu_args &p, attention_block o,
                         GPU_LOCAL float *state, GPU_PRIVATE vector_state &s) {
    const u32 t = gpu_tid(g), group = t / 32;
    for (u32 r = 0; r < ROWS(p); ++r) {
        if (t % 32 == 0) state[2 * (group * VECTOR_MAX_ROWS + r)] = s.largest[r];
        if (t % 32 == 0) state[2 * (group * VECTOR_MAX_ROWS + r) + 1] = s.sums[r];
    }
    gpu_sync(g);
    for (u32 r = 0; r < ROWS(p); ++r) {
        attention_sum all = {-GPU_INFINITY, 0.0f};
        for (u32 i = 0; i < ATTENTION_GROUPS; ++i)
            all.largest = gpu_larger(all.largest, state[2 * (i * VECTOR_MAX_ROWS + r)]);
        for (u32 i = 0; i < ATTENTION_GROUPS; ++i)
            all.sum += state[2 * (i * VECTOR_MAX_ROWS + r) + 1] *
                       attention_rescale(state[2 * (i * VECTOR_MAX_ROWS + r)], all.largest);
        const gpu_at at = attention_at(o, r);
        const bool inside = o.row0 + r < o.n_rows;
        const attention_result result = attention_result_of(g, p, at, all);
        // Each SIMD group scales its sums to the largest score of all, then the four are added.
        const float factor = attention_rescale(s.largest[r], all.largest) * result.factor;
        for (u32 i = 0; i < FOURS(p); ++i) {
            for (u32 e = 0; e < 4; ++e)
                s.query[4 * t + e] = s.values[r * FOURS(p) + i][e] * factor;
            gpu_sync(g);
            const u32 c = t + 128 * i;
            const float sum = s.query[t] + s.query[t + 128] + s.query[t + 256] + s.query[t + 384];
            if (inside && c < (u32)p.operands[0].ne[0])
                *(GPU_GLOBAL float *)(result.to + (i64)c * result.stride) = sum;
            gpu_sync(g);
        }
        if (t == 0 && inside) attention_keep(g, p, at, all);
    }
}

GPU_KERNEL(kernel_attention_vector, 128, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, query, VECTOR_QUERIES);
    GPU_SHARED(float, scores, ATTENTION_GROUPS *VECTOR_MAX_ROWS *VECTOR_KEYS);
    GPU_SHARED(float, state, 2 * ATTENTION_GROUPS * VECTOR_MAX_ROWS);
    GPU_ARGS gpu_operand &q = p.operands[1];
    const u32 group = gpu_tid(g) / 32, n = (u32)q.ne[0];
    const attention_block o = attention_block_of(g, p, ROWS(p));
    vector_state s;
    s.query = query;
    s.scores = scores + group * VECTOR_MAX_ROWS * VECTOR_KEYS;
    for (u32 r = 0; r < ROWS(p); ++r) {
        const gpu_at at = attention_at(o, r);
        GPU_GLOBAL const u8 *row = gpu_row(q, at.y, at.z, at.w);
        for (u32 c = gpu_tid(g); c < n; c += ATTENTION_THREADS)
            query[r * n + c] = *(GPU_GLOBAL const float *)(row + (i64)c * q.nb[0]);
        s.slopes[r] = gpu_alibi_slope(p, at.z);
        s.largest[r] = -GPU_INFINITY;
        s.sums[r] = 0.0f;
    }
    for (u32 i = 0; i < ROWS(p) * FOURS(p); ++i) {
        for (u32 e = 0; e < 4; ++e)
            s.values[i][e] = 0.0f;
    }
    gpu_sync(g);
    for (u64 first = o.begin; first < o.end; first += ATTENTION_GROUPS * VECTOR_KEYS) {
        const u64 key0 = first + group * VECTOR_KEYS;
        float biases[VECTOR_MAX_ROWS];
        // Barriers are the block's, so that groups without a visible key pass them too. They keep
        // scores, then weights, from being overwritten before all lanes have read them.
        const bool seen = vector_biases(g, p, o, key0, biases); // the same for the SIMD group
        if (seen) vector_products(g, p, o, key0, s);
        gpu_sync(g);
        if (seen) vector_weights(g, p, biases, s);
        gpu_sync(g);
        if (seen) vector_values(g, p, o, key0, s);
        gpu_sync(g);
    }
    vector_store(g, p, o, state, s);
}

// Adds up the parts of a row; a block of threads per row.
GPU_KERNEL(kernel_attention_merge, 128, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(float, factors, ATTENTION_MAX_PARTS);
    GPU_ARGS gpu_operand &y = p.operands[0];
    const gpu_at at = gpu_row_at(p.operands[1], gpu_bid_x(g));
    const u32 parts = (u32)p.numbers[3], n = (u32)y.ne[0];
    attention_sum all = {-GPU_INFINITY, 0.0f};
    for (u32 i = 0; i < parts; ++i)
        all.largest = gpu_larger(all.largest, attention_part(p, at, i)[n]);
    // Exponentials once for the block, not for each channel.
    for (u32 i = gpu_tid(g); i < parts; i += ATTENTION_THREADS)
        factors[i] = attention_rescale(attention_part(p, at, i)[n], all.largest);
    gpu_sync(g);
    for (u32 i = 0; i < parts; ++i)
        all.sum += attention_part(p, at, i)[n + 1] * factors[i];
    const float factor = attention_factor(p, at.z, all);
    GPU_GLOBAL u8 *to = gpu_row(y, at.z, at.y, at.w);
    for (u32 c = gpu_tid(g); c < n; c += ATTENTION_THREADS) {
        float sum = 0.0f;
        for (u32 i = 0; i < parts; ++i)
            sum = gpu_fma(attention_part(p, at, i)[c], factors[i], sum);
        *(GPU_GLOBAL float *)(to + (i64)c * y.nb[0]) = sum * factor;
    }
}
