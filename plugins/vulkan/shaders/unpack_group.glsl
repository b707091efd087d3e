// SPDX-License-Identifier: MIT
// Groups of 32 neighbouring elements of block types at once, from 16-byte loads: drivers that run
// on the CPU pay for the number of loads and hardly for their width. Instantiated like unpack.glsl
// and after it:
//
//   void <name>_group_unpack(type, wide, row, g, out vec4 x[8])    elements 32 g to 32 g + 31
//
// wide: addresses of blocks are as aligned as their sizes are, up to 16 bytes; others are decoded
// in fours. A load may begin or end a little behind the block. With UNPACK_SMALL only the types
// with blocks of 32 and one scale in half precision are known, wide.
#ifndef UNPACK_GROUP_GLSL
#define UNPACK_GROUP_GLSL

vec4 group_nibbles(const uint word, const uint shift) {
    return vec4(unpack_fields(word, shift, 15u));
}

// All elements from the nibbles q of four words: low ones first.
#define GROUP_OF_NIBBLES(expression)                                                               \
    [[unroll]] for (uint i = 0; i < 8; ++i) {                                                      \
        const vec4 q = group_nibbles(w[first + (i & 3u)], i < 4u ? 0u : 4u);                       \
        x[i] = expression;                                                                         \
    }

// Byte g of the words s0, s1, ...
uint group_byte(const uvec4 s, const uint g) {
    const uint word = (g & 8u) != 0u ? ((g & 4u) != 0u ? s.w : s.z) : ((g & 4u) != 0u ? s.y : s.x);
    return (word >> (8u * (g & 3u))) & 255u;
}

#endif

// --- once per operand ----------------------------------------------------------------------------

#ifndef UNPACK_GRIDS
// The 4 * loads - 4 words that begin at byte address `at`.
void U(_group_words)(const uint at, const uint loads, const uint alignment, out uint words[12]) {
    uint w[14];
    [[unroll]] for (uint i = 0; i < loads; ++i) {
        const uvec4 v = U(_uvec4)[(at >> 4) + i];
        [[unroll]] for (uint c = 0; c < 4; ++c) w[4 * i + c] = v[c];
    }
    [[unroll]] for (uint i = 4 * loads; i < 14; ++i) w[i] = 0u;
    if (alignment < 16u) {
        [[unroll]] for (uint i = 0; i < 12; ++i) w[i] = (at & 8u) != 0u ? w[i + 2] : w[i];
    }
    if (alignment < 8u) {
        [[unroll]] for (uint i = 0; i < 12; ++i) w[i] = (at & 4u) != 0u ? w[i + 1] : w[i];
    }
    if (alignment < 4u) {
        const uint shift = 8u * (at & 3u);
        [[unroll]] for (uint i = 0; i < 12; ++i)
            w[i] = w[i] >> shift | w[i + 1] << 1 << (31u - shift);
    }
    [[unroll]] for (uint i = 0; i < 12; ++i) words[i] = w[i];
}

// Q4_0 and Q4_1: nibbles i and i + 16 share a byte.
void U(_group_q4)(const uint type, const uint at, out vec4 x[8]) {
    uint w[12];
    if (type == TYPE_Q4_0) {
        U(_group_words)(at, 2, 2, w);
        const uint first = 0;
        const float d = unpack_half(w[0]);
        [[unroll]] for (uint i = 0; i < 4; ++i) w[i] = w[i] >> 16 | w[i + 1] << 16;
        GROUP_OF_NIBBLES(d * (q - 8.0))
    } else {
        U(_group_words)(at, 2, 4, w);
        const uint first = 1;
        const vec2 scale = unpackHalf2x16(w[0]);
        GROUP_OF_NIBBLES(scale.x * q + scale.y)
    }
}

// Q5_0 and Q5_1: nibbles as above, fifth bits in one word.
void U(_group_q5)(const uint type, const uint at, out vec4 x[8]) {
    uint w[12];
    vec2 scale;
    if (type == TYPE_Q5_0) {
        U(_group_words)(at, 3, 2, w);
        scale.x = unpack_half(w[0]);
        scale.y = -16.0 * scale.x;
        [[unroll]] for (uint i = 5; i > 0; --i) w[i] = w[i - 1] >> 16 | w[i] << 16;
    } else {
        U(_group_words)(at, 2, 8, w);
        scale = unpackHalf2x16(w[0]);
    }
    [[unroll]] for (uint i = 0; i < 8; ++i) {
        const vec4 low = group_nibbles(w[2 + (i & 3u)], i < 4u ? 0u : 4u);
        x[i] = scale.x * (low + vec4(16 * unpack_bits(w[1], 4 * i))) + scale.y;
    }
}

