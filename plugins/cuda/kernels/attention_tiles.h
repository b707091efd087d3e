// SPDX-License-Identifier: MIT
// What attention on tensor cores keeps in shared memory, and how keys and values get there: a chunk
// of channels of a tile of keys at a time, copied while the chunk before is computed with. Caches
// with blocks are copied as they are, rows of several chunks at a time, since a chunk ends within a
// sector of device memory that the next one begins in, and decoded to F16 chunk by chunk.
//
// Rows of chunks, queries and weights lie an odd multiple of 16 bytes apart: eight rows' 16 bytes
// are then in different banks.
#ifndef CUDA_KERNELS_ATTENTION_TILES_H
#define CUDA_KERNELS_ATTENTION_TILES_H

#include "attention.h"
#include "fragments.h"

enum { ATTENTION_WARPS = 4, ATTENTION_THREADS = 128, ATTENTION_K = 2, ATTENTION_V = 3 };

// What K and V are of: F16, BF16, or types with blocks of 32, one of the two perhaps F16. Numbers
// of blocks are two halves each, as those of queries and weights are, but products of the lower two
// are left out.
enum attention_kind { ATTENTION_F16, ATTENTION_BF16, ATTENTION_CODED };

// One kernel: rows of queries in tiles of 16, the most channels of K and V, keys and channels of a
// tile, channels of types with blocks that are copied at a time (PIECE_). Of the keys, and of a
// chunk's channels, each warp has a quarter.
template <int KIND_, int ROW_TILES_, int K_CHANNELS_, int V_CHANNELS_, int KEYS_, int PIECE_>
struct attention_tile {
    enum {
        KIND = KIND_,
        AS_BF16 = KIND == ATTENTION_BF16,
        CODED = KIND == ATTENTION_CODED,
        WARPS = ATTENTION_WARPS,
        ROW_TILES = ROW_TILES_,
        ROWS = 16 * ROW_TILES,
        KEYS = KEYS_,
        CHANNELS = KEYS_, // a warp has as many keys of a tile as channels of a chunk
        CHUNKS = V_CHANNELS_ / CHANNELS,
        TILES = KEYS / ATTENTION_WARPS / 8, // of 8 columns of a product, per warp
        STEPS = 2 / TILES,                  // of 16 in k that one load of fragments serves
        QUERY_UNIT = 32,                    // of channels, to which queries have zeros
        QUERY_PITCH = 2 * K_CHANNELS_ + 16,
        QUERY_SWIZZLE = 0,
        QUERY_BYTES = ROWS * QUERY_PITCH,
        WEIGHT_PITCH = 2 * KEYS + 16,
        WEIGHT_BYTES = ROWS * WEIGHT_PITCH,
        CHUNK_PITCH = 2 * CHANNELS + 16,
        CHUNK_BYTES = KEYS * CHUNK_PITCH,
        PIECE = PIECE_ / CHANNELS, // chunks
        // Blocks of 34 bytes at most, from an even address within a sector on.
        PIECE_PITCH = ((PIECE_ / 32 * 34 + SECTOR - 2 + 15) / 16 | 1) * 16,
        PIECE_LANES = PIECE_PITCH <= 256 ? 16 : 32, // each copies 16 bytes
        PITCH = CODED && PIECE_PITCH > CHUNK_PITCH ? PIECE_PITCH : CHUNK_PITCH, // of what arrives
        BUFFER_BYTES = KEYS * PITCH,                              // of two that take turns
        ALL_BYTES = 2 * BUFFER_BYTES + (CODED ? CHUNK_BYTES : 0), // and the lower halves
        BIAS_PITCH = 2 * WEIGHT_PITCH / 4,                        // floats
    };
    static_assert(TILES == 1 || TILES == 2, "one load of fragments per step");
    static_assert(PIECE_PITCH <= 512, "a lane for each 16 bytes");
};

// The block's part: rows of one head of K and V, which several heads of the queries share, and
// keys [begin, end). Queries and weights are two numbers each, whose sum has twice the digits.
struct attention_block {
    u64 row0, n_rows, group, head0, kv_head, batch, begin, end;
    u8 *queries, *weights, *chunks;
    float *scales, *slopes, *parts, *votes;
};

