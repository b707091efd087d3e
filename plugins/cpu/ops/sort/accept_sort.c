// SPDX-License-Identifier: MIT
// What sort.c, count_equal.c, region.c and diag.c compute, and their work memory.
#include "ggml-shape.h"
#include "ops/sort/region.h"
#include "ops/sort/sort.h"
#include "runtime/kernel_list.h"

// Indices are of 32 bits, which bounds the rows' length.
bool cpu_accepts_top_k(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return ggml_same_shape_from(node, a, 1) && node->ne[0] <= a->ne[0] && a->ne[0] <= INT32_MAX &&
           ggml_rows_dense(node);
}

// The order of all elements: top_k of as many as there are.
bool cpu_accepts_argsort(const struct ggml_tensor *node) {
    return node->ne[0] == node->src[0]->ne[0] && cpu_accepts_top_k(node);
}

// Two arrays of items per thread, between which the passes alternate.
size_t cpu_work_sort(const struct ggml_tensor *node, int n_threads) {
    return sort_work_size(node->src[0]->ne[0]) * (size_t)n_threads;
}

bool cpu_accepts_count_equal(const struct ggml_tensor *node) {
    return ggml_nelements(node) == 1 && ggml_are_same_shape(node->src[0], node->src[1]);
}

size_t cpu_work_count_equal(const struct ggml_tensor *node, int n_threads) {
    (void)node;
    // A count per thread.
    return (size_t)n_threads * sizeof(int64_t);
}

// Bytes from the region's first element to the end of its last one; SIZE_MAX on overflow.
static size_t region_extent(const struct ggml_tensor *b, const struct region *region) {
    const struct ggml_type_traits *type = ggml_get_type_traits(b->type);
    size_t extent = (size_t)(b->ne[0] / type->blck_size) * type->type_size;
    for (int d = 1; d < GGML_MAX_DIMS; ++d) {
        const size_t steps = (size_t)(b->ne[d] - 1);
        if (steps == 0) continue;
        if (region->nb[d] % type->type_size != 0 && type->blck_size > 1) return SIZE_MAX;
        if (region->nb[d] != 0 && steps > (SIZE_MAX - extent) / region->nb[d]) return SIZE_MAX;
        extent += steps * region->nb[d];
    }
    return extent;
}

// Whether the region is within the result: its strides and offset come from the application.
bool cpu_accepts_region(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    const struct ggml_type_traits *type = ggml_get_type_traits(node->type);
    const struct region region = region_of(node);
    if (a->type != node->type || b->type != node->type || !ggml_are_same_shape(node, a) ||
        !ggml_is_packed(node) || !ggml_is_packed(a))
        return false;
    if (ggml_nelements(b) == 0) return true;
    if (type->blck_size > 1 && (!ggml_rows_dense(b) || b->ne[0] % type->blck_size != 0 ||
                                region.offset % type->type_size != 0))
        return false;
    const size_t extent = region_extent(b, &region);
    const size_t size = (size_t)(ggml_nelements(node) / type->blck_size) * type->type_size;
    return extent <= size && region.offset <= size - extent;
}

bool cpu_accepts_tri(const struct ggml_tensor *node) {
    return ggml_fits_tri(node) && ggml_rows_dense(node) && ggml_rows_dense(node->src[0]);
}

// A row of the source becomes a diagonal.
bool cpu_accepts_diag(const struct ggml_tensor *node) {
    return ggml_fits_diag(node) && ggml_rows_dense(node);
}