// Q8_0: a scale in half precision, then 32 signed bytes.
void U(_group_q8_0)(const uint at, out vec4 x[8]) {
    uint w[12];
    U(_group_words)(at, 3, 2, w);
    const float d = unpack_half(w[0]);
    [[unroll]] for (uint i = 0; i < 8; ++i)
        x[i] = d * vec4(unpack_signed(w[i] >> 16 | w[i + 1] << 16));
}

// IQ4_NL: nibbles are indices of a table of 16 values.
void U(_group_iq4_nl)(const uint at, out vec4 x[8]) {
    uint w[12];
    U(_group_words)(at, 2, 2, w);
    const float d = unpack_half(w[0]);
    [[unroll]] for (uint i = 0; i < 4; ++i) {
        const uint word = w[i] >> 16 | w[i + 1] << 16;
        x[i] = d * vec4(unpack_table(UNPACK_IQ4, unpack_fields(word, 0, 15u)));
        x[i + 4] = d * vec4(unpack_table(UNPACK_IQ4, unpack_fields(word, 4, 15u)));
    }
}

#ifndef UNPACK_SMALL
// MXFP4: an exponent in one byte, so that the nibbles begin at an odd address.
void U(_group_mxfp4)(const uint at, out vec4 x[8]) {
    uint w[12];
    U(_group_words)(at, 2, 1, w);
    const float d = unpack_e8m0_half(w[0] & 255u);
    [[unroll]] for (uint i = 0; i < 4; ++i) {
        const uint word = w[i] >> 8 | w[i + 1] << 24;
        x[i] = d * vec4(unpack_table(UNPACK_FP4, unpack_fields(word, 0, 15u)));
        x[i + 4] = d * vec4(unpack_table(UNPACK_FP4, unpack_fields(word, 4, 15u)));
    }
}

// IQ4_XS: per group of 32 a scale of six bits, four of them in one word and two in another.
void U(_group_iq4_xs)(const uint at, const uint g, out vec4 x[8]) {
    uint head[12];
    uint w[12];
    U(_group_words)(at, 1, 16, head);
    if ((at & 8u) != 0u) {
        head[0] = head[2];
        head[1] = head[3];
    }
    U(_group_words)(at + 8 + 16 * g, 2, 8, w);
    const uint low = head[1] >> (4 * g);
    const uint high = head[0] >> (16 + 2 * g);
    const float scale = unpack_half(head[0]) * float(int((low & 15u) | (high & 3u) << 4) - 32);
    [[unroll]] for (uint i = 0; i < 8; ++i) {
        const ivec4 q = unpack_fields(w[i & 3u], i < 4u ? 0u : 4u, 15u);
        x[i] = scale * vec4(unpack_table(UNPACK_IQ4, q));
    }
}

// Q4_K and Q5_K: per group of 32 a scale and a minimum of six bits each, packed in 12 bytes.
void U(_group_k45)(const uint type, const uint at, const uint g, out vec4 x[8]) {
    const uvec4 head = U(_uvec4)[at >> 4];
    const uvec4 scales = uvec4(head.yzw, 0);
    const uint low = group_byte(scales, g & 3u);
    const uint mid = group_byte(scales, 4 + (g & 3u));
    const uint high = group_byte(scales, 8 + (g & 3u));
    const uvec2 six = g < 4u ? uvec2(low, mid) & 63u
                             : uvec2((high & 15u) | (low >> 6) << 4, (high >> 4) | (mid >> 6) << 4);
    const vec2 scale = unpackHalf2x16(head.x) * vec2(six);
    const uint qs = (at >> 4) + (type == TYPE_Q4_K ? 1 : 3) + 2 * (g / 2);
    [[unroll]] for (uint half_group = 0; half_group < 2; ++half_group) {
        const uvec4 low4 = U(_uvec4)[qs + half_group];
        uvec4 fifth = uvec4(0);
        if (type == TYPE_Q5_K) fifth = U(_uvec4)[(at >> 4) + 1 + half_group];
        [[unroll]] for (uint i = 0; i < 4; ++i) {
            vec4 q = group_nibbles(low4[i], 4 * (g & 1u));
            if (type == TYPE_Q5_K) q += 16.0 * vec4(unpack_fields(fifth[i], g, 1u));
            x[4 * half_group + i] = scale.x * q - scale.y;
        }
    }
}

