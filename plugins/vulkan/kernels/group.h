// SPDX-License-Identifier: MIT
// How many invocations share a row.
#ifndef VK_GROUP_H
#define VK_GROUP_H

#include "kernel.h"

// A power of two that suits rows of n elements. A driver on the CPU runs a group on one thread,
// where more than a few vectors only add barriers.
static inline uint32_t vk_row_group(const struct vk_features *features, int64_t n) {
    uint32_t most = features->cpu ? 32 : 512;
    while (most > features->max_group_size)
        most /= 2;
    uint32_t size = 32;
    while (size < most && (int64_t)size * 4 < n)
        size *= 2;
    return size < most ? size : most;
}

#endif
