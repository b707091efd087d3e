// SPDX-License-Identifier: MIT
// Elements of any type of tensor as floats, block types included. The including shader defines
// UNPACK_FROM, the name of an operand (GVK_OPERAND before), for each time it includes this file, and
// gets, for a type that should be a specialisation constant:
//
//   float <name>_unpack(type, row, i)    element i of the row that begins at byte address `row`
//   vec4  <name>_unpack4(type, row, i)   elements i to i + 3; i a multiple of 4
//
// Rows are dense. Rows of plain types may have any stride of whole elements; blocks of types whose
// size is even lie at even addresses. The types with grids are known where UNPACK_GRIDS is defined,
// which the others are not. In a block type x = scale * quant + offset, where four
// neighbours share scale and offset, so everything is decoded in fours.
#ifndef UNPACK_GLSL
#define UNPACK_GLSL

const uint TYPE_Q8_1 = 9, TYPE_TQ1_0 = 34, TYPE_TQ2_0 = 35, TYPE_NVFP4 = 40, TYPE_Q1_0 = 41,
           TYPE_Q2_0 = 42;
const uint TYPE_IQ2_XXS = 16, TYPE_IQ2_XS = 17, TYPE_IQ3_XXS = 18, TYPE_IQ1_S = 19,
           TYPE_IQ3_S = 21, TYPE_IQ2_S = 22, TYPE_IQ1_M = 29;

// Elements per block, bytes per block.
uvec2 unpack_block(const uint type) {
    switch (type) {
    case TYPE_F32: case TYPE_I32: return uvec2(1, 4);
    case TYPE_F16: case TYPE_BF16: case TYPE_I16: return uvec2(1, 2);
    case TYPE_I64: return uvec2(1, 8);
    case TYPE_Q4_0: case TYPE_IQ4_NL: return uvec2(32, 18);
    case TYPE_Q4_1: return uvec2(32, 20);
    case TYPE_Q5_0: return uvec2(32, 22);
    case TYPE_Q5_1: return uvec2(32, 24);
    case TYPE_Q8_0: return uvec2(32, 34);
    case TYPE_Q8_1: return uvec2(32, 36);
    case TYPE_Q2_K: return uvec2(256, 84);
    case TYPE_Q3_K: return uvec2(256, 110);
    case TYPE_Q4_K: return uvec2(256, 144);
    case TYPE_Q5_K: return uvec2(256, 176);
    case TYPE_Q6_K: return uvec2(256, 210);
    case TYPE_IQ4_XS: return uvec2(256, 136);
    case TYPE_TQ1_0: return uvec2(256, 54);
    case TYPE_TQ2_0: return uvec2(256, 66);
    case TYPE_MXFP4: return uvec2(32, 17);
    case TYPE_NVFP4: return uvec2(64, 36);
    case TYPE_Q1_0: return uvec2(128, 18);
    case TYPE_Q2_0: return uvec2(64, 18);
    case TYPE_IQ1_S: return uvec2(256, 50);
    case TYPE_IQ1_M: return uvec2(256, 56);
    case TYPE_IQ2_XXS: return uvec2(256, 66);
    case TYPE_IQ2_XS: return uvec2(256, 74);
    case TYPE_IQ2_S: return uvec2(256, 82);
    case TYPE_IQ3_XXS: return uvec2(256, 98);
    case TYPE_IQ3_S: return uvec2(256, 110);
    default: return uvec2(1, 1);
    }
}

// The fields of `mask`'s width at bit `shift` of each of the word's four bytes.
ivec4 unpack_fields(const uint word, const uint shift, const uint mask) {
    return ivec4((uvec4(word, word >> 8, word >> 16, word >> 24) >> shift) & mask);
}
ivec4 unpack_signed(const uint word) {
    const int w = int(word);
    return ivec4(w << 24, w << 16, w << 8, w) >> 24;
}
// Four neighbouring bits from bit `shift` on.
ivec4 unpack_bits(const uint word, const uint shift) {
    return ivec4((uvec4(word, word >> 1, word >> 2, word >> 3) >> shift) & 1u);
}
float unpack_half(const uint bits) { return unpackHalf2x16(bits).x; }

