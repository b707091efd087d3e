// SPDX-License-Identifier: MIT
// Four consecutive elements of a block at a time, as bytes with a scale and an offset: the decoder
// of each type for kernels that are fast. All types keep four neighbours in words or bytes that lie
// together, so that a few instructions work on four elements. decode.h decodes one element.
#ifndef GPU_KERNELS_FOUR_H
#define GPU_KERNELS_FOUR_H

#include "decode.h"

// Element i is scale * (byte i - gpu_four_bias(type)) + offset.
struct gpu_four {
    u32 bytes;
    float scale, offset;
};

GPU_FN int gpu_four_bias(int type) {
    switch (type) {
    case TYPE_Q4_0: return 8;
    case TYPE_Q5_0: return 16;
    case TYPE_Q3_K: return 4;
    case TYPE_Q6_K: return 32;
    case TYPE_Q1_0:
    case TYPE_Q2_0:
    case TYPE_TQ1_0:
    case TYPE_TQ2_0: return 1;
    case TYPE_MXFP4:
    case TYPE_NVFP4: return 12;
    case TYPE_Q4_1:
    case TYPE_Q5_1:
    case TYPE_Q2_K:
    case TYPE_Q4_K:
    case TYPE_Q5_K: return 0;
    default: return 128;
    }
}

// Four bytes at an address that is a multiple of 4, of 2, of 1.
GPU_FN u32 gpu_word_at(GPU_GLOBAL const u8 *p) {
    return *(GPU_GLOBAL const u32 *)p;
}
GPU_FN u32 gpu_word_of_halves(GPU_GLOBAL const u8 *p) {
    return gpu_u16_at(p) | gpu_u16_at(p + 2) << 16;
}
GPU_FN u32 gpu_word_of_bytes(GPU_GLOBAL const u8 *p) {
    return (u32)p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24;
}

// Four bits, four pairs of bits, four groups of three bits: one to each byte.
// 1 + 2^7 + 2^14 + 2^21 takes bit i to 8 i: one of the copies of each lies right, the mask drops
// the others.
GPU_FN u32 gpu_spread_1(u32 bits) {
    return ((bits & 15u) * 0x00204081u) & 0x01010101u;
}
GPU_FN u32 gpu_spread_2(u32 bits) {
    const u32 low = bits & 255u;
    return (low | low << 6 | low << 12 | low << 18) & 0x03030303u;
}
GPU_FN u32 gpu_spread_3(u32 bits) {
    return (bits & 7u) | (bits & 0x38u) << 5 | (bits & 0x1c0u) << 10 | (bits & 0xe00u) << 15;
}
// 128 plus or minus each byte of `sizes`, minus where the bit of `signs` is set; sizes below 128.
// No borrow or carry goes from one byte to the next, since each stays within 1 to 255.
GPU_FN u32 gpu_with_signs(u32 sizes, u32 signs) {
    const u32 negative = gpu_spread_1(signs) * 255u;
    return ((0x80808080u + sizes) & ~negative) | ((0x80808080u - sizes) & negative);
}

// Element (byte i of `nibbles`) of a table of 16 bytes, for each i.
// Two bits of the nibble choose the word, two the byte in it; on a GPU that is a few selections and
// no access to memory.
GPU_FN u32 gpu_table_4(u32 nibbles, u32 t0, u32 t1, u32 t2, u32 t3) {
    u32 result = 0;
    for (u32 i = 0; i < 32; i += 8) {
        const u32 n = nibbles >> i & 15u;
        const u32 low = n & 4 ? t1 : t0, high = n & 4 ? t3 : t2;
        result |= ((n & 8 ? high : low) >> (8 * (n & 3)) & 255u) << i;
    }
    return result;
}
GPU_FN u32 gpu_iq4_bytes(u32 nibbles) { // gpu_iq4_values + 128
    return gpu_table_4(nibbles, 0x3f2d1801u, 0x766a5d4fu, 0xa6998d81u, 0xf1d9c5b5u);
}
GPU_FN u32 gpu_fp4_bytes(u32 nibbles) { // gpu_fp4_values + 12
    return gpu_table_4(nibbles, 0x0f0e0d0cu, 0x18141210u, 0x090a0b0cu, 0x00040608u);
}

// --- blocks of one scale -------------------------------------------------------------------------

