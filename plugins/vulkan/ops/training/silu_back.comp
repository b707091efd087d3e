#version 450
// SPDX-License-Identifier: MIT
// silu_back: src0 is the gradient of silu's result, src1 silu's operand; F32, F16 or BF16. An
// invocation per element.
#include "shaders/common.glsl"
#include "shaders/math.glsl"
layout(constant_id = 3) const uint TYPE = 0;
GVK_OPERAND(dst, 1)
GVK_OPERAND(grad, 2)
GVK_OPERAND(x, 3)

// The derivative of x s(x) is s (1 + x (1 - s)), where s is the sigmoid.
void main() {
    const uint i = invocation_linear();
    if (i >= DST.ne.x * DST.ne.y * DST.ne.z * DST.ne.w) return;
    const uvec4 at = element_at(DST.ne, i);
    const float value = x_load(TYPE, address(SRC1, at));
    const float s = sigmoid_accurate(value);
    const float y = grad_load(TYPE, address(SRC0, at)) * s * (1 + value * (1 - s));
    dst_store(TYPE, address(DST, at), y);
}
