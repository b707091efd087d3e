#version 450
// SPDX-License-Identifier: MIT
// pool_1d and pool_2d: largest element or mean of each window, as F32. pool_1d divides by the
// part of a window that lies in the source, pool_2d by the whole window's size. An invocation
// per window.
#include "shaders/common.glsl"
layout(constant_id = 3) const uint SRC_TYPE = 0;
#include "ops/image/pool.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)

void main() {
    const uint i = invocation_linear();
    if (i >= DST.ne.x * DST.ne.y * DST.ne.z * DST.ne.w) return;
    const uvec4 at = element_at(DST.ne, i);
    int x0, x1, y0 = int(at.y), y1 = int(at.y) + 1;
    pool_span(0, at.x, SRC0.ne.x, x0, x1);
    if (DIMS == 2) pool_span(1, at.y, SRC0.ne.y, y0, y1);
    float largest = LOWEST;
    float sum = 0;
    for (int y = y0; y < y1; ++y) {
        for (int x = x0; x < x1; ++x) {
            const float value = src0_load(SRC_TYPE, address(SRC0, uvec4(x, y, at.zw)));
            largest = value > largest ? value : largest;
            sum += value;
        }
    }
    const int divisor = DIMS == 2 ? pool_size(0) * pool_size(1) : x1 - x0;
    const float mean = divisor > 0 ? sum / float(divisor) : 0;
    dst_store(TYPE_F32, address(DST, at), pool_takes_largest() ? largest : mean);
}