// Words are read as the type's blocks are aligned: of 18, 22 and 34 bytes to 2, of 17 to 1. The
// layouts are told in decode.h.
GPU_FN gpu_four gpu_four_small(int type, GPU_GLOBAL const u8 *b, u32 j) {
    const u32 shift = 4 * (j / 16 & 1), at = j & 15; // of nibbles
    switch (type) {
    case TYPE_Q4_0:
        return {gpu_word_of_halves(b + 2 + at) >> shift & 0x0f0f0f0fu, gpu_half_at(b), 0.0f};
    case TYPE_Q4_1:
        return {gpu_word_at(b + 4 + at) >> shift & 0x0f0f0f0fu, gpu_half_at(b), gpu_half_at(b + 2)};
    case TYPE_Q5_0:
        return {(gpu_word_of_halves(b + 6 + at) >> shift & 0x0f0f0f0fu) |
                    gpu_spread_1(gpu_word_of_halves(b + 2) >> j) << 4,
                gpu_half_at(b), 0.0f};
    case TYPE_Q5_1:
        return {(gpu_word_at(b + 8 + at) >> shift & 0x0f0f0f0fu) |
                    gpu_spread_1(gpu_word_at(b + 4) >> j) << 4,
                gpu_half_at(b), gpu_half_at(b + 2)};
    case TYPE_Q8_0: return {gpu_word_of_halves(b + 2 + j) ^ 0x80808080u, gpu_half_at(b), 0.0f};
    case TYPE_Q8_1: return {gpu_word_at(b + 4 + j) ^ 0x80808080u, gpu_half_at(b), 0.0f};
    case TYPE_Q1_0: return {gpu_spread_1((u32)b[2 + j / 8] >> (j & 4)) << 1, gpu_half_at(b), 0.0f};
    case TYPE_Q2_0: return {gpu_spread_2(b[2 + j / 4]), gpu_half_at(b), 0.0f};
    case TYPE_MXFP4:
        return {gpu_fp4_bytes(gpu_word_of_bytes(b + 1 + at) >> shift & 0x0f0f0f0fu),
                gpu_e8m0_half(b[0]), 0.0f};
    case TYPE_NVFP4: {
        const u32 word = gpu_word_at(b + 4 + 8 * (j / 16) + (j & 4));
        return {gpu_fp4_bytes(word >> (j & 8 ? 4 : 0) & 0x0f0f0f0fu), gpu_ue4m3_half(b[j / 16]),
                0.0f};
    }
    default: // IQ4_NL
        return {gpu_iq4_bytes(gpu_word_of_halves(b + 2 + at) >> shift & 0x0f0f0f0fu),
                gpu_half_at(b), 0.0f};
    }
}

// --- blocks of 256 -------------------------------------------------------------------------------

// A factor of the group goes into the scale, so that one product serves the four.
GPU_FN gpu_four gpu_four_q4_5_K(int type, GPU_GLOBAL const u8 *b, u32 j) {
    const u32 g = j / 32;
    GPU_GLOBAL const u8 *s = b + 4;
    const int scale = g < 4 ? s[g] & 63 : (s[g + 4] & 15) | s[g - 4] >> 6 << 4;
    const int low = g < 4 ? s[g + 4] & 63 : s[g + 4] >> 4 | s[g] >> 6 << 4;
    GPU_GLOBAL const u8 *qs = b + (type == TYPE_Q4_K ? 16 : 48) + 32 * (g / 2);
    u32 bytes = gpu_word_at(qs + j % 32) >> (4 * (g & 1)) & 0x0f0f0f0fu;
    if (type == TYPE_Q5_K) bytes |= (gpu_word_at(b + 16 + j % 32) >> g & 0x01010101u) << 4;
    return {bytes, gpu_half_at(b) * (float)scale, -gpu_half_at(b + 2) * (float)low};
}

GPU_FN gpu_four gpu_four_q2_K(GPU_GLOBAL const u8 *b, u32 j) {
    const u32 scale = b[j / 16];
    const u32 bytes =
        gpu_word_at(b + 16 + 32 * (j / 128) + j % 32) >> (2 * (j % 128 / 32)) & 0x03030303u;
    return {bytes, gpu_half_at(b + 80) * (float)(scale & 15),
            -gpu_half_at(b + 82) * (float)(scale >> 4)};
}

