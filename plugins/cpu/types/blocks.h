// SPDX-License-Identifier: MIT
// Blocks of quantised types as 8-bit numbers with scales, shared by unpacking and by products.
#ifndef CPU_BLOCKS_H
#define CPU_BLOCKS_H

#include "ggml-common.h"
#include "simd/bytes.h"
#include "simd/convert.h"

enum { MAX_GROUPS = QK_K / 16 };

// A type, as in block_list.inl.
struct block_format {
    enum ggml_type type;
    int bytes;
    int size;
    int group;
    int scale_at;
    int offset_at;
};

#define BLOCK_FORMAT(NAME, name, size, group, scale_at, offset_at)                                 \
    ((struct block_format){GGML_TYPE_##NAME, sizeof(block_##name), size, group, scale_at,          \
                           offset_at})

// Element i is scale * number + offset, with the scale and the offset of its group.
// Room for the largest block; smaller ones use the first part.
struct opened {
    int8_t numbers[QK_K];
    float scales[2 * MAX_GROUPS]; // offsets follow
};

enum { OFFSETS_16 = 16, OFFSETS_32 = 8 }; // index of the first offset, by group

CPU_INLINE float *offsets(const struct block_format f, struct opened *o) {
    return o->scales + (f.group == 16 ? OFFSETS_16 : OFFSETS_32);
}

// `first` in lanes with g + i < 8, otherwise `second`: a vector of more than 8 lanes spans both
// halves.
CPU_INLINE vf vf_halves(vf first, vf second, const int g) {
    if (LANES < 16) return g < 8 ? first : second;
    vi in_first;
    for (int i = 0; i < LANES; ++i)
        in_first[i] = i < 8 ? -1 : 0;
    return vf_select(in_first, first, second);
}

CPU_INLINE void fill_scales(struct opened *o, int groups) {
    for (int g = 1; g < groups; ++g)
        o->scales[g] = o->scales[0];
}

// Multiplies scales by the factor in y[0], in place. Whole vectors are read, also beyond the last
// group.
CPU_INLINE void scale_groups(float *y, const int8_t *q, int groups) {
    const float d = y[0];
    for (int g = 0; g < groups; g += LANES)
        vf_store(y + g, d * vf_from_i8(q + g));
}

