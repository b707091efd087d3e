#version 450
// SPDX-License-Identifier: MIT
// dst[row, column] = sum over k of src0[k, row] * src1[k, column]. A group computes a tile of
// ROWS by COLUMNS; its invocations share out k and add up at the end. For few columns, where
// reading src0 is what counts, and for all products on drivers that run on the CPU: each load
// serves many multiplications out of registers, and there is neither shared memory nor a barrier
// in the loop. BLOCKS: src0 is of a block type; ID: mul_mat_id; SUBGROUP: sums with subgroup
// operations; GLU: of the products with src0 and with src2, a matrix like it. Else src2 is added,
// repeated, if BIAS.
#include "shaders/common.glsl"
#ifdef SUBGROUP
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
GVK_OPERAND(src1, 3)
GVK_OPERAND(src2, 4)
#ifdef GROUPED
GVK_OPERAND(src3, 5)
#endif
#ifdef GLU
#include "shaders/glu.glsl"
#endif
layout(constant_id = 3) const uint A_TYPE = 0;
layout(constant_id = 4) const uint B_TYPE = 0;
layout(constant_id = 5) const uint ROWS = 4;
layout(constant_id = 6) const uint COLUMNS = 1;
layout(constant_id = 7) const bool A_WIDE = false; // rows of src0 can be read 16 bytes at a time
layout(constant_id = 8) const bool B_WIDE = false; // so can those of src1
layout(constant_id = 9) const bool BIAS = false;
layout(constant_id = 10) const uint GLU_OP = 0;

#ifdef BLOCKS
#define UNPACK_FROM src0
#include "shaders/unpack.glsl"
#define UNPACK_FROM src0
#include "shaders/unpack_group.glsl"
#ifdef GLU
#define UNPACK_FROM src2
#include "shaders/unpack.glsl"
#define UNPACK_FROM src2
#include "shaders/unpack_group.glsl"
#endif
const uint QUADS = 8; // vec4s per step of an invocation
#else
const uint QUADS = 2;
#endif
#include "ops/mul_mat/mul_mat_place.glsl"

shared float partial[256];

// Step g of a row of a matrix: 32 elements of blocks, 8 of others.
#ifdef BLOCKS
#define LOAD_STEP(matrix) matrix##_group_unpack(A_TYPE, A_WIDE, row, g, x);
#else
#define LOAD_STEP(matrix)                                                                          \
    if (A_TYPE == TYPE_F32) {                                                                      \
        x[0] = matrix##_vec4[(row >> 4) + 2 * g];                                                  \
        x[1] = matrix##_vec4[(row >> 4) + 2 * g + 1];                                              \
    } else {                                                                                       \
        const uvec4 words = matrix##_uvec4[(row >> 4) + g];                                        \
        x[0] = floats_of(A_TYPE, words.xy);                                                        \
        x[1] = floats_of(A_TYPE, words.zw);                                                        \
    }
#endif

void load_a(const uint row, const uint g, out vec4 x[8]) { LOAD_STEP(src0) }
#ifdef GLU
void load_second(const uint row, const uint g, out vec4 x[8]) { LOAD_STEP(src2) }
#endif

// Element k of a column, for columns that can't be read in steps.
float load_b(const uint column, const uint k) {
    return src1_load(B_TYPE, column + k * SRC1.nb.x);
}

// Step g of a column, as vectors; the order of elements is that of a row's step.
void load_b_step(const uint column, const uint g, out vec4 y[8]) {
    [[unroll]] for (uint i = 0; i < QUADS; i += 2) {
        const uint k = 4 * (g * QUADS + i);
        if (B_WIDE && B_TYPE == TYPE_F32) {
            y[i] = src1_vec4[(column >> 4) + k / 4];
            y[i + 1] = src1_vec4[(column >> 4) + k / 4 + 1];
        } else if (B_WIDE) {
            const uvec4 words = src1_uvec4[(column >> 4) + k / 8];
            y[i] = floats_of(B_TYPE, words.xy);
            y[i + 1] = floats_of(B_TYPE, words.zw);
        } else {
            [[unroll]] for (uint c = 0; c < 4; ++c) {
                y[i][c] = load_b(column, k + c);
                y[i + 1][c] = load_b(column, k + 4 + c);
            }
        }
    }
}

// Sum over all invocations; each gets it. By subgroups first, if there are such operations.
float sum_over_group(const float value) {
#ifdef SUBGROUP
    const float sum = subgroupAdd(value);
    if (gl_NumSubgroups == 1u) return sum;
    const uint parts = gl_NumSubgroups;
    if (subgroupElect()) partial[gl_SubgroupID] = sum;
#else
    const uint parts = gl_WorkGroupSize.x;
    partial[gl_LocalInvocationIndex] = value;
#endif
    barrier();
    float total = 0;
    for (uint i = 0; i < parts; ++i) total += partial[i];
    barrier();
    return total;
}