// A chunk of an operand, K or V; of operand 0: none.
struct attention_chunk {
    u32 operand;
    u64 key;
    u32 index;
};

#if GPU_HAS_TENSOR_CORES

template <class A> GPU_FN bool attention_has_blocks(int type) {
    return A::CODED && type != TYPE_F16;
}

// Bytes of so many channels.
template <class A> GPU_FN u32 attention_bytes(int type, u32 channels) {
    return attention_has_blocks<A>(type) ? channels / 32 * gpu_block_bytes(type) : 2 * channels;
}

// Begins to copy `bytes` of each of `n_rows` rows of a type with blocks, from byte `before` on, by
// threads of which this is number t of n: LANES for a row, 16 bytes each, from a multiple of 32 on,
// where a sector begins.
template <int LANES, int PITCH>
GPU_FN void copy_coded_rows(u32 t, u32 n, const gpu_operand &x, const u8 *rows, u32 n_rows,
                            u32 before, u32 bytes, u8 *to) {
    const u64 row_bytes = (u64)x.ne[0] / 32 * gpu_block_bytes(x.type);
    const u32 at = 16 * (t % LANES);
    for (u32 r = t / LANES; r < n_rows; r += n / LANES) {
        const u64 row = (u64)(rows + (i64)r * x.nb[1]), begin = row + before, end = row + row_bytes;
        const u64 from = (begin & ~(u64)(SECTOR - 1)) + at;
        if (from < end && from < begin + bytes)
            gpu_copy_16(to + r * PITCH + at, (const void *)from,
                        end - from < 16 ? (u32)(end - from) : 16u);
    }
}

// Begins to copy a chunk, or the piece that begins with it; of other chunks of a piece nothing is
// left to be copied. Zeros follow the last key and the last channel, except in types with blocks,
// for which the decoder adds them.
template <class A>
GPU_FN void copy_chunk(gpu_thread g, const gpu_args &p, const attention_block &o, attention_chunk c,
                       u8 *to) {
    if (c.operand == 0) return;
    const gpu_operand &x = p.operands[c.operand];
    const u32 before = attention_bytes<A>(x.type, c.index * A::CHANNELS);
    const u8 *rows = gpu_row(x, c.key, o.kv_head, o.batch);
    const u32 n_rows = o.end - c.key < A::KEYS ? (u32)(o.end - c.key) : (u32)A::KEYS;
    if (attention_has_blocks<A>(x.type)) {
        if (c.index % A::PIECE == 0)
            copy_coded_rows<A::PIECE_LANES, A::PITCH>(
                gpu_tid(g), ATTENTION_THREADS, x, rows, n_rows, before,
                attention_bytes<A>(x.type, A::PIECE * A::CHANNELS), to);
        return;
    }
    const u32 lanes = A::CHANNELS / 8, at = 16 * (gpu_tid(g) % lanes);
    const bool has_channels = before + at < 2 * (u32)x.ne[0]; // a multiple of 16 bytes
    for (u32 i = gpu_tid(g) / lanes; i < A::KEYS; i += ATTENTION_THREADS / lanes) {
        // Where eight lanes have two rows, these are four apart, in different banks.
        const u32 r = lanes == 4 ? (i & ~7u) | (i / 2 & 3u) | (i & 1u) << 2 : i;
        const bool used = has_channels && r < n_rows;
        gpu_copy_16(to + r * A::CHUNK_PITCH + at,
                    used ? rows + (i64)r * x.nb[1] + before + at : rows, used ? 16u : 0u);
    }
}

// Two numbers as halves, and what is lost, as halves.
template <class A> GPU_FN void split_pair(float x, float y, u32 *high, u32 *low) {
    if (A::AS_BF16) {
        *high = gpu_pack_bf16(x, y);
        *low =
            gpu_pack_bf16(x - gpu_bf16_to_f32((u16)*high), y - gpu_bf16_to_f32((u16)(*high >> 16)));
    } else {
        *high = gpu_pack_f16(x, y);
        *low = gpu_pack_f16(x - gpu_f16_to_f32((u16)*high), y - gpu_f16_to_f32((u16)(*high >> 16)));
    }
}

