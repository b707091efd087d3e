#version 450
// SPDX-License-Identifier: MIT
// glu, gated linear units: y = act(x) g, where x and g are two operands (SPLIT) or the halves of
// each row of one. An invocation per run of up to four elements of the result.
#include "shaders/glu.glsl"
#include "shaders/runs.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
GVK_OPERAND(src1, 3)
GVK_RUNS(dst)
GVK_RUNS(src0)
GVK_RUNS(src1)
layout(constant_id = 3) const uint TYPE = 0;
layout(constant_id = 4) const uint OP = 0;
layout(constant_id = 5) const uint DIMS = 4;
layout(constant_id = 6) const bool SPLIT = false;
layout(constant_id = 7) const bool SWAPPED = false;
layout(constant_id = 8) const bool VECTORS = false; // runs are whole and aligned

// Address of the gate of a run.
uint gate_address(const uvec4 at, const uint second_half) {
    return SPLIT ? address(SRC1, at) : address(SRC0, at) + (SWAPPED ? 0u : second_half);
}

// As binary.comp; x and gate may be in the same row.
void main() {
    const uvec4 ne = run_extents(DST.ne, DIMS);
    const Run run = run_at(ne, invocation_linear(), DIMS);
    if (run.n == 0) return;
    const uint size = plain_size(TYPE), second_half = DST.ne.x * size;
    const uint y = address(DST, run.at), g = gate_address(run.at, second_half);
    const uint x = address(SRC0, run.at) + (!SPLIT && SWAPPED ? second_half : 0u);
    if (VECTORS) {
        const vec4 a = src0_load4(TYPE, x), b = SPLIT ? src1_load4(TYPE, g) : src0_load4(TYPE, g);
        dst_store4(TYPE, y, vec4(glu(OP, a.x, b.x), glu(OP, a.y, b.y), glu(OP, a.z, b.z),
                                 glu(OP, a.w, b.w)));
        return;
    }
    for (uint i = 0; i < run.n; ++i) {
        const uint step = i * size;
        const float b = SPLIT ? src1_load(TYPE, g + step) : src0_load(TYPE, g + step);
        dst_store(TYPE, y + step, glu(OP, src0_load(TYPE, x + step), b));
    }
}