// The third bits of four neighbours lie in four neighbouring bytes, like their lower two: either is
// a word, shifted.
GPU_FN gpu_four gpu_four_q3_K(GPU_GLOBAL const u8 *b, u32 j) {
    const u32 g = j / 16;
    const int low = g < 8 ? b[96 + g] & 15 : b[96 + g - 8] >> 4;
    const int scale = (low | (b[104 + g % 4] >> (2 * (g / 4)) & 3) << 4) - 32;
    const u32 q = gpu_word_of_halves(b + 32 + 32 * (j / 128) + j % 32) >> (2 * (j % 128 / 32)),
              high = gpu_word_of_halves(b + j % 32) >> (j / 32);
    return {(q & 0x03030303u) | (high & 0x01010101u) << 2, gpu_half_at(b + 108) * (float)scale,
            0.0f};
}

GPU_FN gpu_four gpu_four_q6_K(GPU_GLOBAL const u8 *b, u32 j) {
    const u32 quarter = j % 128 / 32;
    const u32 low = gpu_word_of_halves(b + 64 * (j / 128) + j % 64) >> (4 * (quarter / 2)),
              high = gpu_word_of_halves(b + 128 + 32 * (j / 128) + j % 32) >> (2 * quarter);
    return {(low & 0x0f0f0f0fu) | (high & 0x03030303u) << 4,
            gpu_half_at(b + 208) * (float)(i8)b[192 + j / 16], 0.0f};
}

GPU_FN gpu_four gpu_four_iq4_xs(GPU_GLOBAL const u8 *b, u32 j) {
    const u32 g = j / 32;
    const int low = b[4 + g / 2] >> (4 * (g & 1)) & 15,
              high = (int)(gpu_u16_at(b + 2) >> (2 * g) & 3);
    const u32 word = gpu_word_at(b + 8 + 16 * g + (j & 15)) >> (4 * (j / 16 & 1));
    return {gpu_iq4_bytes(word & 0x0f0f0f0fu), gpu_half_at(b) * (float)((low | high << 4) - 32),
            0.0f};
}

// The digit of each byte: of the remainder after a product with a power of 3, by two bytes at once.
GPU_FN gpu_four gpu_four_tq1_0(GPU_GLOBAL const u8 *b, u32 j) {
    const u32 at = j < 160 ? j % 32 : j < 240 ? 32 + j % 16 : 48;
    const u32 power = gpu_powers_of_3[j < 160 ? j / 32 : j < 240 ? (j - 160) / 16 : (j - 240) / 4];
    const u32 word = gpu_word_of_halves(b + at);
    const u32 even = (word & 0x00ff00ffu) * power & 0x00ff00ffu,
              odd = (word >> 8 & 0x00ff00ffu) * power & 0x00ff00ffu;
    return {(even * 3 >> 8 & 0x00030003u) | (odd * 3 & 0x03000300u), gpu_half_at(b + 52), 0.0f};
}

GPU_FN gpu_four gpu_four_tq2_0(GPU_GLOBAL const u8 *b, u32 j) {
    const u32 word = gpu_word_of_halves(b + 32 * (j / 128) + j % 32) >> (2 * (j % 128 / 32));
    return {word & 0x03030303u, gpu_half_at(b + 64), 0.0f};
}

// --- points of grids -----------------------------------------------------------------------------

// Signs of eight from a code of seven.
GPU_FN u32 gpu_eight_signs(u32 code) {
    return code | (0x6996u >> ((code ^ code >> 4) & 15) & 1) << 7;
}
// Coordinates k to k + 3 of a point of IQ2: 8, 25, 43 for digits 0, 1, 2 and 60 for 3.
GPU_FN u32 gpu_grid_2_bytes(u32 code, u32 k) {
    const u32 digits = gpu_spread_2(code >> (2 * k));
    return 0x08080808u + 17u * digits + (digits >> 1 & 0x01010101u);
}

GPU_FN gpu_four gpu_four_iq2(int type, GPU_GLOBAL const u8 *b, u32 j) {
    const u32 l = j / 8, g = l / 4, k = j & 4;
    if (type == TYPE_IQ2_XXS) {
        GPU_GLOBAL const u8 *qs = b + 2 + 8 * g;
        const u32 codes = gpu_word_of_halves(qs + 4);
        return {gpu_with_signs(gpu_grid_2_bytes(gpu_grid_iq2_xxs[qs[l % 4]], k),
                               gpu_eight_signs(codes >> (7 * (l % 4)) & 127) >> k),
                gpu_half_at(b) * 0.125f * (float)(2 * (codes >> 28) + 1), 0.0f};
    }
    const u32 scales = b[(type == TYPE_IQ2_XS ? 66 : 74) + g];
    const float scale =
        gpu_half_at(b) * 0.125f * (float)(2 * (scales >> (4 * (l / 2 % 2)) & 15) + 1);
    if (type == TYPE_IQ2_XS) {
        const u32 q = gpu_u16_at(b + 2 + 2 * l);
        return {gpu_with_signs(gpu_grid_2_bytes(gpu_grid_iq2_xs[q & 511], k),
                               gpu_eight_signs(q >> 9) >> k),
                scale, 0.0f};
    }
    const u32 index = b[2 + l] | (u32)(b[66 + g] >> (2 * (l % 4)) & 3) << 8;
    return {gpu_with_signs(gpu_grid_2_bytes(gpu_grid_iq2_s[index], k), (u32)b[34 + l] >> k), scale,
            0.0f};
}

