// SPDX-License-Identifier: MIT
// ggml-common.h: the memory layout of every quantised block, under the names that backends use. The
// layouts are also the file format of GGUF and never change; a new format gets a new struct.
//
// Bytes lie in the declared order without padding. `d`, `m`, `s` and `dmin` are IEEE binary16 bits
// unless the type says otherwise. Multi-byte members are in the machine's order.
//
// Above each struct is the value of its element j, by these words:
//   lo(b), hi(b)   lower and upper four bits of a byte
//   bits(x, i, n)  n bits of x from bit i on; of an array of bytes bit i is bit i % 8 of byte i / 8
//   nib(j)         4-bit code of element j where the first half of a block is in low nibbles and
//                  the second in high ones: j < n/2 ? lo(qs[j]) : hi(qs[j - n/2])
// core/quant decodes them, as the reference; the number of elements per block is in type_list.inl.
//
// Which to take for a kernel's other operand: Q8_0, Q8_1 and Q8_K are made while computing, so that
// products become sums of integers; their `s` and `bsums` serve the types with a minimum.
#ifndef GGML_COMMON_H
#define GGML_COMMON_H

#include <stdint.h>

#ifdef __cplusplus

// Holds the sizes at compile time.
#define GGML_COMMON_ASSERT(condition) static_assert(condition, #condition)
#else
#define GGML_COMMON_ASSERT(condition) _Static_assert(condition, #condition)
#endif

// IEEE binary16, as bits.
typedef uint16_t ggml_half;

// Elements per block, or per super-block (QK_K) of the types whose names end in _K or begin with IQ
// and TQ; QK_NVFP4_SUB share a scale; K_SCALE_SIZE and IQ3S_N_SCALE are bytes of packed scales.
#define QK1_0 128
#define QK2_0 64
#define QK4_0 32
#define QK4_1 32
#define QK5_0 32
#define QK5_1 32
#define QK8_0 32
#define QK8_1 32
#define QK4_NL 32
#define QK_MXFP4 32
#define QK_NVFP4 64
#define QK_NVFP4_SUB 16
#define QK_K 256
#define K_SCALE_SIZE 12
#define IQ3S_N_SCALE (QK_K / 64)

// bits(qs, j, 1) ? d : -d. 1.125 bits per element.
typedef struct {
    ggml_half d;           // scale
    uint8_t qs[QK1_0 / 8]; // one bit each, lowest first
} block_q1_0;
GGML_COMMON_ASSERT(sizeof(block_q1_0) == 18);

// d (bits(qs, 2 j, 2) - 1): -d, 0, d, 2 d. 2.25 bits.
typedef struct {
    ggml_half d;           // scale
    uint8_t qs[QK2_0 / 4]; // two bits each, lowest first
} block_q2_0;
GGML_COMMON_ASSERT(sizeof(block_q2_0) == 18);

// d (nib(j) - 8). 4.5 bits.
typedef struct {
    ggml_half d;           // scale
    uint8_t qs[QK4_0 / 2]; // low nibbles: first half of the block; high nibbles: second half
} block_q4_0;
GGML_COMMON_ASSERT(sizeof(block_q4_0) == 18);

// d nib(j) + m. 5 bits.
typedef struct {
    ggml_half d;           // scale
    ggml_half m;           // minimum
    uint8_t qs[QK4_1 / 2]; // nibbles by halves
} block_q4_1;
GGML_COMMON_ASSERT(sizeof(block_q4_1) == 20);

// d (q - 16), q = nib(j) with bits(qh, j, 1) above it. 5.5 bits.
typedef struct {
    ggml_half d;           // scale
    uint8_t qh[4];         // fifth bits, little-endian
    uint8_t qs[QK5_0 / 2]; // lower four bits
} block_q5_0;
GGML_COMMON_ASSERT(sizeof(block_q5_0) == 22);

// d q + m, q as of Q5_0. 6 bits.
typedef struct {
    ggml_half d;           // scale
    ggml_half m;           // minimum
    uint8_t qh[4];         // fifth bits
    uint8_t qs[QK5_1 / 2]; // lower four bits
} block_q5_1;
GGML_COMMON_ASSERT(sizeof(block_q5_1) == 24);

// d qs[j]. 8.5 bits.
typedef struct {
    ggml_half d;      // scale
    int8_t qs[QK8_0]; // signed
} block_q8_0;
GGML_COMMON_ASSERT(sizeof(block_q8_0) == 34);

// d qs[j]. Intermediate only: not in files.
typedef struct {
    ggml_half d;      // scale
    ggml_half s;      // d * sum of qs
    int8_t qs[QK8_1]; // signed
} block_q8_1;
GGML_COMMON_ASSERT(sizeof(block_q8_1) == 36);

// e2m1(nib(j)) 2^(e - 127), with e2m1 of 0..15: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and the same negative.
// The OCP microscaling format. 4.25 bits.
typedef struct {
    uint8_t e;                // E8M0
    uint8_t qs[QK_MXFP4 / 2]; // codes, nibbles by halves
} block_mxfp4;
GGML_COMMON_ASSERT(sizeof(block_mxfp4) == 17);

