#version 450
// SPDX-License-Identifier: MIT
// Copy of matrices whose columns are dense to dense rows. A group moves a tile of 32 x 32
// elements through shared memory, so that its reads and its writes are of neighbouring elements.
// Elements of 2 or 4 bytes; numbers: 0-3 extents, 4-7 strides of the source, 8-11 strides of the
// result.
#include "shaders/common.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
layout(constant_id = 3) const uint SIZE = 4;

const uint TILE = 32;
shared uint tile[TILE * (TILE + 1)]; // a column more: columns lie in different banks

uint offset_of(const uvec4 at, const uvec4 nb) {
    return at.x * nb.x + at.y * nb.y + at.z * nb.z + at.w * nb.w;
}

// Transposes a tile through shared memory, so that both the reads and the writes of neighbouring
// invocations are neighbours in memory. The tile's rows have one more word, which avoids bank
// conflicts.
void main() {
    const uvec4 ne = numbers[0];
    const uint columns = (ne.x + TILE - 1) / TILE, rows = (ne.y + TILE - 1) / TILE;
    uint group = group_linear();
    if (columns * rows == 0 || group / (columns * rows) >= ne.z * ne.w) return;
    const uint x0 = group % columns * TILE, y0 = group / columns % rows * TILE;
    const uint plane = group / (columns * rows);
    const uvec4 at = uvec4(x0, y0, plane % ne.z, plane / ne.z);
    const uint from = SRC0.at.x + offset_of(at, numbers[1]);
    const uint to = DST.at.x + offset_of(at, numbers[2]);
    const uint step = gl_WorkGroupSize.x;
    for (uint i = gl_LocalInvocationID.x; i < TILE * TILE; i += step) {
        const uint x = i / TILE, y = i % TILE;
        if (x0 + x >= ne.x || y0 + y >= ne.y) continue;
        const uint byte_at = from + x * numbers[1].x + y * numbers[1].y;
        tile[y * (TILE + 1) + x] =
            SIZE == 4 ? src0_u32[byte_at >> 2] : uint(src0_u16[byte_at >> 1]);
    }
    // All of the tile is read before any of it is written.
    barrier();
    for (uint i = gl_LocalInvocationID.x; i < TILE * TILE; i += step) {
        const uint x = i % TILE, y = i / TILE;
        if (x0 + x >= ne.x || y0 + y >= ne.y) continue;
        const uint byte_at = to + x * numbers[2].x + y * numbers[2].y;
        const uint value = tile[y * (TILE + 1) + x];
        if (SIZE == 4)
            dst_u32[byte_at >> 2] = value;
        else
            dst_u16[byte_at >> 1] = uint16_t(value);
    }
}
