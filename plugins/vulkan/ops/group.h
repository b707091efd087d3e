// SPDX-License-Identifier: MIT
// How many invocations share a row.
#ifndef GVK_GROUP_H
#define GVK_GROUP_H

#include "plan/kernel.h"

enum { GVK_MAX_ROW_GROUP = 1024 }; // of shaders/reduce.glsl

// Loops over a row in the shaders that use it, with what they do per element of an invocation.
enum { GVK_ROW_PASSES = 4, GVK_CUMSUM_PASSES = 12 };

// A power of two that suits rows of n elements. A driver on the CPU runs a group on one thread,
// where more than a few vectors only add barriers, unless its loops would get too long.
static inline uint32_t gvk_row_group(const struct gvk_features *features, int64_t n, int passes) {
    uint32_t most = features->cpu ? 32 : 512;
    while (most > features->max_group_size)
        most /= 2;
    uint32_t size = 32;
    while (size < most && (int64_t)size * 4 < n)
        size *= 2;
    size = size < most ? size : most;
    while (size < GVK_MAX_ROW_GROUP && 2 * size <= features->max_group_size &&
           (uint64_t)n / size * (uint64_t)passes > gvk_most_iterations(features))
        size *= 2;
    return size;
}

#endif
