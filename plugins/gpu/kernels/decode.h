// SPDX-License-Identifier: MIT
// One element of a row of any type as a float: the one decoder of each type. Rows are dense; blocks
// of an even size lie at even addresses.
#ifndef GPU_KERNELS_DECODE_H
#define GPU_KERNELS_DECODE_H

#include "gpu.h"

// As enum ggml_type.
enum gpu_type {
    TYPE_F32 = 0,
    TYPE_F16 = 1,
    TYPE_Q4_0 = 2,
    TYPE_Q4_1 = 3,
    TYPE_Q5_0 = 6,
    TYPE_Q5_1 = 7,
    TYPE_Q8_0 = 8,
    TYPE_Q8_1 = 9,
    TYPE_Q2_K = 10,
    TYPE_Q3_K = 11,
    TYPE_Q4_K = 12,
    TYPE_Q5_K = 13,
    TYPE_Q6_K = 14,
    TYPE_Q8_K = 15,
    TYPE_IQ2_XXS = 16,
    TYPE_IQ2_XS = 17,
    TYPE_IQ3_XXS = 18,
    TYPE_IQ1_S = 19,
    TYPE_IQ4_NL = 20,
    TYPE_IQ3_S = 21,
    TYPE_IQ2_S = 22,
    TYPE_IQ4_XS = 23,
    TYPE_I8 = 24,
    TYPE_I16 = 25,
    TYPE_I32 = 26,
    TYPE_I64 = 27,
    TYPE_F64 = 28,
    TYPE_IQ1_M = 29,
    TYPE_BF16 = 30,
    TYPE_TQ1_0 = 34,
    TYPE_TQ2_0 = 35,
    TYPE_MXFP4 = 39,
    TYPE_NVFP4 = 40,
    TYPE_Q1_0 = 41,
    TYPE_Q2_0 = 42,
};

// Elements per block, bytes per block.
GPU_FN u32 gpu_block_elements(int type) {
    switch (type) {
    case TYPE_Q4_0:
    case TYPE_Q4_1:
    case TYPE_Q5_0:
    case TYPE_Q5_1:
    case TYPE_Q8_0:
    case TYPE_Q8_1:
    case TYPE_IQ4_NL:
    case TYPE_MXFP4: return 32;
    case TYPE_NVFP4:
    case TYPE_Q2_0: return 64;
    case TYPE_Q1_0: return 128;
    case TYPE_F32:
    case TYPE_F16:
    case TYPE_BF16:
    case TYPE_I8:
    case TYPE_I16:
    case TYPE_I32:
    case TYPE_I64:
    case TYPE_F64: return 1;
    default: return 256;
    }
}
GPU_FN u32 gpu_block_bytes(int type) {
    switch (type) {
    case TYPE_F32:
    case TYPE_I32: return 4;
    case TYPE_F16:
    case TYPE_BF16:
    case TYPE_I16: return 2;
    case TYPE_I8: return 1;
    case TYPE_I64:
    case TYPE_F64: return 8;
    case TYPE_MXFP4: return 17;
    case TYPE_Q4_0:
    case TYPE_IQ4_NL:
    case TYPE_Q1_0:
    case TYPE_Q2_0: return 18;
    case TYPE_Q4_1: return 20;
    case TYPE_Q5_0: return 22;
    case TYPE_Q5_1: return 24;
    case TYPE_Q8_0: return 34;
    case TYPE_Q8_1:
    case TYPE_NVFP4: return 36;
    case TYPE_IQ1_S: return 50;
    case TYPE_TQ1_0: return 54;
    case TYPE_IQ1_M: return 56;
    case TYPE_TQ2_0:
    case TYPE_IQ2_XXS: return 66;
    case TYPE_IQ2_XS: return 74;
    case TYPE_IQ2_S: return 82;
    case TYPE_Q2_K: return 84;
    case TYPE_IQ3_XXS: return 98;
    case TYPE_Q3_K:
    case TYPE_IQ3_S: return 110;
    case TYPE_IQ4_XS: return 136;
    case TYPE_Q4_K: return 144;
    case TYPE_Q5_K: return 176;
    case TYPE_Q6_K: return 210;
    default: return 292; // Q8_K
    }
}

