// SPDX-License-Identifier: MIT
// What kernels/sort.c, count_equal.c, region.c and diag.c compute, and their work memory.
#include "kernel_list.h"
#include "kernels/region.h"
#include "kernels/sort.h"
#include "shape.h"

static bool same_rows(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    return a->ne[1] == b->ne[1] && a->ne[2] == b->ne[2] && a->ne[3] == b->ne[3];
}

bool cpu_accepts_top_k(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return same_rows(node, a) && node->ne[0] <= a->ne[0] && a->ne[0] <= INT32_MAX &&
           cpu_rows_dense(node);
}

bool cpu_accepts_argsort(const struct ggml_tensor *node) {
    return node->ne[0] == node->src[0]->ne[0] && cpu_accepts_top_k(node);
}

size_t cpu_work_sort(const struct ggml_tensor *node, int n_threads) {
    return sort_work_size(node->src[0]->ne[0]) * (size_t)n_threads;
}

bool cpu_accepts_count_equal(const struct ggml_tensor *node) {
    return cpu_nelements(node) == 1 && cpu_same_shape(node->src[0], node->src[1]);
}

size_t cpu_work_count_equal(const struct ggml_tensor *node, int n_threads) {
    (void)node;
    return (size_t)n_threads * sizeof(int64_t);
}

// Bytes from the region's first to behind its last; SIZE_MAX if that is no number.
static size_t region_extent(const struct ggml_tensor *b, const struct region *region) {
    const struct cpu_type_size type = cpu_type_size(b->type);
    size_t extent = (size_t)(b->ne[0] / type.block) * type.size;
    for (int d = 1; d < GGML_MAX_DIMS; ++d) {
        const size_t steps = (size_t)(b->ne[d] - 1);
        if (steps == 0) continue;
        if (region->nb[d] % type.size != 0 && type.block > 1) return SIZE_MAX;
        if (region->nb[d] != 0 && steps > (SIZE_MAX - extent) / region->nb[d]) return SIZE_MAX;
        extent += steps * region->nb[d];
    }
    return extent;
}

bool cpu_accepts_region(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    const struct cpu_type_size type = cpu_type_size(node->type);
    const struct region region = region_of(node);
    if (a->type != node->type || b->type != node->type || !cpu_same_shape(node, a) ||
        !cpu_contiguous(node) || !cpu_contiguous(a))
        return false;
    if (cpu_nelements(b) == 0) return true;
    if (type.block > 1 &&
        (!cpu_rows_dense(b) || b->ne[0] % type.block != 0 || region.offset % type.size != 0))
        return false;
    const size_t extent = region_extent(b, &region);
    const size_t size = (size_t)(cpu_nelements(node) / type.block) * type.size;
    return extent <= size && region.offset <= size - extent;
}

bool cpu_accepts_tri(const struct ggml_tensor *node) {
    const int32_t type = ggml_get_op_params_i32(node, 0);
    return type >= GGML_TRI_TYPE_UPPER_DIAG && type <= GGML_TRI_TYPE_LOWER &&
           cpu_same_shape(node, node->src[0]) && cpu_rows_dense(node) &&
           cpu_rows_dense(node->src[0]);
}

bool cpu_accepts_diag(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return a->type == node->type && a->ne[1] == 1 && node->ne[0] == a->ne[0] &&
           node->ne[1] == a->ne[0] && node->ne[2] == a->ne[2] && node->ne[3] == a->ne[3] &&
           cpu_rows_dense(node);
}
