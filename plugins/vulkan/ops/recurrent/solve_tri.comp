#version 450
// SPDX-License-Identifier: MIT
// solve_tri, lower triangular F32 matrices, by forward substitution: an invocation solves for a
// column of b, a launch for the rows [number(0), number(1)). All operands are contiguous.
#include "shaders/common.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(a, 2)
GVK_OPERAND(b, 3)

void main() {
    const uint columns = DST.ne.x, n = DST.ne.y;
    const uint unit = invocation_linear();
    if (unit >= columns * DST.ne.z * DST.ne.w) return;
    const uint matrix = unit / columns, c = unit % columns;
    const uint a0 = (SRC0.at.x >> 2) + matrix * n * n;
    const uint b0 = (SRC1.at.x >> 2) + matrix * n * columns + c;
    const uint x0 = (DST.at.x >> 2) + matrix * n * columns + c;
    for (uint r = number(0); r < number(1); ++r) {
        float value = b_f32[b0 + r * columns];
        for (uint t = 0; t < r; ++t) value -= a_f32[a0 + r * n + t] * dst_f32[x0 + t * columns];
        dst_f32[x0 + r * columns] = value / a_f32[a0 + r * n + r];
    }
}
