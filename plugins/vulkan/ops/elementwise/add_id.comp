#version 450
// SPDX-License-Identifier: MIT
// add_id, F32: y[:, u, t] = a[:, u, t] + b[:, ids[u, t]]; an index that b does not have adds
// NaN. An invocation per run of up to four elements.
#include "shaders/math.glsl"
#include "shaders/runs.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
GVK_OPERAND(src1, 3)
GVK_OPERAND(src2, 4)

void main() {
    const Run run = run_at(DST.ne, invocation_linear(), 4);
    if (run.n == 0) return;
    const uint id = src2_u32[(SRC2.at.x + run.at.y * SRC2.nb.x + run.at.z * SRC2.nb.y) >> 2];
    const bool known = id < SRC1.ne.y;
    const uint y = address(DST, run.at) >> 2, a = address(SRC0, run.at) >> 2;
    const uint b = address(SRC1, uvec4(run.at.x, known ? id : 0u, 0, 0)) >> 2;
    for (uint i = 0; i < run.n; ++i)
        dst_f32[y + i] = known ? src0_f32[a + i] + src1_f32[b + i] : FLT_NAN;
}
