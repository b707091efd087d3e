// SPDX-License-Identifier: MIT
// Attention of prompts on sm_90a, K and V with up to 128 channels: 128 rows of queries per block,
// of all heads that share one of K and V, by two groups of four warps, each of which has 64 of the
// rows, with both products by wgmma and the softmax taken online in registers. A third group copies
// tiles of 64 keys, several ahead, and decodes those of types with blocks. First of all every warp
// looks at the mask: tiles that no row of the block sees are neither copied nor computed.
//
// Keys of a tile lie in an order in which a lane's scores are of four neighbours: it reads their
// mask at once, and each sector of a mask's row is read by one request. Channels are in two panels
// of 64, a key's 128 bytes of each behind those of the key before, swizzled: as K they are columns
// of the right operand, as V its rows.
//
// Queries, weights and numbers of types with blocks are two halves each, as in
// attention_tensor.cpp, so that results are nearly those of F32.
#include "attention_rows.h"
#include "gpu_warpgroup.h"
#include "launch/products.h"

#if GPU_HAS_WARPGROUPS

enum { ATTENTION_COPIERS = 128, ATTENTION_CONSUMERS = 256 };

template <int KIND> struct wide_attention_tile {
    enum {
        AS_BF16 = KIND == ATTENTION_BF16,
        CODED = KIND == ATTENTION_CODED,
        WARPS = ATTENTION_WIDE_THREADS / 32,
        ROWS = ATTENTION_WIDE_ROWS,
        KEYS = ATTENTION_WIDE_KEYS,
        QUERY_UNIT = 128, // all channels
        QUERY_PITCH = ATTENTION_WIDE_PITCH,
        QUERY_BYTES = ROWS * QUERY_PITCH, // of the upper halves, then of the lower ones
        PANEL = KEYS * 128,
        LOWER = 2 * PANEL,                 // from numbers to their lower halves
        OPERAND = (CODED ? 4 : 2) * PANEL, // K, then V
        STAGE = 2 * OPERAND,
        STAGES = ATTENTION_WIDE_STAGES(CODED),
        CODED_PITCH = ATTENTION_WIDE_CODED_PITCH,
        WARP_KEYS = KEYS / (ATTENTION_COPIERS / 32),  // that a warp copies and decodes
        CODED_BYTES = CODED ? KEYS * CODED_PITCH : 0, // of an operand as it arrives
    };
    static_assert(WARP_KEYS == 16, "as keys are given to lanes");
};

struct wide_attention_block {
    attention_block rows;
    u8 *stages, *coded; // coded: K, then V
    u32 *seen;          // by tile of the keys, whether any row sees any of it
    u64 *full, *empty;
    u32 n_tiles;
};

// Where key `key` of a tile lies: scores 8 j + 2 c + e of a lane are of keys 16 (j / 2) + 4 c +
// 2 (j % 2) + e.
GPU_FN u32 wide_place(u32 key) {
    return key / 16 * 16 + key % 4 / 2 * 8 + key % 16 / 4 * 2 + key % 2;
}

// A warp looks at a tile: 64 keys are 8 pieces of 16 bytes of a row.
template <class A>
GPU_FN void find_seen_tiles(gpu_thread g, const gpu_args &p, const wide_attention_block &o) {
    const gpu_operand &mask = p.operands[4];
    const u32 warp = gpu_tid(g) / 32, lane = gpu_tid(g) % 32;
    const attention_block &b = o.rows;
    const u64 left = b.n_rows - b.row0 < A::ROWS ? b.n_rows - b.row0 : (u64)A::ROWS;
    const u64 last = attention_at(b, (u32)left - 1).y;
    for (u32 tile = warp; tile < o.n_tiles; tile += A::WARPS) {
        const u64 key = b.begin + (u64)tile * A::KEYS + 8 * (lane % 8);
        float any = mask.data ? 0.0f : 1.0f;
        for (u64 i = attention_at(b, 0).y + lane / 8; i <= last && mask.data && key < b.end;
             i += 4) {
            const gpu_words4 w =
                gpu_load_16(gpu_row(mask, i, 0, b.batch % (u64)mask.ne[3]) + 2 * key);
            const u32 hidden = 0xfc00fc00u;
            if (w.x != hidden || w.y != hidden || w.z != hidden || w.w != hidden) any = 1.0f;
        }
        for (int m = 16; m > 0; m >>= 1)
            any = gpu_larger(any, gpu_shfl_xor(any, m));
        if (lane == 0) o.seen[tile] = any != 0.0f;
    }
}