GPU_FN gpu_four gpu_four_iq3(int type, GPU_GLOBAL const u8 *b, u32 j) {
    const u32 l = j / 8, g = l / 4, k = j & 4, four = j / 4;
    if (type == TYPE_IQ3_XXS) {
        const u32 codes = gpu_word_of_halves(b + 66 + 4 * g);
        const u32 digits = gpu_spread_3(gpu_grid_iq3_xxs[b[2 + four]]);
        const u32 sizes =
            0x04040404u + 8u * digits + ((digits + 0x01010101u) >> 3 & 0x01010101u) * 2u;
        return {gpu_with_signs(sizes, gpu_eight_signs(codes >> (7 * (l % 4)) & 127) >> k),
                gpu_half_at(b) * 0.25f * (float)(2 * (codes >> 28) + 1), 0.0f};
    }
    const u32 index = b[2 + four] | (u32)(b[66 + four / 8] >> (four % 8) & 1) << 8;
    const u32 sizes = 0x01010101u + 2u * gpu_spread_3(gpu_grid_iq3_s[index]);
    return {gpu_with_signs(sizes, (u32)b[74 + l] >> k),
            gpu_half_at(b) * (float)(2 * (b[106 + l / 8] >> (4 * (g % 2)) & 15) + 1), 0.0f};
}

GPU_FN gpu_four gpu_four_iq1(int type, GPU_GLOBAL const u8 *b, u32 j) {
    const gpu_iq1_part part = gpu_iq1_part_at(type, b, j / 8);
    // The bias is 128: 0x77 is 128 - 8 - 1, 0x79 is 128 - 8 + 1.
    // 8 * (digit - 1) and one eighth up or down
    const u32 digits = gpu_spread_2(part.digits >> (2 * (j & 4)));
    return {(part.is_below ? 0x77777777u : 0x79797979u) + 8u * digits, part.scale, 0.0f};
}

// --- any type with blocks ------------------------------------------------------------------------

// Elements j to j + 3 of the block at b, j a multiple of 4.
GPU_FN gpu_four gpu_four_at(int type, GPU_GLOBAL const u8 *b, u32 j) {
    switch (type) {
    case TYPE_Q2_K: return gpu_four_q2_K(b, j);
    case TYPE_Q3_K: return gpu_four_q3_K(b, j);
    case TYPE_Q4_K:
    case TYPE_Q5_K: return gpu_four_q4_5_K(type, b, j);
    case TYPE_Q6_K: return gpu_four_q6_K(b, j);
    case TYPE_Q8_K:
        return {gpu_word_at(b + 4 + j) ^ 0x80808080u, *(GPU_GLOBAL const float *)b, 0.0f};
    case TYPE_IQ4_XS: return gpu_four_iq4_xs(b, j);
    case TYPE_TQ1_0: return gpu_four_tq1_0(b, j);
    case TYPE_TQ2_0: return gpu_four_tq2_0(b, j);
    case TYPE_IQ2_XXS:
    case TYPE_IQ2_XS:
    case TYPE_IQ2_S: return gpu_four_iq2(type, b, j);
    case TYPE_IQ3_XXS:
    case TYPE_IQ3_S: return gpu_four_iq3(type, b, j);
    case TYPE_IQ1_S:
    case TYPE_IQ1_M: return gpu_four_iq1(type, b, j);
    default: return gpu_four_small(type, b, j);
    }
}
GPU_FN float gpu_four_element(int type, gpu_four f, u32 i) {
    return gpu_fma(f.scale, (float)((int)(f.bytes >> (8 * i) & 255u) - gpu_four_bias(type)),
                   f.offset);
}

#endif
