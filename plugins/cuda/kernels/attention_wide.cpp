// SPDX-License-Identifier: MIT
// Attention of prompts on sm_90a, K and V with up to 256 channels: 128 rows of queries per block,
// of all heads that share one of K and V, by two groups of four warps, each of which has 64 of the
// rows, with both products by wgmma and the softmax taken online in registers. A third group copies
// tiles of keys ahead, and decodes those of types with blocks; K and V of a tile are handed over
// and given back each by itself, so that K is filled anew while V is multiplied. First of all every
// warp looks at the mask: tiles that no row of the block sees are neither copied nor computed.
//
// Keys of a tile lie in an order in which a lane's scores are of four neighbours: it reads their
// mask at once, and each sector of a mask's row is read by one request. Channels are in panels of
// 64, a key's 128 bytes of each behind those of the key before, swizzled: as K they are columns of
// the right operand, as V its rows. Queries are swizzled likewise.
//
// Queries, weights and numbers of types with blocks are two halves each, as in
// attention_tensor.cpp, so that results are nearly those of F32.
#include "attention_rows.h"
#include "gpu_warpgroup.h"
#include "launch/products.h"

#if GPU_HAS_WARPGROUPS

enum { ATTENTION_COPIERS = 128, ATTENTION_CONSUMERS = 256 };

// Of an operand with so many channels, in a tile: bytes of its numbers, after which its lower
// halves come, and of both; bytes between rows with blocks as they arrive, and lanes that copy one.
template <bool CODED, int KEYS, int CHANNELS_> struct wide_operand {
    enum {
        CHANNELS = CHANNELS_,
        LOWER = 2 * KEYS * CHANNELS,
        BYTES = (CODED ? 2 : 1) * LOWER,
        PITCH = ATTENTION_WIDE_CODED_PITCH(CHANNELS),
        LANES = PITCH <= 256 ? 16 : 32,
        CODED_BYTES = CODED ? KEYS * PITCH : 0,
    };
    static_assert(CHANNELS % 64 == 0 && PITCH <= 512, "whole panels, a lane for each 16 bytes");
};

template <int KIND, int K_CHANNELS, int V_CHANNELS, int KEYS_, int STAGES_>
struct wide_attention_tile {
    enum {
        AS_BF16 = KIND == ATTENTION_BF16,
        CODED = KIND == ATTENTION_CODED,
        WARPS = ATTENTION_WIDE_THREADS / 32,
        ROWS = ATTENTION_WIDE_ROWS,
        KEYS = KEYS_,
        STAGES = STAGES_,
        PANEL = KEYS * 128,
        QUERY_UNIT = K_CHANNELS, // all of them
        QUERY_PITCH = 2 * K_CHANNELS,
        QUERY_SWIZZLE = 16,
        QUERY_BYTES = ROWS * QUERY_PITCH, // of the upper halves, then of the lower ones
        STEPS = K_CHANNELS / 16,          // of a product with K
        STEPS_AT_A_TIME = STEPS % 8 == 0 ? 8 : 6,
        V_SUMS = V_CHANNELS / 2,                          // of a thread
        CODED_SETS = KEYS / 8 / (ATTENTION_COPIERS / 32), // of eight keys, that a warp decodes
        // Of a thread: at first and at the end, and of the groups in between.
        REGISTERS = 168,
        COPIER_REGISTERS = CODED ? 88 : 56,
        CONSUMER_REGISTERS = CODED ? 208 : 224,
    };
    typedef wide_operand<CODED != 0, KEYS, K_CHANNELS> k;
    typedef wide_operand<CODED != 0, KEYS, V_CHANNELS> v;
    enum { STAGE = k::BYTES + v::BYTES };
    static_assert(COPIER_REGISTERS + 2 * CONSUMER_REGISTERS <= 3 * REGISTERS, "all that there are");
    static_assert(STEPS % STEPS_AT_A_TIME == 0 && KEYS % 16 == 0, "as products take them");
    static_assert(!CODED || CODED_SETS == 1 || CODED_SETS == 2, "as keys are given to lanes");
    static_assert((KEYS * ATTENTION_WIDE_TILES) % 64 == 0, "as parts of the keys are made");
};

