// SPDX-License-Identifier: MIT
// ggml-common.h: the memory layout of every quantised block, under the names that backends use. The
// layouts are also the file format of GGUF and never change; a new format gets a new struct.
//
// Bytes lie in the declared order without padding. `d`, `m`, `s` and `dmin` are IEEE binary16 bits
// unless the type says otherwise. How elements follow from them is in docs and in core/quant.
#ifndef GGML_COMMON_H
#define GGML_COMMON_H

#include <stdint.h>

#ifdef __cplusplus
#define GGML_COMMON_ASSERT(condition) static_assert(condition, #condition)
#else
#define GGML_COMMON_ASSERT(condition) _Static_assert(condition, #condition)
#endif

typedef uint16_t ggml_half;

// Elements per block.
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

typedef struct {
    ggml_half d;
    uint8_t qs[QK1_0 / 8]; // one bit each, lowest first
} block_q1_0;
GGML_COMMON_ASSERT(sizeof(block_q1_0) == 18);

typedef struct {
    ggml_half d;
    uint8_t qs[QK2_0 / 4]; // two bits each, lowest first
} block_q2_0;
GGML_COMMON_ASSERT(sizeof(block_q2_0) == 18);

typedef struct {
    ggml_half d;
    uint8_t qs[QK4_0 / 2]; // low nibbles: first half of the block; high nibbles: second half
} block_q4_0;
GGML_COMMON_ASSERT(sizeof(block_q4_0) == 18);

typedef struct {
    ggml_half d;
    ggml_half m;
    uint8_t qs[QK4_1 / 2];
} block_q4_1;
GGML_COMMON_ASSERT(sizeof(block_q4_1) == 20);

typedef struct {
    ggml_half d;
    uint8_t qh[4]; // fifth bits, little-endian
    uint8_t qs[QK5_0 / 2];
} block_q5_0;
GGML_COMMON_ASSERT(sizeof(block_q5_0) == 22);

typedef struct {
    ggml_half d;
    ggml_half m;
    uint8_t qh[4];
    uint8_t qs[QK5_1 / 2];
} block_q5_1;
GGML_COMMON_ASSERT(sizeof(block_q5_1) == 24);

typedef struct {
    ggml_half d;
    int8_t qs[QK8_0];
} block_q8_0;
GGML_COMMON_ASSERT(sizeof(block_q8_0) == 34);

typedef struct {
    ggml_half d;
    ggml_half s; // d * sum of qs
    int8_t qs[QK8_1];
} block_q8_1;
GGML_COMMON_ASSERT(sizeof(block_q8_1) == 36);

typedef struct {
    uint8_t e; // E8M0
    uint8_t qs[QK_MXFP4 / 2];
} block_mxfp4;
GGML_COMMON_ASSERT(sizeof(block_mxfp4) == 17);

typedef struct {
    uint8_t d[QK_NVFP4 / QK_NVFP4_SUB]; // UE4M3
    uint8_t qs[QK_NVFP4 / 2];
} block_nvfp4;
GGML_COMMON_ASSERT(sizeof(block_nvfp4) == 36);

typedef struct {
    uint8_t qs[(QK_K - 4 * QK_K / 64) / 5]; // five base-3 digits per byte
    uint8_t qh[QK_K / 64];                  // four per byte
    ggml_half d;
} block_tq1_0;
GGML_COMMON_ASSERT(sizeof(block_tq1_0) == 54);

typedef struct {
    uint8_t qs[QK_K / 4];
    ggml_half d;
} block_tq2_0;
GGML_COMMON_ASSERT(sizeof(block_tq2_0) == 66);

typedef struct {
    uint8_t scales[QK_K / 16]; // low nibble: scale, high nibble: minimum
    uint8_t qs[QK_K / 4];
    ggml_half d;
    ggml_half dmin;
} block_q2_K;
GGML_COMMON_ASSERT(sizeof(block_q2_K) == 84);