uint a[ROWS];
uint b[COLUMNS];
float sums[ROWS * COLUMNS];
#ifdef GLU
uint second[ROWS];
float second_sums[ROWS * COLUMNS];
#endif

// Addresses of the tile's rows and columns. Those beyond the edge repeat the last one and aren't
// stored.
void open_tile(const Tile tile) {
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        const uint row = min(r, tile.rows - 1u);
        a[r] = tile.a + row * SRC0.nb.y;
#ifdef GLU
        const uvec2 weights = tile.batch / (SRC1.ne.zw / SRC0.ne.zw);
        second[r] = SRC2.at.x + weights.x * SRC2.nb.z + weights.y * SRC2.nb.w +
                    (tile.row + row) * SRC2.nb.y;
#endif
    }
    [[unroll]] for (uint c = 0; c < COLUMNS; ++c) b[c] = tile_b(tile, min(c, tile.columns - 1u));
    [[unroll]] for (uint i = 0; i < ROWS * COLUMNS; ++i) {
        sums[i] = 0;
#ifdef GLU
        second_sums[i] = 0;
#endif
    }
}

vec4 y[8 * COLUMNS]; // a step of each column

float dot_step(const vec4 x[8], const uint c) {
    vec4 sum = x[0] * y[8 * c];
    [[unroll]] for (uint i = 1; i < QUADS; ++i) sum += x[i] * y[8 * c + i];
    return (sum.x + sum.y) + (sum.z + sum.w);
}

// Adds 32 (of plain types: 8) elements of every row and column.
void add_step(const uint g) {
    [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
        vec4 column[8];
        load_b_step(b[c], g, column);
        [[unroll]] for (uint i = 0; i < QUADS; ++i) y[8 * c + i] = column[i];
    }
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        vec4 x[8];
        load_a(a[r], g, x);
        [[unroll]] for (uint c = 0; c < COLUMNS; ++c) sums[r * COLUMNS + c] += dot_step(x, c);
#ifdef GLU
        load_second(second[r], g, x);
        [[unroll]] for (uint c = 0; c < COLUMNS; ++c)
            second_sums[r * COLUMNS + c] += dot_step(x, c);
#endif
    }
}

// One element of k, for what steps do not cover.
#ifndef BLOCKS
// The elements that are left behind the last whole step.
void add_element(const uint k) {
    [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
        const float value = load_b(b[c], k);
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
            sums[r * COLUMNS + c] += src0_load(A_TYPE, a[r] + k * SRC0.nb.x) * value;
#ifdef GLU
            second_sums[r * COLUMNS + c] += src2_load(A_TYPE, second[r] + k * SRC2.nb.x) * value;
#endif
        }
    }
}
#endif

// The value to be stored: with bias, through the GLU, or NaN for an id that names no matrix.
float finished(const Tile tile, const uint r, const uint c, const float sum) {
#ifdef GLU
    return glu(GLU_OP, sum, sum_over_group(second_sums[r * COLUMNS + c]));
#elif defined(ID)
    return tile.valid ? sum : uintBitsToFloat(0x7fc00000u);
#else
    if (!BIAS) return sum;
    const uvec4 at = uvec4(tile.row + r, tile.column + c, tile.batch);
    return sum + src2_f32[address(SRC2, at % SRC2.ne) >> 2];
#endif
}

// For few columns: the group's lanes go through the depth together, so that neighbouring lanes read
// neighbouring weights, which is what bounds such products.
void main() {
    const Tile tile = tile_of(group_linear(), ROWS, COLUMNS);
    if (tile.columns == 0u) return;
    const uint k_end = SRC0.ne.x;
    const uint lane = gl_LocalInvocationID.x;
    const uint lanes = gl_WorkGroupSize.x;
    open_tile(tile);
#ifdef BLOCKS
    const uint steps = k_end / 32u;
#else
    const uint steps = A_WIDE ? k_end / 8u : 0u;
#endif
    for (uint g = lane; g < steps; g += lanes) add_step(g);
// Elements after the last whole step.
#ifndef BLOCKS
    for (uint k = 8u * steps + lane; k < k_end; k += lanes) add_element(k);
#endif
    [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
            const float sum = sum_over_group(sums[r * COLUMNS + c]);
            const float result = finished(tile, r, c, sum);
            if (lane == 0u && r < tile.rows && c < tile.columns)
                dst_f32[(tile_dst(tile, c) >> 2) + tile.row + r] = result;
        }
    }
}
