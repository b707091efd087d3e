#version 450
// SPDX-License-Identifier: MIT
// y = f(x), element by element.
#include "common.glsl"
VK_OPERAND(dst, 1)
VK_OPERAND(src0, 2)
layout(constant_id = 3) const uint DST_TYPE = 0;
layout(constant_id = 4) const uint SRC0_TYPE = 0;
layout(constant_id = 5) const uint OP = 0;

float compute(const float x) {
    switch (OP) {
    case 0: return abs(x);
    case 1: return x > 0 ? 1 : x < 0 ? -1 : 0;
    case 2: return -x;
    default: return x;
    }
}

void main() {
    const uint i = invocation_linear();
    if (i >= DST.ne.x * DST.ne.y * DST.ne.z * DST.ne.w) return;
    const uvec4 at = element_at(DST.ne, i);
    dst_store(DST_TYPE, address(DST, at), compute(src0_load(SRC0_TYPE, address(SRC0, at))));
}
