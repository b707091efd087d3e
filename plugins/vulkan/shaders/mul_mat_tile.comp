#version 450
// SPDX-License-Identifier: MIT
// dst[row, column] = sum over k of src0[k, row] * src1[k, column] for GPUs and many columns: a
// group computes 64 rows of 16, 32 or 64 columns, four invocations per column; steps of 32 along k
// go through shared memory. FP16: tiles and the products within a step in half precision; COOPMAT:
// by cooperative matrices of half precision, accumulated in float. Sums over steps are floats in
// either. ID: mul_mat_id, whose columns were sorted by matrix (group_pairs.comp).
#include "common.glsl"
#ifdef COOPMAT
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_NV_cooperative_matrix : require
#endif
#if defined(COOPMAT) || defined(FP16)
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define NUMBER float16_t
#define NUMBER4 f16vec4
#else
#define NUMBER float
#define NUMBER4 vec4
#endif
VK_OPERAND(dst, 1)
VK_OPERAND(src0, 2)
VK_OPERAND(src1, 3)
#ifdef ID
#define GROUPED
VK_OPERAND(src2, 4)
VK_OPERAND(src3, 5)
#endif
layout(constant_id = 3) const uint A_TYPE = 0;
layout(constant_id = 4) const uint B_TYPE = 0;
layout(constant_id = 5) const bool A_WIDE = false; // rows of src0 can be read 16 bytes at a time
layout(constant_id = 6) const bool B_WIDE = false; // so can those of src1
#define UNPACK_FROM src0
#include "unpack.glsl"
#include "mul_mat_place.glsl"

const uint ROWS = 64, STEP = 32;
#ifdef COOPMAT
const uint COLUMNS = 64, GROUP = 128; // four subgroups of 32, each a quarter of the tile
#else
const uint GROUP = gl_WorkGroupSize.x, COLUMNS = GROUP / 4; // 4 x 4 results per invocation
#endif
const uint QUADS = 8; // of a step
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

#ifdef COOPMAT
shared NUMBER a_tile[ROWS * STEP]; // [row][k]
shared NUMBER b_tile[COLUMNS * STEP];
shared float results[ROWS * COLUMNS]; // [column][row]

void store_a(const uint row, const uint quad, const vec4 x) {
    [[unroll]] for (uint c = 0; c < 4; ++c) a_tile[row * STEP + 4 * quad + c] = NUMBER(x[c]);
}
void store_b(const uint column, const uint quad, const vec4 y) {
    [[unroll]] for (uint c = 0; c < 4; ++c) b_tile[column * STEP + 4 * quad + c] = NUMBER(y[c]);
}
#else
const uint A_PITCH = ROWS / 4 + 1, B_PITCH = COLUMNS / 4 + 1;
shared NUMBER4 a_tile[STEP * A_PITCH]; // [k][row]
shared NUMBER4 b_tile[STEP * B_PITCH];

void store_a(const uint row, const uint quad, const vec4 x) {
    [[unroll]] for (uint c = 0; c < 4; ++c)
        a_tile[(4 * quad + c) * A_PITCH + row / 4][row & 3u] = NUMBER(x[c]);
}
void store_b(const uint column, const uint quad, const vec4 y) {
    [[unroll]] for (uint c = 0; c < 4; ++c)
        b_tile[(4 * quad + c) * B_PITCH + column / 4][column & 3u] = NUMBER(y[c]);
}
#endif

// Where the rows and columns begin that this invocation loads, GROUP / QUADS apart.
uint a_rows[A_LOADS];
uint b_columns[B_LOADS];

void open_tile(const Tile tile) {
    const uint first = gl_LocalInvocationID.x / QUADS;
    [[unroll]] for (uint i = 0; i < A_LOADS; ++i)
        a_rows[i] = tile.a + min(first + i * (GROUP / QUADS), tile.rows - 1u) * SRC0.nb.y;
    [[unroll]] for (uint i = 0; i < B_LOADS; ++i)
        b_columns[i] = tile_b(tile, min(first + i * (GROUP / QUADS), tile.columns - 1u));
}

