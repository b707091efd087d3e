#version 450
// SPDX-License-Identifier: MIT
// col2im_1d: the sum of the elements of all columns that fall on each position of a sequence,
// the inverse of im2col; F32, F16 or BF16. An invocation per element of the result gathers from
// the columns that cover it, so that no atomic additions are needed.
#include "shaders/common.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(columns, 2)
layout(constant_id = 3) const uint TYPE = 0;

// Gathers: an element of the result sums the columns whose windows contain it. No two invocations
// write the same element, so that no atomic additions are needed.
void main() {
    const uint i = invocation_linear();
    if (i >= DST.ne.x * DST.ne.y) return;
    const uint stride = uint(op_param(0));
    const uint size = SRC0.ne.x / DST.ne.y;
    const uint channel = i / DST.ne.x;
    const uint t = i % DST.ne.x + uint(op_param(2));
    const uint end = min(t / stride + 1, SRC0.ne.y);
    float sum = 0;
    // Columns from the first window that reaches t to the last one that begins at or before it.
    for (uint column = t + 1 > size ? (t + stride - size) / stride : 0; column < end; ++column) {
        const uint k = t - column * stride;
        sum += columns_load(TYPE, address(SRC0, uvec4(channel * size + k, column, 0, 0)));
    }
    dst_store(TYPE, address(DST, uvec4(i % DST.ne.x, channel, 0, 0)), sum);
}
