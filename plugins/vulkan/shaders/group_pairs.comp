#version 450
// SPDX-License-Identifier: MIT
// For mul_mat_id: sorts the (slot, token) pairs by the matrix that src0 (the only source here, the
// ids) names, so that columns of one matrix can be computed together. Writes a table of tiles
// (matrix, first pair, pairs), number(0) of them, and then the pairs. Ids that name no matrix come
// last, as matrix number(1). One group.
#include "common.glsl"
VK_OPERAND(dst, 1)
VK_OPERAND(src0, 2)
layout(constant_id = 3) const uint COLUMNS = 4;

shared uint ends[1025]; // pairs per matrix, then where the next of a matrix goes

uint matrix_of(const uint pair) {
    const uvec2 at = uvec2(pair % SRC0.ne.x, pair / SRC0.ne.x);
    return min(src0_u32[(SRC0.at.x + at.x * SRC0.nb.x + at.y * SRC0.nb.y) >> 2], number(1));
}

void write_tiles(const uint to) {
    uint first = 0, n_tiles = 0;
    for (uint matrix = 0; matrix <= number(1); ++matrix) {
        const uint n = ends[matrix];
        for (uint i = 0; i < n; i += COLUMNS) {
            dst_u32[to + 3 * n_tiles] = matrix;
            dst_u32[to + 3 * n_tiles + 1] = first + i;
            dst_u32[to + 3 * n_tiles + 2] = min(COLUMNS, n - i);
            ++n_tiles;
        }
        ends[matrix] = first;
        first += n;
    }
    for (; n_tiles < number(0); ++n_tiles) dst_u32[to + 3 * n_tiles + 2] = 0;
}

void main() {
    const uint lane = gl_LocalInvocationID.x, lanes = gl_WorkGroupSize.x;
    const uint n_pairs = SRC0.ne.x * SRC0.ne.y, to = DST.at.x >> 2;
    for (uint i = lane; i <= number(1); i += lanes) ends[i] = 0;
    barrier();
    for (uint pair = lane; pair < n_pairs; pair += lanes) atomicAdd(ends[matrix_of(pair)], 1);
    barrier();
    if (lane == 0u) write_tiles(to);
    barrier();
    for (uint pair = lane; pair < n_pairs; pair += lanes)
        dst_u32[to + 3 * number(0) + atomicAdd(ends[matrix_of(pair)], 1)] = pair;
}
