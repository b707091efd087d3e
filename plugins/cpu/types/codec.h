// SPDX-License-Identifier: MIT
// Plain conversions of every type that can be converted, the same at every instruction-set level.
// All take n elements, whole blocks.
#ifndef CPU_CODEC_H
#define CPU_CODEC_H

#include "ggml-impl.h"

// To and from F32; NULL for types that need look-up tables. Values outside an integer's range
// become its nearest limit, NaN the lowest; fractions are truncated. [any-thread]
ggml_to_float_t cpu_to_float(enum ggml_type type);
ggml_from_float_t cpu_from_float(enum ggml_type type);

// Whether a conversion needs F64 in between: through F32 it would lose digits, or round twice.
// [any-thread]
bool cpu_converts_wide(enum ggml_type from, enum ggml_type to);
// To and from F64, for every type that has cpu_to_float(), cpu_from_float(). n <= CPU_WIDE_CHUNK.
// [any-thread]
void cpu_to_double(enum ggml_type type, const void *x, double *y, int64_t n);
void cpu_from_double(enum ggml_type type, const double *x, void *y, int64_t n);

enum { CPU_WIDE_CHUNK = 512 };

#endif
