// SPDX-License-Identifier: MIT
// Numbers of types as bytes without sign, whose products are added in 16 bits. For gemm_rounded.c.
#ifndef CPU_NUMBER_RANGES_H
#define CPU_NUMBER_RANGES_H

#include "ops/mul_mat/rounded/gemm_rounded.h"
#include "simd/simd.h"

enum { ALL_BITS = 255 }; // numbers that no bias makes small enough

// Numbers of a type as bytes without sign: what is added to them, and how large they become.
struct number_range {
    int bias, most;
};

// By how much the numbers of a type are biased, and the largest biased one, which decides how many
// products of two bytes a 16-bit sum can hold.
CPU_INLINE struct number_range number_range_of(const enum ggml_type type) {
    switch (type) {
    case GGML_TYPE_Q1_0:
    case GGML_TYPE_TQ1_0:
    case GGML_TYPE_TQ2_0: return (struct number_range){1, 2};
    case GGML_TYPE_Q2_0: return (struct number_range){1, 3};
    case GGML_TYPE_Q2_K: return (struct number_range){0, 3};
    case GGML_TYPE_Q3_K: return (struct number_range){4, 7};
    case GGML_TYPE_Q4_0: return (struct number_range){8, 15};
    case GGML_TYPE_Q4_1:
    case GGML_TYPE_Q4_K: return (struct number_range){0, 15};
    case GGML_TYPE_IQ1_S:
    case GGML_TYPE_IQ1_M: return (struct number_range){9, 18};
    case GGML_TYPE_MXFP4:
    case GGML_TYPE_NVFP4: return (struct number_range){12, 24};
    case GGML_TYPE_Q5_0: return (struct number_range){16, 31};
    case GGML_TYPE_Q5_1:
    case GGML_TYPE_Q5_K: return (struct number_range){0, 31};
    case GGML_TYPE_Q6_K: return (struct number_range){32, 63};
    case GGML_TYPE_IQ2_XXS:
    case GGML_TYPE_IQ2_XS:
    case GGML_TYPE_IQ2_S:
    case GGML_TYPE_IQ3_XXS:
    case GGML_TYPE_IQ3_S: return (struct number_range){63, 126};
    default: return (struct number_range){0, ALL_BITS};
    }
}

// The bias that sums of pairs in strips begin with; 0 where it counts as an offset of blocks: where
// the sum of a group doesn't fit 16 bits anyway, or for groups of 32, with which that is faster.
CPU_INLINE int start_bias(const enum ggml_type type, const int group) {
    const struct number_range range = number_range_of(type);
    const int largest = MAX(range.bias, range.most - range.bias) * 127 * group / 2;
    return STRIPS_OF_PAIRS && group == 16 && largest <= INT16_MAX ? range.bias : 0;
}

#endif
