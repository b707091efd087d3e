// SPDX-License-Identifier: MIT
// Blocks whose numbers are entries of a table of 16, where an instruction looks up 16 floats: the
// table is scaled instead of the numbers.
#ifndef CPU_NIBBLES_H
#define CPU_NIBBLES_H

#include "types/blocks.h"

enum { NIBBLE_ROWS = 4 };

// Location of the nibbles, their values, and whether high nibbles form a group of their own, 32
// elements after the low ones, or the second half of the same group.
struct nibble_format {
    int qs_at;
    const int8_t *values;
    bool own_group;
};

// How the 4-bit numbers of a type are stored: offset of the bytes within a block, the table of
// values that a nibble stands for, and whether a group has its low and high nibbles in bytes of its
// own.
CPU_INLINE struct nibble_format nibble_format(const enum ggml_type type) {
    switch (type) {
#define ROW(NAME, name, values, own_group)                                                         \
    case GGML_TYPE_##NAME:                                                                         \
        return (struct nibble_format){offsetof(block_##name, qs), values, own_group};
        ROW(Q4_0, q4_0, cpu_q4_0_values, false)
        ROW(Q4_1, q4_1, cpu_q4_values, false)
        ROW(Q4_K, q4_K, cpu_q4_values, true)
        ROW(IQ4_NL, iq4_nl, cpu_iq4_values, false)
        ROW(IQ4_XS, iq4_xs, cpu_iq4_values, false)
        ROW(MXFP4, mxfp4, cpu_fp4_values, false)
#undef ROW
    default: return (struct nibble_format){0, NULL, false};
    }
}

CPU_INLINE void open_nibble_scales(const enum ggml_type type, const void *b, struct opened *o) {
    if (type == GGML_TYPE_Q4_K) open_k4_scales(((const block_q4_K *)b)->scales, o);
    if (type == GGML_TYPE_IQ4_XS) open_iq4_xs_scales(b, o);
    if (type == GGML_TYPE_MXFP4) open_mxfp4_scale(b, o);
}

#if defined(__AVX512F__)
// Values of the 16 codes in group g: the table is scaled once instead of every number.
CPU_INLINE vf scaled_values(const struct block_format f, vf values, struct opened *o, int g) {
    const vf table = o->scales[g] * values;
    return f.offset_at >= 0 ? table + offsets(f, o)[g] : table;
}

// sums[c][r] += products of group g with column c, and of the next group if that has the high
// nibbles.
CPU_INLINE void add_nibble_group(const struct block_format f, vf (*sums)[NIBBLE_ROWS], const int r,
                                 const char *block, struct opened *o, int g, const float *const *x,
                                 const int columns) {
    const struct nibble_format n = nibble_format(f.type);
    const int groups = n.own_group ? 2 : 1;
    const vf values = vf_from_i8(n.values);
    const vf first = scaled_values(f, values, o, g);
    const vf last = n.own_group ? scaled_values(f, values, o, g + 1) : first;
    CPU_UNROLLED
    for (int i = 0; i < groups; ++i) {
        const v16b qs = v16b_load(block + n.qs_at + 16 * (g + i));
        const __m512i index = _mm512_cvtepu8_epi32((__m128i)qs);
        const vf low = _mm512_permutexvar_ps(index, first);
        const vf high = _mm512_permutexvar_ps(_mm512_srli_epi32(index, 4), last);
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            const float *at = x[c] + 32 * g + 16 * i;
            sums[c][r] += low * vf_load(at);
            sums[c][r] += high * vf_load(at + 16 * groups);
        }
    }
}

// sums[c][r] += products of a block of row r with column c.
CPU_INLINE void add_nibbles(const struct block_format f, vf (*sums)[NIBBLE_ROWS],
                            const char *const *blocks, const float *const *x, const int columns) {
    struct opened o[NIBBLE_ROWS];
    open_factors(f, blocks, NIBBLE_ROWS, o);
    for (int r = 0; r < NIBBLE_ROWS; ++r) {
        open_nibble_scales(f.type, blocks[r], &o[r]);
        CPU_IN_MEMORY(o[r].scales);
    }
    for (int g = 0; g < f.size / f.group; g += nibble_format(f.type).own_group ? 2 : 1) {
        CPU_UNROLLED
        for (int r = 0; r < NIBBLE_ROWS; ++r)
            add_nibble_group(f, sums, r, blocks[r], &o[r], g, x, columns);
    }
}
#else
CPU_INLINE void add_nibbles(const struct block_format f, vf (*sums)[NIBBLE_ROWS],
                            const char *const *blocks, const float *const *x, const int columns) {
    (void)f, (void)sums, (void)blocks, (void)x, (void)columns;
}
#endif

#endif