struct wide_attention_block {
    attention_block rows;
    u8 *stages, *coded; // K, then V
    u32 *seen;          // a byte for each tile of the keys, whether any row sees any of it
    u64 *full, *empty;  // of each stage, K and V
    u64 *voted;
    u32 n_tiles;
};

// Where key `key` of a tile lies: scores 8 j + 2 c + e of a lane are of keys 16 (j / 2) + 4 c +
// 2 (j % 2) + e.
GPU_FN u32 wide_place(u32 key) {
    return key / 16 * 16 + key % 4 / 2 * 8 + key % 16 / 4 * 2 + key % 2;
}

// A warp looks at four tiles, one after the other: eight keys are a piece of 16 bytes of a row.
template <class A>
GPU_FN void find_seen_tiles(gpu_thread g, const gpu_args &p, const wide_attention_block &o) {
    const gpu_operand &mask = p.operands[4];
    const u32 warp = gpu_tid(g) / 32, lane = gpu_tid(g) % 32;
    const attention_block &b = o.rows;
    const u64 left = b.n_rows - b.row0 < A::ROWS ? b.n_rows - b.row0 : (u64)A::ROWS;
    const u64 last = attention_at(b, (u32)left - 1).y;
    u32 seen = 0;
    for (u32 tile = 4 * warp; tile < o.n_tiles; tile += tile % 4 == 3 ? 4 * A::WARPS - 3 : 1) {
        const u64 key = b.begin + (u64)tile * A::KEYS + 8 * (lane % 8);
        const bool has_piece = lane % 8 < A::KEYS / 8 && key < b.end;
        float any = mask.data ? 0.0f : 1.0f;
        for (u64 i = attention_at(b, 0).y + lane / 8; i <= last && mask.data && has_piece; i += 4) {
            const gpu_words4 w =
                gpu_load_16(gpu_row(mask, i, 0, b.batch % (u64)mask.ne[3]) + 2 * key);
            // Two halves of -infinity.
            const u32 hidden = 0xfc00fc00u;
            if (w.x != hidden || w.y != hidden || w.z != hidden || w.w != hidden) any = 1.0f;
        }
        for (int m = 16; m > 0; m >>= 1)
            any = gpu_larger(any, gpu_shfl_xor(any, m));
        seen = (tile % 4 == 0 ? 0 : seen) | (any != 0.0f ? 1u : 0u) << (8 * (tile % 4));
        if (lane == 0 && (tile % 4 == 3 || tile + 1 == o.n_tiles)) o.seen[tile / 4] = seen;
    }
}

// The first tile from `tile` on that any row sees, or n_tiles.
GPU_FN u32 next_seen(const wide_attention_block &o, u32 tile) {
    while (tile < o.n_tiles && !(o.seen[tile / 4] >> (8 * (tile % 4)) & 1))
        ++tile;
    return tile;
}

// Tile n of those that are seen: its stage, and the number of K's barriers, before V's.
template <class A> GPU_FN u32 wide_slot(u32 n) {
    return 2 * (n % A::STAGES);
}
template <class A> GPU_FN u8 *wide_stage(const wide_attention_block &o, u32 n) {
    return o.stages + n % A::STAGES * A::STAGE;
}
// A copier waits until an operand of the tile before there is no longer needed.
// Use u = n / STAGES of a stage waits for the end of phase u - 1, whose parity is that of u + 1;
// the first use waits for nothing.
template <class A> GPU_FN void wait_for_place(const wide_attention_block &o, u32 slot, u32 n) {
    if (n >= A::STAGES) gpu_barrier_wait(&o.empty[slot], (n / A::STAGES + 1) & 1);
}

// Begins to copy a tile of K or V, zeros behind the last key and the last channel.
template <class A, class X>
GPU_FN void copy_wide_tile(u32 t, const gpu_args &p, const attention_block &b, u32 operand,
                           u64 first, u8 *to) {
    const gpu_operand &x = p.operands[operand];
    const u8 *rows = gpu_row(x, 0, b.kv_head, b.batch);
    for (u32 i = t; i < A::KEYS * X::CHANNELS / 8; i += ATTENTION_COPIERS) {
        const u32 r = i / (X::CHANNELS / 8), piece = i % (X::CHANNELS / 8), place = wide_place(r);
        const bool used = first + r < b.end && 8 * piece < (u64)x.ne[0];
        gpu_copy_16(to + piece / 8 * A::PANEL + place * 128 + 16 * (piece % 8 ^ place % 8),
                    used ? rows + (i64)(first + r) * x.nb[1] + 16 * piece : rows, used ? 16u : 0u);
    }
}