// Tables of 16 signed bytes, four to a word, so that no memory is indexed.
ivec4 unpack_table(const uvec4 table, const ivec4 q) {
    const uvec4 low = mix(uvec4(table.x), uvec4(table.y), greaterThan(q & 4, ivec4(0)));
    const uvec4 high = mix(uvec4(table.z), uvec4(table.w), greaterThan(q & 4, ivec4(0)));
    const uvec4 word = mix(low, high, greaterThan(q & 8, ivec4(0)));
    return ivec4(word << (24 - 8 * (uvec4(q) & 3u))) >> 24;
}
const uvec4 UNPACK_IQ4 = uvec4(0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u);
const uvec4 UNPACK_FP4 = uvec4(0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu); // doubled

// Half of 2^(e - 127), and half of an unsigned E4M3 value: the tables above are doubled.
float unpack_e8m0_half(const uint e) {
    return uintBitsToFloat(e < 2u ? 0x00200000u << e : (e - 1u) << 23);
}
// Exponent 0 has subnormals; code 0x7f is NaN in E4M3 and counts as 0 here.
float unpack_ue4m3_half(const uint e) {
    if (e == 0u || e == 0x7fu) return 0.0;
    const float mantissa = float(e & 7u);
    const uint exponent = (e >> 3) & 15u;
    if (exponent == 0u) return mantissa * (1.0 / 1024.0);
    return (1.0 + mantissa / 8.0) * uintBitsToFloat((exponent + 119u) << 23);
}

#define UNPACK_PASTE2(a, b) a##b
#define UNPACK_PASTE(a, b) UNPACK_PASTE2(a, b)
#define U(suffix) UNPACK_PASTE(UNPACK_FROM, suffix)
#ifdef UNPACK_GRIDS
#include "shaders/unpack_grid.glsl"
#endif
#endif

// --- once per operand ----------------------------------------------------------------------------

uint U(_byte)(const uint at) { return uint(U(_u8)[at]); }
uint U(_short)(const uint at) { return uint(U(_u16)[at >> 1]); }
// Four bytes from an even address, and from any.
uint U(_word)(const uint at) { return U(_short)(at) | U(_short)(at + 2) << 16; }
uint U(_odd_word)(const uint at) {
    return U(_byte)(at) | U(_byte)(at + 1) << 8 | U(_byte)(at + 2) << 16 | U(_byte)(at + 3) << 24;
}
float U(_half)(const uint at) { return unpack_half(U(_short)(at)); }

#ifdef UNPACK_GRIDS
#include "shaders/unpack_grid.glsl"
#else
// Nibbles of a block of 32: low ones are the first 16 elements.
ivec4 U(_nibbles)(const uint qs, const uint j) {
    return unpack_fields(U(_word)(qs + (j & 15u)), j < 16u ? 0u : 4u, 15u);
}

// Quants (of j to j + 3) times scale plus offset.
vec4 U(_unpack_small)(const uint type, const uint at, const uint j) {
    const float d = U(_half)(at);
    switch (type) {
    case TYPE_Q4_0: return d * vec4(U(_nibbles)(at + 2, j) - 8);
    case TYPE_Q4_1: return d * vec4(U(_nibbles)(at + 4, j)) + U(_half)(at + 2);
    case TYPE_Q5_0:
        return d * vec4(U(_nibbles)(at + 6, j) + 16 * unpack_bits(U(_word)(at + 2), j) - 16);
    case TYPE_Q5_1:
        return d * vec4(U(_nibbles)(at + 8, j) + 16 * unpack_bits(U(_word)(at + 4), j)) +
               U(_half)(at + 2);
    case TYPE_Q8_0: return d * vec4(unpack_signed(U(_word)(at + 2 + j)));
    case TYPE_Q8_1: return d * vec4(unpack_signed(U(_word)(at + 4 + j)));
    case TYPE_Q1_0: return d * vec4(2 * unpack_bits(U(_byte)(at + 2 + j / 8), j & 7u) - 1);
    case TYPE_Q2_0: {
        const uint bits = U(_byte)(at + 2 + j / 4);
        return d * vec4(ivec4(uvec4(bits, bits >> 2, bits >> 4, bits >> 6) & 3u) - 1);
    }
    default: return d * vec4(unpack_table(UNPACK_IQ4, U(_nibbles)(at + 2, j)));
    }
}

