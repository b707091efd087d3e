#version 450
// SPDX-License-Identifier: MIT
// add, sub, mul, div and add1: y = a . b with b repeated to a's shape; computed in float. An
// invocation per run of up to four elements.
#include "shaders/runs.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
GVK_OPERAND(src1, 3)
GVK_RUNS(dst)
GVK_RUNS(src0)
GVK_RUNS(src1)
layout(constant_id = 3) const uint DST_TYPE = 0;
layout(constant_id = 4) const uint SRC0_TYPE = 0;
layout(constant_id = 5) const uint DIMS = 4;
layout(constant_id = 6) const uint SRC1_TYPE = 0;
layout(constant_id = 7) const uint OP = 0;
// How dimension 0 of b is repeated.
layout(constant_id = 8) const uint REPEAT = 0;
layout(constant_id = 9) const bool VECTORS = false; // runs are whole and aligned
layout(constant_id = 10) const uint ROWS = 2; // how the other dimensions are
const uint REPEAT_NOT = 0, REPEAT_ONE = 1, REPEAT_MANY = 2;

// The operation is a constant of the pipeline.
vec4 compute(const vec4 a, const vec4 b) {
    switch (OP) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    default: return a / b;
    }
}

// Address of the row of b that the run's row has.
uint b_row(const uvec4 at) {
    if (DIMS == 1 || ROWS == REPEAT_ONE) return SRC1.at.x;
    if (ROWS == REPEAT_NOT) return address(SRC1, uvec4(0, at.yzw));
    return address(SRC1, uvec4(0, at.y % SRC1.ne.y, at.z % SRC1.ne.z, at.w % SRC1.ne.w));
}

float load_b(const uint row, const uint i0) {
    const uint i = REPEAT == REPEAT_NOT ? i0 : REPEAT == REPEAT_ONE ? 0u : i0 % SRC1.ne.x;
    return src1_load(SRC1_TYPE, row + i * SRC1.nb.x);
}

// Each invocation computes a run of elements: four at once as a vector where rows are aligned.
void main() {
    const uvec4 ne = run_extents(DST.ne, DIMS);
    const Run run = run_at(ne, invocation_linear(), DIMS);
    if (run.n == 0) return;
    const uint y = address(DST, run.at), a = address(SRC0, run.at), b = b_row(run.at);
    if (VECTORS) {
        const vec4 x = REPEAT == REPEAT_ONE
                           ? vec4(load_b(b, 0))
                           : src1_load4(SRC1_TYPE, b + run.at.x * plain_size(SRC1_TYPE));
        dst_store4(DST_TYPE, y, compute(src0_load4(SRC0_TYPE, a), x));
        return;
    }
    for (uint i = 0; i < run.n; ++i) {
        const vec4 x = vec4(src0_load(SRC0_TYPE, a + i * SRC0.nb.x));
        dst_store(DST_TYPE, y + i * DST.nb.x, compute(x, vec4(load_b(b, run.at.x + i))).x);
    }
}
