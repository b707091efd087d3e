// SPDX-License-Identifier: MIT
// flash_attn_ext on tensor cores. A block has rows of queries, of all heads that share one of K and
// V, and keys a tile at a time with the softmax taken online: the warps share the keys of the
// scores, then the channels of the result, so that K and V are decoded and read from shared memory
// once. Few rows are computed by several blocks, each with some of the keys; kernel_attention_join
// adds their parts. How many there are follows from the shapes alone, and so does each sum's order.
//
// Queries, weights and numbers of types with blocks are split into two halves, F16 or BF16, whose
// products are added up in F32: results are nearly those of F32.
#include "attention_rows.h"
#include "launch/products.h"

// numbers: as attention.h; heads that share one of K; keys of a part; parts.
enum { JOIN_THREADS = 128 };

#if GPU_HAS_TENSOR_CORES

// The mask of a tile as floats, where the weights will be, once per query where heads share it.
// Whether any row sees any of the keys, for all threads alike.
template <class A>
GPU_FN bool load_bias(gpu_thread g, const gpu_args &p, const attention_block &o, u64 first) {
    const gpu_operand &mask = p.operands[4];
    if (!mask.data) return true;
    const u32 lane = gpu_tid(g) % 32, warp = gpu_tid(g) / 32;
    const u32 left = o.n_rows - o.row0 < A::ROWS ? (u32)(o.n_rows - o.row0) : (u32)A::ROWS;
    const u64 query0 = attention_at(o, 0).y;
    const u32 n = mask.ne[2] > 1 ? left : (u32)(attention_at(o, left - 1).y - query0 + 1);
    float *bias = (float *)o.weights, largest = -GPU_INFINITY;
    gpu_sync(g); // weights of the tile before have been read
    for (u32 r = warp; r < n; r += ATTENTION_WARPS) {
        const gpu_at at = attention_at(o, mask.ne[2] > 1 ? r : 0);
        const u8 *row = gpu_row(mask, mask.ne[2] > 1 ? at.y : query0 + r, at.z % (u64)mask.ne[2],
                                o.batch % (u64)mask.ne[3]);
        for (u32 k = lane; k < A::KEYS; k += 32) {
            const float x = first + k < o.end
                                ? gpu_load(mask.type, row + (i64)(first + k) * mask.nb[0])
                                : -GPU_INFINITY;
            bias[r * A::BIAS_PITCH + k] = x;
            largest = x != x ? 0.0f : gpu_larger(largest, x); // something else than not seen
        }
    }
    for (int m = 16; m > 0; m >>= 1)
        largest = gpu_larger(largest, gpu_shfl_xor(largest, m));
    if (lane == 0) o.votes[warp] = largest;
    gpu_sync(g);
    bool seen = false;
    for (u32 w = 0; w < ATTENTION_WARPS; ++w)
        seen = seen || o.votes[w] != -GPU_INFINITY;
    return seen;
}

// What each lane keeps: of rows lane / 4 + 8 h of each tile of rows.
// sums: by chunk of channels, tile of rows, eight columns, as fragments.
template <class A> struct attention_state {
    u32 bias_row[A::ROW_TILES][2];
    float largest[A::ROW_TILES][2], weight[A::ROW_TILES][2];
    float sums[A::CHUNKS][A::ROW_TILES][A::TILES][4];
};

