// SPDX-License-Identifier: MIT
// The numbers of a group are multiplied and added exactly. Everything after that is rounded at the
// same places at every level, even where products and sums are fused.
#include "types/quant_dot.h"

#include "ggml-common.h"
#include "simd/convert.h"
#include "simd/simd.h"
#include "types/k_quants.h"

#if defined(__ARM_FEATURE_MATMUL_INT8)
#include <arm_neon.h>
#endif

enum { MAX_GROUPS = QK_K / 16 };

// A block of the first row: value = d * scale * number - dmin * min.
struct block {
    int8_t numbers[QK_K];
    int32_t scales[MAX_GROUPS];
    int32_t mins[MAX_GROUPS]; // per 16 numbers
    float d;
    float dmin;
};

// A block of the second row.
struct activation {
    const int8_t *numbers;
    const int16_t *sums; // of 16 numbers
    float d;
};

struct rows {
    const char *x;
    size_t bx;
    const char *y;
    size_t by;
    int64_t n;
};

// Elements of a block.
CPU_INLINE int block_size(const enum ggml_type type) {
    return type == GGML_TYPE_Q8_0 || type == GGML_TYPE_Q4_0 ? QK8_0 : QK_K;
}

// Elements per scale.
CPU_INLINE int group_size(const enum ggml_type type) {
    return type == GGML_TYPE_Q6_K ? 16 : 32;
}

// As float.
static float half(ggml_half h) {
    float f;
    cpu_f16_to_f32(&f, &h, 1);
    return f;
}

// Numbers, scales and offsets of one block as the exact arithmetic below needs them.
static void unpack_q8_0(const block_q8_0 *b, struct block *out) {
    memcpy(out->numbers, b->qs, sizeof(b->qs));
    out->scales[0] = 1;
    out->d = half(b->d);
}

// Nibbles i and i + 16 share a byte; 8 stands for 0.
static void unpack_q4_0(const block_q4_0 *b, struct block *out) {
    for (int j = 0; j < QK4_0 / 2; ++j) {
        out->numbers[j] = (int8_t)((b->qs[j] & 15) - 8);
        out->numbers[j + QK4_0 / 2] = (int8_t)((b->qs[j] >> 4) - 8);
    }
    out->scales[0] = 1;
    out->d = half(b->d);
}

// Each pair of groups shares 32 bytes, low nibbles first.
static void unpack_q4_K(const block_q4_K *b, struct block *out) {
    uint8_t scales[8];
    uint8_t mins[8];
    cpu_q4_K_scales(b->scales, scales, mins);
    for (int g = 0; g < 8; ++g) {
        out->scales[g] = scales[g];
        out->mins[2 * g] = out->mins[2 * g + 1] = mins[g];
    }
    for (int j = 0; j < QK_K; j += 64) {
        for (int l = 0; l < 32; ++l) {
            out->numbers[j + l] = b->qs[j / 2 + l] & 15;
            out->numbers[j + l + 32] = b->qs[j / 2 + l] >> 4;
        }
    }
    out->d = half(b->d);
    out->dmin = half(b->dmin);
}

// 6-bit numbers with a signed 8-bit scale per group of 16 and one F16 scale per block.
static void unpack_q6_K(const block_q6_K *b, struct block *out) {
    cpu_q6_K_numbers(b, out->numbers);
    for (int g = 0; g < MAX_GROUPS; ++g)
        out->scales[g] = b->scales[g];
    out->d = half(b->d);
}

// Block i of a row. The type is a compile-time constant.
CPU_INLINE void unpack_block(const enum ggml_type type, const void *row, int64_t i,
                             struct block *out) {
    switch (type) {
    case GGML_TYPE_Q8_0: unpack_q8_0((const block_q8_0 *)row + i, out); break;
    case GGML_TYPE_Q4_0: unpack_q4_0((const block_q4_0 *)row + i, out); break;
    case GGML_TYPE_Q4_K: unpack_q4_K((const block_q4_K *)row + i, out); break;
    default: unpack_q6_K((const block_q6_K *)row + i, out); break;
    }
}

// Block i of the activation row, Q8_0 or Q8_K; the latter has sums of 16 numbers.
CPU_INLINE struct activation unpack_activation(const enum ggml_type type, const void *row,
                                               int64_t i) {
    if (block_size(type) == QK8_0) {
        const block_q8_0 *b = (const block_q8_0 *)row + i;
        return (struct activation){b->qs, NULL, half(b->d)};
    }
    const block_q8_K *b = (const block_q8_K *)row + i;
    return (struct activation){b->qs, b->bsums, b->d};
}

// Sum of products; compilers use the level's instruction for it.
CPU_INLINE int32_t sum_products(const int8_t *a, const int8_t *b, const int n) {
    int32_t sum = 0;
    for (int j = 0; j < n; ++j)
        sum += a[j] * b[j];
    return sum;
}

