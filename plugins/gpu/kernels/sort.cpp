// SPDX-License-Identifier: MIT
// argsort and top_k. Rows up to SORT_TILE elements, and the few first of longer ones, are sorted in
// shared memory by a block of threads (bitonic sort); of other rows each element counts those that
// come before it. Equal elements keep their order; NaN comes last in either.
#include "tensor.h"

enum { SORT_TILE = 2048, RANK_TILE = 1024 };

// Floats as integers of the same order: below 0 the bits of the size are inverted. For the
// descending order all bits are; both zeros have one key.
GPU_FN i32 key_of(float value, bool descending) {
    const u32 bits = gpu_bits(value);
    const i32 ascending = (i32)(bits & 0x80000000u ? bits ^ 0x7fffffffu : bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffffff;
    if ((bits & 0x7fffffffu) == 0) return descending ? -1 : 0;
    return descending ? ~ascending : ascending;
}
// Element i of a row: its key, then its index, so that no two are equal.
GPU_FN u64 sort_item(GPU_ARGS gpu_operand &x, GPU_GLOBAL const u8 *row, u64 i, bool descending) {
    const i32 key = key_of(*(GPU_GLOBAL const float *)(row + (i64)i * x.nb[0]), descending);
    return (u64)((u32)key ^ 0x80000000u) << 32 | i;
}

// Where item i is held. Of 32 neighbours, 16 lanes ask for those without one of the low bits: every
// second 16 are mirrored, so that they lie in different banks.
GPU_FN u32 sort_slot(u32 i) {
    return i & 16 ? i ^ 15 : i;
}
// Puts two items in order; those from n on count as larger than all, and stay.
GPU_FN void sort_pair(GPU_LOCAL u64 *items, u32 low, u32 high, u32 n) {
    if (high >= n) return;
    const u64 a = items[sort_slot(low)], b = items[sort_slot(high)];
    if (b < a) {
        items[sort_slot(low)] = b;
        items[sort_slot(high)] = a;
    }
}

// Bitonic sort whose first step in each round mirrors, so that smaller ones always go down. Begins
// and ends with a barrier.
// Batcher (1968): O(log^2 n) steps with n / 2 independent pairs, a barrier behind each. Not padded:
// a pair whose second item is missing is in order.
GPU_FN void sort_items(gpu_thread g, GPU_LOCAL u64 *items, u32 n) {
    u32 padded = 1;
    while (padded < n)
        padded *= 2;
    gpu_sync(g);
    for (u32 size = 2; size <= padded; size *= 2) {
        for (u32 i = gpu_tid(g); i < padded / 2; i += gpu_ntid(g)) {
            const u32 first = i / (size / 2) * size, at = i % (size / 2);
            sort_pair(items, first + at, first + size - 1 - at, n);
        }
        gpu_sync(g);
        for (u32 apart = size / 4; apart > 0; apart /= 2) {
            for (u32 i = gpu_tid(g); i < padded / 2; i += gpu_ntid(g)) {
                const u32 at = i / apart * 2 * apart + i % apart;
                sort_pair(items, at, at + apart, n);
            }
            gpu_sync(g);
        }
    }
}

// A block per row, which is read a part at a time: those that are first so far are kept, and sorted
// again with the next part. numbers[0]: 1: from the largest on.
GPU_KERNEL(kernel_sort, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(u64, items, SORT_TILE);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const gpu_at at = gpu_row_at(x, gpu_bid_x(g));
    GPU_GLOBAL const u8 *row = gpu_row(x, at.y, at.z, at.w);
    const bool descending = p.numbers[0] != 0;
    const u64 n = (u64)x.ne[0], wanted = (u64)y.ne[0];
    u32 held = 0;
    for (u64 first = 0; first < n;) {
        const u64 left = n - first, room = SORT_TILE - held, part = left < room ? left : room;
        for (u64 i = gpu_tid(g); i < part; i += gpu_ntid(g))
            items[sort_slot(held + (u32)i)] = sort_item(x, row, first + i, descending);
        held += (u32)part;
        first += part;
        sort_items(g, items, held);
        if (held > wanted) held = (u32)wanted;
    }
    for (u64 i = gpu_tid(g); i < wanted; i += gpu_ntid(g))
        *(GPU_GLOBAL i32 *)(gpu_row(y, at.y, at.z, at.w) + (i64)i * y.nb[0]) =
            (i32)(u32)items[sort_slot((u32)i)];
}

// A thread per element, a block for neighbours of one row, through whose keys it goes a tile at a
// time. numbers[1]: blocks per row.
// O(n) reads of shared memory for an element, O(n^2) for a row: of any length, without device
// memory for keys.
GPU_KERNEL(kernel_sort_rank, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_SHARED(i32, keys, RANK_TILE);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    u64 part;
    const gpu_at at = gpu_row_at(x, gpu_divide(gpu_bid_x(g), (u64)p.numbers[1], &part));
    GPU_GLOBAL const u8 *row = gpu_row(x, at.y, at.z, at.w);
    const bool descending = p.numbers[0] != 0;
    const u64 n = (u64)x.ne[0], i = part * gpu_ntid(g) + gpu_tid(g), inside = i < n ? i : n - 1;
    const i32 own = key_of(*(GPU_GLOBAL const float *)(row + (i64)inside * x.nb[0]), descending);
    u64 rank = 0;
    for (u64 first = 0; first < n; first += RANK_TILE) {
        const u64 left = n - first;
        const u32 count = left < RANK_TILE ? (u32)left : (u32)RANK_TILE;
        gpu_sync(g);
        for (u32 k = gpu_tid(g); k < count; k += gpu_ntid(g))
            keys[k] =
                key_of(*(GPU_GLOBAL const float *)(row + (i64)(first + k) * x.nb[0]), descending);
        gpu_sync(g);
        for (u32 k = 0; k < count; ++k)
            rank += keys[k] < own || (keys[k] == own && first + k < i);
    }
    if (i < n && rank < (u64)y.ne[0])
        *(GPU_GLOBAL i32 *)(gpu_row(y, at.y, at.z, at.w) + (i64)rank * y.nb[0]) = (i32)i;
}
