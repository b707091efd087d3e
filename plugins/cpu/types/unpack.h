// SPDX-License-Identifier: MIT
// Rows of any type to and from F32: the part of the kernels that knows types.
#ifndef CPU_UNPACK_H
#define CPU_UNPACK_H

#include "base/kernel.h"

// n elements, whole blocks.
typedef void (*cpu_unpack_fn)(const void *x, float *y, int64_t n);
typedef void (*cpu_pack_fn)(const float *x, void *y, int64_t n);

// NULL if the type has no converter. [any-thread]
cpu_unpack_fn CPU_FN(cpu_unpack)(enum ggml_type type);
cpu_pack_fn CPU_FN(cpu_pack)(enum ggml_type type);

#endif
