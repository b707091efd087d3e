#version 450
// SPDX-License-Identifier: MIT
// arange: start + step * i, F32, computed with twice the precision and rounded once. An
// invocation per element.
#include "shaders/double_float.glsl"
GVK_OPERAND(dst, 1)

void main() {
    const uint i = invocation_linear();
    if (i >= DST.ne.x) return;
    const float start = op_param_f32(0), step = op_param_f32(2);
    const vec2 low = df_add(vec2(start, 0), two_product(step, float(i & 4095u)));
    dst_f32[(DST.at.x >> 2) + i] = df_add(low, two_product(step, float(i & ~4095u))).x;
}
