#version 450
// SPDX-License-Identifier: MIT
// dst[row, column] = sum over k of src0[k, row] * src1[k, column] for GPUs and many columns: a
// group computes 64 rows of 16, 32 or 64 columns, or 128 of 128, as tile.glsl says. ID: mul_mat_id,
// whose columns were sorted by matrix (group_pairs.comp). SPLIT: a group takes one of number(0)
// parts of k, of number(1) elements, and mul_mat_join.comp adds them up.
#include "shaders/common.glsl"
#include "shaders/tile.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
GVK_OPERAND(src1, 3)
#ifdef ID
#define GROUPED
GVK_OPERAND(src2, 4)
GVK_OPERAND(src3, 5)
#else
GVK_OPERAND(parts_of, 4)
#endif
layout(constant_id = 3) const uint A_TYPE = 0;
layout(constant_id = 4) const uint B_TYPE = 0;
layout(constant_id = 5) const bool A_WIDE = false; // rows of src0 can be read 16 bytes at a time
layout(constant_id = 6) const bool B_WIDE = false; // so can those of src1
layout(constant_id = 8) const bool SPLIT = false;
#define UNPACK_FROM src0
#include "shaders/unpack.glsl"
#include "ops/mul_mat/mul_mat_place.glsl"

const uint A_LOADS = ROWS * QUADS / GROUP, B_LOADS = COLUMNS * QUADS / GROUP;

bool a_has_blocks() { return unpack_block(A_TYPE).x > 1u; }

// Elements k to k + 3 of a row of src0, zero behind the end.
vec4 load_a(const uint row, const uint k) {
    const uint end = SRC0.ne.x;
    if (A_WIDE && !a_has_blocks() && k + 4 <= end) {
        if (A_TYPE == TYPE_F32) return src0_vec4[(row >> 4) + k / 4];
        const uint at = (row >> 2) + k / 2;
        return floats_of(A_TYPE, uvec2(src0_u32[at], src0_u32[at + 1]));
    }
    if (a_has_blocks() || k + 4 <= end) return k < end ? src0_unpack4(A_TYPE, row, k) : vec4(0);
    vec4 x = vec4(0);
    for (uint i = k; i < end; ++i) x[i & 3u] = src0_load(A_TYPE, row + i * SRC0.nb.x);
    return x;
}
// Elements k to k + 3 of a column of src1, zero behind the end.
vec4 load_b(const uint column, const uint k) {
    const uint end = SRC0.ne.x;
    if (B_WIDE && k + 4 <= end) {
        if (B_TYPE == TYPE_F32) return src1_vec4[(column >> 4) + k / 4];
        const uint at = (column >> 2) + k / 2;
        return floats_of(B_TYPE, uvec2(src1_u32[at], src1_u32[at + 1]));
    }
    vec4 y = vec4(0);
    [[unroll]] for (uint c = 0; c < 4; ++c) {
        if (k + c < end) y[c] = src1_load(B_TYPE, column + (k + c) * SRC1.nb.x);
    }
    return y;
}

Tile tile;
// Where the rows and columns begin that this invocation loads, GROUP / QUADS apart.
uint a_rows[A_LOADS];
uint b_columns[B_LOADS];

// Addresses of what this invocation loads in each step; those beyond the edge repeat the last
// one.
void open_tile() {
    const uint first = gl_LocalInvocationID.x / QUADS;
    [[unroll]] for (uint i = 0; i < A_LOADS; ++i)
        a_rows[i] = tile.a + min(first + i * (GROUP / QUADS), tile.rows - 1u) * SRC0.nb.y;
    [[unroll]] for (uint i = 0; i < B_LOADS; ++i)
        b_columns[i] = tile_b(tile, min(first + i * (GROUP / QUADS), tile.columns - 1u));
}

// Brings STEP elements of all rows and columns into shared memory; neighbouring invocations load
// along k.
void load_step(const uint k) {
    const uint first = gl_LocalInvocationID.x / QUADS, quad = gl_LocalInvocationID.x % QUADS;
    [[unroll]] for (uint i = 0; i < A_LOADS; ++i)
        store_a(first + i * (GROUP / QUADS), quad, load_a(a_rows[i], k + 4 * quad));
    [[unroll]] for (uint i = 0; i < B_LOADS; ++i)
        store_b(first + i * (GROUP / QUADS), quad, load_b(b_columns[i], k + 4 * quad));
}

#ifdef ID
// An id that names no matrix picks NaN.
void store_result(const uint row, const uint column, const float sum) {
    if (row < tile.rows && column < tile.columns)
        dst_f32[(tile_dst(tile, column) >> 2) + tile.row + row] =
            tile.valid ? sum : uintBitsToFloat(0x7fc00000u);
}

// The tile is the whole result of this group.
void main() {
    tile = tile_of(group_linear(), ROWS, COLUMNS);
    if (tile.columns == 0u) return;
    open_tile();
    compute_tile(0, SRC0.ne.x);
}
#else
uint part;

// Parts of a split product go to scratch memory, which a second launch adds up.
void store_result(const uint row, const uint column, const float sum) {
    if (row >= tile.rows || column >= tile.columns) return;
    if (SPLIT) {
        const uint matrix = part * DST.ne.w * DST.ne.z + tile.batch.y * DST.ne.z + tile.batch.x;
        const uint at = (matrix * DST.ne.y + tile.column + column) * DST.ne.x + tile.row + row;
        parts_of_f32[(SRC2.at.x >> 2) + at] = sum;
    } else {
        dst_f32[(tile_dst(tile, column) >> 2) + tile.row + row] = sum;
    }
}

// With SPLIT the depth is divided among groups: for products with few tiles and a large depth,
// which otherwise would leave most of the device idle.
void main() {
    const uint parts = SPLIT ? number(0) : 1, group = group_linear() / parts;
    part = group_linear() - group * parts;
    tile = tile_of(group, ROWS, COLUMNS);
    if (tile.columns == 0u) return;
    open_tile();
    const uint begin = SPLIT ? part * number(1) : 0;
    compute_tile(begin, SPLIT ? min(begin + number(1), SRC0.ne.x) : SRC0.ne.x);
}
#endif
