#version 450
// SPDX-License-Identifier: MIT
// Optimiser steps where the parameters, and their moments, lie.
// AdamW, parameters alpha, beta1, beta2, eps, wd, beta1h, beta2h: Loshchilov and Hutter, 2017.
// SGD, parameters alpha, wd.
#include "shaders/common.glsl"
layout(constant_id = 3) const uint ADAMW = 0;
GVK_OPERAND(dst, 1)
GVK_OPERAND(x, 2)
GVK_OPERAND(grad, 3)
GVK_OPERAND(m, 4)
GVK_OPERAND(v, 5)
GVK_OPERAND(adamw, 6)

// Updates both moments in place, then the parameter: decoupled weight decay, and beta1h, beta2h
// correct the moments' bias.
void step_adamw(const uvec4 at, const float value, const float g) {
    const uint p = tensors[5].at.x >> 2;
    const uint m_at = address(tensors[3], at) >> 2, v_at = address(tensors[4], at) >> 2;
    const float alpha = adamw_f32[p], beta1 = adamw_f32[p + 1], beta2 = adamw_f32[p + 2];
    const float m_new = m_f32[m_at] * beta1 + g * (1 - beta1);
    const float v_new = v_f32[v_at] * beta2 + g * g * (1 - beta2);
    m_f32[m_at] = m_new;
    v_f32[v_at] = v_new;
    const float move = alpha * (m_new * adamw_f32[p + 5]) /
                       (sqrt(v_new * adamw_f32[p + 6]) + adamw_f32[p + 3]);
    dst_f32[address(DST, at) >> 2] = value * (1 - alpha * adamw_f32[p + 4]) - move;
}

// AdamW or SGD, one element per invocation.
void main() {
    const uint i = invocation_linear();
    if (i >= DST.ne.x * DST.ne.y * DST.ne.z * DST.ne.w) return;
    const uvec4 at = element_at(DST.ne, i);
    const float value = x_f32[address(SRC0, at) >> 2];
    const float g = grad_f32[address(SRC1, at) >> 2];
    if (ADAMW != 0) {
        step_adamw(at, value, g);
        return;
    }
    const uint p = tensors[3].at.x >> 2; // of SGD, in the place of the first moment
    dst_f32[address(DST, at) >> 2] = value * (1 - m_f32[p] * m_f32[p + 1]) - m_f32[p] * g;
}
