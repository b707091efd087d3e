#version 450
// SPDX-License-Identifier: MIT
// get_rows: rows of src0 by the indices in src1, decoded to F32, or copied where they are I32.
// An index that src0 does not have gives NaN (I32: 0). An invocation per run of up to four
// elements of the result.
#include "shaders/math.glsl"
#include "shaders/runs.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
GVK_OPERAND(src1, 3)
GVK_RUNS(dst)
GVK_RUNS(src0)
#define UNPACK_FROM src0
#include "shaders/unpack.glsl"
layout(constant_id = 3) const uint SRC0_TYPE = 0;
layout(constant_id = 4) const bool SRC0_BLOCKS = false;
layout(constant_id = 5) const bool VECTORS = false; // runs are whole and aligned
layout(constant_id = 6) const uint DIMS = 4;

// An index out of range yields NaN, or 0 for integers: a shader can't fail the graph, and foreign
// memory must not be read.
void main() {
    const Run run = run_at(DST.ne, invocation_linear(), DIMS);
    if (run.n == 0) return;
    const uvec4 at = run.at;
    const uint id_at = SRC1.at.x + at.y * SRC1.nb.x + at.z * SRC1.nb.y + at.w * SRC1.nb.z;
    const uint id = src1_u32[id_at >> 2];
    const bool known = id < SRC0.ne.y;
    const uint row = address(SRC0, uvec4(0, known ? id : 0, at.zw)), y = address(DST, at);
    if (SRC0_BLOCKS) {
        const vec4 v = known ? src0_unpack4(SRC0_TYPE, row, at.x) : vec4(FLT_NAN);
        if (VECTORS) {
            dst_store4(TYPE_F32, y, v);
        } else {
            for (uint i = 0; i < 4; ++i) dst_f32[(y >> 2) + i] = v[i];
        }
        return;
    }
    if (VECTORS && SRC0_TYPE != TYPE_I32) {
        const uint x = row + at.x * SRC0.nb.x;
        dst_store4(TYPE_F32, y, known ? src0_load4(SRC0_TYPE, x) : vec4(FLT_NAN));
        return;
    }
    for (uint i = 0; i < run.n; ++i) {
        const uint x = row + (at.x + i) * SRC0.nb.x;
        if (SRC0_TYPE == TYPE_I32)
            dst_u32[(y >> 2) + i] = known ? src0_u32[x >> 2] : 0u;
        else
            dst_f32[(y >> 2) + i] = known ? src0_load(SRC0_TYPE, x) : FLT_NAN;
    }
}