// The products of both rows of a with both of b, n numbers from number j on: a0 b0, a0 b1, a1 b0,
// a1 b1.
#if defined(__ARM_FEATURE_MATMUL_INT8)
// Sums of products of two rows with two rows, n numbers each: one instruction where there is
// I8MM.
CPU_INLINE void sum_four(const struct block *a, const struct activation *b, int j, const int n,
                         int32_t *sums) {
    int32x4_t sum = vdupq_n_s32(0);
    for (int k = j; k < j + n; k += 8) {
        const int8x16_t rows = vcombine_s8(vld1_s8(a[0].numbers + k), vld1_s8(a[1].numbers + k));
        sum = vmmlaq_s32(sum, rows,
                         vcombine_s8(vld1_s8(b[0].numbers + k), vld1_s8(b[1].numbers + k)));
    }
    vst1q_s32(sums, sum);
}
#else
CPU_INLINE void sum_four(const struct block *a, const struct activation *b, int j, const int n,
                         int32_t *sums) {
    for (int k = 0; k < 4; ++k)
        sums[k] = sum_products(a[k / 2].numbers + j, b[k % 2].numbers + j, n);
}
#endif

// Sum over groups of 16 of the minimum times the sum of the activation's numbers: the minimum's
// part of the product.
static int32_t weighted_mins(const struct block *a, const struct activation *b) {
    int32_t sum = 0;
    for (int g = 0; g < MAX_GROUPS; ++g)
        sum += a->mins[g] * b->sums[g];
    return sum;
}

// Value of a pair of blocks. Products of two such factors are exact in double precision, so that
// fusing changes nothing.
CPU_INLINE double block_value(const enum ggml_type type, const struct block *a,
                              const struct activation *b, int32_t weighted) {
    double value = (double)a->d * (double)weighted;
    if (type == GGML_TYPE_Q4_K) value -= (double)a->dmin * (double)weighted_mins(a, b);
    return (double)(float)value * (double)b->d;
}

// s[r + c * bs] of count rows of each; count is 1 or 2.
CPU_INLINE void dot(const enum ggml_type type, const int count, const struct rows *rows, float *s,
                    size_t bs) {
    const int group = group_size(type);
    const int n_groups = block_size(type) / group;
    double sums[4] = {0};
    for (int64_t i = 0; i < rows->n / block_size(type); ++i) {
        struct block a[2];
        struct activation b[2];
        int32_t weighted[4] = {0};
        for (int r = 0; r < count; ++r) {
            unpack_block(type, rows->x + (size_t)r * rows->bx, i, &a[r]);
            b[r] = unpack_activation(type, rows->y + (size_t)r * rows->by, i);
        }
        for (int g = 0; g < n_groups; ++g) {
            int32_t part[4];
            if (count == 2)
                sum_four(a, b, g * group, group, part);
            else
                part[0] = sum_products(a[0].numbers + g * group, b[0].numbers + g * group, group);
            for (int k = 0; k < count * count; ++k)
                weighted[k] += a[k / count].scales[g] * part[k];
        }
        for (int k = 0; k < count * count; ++k)
            sums[k] += block_value(type, &a[k / count], &b[k % count], weighted[k]);
    }
    for (int k = 0; k < count * count; ++k)
        s[(size_t)(k / count) + (size_t)(k % count) * bs] = (float)sums[k];
}

// All products of nrc rows with nrc rows, in pairs where nrc is even.
CPU_INLINE void dot_rows(const enum ggml_type type, const struct rows *rows, int nrc, float *s,
                         size_t bs) {
    const int step = nrc % 2 == 0 ? 2 : 1;
    for (int i = 0; i < nrc * nrc / (step * step); ++i) {
        const size_t r = (size_t)(i * step % nrc), c = (size_t)(i * step / nrc * step);
        struct rows at = *rows;
        at.x += r * rows->bx;
        at.y += c * rows->by;
        if (step == 2)
            dot(type, 2, &at, s + r + c * bs, bs);
        else
            dot(type, 1, &at, s + r + c * bs, bs);
    }
}

#define CPU_TRAITS_ROW(name, activation)
#define CPU_ENCODER_ROW(name, activation)
#define CPU_DECODED_ROW(name, activation)
#define CPU_WHOLE_ROW(name, activation)                                                            \
    void CPU_FN(cpu_quant_dot_##name)(int n, float *s, size_t bs, const void *x, size_t bx,        \
                                      const void *y, size_t by, int nrc) {                         \
        dot_rows(GGML_TYPE_##name, &(struct rows){x, bx, y, by, n}, nrc, s, bs);                   \
    }
#include "types/traits_list.inl"