GPU_FN u32 next_seen(const wide_attention_block &o, u32 tile) {
    while (tile < o.n_tiles && !o.seen[tile])
        ++tile;
    return tile;
}

// Begins to copy a tile of K or V, zeros behind the last key and the last channel.
template <class A>
GPU_FN void copy_wide_tile(u32 t, const gpu_args &p, const attention_block &b, u32 operand,
                           u64 first, u8 *to) {
    const gpu_operand &x = p.operands[operand];
    const u8 *rows = gpu_row(x, 0, b.kv_head, b.batch);
    const u32 piece = t % 16, panel = piece / 8;
    const bool has_channels = 8 * piece < (u64)x.ne[0];
    for (u32 r = t / 16; r < A::KEYS; r += ATTENTION_COPIERS / 16) {
        const bool used = first + r < b.end && has_channels;
        const u32 place = wide_place(r);
        gpu_copy_16(to + panel * A::PANEL + place * 128 + 16 * (piece % 8 ^ place % 8),
                    used ? rows + (i64)(first + r) * x.nb[1] + 16 * piece : rows, used ? 16u : 0u);
    }
}

// The group that copies. What it has written is there for the products after the fence.
GPU_FN void hand_over(u64 *full) {
    gpu_fence_async();
    gpu_barrier_arrive(full);
}
template <class A>
GPU_FN void copy_wide_tiles(gpu_thread g, const gpu_args &p, const wide_attention_block &o) {
    const u32 t = gpu_tid(g) - ATTENTION_CONSUMERS;
    u32 n = 0;
    for (u32 tile = 0; tile < o.n_tiles; ++tile) {
        if (!o.seen[tile]) continue;
        const u32 stage = n % A::STAGES;
        const u64 first = o.rows.begin + (u64)tile * A::KEYS;
        u8 *to = o.stages + stage * A::STAGE;
        if (n >= A::STAGES) gpu_barrier_wait(&o.empty[stage], (n / A::STAGES + 1) & 1);
        copy_wide_tile<A>(t, p, o.rows, ATTENTION_K, first, to);
        copy_wide_tile<A>(t, p, o.rows, ATTENTION_V, first, to + A::OPERAND);
        gpu_copy_group();
        gpu_copy_wait<1>();
        if (n > 0) hand_over(&o.full[(n - 1) % A::STAGES]);
        ++n;
    }
    gpu_copy_wait<0>();
    if (n > 0) hand_over(&o.full[(n - 1) % A::STAGES]);
}

// --- types with blocks ---------------------------------------------------------------------------

// A warp copies and decodes the same 16 keys of each tile, so that its lanes wait for no other.
template <class A>
GPU_FN void copy_coded_keys(u32 t, const gpu_operand &x, const attention_block &b, u64 first,
                            u8 *to) {
    const u64 own = first + t / 32 * A::WARP_KEYS;
    const u32 n = own >= b.end                 ? 0
                  : b.end - own < A::WARP_KEYS ? (u32)(b.end - own)
                                               : (u32)A::WARP_KEYS;
    copy_coded_rows<16, A::CODED_PITCH>(t % 32, 32, x, gpu_row(x, own, b.kv_head, b.batch), n, 0,
                                        (u32)x.ne[0] / 32 * gpu_block_bytes(x.type),
                                        to + t / 32 * A::WARP_KEYS * A::CODED_PITCH);
}