// e2m1(code) ue4m3(d[s]) with s = j / 16, whose 16 codes are in qs[8 s .. 8 s + 7], nibbles by
// halves. 4.5 bits.
typedef struct {
    uint8_t d[QK_NVFP4 / QK_NVFP4_SUB]; // UE4M3
    uint8_t qs[QK_NVFP4 / 2];           // codes, eight bytes per 16
} block_nvfp4;
GGML_COMMON_ASSERT(sizeof(block_nvfp4) == 36);

// d (t - 1) with a base-3 digit t. Byte b of five digits holds ceil(v 256 / 243) for v with the
// first digit highest; digit n is ((b 3^n mod 256) 3) >> 8. Order: digit n of qs[0..31] is elements
// 32 n.., of qs[32..47] elements 160 + 16 n.., of qh elements 240 + 4 n... 1.6875 bits.
typedef struct {
    uint8_t qs[(QK_K - 4 * QK_K / 64) / 5]; // five base-3 digits per byte
    uint8_t qh[QK_K / 64];                  // four per byte
    ggml_half d;                            // scale
} block_tq1_0;
GGML_COMMON_ASSERT(sizeof(block_tq1_0) == 54);

// d (q - 1): with half h = j / 128, l = j % 128 / 32, m = j % 32, q is bits(qs[32 h + m], 2 l, 2).
// 2.0625 bits.
typedef struct {
    uint8_t qs[QK_K / 4]; // two bits each
    ggml_half d;          // scale
} block_tq2_0;
GGML_COMMON_ASSERT(sizeof(block_tq2_0) == 66);

// d lo(scales[g]) q - dmin hi(scales[g]), g = j / 16. With half h = j / 128 and l, m as of TQ2_0, q
// is bits(qs[32 h + m], 2 l, 2). 2.625 bits.
typedef struct {
    uint8_t scales[QK_K / 16]; // low nibble: scale, high nibble: minimum
    uint8_t qs[QK_K / 4];      // two bits each
    ggml_half d;               // factor of the scales
    ggml_half dmin;            // factor of the minima
} block_q2_K;
GGML_COMMON_ASSERT(sizeof(block_q2_K) == 84);

// d (s - 32) (q - (high ? 0 : 4)), g = j / 16; q as of Q2_K, high is bits(hmask[j % 32], j / 32,
// 1). s of group g: four bits from nibble g of scales[0..7] (low nibbles first), two from
// bits(scales[8 + g % 4], 2 (g / 4), 2) above them. 3.4375 bits.
typedef struct {
    uint8_t hmask[QK_K / 8];      // third bits
    uint8_t qs[QK_K / 4];         // two bits each
    uint8_t scales[K_SCALE_SIZE]; // six bits each
    ggml_half d;                  // factor of the scales
} block_q3_K;
GGML_COMMON_ASSERT(sizeof(block_q3_K) == 110);

// d s q - dmin n, g = j / 32: q is a nibble of qs[32 (g / 2) + j % 32], low for even g. Six bits of
// scale s and minimum n of group g: of the first four bits(scales[g], 0, 6) and bits(scales[g + 4],
// 0, 6); of the others lo(scales[g + 4]) and hi(scales[g + 4]), with the upper two bits of scales[g
// - 4] and scales[g] above them. 4.5 bits.
typedef struct {
    ggml_half d;                  // factor of the scales
    ggml_half dmin;               // factor of the minima
    uint8_t scales[K_SCALE_SIZE]; // eight scales and eight minima, six bits each
    uint8_t qs[QK_K / 2];         // nibbles
} block_q4_K;
GGML_COMMON_ASSERT(sizeof(block_q4_K) == 144);

// As Q4_K, q having bits(qh[j % 32], g, 1) as a fifth bit. 5.5 bits.
typedef struct {
    ggml_half d;                  // factor of the scales
    ggml_half dmin;               // factor of the minima
    uint8_t scales[K_SCALE_SIZE]; // as of Q4_K
    uint8_t qh[QK_K / 8];         // fifth bits
    uint8_t qs[QK_K / 2];         // lower four bits
} block_q5_K;
GGML_COMMON_ASSERT(sizeof(block_q5_K) == 176);

// d scales[j / 16] (q - 32). With half h = j / 128, l = j % 128 / 32, m = j % 32: four bits of q
// from ql[64 h + 32 (l % 2) + m], low nibble for l < 2, and above them bits(qh[32 h + m], 2 l, 2).
// 6.5625 bits.
typedef struct {
    uint8_t ql[QK_K / 2];     // lower four bits
    uint8_t qh[QK_K / 4];     // upper two
    int8_t scales[QK_K / 16]; // of 16 elements each
    ggml_half d;              // factor of the scales
} block_q6_K;
GGML_COMMON_ASSERT(sizeof(block_q6_K) == 210);

