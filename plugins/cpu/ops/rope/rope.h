// SPDX-License-Identifier: MIT
// Work memory of rope; shared with the work function.
#ifndef CPU_ROPE_H
#define CPU_ROPE_H

#include <stddef.h>
#include <stdint.h>

// Per thread: frequency, cosine, sine and element per channel of a row, on cache lines of its own.
static inline size_t rope_work_doubles(int64_t ne0) {
    return ((size_t)ne0 * 5 / 2 + 16) / 8 * 8;
}

#endif
