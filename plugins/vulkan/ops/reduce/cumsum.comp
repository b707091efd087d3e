#version 450
// SPDX-License-Identifier: MIT
// cumsum, F32: running sums along dimension 0, a row per group. A group scans as many elements
// as it has invocations (Hillis and Steele, log2 steps), then goes on; the sum so far is
// compensated (Kahan), as a long row's would drift.
#include "shaders/common.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)

shared float sums[gl_WorkGroupSize.x];

// A group scans a row in pieces of its size (Hillis and Steele), and adds the sum of what came
// before, with the rounding error of that sum (Kahan).
void main() {
    const uint row = group_linear(), id = gl_LocalInvocationID.x, size = gl_WorkGroupSize.x;
    if (row >= DST.ne.y * DST.ne.z * DST.ne.w) return;
    const uvec4 at = row_at(DST.ne, row);
    const uint x = address(SRC0, at) >> 2, y = address(DST, at) >> 2, n = DST.ne.x;
    precise float before = 0.0, lost = 0.0;
    for (uint from = 0; from < n; from += size) {
        sums[id] = from + id < n ? src0_f32[x + from + id] : 0.0;
        barrier();
        for (uint step = 1; step < size; step *= 2) {
            const float left = id >= step ? sums[id - step] : 0.0;
            barrier();
            sums[id] += left;
            barrier();
        }
        if (from + id < n) dst_f32[y + from + id] = before + (sums[id] + lost);
        // The next piece begins with the corrected sum.
        precise float term = sums[size - 1] + lost;
        precise float next = before + term;
        lost = term - (next - before);
        before = next;
        barrier();
    }
}