// The group that copies. What it has written is there for the products after the fence.
GPU_FN void hand_over(u64 *full) {
    gpu_fence_async();
    gpu_barrier_arrive(full);
}
// Operands are handed over A::STAGES of them behind the one that begins to be copied.
template <class A> GPU_FN void hand_over_copied(const wide_attention_block &o, u32 n) {
    gpu_copy_group();
    gpu_copy_wait<A::STAGES>();
    if (n >= A::STAGES) hand_over(&o.full[(n - A::STAGES) % (2 * A::STAGES)]);
}
template <class A>
GPU_FN void copy_wide_tiles(gpu_thread g, const gpu_args &p, const wide_attention_block &o) {
    const u32 t = gpu_tid(g) - ATTENTION_CONSUMERS;
    u32 n = 0;
    for (u32 tile = next_seen(o, 0); tile < o.n_tiles; tile = next_seen(o, tile + 1)) {
        const u32 slot = wide_slot<A>(n);
        const u64 first = o.rows.begin + (u64)tile * A::KEYS;
        u8 *to = wide_stage<A>(o, n);
        wait_for_place<A>(o, slot, n);
        copy_wide_tile<A, typename A::k>(t, p, o.rows, ATTENTION_K, first, to);
        hand_over_copied<A>(o, 2 * n);
        wait_for_place<A>(o, slot + 1, n);
        copy_wide_tile<A, typename A::v>(t, p, o.rows, ATTENTION_V, first, to + A::k::BYTES);
        hand_over_copied<A>(o, 2 * n + 1);
        ++n;
    }
    gpu_copy_wait<0>();
    for (u32 i = 2 * n < A::STAGES ? 0 : 2 * n - A::STAGES; i < 2 * n; ++i)
        hand_over(&o.full[i % (2 * A::STAGES)]);
}

// --- types with blocks ---------------------------------------------------------------------------

// Key i of set `set` of eight. They are apart both as they arrive and, each second of them, as they
// are stored: those are in different banks.
GPU_FN u32 key_of_set(u32 set, u32 i) {
    return set / 2 * 16 + i / 2 * 4 + ((i / 2 & 2) ^ set % 2 * 2) + i % 2;
}

// A warp copies and decodes the same keys of each tile, so that its lanes wait for no other.
template <class A, class X>
GPU_FN void copy_coded_keys(u32 t, const gpu_operand &x, const attention_block &b, u64 first,
                            u8 *to) {
    const u32 bytes = (u32)x.ne[0] / 32 * gpu_block_bytes(x.type);
    for (u32 i = t % 32 / X::LANES; i < 8 * A::CODED_SETS; i += 32 / X::LANES) {
        const u32 key = key_of_set(t / 32 * A::CODED_SETS + i / 8, i % 8);
        if (first + key < b.end)
            copy_coded_rows<X::LANES, X::PITCH>(t % X::LANES, X::LANES, x,
                                                gpu_row(x, first + key, b.kv_head, b.batch), 1, 0,
                                                bytes, to + key * X::PITCH);
    }
}