// Values of half a byte, by type. FP4's are doubled, so that they are integers.
static const int8_t cpu_q4_values[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const int8_t cpu_q4_0_values[16] = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
static const int8_t cpu_fp4_values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
static const int8_t cpu_iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

// The other functions are open_<name>(): on entry the first scale and the first offset hold the
// block's factors; the result points to the numbers.

// Q1_0: a bit per element, set for +1 and clear for -1.
CPU_INLINE const int8_t *open_q1_0(const block_q1_0 *b, struct opened *o) {
    fill_scales(o, QK1_0 / 32);
    for (int j = 0; j < QK1_0; j += BYTES)
        vb_store(o->numbers + j, (vb_mask(b->qs + j / 8) & 2) - 1);
    return o->numbers;
}

// Q2_0: byte i holds elements 4 i to 4 i + 3, which shuffles bring into order.
CPU_INLINE const int8_t *open_q2_0(const block_q2_0 *b, struct opened *o) {
    fill_scales(o, QK2_0 / 32);
    const v16b qs = v16b_load(b->qs);
    v16b q[4], pairs[4];
    for (int i = 0; i < 4; ++i)
        q[i] = ((qs >> (2 * i)) & 3) - 1;
    for (int i = 0; i < 2; ++i) {
        pairs[i] = __builtin_shufflevector(q[2 * i], q[2 * i + 1], 0, 16, 1, 17, 2, 18, 3, 19, 4,
                                           20, 5, 21, 6, 22, 7, 23);
        pairs[i + 2] = __builtin_shufflevector(q[2 * i], q[2 * i + 1], 8, 24, 9, 25, 10, 26, 11, 27,
                                               12, 28, 13, 29, 14, 30, 15, 31);
    }
    for (int i = 0; i < 2; ++i) {
        const v16b low = __builtin_shufflevector(pairs[2 * i], pairs[2 * i + 1], 0, 1, 16, 17, 2, 3,
                                                 18, 19, 4, 5, 20, 21, 6, 7, 22, 23);
        const v16b high = __builtin_shufflevector(pairs[2 * i], pairs[2 * i + 1], 8, 9, 24, 25, 10,
                                                  11, 26, 27, 12, 13, 28, 29, 14, 15, 30, 31);
        memcpy(o->numbers + 32 * i, &low, sizeof(low));
        memcpy(o->numbers + 32 * i + 16, &high, sizeof(high));
    }
    return o->numbers;
}

// 32 numbers less an offset: four bits each, and a fifth if `qh` is not NULL.
CPU_INLINE void open_32(struct opened *o, const uint8_t *qs, const uint8_t *qh, const int offset) {
    for (int j = 0; j < 32; j += BYTES) {
        vb q = vb_nibbles(qs, j);
        if (qh) q |= vb_mask(qh + j / 8) & 16;
        vb_store(o->numbers + j, q - (uint8_t)offset);
    }
}

// Q4_0: biased by 8.
CPU_INLINE const int8_t *open_q4_0(const block_q4_0 *b, struct opened *o) {
    open_32(o, b->qs, NULL, 8);
    return o->numbers;
}

// Q4_1: unsigned, with a minimum as offset.
CPU_INLINE const int8_t *open_q4_1(const block_q4_1 *b, struct opened *o) {
    open_32(o, b->qs, NULL, 0);
    return o->numbers;
}

// Q5_0: biased by 16; qh has the fifth bits.
CPU_INLINE const int8_t *open_q5_0(const block_q5_0 *b, struct opened *o) {
    open_32(o, b->qs, b->qh, 16);
    return o->numbers;
}

// Q5_1: as Q5_0, unsigned, with a minimum as offset.
CPU_INLINE const int8_t *open_q5_1(const block_q5_1 *b, struct opened *o) {
    open_32(o, b->qs, b->qh, 0);
    return o->numbers;
}

// Q8_0: the block has them as bytes already.
CPU_INLINE const int8_t *open_q8_0(const block_q8_0 *b, struct opened *o) {
    (void)o;
    return b->qs;
}

// Q2_K: a byte per 16 elements with scale and minimum, four bits each.
CPU_INLINE void open_q2_K_scales(const block_q2_K *b, struct opened *o) {
    int8_t scales[MAX_GROUPS], mins[MAX_GROUPS];
    const v16b packed = v16b_load(b->scales);
    const v16b low = packed & 15, high = packed >> 4;
    memcpy(scales, &low, sizeof(low));
    memcpy(mins, &high, sizeof(high));
    scale_groups(o->scales, scales, MAX_GROUPS);
    o->scales[OFFSETS_16] = -o->scales[OFFSETS_16];
    scale_groups(o->scales + OFFSETS_16, mins, MAX_GROUPS);
}

// Q2_K: element i of each 128 has two bits of byte i % 32.
CPU_INLINE const int8_t *open_q2_K(const block_q2_K *b, struct opened *o) {
    open_q2_K_scales(b, o);
    for (int j = 0; j < QK_K / 4; j += BYTES) {
        const vb qs = vb_load(b->qs + j);
        int8_t *q = o->numbers + j / 32 * 128 + j % 32;
        for (int i = 0; i < 4; ++i)
            vb_store(q + 32 * i, vb_bits(qs, 2 * i, 0, 3));
    }
    return o->numbers;
}

// Q3_K: 16 scales of six bits in 12 bytes, low nibbles first, then the upper pairs of bits;
// biased by 32.
CPU_INLINE void open_q3_K_scales(const uint8_t *packed, int8_t *scales) {
    uint32_t words[3];
    memcpy(words, packed, K_SCALE_SIZE);
    const v4w low = {words[0], words[1], words[0] >> 4, words[1] >> 4};
    const v4w high = {words[2] << 4, words[2] << 2, words[2], words[2] >> 2};
    const v16b q = (v16b)((low & 0x0F0F0F0F) | (high & 0x30303030)) - 32;
    memcpy(scales, &q, sizeof(q));
}

// Q3_K: two bits of qs and one of hmask, biased by 4.
CPU_INLINE const int8_t *open_q3_K(const block_q3_K *b, struct opened *o) {
    int8_t scales[MAX_GROUPS];
    open_q3_K_scales(b->scales, scales);
    scale_groups(o->scales, scales, MAX_GROUPS);
    for (int j = 0; j < 32; j += BYTES) {
        const vb high = vb_load(b->hmask + j);
        for (int i = 0; i < 8; ++i) {
            const vb qs = vb_load(b->qs + 32 * (i / 4) + j);
            const vb q = vb_bits(qs, 2 * (i % 4), 0, 3) | vb_bits(high, i, 2, 4);
            vb_store(o->numbers + 32 * i + j, q - 4);
        }
    }
    return o->numbers;
}

// Six-bit scales, then minima, of the eight groups of a Q4_K or Q5_K block.
CPU_INLINE void open_k4_scales(const uint8_t *packed, struct opened *o) {
    int8_t q[2 * OFFSETS_32];
    uint64_t low; // four scales, four minima; their top bits belong to the next four of each
    uint32_t rest;
    memcpy(&low, packed, sizeof(low));
    memcpy(&rest, packed + sizeof(low), sizeof(rest));
    const uint64_t next = (rest | (uint64_t)rest << 28) & 0x0F0F0F0F0F0F0F0F;
    const v4w both = (v4w)(v2q){low & 0x3F3F3F3F3F3F3F3F, next | (low >> 2 & 0x3030303030303030)};
    const v4w all = __builtin_shufflevector(both, both, 0, 2, 1, 3);
    memcpy(q, &all, sizeof(all));
    const vf scale = vf_set(o->scales[0]), offset = vf_set(-o->scales[OFFSETS_32]);
    for (int g = 0; g < 2 * OFFSETS_32; g += LANES)
        vf_store(o->scales + g, vf_from_i8(q + g) * vf_halves(scale, offset, g));
}

// 64 numbers: the low halves of 32 bytes, then the high halves. Bit g of qh, if not NULL, then
// g + 1, is a fifth.
CPU_INLINE void open_64(int8_t *numbers, const uint8_t *qs, const uint8_t *qh, const int g) {
    for (int j = 0; j < 32; j += BYTES) {
        const vb packed = vb_load(qs + j);
        vb low = packed & 15;
        vb high = vb_bits(packed, 4, 0, 15);
        if (qh) {
            low |= vb_bits(vb_load(qh + j), g, 4, 16);
            high |= vb_bits(vb_load(qh + j), g + 1, 4, 16);
        }
        vb_store(numbers + j, low);
        vb_store(numbers + j + 32, high);
    }
}

// Q4_K: each 64 elements share 32 bytes, low nibbles first.
CPU_INLINE const int8_t *open_q4_K(const block_q4_K *b, struct opened *o) {
    open_k4_scales(b->scales, o);
    for (int g = 0; g < 8; g += 2)
        open_64(o->numbers + 32 * g, b->qs + 16 * g, NULL, g);
    return o->numbers;
}

// Q5_K: Q4_K with a fifth bit per element in qh, bit g for group g.
CPU_INLINE const int8_t *open_q5_K(const block_q5_K *b, struct opened *o) {
    open_k4_scales(b->scales, o);
    for (int g = 0; g < 8; g += 2)
        open_64(o->numbers + 32 * g, b->qs + 16 * g, b->qh, g);
    return o->numbers;
}

// Q6_K: four bits of ql and two of qh, biased by 32.
CPU_INLINE const int8_t *open_q6_K(const block_q6_K *b, struct opened *o) {
    scale_groups(o->scales, b->scales, MAX_GROUPS);
    for (int j = 0; j < 64; j += BYTES) {
        const uint8_t *ql = b->ql + 64 * (j / 32) + j % 32;
        int8_t *numbers = o->numbers + 128 * (j / 32) + j % 32;
        const vb qh = vb_load(b->qh + j);
        for (int i = 0; i < 4; ++i) {
            const vb low = vb_bits(vb_load(ql + 32 * (i % 2)), i / 2 * 4, 0, 15);
            vb_store(numbers + 32 * i, (low | vb_bits(qh, 2 * i, 4, 48)) - 32);
        }
    }
    return o->numbers;
}

// 32 numbers by a table of 16: low nibbles are the first 16.
CPU_INLINE void look_up_32(int8_t *numbers, const uint8_t *qs, const int8_t *values) {
    for (int j = 0; j < 32; j += BYTES)
        vb_store(numbers + j, vb_lookup(values, vb_nibbles(qs, j)));
}

// IQ4_NL: a table of values that are denser around 0.
CPU_INLINE const int8_t *open_iq4_nl(const block_iq4_nl *b, struct opened *o) {
    look_up_32(o->numbers, b->qs, cpu_iq4_values);
    return o->numbers;
}

// Spreads eight fields of `bits` bits to a byte each: first the upper half is moved, then that of
// each half, then that of each quarter.
CPU_INLINE uint64_t spread_fields(uint64_t x, const int bits) {
    const uint64_t field = (UINT64_C(1) << bits) - 1;
    const uint64_t two = field << bits | field, four = two << 2 * bits | two;
    x = (x | x << (32 - 4 * bits)) & four * 0x0000000100000001;
    x = (x | x << (16 - 2 * bits)) & two * 0x0001000100010001;
    return (x | x << (8 - bits)) & field * 0x0101010101010101;
}

// IQ4_XS: eight scales of six bits, four in scales_l and two in scales_h; biased by 32.
CPU_INLINE v16b iq4_xs_scales(const block_iq4_xs *b) {
    uint32_t low;
    memcpy(&low, b->scales_l, sizeof(low));
    const uint64_t both = spread_fields(low, 4) | spread_fields(b->scales_h, 2) << 4;
    return (v16b)(v2q){both, 0} - 32;
}

// The same times the factor of the block, as floats.
CPU_INLINE void open_iq4_xs_scales(const block_iq4_xs *b, struct opened *o) {
    int8_t scales[MAX_GROUPS];
    const v16b all = iq4_xs_scales(b);
    memcpy(scales, &all, sizeof(all));
    scale_groups(o->scales, scales, 8);
}

// IQ4_XS: nibbles are indices of a table of 16 values.
CPU_INLINE const int8_t *open_iq4_xs(const block_iq4_xs *b, struct opened *o) {
    open_iq4_xs_scales(b, o);
    for (int g = 0; g < 8; ++g)
        look_up_32(o->numbers + 32 * g, b->qs + 16 * g, cpu_iq4_values);
    return o->numbers;
}

// Digits of base 3, most significant first. A byte is a fraction of 256: the leading digit is found
// by comparison with thirds, and tripling the byte brings up the next. n bytes give n numbers per
// digit, `stride` apart.
CPU_INLINE void open_trits(int8_t *numbers, const uint8_t *qs, const int n, const int stride,
                           const int digits) {
    vb rest = vb_load_part(qs, (size_t)n);
    for (int i = 0; i < digits; ++i) {
        const vb q = 255 - (vb)(rest >= 86) - (vb)(rest >= 171);
        memcpy(numbers + i * stride, &q, (size_t)n);
        rest += rest + rest;
    }
}

// TQ1_0: five ternary digits per byte (3^5 = 243), and four in the last bytes.
CPU_INLINE const int8_t *open_tq1_0(const block_tq1_0 *b, struct opened *o) {
    fill_scales(o, 8);
    for (int j = 0; j < 32; j += BYTES)
        open_trits(o->numbers + j, b->qs + j, BYTES, 32, 5);
    open_trits(o->numbers + 160, b->qs + 32, 16, 16, 5);
    open_trits(o->numbers + 240, b->qh, 4, 4, 4);
    return o->numbers;
}

// TQ2_0: two bits per element, biased by 1.
CPU_INLINE const int8_t *open_tq2_0(const block_tq2_0 *b, struct opened *o) {
    fill_scales(o, 8);
    for (int j = 0; j < 64; j += BYTES) {
        const vb qs = vb_load(b->qs + j);
        int8_t *q = o->numbers + j / 32 * 128 + j % 32;
        for (int i = 0; i < 4; ++i)
            vb_store(q + 32 * i, vb_bits(qs, 2 * i, 0, 3) - 1);
    }
    return o->numbers;
}

// A power of two; half of it, since the table of FP4 values is doubled.
CPU_INLINE void open_mxfp4_scale(const block_mxfp4 *b, struct opened *o) {
    o->scales[0] = GGML_E8M0_TO_FP32_HALF(b->e);
}

// MXFP4: nibbles are FP4 values by a table, with a power of two as scale.
CPU_INLINE const int8_t *open_mxfp4(const block_mxfp4 *b, struct opened *o) {
    open_mxfp4_scale(b, o);
    look_up_32(o->numbers, b->qs, cpu_fp4_values);
    return o->numbers;
}

// Half the values of four unsigned E4M3 bytes (bias 7); code 127 counts as 0.
CPU_INLINE void open_ue4m3_scales(const uint8_t *d, struct opened *o) {
    int8_t codes[16];
    uint32_t word;
    memcpy(&word, d, sizeof(word));
    v16b packed = (v16b)(v4w){word};
    packed = packed & 127 & ~(v16b)(packed == 127);
    memcpy(codes, &packed, sizeof(packed));
    for (int g = 0; g < 4; g += LANES) {
        const vf small = vf_from_i8(codes + g);
        const vi code = __builtin_convertvector(small, vi);
        const vf large = (vf)((code << 20) + (119 << 23));
        vf_store(o->scales + g, vf_select(code < 8, small * 0x1p-10f, large));
    }
}

// NVFP4: FP4 values, whose scales are E4M3 numbers per 16 elements; byte i of 8 holds elements i
// and i + 8.
CPU_INLINE const int8_t *open_nvfp4(const block_nvfp4 *b, struct opened *o) {
    open_ue4m3_scales(b->d, o);
    for (int j = 0; j < QK_NVFP4 / 2; j += 16) {
        const v16b qs = v16b_load(b->qs + j);
        const v16b low = v16b_lookup(cpu_fp4_values, qs & 15);
        const v16b high = v16b_lookup(cpu_fp4_values, qs >> 4);
        const v16b first = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18,
                                                   19, 20, 21, 22, 23);
        const v16b second = __builtin_shufflevector(low, high, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25,
                                                    26, 27, 28, 29, 30, 31);
        memcpy(o->numbers + 2 * j, &first, sizeof(first));
        memcpy(o->numbers + 2 * j + 16, &second, sizeof(second));
    }
    return o->numbers;
}