// Both tiles from k on.
void load_step(const uint k) {
    const uint first = gl_LocalInvocationID.x / QUADS, quad = gl_LocalInvocationID.x % QUADS;
    [[unroll]] for (uint i = 0; i < A_LOADS; ++i)
        store_a(first + i * (GROUP / QUADS), quad, load_a(a_rows[i], k + 4 * quad));
    [[unroll]] for (uint i = 0; i < B_LOADS; ++i)
        store_b(first + i * (GROUP / QUADS), quad, load_b(b_columns[i], k + 4 * quad));
}

// An id that names no matrix picks NaN.
float result_of(const Tile tile, const float sum) {
    return tile.valid ? sum : uintBitsToFloat(0x7fc00000u);
}

#ifdef COOPMAT
void compute(const Tile tile) {
    fcoopmatNV<32, gl_ScopeSubgroup, 16, 16> sums[4];
    [[unroll]] for (uint i = 0; i < 4; ++i) sums[i] = fcoopmatNV<32, gl_ScopeSubgroup, 16, 16>(0.0);
    const uint first_row = gl_SubgroupID % 2 * 32, first_column = gl_SubgroupID / 2 * 32;
    for (uint k = 0; k < SRC0.ne.x; k += STEP) {
        load_step(k);
        barrier();
        [[unroll]] for (uint from = 0; from < STEP; from += 16) {
            fcoopmatNV<16, gl_ScopeSubgroup, 16, 16> a[2];
            fcoopmatNV<16, gl_ScopeSubgroup, 16, 16> b[2];
            [[unroll]] for (uint i = 0; i < 2; ++i) {
                coopMatLoadNV(a[i], a_tile, (first_row + 16 * i) * STEP + from, STEP, false);
                coopMatLoadNV(b[i], b_tile, (first_column + 16 * i) * STEP + from, STEP, true);
            }
            [[unroll]] for (uint i = 0; i < 4; ++i)
                sums[i] = coopMatMulAddNV(a[i % 2], b[i / 2], sums[i]);
        }
        barrier();
    }
    [[unroll]] for (uint i = 0; i < 4; ++i)
        coopMatStoreNV(sums[i], results,
                       (first_column + 16 * (i / 2)) * ROWS + first_row + 16 * (i % 2), ROWS, true);
    barrier();
    for (uint i = gl_LocalInvocationID.x; i < ROWS * COLUMNS; i += GROUP) {
        const uint row = i % ROWS, column = i / ROWS;
        if (row < tile.rows && column < tile.columns)
            dst_f32[(tile_dst(tile, column) >> 2) + tile.row + row] = result_of(tile, results[i]);
    }
}
#else
void compute(const Tile tile) {
    const uint at_row = gl_LocalInvocationID.x % 16, at_column = gl_LocalInvocationID.x / 16;
    vec4 sums[4]; // by column
    [[unroll]] for (uint c = 0; c < 4; ++c) sums[c] = vec4(0);
    for (uint k = 0; k < SRC0.ne.x; k += STEP) {
        load_step(k);
        barrier();
        NUMBER4 parts[4];
        [[unroll]] for (uint c = 0; c < 4; ++c) parts[c] = NUMBER4(0);
        [[unroll]] for (uint i = 0; i < STEP; ++i) {
            const NUMBER4 a = a_tile[i * A_PITCH + at_row];
            const NUMBER4 b = b_tile[i * B_PITCH + at_column];
            [[unroll]] for (uint c = 0; c < 4; ++c) parts[c] += a * b[c];
        }
        [[unroll]] for (uint c = 0; c < 4; ++c) sums[c] += vec4(parts[c]);
        barrier();
    }
    [[unroll]] for (uint c = 0; c < 4; ++c) {
        const uint column = 4 * at_column + c;
        if (column >= tile.columns) break;
        const uint to = (tile_dst(tile, column) >> 2) + tile.row + 4 * at_row;
        [[unroll]] for (uint r = 0; r < 4; ++r) {
            if (4 * at_row + r < tile.rows) dst_f32[to + r] = result_of(tile, sums[c][r]);
        }
    }
}
#endif

void main() {
    const Tile tile = tile_of(group_linear(), ROWS, COLUMNS);
    if (tile.columns == 0u) return;
    open_tile(tile);
    compute(tile);
}
