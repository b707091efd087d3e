#version 450
// SPDX-License-Identifier: MIT
// add_rel_pos, F32: y = a + ph + pw, where ph is indexed by the row and pw by the column of a
// window. All operands are contiguous; an invocation per element.
#include "shaders/common.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(a, 2)
GVK_OPERAND(pw, 3)
GVK_OPERAND(ph, 4)

void main() {
    const uint i = invocation_linear();
    if (i >= DST.ne.x * DST.ne.y * DST.ne.z) return;
    const uint n = SRC1.ne.x;
    const uint line = i / n;
    const float w = pw_f32[(SRC1.at.x >> 2) + line / n * n + i % n];
    dst_f32[(DST.at.x >> 2) + i] =
        a_f32[(SRC0.at.x >> 2) + i] + ph_f32[(SRC2.at.x >> 2) + line] + w;
}
