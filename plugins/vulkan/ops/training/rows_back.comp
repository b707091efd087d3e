#version 450
// SPDX-License-Identifier: MIT
// rms_norm_back and soft_max_back, F32: src0 is the gradient of the result, src1 the operand of
// rms_norm or the result of soft_max. A row per group.
#include "shaders/common.glsl"
#include "shaders/reduce.glsl"
layout(constant_id = 3) const uint RMS_NORM = 0;
GVK_OPERAND(dst, 1)
GVK_OPERAND(grad, 2)
GVK_OPERAND(x, 3)

// Gradients of RMS_NORM and SOFT_MAX: both need the product of gradient and row first.
void main() {
    const uint row = group_linear();
    if (row >= DST.ne.y * DST.ne.z * DST.ne.w) return;
    uvec4 at = row_at(DST.ne, row);
    const uint first = gl_LocalInvocationID.x, stride = gl_WorkGroupSize.x, n = DST.ne.x;
    float products = 0, squares = 0;
    for (at.x = first; at.x < n; at.x += stride) {
        const float value = x_f32[address(SRC1, at) >> 2];
        products += grad_f32[address(SRC0, at) >> 2] * value;
        squares += value * value;
    }
    products = group_sum(products);
    if (RMS_NORM != 0) squares = group_sum(squares);
    const float param = op_param_f32(0); // eps, or the scale
    const float along = products / (squares + float(n) * param);
    const float scale = RMS_NORM != 0 ? 1 / sqrt(squares / float(n) + param) : param;
    for (at.x = first; at.x < n; at.x += stride) {
        const float value = x_f32[address(SRC1, at) >> 2];
        const float g = grad_f32[address(SRC0, at) >> 2];
        const float y = RMS_NORM != 0 ? g - value * along : value * (g - products);
        dst_f32[address(DST, at) >> 2] = y * scale;
    }
}