// From products to scores, and the largest of each row among this warp's keys.
template <class A>
GPU_FN void finish_scores(gpu_thread g, const gpu_args &p, const attention_block &o, u64 first,
                          float (&scores)[A::ROW_TILES][A::TILES][4], const attention_state<A> &s) {
    const u32 warp = gpu_tid(g) / 32, lane = gpu_tid(g) % 32, c = lane % 4;
    const bool has_mask = p.operands[4].data != 0;
    const float softcap = gpu_param(p, 2), *bias = (const float *)o.weights;
    GPU_UNROLL
    for (u32 i = 0; i < A::ROW_TILES * 2; ++i) {
        const u32 row = i / 2 * 16 + i % 2 * 8 + lane / 4;
        const bool has_row = o.row0 + row < o.n_rows;
        float largest = -GPU_INFINITY;
        GPU_UNROLL
        for (u32 j = 0; j < A::TILES; ++j) {
            float *pair = &scores[i / 2][j][i % 2 * 2];
            const u32 key = warp * 8 * A::TILES + 8 * j + 2 * c;
            float seen[2] = {0.0f, 0.0f};
            if (has_mask) {
                const gpu_words2 two =
                    gpu_load_8(&bias[s.bias_row[i / 2][i % 2] * A::BIAS_PITCH + key]);
                seen[0] = gpu_float(two.x);
                seen[1] = gpu_float(two.y);
            }
            GPU_UNROLL
            for (u32 e = 0; e < 2; ++e) {
                float x = pair[e] * o.scales[row];
                if (softcap != 0.0f) x = softcap * gpu_tanh(x / softcap);
                if (has_mask) x += o.slopes[row] * seen[e];
                const bool hidden = first + key + e >= o.end || seen[e] == -GPU_INFINITY;
                pair[e] = hidden || !has_row ? -GPU_INFINITY : x;
                largest = gpu_larger(largest, pair[e]);
            }
        }
        // Four lanes have a row's keys of this warp.
        largest = gpu_larger(largest, gpu_shfl_xor(largest, 1));
        largest = gpu_larger(largest, gpu_shfl_xor(largest, 2));
        if (c == 0) o.parts[warp * A::ROWS + row] = largest;
    }
}

// From scores to weights, as two halves in shared memory; what was added up before is scaled to the
// new largest score.
template <class A>
GPU_FN void weigh(gpu_thread g, const attention_block &o,
                  float (&scores)[A::ROW_TILES][A::TILES][4], attention_state<A> &s) {
    const u32 warp = gpu_tid(g) / 32, lane = gpu_tid(g) % 32, c = lane % 4;
    GPU_UNROLL
    for (u32 i = 0; i < A::ROW_TILES * 2; ++i) {
        const u32 tile = i / 2, h = i % 2, row = tile * 16 + h * 8 + lane / 4;
        const float before = s.largest[tile][h];
        float largest = before, sum = 0.0f;
        GPU_UNROLL
        for (u32 w = 0; w < ATTENTION_WARPS; ++w)
            largest = gpu_larger(largest, o.parts[w * A::ROWS + row]);
        // Also where both are -infinity: no key was seen yet.
        const float factor = before == largest ? 1.0f : gpu_exp(before - largest);
        GPU_UNROLL
        for (u32 j = 0; j < A::TILES; ++j) {
            float *pair = &scores[tile][j][h * 2];
            u32 high, low;
            GPU_UNROLL
            for (u32 e = 0; e < 2; ++e) {
                pair[e] = pair[e] == -GPU_INFINITY ? 0.0f : gpu_exp(pair[e] - largest);
                sum += pair[e];
            }
            split_pair<A>(pair[0], pair[1], &high, &low);
            const u32 at = row * A::WEIGHT_PITCH + 2 * (warp * 8 * A::TILES + 8 * j + 2 * c);
            *(u32 *)(o.weights + at) = high;
            *(u32 *)(o.weights + A::WEIGHT_BYTES + at) = low;
        }
        s.largest[tile][h] = largest;
        s.weight[tile][h] = s.weight[tile][h] * factor + sum;
        GPU_UNROLL
        for (u32 k = 0; k < A::CHUNKS * A::TILES * 2; ++k)
            s.sums[k / A::TILES / 2][tile][k / 2 % A::TILES][h * 2 + k % 2] *= factor;
    }
}

// The first tile from `first` on that any row sees, with its mask loaded; o.end: none. The first
// chunk of K of tile `first` is on its way, as it is of the tile that is returned.
template <class A>
GPU_FN u64 find_seen(gpu_thread g, const gpu_args &p, const attention_block &o, u64 first,
                     u32 turn) {
    u64 at = first;
    while (at < o.end && !load_bias<A>(g, p, o, at)) {
        gpu_copy_wait<0>();
        at += A::KEYS;
    }
    if (at == first || at >= o.end) return at < o.end ? at : o.end;
    copy_chunk<A>(g, p, o, {ATTENTION_K, at, 0}, o.chunks + turn * A::BUFFER_BYTES);
    gpu_copy_group();
    return at;
}

