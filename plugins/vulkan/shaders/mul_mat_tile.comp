#version 450
// SPDX-License-Identifier: MIT
// dst[row, column] = sum over k of src0[k, row] * src1[k, column] for GPUs and many columns: a
// group computes 64 x 64 results; steps of 32 along k go through shared memory. FP16: tiles and
// the products within a step in half precision; COOPMAT: by cooperative matrices of half
// precision, accumulated in float. Sums over steps are floats in either.
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
layout(constant_id = 3) const uint A_TYPE = 0;
layout(constant_id = 4) const uint B_TYPE = 0;
#define UNPACK_FROM src0
#include "unpack.glsl"
#include "mul_mat_place.glsl"

const uint ROWS = 64, COLUMNS = 64, STEP = 32;
#ifdef COOPMAT
const uint GROUP = 128; // four subgroups of 32, each a quarter of the tile
#else
const uint GROUP = 256; // each 4 x 4 results
#endif
const uint QUADS = 8; // of a step

bool a_has_blocks() { return unpack_block(A_TYPE).x > 1u; }

// Elements k to k + 3 of a row of src0, zero behind the end.
vec4 load_a(const uint row, const uint k) {
    const uint end = SRC0.ne.x;
    if (a_has_blocks() || k + 4 <= end) return k < end ? src0_unpack4(A_TYPE, row, k) : vec4(0);
    vec4 x = vec4(0);
    for (uint i = k; i < end; ++i) x[i & 3u] = src0_load(A_TYPE, row + i * SRC0.nb.x);
    return x;
}
vec4 load_b(const uint column, const uint k) {
    vec4 y = vec4(0);
    [[unroll]] for (uint c = 0; c < 4; ++c) {
        if (k + c < SRC0.ne.x) y[c] = src1_load(B_TYPE, column + (k + c) * SRC1.nb.x);
    }
    return y;
}

#ifdef COOPMAT
shared NUMBER a_tile[ROWS * STEP]; // [row][k]
shared NUMBER b_tile[COLUMNS * STEP];
shared float results[ROWS * COLUMNS]; // [column][row]

void store_step(const uint row, const uint quad, const vec4 x, const vec4 y) {
    [[unroll]] for (uint c = 0; c < 4; ++c) {
        a_tile[row * STEP + 4 * quad + c] = NUMBER(x[c]);
        b_tile[row * STEP + 4 * quad + c] = NUMBER(y[c]);
    }
}
#else
const uint PITCH = ROWS / 4 + 1;
shared NUMBER4 a_tile[STEP * PITCH]; // [k][row]
shared NUMBER4 b_tile[STEP * PITCH];

void store_step(const uint row, const uint quad, const vec4 x, const vec4 y) {
    [[unroll]] for (uint c = 0; c < 4; ++c) {
        a_tile[(4 * quad + c) * PITCH + row / 4][row & 3u] = NUMBER(x[c]);
        b_tile[(4 * quad + c) * PITCH + row / 4][row & 3u] = NUMBER(y[c]);
    }
}
#endif

// Both tiles from k on.
void load_step(const Tile tile, const uint k) {
    [[unroll]] for (uint i = 0; i < ROWS * QUADS; i += GROUP) {
        const uint row = (i + gl_LocalInvocationID.x) / QUADS;
        const uint quad = (i + gl_LocalInvocationID.x) % QUADS;
        const uint a = tile.a + min(row, tile.rows - 1u) * SRC0.nb.y;
        const uint b = tile_b(tile, min(row, tile.columns - 1u));
        store_step(row, quad, load_a(a, k + 4 * quad), load_b(b, k + 4 * quad));
    }
}

#ifdef COOPMAT
void compute(const Tile tile) {
    fcoopmatNV<32, gl_ScopeSubgroup, 16, 16> sums[4];
    [[unroll]] for (uint i = 0; i < 4; ++i) sums[i] = fcoopmatNV<32, gl_ScopeSubgroup, 16, 16>(0.0);
    const uint first_row = gl_SubgroupID % 2 * 32, first_column = gl_SubgroupID / 2 * 32;
    for (uint k = 0; k < SRC0.ne.x; k += STEP) {
        load_step(tile, k);
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
            dst_f32[(tile_dst(tile, column) >> 2) + tile.row + row] = results[i];
    }
}
#else
void compute(const Tile tile) {
    const uint at_row = gl_LocalInvocationID.x % 16, at_column = gl_LocalInvocationID.x / 16;
    vec4 sums[4]; // by column
    [[unroll]] for (uint c = 0; c < 4; ++c) sums[c] = vec4(0);
    for (uint k = 0; k < SRC0.ne.x; k += STEP) {
        load_step(tile, k);
        barrier();
        NUMBER4 parts[4];
        [[unroll]] for (uint c = 0; c < 4; ++c) parts[c] = NUMBER4(0);
        [[unroll]] for (uint i = 0; i < STEP; ++i) {
            const NUMBER4 a = a_tile[i * PITCH + at_row];
            const NUMBER4 b = b_tile[i * PITCH + at_column];
            [[unroll]] for (uint c = 0; c < 4; ++c) parts[c] += a * b[c];
        }
        [[unroll]] for (uint c = 0; c < 4; ++c) sums[c] += vec4(parts[c]);
        barrier();
    }
    [[unroll]] for (uint c = 0; c < 4; ++c) {
        [[unroll]] for (uint r = 0; r < 4; ++r) {
            const uint row = 4 * at_row + r, column = 4 * at_column + c;
            if (row < tile.rows && column < tile.columns)
                dst_f32[(tile_dst(tile, column) >> 2) + tile.row + row] = sums[c][r];
        }
    }
}
#endif

void main() {
    const Tile tile = tile_of(group_linear(), ROWS, COLUMNS);
    if (tile.columns == 0u) return;
    compute(tile);
}
