#version 450
// SPDX-License-Identifier: MIT
// set_rows without blocks: rows of F32 or F16 to the rows of an F32, F16 or BF16 result that
// src1 names; an index that the result does not have writes nothing. An invocation per run of up
// to four elements of src0.
#include "shaders/runs.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
GVK_OPERAND(src1, 3)
GVK_RUNS(dst)
GVK_RUNS(src0)
#include "ops/copy/rows.glsl"
layout(constant_id = 3) const uint DST_TYPE = 0;
layout(constant_id = 4) const uint SRC0_TYPE = 0;
layout(constant_id = 5) const bool WIDE = false; // indices of 64 bits
layout(constant_id = 6) const bool VECTORS = false; // runs are whole and aligned
layout(constant_id = 7) const uint DIMS = 4;

// Scatters rows: each invocation converts a run of a source row. Which of two rows with one index
// wins is undefined, as in ggml.
void main() {
    const Run run = run_at(SRC0.ne, invocation_linear(), DIMS);
    uint row;
    if (run.n == 0 || !target_row(run.at, WIDE, row)) return;
    const uint x = address(SRC0, run.at), y = address(DST, uvec4(run.at.x, row, run.at.zw));
    if (VECTORS) {
        dst_store4(DST_TYPE, y, src0_load4(SRC0_TYPE, x));
        return;
    }
    for (uint i = 0; i < run.n; ++i)
        dst_store(DST_TYPE, y + i * DST.nb.x, src0_load(SRC0_TYPE, x + i * SRC0.nb.x));
}