// Adds the scores of a tile of keys, of which the first chunk is on its way; then that of V is.
template <class A>
GPU_FN void score_tile(gpu_thread g, const gpu_args &p, const attention_block &o, u64 first,
                       float (&scores)[A::ROW_TILES][A::TILES][4], u32 *turn) {
    const gpu_operand &k = p.operands[ATTENTION_K];
    const u32 n = (u32)(k.ne[0] + A::CHANNELS - 1) / A::CHANNELS;
    const bool has_low = attention_has_blocks<A>(k.type);
    GPU_UNROLL
    for (u32 i = 0; i < A::ROW_TILES * A::TILES * 4; ++i)
        scores[i / 4 / A::TILES][i / 4 % A::TILES][i % 4] = 0.0f;
    for (u32 j = 0; j < n; ++j) {
        const bool is_last = j + 1 == n;
        const attention_chunk next = {is_last ? (u32)ATTENTION_V : (u32)ATTENTION_K, first,
                                      is_last ? 0 : j + 1};
        const u8 *at = take_chunk<A>(g, p, o, {ATTENTION_K, first, j}, next, turn);
        add_scores<A>(g, o, at, has_low, j, (u32)k.ne[0], scores);
    }
}

// Adds the weighted values of a tile, of which the first chunk is on its way; then `after` is.
template <class A>
GPU_FN void add_tile(gpu_thread g, const gpu_args &p, const attention_block &o, u64 first,
                     attention_chunk after, attention_state<A> &s, u32 *turn) {
    const gpu_operand &v = p.operands[ATTENTION_V];
    const u32 n = (u32)(v.ne[0] + A::CHANNELS - 1) / A::CHANNELS;
    const bool has_low = attention_has_blocks<A>(v.type);
    for (u32 j = 0; j < n; ++j) {
        attention_chunk next = {ATTENTION_V, first, j + 1};
        if (j + 1 == n) next = after;
        const u8 *at = take_chunk<A>(g, p, o, {ATTENTION_V, first, j}, next, turn);
        GPU_UNROLL
        for (u32 i = 0; i < A::CHUNKS; ++i) { // registers have no index
            if (i == j) add_values<A>(g, o, at, has_low, s.sums[i]);
        }
    }
}

// All tiles that any row sees.
template <class A>
GPU_FN void attend(gpu_thread g, const gpu_args &p, const attention_block &o,
                   attention_state<A> &s) {
    u32 turn = 0;
    copy_chunk<A>(g, p, o, {ATTENTION_K, o.begin, 0}, o.chunks);
    gpu_copy_group();
    for (u64 first = find_seen<A>(g, p, o, o.begin, turn); first < o.end;) {
        const u64 next = first + A::KEYS;
        float scores[A::ROW_TILES][A::TILES][4];
        score_tile<A>(g, p, o, first, scores, &turn);
        finish_scores<A>(g, p, o, first, scores, s);
        gpu_sync(g);
        // Behind the barrier all warps' largest scores are there, and nobody reads the mask any
        // more, in whose place the weights go.
        weigh<A>(g, o, scores, s);
        add_tile<A>(g, p, o, first, {next < o.end ? (u32)ATTENTION_K : 0u, next, 0}, s, &turn);
        first = find_seen<A>(g, p, o, next, turn);
    }
    gpu_copy_wait<0>();
}

// Adds up the weights of a row, which lanes and warps share, in parts[0 .. ROWS). Whether every
// number of the block is finite, for all threads alike.
template <class A>
GPU_FN bool finish_sums(gpu_thread g, const attention_block &o, attention_state<A> &s) {
    const u32 warp = gpu_tid(g) / 32, lane = gpu_tid(g) % 32;
    // x - x is 0 unless x is infinite or not a number: sums of it tell of any such.
    float nothing = 0.0f; // or not a number
    gpu_sync(g);
    GPU_UNROLL
    for (u32 i = 0; i < A::ROW_TILES * 2; ++i) {
        float sum = s.weight[i / 2][i % 2];
        sum += gpu_shfl_xor(sum, 1);
        sum += gpu_shfl_xor(sum, 2);
        nothing += sum - sum;
        if (lane % 4 == 0) o.parts[warp * A::ROWS + i / 2 * 16 + i % 2 * 8 + lane / 4] = sum;
    }
    GPU_UNROLL
    for (u32 i = 0; i < A::CHUNKS * A::ROW_TILES * A::TILES * 4; ++i) {
        const float x = s.sums[i / 4 / A::TILES / A::ROW_TILES][i / 4 / A::TILES % A::ROW_TILES]
                              [i / 4 % A::TILES][i % 4];
        nothing += x - x;
    }
    for (int m = 16; m > 0; m >>= 1)
        nothing += gpu_shfl_xor(nothing, m);
    if (lane == 0) o.votes[warp] = nothing;
    gpu_sync(g);
    return o.votes[0] + o.votes[1] + o.votes[2] + o.votes[3] == 0.0f;
}