typedef struct {
    uint8_t hmask[QK_K / 8];
    uint8_t qs[QK_K / 4];
    uint8_t scales[K_SCALE_SIZE]; // six bits each
    ggml_half d;
} block_q3_K;
GGML_COMMON_ASSERT(sizeof(block_q3_K) == 110);

typedef struct {
    ggml_half d;
    ggml_half dmin;
    uint8_t scales[K_SCALE_SIZE]; // eight scales and eight minima, six bits each
    uint8_t qs[QK_K / 2];
} block_q4_K;
GGML_COMMON_ASSERT(sizeof(block_q4_K) == 144);

typedef struct {
    ggml_half d;
    ggml_half dmin;
    uint8_t scales[K_SCALE_SIZE];
    uint8_t qh[QK_K / 8];
    uint8_t qs[QK_K / 2];
} block_q5_K;
GGML_COMMON_ASSERT(sizeof(block_q5_K) == 176);

typedef struct {
    uint8_t ql[QK_K / 2];
    uint8_t qh[QK_K / 4];
    int8_t scales[QK_K / 16];
    ggml_half d;
} block_q6_K;
GGML_COMMON_ASSERT(sizeof(block_q6_K) == 210);

typedef struct {
    float d;
    int8_t qs[QK_K];
    int16_t bsums[QK_K / 16]; // sums of 16 quants
} block_q8_K;
GGML_COMMON_ASSERT(sizeof(block_q8_K) == 292);

typedef struct {
    ggml_half d;
    uint16_t qs[QK_K / 8];
} block_iq2_xxs;
GGML_COMMON_ASSERT(sizeof(block_iq2_xxs) == 66);

typedef struct {
    ggml_half d;
    uint16_t qs[QK_K / 8];
    uint8_t scales[QK_K / 32];
} block_iq2_xs;
GGML_COMMON_ASSERT(sizeof(block_iq2_xs) == 74);

typedef struct {
    ggml_half d;
    uint8_t qs[QK_K / 4];
    uint8_t qh[QK_K / 32];
    uint8_t scales[QK_K / 32];
} block_iq2_s;
GGML_COMMON_ASSERT(sizeof(block_iq2_s) == 82);

typedef struct {
    ggml_half d;
    uint8_t qs[3 * QK_K / 8];
} block_iq3_xxs;
GGML_COMMON_ASSERT(sizeof(block_iq3_xxs) == 98);

typedef struct {
    ggml_half d;
    uint8_t qs[QK_K / 4];
    uint8_t qh[QK_K / 32];
    uint8_t signs[QK_K / 8];
    uint8_t scales[IQ3S_N_SCALE];
} block_iq3_s;
GGML_COMMON_ASSERT(sizeof(block_iq3_s) == 110);

typedef struct {
    ggml_half d;
    uint8_t qs[QK_K / 8];
    uint16_t qh[QK_K / 32];
} block_iq1_s;
GGML_COMMON_ASSERT(sizeof(block_iq1_s) == 50);

typedef struct {
    uint8_t qs[QK_K / 8];
    uint8_t qh[QK_K / 16];
    uint8_t scales[QK_K / 32]; // the block's scale is spread over their top nibbles
} block_iq1_m;
GGML_COMMON_ASSERT(sizeof(block_iq1_m) == 56);

typedef union {
    ggml_half f16;
    uint16_t u16;
} iq1m_scale_t;

typedef struct {
    ggml_half d;
    uint8_t qs[QK4_NL / 2];
} block_iq4_nl;
GGML_COMMON_ASSERT(sizeof(block_iq4_nl) == 18);

typedef struct {
    ggml_half d;
    uint16_t scales_h;
    uint8_t scales_l[QK_K / 64];
    uint8_t qs[QK_K / 2];
} block_iq4_xs;
GGML_COMMON_ASSERT(sizeof(block_iq4_xs) == 136);

#endif
