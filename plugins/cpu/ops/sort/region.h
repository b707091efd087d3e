// SPDX-License-Identifier: MIT
// The region that acc and set write, from the node's parameters.
#ifndef CPU_REGION_H
#define CPU_REGION_H

#include "ggml-shape.h"

struct region {
    size_t nb[GGML_MAX_DIMS]; // bytes
    size_t offset;            // bytes
};

// Strides and offset of the part of the result that the operation writes, in bytes, from its
// parameters.
static inline struct region region_of(const struct ggml_tensor *node) {
    struct region region = {.nb = {ggml_type_size(node->type)},
                            .offset = (uint32_t)ggml_get_op_params_i32(node, 3)};
    for (uint32_t d = 1; d < GGML_MAX_DIMS; ++d)
        region.nb[d] = (uint32_t)ggml_get_op_params_i32(node, d - 1);
    return region;
}

// Whether two rows of b may write the same bytes of the region. May be true for rows that don't.
static inline bool region_overlaps(const struct ggml_tensor *b, const struct region *region) {
    const struct ggml_type_traits *type = ggml_get_type_traits(b->type);
    size_t extent = (size_t)(b->ne[0] / type->blck_size) * type->type_size;
    for (int d = 1; d < GGML_MAX_DIMS; ++d) {
        if (b->ne[d] <= 1) continue;
        if (region->nb[d] < extent) return true;
        extent += (size_t)(b->ne[d] - 1) * region->nb[d];
    }
    return false;
}

#endif
