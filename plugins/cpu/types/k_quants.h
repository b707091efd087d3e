// SPDX-License-Identifier: MIT
// The whole numbers in blocks of Q4_K and Q6_K.
#ifndef CPU_K_QUANTS_H
#define CPU_K_QUANTS_H

#include "base/kernel.h"
#include "ggml-common.h"

// Six-bit scales, then minima, of the eight groups of a Q4_K block.
static inline void cpu_q4_K_scales(const uint8_t *packed, uint8_t *scales, uint8_t *mins) {
    for (int j = 0; j < 4; ++j) {
        scales[j] = packed[j] & 63;
        mins[j] = packed[j + 4] & 63;
        scales[j + 4] = (uint8_t)((packed[j + 8] & 15) | packed[j] >> 6 << 4);
        mins[j + 4] = (uint8_t)(packed[j + 8] >> 4 | packed[j + 4] >> 6 << 4);
    }
}

// The QK_K numbers of a Q6_K block.
static inline void cpu_q6_K_numbers(const block_q6_K *b, int8_t *restrict q) {
    for (int h = 0; h < 2; ++h) {
        const uint8_t *ql = b->ql + 64 * h;
        const uint8_t *qh = b->qh + 32 * h;
        for (int l = 0; l < 32; ++l) {
            q[128 * h + l] = (int8_t)(((ql[l] & 15) | (qh[l] & 3) << 4) - 32);
            q[128 * h + l + 32] = (int8_t)(((ql[l + 32] & 15) | (qh[l] >> 2 & 3) << 4) - 32);
            q[128 * h + l + 64] = (int8_t)((ql[l] >> 4 | (qh[l] >> 4 & 3) << 4) - 32);
            q[128 * h + l + 96] = (int8_t)((ql[l + 32] >> 4 | qh[l] >> 6 << 4) - 32);
        }
    }
}

#endif