// Eight keys and 32 channels at a time: four lanes have 4 channels of a key each, and those 16
// further on, whose bits are in the same bytes.
template <class A, class X, int TYPE>
GPU_FN void decode_keys(u32 t, const gpu_operand &x, const attention_block &b, u64 first,
                        const u8 *from, u8 *to) {
    const u32 c = t % 4, i = t / 4 % 4 * 2 + t / 16 % 2;
    const u64 rows = (u64)gpu_row(x, first, b.kv_head, b.batch);
    for (u32 set = 0; set < A::CODED_SETS; ++set) {
        const u32 key = key_of_set(t / 32 * A::CODED_SETS + set, i);
        const u32 place = wide_place(key), piece = 16 * (c / 2 ^ place % 8);
        const u32 n_blocks = first + key < b.end ? (u32)x.ne[0] / 32 : 0;
        const u8 *row = from + key * X::PITCH + (rows + key * (u64)x.nb[1]) % SECTOR;
        u8 *stored = to + place * 128 + 8 * (c % 2);
        GPU_UNROLL
        for (u32 block = 0; block < X::CHANNELS / 32; ++block) {
            // Zeros behind the last key and the last block.
            u32 high[2][2] = {{0, 0}, {0, 0}}, low[2][2] = {{0, 0}, {0, 0}};
            GPU_UNROLL
            for (u32 h = 0; h < 2 && block < n_blocks; ++h)
                split_four<A>(
                    TYPE, gpu_four_small(TYPE, row + block * gpu_block_bytes(TYPE), 16 * h + 4 * c),
                    high[h], low[h]);
            GPU_UNROLL
            for (u32 h = 0; h < 2; ++h) {
                u8 *at = stored + block / 2 * A::PANEL + (piece ^ (block % 2 * 64 + 32 * h));
                gpu_store_8(at, {high[h][0], high[h][1]});
                gpu_store_8(at + X::LOWER, {low[h][0], low[h][1]});
            }
        }
    }
}
template <class A, class X>
GPU_FN void decode_coded_keys(u32 t, const gpu_operand &x, const attention_block &b, u64 first,
                              const u8 *from, u8 *to) {
    switch (x.type) {
#define DECODE_TYPE(name)                                                                          \
    case TYPE_##name: decode_keys<A, X, TYPE_##name>(t, x, b, first, from, to); break;
        ATTENTION_CODED_TYPES(DECODE_TYPE)
#undef DECODE_TYPE
    }
}

// Before the first tile: of an operand with blocks it begins to arrive; of one of F16 the lower
// halves are cleared, in all stages.
template <class A, class X>
GPU_FN void begin_coded_operand(u32 t, const gpu_operand &x, const wide_attention_block &o,
                                u32 tile, u8 *coded, u8 *to) {
    if (x.type != TYPE_F16) {
        if (tile < o.n_tiles)
            copy_coded_keys<A, X>(t, x, o.rows, o.rows.begin + (u64)tile * A::KEYS, coded);
    } else {
        for (u32 i = 8 * t; i < A::STAGES * X::LOWER; i += 8 * ATTENTION_COPIERS)
            gpu_store_8(to + i / X::LOWER * A::STAGE + X::LOWER + i % X::LOWER, {0, 0});
    }
    gpu_copy_group();
}

// An operand of tile n of those that are seen, and what arrives next of it, of tile `next`. Copies
// are a group for each operand.
template <class A, class X>
GPU_FN void decode_operand(gpu_thread g, const gpu_args &p, const wide_attention_block &o,
                           u32 operand, u32 tile, u32 next, u8 *coded, u8 *to) {
    const u32 t = gpu_tid(g) - ATTENTION_CONSUMERS;
    const gpu_operand &x = p.operands[operand];
    const u64 first = o.rows.begin + (u64)tile * A::KEYS;
    if (x.type == TYPE_F16) {
        copy_wide_tile<A, X>(t, p, o.rows, operand, first, to);
        gpu_copy_group();
        gpu_copy_wait<0>();
        return;
    }
    gpu_copy_wait<1>();
    gpu_sync_warp(g);
    decode_coded_keys<A, X>(t, x, o.rows, first, coded, to);
    gpu_sync_warp(g);
    if (next < o.n_tiles)
        copy_coded_keys<A, X>(t, x, o.rows, o.rows.begin + (u64)next * A::KEYS, coded);
    gpu_copy_group();
}