// Q2_K: per 16 elements a scale and a minimum of four bits each.
void U(_group_q2_K)(const uint at, const uint g, out vec4 x[8]) {
    uint w[12];
    U(_group_words)(at + 16 + 32 * (g / 4), 3, 4, w);
    const vec2 d = unpackHalf2x16(U(_u32)[(at + 80) >> 2]);
    const uint scales = U(_short)(at + 2 * g);
    [[unroll]] for (uint i = 0; i < 8; ++i) {
        const uint scale = i < 4u ? scales : scales >> 8;
        const vec4 q = vec4(unpack_fields(w[i], 2 * (g & 3u), 3u));
        x[i] = d.x * float(scale & 15u) * q - d.y * float((scale >> 4) & 15u);
    }
}

// Q3_K: two low bits, a mask of third bits, and signed scales of six bits per 16 elements.
void U(_group_q3_K)(const uint at, const uint g, out vec4 x[8]) {
    uint w[12];
    uint mask[12];
    uint tail[12]; // scales and d
    U(_group_words)(at + 32 + 32 * (g / 4), 3, 2, w);
    U(_group_words)(at, 3, 2, mask);
    U(_group_words)(at + 96, 2, 2, tail);
    const float d = unpack_half(tail[3]);
    const uvec4 scales = uvec4(tail[0], tail[1], tail[2], 0);
    [[unroll]] for (uint i = 0; i < 8; ++i) {
        const uint s = 2 * g + i / 4; // of 16 elements
        const uint low = group_byte(scales, s & 7u) >> (s < 8u ? 0u : 4u);
        const uint high = group_byte(scales, 8 + (s & 3u)) >> (2 * (s / 4));
        const float scale = d * float(int((low & 15u) | (high & 3u) << 4) - 32);
        const ivec4 q = unpack_fields(w[i], 2 * (g & 3u), 3u);
        x[i] = scale * vec4(q + 4 * unpack_fields(mask[i], g, 1u) - 4);
    }
}

// Q6_K: four low and two high bits, and a scale of a signed byte per 16 elements.
void U(_group_q6_K)(const uint at, const uint g, out vec4 x[8]) {
    uint low[12];
    uint high[12];
    U(_group_words)(at + 64 * (g / 4) + 32 * (g & 1u), 3, 2, low);
    U(_group_words)(at + 128 + 32 * (g / 4), 3, 2, high);
    const float d = U(_half)(at + 208);
    const ivec4 scales = unpack_signed(U(_short)(at + 192 + 2 * g));
    [[unroll]] for (uint i = 0; i < 8; ++i) {
        const ivec4 q = unpack_fields(low[i], 4 * ((g & 3u) / 2), 15u) +
                        16 * unpack_fields(high[i], 2 * (g & 3u), 3u);
        x[i] = d * float(scales[i / 4]) * vec4(q - 32);
    }
}
#endif
#endif

// Elements 32 g to 32 g + 31 of the row of blocks at an address.
void U(_group_unpack)(const uint type, const bool wide, const uint row, const uint g,
                      out vec4 x[8]) {
    const uvec2 block = unpack_block(type);
    const uint in_block = g % (block.x / 32);
    const uint at = row + g / (block.x / 32) * block.y;
#ifdef UNPACK_GRIDS
    [[unroll]] for (uint l = 0; l < 4; ++l) {
        const GridEight e = U(_grid_eight)(type, at, 4 * in_block + l);
        x[2 * l] = grid_four(type, e, 0);
        x[2 * l + 1] = grid_four(type, e, 1);
    }
#else
    switch (wide ? type : 0u) {
    case TYPE_Q4_0: case TYPE_Q4_1: U(_group_q4)(type, at, x); break;
    case TYPE_Q5_0: case TYPE_Q5_1: U(_group_q5)(type, at, x); break;
    case TYPE_Q8_0: U(_group_q8_0)(at, x); break;
    case TYPE_IQ4_NL: U(_group_iq4_nl)(at, x); break;
#ifndef UNPACK_SMALL
    case TYPE_MXFP4: U(_group_mxfp4)(at, x); break;
    case TYPE_IQ4_XS: U(_group_iq4_xs)(at, in_block, x); break;
    case TYPE_Q4_K: case TYPE_Q5_K: U(_group_k45)(type, at, in_block, x); break;
    case TYPE_Q2_K: U(_group_q2_K)(at, in_block, x); break;
    case TYPE_Q3_K: U(_group_q3_K)(at, in_block, x); break;
    case TYPE_Q6_K: U(_group_q6_K)(at, in_block, x); break;
    default:
        [[unroll]] for (uint i = 0; i < 8; ++i)
            x[i] = U(_unpack_block4)(type, at, 32 * in_block + 4 * i);
#endif
    }
#endif
}

#undef UNPACK_FROM