GPU_FN u32 gpu_u16_at(GPU_GLOBAL const u8 *p) {
    return *(GPU_GLOBAL const u16 *)p;
}
GPU_FN float gpu_half_at(GPU_GLOBAL const u8 *p) {
    return gpu_f16_to_f32(*(GPU_GLOBAL const u16 *)p);
}
// Nibble j of a block of 32, whose low nibbles are its first half.
GPU_FN int gpu_nibble(GPU_GLOBAL const u8 *qs, u32 j) {
    return j < 16 ? qs[j] & 15 : qs[j - 16] >> 4;
}
GPU_FN int gpu_bit(GPU_GLOBAL const u8 *bits, u32 j) {
    return bits[j / 8] >> (j % 8) & 1;
}

GPU_TABLE(i8, gpu_iq4_values, 16) = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};
GPU_TABLE(i8, gpu_fp4_values, 16) = {0, 1,  2,  3,  4,  6,  8,  12,
                                     0, -1, -2, -3, -4, -6, -8, -12}; // doubled

// Half of 2^(e - 127), and half of an unsigned E4M3 value: the table is doubled.
// Fields of exponents below 1 are subnormal: 2^-128 and 2^-127. E4M3 has a bias of 7, one more for
// the half: 119 = 127 - 8; its subnormals are eighths of 2^-6, and its NaN is taken as 0.
GPU_FN float gpu_e8m0_half(u32 e) {
    return gpu_float(e < 2 ? 0x00200000u << e : (e - 1) << 23);
}
GPU_FN float gpu_ue4m3_half(u32 e) {
    if (e == 0 || e == 0x7f) return 0.0f;
    if ((e >> 3 & 15) == 0) return (float)(e & 7) * 0.0009765625f;
    return gpu_float(((e & 0x7f) << 20) + (119u << 23));
}

// --- blocks of one scale -------------------------------------------------------------------------

// A scale, of some types an offset, high bits of the elements where there are more than four, then
// the elements. NVFP4 has four scales, one for 16 elements each.
GPU_FN float gpu_decode_small(int type, GPU_GLOBAL const u8 *b, u32 j) {
    switch (type) {
    case TYPE_Q4_0: return gpu_half_at(b) * (float)(gpu_nibble(b + 2, j) - 8);
    case TYPE_Q4_1: return gpu_half_at(b) * (float)gpu_nibble(b + 4, j) + gpu_half_at(b + 2);
    case TYPE_Q5_0:
        return gpu_half_at(b) * (float)((gpu_nibble(b + 6, j) | gpu_bit(b + 2, j) << 4) - 16);
    case TYPE_Q5_1:
        return gpu_half_at(b) * (float)(gpu_nibble(b + 8, j) | gpu_bit(b + 4, j) << 4) +
               gpu_half_at(b + 2);
    case TYPE_Q8_0: return gpu_half_at(b) * (float)(i8)b[2 + j];
    case TYPE_Q8_1: return gpu_half_at(b) * (float)(i8)b[4 + j];
    case TYPE_Q1_0: return gpu_bit(b + 2, j) ? gpu_half_at(b) : -gpu_half_at(b);
    case TYPE_Q2_0: return gpu_half_at(b) * (float)((b[2 + j / 4] >> (2 * (j % 4)) & 3) - 1);
    case TYPE_MXFP4: return (float)gpu_fp4_values[gpu_nibble(b + 1, j)] * gpu_e8m0_half(b[0]);
    case TYPE_NVFP4: {
        GPU_GLOBAL const u8 *qs = b + 4 + 8 * (j / 16);
        const int q = (j & 8) == 0 ? qs[j & 7] & 15 : qs[j & 7] >> 4;
        return (float)gpu_fp4_values[q] * gpu_ue4m3_half(b[j / 16]);
    }
    default: return gpu_half_at(b) * (float)gpu_iq4_values[gpu_nibble(b + 2, j)]; // IQ4_NL
    }
}