#include "types/blocks_grid.h"

// clang-format off
CPU_INLINE const int8_t *open_numbers(const enum ggml_type type, const void *b, struct opened *o) {
    switch (type) {
#define CPU_BLOCK_ROW(NAME, name, ...)                                                             \
    case GGML_TYPE_##NAME: return open_##name(b, o);
#include "types/block_list.inl"
    default: GGML_UNREACHABLE();
    }
}
// clang-format on

// Converts the factors of a block each of n <= 4 rows together: one conversion instruction instead
// of 2 n.
CPU_INLINE void open_factors(const struct block_format f, const char *const *blocks, const int n,
                             struct opened *o) {
    uint64_t halves[2] = {0};
    float factors[2][4];
    for (int r = 0; r < n; ++r) {
        if (f.scale_at >= 0) halves[0] |= half_of_four(blocks[r] + f.scale_at, r);
        if (f.offset_at >= 0) halves[1] |= half_of_four(blocks[r] + f.offset_at, r);
    }
    if (f.scale_at >= 0) four_floats(factors[0], halves[0]);
    if (f.offset_at >= 0) four_floats(factors[1], halves[1]);
    CPU_IN_MEMORY(factors);
    for (int r = 0; r < n; ++r) {
        if (f.scale_at >= 0) o[r].scales[0] = factors[0][r];
        if (f.offset_at >= 0) *offsets(f, &o[r]) = factors[1][r];
    }
}

// A block each of n <= 4 rows; `f` and `n` are constants where this is inlined.
CPU_INLINE void open_blocks(const struct block_format f, const char *const *blocks, const int n,
                            struct opened *o, const int8_t **numbers) {
    open_factors(f, blocks, n, o);
    for (int r = 0; r < n; ++r) {
        numbers[r] = open_numbers(f.type, blocks[r], &o[r]);
        CPU_IN_MEMORY(o[r]);
    }
}

#endif
