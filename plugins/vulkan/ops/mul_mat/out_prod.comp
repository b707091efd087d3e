#version 450
// SPDX-License-Identifier: MIT
// out_prod: dst[i, j] = sum over t of src0[i, t] * src1[j, t]. An invocation computes 4 x 8
// results in registers.
#include "shaders/common.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
GVK_OPERAND(src1, 3)
layout(constant_id = 3) const uint A_TYPE = 0;
layout(constant_id = 4) const uint B_TYPE = 0;
#define UNPACK_FROM src0
#include "shaders/unpack.glsl"
const uint ROWS = 4, COLUMNS = 8;

// Elements i to i + 3 of a row of src0, 0 behind the end.
vec4 load_a(const uint row, const uint i) {
    const uint end = SRC0.ne.x;
    if (i + 4 <= end) return src0_unpack4(A_TYPE, row, i);
    vec4 x = vec4(0);
    for (uint c = i; c < end; ++c) x[c & 3u] = src0_load(A_TYPE, row + c * SRC0.nb.x);
    return x;
}

// The sum over t of a[i, t] b[j, t]: no shared memory, each loaded element is used ROWS or COLUMNS
// times.
void main() {
    const uvec2 tiles = (DST.ne.xy + uvec2(ROWS, COLUMNS) - 1u) / uvec2(ROWS, COLUMNS);
    uint n = invocation_linear();
    if (n >= tiles.x * tiles.y * DST.ne.z * DST.ne.w) return;
    const uint i = n % tiles.x * ROWS;
    n /= tiles.x;
    const uint j = n % tiles.y * COLUMNS;
    n /= tiles.y;
    const uvec2 batch = uvec2(n % DST.ne.z, n / DST.ne.z);
    const uvec2 weights = batch / (SRC1.ne.zw / SRC0.ne.zw);
    uint a = SRC0.at.x + weights.x * SRC0.nb.z + weights.y * SRC0.nb.w;
    uint b = SRC1.at.x + batch.x * SRC1.nb.z + batch.y * SRC1.nb.w;
    uint columns[COLUMNS];
    vec4 sums[COLUMNS];
    [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
        columns[c] = min(j + c, DST.ne.y - 1u) * SRC1.nb.x;
        sums[c] = vec4(0);
    }
    for (uint t = 0; t < SRC0.ne.y; ++t) {
        const vec4 x = load_a(a, i);
        [[unroll]] for (uint c = 0; c < COLUMNS; ++c)
            sums[c] += x * src1_load(B_TYPE, b + columns[c]);
        a += SRC0.nb.y;
        b += SRC1.nb.y;
    }
    const uint to = DST.at.x + batch.x * DST.nb.z + batch.y * DST.nb.w;
    [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
            if (i + r < DST.ne.x && j + c < DST.ne.y)
                dst_f32[((to + (j + c) * DST.nb.y) >> 2) + i + r] = sums[c][r];
        }
    }
}
