#version 450
// SPDX-License-Identifier: MIT
// tri, diag_mask_inf and diag_mask_zero, F32: keeps the elements whose column and row pass the
// test KEEP; the others become VALUE. An invocation per element.
#include "shaders/common.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
layout(constant_id = 3) const uint KEEP = 0;
layout(constant_id = 4) const float VALUE = 0; // may be infinite
const uint KEEP_UPPER_DIAG = 0, KEEP_UPPER = 1, KEEP_LOWER_DIAG = 2, KEEP_LOWER = 3,
           KEEP_PAST = 4; // columns up to op_param(0) behind the row's

// Which part of a row of a triangular matrix is kept.
bool keeps(const int column, const int row) {
    switch (KEEP) {
    case KEEP_UPPER_DIAG: return column >= row;
    case KEEP_UPPER: return column > row;
    case KEEP_LOWER_DIAG: return column <= row;
    case KEEP_LOWER: return column < row;
    default: return column - row <= op_param(0);
    }
}

// One invocation per element.
void main() {
    const uint i = invocation_linear();
    if (i >= DST.ne.x * DST.ne.y * DST.ne.z * DST.ne.w) return;
    const uvec4 at = element_at(DST.ne, i);
    const float x = src0_f32[address(SRC0, at) >> 2];
    dst_f32[address(DST, at) >> 2] = keeps(int(at.x), int(at.y)) ? x : VALUE;
}
