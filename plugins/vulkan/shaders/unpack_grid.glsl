// SPDX-License-Identifier: MIT
// The types whose blocks hold indices of points of a grid, for unpack.glsl, which includes this once
// for what all operands share and once per operand. Modules with UNPACK_GRIDS decode these types and
// no others; its value is the binding of the grids, which ../grids.c puts one behind the other. As
// constant arrays they would cost drivers minutes of compiling.
#ifndef UNPACK_GRID_GLSL
#define UNPACK_GRID_GLSL

layout(set = 0, binding = UNPACK_GRIDS) readonly buffer grid_block_u16 { uint16_t grid_codes[]; };

// Where they begin.
const uint GRID_IQ1 = 0, GRID_IQ2_XXS = 2048, GRID_IQ2_XS = 2304, GRID_IQ2_S = 2816,
           GRID_IQ3_XXS = 3840, GRID_IQ3_S = 4096;

// Eight neighbouring elements: their point, in IQ3 two in 16 bits each; signs, in IQ1 whether the
// point is moved down; what the coordinates are scaled by.
struct GridEight {
    uint code, signs;
    float scale;
};

uint grid_code(const uint grid, const uint index) { return uint(grid_codes[grid + index]); }
uint grid_code_iq3(const uint type, const uint index) {
    return grid_code(type == TYPE_IQ3_XXS ? GRID_IQ3_XXS : GRID_IQ3_S, index);
}

// Eight signs from a code of seven: an even number of them is negative.
uint grid_sign_byte(const uint code) { return code | uint(bitCount(code) & 1) << 7; }

// The first four of the elements, or the last.
vec4 grid_four(const uint type, const GridEight e, const uint half_of) {
    const uint code = e.code >> (type == TYPE_IQ3_XXS || type == TYPE_IQ3_S ? 16 : 8) * half_of;
    const ivec4 two = ivec4(uvec4(code, code >> 2, code >> 4, code >> 6) & 3u);
    const ivec4 three = ivec4(uvec4(code, code >> 3, code >> 6, code >> 9) & 7u);
    const ivec4 signs = 1 - 2 * unpack_bits(e.signs, 4 * half_of);
    switch (type) {
    case TYPE_IQ1_S: case TYPE_IQ1_M: return e.scale * vec4(8 * two - (e.signs != 0u ? 9 : 7));
    case TYPE_IQ3_XXS: return e.scale * vec4((4 + 8 * three + 2 * ((three + 1) >> 3)) * signs);
    case TYPE_IQ3_S: return e.scale * vec4((1 + 2 * three) * signs);
    default: return e.scale * vec4((8 + 17 * two + (two >> 1)) * signs);
    }
}

#else
// --- once per operand ----------------------------------------------------------------------------

// Elements 8 l to 8 l + 7 of the block at an address.
GridEight U(_grid_iq1)(const uint type, const uint at, const uint l) {
    uint high, index, scale, half_bits;
    if (type == TYPE_IQ1_S) {
        const uint word = U(_short)(at + 34 + 2 * (l / 4));
        high = ((word >> (3 * (l & 3u))) & 7u) | (word >> 15) << 3;
        index = U(_byte)(at + 2 + l);
        scale = word >> 12;
        half_bits = U(_short)(at);
    } else {
        high = U(_byte)(at + 32 + l / 2) >> (4 * (l & 1u));
        index = U(_byte)(at + l);
        scale = U(_short)(at + 48 + 2 * (l / 8)) >> (3 * ((l / 2) & 3u));
        half_bits = (U(_short)(at + 48) >> 12) | ((U(_short)(at + 50) >> 8) & 0xf0u) |
                    ((U(_short)(at + 52) >> 4) & 0xf00u) | (U(_short)(at + 54) & 0xf000u);
    }
    index |= (high & 7u) << 8;
    return GridEight(grid_code(GRID_IQ1, index), high & 8u,
                     unpack_half(half_bits) * 0.125 * float(2 * (scale & 7u) + 1));
}

// Eight elements of IQ2_XXS, IQ2_XS or IQ2_S: a point of the grid, signs and a scale, which the
// three pack differently.
GridEight U(_grid_iq2)(const uint type, const uint at, const uint l) {
    const uint g = l / 4;
    uint index, grid, signs, scale;
    if (type == TYPE_IQ2_XXS) {
        const uint codes = U(_word)(at + 6 + 8 * g);
        index = U(_byte)(at + 2 + 8 * g + (l & 3u));
        grid = GRID_IQ2_XXS;
        signs = grid_sign_byte((codes >> (7 * (l & 3u))) & 127u);
        scale = codes >> 28;
    } else if (type == TYPE_IQ2_XS) {
        const uint q = U(_short)(at + 2 + 2 * l);
        index = q & 511u;
        grid = GRID_IQ2_XS;
        signs = grid_sign_byte(q >> 9);
        scale = U(_byte)(at + 66 + g) >> (4 * ((l / 2) & 1u));
    } else {
        const uint high = (U(_byte)(at + 66 + g) >> (2 * (l & 3u))) & 3u;
        index = U(_byte)(at + 2 + l) | high << 8;
        grid = GRID_IQ2_S;
        signs = U(_byte)(at + 34 + l);
        scale = U(_byte)(at + 74 + g) >> (4 * ((l / 2) & 1u));
    }
    return GridEight(grid_code(grid, index), signs,
                     U(_half)(at) * 0.125 * float(2 * (scale & 15u) + 1));
}

// Eight elements of IQ3_XXS or IQ3_S: two points of four elements each.
GridEight U(_grid_iq3)(const uint type, const uint at, const uint l) {
    const uint g = l / 4;
    uvec2 index = uvec2(U(_short)(at + 2 + 2 * l));
    index = uvec2(index.x & 255u, index.y >> 8);
    uint signs;
    float scale = U(_half)(at);
    if (type == TYPE_IQ3_XXS) {
        const uint codes = U(_word)(at + 66 + 4 * g);
        signs = grid_sign_byte((codes >> (7 * (l & 3u))) & 127u);
        scale *= 0.25 * float(2 * (codes >> 28) + 1);
    } else {
        const uint high = U(_byte)(at + 66 + g) >> (2 * (l & 3u));
        index |= uvec2(high & 1u, (high >> 1) & 1u) << 8;
        signs = U(_byte)(at + 74 + l);
        scale *= float(2 * ((U(_byte)(at + 106 + l / 8) >> (4 * (g & 1u))) & 15u) + 1);
    }
    return GridEight(grid_code_iq3(type, index.x) | grid_code_iq3(type, index.y) << 16, signs, scale);
}

// Eight elements of a lattice type; the type is a constant of the pipeline.
GridEight U(_grid_eight)(const uint type, const uint at, const uint l) {
    switch (type) {
    case TYPE_IQ1_S: case TYPE_IQ1_M: return U(_grid_iq1)(type, at, l);
    case TYPE_IQ3_XXS: case TYPE_IQ3_S: return U(_grid_iq3)(type, at, l);
    default: return U(_grid_iq2)(type, at, l);
    }
}

// Elements j to j + 3 of the block at an address.
vec4 U(_unpack_block4)(const uint type, const uint at, const uint j) {
    return grid_four(type, U(_grid_eight)(type, at, j / 8), (j / 4) & 1u);
}
#endif
