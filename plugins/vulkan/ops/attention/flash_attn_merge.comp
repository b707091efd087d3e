#version 450
// SPDX-License-Identifier: MIT
// flash_attn_ext, second launch of a split: merges the number(2) parts of each of number(5) query
// rows from row number(4) on. A part, in scratch memory as src1, holds the weighted sums of V
// relative to its largest score, then that score and the sum of its weights. A query row per group,
// channels over its invocations.
#include "ops/attention/attention.glsl"

// Combines the parts of a split launch: each has a maximum, a sum of weights and unnormalised
// values, which are rescaled to the common maximum.
void main() {
    const uint number_of_row = group_linear();
    if (number_of_row >= number(5)) return;
    const uvec3 row = row_at(SRC0.ne, number(4) + number_of_row).yzw;
    const uint channels = DST.ne.x, parts = number(2), size = part_size();
    const uint from = (SRC1.at.x >> 2) + part_index(row, 0) * size;
    float largest = -FLT_INFINITY;
    for (uint i = 0; i < parts; ++i)
        // A part's last four words begin with its maximum and its sum.
        largest = max(largest, src1_f32[from + i * size + size - 4]);
    float total = 0;
    for (uint i = 0; i < parts; ++i) {
        const float most = src1_f32[from + i * size + size - 4];
        total += rescale(most, largest) * src1_f32[from + i * size + size - 3];
    }
    const float closing = closing_factor(largest, total, row.y);
    for (uint c = gl_LocalInvocationID.x; c < channels; c += gl_WorkGroupSize.x) {
        float sum = 0;
        for (uint i = 0; i < parts; ++i) {
            const float factor = rescale(src1_f32[from + i * size + size - 4], largest);
            sum += factor * src1_f32[from + i * size + c];
        }
        dst_f32[(dst_address(row) >> 2) + c] = sum * closing;
    }
}
