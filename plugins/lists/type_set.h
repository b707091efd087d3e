// SPDX-License-Identifier: MIT
// Sets of types, as the columns of plugins' lists of kernels have them: one bit per type number,
// bit 63 for an absent operand. Macros and not constants, so that rows of static tables can combine
// them.
#ifndef PLUGIN_TYPE_SET_H
#define PLUGIN_TYPE_SET_H

#include <assert.h>
#include <stdint.h>

#include "ggml-impl.h"

#define TYPE_BIT(name) (UINT64_C(1) << GGML_TYPE_##name)
#define T_NONE (UINT64_C(1) << 63)
#define T_ANY (~UINT64_C(0))
#define T_SOME (T_ANY & ~T_NONE)
#define T_F32 TYPE_BIT(F32)
#define T_F16 TYPE_BIT(F16)
#define T_BF16 TYPE_BIT(BF16)
#define T_F64 TYPE_BIT(F64)
#define T_I8 TYPE_BIT(I8)
#define T_I16 TYPE_BIT(I16)
#define T_I32 TYPE_BIT(I32)
#define T_I64 TYPE_BIT(I64)
#define T_FLOATS (T_F32 | T_F16 | T_BF16)
#define T_INTS (T_I8 | T_I16 | T_I32 | T_I64)
// Types without blocks.
#define T_PLAIN (T_FLOATS | T_F64 | T_INTS)
// Types whose blocks hold indices of points in a grid (grid_list.inl).
#define T_GRIDS                                                                                    \
    (TYPE_BIT(IQ2_XXS) | TYPE_BIT(IQ2_XS) | TYPE_BIT(IQ3_XXS) | TYPE_BIT(IQ1_S) |                  \
     TYPE_BIT(IQ3_S) | TYPE_BIT(IQ2_S) | TYPE_BIT(IQ1_M))

_Static_assert(GGML_TYPE_COUNT <= 63, "bit 63 stands for an absent operand");

// Whether the set holds the operand's type; NULL is an absent operand. A type that this build does
// not know is in no set, T_ANY included. [any-thread]
static inline bool type_set_has(uint64_t types, const struct ggml_tensor *operand) {
    if (!operand) return (types & T_NONE) != 0;
    return (unsigned)operand->type < GGML_TYPE_COUNT && (types >> operand->type & 1) != 0;
}

#endif
