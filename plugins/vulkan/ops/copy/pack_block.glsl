// SPDX-License-Identifier: MIT
// A block of the result per invocation: reads BLOCK neighbours, has the including shader's pack()
// encode them. Copies in logical order, or set_rows.
#include "shaders/common.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
GVK_OPERAND(src1, 3)
#define UNPACK_FROM src0
#include "shaders/unpack.glsl"
#include "ops/copy/rows.glsl"
layout(constant_id = 3) const uint DST_TYPE = 0;
layout(constant_id = 4) const uint SRC0_TYPE = 0;
layout(constant_id = 5) const bool SRC0_BLOCKS = false;
layout(constant_id = 6) const bool ROWS = false; // by index
layout(constant_id = 7) const bool WIDE = false; // indices of 64 bits
#include "ops/copy/pack.glsl"

void pack(const uint at);

// Elements from `at` on in their row of the source.
void read_block(const uvec4 at) {
    const uint row = address(SRC0, uvec4(0, at.yzw));
    for (uint i = 0; i < BLOCK; i += 4) {
        if (SRC0_BLOCKS) {
            const vec4 four = src0_unpack4(SRC0_TYPE, row, at.x + i);
            for (uint k = 0; k < 4; ++k) x[i + k] = four[k];
        } else {
            for (uint k = 0; k < 4; ++k)
                x[i + k] = src0_load(SRC0_TYPE, row + (at.x + i + k) * SRC0.nb.x);
        }
    }
}

// An invocation quantises one block.
void main() {
    // Rows of the source have whole blocks too, though its shape may be another.
    const uvec4 ne = uvec4(SRC0.ne.x / BLOCK, SRC0.ne.yzw);
    const uint i = invocation_linear();
    if (i >= ne.x * ne.y * ne.z * ne.w) return;
    uvec4 from = element_at(ne, i);
    uvec4 to = element_at(uvec4(DST.ne.x / BLOCK, DST.ne.yzw), i);
    if (ROWS) {
        to = from;
        // SET_ROWS: the row of the result is read from the indices; one out of range is skipped.
        if (!target_row(from, WIDE, to.y)) return;
    }
    from.x *= BLOCK;
    read_block(from);
    pack(address(DST, to)); // nb.x is a block's size
}
