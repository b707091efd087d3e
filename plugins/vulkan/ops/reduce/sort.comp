#version 450
// SPDX-License-Identifier: MIT
// Bitonic sort of rows. Items are a key, whose order is that of the numbers, and the number's
// index, which makes all items different; NaN comes last in either order. ops/reduce/sort.c launches:
//   BLOCKS  each group sorts a block of ITEMS, or every second one backwards, and keeps the first
//   STEP    an exchange over more than a block
//   MERGE   the exchanges within blocks that follow
#include "shaders/common.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
layout(constant_id = 3) const uint MODE = 0;
layout(constant_id = 4) const uint ITEMS = 64; // per group, a power of two
layout(constant_id = 5) const bool FROM_SOURCE = false; // otherwise from items in scratch memory
layout(constant_id = 6) const bool TO_RESULT = false;   // indices of the first items of each row
layout(constant_id = 7) const bool DESCENDING = false;
layout(constant_id = 8) const bool ALTERNATE = false;
const uint MODE_BLOCKS = 0, MODE_STEP = 1, MODE_MERGE = 2;

// Numbers: of the chunk of rows that scratch memory holds, and items per row.
#define FIRST_ROW number(0)
#define N_ROWS number(1)
#define N_FROM number(2) // read; behind them come items that are last
#define STRIDE_FROM number(3)
#define KEEP number(4) // of each block
#define STRIDE_TO number(5)
#define SPAN number(6) // that becomes ordered, and the distance of an exchange
#define DISTANCE number(7)

shared uvec2 items[ITEMS];

// Without branches, here and where items change places.
bool is_after(const uvec2 a, const uvec2 b) {
    return (uint(a.x > b.x) | uint(a.x == b.x) & uint(a.y > b.y)) != 0;
}

// Maps floats to integers of the same order: NaN comes last in both directions, and -0 equals +0.
uint key_of(const uint bits) {
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0xffffffffu;
    const uint one_zero = bits == 0x80000000u ? 0u : bits;
    const uint ascending = one_zero >> 31 != 0 ? ~one_zero : one_zero | 0x80000000u;
    return DESCENDING ? ~ascending : ascending;
}

uint scratch_at(const uint base, const uint row, const uint stride, const uint i) {
    return (base >> 2) + 2 * (row * stride + i);
}

// Key and index of an item; what is beyond the row sorts behind everything else.
uvec2 read_item(const uint row, const uint i) {
    if (i >= N_FROM) return uvec2(0xffffffffu);
    if (FROM_SOURCE) {
        const uint x = address(SRC0, row_at(SRC0.ne, FIRST_ROW + row)) + i * SRC0.nb.x;
        return uvec2(key_of(src0_u32[x >> 2]), i);
    }
    const uint at = scratch_at(SRC0.at.x, row, STRIDE_FROM, i);
    return uvec2(src0_u32[at], src0_u32[at + 1]);
}

// The result only has the indices, of the first items for top-k.
void write_item(const uint row, const uint i, const uvec2 item) {
    if (TO_RESULT) {
        if (i < DST.ne.x)
            dst_u32[(address(DST, row_at(DST.ne, FIRST_ROW + row)) >> 2) + i] = item.y;
        return;
    }
    const uint at = scratch_at(DST.at.x, row, STRIDE_TO, i);
    dst_u32[at] = item.x;
    dst_u32[at + 1] = item.y;
}

const uint STAGES = 3; // of exchanges that an invocation does in registers
const uint HELD = 1u << STAGES;
uvec2 held[HELD];

// Exchanges of the first n of them, `step` apart. Ascending where the index has no bit of `span`,
// or all if `up`, without `span`.
void exchange_held(const uint n, const uint step, const uint span, const bool up) {
    [[unroll]] for (uint i = 0; i < n / 2; ++i) {
        const uint low = 2 * i - (i & step - 1), high = low + step;
        const uvec2 a = held[low], b = held[high];
        const bool swaps = is_after(a, b) == (span == 0 ? up : (low & span) == 0);
        held[low] = mix(a, b, bvec2(swaps));
        held[high] = mix(b, a, bvec2(swaps));
    }
}

