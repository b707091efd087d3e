// SPDX-License-Identifier: MIT
// Numbers into the bytes of unquantised types, and rounding to what such a type can hold; written
// from the formats alone, like oracle_quant.h.
#ifndef ORACLE_STORE_H
#define ORACLE_STORE_H

#include "ggml.h"

// Whether the type is one of F32, F16, BF16, F64, I8, I16, I32, I64.
bool oracle_is_plain(enum ggml_type type);
// Writes the value, rounded to nearest even (floating point) or towards zero and to the
// nearest number that fits.
void oracle_store(enum ggml_type type, void *element, double value);
// The number that the type holds after storing the value.
double oracle_round(enum ggml_type type, double value);
// The smallest normal number of a floating-point type; 0 for others.
double oracle_smallest(enum ggml_type type);

#endif
