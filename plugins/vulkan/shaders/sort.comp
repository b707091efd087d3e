#version 450
// SPDX-License-Identifier: MIT
// Bitonic sort of rows. Items are a key, whose order is that of the numbers, and the number's
// index, which makes all items different; NaN comes last in either order. kernels/sort.c launches:
//   BLOCKS  each group sorts a block of ITEMS, or every second one backwards, and keeps the first
//   STEP    an exchange over more than a block
//   MERGE   the exchanges within blocks that follow
#include "common.glsl"
VK_OPERAND(dst, 1)
VK_OPERAND(src0, 2)
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

bool is_after(const uvec2 a, const uvec2 b) { return a.x > b.x || (a.x == b.x && a.y > b.y); }

uint key_of(const uint bits) {
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0xffffffffu;
    const uint one_zero = bits == 0x80000000u ? 0u : bits;
    const uint ascending = one_zero >> 31 != 0 ? ~one_zero : one_zero | 0x80000000u;
    return DESCENDING ? ~ascending : ascending;
}

uint scratch_at(const uint base, const uint row, const uint stride, const uint i) {
    return (base >> 2) + 2 * (row * stride + i);
}

uvec2 read_item(const uint row, const uint i) {
    if (i >= N_FROM) return uvec2(0xffffffffu);
    if (FROM_SOURCE) {
        const uint x = address(SRC0, row_at(SRC0.ne, FIRST_ROW + row)) + i * SRC0.nb.x;
        return uvec2(key_of(src0_u32[x >> 2]), i);
    }
    const uint at = scratch_at(SRC0.at.x, row, STRIDE_FROM, i);
    return uvec2(src0_u32[at], src0_u32[at + 1]);
}

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

// Exchanges items `distance` apart, then half as far, in all `stages` times, so that those whose
// index has no bit of `span`, which is above, ascend. 2^stages items are in registers.
void exchange(const uint stages, const uint distance, const uint span, const bool backwards,
              const uint first) {
    const uint least = distance >> (stages - 1), n = 1 << stages;
    for (uint p = gl_LocalInvocationID.x; p < ITEMS >> stages; p += gl_WorkGroupSize.x) {
        const uint within = p & (least - 1), base = ((p - within) << stages) + within;
        const bool up = (((first + base) & span) == 0) != backwards;
        uvec2 held[8];
        [[unroll]] for (uint k = 0; k < n; ++k) held[k] = items[base + k * least];
        [[unroll]] for (uint step = n / 2; step > 0; step /= 2) {
            [[unroll]] for (uint k = 0; k < n; ++k) {
                if ((k & step) != 0) continue;
                const uvec2 a = held[k], b = held[k + step];
                const bool swaps = is_after(a, b) == up;
                held[k] = swaps ? b : a;
                held[k + step] = swaps ? a : b;
            }
        }
        [[unroll]] for (uint k = 0; k < n; ++k) items[base + k * least] = held[k];
    }
    barrier();
}

// All exchanges from a distance down to neighbours.
void merge(const uint distance, const uint span, const bool backwards, const uint first) {
    uint d = distance;
    for (; d >= 4; d /= 8) exchange(3, d, span, backwards, first);
    if (d == 2)
        exchange(2, d, span, backwards, first);
    else if (d == 1)
        exchange(1, d, span, backwards, first);
}

void sort_block() {
    const uint needed = max((N_FROM + ITEMS - 1) / ITEMS, 1);
    const uint blocks = ALTERNATE ? STRIDE_TO / ITEMS : needed, row = group_linear() / blocks;
    const uint block = group_linear() - row * blocks, first = block * ITEMS;
    if (row >= N_ROWS) return;
    for (uint i = gl_LocalInvocationID.x; i < ITEMS; i += gl_WorkGroupSize.x)
        items[i] = read_item(row, first + i);
    barrier();
    if (MODE == MODE_BLOCKS) {
        for (uint span = 2; span < ITEMS; span *= 2) merge(span / 2, span, false, 0);
        merge(ITEMS / 2, 0, ALTERNATE && (block & 1u) != 0, 0);
    } else {
        merge(ITEMS / 2, SPAN, false, first);
    }
    for (uint i = gl_LocalInvocationID.x; i < min(KEEP, ITEMS); i += gl_WorkGroupSize.x)
        write_item(row, block * KEEP + i, items[i]);
}

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