// --- blocks of 256 -------------------------------------------------------------------------------

// Two scales, 12 bytes with eight pairs of factors of 6 bits (those of the first four groups of 32
// in a byte each, those of the others in a nibble and the top bits of two bytes), of Q5_K the fifth
// bits, then nibbles: the low ones of 32 bytes are a group, the high ones the next.
GPU_FN float gpu_decode_q4_5_K(int type, GPU_GLOBAL const u8 *b, u32 j) {
    const u32 g = j / 32;
    GPU_GLOBAL const u8 *s = b + 4;
    const int scale = g < 4 ? s[g] & 63 : (s[g + 4] & 15) | s[g - 4] >> 6 << 4;
    const int low = g < 4 ? s[g + 4] & 63 : s[g + 4] >> 4 | s[g] >> 6 << 4;
    GPU_GLOBAL const u8 *qs = b + (type == TYPE_Q4_K ? 16 : 48) + 32 * (g / 2);
    int q = qs[j % 32] >> (4 * (g & 1)) & 15;
    if (type == TYPE_Q5_K) q |= (b[16 + j % 32] >> g & 1) << 4;
    return gpu_half_at(b) * (float)scale * (float)q - gpu_half_at(b + 2) * (float)low;
}

// Factors of 16 groups (a nibble for the scale, one for what is subtracted), the elements, two
// scales. Four elements of a byte lie 32 apart, in Q3_K, TQ2_0 and the high bits of Q6_K as well.
GPU_FN float gpu_decode_q2_K(GPU_GLOBAL const u8 *b, u32 j) {
    const int scale = b[j / 16], q = b[16 + 32 * (j / 128) + j % 32] >> (2 * (j % 128 / 32)) & 3;
    return gpu_half_at(b + 80) * (float)(scale & 15) * (float)q -
           gpu_half_at(b + 82) * (float)(scale >> 4);
}

// The third bits, elements, 12 bytes with 16 factors of 6 bits, a scale.
// Quants are -4 to 3: a third bit that is clear takes 4 away.
GPU_FN float gpu_decode_q3_K(GPU_GLOBAL const u8 *b, u32 j) {
    const u32 g = j / 16;
    const int low = g < 8 ? b[96 + g] & 15 : b[96 + g - 8] >> 4;
    const int scale = (low | (b[104 + g % 4] >> (2 * (g / 4)) & 3) << 4) - 32;
    const int q = b[32 + 32 * (j / 128) + j % 32] >> (2 * (j % 128 / 32)) & 3;
    return gpu_half_at(b + 108) * (float)scale * (float)(q - ((b[j % 32] >> (j / 32) & 1) ? 0 : 4));
}

// Low nibbles, high pairs of bits, 16 factors, a scale.
// Each half of the block by itself: 64 bytes whose low nibbles are its first 64 elements and whose
// high ones are the others; 32 bytes with pairs of bits of elements that lie 32 apart.
GPU_FN float gpu_decode_q6_K(GPU_GLOBAL const u8 *b, u32 j) {
    const u32 quarter = j % 128 / 32;
    const int low = b[64 * (j / 128) + j % 64] >> (4 * (quarter / 2)) & 15;
    const int high = b[128 + 32 * (j / 128) + j % 32] >> (2 * quarter) & 3;
    return gpu_half_at(b + 208) * (float)(i8)b[192 + j / 16] * (float)((low | high << 4) - 32);
}

// A scale, high pairs of bits of eight factors, their low nibbles, indices of gpu_iq4_values.
GPU_FN float gpu_decode_iq4_xs(GPU_GLOBAL const u8 *b, u32 j) {
    const u32 g = j / 32;
    const int low = b[4 + g / 2] >> (4 * (g & 1)) & 15,
              high = (int)(gpu_u16_at(b + 2) >> (2 * g) & 3);
    const float scale = gpu_half_at(b) * (float)((low | high << 4) - 32);
    return scale * (float)gpu_iq4_values[gpu_nibble(b + 8 + 16 * g, j % 32)];
}

