#version 450
// SPDX-License-Identifier: MIT
// Moves of items of ITEM bytes without conversion, for cpy, cont, dup, set, concat and repeat.
// An item is an element, a block, or sixteen bytes of a row. ops/move.c says which, in numbers:
// 0-3 extents, 4-7 strides of the source, 8-11 strides of the result; then, by MODE, 12 an
// offset into the result, or 12-15 extents. An invocation moves RUN items of a row.
#include "shaders/common.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
layout(constant_id = 3) const uint MODE = 0;
layout(constant_id = 4) const uint ITEM = 4;
layout(constant_id = 5) const uint UNIT = 4; // bytes that move at once
layout(constant_id = 6) const uint RUN = 1;  // items per invocation
layout(constant_id = 7) const uint DIMS = 4; // 1: there is one row, 2: rows along dimension 1
// Every item of the source to its place; every item of the result from the source repeated (whose
// extents are 12-15); items in order from one shape to another (12-15 extents of the result).
const uint MODE_PLACE = 0, MODE_REPEAT = 1, MODE_RESHAPE = 2;

uvec4 four(const uint i) { return numbers[i]; }

uint offset_of(const uvec4 at, const uvec4 nb) {
    return at.x * nb.x + at.y * nb.y + at.z * nb.z + at.w * nb.w;
}

// Moves an item of ITEM bytes, UNIT bytes at a time; both addresses are aligned to UNIT.
void move(const uint y, const uint x) {
    if (UNIT == 16) {
        for (uint i = 0; i < ITEM / 16; ++i) dst_uvec4[(y >> 4) + i] = src0_uvec4[(x >> 4) + i];
    } else if (UNIT == 4) {
        for (uint i = 0; i < ITEM / 4; ++i) dst_u32[(y >> 2) + i] = src0_u32[(x >> 2) + i];
    } else if (UNIT == 2) {
        for (uint i = 0; i < ITEM / 2; ++i) dst_u16[(y >> 1) + i] = src0_u16[(x >> 1) + i];
    } else {
        for (uint i = 0; i < ITEM; ++i) dst_u8[y + i] = src0_u8[x + i];
    }
}

// Moves the item at a position of the source's (or the result's) extents, the number_of-th of
// all.
void move_item(const uvec4 at, const uint number_of) {
    uint x, y;
    if (MODE == MODE_PLACE) {
        x = SRC0.at.x + offset_of(at, four(1));
        y = DST.at.x + number(12) + offset_of(at, four(2));
    } else if (MODE == MODE_REPEAT) {
        x = SRC0.at.x + offset_of(at % four(3), four(1));
        y = DST.at.x + offset_of(at, four(2));
    } else {
        x = SRC0.at.x + offset_of(at, four(1));
        y = DST.at.x + offset_of(element_at(four(3), number_of), four(2));
    }
    move(y, x);
}

// A run of RUN items within a row of the common shape.
void main() {
    const uvec4 ne = four(0);
    const uint per_row = (ne.x + RUN - 1) / RUN, i = invocation_linear();
    if (per_row == 0) return;
    const uint row = DIMS == 1 ? 0 : i / per_row, first = (i - row * per_row) * RUN;
    if (first >= ne.x || row >= ne.y * ne.z * ne.w) return;
    uvec4 at = DIMS <= 2 ? uvec4(0, row, 0, 0) : row_at(ne, row);
    for (at.x = first; at.x < min(first + RUN, ne.x); ++at.x) move_item(at, row * ne.x + at.x);
}
