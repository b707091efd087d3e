// SPDX-License-Identifier: MIT
// Groups of a column rounded to whole numbers of a byte.
#ifndef CPU_ROUND_GROUP_H
#define CPU_ROUND_GROUP_H

#include "ops/mul_mat/rounded/rounded.h"
#include "ops/round_row.h"

// Numbers of -127 to 127, and what they are to be scaled by.
static inline float round_group(const float *x, int8_t *numbers) {
    return round_row(x, ROUNDED_GROUP, numbers, sizeof(*numbers));
}

#endif