// Base-3 digits: five to a byte, the most significant first; the last 16 elements four to a byte.
// A byte is n 256 / 243 rounded up, n of five digits: a fraction of 1 in base 3. A product with
// 3^k, of which the lower byte is kept, drops the first k digits; three times that carries the next
// one out of the byte.
GPU_TABLE(u8, gpu_powers_of_3, 5) = {1, 3, 9, 27, 81};
GPU_FN float gpu_decode_tq1_0(GPU_GLOBAL const u8 *b, u32 j) {
    const u32 byte = j < 160 ? b[j % 32] : j < 240 ? b[32 + j % 16] : b[48 + j % 4];
    const u32 digit = j < 160 ? j / 32 : j < 240 ? (j - 160) / 16 : (j - 240) / 4;
    const u32 shifted = byte * gpu_powers_of_3[digit] & 255;
    return gpu_half_at(b + 52) * (float)((int)(shifted * 3 >> 8) - 1);
}

// A scale behind pairs of bits, -1 to 2.
GPU_FN float gpu_decode_tq2_0(GPU_GLOBAL const u8 *b, u32 j) {
    const int q = b[32 * (j / 128) + j % 32] >> (2 * (j % 128 / 32)) & 3;
    return gpu_half_at(b + 64) * (float)(q - 1);
}

// --- points of grids -----------------------------------------------------------------------------

// A point has eight coordinates (four in IQ3), of two or three bits each in a table; blocks have
// indices of points, signs, and factors of groups of 16 or 32.
#define GPU_GRID_ROW(a, b, c, d, e, f, g, h) a, b, c, d, e, f, g, h,
GPU_TABLE(u16, gpu_grid_iq1, 2048) = {
#define GGML_GRID_IQ1_S GPU_GRID_ROW
#include "grid_list.inl"
};
GPU_TABLE(u16, gpu_grid_iq2_xxs, 256) = {
#define GGML_GRID_IQ2_XXS GPU_GRID_ROW
#include "grid_list.inl"
};
GPU_TABLE(u16, gpu_grid_iq2_xs, 512) = {
#define GGML_GRID_IQ2_XS GPU_GRID_ROW
#include "grid_list.inl"
};
GPU_TABLE(u16, gpu_grid_iq2_s, 1024) = {
#define GGML_GRID_IQ2_S GPU_GRID_ROW
#include "grid_list.inl"
};
GPU_TABLE(u16, gpu_grid_iq3_xxs, 256) = {
#define GGML_GRID_IQ3_XXS GPU_GRID_ROW
#include "grid_list.inl"
};
GPU_TABLE(u16, gpu_grid_iq3_s, 512) = {
#define GGML_GRID_IQ3_S GPU_GRID_ROW
#include "grid_list.inl"
};

// Sign k of eight from a code of seven: an even number of them is negative.
GPU_FN float gpu_grid_sign(u32 code, u32 k) {
    // Bit n of 0x6996 is the parity of the four bits of n.
    const u32 odd = 0x6996u >> ((code ^ code >> 4) & 15) & 1;
    return (code | odd << 7) >> k & 1 ? -1.0f : 1.0f;
}
// Coordinate k of a point of IQ2, of IQ3_XXS, of IQ3_S.
GPU_FN float gpu_grid_2(u32 code, u32 k) {
    const u32 digit = code >> (2 * k) & 3;
    return (float)(8 + 17 * digit + (digit >> 1));
}

