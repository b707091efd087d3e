#version 450
// SPDX-License-Identifier: MIT
// repeat_back, F32: the sum of the tiles of src0 that have the result's shape. An invocation per
// element of the result, with a compensated (Kahan) sum.
#include "shaders/common.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)

void main() {
    const uint i = invocation_linear();
    if (i >= DST.ne.x * DST.ne.y * DST.ne.z * DST.ne.w) return;
    const uvec4 at = element_at(DST.ne, i);
    const uvec4 tiles = SRC0.ne / DST.ne;
    const uint n = tiles.x * tiles.y * tiles.z * tiles.w;
    float sum = 0, lost = 0; // what rounding takes from the sum
    for (uint tile = 0; tile < n; ++tile) {
        const uvec4 from = at + element_at(tiles, tile) * DST.ne;
        precise float term = src0_f32[address(SRC0, from) >> 2] - lost;
        precise float next = sum + term;
        precise float error = (next - sum) - term;
        lost = error;
        sum = next;
    }
    dst_f32[address(DST, at) >> 2] = sum;
}