template <class A>
GPU_FN void store_results(gpu_thread g, const gpu_args &p, const attention_block &o,
                          attention_state<A> &s) {
    const u32 warp = gpu_tid(g) / 32, lane = gpu_tid(g) % 32, c = lane % 4;
    GPU_UNROLL
    for (u32 i = 0; i < A::ROW_TILES * 2; ++i) {
        const u32 row = i / 2 * 16 + i % 2 * 8 + lane / 4;
        if (o.row0 + row >= o.n_rows) continue;
        attention_sum sum = {s.largest[i / 2][i % 2], 0.0f};
        for (u32 w = 0; w < ATTENTION_WARPS; ++w)
            sum.sum += o.parts[w * A::ROWS + row];
        float factor;
        float *to = find_result(p, attention_at(o, row), sum, warp == 0 && c == 0, &factor);
        GPU_UNROLL
        for (u32 j = 0; j < A::CHUNKS * A::TILES; ++j) {
            const float *pair = &s.sums[j / A::TILES][i / 2][j % A::TILES][i % 2 * 2];
            const u32 channel =
                j / A::TILES * A::CHANNELS + warp * 8 * A::TILES + j % A::TILES * 8 + 2 * c;
            if (channel < p.operands[0].ne[0]) // an even number
                gpu_store_8(to + channel, {gpu_bits(pair[0] * factor), gpu_bits(pair[1] * factor)});
        }
    }
}

template <class A> GPU_FN void attention(gpu_thread g, const gpu_args &p, attention_block &o) {
    attention_state<A> s;
    find_block(g, p, A::ROWS, o);
    GPU_UNROLL
    for (u32 i = 0; i < A::ROW_TILES * 2; ++i) {
        const u32 row = i / 2 * 16 + i % 2 * 8 + gpu_tid(g) % 32 / 4;
        const bool by_row = p.operands[4].ne[2] > 1, has_row = o.row0 + row < o.n_rows;
        s.bias_row[i / 2][i % 2] = by_row    ? row
                                   : has_row ? (u32)(attention_at(o, row).y - attention_at(o, 0).y)
                                             : 0;
        s.largest[i / 2][i % 2] = -GPU_INFINITY;
        s.weight[i / 2][i % 2] = 0.0f;
    }
    GPU_UNROLL
    for (u32 i = 0; i < A::CHUNKS * A::ROW_TILES * A::TILES * 4; ++i)
        s.sums[i / 4 / A::TILES / A::ROW_TILES][i / 4 / A::TILES % A::ROW_TILES][i / 4 % A::TILES]
              [i % 4] = 0.0f;
    load_queries<A>(g, p, o);
    attend<A>(g, p, o, s);
    if (finish_sums<A>(g, o, s)) {
        store_results<A>(g, p, o, s);
        return;
    }
    // Rare, and slow: each row of the block by itself, by all of its threads.
    for (u32 row = 0; row < A::ROWS && o.row0 + row < o.n_rows; ++row) {
        const gpu_at at = attention_at(o, row);
        attend_plainly(p, at.y, at.z, at.w, o.begin, o.end, (float *)o.queries);
    }
}

#define ATTENTION_BODY(SHARED, ...)                                                                \
    GPU_THREAD(g);                                                                                 \
    typedef attention_tile<__VA_ARGS__> A;                                                         \
    GPU_SHARED(gpu_words4, queries, 2 * A::QUERY_BYTES / 16);                                      \
    GPU_SHARED(gpu_words4, weights, 2 * A::WEIGHT_BYTES / 16);                                     \
    SHARED(gpu_words4, chunks, A::ALL_BYTES / 16);                                                 \
    GPU_SHARED(float, numbers, (2 + ATTENTION_WARPS) * A::ROWS + ATTENTION_WARPS);                 \
    attention_block o;                                                                             \
    o.queries = (u8 *)queries;                                                                     \
    o.weights = (u8 *)weights;                                                                     \
    o.chunks = (u8 *)chunks;                                                                       \
    o.scales = numbers;                                                                            \
    o.slopes = numbers + A::ROWS;                                                                  \
    o.parts = numbers + 2 * A::ROWS;                                                               \
    o.votes = numbers + (2 + ATTENTION_WARPS) * A::ROWS;                                           \
    attention<A>(g, p, o);