// IQ2_XXS: of 32 elements four indices in bytes, then four codes of signs and a factor in a word.
// IQ2_XS: of 8 elements an index of 9 bits and a code of signs. IQ2_S: indices of 10 bits, the high
// ones apart, and a sign for each element.
GPU_FN float gpu_decode_iq2(int type, GPU_GLOBAL const u8 *b, u32 j) {
    const u32 l = j / 8, g = l / 4, k = j % 8;
    if (type == TYPE_IQ2_XXS) {
        GPU_GLOBAL const u8 *qs = b + 2 + 8 * g;
        const u32 codes = gpu_u16_at(qs + 4) | gpu_u16_at(qs + 6) << 16;
        const float scale = gpu_half_at(b) * 0.125f * (float)(2 * (codes >> 28) + 1);
        return scale * gpu_grid_2(gpu_grid_iq2_xxs[qs[l % 4]], k) *
               gpu_grid_sign(codes >> (7 * (l % 4)) & 127, k);
    }
    const u8 scales = b[(type == TYPE_IQ2_XS ? 66 : 74) + g];
    const float scale =
        gpu_half_at(b) * 0.125f * (float)(2 * (scales >> (4 * (l / 2 % 2)) & 15) + 1);
    if (type == TYPE_IQ2_XS) {
        const u32 q = gpu_u16_at(b + 2 + 2 * l);
        return scale * gpu_grid_2(gpu_grid_iq2_xs[q & 511], k) * gpu_grid_sign(q >> 9, k);
    }
    const u32 index = b[2 + l] | (u32)(b[66 + g] >> (2 * (l % 4)) & 3) << 8;
    return scale * gpu_grid_2(gpu_grid_iq2_s[index], k) * (b[34 + l] >> k & 1 ? -1.0f : 1.0f);
}

// The same for points of four coordinates: IQ3_XXS as IQ2_XXS, IQ3_S as IQ2_S.
GPU_FN float gpu_decode_iq3(int type, GPU_GLOBAL const u8 *b, u32 j) {
    const u32 l = j / 8, g = l / 4, k = j % 8, four = j / 4;
    if (type == TYPE_IQ3_XXS) {
        GPU_GLOBAL const u8 *p = b + 66 + 4 * g;
        const u32 codes = gpu_u16_at(p) | gpu_u16_at(p + 2) << 16;
        const u32 digit = gpu_grid_iq3_xxs[b[2 + four]] >> (3 * (j % 4)) & 7;
        const float scale = gpu_half_at(b) * 0.25f * (float)(2 * (codes >> 28) + 1);
        return scale * (float)(4 + 8 * digit + 2 * (digit / 7)) *
               gpu_grid_sign(codes >> (7 * (l % 4)) & 127, k);
    }
    const u32 index = b[2 + four] | (u32)(b[66 + four / 8] >> (four % 8) & 1) << 8;
    const u32 digit = gpu_grid_iq3_s[index] >> (3 * (j % 4)) & 7;
    const float scale = gpu_half_at(b) * (float)(2 * (b[106 + l / 8] >> (4 * (g % 2)) & 15) + 1);
    return scale * (float)(1 + 2 * digit) * (b[74 + l] >> k & 1 ? -1.0f : 1.0f);
}

// What eight neighbours of IQ1_S and IQ1_M share: their digits, of 2 bits each, and what they are
// multiplied by.
struct gpu_iq1_part {
    u32 digits;
    bool is_below; // one eighth below the digits instead of above
    float scale;   // of an eighth
};

GPU_FN gpu_iq1_part gpu_iq1_part_at(int type, GPU_GLOBAL const u8 *b, u32 l) {
    u32 high, scale, index;
    u16 bits;
    if (type == TYPE_IQ1_S) {
        // Of 32 elements a word: four times the three high bits of an index, a factor, and the
        // side.
        const u32 word = gpu_u16_at(b + 34 + 2 * (l / 4));
        high = (word >> (3 * (l % 4)) & 7) | word >> 15 << 3;
        scale = word >> 12 & 7;
        index = b[2 + l];
        bits = (u16)gpu_u16_at(b);
    } else {
        // Of 16 elements a byte with two nibbles of high bits and side, and three bits of a factor;
        // the top nibbles of the four words of factors are the scale, a half.
        GPU_GLOBAL const u8 *s = b + 48;
        high = b[32 + l / 2] >> (4 * (l % 2)) & 15;
        scale = gpu_u16_at(s + 2 * (l / 8)) >> (3 * (l / 2 % 4)) & 7;
        index = b[l];
        bits = (u16)(gpu_u16_at(s) >> 12 | (gpu_u16_at(s + 2) >> 8 & 0x00f0) |
                     (gpu_u16_at(s + 4) >> 4 & 0x0f00) | (gpu_u16_at(s + 6) & 0xf000));
    }
    return {gpu_grid_iq1[index | (high & 7) << 8], (high & 8) != 0,
            gpu_f16_to_f32(bits) * 0.125f * (float)(2 * scale + 1)};
}

