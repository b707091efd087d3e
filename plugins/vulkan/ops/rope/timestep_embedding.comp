#version 450
// SPDX-License-Identifier: MIT
// timestep_embedding, F32: cosines, then sines, of the timestep times falling frequencies. An
// invocation per frequency of a timestep, or for the padding element.
#include "shaders/double_float.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)

void main() {
    const uint columns = (DST.ne.x + 1) / 2, half_ = DST.ne.x / 2;
    const uint i = invocation_linear();
    if (columns == 0 || i / columns >= DST.ne.y) return;
    const uint column = i % columns, row = i / columns;
    const uint y = (DST.at.x + row * DST.nb.y) >> 2;
    if (column >= half_) {
        dst_f32[y + 2 * half_] = 0.0;
        return;
    }
    const float timestep = src0_f32[(SRC0.at.x + row * SRC0.nb.x) >> 2];
    const vec2 frequency = df_times_power(DF_ONE_TURN, column);
    const vec2 turn = cos_sin_turns(df_fraction(df_multiply(frequency, timestep)));
    dst_f32[y + column] = turn.x;
    dst_f32[y + column + half_] = turn.y;
}
