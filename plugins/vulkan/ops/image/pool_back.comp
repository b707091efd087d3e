#version 450
// SPDX-License-Identifier: MIT
// pool_2d_back: an invocation per element of the gradient gathers from the windows that cover
// it. src0 is the gradient of the pooled result, src1 what was pooled.
#include "shaders/common.glsl"
layout(constant_id = 3) const uint SRC_TYPE = 0;
#include "ops/image/pool.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(grad, 2)
GVK_OPERAND(pooled, 3)

// Whether (x, y) is the first largest element of window o.
bool is_largest(const uvec4 at, const uvec2 o) {
    int x0, x1, y0, y1;
    pool_span(0, o.x, DST.ne.x, x0, x1);
    pool_span(1, o.y, DST.ne.y, y0, y1);
    float largest = LOWEST;
    ivec2 best = ivec2(-1);
    for (int y = y0; y < y1; ++y) {
        for (int x = x0; x < x1; ++x) {
            const float value = pooled_load(SRC_TYPE, address(SRC1, uvec4(x, y, at.zw)));
            if (value > largest) {
                largest = value;
                best = ivec2(x, y);
            }
        }
    }
    return best == ivec2(at.xy);
}

// Windows [first, end) of n that cover position i.
void covering(const uint d, const uint i, const uint n, out uint first, out uint end) {
    const int at = int(i) + pool_padding(d);
    const int stride = pool_stride(d);
    const int before = at - pool_size(d) + 1;
    first = before > 0 ? uint((before + stride - 1) / stride) : 0;
    end = min(uint(at / stride) + 1, n);
}

// Gathers the gradients of all windows that cover an element; of a maximum only where the element
// was the largest of its window.
void main() {
    const uint i = invocation_linear();
    if (i >= DST.ne.x * DST.ne.y * DST.ne.z * DST.ne.w) return;
    const uvec4 at = element_at(DST.ne, i);
    const float share = 1.0 / (float(pool_size(0)) * float(pool_size(1)));
    uint x0, x1, y0, y1;
    covering(0, at.x, SRC0.ne.x, x0, x1);
    covering(1, at.y, SRC0.ne.y, y0, y1);
    float sum = 0;
    for (uint y = y0; y < y1; ++y) {
        for (uint x = x0; x < x1; ++x) {
            const float g = grad_load(TYPE_F32, address(SRC0, uvec4(x, y, at.zw)));
            if (!pool_takes_largest()) sum += g * share;
            else if (is_largest(at, uvec2(x, y))) sum += g;
        }
    }
    dst_store(TYPE_F32, address(DST, at), sum);
}
