// SPDX-License-Identifier: MIT
// Sums of products by tiles: a group computes ROWS by COLUMNS results, each the sum over k of
// element k of a row of A and of a column of B, in steps through shared memory. FP16: tiles and the
// products within a step in half precision; COOPMAT: by cooperative matrices of half precision,
// accumulated in float. Sums over steps are floats in either. Large products take larger tiles, so
// that more is multiplied per access to shared memory.
#ifndef TILE_GLSL
#define TILE_GLSL

#include "shaders/common.glsl"
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

#ifdef COOPMAT
const uint ROWS = 64, COLUMNS = 64, STEP = 32;
const uint GROUP = 128; // four subgroups of 32, each a quarter of the tile
#else
layout(constant_id = 7) const uint SPAN = 1; // an invocation has 4 SPAN by 4 SPAN results
const uint GROUP = gl_WorkGroupSize.x;
const uint ROWS = 64 * SPAN, COLUMNS = GROUP / 4 * SPAN, STEP = SPAN == 1 ? 32 : 16;
#endif
const uint QUADS = STEP / 4;

// The including shader defines these two: what stores elements k to k + STEP - 1 of all rows and
// columns, in quads, by store_a() and store_b(); and what becomes of a result.
void load_step(const uint k);
void store_result(const uint row, const uint column, const float sum);

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

// All results, of the elements from `begin`, a multiple of 32, to before `end`.
#ifdef COOPMAT
void compute_tile(const uint begin, const uint end) {
    fcoopmatNV<32, gl_ScopeSubgroup, 16, 16> sums[4];
    [[unroll]] for (uint i = 0; i < 4; ++i) sums[i] = fcoopmatNV<32, gl_ScopeSubgroup, 16, 16>(0.0);
    const uint first_row = gl_SubgroupID % 2 * 32, first_column = gl_SubgroupID / 2 * 32;
    for (uint k = begin; k < end; k += STEP) {
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
    for (uint i = gl_LocalInvocationID.x; i < ROWS * COLUMNS; i += GROUP)
        store_result(i % ROWS, i / ROWS, results[i]);
}
#else
vec4 sums[4 * SPAN * SPAN]; // four rows each; rows 64 apart, then columns
#ifdef FP16
f16vec4 parts[4 * SPAN * SPAN];
#else
#define parts sums
#endif

// Products of one step out of shared memory: each invocation has SPAN x SPAN blocks of 4 x 4
// results in registers. `a` covers four rows.
void multiply_step() {
    const uint at_row = gl_LocalInvocationID.x % 16, at_column = gl_LocalInvocationID.x / 16;
    [[unroll]] for (uint i = 0; i < STEP; ++i) {
        NUMBER4 a[SPAN];
        [[unroll]] for (uint r = 0; r < SPAN; ++r) a[r] = a_tile[i * A_PITCH + at_row + 16 * r];
        [[unroll]] for (uint c = 0; c < SPAN; ++c) {
            const NUMBER4 b = b_tile[i * B_PITCH + at_column + GROUP / 16 * c];
            [[unroll]] for (uint k = 0; k < 4 * SPAN; ++k)
                parts[4 * SPAN * c + k] += a[k % SPAN] * b[k / SPAN];
        }
    }
}

// Multiplies a tile of rows with a tile of columns over [begin, end) of the depth, in steps that
// are loaded into shared memory. An invocation has blocks of 4 x 4 results in registers.
void compute_tile(const uint begin, const uint end) {
    const uint at_row = gl_LocalInvocationID.x % 16, at_column = gl_LocalInvocationID.x / 16;
    [[unroll]] for (uint i = 0; i < 4 * SPAN * SPAN; ++i) sums[i] = vec4(0);
    for (uint k = begin; k < end; k += STEP) {
        load_step(k);
        barrier();
// Half-precision partial sums are added up in single precision after each step, so that their error
// doesn't grow with the depth.
#ifdef FP16
        [[unroll]] for (uint i = 0; i < 4 * SPAN * SPAN; ++i) parts[i] = f16vec4(0);
#endif
        multiply_step();
#ifdef FP16
        [[unroll]] for (uint i = 0; i < 4 * SPAN * SPAN; ++i) sums[i] += vec4(parts[i]);
#endif
        barrier();
    }
    [[unroll]] for (uint i = 0; i < 4 * SPAN * SPAN; ++i) {
        const uint c = i / (4 * SPAN), k = i % (4 * SPAN);
        const uint row = 4 * at_row + 64 * (k % SPAN);
        const uint column = 4 * at_column + GROUP / 4 * c + k / SPAN;
        [[unroll]] for (uint r = 0; r < 4; ++r) store_result(row + r, column, sums[i][r]);
    }
}
#endif

#endif
