#version 450
// SPDX-License-Identifier: MIT
// argsort and top_k of short rows on drivers that compute on the CPU: the place of each number is
// how many come before it. A group ranks HELD numbers per invocation against the row, whose
// numbers are read once for all: that beats a sort in shared memory, which such drivers access lane
// by lane. Equal numbers keep their order; NaN comes last in either.
#include "shaders/common.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
layout(constant_id = 3) const bool DESCENDING = false;
layout(constant_id = 4) const uint HELD = 16;

// As key_of() in sort.comp, as a signed number.
int key_of(const uint bits) {
    const int ascending = int((bits & 0x80000000u) != 0 ? bits ^ 0x7fffffffu : bits);
    const int key = DESCENDING ? ~ascending : ascending;
    const int zero = DESCENDING ? -1 : 0;
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    return is_nan ? 0x7fffffff : (bits & 0x7fffffffu) == 0 ? zero : key;
}

int keys[HELD];
uint ranks[HELD];

int key_at(const uint row, const uint i) { return key_of(src0_u32[(row + i * SRC0.nb.x) >> 2]); }

// Own numbers lie a group's size apart, so that their order is that of k for what is outside of
// them; `equal`: those before, equals of which come first.
void count(const uint row, const uint from, const uint end, const bool equal) {
    for (uint i = from; i < end; ++i) {
        const int key = key_at(row, i);
        [[unroll]] for (uint k = 0; k < HELD; ++k)
            ranks[k] += uint(equal ? key <= keys[k] : key < keys[k]);
    }
}

// Ranks within the group's own items: equal keys keep their order.
void count_own(const uint row, const uint first, const uint end) {
    for (uint i = first; i < end; ++i) {
        const int key = key_at(row, i);
        [[unroll]] for (uint k = 0; k < HELD; ++k) {
            const uint own = first + k * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
            ranks[k] += uint(key < keys[k]) | uint(key == keys[k]) & uint(i < own);
        }
    }
}

// The rank of an item is the number of items before it: O(n^2) comparisons, in one
// pass without synchronisation.
void main() {
    const uint size = HELD * gl_WorkGroupSize.x, n = SRC0.ne.x;
    const uint blocks = (n + size - 1) / size;
    const uint row = group_linear() / blocks, first = (group_linear() - row * blocks) * size;
    if (row >= SRC0.ne.y * SRC0.ne.z * SRC0.ne.w) return;
    const uint from = address(SRC0, row_at(SRC0.ne, row));
    [[unroll]] for (uint k = 0; k < HELD; ++k) {
        const uint own = first + k * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
        keys[k] = key_at(from, min(own, n - 1));
        ranks[k] = 0;
    }
    count(from, 0, first, true);
    count_own(from, first, min(first + size, n));
    count(from, min(first + size, n), n, false);
    const uint to = address(DST, row_at(DST.ne, row)) >> 2;
    [[unroll]] for (uint k = 0; k < HELD; ++k) {
        const uint own = first + k * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
        if (own < n && ranks[k] < DST.ne.x) dst_u32[to + ranks[k]] = own;
    }
}
