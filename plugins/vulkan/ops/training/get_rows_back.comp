#version 450
// SPDX-License-Identifier: MIT
// get_rows_back: adds each row of src0 to the row of the F32 result that src1 names. An
// invocation per element of the result looks through all indices: the order of additions is
// always the same, and no atomics are needed.
#include "shaders/common.glsl"
layout(constant_id = 3) const uint SRC_TYPE = 0;
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
#define UNPACK_FROM src0
#include "shaders/unpack.glsl"
GVK_OPERAND(ids, 3)

// Gathers: sums the rows with this index, in order, without atomic additions.
void main() {
    const uint i = invocation_linear();
    if (i >= DST.ne.x * DST.ne.y) return;
    const uvec4 at = element_at(DST.ne, i);
    float sum = 0;
    for (uint row = 0; row < SRC1.ne.x; ++row) {
        if (ids_u32[(SRC1.at.x + row * SRC1.nb.x) >> 2] == at.y)
            sum += src0_unpack(SRC_TYPE, SRC0.at.x + row * SRC0.nb.y, at.x);
    }
    dst_f32[address(DST, at) >> 2] = sum;
}
