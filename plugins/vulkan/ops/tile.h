// SPDX-License-Identifier: MIT
// Tiles of products in shared memory (shaders/tile.glsl).
#ifndef GVK_TILE_H
#define GVK_TILE_H

#include "gpu/base/shape.h"
#include "plan/kernel.h"

// Results of a group, and its invocations, each with 4 span by 4 span of them.
struct gvk_tile {
    uint32_t rows, columns, group, span;
};

// Whether the device has room for any; drivers on the CPU are better off without shared memory.
static inline bool gvk_has_tiles(const struct gvk_features *features) {
    return !features->cpu && features->max_group_size >= 256 && features->max_shared_bytes >= 32768;
}

// For so many products of equal size: large ones where that leaves enough of them for a GPU,
// otherwise such that few of their columns stay empty.
static inline struct gvk_tile gvk_tile_for(uint64_t rows, uint64_t columns, uint64_t products) {
    enum { LARGE = 128, ENOUGH = 96 };
    const uint64_t n_large = gpu_groups_of(rows, LARGE) * gpu_groups_of(columns, LARGE) * products;
    if (rows >= LARGE && columns > LARGE * 3 / 4 && n_large >= ENOUGH)
        return (struct gvk_tile){LARGE, LARGE, 256, 2};
    const uint32_t width = columns > 32 ? 64 : columns > 16 ? 32 : 16;
    return (struct gvk_tile){64, width, 4 * width, 1};
}

// With cooperative matrices there is only one.
static inline struct gvk_tile gvk_tile_coopmat(void) {
    return (struct gvk_tile){64, 64, 128, 1};
}

#endif