// Eight keys and 32 channels at a time: four lanes have 4 channels of a key each, and those 16
// further on, whose bits are in the same bytes. The eight keys are apart both as they arrive and,
// of 16 lanes at a time, as they are stored: those are in different banks.
template <class A, int TYPE>
GPU_FN void decode_keys(u32 t, const gpu_operand &x, const attention_block &b, u64 first,
                        const u8 *from, u8 *to) {
    const u32 c = t % 4, i = t / 4 % 4;
    const u64 rows = (u64)gpu_row(x, first, b.kv_head, b.batch);
    for (u32 turn = 0; turn < 2; ++turn) {
        const u32 key = t / 32 * A::WARP_KEYS + 4 * i + (i ^ (2 * turn + t / 16 % 2));
        const u32 place = wide_place(key), piece = 16 * (c / 2 ^ place % 8);
        const u32 n_blocks = first + key < b.end ? (u32)x.ne[0] / 32 : 0;
        const u8 *row = from + key * A::CODED_PITCH + (rows + key * (u64)x.nb[1]) % SECTOR;
        u8 *stored = to + place * 128 + 8 * (c % 2);
        GPU_UNROLL
        for (u32 block = 0; block < 4; ++block) {
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
                gpu_store_8(at + A::LOWER, {low[h][0], low[h][1]});
            }
        }
    }
}
template <class A>
GPU_FN void decode_coded_keys(u32 t, const gpu_operand &x, const attention_block &b, u64 first,
                              const u8 *from, u8 *to) {
    switch (x.type) {
#define DECODE_TYPE(name)                                                                          \
    case TYPE_##name: decode_keys<A, TYPE_##name>(t, x, b, first, from, to); break;
        ATTENTION_CODED_TYPES(DECODE_TYPE)
#undef DECODE_TYPE
    }
}

// The lower halves of an operand of F16, in all stages.
template <class A> GPU_FN void clear_lower_halves(u32 t, u8 *to) {
    for (u32 i = 8 * t; i < A::STAGES * 2 * A::PANEL; i += 8 * ATTENTION_COPIERS)
        gpu_store_8(to + i / (2 * A::PANEL) * A::STAGE + A::LOWER + i % (2 * A::PANEL), {0, 0});
}

// The group that copies, where K or V has blocks: what arrives is decoded into the stage while the
// next tile of the other operand is on its way. An operand of F16 goes to the stage at once. Each
// tile has three groups of copies: such operands, K with blocks, V with blocks.
template <class A>
GPU_FN void decode_wide_tiles(gpu_thread g, const gpu_args &p, const wide_attention_block &o) {
    const u32 t = gpu_tid(g) - ATTENTION_CONSUMERS;
    u32 tile = next_seen(o, 0);
    for (u32 i = 0; i < 2; ++i) {
        const gpu_operand &x = p.operands[ATTENTION_K + i];
        if (x.type == TYPE_F16)
            clear_lower_halves<A>(t, o.stages + i * A::OPERAND);
        else if (tile < o.n_tiles)
            copy_coded_keys<A>(t, x, o.rows, o.rows.begin + (u64)tile * A::KEYS,
                               o.coded + i * A::CODED_BYTES);
        gpu_copy_group();
    }
    for (u32 n = 0; tile < o.n_tiles; ++n) {
        const u32 stage = n % A::STAGES, next = next_seen(o, tile + 1);
        const u64 first = o.rows.begin + (u64)tile * A::KEYS,
                  after = o.rows.begin + (u64)next * A::KEYS;
        u8 *to = o.stages + stage * A::STAGE;
        if (n >= A::STAGES) gpu_barrier_wait(&o.empty[stage], (n / A::STAGES + 1) & 1);
        for (u32 i = 0; i < 2; ++i) {
            if (p.operands[ATTENTION_K + i].type == TYPE_F16)
                copy_wide_tile<A>(t, p, o.rows, ATTENTION_K + i, first, to + i * A::OPERAND);
        }
        gpu_copy_group();
        for (u32 i = 0; i < 2; ++i) {
            const gpu_operand &x = p.operands[ATTENTION_K + i];
            u8 *coded = o.coded + i * A::CODED_BYTES;
            gpu_copy_wait<2>();
            if (x.type != TYPE_F16) {
                gpu_sync_warp(g);
                decode_coded_keys<A>(t, x, o.rows, first, coded, to + i * A::OPERAND);
                gpu_sync_warp(g);
                if (next < o.n_tiles) copy_coded_keys<A>(t, x, o.rows, after, coded);
            }
            gpu_copy_group();
        }
        gpu_copy_wait<2>();
        hand_over(&o.full[stage]);
        tile = next;
    }
}

