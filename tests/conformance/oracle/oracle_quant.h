// SPDX-License-Identifier: MIT
// What the element of a packed row is worth, one element at a time and in double precision, from
// the formulas of the formats alone: no code is shared with core/quant or with a plugin.
#ifndef ORACLE_QUANT_H
#define ORACLE_QUANT_H

#include <stdint.h>

#include "ggml.h"

// Element i of the row of a floating-point, integer or quantised type; NaN for types without a
// formula.
double oracle_element(enum ggml_type type, const void *row, int64_t i);

#endif
