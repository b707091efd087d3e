// SPDX-License-Identifier: MIT
// Columns of src1 rounded to whole numbers of a byte, and when that may be; shared with the work
// functions.
#ifndef CPU_ROUNDED_H
#define CPU_ROUNDED_H

#include "ggml-shape.h"

enum {
    ROUNDED_GROUP = 32,  // elements that share a scale
    ROUNDED_COLUMNS = 4, // most that are multiplied so
    ROUNDED_LINE = 64,   // bytes; where the arrays begin
};

// Element i is scales[i / ROUNDED_GROUP] * numbers[i].
struct rounded {
    int8_t *numbers; // -127 to 127
    float *scales;   // largest magnitude of the group / 127
    float *sums;     // of 16 elements, after rounding
    float *sums32;   // of 32
};

static inline size_t rounded_pad(size_t size) {
    return (size + ROUNDED_LINE - 1) / ROUNDED_LINE * ROUNDED_LINE;
}

static inline size_t rounded_scales_size(int64_t k) {
    return rounded_pad((size_t)k / ROUNDED_GROUP * sizeof(float));
}

// Bytes of a column of k elements, whole groups.
static inline size_t rounded_size(int64_t k) {
    return rounded_pad((size_t)k) + 4 * rounded_scales_size(k);
}

static inline struct rounded rounded_at(void *memory, int64_t k, int64_t column) {
    char *start = (char *)memory + (size_t)column * rounded_size(k);
    char *scales = start + rounded_pad((size_t)k);
    const size_t step = rounded_scales_size(k);
    return (struct rounded){.numbers = (int8_t *)start,
                            .scales = (float *)(void *)scales,
                            .sums = (float *)(void *)(scales + step),
                            .sums32 = (float *)(void *)(scales + 3 * step)};
}

// Whether src1 of a product may be rounded so. Where nothing is said of src1, F32 sums ask for F32
// terms.
static inline bool may_round_src1(const struct ggml_tensor *node) {
    const int32_t sums = ggml_get_op_params_i32(node, 0), src1 = ggml_get_op_params_i32(node, 3);
    return src1 == GGML_PREC_UNDEFINED ? sums != GGML_PREC_F32 : src1 >= GGML_PREC_Q8;
}

// Whether src1 is rounded where few columns share a matrix, at levels with vectors: for the types
// that gain by it.
static inline bool rounds_src1(const struct ggml_tensor *node) {
    switch ((int)node->src[0]->type) {
#define CPU_BLOCK_ROW(NAME, ...) case GGML_TYPE_##NAME:
#include "ops/mul_mat/rounded_list.inl"
        return node->src[1]->type == GGML_TYPE_F32 && may_round_src1(node);
    default: return false;
    }
}

#endif