// --- products ------------------------------------------------------------------------------------

// What a lane keeps of its rows: lane / 4 and that + 8 of its warp's 16.
struct wide_attention_state {
    float scale[2], slope[2], largest[2], weight[2];
    const u8 *mask[2]; // 0: there is none
    float sums[64];
};

// Scores of a tile: 64 rows by 64 keys, by the upper halves of queries, with blocks also times the
// lower halves of keys, and by the lower ones.
template <class A> GPU_FN void wide_scores(const u8 *queries, u64 operand, float (&scores)[32]) {
    GPU_UNROLL
    for (u32 i = 0; i < 32; ++i)
        scores[i] = 0.0f;
    GPU_UNROLL
    for (u32 half = 0; half < 2; ++half) {
        u32 a[8][4];
        GPU_UNROLL
        for (u32 k = 0; k < 8; ++k)
            gpu_load_matrices(a[k], queries + half * A::QUERY_BYTES + 32 * k);
        gpu_wgmma_begin();
        GPU_UNROLL
        for (u32 k = 0; k < 8; ++k) {
            const u64 keys = operand + k / 4 * (A::PANEL / 16) + k % 4 * 2;
            gpu_wgmma<64, A::AS_BF16 != 0>(scores, a[k], keys);
            if (A::CODED && half == 0) gpu_wgmma<64, false>(scores, a[k], keys + A::LOWER / 16);
        }
        gpu_wgmma_commit();
        gpu_wgmma_finish(scores);
    }
}