// The same of four elements of a block. Without an offset a product of a scale and a whole number
// is the sum of two halves; the others are computed in F32.
template <class A> GPU_FN void split_four(int type, gpu_four f, u32 *high, u32 *low) {
    if (type == TYPE_Q4_1 || type == TYPE_Q5_1) {
        GPU_UNROLL
        for (u32 i = 0; i < 2; ++i)
            split_pair<A>(gpu_four_element(type, f, 2 * i), gpu_four_element(type, f, 2 * i + 1),
                          &high[i], &low[i]);
        return;
    }
    const u32 scale = gpu_pack_f16(f.scale, f.scale);
    u32 pairs[2];
    bytes_as_halves(type, f.bytes, pairs);
    GPU_UNROLL
    for (u32 i = 0; i < 2; ++i) {
        high[i] = gpu_fma_f16(pairs[i], scale, 0x80008000u);
        low[i] = gpu_fma_f16(pairs[i], scale, high[i] ^ 0x80008000u);
    }
}

// A warp decodes 16 channels of eight keys of a chunk at a time; half of its lanes have the even
// keys, whose results lie in different banks. from: the piece.
template <class A>
GPU_FN void decode_chunk(gpu_thread g, const gpu_args &p, const attention_block &o,
                         attention_chunk c, const u8 *from, u8 *to) {
    const gpu_operand &x = p.operands[c.operand];
    const u32 warp = gpu_tid(g) / 32, lane = gpu_tid(g) % 32, four = lane % 4;
    const u32 own = lane / 4 % 4 * 2 + lane / 16, block_bytes = gpu_block_bytes(x.type);
    const u32 before = attention_bytes<A>(x.type, c.index / A::PIECE * A::PIECE * A::CHANNELS);
    const u32 first = c.index % A::PIECE * A::CHANNELS; // in the piece
    const u64 rows = (u64)gpu_row(x, 0, o.kv_head, o.batch);
    for (u32 i = warp; i < A::KEYS / 8 * (A::CHANNELS / 16); i += ATTENTION_WARPS) {
        const u32 key = i / (A::CHANNELS / 16) * 8 + own,
                  channel = i % (A::CHANNELS / 16) * 16 + 4 * four;
        u32 high[2] = {0, 0}, low[2] = {0, 0};
        if (c.key + key < o.end && c.index * A::CHANNELS + channel < (u64)x.ne[0]) {
            const u64 begin = rows + (c.key + key) * (u64)x.nb[1] + before;
            const u8 *block =
                from + key * A::PITCH + begin % SECTOR + (first + channel) / 32 * block_bytes;
            split_four<A>(x.type, gpu_four_small(x.type, block, channel % 32), high, low);
        }
        const u32 at = key * A::CHUNK_PITCH + 2 * channel;
        gpu_store_8(to + at, {high[0], high[1]});
        gpu_store_8(o.chunks + 2 * A::BUFFER_BYTES + at, {low[0], low[1]});
    }
}

// Waits for a chunk, which is on its way to buffer *turn or in the piece there, and begins to copy
// the next. Returns where it is until the next call.
template <class A>
GPU_FN const u8 *take_chunk(gpu_thread g, const gpu_args &p, const attention_block &o,
                            attention_chunk c, attention_chunk next, u32 *turn) {
    u8 *here = o.chunks + *turn * A::BUFFER_BYTES,
       *other = o.chunks + (1 - *turn) * A::BUFFER_BYTES;
    const bool has_blocks = attention_has_blocks<A>(p.operands[c.operand].type);
    gpu_copy_wait<0>();
    gpu_sync(g); // everybody is done with the chunk before, too
    if (has_blocks) {
        decode_chunk<A>(g, p, o, c, here, other);
        gpu_sync(g);
    } else {
        *turn = 1 - *turn;
    }
    copy_chunk<A>(g, p, o, next, has_blocks ? here : other);
    gpu_copy_group();
    return has_blocks ? other : here;
}

