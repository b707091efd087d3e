#version 450
// SPDX-License-Identifier: MIT
// cpy and dup to another type without blocks, elements in logical order. The source may have any
// type that unpack.glsl decodes. An invocation per run of up to four elements of the result.
#include "shaders/math.glsl"
#include "shaders/runs.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
GVK_RUNS(dst)
GVK_RUNS(src0)
#define UNPACK_FROM src0
#include "shaders/unpack.glsl"
layout(constant_id = 3) const uint DST_TYPE = 0;
layout(constant_id = 4) const uint SRC0_TYPE = 0;
layout(constant_id = 5) const bool SRC0_BLOCKS = false; // then rows are dense multiples of 4
layout(constant_id = 6) const bool FOURS = false; // runs never leave a row of the source
layout(constant_id = 7) const bool DST_VECTORS = false; // and are aligned
layout(constant_id = 8) const bool SRC0_VECTORS = false;
layout(constant_id = 9) const uint DIMS = 4; // 1: FOURS, and both sides are packed

float integer_limited(const float x, const float limit) {
    return x >= limit ? limit - 1.0 : x >= -limit ? x : -limit;
}

// Stores a float as any plain type. Integers saturate, NaN becomes the lowest one.
void store(const uint y, const float x) {
    if (DST_TYPE == TYPE_I32)
        dst_u32[y >> 2] = x >= 2147483648.0    ? 0x7fffffffu
                          : x >= -2147483648.0 ? uint(int(x))
                                               : 0x80000000u;
    else if (DST_TYPE == TYPE_I16)
        dst_store(TYPE_I16, y, integer_limited(x, 32768.0));
    else if (DST_TYPE == TYPE_I8)
        dst_store(TYPE_I8, y, integer_limited(x, 128.0));
    else
        dst_store(DST_TYPE, y, x);
}

// Four elements of the source from position `at` on.
vec4 load4(const uvec4 at) {
    const uint row = address(SRC0, uvec4(0, at.yzw));
    if (SRC0_BLOCKS) return src0_unpack4(SRC0_TYPE, row, at.x);
    const uint x = row + at.x * SRC0.nb.x, step = SRC0.nb.x;
    if (SRC0_VECTORS) return src0_load4(SRC0_TYPE, x);
    return vec4(src0_load(SRC0_TYPE, x), src0_load(SRC0_TYPE, x + step),
                src0_load(SRC0_TYPE, x + 2 * step), src0_load(SRC0_TYPE, x + 3 * step));
}

// Each invocation converts a run of elements. The source may have another shape: its element of the
// same number is taken.
void main() {
    const Run run = run_at(run_extents(DST.ne, DIMS), invocation_linear(), DIMS);
    if (run.n == 0) return;
    const uint i = run.at.x + DST.ne.x * (run.at.y + DST.ne.y * (run.at.z + DST.ne.z * run.at.w));
    const uint y = address(DST, run.at);
    if (FOURS) {
        const vec4 v = load4(DIMS == 1 ? run.at : element_at(SRC0.ne, i));
        if (DST_VECTORS) {
            dst_store4(DST_TYPE, y, v);
            // The result's rows are too unaligned for a vector store.
            return;
        }
        store(y, v.x);
        store(y + DST.nb.x, v.y);
        store(y + 2 * DST.nb.x, v.z);
        store(y + 3 * DST.nb.x, v.w);
    } else {
        for (uint k = 0; k < run.n; ++k)
            store(y + k * DST.nb.x,
                  src0_load(SRC0_TYPE, address(SRC0, element_at(SRC0.ne, i + k))));
    }
}