// The group that copies, where K or V has blocks: what arrives is decoded into the stage while the
// other operand is on its way. An operand of F16 goes to the stage at once.
template <class A>
GPU_FN void decode_wide_tiles(gpu_thread g, const gpu_args &p, const wide_attention_block &o) {
    const u32 t = gpu_tid(g) - ATTENTION_CONSUMERS;
    u8 *coded_k = o.coded, *coded_v = o.coded + A::k::CODED_BYTES;
    u32 tile = next_seen(o, 0);
    begin_coded_operand<A, typename A::k>(t, p.operands[ATTENTION_K], o, tile, coded_k, o.stages);
    begin_coded_operand<A, typename A::v>(t, p.operands[ATTENTION_V], o, tile, coded_v,
                                          o.stages + A::k::BYTES);
    for (u32 n = 0; tile < o.n_tiles; ++n) {
        const u32 slot = wide_slot<A>(n), next = next_seen(o, tile + 1);
        u8 *to = wide_stage<A>(o, n);
        wait_for_place<A>(o, slot, n);
        decode_operand<A, typename A::k>(g, p, o, ATTENTION_K, tile, next, coded_k, to);
        hand_over(&o.full[slot]);
        wait_for_place<A>(o, slot + 1, n);
        decode_operand<A, typename A::v>(g, p, o, ATTENTION_V, tile, next, coded_v,
                                         to + A::k::BYTES);
        hand_over(&o.full[slot + 1]);
        tile = next;
    }
    gpu_copy_wait<0>();
}

// --- products ------------------------------------------------------------------------------------

// What a lane keeps of its rows: lane / 4 and that + 8 of its warp's 16.
template <class A> struct wide_attention_state {
    float scale[2], slope[2], largest[2], weight[2];
    const u8 *mask[2]; // 0: there is none
    float sums[A::V_SUMS];
};

// Scores of a tile: 64 rows by all keys, by the upper halves of queries, with blocks also times the
// lower halves of keys, and by the lower ones; a few steps at a time, for which there are
// registers.
template <class A>
GPU_FN void wide_scores(const u8 *row, u32 piece, u64 operand, float (&scores)[A::KEYS / 2]) {
    enum { PARTS = A::STEPS / A::STEPS_AT_A_TIME };
    GPU_UNROLL
    for (u32 i = 0; i < A::KEYS / 2; ++i)
        scores[i] = 0.0f;
    gpu_opaque(piece); // else addresses of all steps are kept in registers across the tiles
    GPU_UNROLL
    for (u32 part = 0; part < 2 * PARTS; ++part) {
        const bool is_upper = part < PARTS;
        u32 a[A::STEPS_AT_A_TIME][4];
        GPU_UNROLL
        for (u32 i = 0; i < A::STEPS_AT_A_TIME; ++i) {
            const u32 k = part % PARTS * A::STEPS_AT_A_TIME + i;
            gpu_load_matrices(a[i], row + (piece ^ k % 4 * 32) +
                                        (part / PARTS * A::QUERY_BYTES + k / 4 * 128));
        }
        gpu_wgmma_begin();
        GPU_UNROLL
        for (u32 i = 0; i < A::STEPS_AT_A_TIME; ++i) {
            const u32 k = part % PARTS * A::STEPS_AT_A_TIME + i;
            const u64 keys = operand + k / 4 * (A::PANEL / 16) + k % 4 * 2;
            gpu_wgmma<A::KEYS, A::AS_BF16 != 0>(scores, a[i], keys);
            if (A::CODED && is_upper)
                gpu_wgmma<A::KEYS, false>(scores, a[i], keys + A::k::LOWER / 16);
        }
        gpu_wgmma_commit();
        gpu_wgmma_finish(scores);
    }
}

// From products to scores with the mask, to weights; what was added up before is scaled to the new
// largest score.
template <class A>
GPU_FN void wide_weights(const gpu_args &p, u32 first, u32 end, float (&scores)[A::KEYS / 2],
                         wide_attention_state<A> &s) {
    const float softcap = gpu_param(p, 2);
    GPU_UNROLL
    for (u32 h = 0; h < 2; ++h) {
        float largest = s.largest[h];
        GPU_UNROLL
        for (u32 t = 0; t < A::KEYS / 16; ++t) {
            const u32 key = first + 16 * t;
            // Four neighbouring keys, in the order of wide_place(): eight bytes of the mask.
            gpu_words2 words = {0, 0};
            if (s.mask[h] && key < end) words = gpu_load_8(s.mask[h] + 2 * (u64)key);
            GPU_UNROLL
            for (u32 i = 0; i < 4; ++i) {
                float &x = scores[4 * (2 * t + i / 2) + 2 * h + i % 2];
                const float bias =
                    gpu_f16_to_f32((u16)((i < 2 ? words.x : words.y) >> (16 * (i % 2))));
                x *= s.scale[h];
                if (softcap != 0.0f) x = softcap * gpu_tanh(x / softcap);
                if (s.mask[h]) x += s.slope[h] * bias;
                if (key + i >= end || bias == -GPU_INFINITY) x = -GPU_INFINITY;
                largest = gpu_larger(largest, x);
            }
        }
        // Four lanes have the row.
        largest = gpu_larger(largest, gpu_shfl_xor(largest, 1));
        largest = gpu_larger(largest, gpu_shfl_xor(largest, 2));
        const float factor = s.largest[h] == largest ? 1.0f : gpu_exp(s.largest[h] - largest);
        float sum = 0.0f;
        GPU_UNROLL
        for (u32 i = 0; i < A::KEYS / 4; ++i) {
            float &x = scores[4 * (i / 2) + 2 * h + i % 2];
            x = x == -GPU_INFINITY ? 0.0f : gpu_exp(x - largest);
            sum += x;
        }
        s.largest[h] = largest;
        s.weight[h] = s.weight[h] * factor + sum;
        GPU_UNROLL
        for (u32 i = 0; i < A::V_SUMS / 2; ++i)
            s.sums[4 * (i / 2) + 2 * h + i % 2] *= factor;
    }
}