GPU_FN float gpu_decode_iq1(int type, GPU_GLOBAL const u8 *b, u32 j) {
    const gpu_iq1_part part = gpu_iq1_part_at(type, b, j / 8);
    const int digit = (int)(part.digits >> (2 * (j % 8)) & 3);
    return part.scale * (float)(8 * (digit - 1) + (part.is_below ? -1 : 1));
}

// --- any type ------------------------------------------------------------------------------------

GPU_FN float gpu_decode_block(int type, GPU_GLOBAL const u8 *b, u32 j) {
    switch (type) {
    case TYPE_Q2_K: return gpu_decode_q2_K(b, j);
    case TYPE_Q3_K: return gpu_decode_q3_K(b, j);
    case TYPE_Q4_K:
    case TYPE_Q5_K: return gpu_decode_q4_5_K(type, b, j);
    case TYPE_Q6_K: return gpu_decode_q6_K(b, j);
    case TYPE_Q8_K: return *(GPU_GLOBAL const float *)b * (float)(i8)b[4 + j];
    case TYPE_IQ4_XS: return gpu_decode_iq4_xs(b, j);
    case TYPE_TQ1_0: return gpu_decode_tq1_0(b, j);
    case TYPE_TQ2_0: return gpu_decode_tq2_0(b, j);
    case TYPE_IQ2_XXS:
    case TYPE_IQ2_XS:
    case TYPE_IQ2_S: return gpu_decode_iq2(type, b, j);
    case TYPE_IQ3_XXS:
    case TYPE_IQ3_S: return gpu_decode_iq3(type, b, j);
    case TYPE_IQ1_S:
    case TYPE_IQ1_M: return gpu_decode_iq1(type, b, j);
    default: return gpu_decode_small(type, b, j);
    }
}

// An element of a plain type at an address; there are no doubles.
GPU_FN float gpu_load(int type, GPU_GLOBAL const void *p) {
    switch (type) {
    case TYPE_F32: return *(GPU_GLOBAL const float *)p;
    case TYPE_F16: return gpu_f16_to_f32(*(GPU_GLOBAL const u16 *)p);
    case TYPE_BF16: return gpu_bf16_to_f32(*(GPU_GLOBAL const u16 *)p);
    case TYPE_I8: return (float)*(GPU_GLOBAL const i8 *)p;
    case TYPE_I16: return (float)*(GPU_GLOBAL const i16 *)p;
    case TYPE_I32: return (float)*(GPU_GLOBAL const i32 *)p;
    default: return (float)*(GPU_GLOBAL const i64 *)p;
    }
}
GPU_FN void gpu_store(int type, GPU_GLOBAL void *p, float value) {
    switch (type) {
    case TYPE_F32: *(GPU_GLOBAL float *)p = value; break;
    case TYPE_F16: *(GPU_GLOBAL u16 *)p = gpu_f32_to_f16(value); break;
    case TYPE_BF16: *(GPU_GLOBAL u16 *)p = gpu_f32_to_bf16(value); break;
    case TYPE_I8: *(GPU_GLOBAL i8 *)p = (i8)(int)value; break;
    case TYPE_I16: *(GPU_GLOBAL i16 *)p = (i16)(int)value; break;
    case TYPE_I32: *(GPU_GLOBAL i32 *)p = (i32)value; break;
    default: *(GPU_GLOBAL i64 *)p = (i64)value; break;
    }
}

// Element i of the row that begins at p.
GPU_FN float gpu_decode(int type, GPU_GLOBAL const void *p, u32 i) {
    GPU_GLOBAL const u8 *row = (GPU_GLOBAL const u8 *)p;
    const u32 n = gpu_block_elements(type);
    if (n == 1) return gpu_load(type, row + (u64)i * gpu_block_bytes(type));
    return gpu_decode_block(type, row + (u64)(i / n) * gpu_block_bytes(type), i % n);
}

#endif
