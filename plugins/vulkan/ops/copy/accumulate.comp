#version 450
// SPDX-License-Identifier: MIT
// acc, F32: adds src1 to the region of dst that has src1's extents and the strides op_param(0)
// to (2), and begins at byte op_param(3). ops/copy/arrange.c has copied src0 to dst before,
// unless they share memory. An invocation per element of src1.
#include "shaders/common.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src1, 3)

void main() {
    const uint i = invocation_linear();
    if (i >= SRC1.ne.x * SRC1.ne.y * SRC1.ne.z * SRC1.ne.w) return;
    const uvec4 at = element_at(SRC1.ne, i);
    const uint y = DST.at.x + uint(op_param(3)) + at.x * 4 + at.y * uint(op_param(0)) +
                   at.z * uint(op_param(1)) + at.w * uint(op_param(2));
    dst_f32[y >> 2] += src1_f32[address(SRC1, at) >> 2];
}