// Weights, two halves each, times V; with blocks the upper ones times the lower halves of V, too.
template <class A>
GPU_FN void wide_values(u64 operand, float (&weights)[A::KEYS / 2], wide_attention_state<A> &s) {
    enum { N = A::v::CHANNELS };
    u32 high[A::KEYS / 16][4], low[A::KEYS / 16][4];
    GPU_UNROLL
    for (u32 i = 0; i < A::KEYS / 4; ++i)
        split_pair<A>(weights[2 * i], weights[2 * i + 1], &high[i / 4][i % 4], &low[i / 4][i % 4]);
    gpu_wgmma_begin();
    GPU_UNROLL
    for (u32 k = 0; k < A::KEYS / 16; ++k) {
        gpu_wgmma_turned<N, A::AS_BF16 != 0>(s.sums, high[k], operand + 128 * k);
        gpu_wgmma_turned<N, A::AS_BF16 != 0>(s.sums, low[k], operand + 128 * k);
        if (A::CODED)
            gpu_wgmma_turned<N, false>(s.sums, high[k], operand + A::v::LOWER / 16 + 128 * k);
    }
    gpu_wgmma_commit();
    gpu_wgmma_finish(s.sums);
}

template <class A>
GPU_FN void attend_widely(gpu_thread g, const gpu_args &p, const wide_attention_block &o,
                          wide_attention_state<A> &s) {
    const u32 warp = gpu_tid(g) / 32, lane = gpu_tid(g) % 32;
    const u8 *row = o.rows.queries + (16 * warp + lane % 16) * A::QUERY_PITCH;
    const u32 piece = A::QUERY_SWIZZLE * (lane / 16 ^ lane % 8);
    u32 n = 0;
    for (u32 tile = next_seen(o, 0); tile < o.n_tiles; tile = next_seen(o, tile + 1)) {
        const u32 slot = wide_slot<A>(n), parity = (n / A::STAGES) & 1;
        const u8 *stage = wide_stage<A>(o, n);
        float scores[A::KEYS / 2];
        // A warp gives K back before it weighs: the copiers fill it meanwhile, and during the
        // product with V.
        gpu_barrier_wait(&o.full[slot], parity);
        wide_scores<A>(row, piece, gpu_wgmma_operand(stage), scores);
        if (lane == 0) gpu_barrier_arrive(&o.empty[slot]);
        wide_weights<A>(p, tile * A::KEYS + 4 * (lane % 4), (u32)(o.rows.end - o.rows.begin),
                        scores, s);
        gpu_barrier_wait(&o.full[slot + 1], parity);
        wide_values<A>(gpu_wgmma_operand_turned(stage + A::k::BYTES, A::PANEL), scores, s);
        if (lane == 0) gpu_barrier_arrive(&o.empty[slot + 1]);
        ++n;
    }
}

