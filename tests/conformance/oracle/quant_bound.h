// SPDX-License-Identifier: MIT
// What quantising costs, from the formats.
#ifndef CONFORMANCE_QUANT_BOUND_H
#define CONFORMANCE_QUANT_BOUND_H

#include "ggml.h"

// Largest normalised mean square error of encoding uniform numbers in [-1, 1): no element is off by
// more than half a step, and the mean square is 1/3; 0 for types that are not quantised.
double conformance_quant_bound(enum ggml_type type);

#endif