template <class A> GPU_FN void multiply_halves(float *d, const u32 *a, const u32 *b) {
    if (A::AS_BF16)
        gpu_mma_bf16(d, a, b);
    else
        gpu_mma_f16(d, a, b);
}

// d[tile][column] += rows, two halves each, by the fragments `b`; by `low`, if there are lower
// halves, only the upper ones.
template <class A>
GPU_FN void multiply_rows(const u8 *rows, u32 pitch, u32 bytes, const u32 (&b)[4],
                          const u32 (&low)[4], bool has_low,
                          float (&d)[A::ROW_TILES][A::TILES][4]) {
    GPU_UNROLL
    for (u32 i = 0; i < A::STEPS * A::ROW_TILES * 2; ++i) {
        const u32 step = i / 2 / A::ROW_TILES, tile = i / 2 % A::ROW_TILES;
        u32 a[4];
        gpu_load_matrices(a, rows + i % 2 * bytes + tile * 16 * pitch + 32 * step);
        GPU_UNROLL
        for (u32 j = 0; j < A::TILES; ++j) {
            const u32 word = 2 * (A::TILES == 2 ? j : step);
            multiply_halves<A>(d[tile][j], a, &b[word]);
            if (A::CODED && i % 2 == 0 && has_low) multiply_halves<A>(d[tile][j], a, &low[word]);
        }
    }
}

// The block's scores of a chunk of K: rows of queries by this warp's keys.
template <class A>
GPU_FN void add_scores(gpu_thread g, const attention_block &o, const u8 *chunk, bool has_low,
                       u32 index, u32 n_channels, float (&scores)[A::ROW_TILES][A::TILES][4]) {
    const u32 warp = gpu_tid(g) / 32, lane = gpu_tid(g) % 32;
    const u32 key = warp * 8 * A::TILES + (A::TILES == 2 ? lane / 16 * 8 : 0) + lane % 8;
    const u32 at = key * A::CHUNK_PITCH + 16 * (A::TILES == 2 ? lane / 8 % 2 : lane / 8);
    const u8 *queries = o.queries + lane % 16 * A::QUERY_PITCH + lane / 16 * 16;
    GPU_UNROLL
    for (u32 k = 0; k < A::CHANNELS; k += 16 * A::STEPS) {
        if (index * A::CHANNELS + k >= n_channels) break; // the same for the block
        u32 b[4], low[4] = {0, 0, 0, 0};
        gpu_load_matrices(b, chunk + at + 2 * k);
        if (A::CODED && has_low)
            gpu_load_matrices(low, o.chunks + 2 * A::BUFFER_BYTES + at + 2 * k);
        multiply_rows<A>(queries + 2 * (index * A::CHANNELS + k), A::QUERY_PITCH, A::QUERY_BYTES, b,
                         low, has_low, scores);
    }
}

// The block's weights times a chunk of V: rows by this warp's channels.
template <class A>
GPU_FN void add_values(gpu_thread g, const attention_block &o, const u8 *chunk, bool has_low,
                       float (&sums)[A::ROW_TILES][A::TILES][4]) {
    const u32 warp = gpu_tid(g) / 32, lane = gpu_tid(g) % 32;
    const u32 key = A::TILES == 2 ? lane % 16 : lane;
    const u32 at =
        key * A::CHUNK_PITCH + 2 * (warp * 8 * A::TILES + (A::TILES == 2 ? lane / 16 * 8 : 0));
    const u8 *weights = o.weights + lane % 16 * A::WEIGHT_PITCH + lane / 16 * 16;
    GPU_UNROLL
    for (u32 k = 0; k < A::KEYS; k += 16 * A::STEPS) {
        u32 b[4], low[4] = {0, 0, 0, 0};
        gpu_load_matrices_turned(b, chunk + at + k * A::CHUNK_PITCH);
        if (A::CODED && has_low)
            gpu_load_matrices_turned(low, o.chunks + 2 * A::BUFFER_BYTES + at + k * A::CHUNK_PITCH);
        multiply_rows<A>(weights + 2 * k, A::WEIGHT_PITCH, A::WEIGHT_BYTES, b, low, has_low, sums);
    }
}

#endif
#endif