// Of a lane's rows: how their scores are scaled, and their masks. Rows that are not there see
// nothing.
template <class A>
GPU_FN void begin_wide_rows(gpu_thread g, const gpu_args &p, const wide_attention_block &o,
                            wide_attention_state<A> &s) {
    const gpu_operand &mask = p.operands[4];
    const attention_block &b = o.rows;
    GPU_UNROLL
    for (u32 h = 0; h < 2; ++h) {
        const u32 row = gpu_tid(g) / 32 * 16 + gpu_tid(g) % 32 / 4 + 8 * h;
        const gpu_at at = attention_at(b, b.row0 + row < b.n_rows ? row : 0);
        s.scale[h] = b.scales[row];
        s.slope[h] = b.slopes[row];
        s.mask[h] = mask.data ? gpu_row(mask, at.y, 0, b.batch % (u64)mask.ne[3]) + 2 * b.begin : 0;
        s.largest[h] = -GPU_INFINITY;
        s.weight[h] = 0.0f;
    }
    GPU_UNROLL
    for (u32 i = 0; i < A::V_SUMS; ++i)
        s.sums[i] = 0.0f;
}

// Adds up the weights of the lanes of a row. 0 where every number of the warp is finite, else not
// a number.
template <class A> GPU_FN float finish_wide_rows(wide_attention_state<A> &s) {
    float nothing = 0.0f;
    GPU_UNROLL
    for (u32 h = 0; h < 2; ++h) {
        s.weight[h] += gpu_shfl_xor(s.weight[h], 1);
        s.weight[h] += gpu_shfl_xor(s.weight[h], 2);
        // 0 unless it is infinite or not a number.
        nothing += s.weight[h] - s.weight[h];
    }
    GPU_UNROLL
    for (u32 i = 0; i < A::V_SUMS; ++i)
        nothing += s.sums[i] - s.sums[i];
    for (int m = 16; m > 0; m >>= 1)
        nothing += gpu_shfl_xor(nothing, m);
    return nothing;
}

template <class A>
GPU_FN void store_wide_rows(gpu_thread g, const gpu_args &p, const wide_attention_block &o,
                            const wide_attention_state<A> &s) {
    const u32 c = gpu_tid(g) % 4;
    GPU_UNROLL
    for (u32 h = 0; h < 2; ++h) {
        const u32 row = gpu_tid(g) / 32 * 16 + gpu_tid(g) % 32 / 4 + 8 * h;
        if (o.rows.row0 + row >= o.rows.n_rows) continue;
        float factor;
        float *to =
            find_result(p, attention_at(o.rows, row), {s.largest[h], s.weight[h]}, c == 0, &factor);
        GPU_UNROLL
        for (u32 j = 0; j < A::V_SUMS / 4; ++j) {
            const float *pair = &s.sums[4 * j + 2 * h];
            if (8 * j + 2 * c < p.operands[0].ne[0]) // an even number
                gpu_store_8(to + 8 * j + 2 * c,
                            {gpu_bits(pair[0] * factor), gpu_bits(pair[1] * factor)});
        }
    }
}

template <class A> GPU_FN void begin_wide_block(gpu_thread g, u8 *memory, wide_attention_block &o) {
    o.n_tiles = (u32)((o.rows.end - o.rows.begin + A::KEYS - 1) / A::KEYS);
    o.stages = memory;
    o.rows.queries = memory + A::STAGES * A::STAGE;
    o.coded = o.rows.queries + 2 * A::QUERY_BYTES;
    o.rows.scales = (float *)(o.coded + A::k::CODED_BYTES + A::v::CODED_BYTES);
    o.rows.slopes = o.rows.scales + A::ROWS;
    o.rows.votes = o.rows.slopes + A::ROWS;
    o.full = (u64 *)(o.rows.votes + 16);
    o.empty = o.full + 2 * A::STAGES;
    o.voted = o.empty + 2 * A::STAGES;
    o.seen = (u32 *)(o.full + 16);
    static_assert(4 * A::STAGES < 16, "as launches have it");
    if (gpu_tid(g) != 0) return;
    gpu_barrier_init(o.voted, ATTENTION_CONSUMERS / 32);
    for (u32 i = 0; i < 2 * A::STAGES; ++i) {
        gpu_barrier_init(&o.full[i], ATTENTION_COPIERS);
        gpu_barrier_init(&o.empty[i], ATTENTION_CONSUMERS / 32);
    }
    gpu_barrier_publish();
}

