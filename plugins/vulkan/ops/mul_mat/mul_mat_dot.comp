#version 450
// SPDX-License-Identifier: MIT
// mul_mat for few columns with packed products of four bytes: src0 is of a type whose elements are
// scale * byte + offset, and src1 comes from quantize_columns.comp. A group computes a tile of ROWS
// by COLUMNS; its invocations share out groups of 32 elements and add up at the end.
#extension GL_EXT_spirv_intrinsics : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "shaders/common.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
GVK_OPERAND(src1, 3)
layout(constant_id = 3) const uint A_TYPE = 0;
layout(constant_id = 4) const uint ROWS = 2;
layout(constant_id = 5) const uint COLUMNS = 1;
#define UNPACK_FROM src0
#include "shaders/unpack.glsl"
#include "ops/mul_mat/mul_mat_place.glsl"

// OpSDot of vectors of four bytes in a word (format 0).
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019],
                  id = 4450)
int dot_packed(int a, int b, spirv_literal int format);

// Bytes of group g of a row, and scale and offset.
vec2 load_a(const uint row, const uint g, out uint bytes[8]) {
    if (A_TYPE == TYPE_Q8_0) {
        const uint at = row + 34 * g;
        [[unroll]] for (uint i = 0; i < 8; ++i) bytes[i] = src0_word(at + 2 + 4 * i);
        return vec2(src0_half(at), 0);
    }
    const bool small = A_TYPE == TYPE_Q4_0;
    const uint at = small ? row + 18 * g : row + 144 * (g / 8);
    if (small) {
        [[unroll]] for (uint i = 0; i < 4; ++i) {
            const uint word = src0_word(at + 2 + 4 * i);
            bytes[i] = word & 0x0f0f0f0fu;
            bytes[i + 4] = (word >> 4) & 0x0f0f0f0fu;
        }
        const float d = src0_half(at);
        return vec2(d, -8.0 * d);
    }
    const uint qs = at + 16 + 32 * (g % 8 / 2);
    [[unroll]] for (uint i = 0; i < 8; ++i)
        bytes[i] = (src0_u32[(qs >> 2) + i] >> (4 * (g & 1u))) & 0x0f0f0f0fu;
    const vec2 scale = src0_k4_scale(at, g % 8);
    return vec2(scale.x, -scale.y);
}

// Index, in words of 16 bytes, of a column that quantize_columns.comp has written.
uint column_at(const Tile tile, const uint c) {
    const uint column = min(tile.column + c, DST.ne.y - 1u);
    const uint all = column + DST.ne.y * (tile.batch.x + DST.ne.z * tile.batch.y);
    return (SRC1.at.x >> 4) + all * (SRC0.ne.x / 32) * 3;
}

shared float partial[256];

// Sum over all invocations; each gets it. Subgroups first, then their sums through shared
// memory.
float sum_over_group(const float value) {
    const float sum = subgroupAdd(value);
    if (gl_NumSubgroups == 1u) return sum;
    if (subgroupElect()) partial[gl_SubgroupID] = sum;
    barrier();
    float total = 0;
    for (uint i = 0; i < gl_NumSubgroups; ++i) total += partial[i];
    barrier();
    return total;
}

// Integer dot products of quantised weights with columns that were rounded to 8 bits. Lanes of the
// group take groups of 32 elements in turn and add up their sums at the end.
void main() {
    const Tile tile = tile_of(group_linear(), ROWS, COLUMNS);
    if (tile.columns == 0u) return;
    float sums[ROWS * COLUMNS];
    [[unroll]] for (uint i = 0; i < ROWS * COLUMNS; ++i) sums[i] = 0;
    for (uint g = gl_LocalInvocationID.x; g < SRC0.ne.x / 32; g += gl_WorkGroupSize.x) {
        uvec4 low[COLUMNS];
        uvec4 high[COLUMNS];
        vec2 scales[COLUMNS];
        [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
            const uint at = column_at(tile, c) + 3 * g;
            // Scale of the rounded column, and its sum times the scale, which is what weights with
            // a minimum need.
            scales[c] = uintBitsToFloat(src1_uvec4[at].xy);
            low[c] = src1_uvec4[at + 1];
            high[c] = src1_uvec4[at + 2];
        }
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
            uint bytes[8];
            const vec2 scale = load_a(tile.a + min(r, tile.rows - 1u) * SRC0.nb.y, g, bytes);
            [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
                int sum = 0;
                [[unroll]] for (uint i = 0; i < 4; ++i) {
                    sum += dot_packed(int(bytes[i]), int(low[c][i]), 0);
                    sum += dot_packed(int(bytes[i + 4]), int(high[c][i]), 0);
                }
                sums[r * COLUMNS + c] += scale.x * scales[c].x * float(sum) + scale.y * scales[c].y;
            }
        }
    }
    [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
            const float sum = sum_over_group(sums[r * COLUMNS + c]);
            if (gl_LocalInvocationID.x == 0u && r < tile.rows && c < tile.columns)
                dst_f32[(tile_dst(tile, c) >> 2) + tile.row + r] = sum;
        }
    }
}