// From products to scores with the mask, to weights; what was added up before is scaled to the new
// largest score.
template <class A>
GPU_FN void wide_weights(const gpu_args &p, u32 c, u64 first, u64 end, float (&scores)[32],
                         wide_attention_state &s) {
    const float softcap = gpu_param(p, 2);
    GPU_UNROLL
    for (u32 h = 0; h < 2; ++h) {
        float largest = s.largest[h];
        GPU_UNROLL
        for (u32 t = 0; t < 4; ++t) {
            const u64 key = first + 16 * t + 4 * c;
            gpu_words2 words = {0, 0};
            if (s.mask[h] && key < end) words = gpu_load_8(s.mask[h] + 2 * key);
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
        largest = gpu_larger(largest, gpu_shfl_xor(largest, 1));
        largest = gpu_larger(largest, gpu_shfl_xor(largest, 2));
        const float factor = s.largest[h] == largest ? 1.0f : gpu_exp(s.largest[h] - largest);
        float sum = 0.0f;
        GPU_UNROLL
        for (u32 i = 0; i < 16; ++i) {
            float &x = scores[4 * (i / 2) + 2 * h + i % 2];
            x = x == -GPU_INFINITY ? 0.0f : gpu_exp(x - largest);
            sum += x;
        }
        s.largest[h] = largest;
        s.weight[h] = s.weight[h] * factor + sum;
        GPU_UNROLL
        for (u32 i = 0; i < 32; ++i)
            s.sums[4 * (i / 2) + 2 * h + i % 2] *= factor;
    }
}

// Weights, two halves each, times V; with blocks the upper ones times the lower halves of V, too.
template <class A>
GPU_FN void wide_values(u64 operand, float (&weights)[32], wide_attention_state &s) {
    u32 high[4][4], low[4][4];
    GPU_UNROLL
    for (u32 i = 0; i < 16; ++i)
        split_pair<A>(weights[2 * i], weights[2 * i + 1], &high[i / 4][i % 4], &low[i / 4][i % 4]);
    gpu_wgmma_begin();
    GPU_UNROLL
    for (u32 k = 0; k < 4; ++k) {
        gpu_wgmma_turned<128, A::AS_BF16 != 0>(s.sums, high[k], operand + 128 * k);
        gpu_wgmma_turned<128, A::AS_BF16 != 0>(s.sums, low[k], operand + 128 * k);
        if (A::CODED)
            gpu_wgmma_turned<128, false>(s.sums, high[k], operand + A::LOWER / 16 + 128 * k);
    }
    gpu_wgmma_commit();
    gpu_wgmma_finish(s.sums);
}

template <class A>
GPU_FN void attend_widely(gpu_thread g, const gpu_args &p, const wide_attention_block &o,
                          wide_attention_state &s) {
    const u32 warp = gpu_tid(g) / 32, lane = gpu_tid(g) % 32;
    const u8 *queries = o.rows.queries + (16 * warp + lane % 16) * A::QUERY_PITCH + lane / 16 * 16;
    u32 n = 0;
    for (u32 tile = 0; tile < o.n_tiles; ++tile) {
        if (!o.seen[tile]) continue;
        const u32 stage = n % A::STAGES;
        const u8 *k = o.stages + stage * A::STAGE;
        float scores[32];
        gpu_barrier_wait(&o.full[stage], (n / A::STAGES) & 1);
        wide_scores<A>(queries, gpu_wgmma_operand(k), scores);
        wide_weights<A>(p, lane % 4, o.rows.begin + (u64)tile * A::KEYS, o.rows.end, scores, s);
        wide_values<A>(gpu_wgmma_operand_turned(k + A::OPERAND, A::PANEL), scores, s);
        if (lane == 0) gpu_barrier_arrive(&o.empty[stage]);
        ++n;
    }
}

// Of a lane's rows: how their scores are scaled, and their masks. Rows that are not there see
// nothing.
template <class A>
GPU_FN void begin_wide_rows(gpu_thread g, const gpu_args &p, const wide_attention_block &o,
                            wide_attention_state &s) {
    const gpu_operand &mask = p.operands[4];
    const attention_block &b = o.rows;
    GPU_UNROLL
    for (u32 h = 0; h < 2; ++h) {
        const u32 row = gpu_tid(g) / 32 * 16 + gpu_tid(g) % 32 / 4 + 8 * h;
        const gpu_at at = attention_at(b, b.row0 + row < b.n_rows ? row : 0);
        s.scale[h] = b.scales[row];
        s.slope[h] = b.slopes[row];
        s.mask[h] = mask.data ? gpu_row(mask, at.y, 0, b.batch % (u64)mask.ne[3]) : 0;
        s.largest[h] = -GPU_INFINITY;
        s.weight[h] = 0.0f;
    }
    GPU_UNROLL
    for (u32 i = 0; i < 64; ++i)
        s.sums[i] = 0.0f;
}

// Adds up the weights of the lanes of a row. 0 where every number of the warp is finite, else not
// a number.
GPU_FN float finish_wide_rows(wide_attention_state &s) {
    float nothing = 0.0f;
    GPU_UNROLL
    for (u32 h = 0; h < 2; ++h) {
        s.weight[h] += gpu_shfl_xor(s.weight[h], 1);
        s.weight[h] += gpu_shfl_xor(s.weight[h], 2);
        nothing += s.weight[h] - s.weight[h];
    }
    GPU_UNROLL
    for (u32 i = 0; i < 64; ++i)
        nothing += s.sums[i] - s.sums[i];
    for (int m = 16; m > 0; m >>= 1)
        nothing += gpu_shfl_xor(nothing, m);
    return nothing;
}

GPU_FN void store_wide_rows(gpu_thread g, const gpu_args &p, const wide_attention_block &o,
                            const wide_attention_state &s) {
    const u32 c = gpu_tid(g) % 4;
    GPU_UNROLL
    for (u32 h = 0; h < 2; ++h) {
        const u32 row = gpu_tid(g) / 32 * 16 + gpu_tid(g) % 32 / 4 + 8 * h;
        if (o.rows.row0 + row >= o.rows.n_rows) continue;
        float factor;
        float *to =
            find_result(p, attention_at(o.rows, row), {s.largest[h], s.weight[h]}, c == 0, &factor);
        GPU_UNROLL
        for (u32 j = 0; j < 16; ++j) {
            const float *pair = &s.sums[4 * j + 2 * h];
            if (8 * j + 2 * c < p.operands[0].ne[0]) // an even number
                gpu_store_8(to + 8 * j + 2 * c,
                            {gpu_bits(pair[0] * factor), gpu_bits(pair[1] * factor)});
        }
    }
}

// Blocks: as find_block.
template <class A> GPU_FN void wide_attention(gpu_thread g, const gpu_args &p, u8 *memory) {
    wide_attention_block o;
    wide_attention_state s;
    const u32 t = gpu_tid(g);
    find_block(g, p, A::ROWS, o.rows);
    o.n_tiles = (u32)((o.rows.end - o.rows.begin + A::KEYS - 1) / A::KEYS);
    o.stages = memory;
    o.rows.queries = memory + A::STAGES * A::STAGE;
    o.coded = o.rows.queries + 2 * A::QUERY_BYTES;
    o.rows.scales = (float *)(o.coded + 2 * A::CODED_BYTES);
    o.rows.slopes = o.rows.scales + A::ROWS;
    o.rows.votes = o.rows.slopes + A::ROWS;
    o.full = (u64 *)(o.rows.votes + 16);
    o.empty = o.full + 4;
    o.seen = (u32 *)(o.empty + 4);
    if (t == 0) {
        for (u32 i = 0; i < A::STAGES; ++i) {
            gpu_barrier_init(&o.full[i], ATTENTION_COPIERS);
            gpu_barrier_init(&o.empty[i], ATTENTION_CONSUMERS / 32);
        }
        gpu_barrier_publish();
    }
    load_queries<A>(g, p, o.rows);
    find_seen_tiles<A>(g, p, o);
    gpu_sync(g);
    if (t < ATTENTION_CONSUMERS) {
        begin_wide_rows<A>(g, p, o, s);
        attend_widely<A>(g, p, o, s);
        const float nothing = finish_wide_rows(s);
        if (t % 32 == 0) o.rows.votes[t / 32] = nothing;
    } else if (A::CODED) {
        decode_wide_tiles<A>(g, p, o);
    } else {
        copy_wide_tiles<A>(g, p, o);
    }
    gpu_sync(g);
    float nothing = 0.0f;
    for (u32 w = 0; w < ATTENTION_CONSUMERS / 32; ++w)
        nothing += o.rows.votes[w];
    if (nothing == 0.0f) {
        if (t < ATTENTION_CONSUMERS) store_wide_rows(g, p, o, s);
        return;
    }
    for (u32 row = 0; row < A::ROWS && o.rows.row0 + row < o.rows.n_rows; ++row) {
        const gpu_at at = attention_at(o.rows, row);
        attend_plainly(p, at.y, at.z, at.w, o.rows.begin, o.rows.end, (float *)o.rows.queries);
    }
}

#define WIDE_ATTENTION_BODY(kind)                                                                  \
    GPU_THREAD(g);                                                                                 \
    typedef wide_attention_tile<kind> A;                                                           \
    GPU_SHARED_LARGE(u8, memory, ATTENTION_WIDE_SHARED(A::CODED));                                 \
    wide_attention<A>(g, p, memory);
#else
#define WIDE_ATTENTION_BODY(kind) (void)p;
#endif

#define WIDE_ATTENTION_KERNEL(name, kind)                                                          \
    GPU_KERNEL_FOR(kernel_attention_wide_##name, ATTENTION_WIDE_THREADS, 1, gpu_args, p) {         \
        WIDE_ATTENTION_BODY(kind)                                                                  \
    }
WIDE_ATTENTION_KERNEL(F16, ATTENTION_F16)
WIDE_ATTENTION_KERNEL(BF16, ATTENTION_BF16)
WIDE_ATTENTION_KERNEL(coded, ATTENTION_CODED)