// 0 where every number of the block is finite, else not a number.
GPU_FN float wide_votes(const wide_attention_block &o) {
    float nothing = 0.0f;
    for (u32 w = 0; w < ATTENTION_CONSUMERS / 32; ++w)
        nothing += o.rows.votes[w];
    return nothing;
}

// What the groups that multiply do, with the registers that the copiers gave them: sums are stored
// before these are given back.
template <class A>
GPU_FN void multiply_wide_tiles(gpu_thread g, const gpu_args &p, const wide_attention_block &o) {
    wide_attention_state<A> s;
    begin_wide_rows<A>(g, p, o, s);
    attend_widely<A>(g, p, o, s);
    const float nothing = finish_wide_rows<A>(s);
    if (gpu_tid(g) % 32 == 0) {
        o.rows.votes[gpu_tid(g) / 32] = nothing;
        gpu_barrier_arrive(o.voted);
    }
    // Both groups' votes count, since a block is computed plainly as a whole.
    gpu_barrier_wait(o.voted, 0);
    if (wide_votes(o) == 0.0f) store_wide_rows<A>(g, p, o, s);
}

// With something in it that is not finite. What it needs is not kept in registers until then.
GPU_FAR void attend_block_plainly(const gpu_args &p, float *memory) {
    attention_block o;
    find_block(gpu_thread(), p, ATTENTION_WIDE_ROWS, o);
    for (u32 row = 0; row < ATTENTION_WIDE_ROWS && o.row0 + row < o.n_rows; ++row) {
        const gpu_at at = attention_at(o, row);
        attend_plainly(p, at.y, at.z, at.w, o.begin, o.end, memory);
    }
}

// Blocks: as find_block.
template <class A> GPU_FN void wide_attention(gpu_thread g, const gpu_args &p, u8 *memory) {
    wide_attention_block o;
    const bool is_consumer = gpu_tid(g) < ATTENTION_CONSUMERS;
    find_block(g, p, A::ROWS, o.rows);
    begin_wide_block<A>(g, memory, o);
    load_queries<A>(g, p, o.rows);
    find_seen_tiles<A>(g, p, o);
    gpu_sync(g);
    // Registers move within the block: raising waits until the copiers have given theirs up, and
    // all have the same number again at the end, as the block began.
    if (is_consumer) {
        gpu_registers_more<A::CONSUMER_REGISTERS>();
        multiply_wide_tiles<A>(g, p, o);
        gpu_registers_fewer<A::REGISTERS>();
    } else {
        gpu_registers_fewer<A::COPIER_REGISTERS>();
        if (A::CODED)
            decode_wide_tiles<A>(g, p, o);
        else
            copy_wide_tiles<A>(g, p, o);
        gpu_registers_more<A::REGISTERS>();
    }
    gpu_sync(g);
    if (wide_votes(o) == 0.0f) return;
    attend_block_plainly(p, (float *)o.rows.queries);
}

#define WIDE_ATTENTION_BODY(kind, ...)                                                             \
    GPU_THREAD(g);                                                                                 \
    GPU_SHARED_LARGE(u8, memory, ATTENTION_WIDE_SHARED(kind == ATTENTION_CODED, __VA_ARGS__));     \
    wide_attention<wide_attention_tile<kind, __VA_ARGS__>>(g, p, memory);
#else
#define WIDE_ATTENTION_BODY(kind, ...) (void)p;
#endif

#define WIDE_ATTENTION_KERNEL(name, ...)                                                           \
    GPU_KERNEL_FOR(kernel_attention_wide_##name, ATTENTION_WIDE_THREADS, 1, gpu_args, p) {         \
        WIDE_ATTENTION_BODY(__VA_ARGS__)                                                           \
    }
#define WIDE_ATTENTION_FORM(channels, n_v, keys, stages, coded_keys, coded_stages)                 \
    WIDE_ATTENTION_KERNEL(channels##_F16, ATTENTION_F16, channels, n_v, keys, stages)              \
    WIDE_ATTENTION_KERNEL(channels##_BF16, ATTENTION_BF16, channels, n_v, keys, stages)            \
    WIDE_ATTENTION_KERNEL(channels##_coded, ATTENTION_CODED, channels, n_v, coded_keys,            \
                          coded_stages)
ATTENTION_WIDE_FORMS(WIDE_ATTENTION_FORM)