// d qs[j]. Intermediate only: not in files.
typedef struct {
    float d;                  // scale, binary32
    int8_t qs[QK_K];          // signed
    int16_t bsums[QK_K / 16]; // sums of 16 quants
} block_q8_K;
GGML_COMMON_ASSERT(sizeof(block_q8_K) == 292);

// Types with a grid take eight elements at a time (IQ3: four) from a table of points that occur
// often (grid_list.inl), and a sign for each. Per 32 elements here two u32 a, b: bytes of a index
// points, b has four codes of seven signs (the eighth makes their number even) and in its upper
// four bits a scale s: d (0.5 + s) / 4 times point and sign. 2.0625 bits.
typedef struct {
    ggml_half d;           // scale
    uint16_t qs[QK_K / 8]; // indices, signs and scales
} block_iq2_xxs;
GGML_COMMON_ASSERT(sizeof(block_iq2_xxs) == 66);

// qs[j / 8]: nine bits of index, a code of seven signs. Scale s is a nibble of scales[j / 32], low
// for the first 16: d (0.5 + s) / 4. 2.3125 bits.
typedef struct {
    ggml_half d;               // scale
    uint16_t qs[QK_K / 8];     // indices and signs
    uint8_t scales[QK_K / 32]; // two nibbles per 32 elements
} block_iq2_xs;
GGML_COMMON_ASSERT(sizeof(block_iq2_xs) == 74);

// qs: 32 bytes of indices, which qh gives two more bits each, then 32 bytes of signs. Scales as of
// IQ2_XS. 2.5625 bits.
typedef struct {
    ggml_half d;               // scale
    uint8_t qs[QK_K / 4];      // indices, then signs
    uint8_t qh[QK_K / 32];     // upper bits of indices
    uint8_t scales[QK_K / 32]; // two nibbles per 32 elements
} block_iq2_s;
GGML_COMMON_ASSERT(sizeof(block_iq2_s) == 82);

// qs: 64 bytes of indices, then a u32 per 32 elements with four codes of seven signs and a scale s:
// d (0.5 + s) / 2. 3.0625 bits.
typedef struct {
    ggml_half d;              // scale
    uint8_t qs[3 * QK_K / 8]; // indices, then signs and scales
} block_iq3_xxs;
GGML_COMMON_ASSERT(sizeof(block_iq3_xxs) == 98);

// Index qs[j / 4] with a ninth bit from qh, signs bit by bit, scale s of 32 elements, a nibble: d
// (1 + 2 s). 3.4375 bits.
typedef struct {
    ggml_half d;                  // scale
    uint8_t qs[QK_K / 4];         // indices
    uint8_t qh[QK_K / 32];        // upper bits of indices
    uint8_t signs[QK_K / 8];      // a bit per element
    uint8_t scales[IQ3S_N_SCALE]; // a nibble per 32 elements
} block_iq3_s;
GGML_COMMON_ASSERT(sizeof(block_iq3_s) == 110);

// Index qs[j / 8] with three more bits from qh[j / 32], whose next three bits are a scale s and
// whose upper one the sign of a shift: d (2 s + 1) (point -+ 0.125). 1.5625 bits.
typedef struct {
    ggml_half d;            // scale
    uint8_t qs[QK_K / 8];   // indices
    uint16_t qh[QK_K / 32]; // upper bits, scale, sign of the shift
} block_iq1_s;
GGML_COMMON_ASSERT(sizeof(block_iq1_s) == 50);

// As IQ1_S with a nibble of qh for each 8 elements (three bits of index, one for the shift) and
// three bits of scale for each 16. d is in the upper nibbles of scales as four u16, lowest first.
// 1.75 bits.
typedef struct {
    uint8_t qs[QK_K / 8];      // indices
    uint8_t qh[QK_K / 16];     // upper bits and shifts
    uint8_t scales[QK_K / 32]; // the block's scale is spread over their top nibbles
} block_iq1_m;
GGML_COMMON_ASSERT(sizeof(block_iq1_m) == 56);

// For putting d of IQ1_M together.
typedef union {
    ggml_half f16; // as a number
    uint16_t u16;  // as bits
} iq1m_scale_t;

// d v[nib(j)], v being -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113.
// 4.5 bits.
typedef struct {
    ggml_half d;            // scale
    uint8_t qs[QK4_NL / 2]; // codes, nibbles by halves
} block_iq4_nl;
GGML_COMMON_ASSERT(sizeof(block_iq4_nl) == 18);

// d (s - 32) v[code] with v as of IQ4_NL; per 32 elements nibbles by halves in 16 bytes, and a
// scale s of four bits from scales_l (low nibble first) and two from scales_h. 4.25 bits.
typedef struct {
    ggml_half d;                 // scale
    uint16_t scales_h;           // upper two bits of scales
    uint8_t scales_l[QK_K / 64]; // lower four
    uint8_t qs[QK_K / 2];        // codes
} block_iq4_xs;
GGML_COMMON_ASSERT(sizeof(block_iq4_xs) == 136);

#endif