// MXFP4 (a power of two per 32) and NVFP4 (an E4M3 scale per 16): FP4 values by a table.
vec4 U(_unpack_fp4)(const uint type, const uint at, const uint j) {
    if (type == TYPE_MXFP4) {
        const uint word = U(_odd_word)(at + 1 + (j & 15u));
        const ivec4 q = unpack_fields(word, j < 16u ? 0u : 4u, 15u);
        return vec4(unpack_table(UNPACK_FP4, q)) * unpack_e8m0_half(U(_byte)(at));
    }
    const uint sub = j / 16;
    const uint word = U(_word)(at + 4 + 8 * sub + (j & 7u));
    const ivec4 q = unpack_fields(word, (j & 8u) == 0u ? 0u : 4u, 15u);
    return vec4(unpack_table(UNPACK_FP4, q)) * unpack_ue4m3_half(U(_byte)(at + sub));
}

// Six-bit scale and minimum of group g of a Q4_K or Q5_K block.
vec2 U(_k4_scale)(const uint at, const uint g) {
    const uint scales = at + 4;
    const uint low = U(_byte)(scales + (g & 3u));
    const uint mid = U(_byte)(scales + 4 + (g & 3u));
    uint scale = low & 63u;
    uint minimum = mid & 63u;
    if (g >= 4u) {
        const uint high = U(_byte)(scales + 4 + g);
        scale = (high & 15u) | (low >> 6) << 4;
        minimum = (high >> 4) | (mid >> 6) << 4;
    }
    return vec2(U(_half)(at), U(_half)(at + 2)) * vec2(scale, minimum);
}

// Elements j to j + 3 of a block of Q4_K or Q5_K; j is a multiple of 4, so that they share scale
// and minimum.
vec4 U(_unpack_k45)(const uint type, const uint at, const uint j) {
    const uint g = j / 32;
    const vec2 scale = U(_k4_scale)(at, g);
    const uint qs = at + (type == TYPE_Q4_K ? 16 : 48) + 32 * (g / 2);
    ivec4 q = unpack_fields(U(_word)(qs + (j & 31u)), 4 * (g & 1u), 15u);
    if (type == TYPE_Q5_K) q += 16 * unpack_fields(U(_word)(at + 16 + (j & 31u)), g, 1u);
    return scale.x * vec4(q) - scale.y;
}

// Elements j to j + 3 of a block of Q2_K.
vec4 U(_unpack_q2_K)(const uint at, const uint j) {
    const uint scale = U(_byte)(at + j / 16);
    const ivec4 q =
        unpack_fields(U(_word)(at + 16 + 32 * (j / 128) + (j & 31u)), 2 * ((j & 127u) / 32), 3u);
    return U(_half)(at + 80) * float(scale & 15u) * vec4(q) - U(_half)(at + 82) * float(scale >> 4);
}

// Elements j to j + 3 of a block of Q3_K; a third bit that is not set means 4 less.
vec4 U(_unpack_q3_K)(const uint at, const uint j) {
    const uint g = j / 16;
    const uint low = U(_byte)(at + 96 + (g & 7u)) >> (g < 8u ? 0u : 4u);
    const uint high = U(_byte)(at + 104 + (g & 3u)) >> (2 * (g / 4));
    const float scale = U(_half)(at + 108) * float(int((low & 15u) | (high & 3u) << 4) - 32);
    const ivec4 q =
        unpack_fields(U(_word)(at + 32 + 32 * (j / 128) + (j & 31u)), 2 * ((j & 127u) / 32), 3u);
    return scale * vec4(q + 4 * unpack_fields(U(_word)(at + (j & 31u)), j / 32, 1u) - 4);
}

