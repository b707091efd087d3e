// SPDX-License-Identifier: MIT
// Remainders by a divisor that many numbers are divided by.

#ifndef GGML_BASE_DIVISOR_H
#define GGML_BASE_DIVISOR_H

#include <stddef.h>
#include <stdint.h>

struct divisor {
    uint64_t value;   // not 0
    uint64_t inverse; // 2^64 / value, rounded down
};

static inline struct divisor divisor_of(size_t value) {
    return (struct divisor){value, UINT64_MAX / value};
}

// number % by.value, for numbers below 2^60 such as addresses divided by 16. Multiplies by the
// inverse: the quotient is at most one too small, so that one correction is enough. A division per
// tensor would take most of the time of a walk over a graph.
static inline uint64_t divisor_remainder(uint64_t number, const struct divisor *by) {
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 wide;
    const uint64_t quotient = (uint64_t)(((wide)number * by->inverse) >> 64);
    const uint64_t rest = number - quotient * by->value;
    return rest < by->value ? rest : rest - by->value;
#else
    return number % by->value;
#endif
}

#endif
