// SPDX-License-Identifier: MIT
// Work memory of flash_attn_ext; shared with the work function.
#ifndef CPU_ATTENTION_H
#define CPU_ATTENTION_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/gemm_size.h"

enum {
    ATTENTION_QUERIES = 32,         // query rows that share an unpacked block of K and V
    ATTENTION_KEYS = GEMM_MAX_ROWS, // rows of K and V per block
};

// Floats per thread: panel of K, block of V, scores, mask, accumulators.
static inline size_t attention_work_floats(int64_t v_size) {
    return (size_t)ATTENTION_KEYS * GEMM_DEPTH + 2 * (size_t)ATTENTION_QUERIES * ATTENTION_KEYS +
           ((size_t)v_size + 15) / 16 * 16 * (ATTENTION_KEYS + ATTENTION_QUERIES);
}

#endif