// Elements j to j + 3 of a block of Q6_K.
vec4 U(_unpack_q6_K)(const uint at, const uint j) {
    const uint quarter = (j & 127u) / 32;
    const uint ql = at + 64 * (j / 128) + (j & 63u);
    const uint qh = at + 128 + 32 * (j / 128) + (j & 31u);
    const ivec4 low = unpack_fields(U(_word)(ql), 4 * (quarter / 2), 15u);
    const ivec4 high = unpack_fields(U(_word)(qh), 2 * quarter, 3u);
    const int scale = unpack_signed(U(_byte)(at + 192 + j / 16)).x;
    return U(_half)(at + 208) * float(scale) * vec4(low + 16 * high - 32);
}

// Elements j to j + 3 of a block of IQ4_XS.
vec4 U(_unpack_iq4_xs)(const uint at, const uint j) {
    const uint g = j / 32;
    const uint low = U(_byte)(at + 4 + g / 2) >> (4 * (g & 1u));
    const uint high = U(_short)(at + 2) >> (2 * g);
    const float scale = U(_half)(at) * float(int((low & 15u) | (high & 3u) << 4) - 32);
    return scale * vec4(unpack_table(UNPACK_IQ4, U(_nibbles)(at + 8 + 16 * g, j & 31u)));
}

// Base-3 digits: five to a byte, the most significant first; the last 16 elements four to a byte.
vec4 U(_unpack_tq1_0)(const uint at, const uint j) {
    uint from = at + (j & 31u);
    uint digit = j / 32;
    if (j >= 240u) {
        from = at + 48;
        digit = (j - 240u) / 4;
    } else if (j >= 160u) {
        from = at + 32 + (j & 15u);
        digit = (j - 160u) / 16;
    }
    const uint powers[5] = {1, 3, 9, 27, 81};
    const uvec4 bytes = uvec4(unpack_fields(U(_word)(from), 0, 255u));
    const uvec4 trits = (((bytes * powers[digit]) & 255u) * 3u) >> 8;
    return U(_half)(at + 52) * vec4(ivec4(trits) - 1);
}

vec4 U(_unpack_tq2_0)(const uint at, const uint j) {
    const uint word = U(_word)(at + 32 * (j / 128) + (j & 31u));
    return U(_half)(at + 64) * vec4(unpack_fields(word, 2 * ((j & 127u) / 32), 3u) - 1);
}

// Elements j to j + 3 of the block at an address.
vec4 U(_unpack_block4)(const uint type, const uint at, const uint j) {
    switch (type) {
    case TYPE_Q2_K: return U(_unpack_q2_K)(at, j);
    case TYPE_Q3_K: return U(_unpack_q3_K)(at, j);
    case TYPE_Q4_K: case TYPE_Q5_K: return U(_unpack_k45)(type, at, j);
    case TYPE_Q6_K: return U(_unpack_q6_K)(at, j);
    case TYPE_IQ4_XS: return U(_unpack_iq4_xs)(at, j);
    case TYPE_TQ1_0: return U(_unpack_tq1_0)(at, j);
    case TYPE_TQ2_0: return U(_unpack_tq2_0)(at, j);
    case TYPE_MXFP4: case TYPE_NVFP4: return U(_unpack_fp4)(type, at, j);
    default: return U(_unpack_small)(type, at, j);
    }
}

#endif

// Four elements of a row, of one block where the type has blocks.
vec4 U(_unpack4)(const uint type, const uint row, const uint i) {
    const uvec2 block = unpack_block(type);
    if (block.x > 1u) return U(_unpack_block4)(type, row + i / block.x * block.y, i % block.x);
    const uint at = row + i * block.y;
    return vec4(U(_load)(type, at), U(_load)(type, at + block.y), U(_load)(type, at + 2 * block.y),
                U(_load)(type, at + 3 * block.y));
}

// One element of a row: the four that it lies among, of which three are dropped.
float U(_unpack)(const uint type, const uint row, const uint i) {
    const uvec2 block = unpack_block(type);
    if (block.x > 1u)
        return U(_unpack_block4)(type, row + i / block.x * block.y, i % block.x & ~3u)[i & 3u];
    return U(_load)(type, row + i * block.y);
}

#undef UNPACK_FROM
