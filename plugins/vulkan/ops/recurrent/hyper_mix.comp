#version 450
// SPDX-License-Identifier: MIT
// dsv4_hc_pre: the sum of the copies of a residual stream, weighted per token or gated per
// element. dsv4_hc_post (POST): each copy from the layer's output and all copies. An invocation
// per element.
#include "shaders/common.glsl"
layout(constant_id = 3) const uint POST = 0;
layout(constant_id = 4) const bool GATED = false; // pre
layout(constant_id = 5) const bool COMBINED = true; // post
GVK_OPERAND(dst, 1)
GVK_OPERAND(s0, 2)
GVK_OPERAND(s1, 3)
GVK_OPERAND(s2, 4)
GVK_OPERAND(s3, 5)

// x [n, copies, tokens], weights [copies, tokens]; result [n, tokens]
float before(const uvec4 at) {
    float sum = 0;
    for (uint copy = 0; copy < SRC0.ne.y; ++copy)
        sum += s0_f32[address(SRC0, uvec4(at.x, copy, at.y, 0)) >> 2] *
               s1_f32[address(SRC1, uvec4(copy, at.y, 0, 0)) >> 2];
    return sum;
}

// x, gate [n, copies, tokens]; result [n, tokens]
float before_gated(const uvec4 at) {
    float sum = 0;
    for (uint copy = 0; copy < SRC0.ne.y; ++copy) {
        const uvec4 from = uvec4(at.x, copy, at.y, 0);
        sum += s0_f32[address(SRC0, from) >> 2] / (1 + exp(-s1_f32[address(SRC1, from) >> 2]));
    }
    return op_param_f32(0) * sum;
}

// x [n, tokens], residual [n, copies, tokens], weights [copies, tokens], comb [copies, copies,
// tokens]
float after(const uvec4 at) {
    float sum = s0_f32[address(SRC0, uvec4(at.x, at.z, 0, 0)) >> 2] *
                s2_f32[address(SRC2, uvec4(at.y, at.z, 0, 0)) >> 2];
    if (!COMBINED) return sum + s1_f32[address(SRC1, uvec4(at.x, at.y, at.z, 0)) >> 2];
    for (uint copy = 0; copy < SRC1.ne.y; ++copy)
        sum += s3_f32[address(tensors[4], uvec4(at.y, copy, at.z, 0)) >> 2] *
               s1_f32[address(SRC1, uvec4(at.x, copy, at.z, 0)) >> 2];
    return sum;
}

void main() {
    const uint i = invocation_linear();
    if (i >= DST.ne.x * DST.ne.y * DST.ne.z) return;
    const uvec4 at = element_at(DST.ne, i);
    dst_f32[address(DST, at) >> 2] = POST != 0 ? after(at) : GATED ? before_gated(at) : before(at);
}
