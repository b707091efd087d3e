#version 450
// SPDX-License-Identifier: MIT
// diag: rows of the source on the diagonals of matrices, 0 elsewhere. An invocation per element;
// elements consist of UNITS units of UNIT (1, 2 or 4) bytes.
#include "shaders/common.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
layout(constant_id = 3) const uint UNIT = 4;
layout(constant_id = 4) const uint UNITS = 1; // per element

// A diagonal matrix from a vector; elements are copied as bits, so that one shader serves all types
// of a size.
void main() {
    const uint i = invocation_linear();
    if (i >= DST.ne.x * DST.ne.y * DST.ne.z * DST.ne.w) return;
    const uvec4 at = element_at(DST.ne, i);
    const bool on = at.x == at.y;
    const uint y = address(DST, at), x = address(SRC0, uvec4(at.x, 0, at.zw));
    for (uint k = 0; k < UNITS; ++k) {
        if (UNIT == 4)
            dst_u32[(y >> 2) + k] = on ? src0_u32[(x >> 2) + k] : 0u;
        else if (UNIT == 2)
            dst_u16[y >> 1] = uint16_t(on ? uint(src0_u16[x >> 1]) : 0u);
        else
            dst_u8[y] = uint8_t(on ? uint(src0_u8[x]) : 0u);
    }
}