#else
#define ATTENTION_BODY(SHARED, ...) (void)p;
#endif

// By the most channels of K; few: at most 16 rows. Coded ones have smaller tiles where the lower
// halves would not find room beside them.
#define ATTENTION_KERNEL(name, ...)                                                                \
    GPU_KERNEL_FOR(kernel_attention_##name, ATTENTION_THREADS, 2, gpu_args, p) {                   \
        ATTENTION_BODY(GPU_SHARED, __VA_ARGS__)                                                    \
    }
ATTENTION_KERNEL(few_128_F16, ATTENTION_F16, 1, 128, 128, 64, 128)
ATTENTION_KERNEL(few_128_BF16, ATTENTION_BF16, 1, 128, 128, 64, 128)
ATTENTION_KERNEL(few_128_coded, ATTENTION_CODED, 1, 128, 128, 64, 128)
ATTENTION_KERNEL(128_F16, ATTENTION_F16, 2, 128, 128, 64, 128)
ATTENTION_KERNEL(128_BF16, ATTENTION_BF16, 2, 128, 128, 64, 128)
ATTENTION_KERNEL(128_coded, ATTENTION_CODED, 2, 128, 128, 32, 128)
ATTENTION_KERNEL(256_F16, ATTENTION_F16, 1, 256, 256, 64, 256)
ATTENTION_KERNEL(256_BF16, ATTENTION_BF16, 1, 256, 256, 64, 256)
ATTENTION_KERNEL(256_coded, ATTENTION_CODED, 1, 256, 256, 32, 256)
ATTENTION_KERNEL(576_F16, ATTENTION_F16, 1, 576, 512, 32, 32)
ATTENTION_KERNEL(576_BF16, ATTENTION_BF16, 1, 576, 512, 32, 32)
// Queries leave no room for pieces of rows in what a launch has by itself.
GPU_KERNEL_FOR(kernel_attention_576_coded, ATTENTION_THREADS, 2, gpu_args, p) {
    ATTENTION_BODY(GPU_SHARED_LARGE, ATTENTION_CODED, 1, 576, 512, 32, 288)
#if GPU_HAS_TENSOR_CORES
    static_assert((int)A::ALL_BYTES == (int)ATTENTION_576_SHARED, "as launches have it");
#endif
}

// Adds up the parts of a row, in order. A block per row.
GPU_KERNEL(kernel_attention_join, JOIN_THREADS, gpu_args, p) {
    GPU_THREAD(g);
    const gpu_operand &y = p.operands[0];
    const gpu_at at = gpu_row_at(p.operands[1], gpu_bid_x(g));
    const u64 n = (u64)p.numbers[3];
    // Parts are relative to their own largest score, and are scaled to that of all. Time: linear in
    // the parts for each channel.
    attention_sum s = {-GPU_INFINITY, 0.0f};
    for (u64 i = 0; i < n; ++i)
        s.largest = gpu_larger(s.largest, attention_part_sum(p, at, i)[0]);
    for (u64 i = 0; i < n; ++i) {
        const float *part = attention_part_sum(p, at, i);
        if (part[1] != 0.0f) s.sum += part[1] * gpu_exp(part[0] - s.largest);
    }
    const float factor = attention_factor(p, at.z, s);
    for (u64 c = gpu_tid(g); c < (u64)y.ne[0]; c += gpu_ntid(g)) {
        float value = 0.0f;
        for (u64 i = 0; i < n; ++i) {
            const float *part = attention_part_sum(p, at, i);
            if (part[1] != 0.0f)
                value += attention_part(p, at, i)[c] * gpu_exp(part[0] - s.largest);
        }
        ((float *)gpu_row(y, at.z, at.y, at.w))[c] = value * factor;
    }
}