// From the step 2^(stages - 1) down. Loops over this would be too long for drivers to unroll.
void merge_held(const uint n, const uint stages, const uint span, const bool up) {
    if (stages > 2) exchange_held(n, 4, span, up);
    if (stages > 1) exchange_held(n, 2, span, up);
    exchange_held(n, 1, span, up);
}

// Exchanges items `distance` apart, then half as far, in all `stages` times, so that those whose
// index has no bit of `span`, which is above, ascend. 2^stages items are in registers.
void exchange(const uint stages, const uint distance, const uint span, const bool backwards,
              const uint first) {
    const uint least = distance >> (stages - 1), n = 1u << stages;
    for (uint p = gl_LocalInvocationID.x; p < ITEMS >> stages; p += gl_WorkGroupSize.x) {
        const uint within = p & (least - 1), base = ((p - within) << stages) + within;
        const bool up = (((first + base) & span) == 0) != backwards;
        [[unroll]] for (uint k = 0; k < n; ++k) held[k] = items[base + k * least];
        merge_held(n, stages, 0, up);
        [[unroll]] for (uint k = 0; k < n; ++k) items[base + k * least] = held[k];
    }
    barrier();
}

// All exchanges from a distance down to neighbours.
void merge(const uint distance, const uint span, const bool backwards, const uint first) {
    uint d = distance;
    for (; d >= HELD / 2; d /= HELD) exchange(STAGES, d, span, backwards, first);
    [[unroll]] for (uint stages = STAGES - 1; stages > 0; --stages) {
        if (d == 1u << (stages - 1)) exchange(stages, d, span, backwards, first);
    }
}

// Each invocation sorts its neighbouring items, up and down in turn.
void sort_held(const uint row, const uint first) {
    for (uint p = gl_LocalInvocationID.x; p < ITEMS / HELD; p += gl_WorkGroupSize.x) {
        [[unroll]] for (uint k = 0; k < HELD; ++k) held[k] = read_item(row, first + p * HELD + k);
        merge_held(HELD, 1, 2, true);
        merge_held(HELD, 2, 4, true);
        merge_held(HELD, STAGES, 0, (p & 1u) == 0);
        [[unroll]] for (uint k = 0; k < HELD; ++k) items[p * HELD + k] = held[k];
    }
    barrier();
}

// Sorts a block in shared memory (bitonic), or merges blocks that were sorted before, and keeps the
// first KEEP items of it.
void sort_block() {
    const uint needed = max((N_FROM + ITEMS - 1) / ITEMS, 1);
    const uint blocks = ALTERNATE ? STRIDE_TO / ITEMS : needed, row = group_linear() / blocks;
    const uint block = group_linear() - row * blocks, first = block * ITEMS;
    if (row >= N_ROWS) return;
    if (MODE == MODE_BLOCKS) {
        sort_held(row, first);
        for (uint span = 2 * HELD; span < ITEMS; span *= 2) merge(span / 2, span, false, 0);
        merge(ITEMS / 2, 0, ALTERNATE && (block & 1u) != 0, 0);
    } else {
        for (uint i = gl_LocalInvocationID.x; i < ITEMS; i += gl_WorkGroupSize.x)
            items[i] = read_item(row, first + i);
        barrier();
        merge(ITEMS / 2, SPAN, false, first);
    }
    for (uint i = gl_LocalInvocationID.x; i < min(KEEP, ITEMS); i += gl_WorkGroupSize.x)
        write_item(row, block * KEEP + i, items[i]);
}

// A step of the bitonic network between items that are further apart than a block.
void exchange_far() {
    const uint pairs = STRIDE_TO / 2, i = invocation_linear();
    const uint row = i / pairs, p = i % pairs;
    if (row >= N_ROWS) return;
    const uint within = p & (DISTANCE - 1), low = (p - within) * 2 + within, high = low + DISTANCE;
    const uint at_low = scratch_at(DST.at.x, row, STRIDE_TO, low);
    const uint at_high = scratch_at(DST.at.x, row, STRIDE_TO, high);
    const uvec2 a = uvec2(dst_u32[at_low], dst_u32[at_low + 1]);
    const uvec2 b = uvec2(dst_u32[at_high], dst_u32[at_high + 1]);
    if (is_after(a, b) != ((low & SPAN) == 0)) return;
    write_item(row, low, b);
    write_item(row, high, a);
}

void main() {
    if (MODE == MODE_STEP)
        exchange_far();
    else
        sort_block();
}
