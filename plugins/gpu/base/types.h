// SPDX-License-Identifier: MIT
// Sets of types, as the columns of a plugin's list of kernels have them: one bit per type number,
// bit 63 for an absent operand.
#ifndef GPU_TYPES_H
#define GPU_TYPES_H

#include "ggml-impl.h"

#define GPU_T(name) (UINT64_C(1) << GGML_TYPE_##name)
#define T_NONE (UINT64_C(1) << 63)
#define T_ANY (~UINT64_C(0))
#define T_SOME (T_ANY & ~T_NONE)
#define T_F32 GPU_T(F32)
#define T_F16 GPU_T(F16)
#define T_BF16 GPU_T(BF16)
#define T_I8 GPU_T(I8)
#define T_I16 GPU_T(I16)
#define T_I32 GPU_T(I32)
#define T_I64 GPU_T(I64)
#define T_FLOATS (T_F32 | T_F16 | T_BF16)
#define T_INTS (T_I8 | T_I16 | T_I32 | T_I64)

// Whether the set holds the operand's type; NULL is an absent operand. A type that this build does
// not know is in no set, T_ANY included. [any-thread]
static inline bool gpu_type_in(uint64_t types, const struct ggml_tensor *t) {
    if (!t) return (types & T_NONE) != 0;
    return (unsigned)t->type < GGML_TYPE_COUNT && (types >> t->type & 1) != 0;
}

#endif
