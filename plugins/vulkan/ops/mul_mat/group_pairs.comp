#version 450
// SPDX-License-Identifier: MIT
// For mul_mat_id: sorts the (slot, token) pairs by the matrix that src0 (the only source here, the
// ids) names, so that columns of one matrix can be computed together. Writes a table of tiles
// (matrix, first pair, pairs), number(0) of them, and then the pairs. Ids that name no matrix come
// last, as matrix number(1). One group.
#include "shaders/common.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
layout(constant_id = 3) const uint COLUMNS = 4;

shared uint ends[1025]; // pairs per matrix, then where the next of a matrix goes
shared uvec2 totals[gl_WorkGroupSize.x]; // pairs and tiles of the matrices of an invocation

uint matrix_of(const uint pair) {
    const uvec2 at = uvec2(pair % SRC0.ne.x, pair / SRC0.ne.x);
    return min(src0_u32[(SRC0.at.x + at.x * SRC0.nb.x + at.y * SRC0.nb.y) >> 2], number(1));
}

// Each invocation takes as many neighbouring matrices.
void write_tiles(const uint to) {
    const uint lane = gl_LocalInvocationID.x, lanes = gl_WorkGroupSize.x;
    const uint share = number(1) / lanes + 1;
    const uint begin = min(lane * share, number(1) + 1), end = min(begin + share, number(1) + 1);
    uvec2 mine = uvec2(0);
    for (uint matrix = begin; matrix < end; ++matrix)
        mine += uvec2(ends[matrix], (ends[matrix] + COLUMNS - 1) / COLUMNS);
    totals[lane] = mine;
    barrier();
    uvec2 next = uvec2(0), all = uvec2(0);
    for (uint i = 0; i < lanes; ++i) {
        if (i == lane) next = all;
        all += totals[i];
    }
    for (uint matrix = begin; matrix < end; ++matrix) {
        const uint n = ends[matrix];
        for (uint i = 0; i < n; i += COLUMNS) {
            dst_u32[to + 3 * next.y] = matrix;
            dst_u32[to + 3 * next.y + 1] = next.x + i;
            dst_u32[to + 3 * next.y + 2] = min(COLUMNS, n - i);
            ++next.y;
        }
        ends[matrix] = next.x;
        next.x += n;
    }
    for (uint i = all.y + lane; i < number(0); i += lanes) dst_u32[to + 3 * i + 2] = 0;
}

// Counting sort of the pairs of token and expert by expert: counts, prefix sums with the list of
// tiles, then the pairs in their places. One group does it all, since the pairs are few.
void main() {
    const uint lane = gl_LocalInvocationID.x, lanes = gl_WorkGroupSize.x;
    const uint n_pairs = SRC0.ne.x * SRC0.ne.y, to = DST.at.x >> 2;
    for (uint i = lane; i <= number(1); i += lanes) ends[i] = 0;
    barrier();
    for (uint pair = lane; pair < n_pairs; pair += lanes) atomicAdd(ends[matrix_of(pair)], 1);
    barrier();
    write_tiles(to);
    barrier();
    for (uint pair = lane; pair < n_pairs; pair += lanes)
        dst_u32[to + 3 * number(0) + atomicAdd(ends[matrix_of(pair)], 1)] = pair;
}
