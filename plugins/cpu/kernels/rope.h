// SPDX-License-Identifier: MIT
// Where rope keeps its parameters, and its work memory; shared with the work function.
#ifndef CPU_ROPE_H
#define CPU_ROPE_H

#include <stddef.h>
#include <stdint.h>

// Slots of op_params.
enum {
    ROPE_N_DIMS = 1,
    ROPE_MODE = 2,
    ROPE_N_CTX_ORIG = 4,
    ROPE_FREQ_BASE = 5,
    ROPE_FREQ_SCALE = 6,
    ROPE_EXT_FACTOR = 7,
    ROPE_ATTN_FACTOR = 8,
    ROPE_BETA_FAST = 9,
    ROPE_BETA_SLOW = 10,
    ROPE_SECTIONS = 11,
    ROPE_N_OFFS = 15,
};

// Per thread: frequency, cosine, sine and element per channel of a row, on cache lines of its own.
static inline size_t rope_work_doubles(int64_t ne0) {
    return ((size_t)ne0 * 5 / 2 + 16) / 8 * 8;
}

#endif
