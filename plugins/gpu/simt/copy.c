// SPDX-License-Identifier: MIT
// Moves and conversions: kernels/copy.cpp.
#include "gpu/base/nodes.h"
#include "simt/rows.h"

bool simt_accepts_move(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return a->type == node->type && ggml_nelements(a) == ggml_nelements(node) &&
           ggml_rows_separable(a) && ggml_rows_separable(node);
}

bool simt_accepts_convert(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return ggml_nelements(a) == ggml_nelements(node) && ggml_rows_separable(a);
}

// Blocks of the result in the order of its elements.
bool simt_accepts_encode(const struct ggml_tensor *node) {
    return ggml_nelements(node->src[0]) == ggml_nelements(node) && ggml_has_whole_blocks(node) &&
           ggml_rows_separable(node) && ggml_rows_separable(node->src[0]);
}

bool simt_accepts_repeat(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    return a->type == node->type && ggml_repeats(a, node) && ggml_rows_separable(a) &&
           ggml_rows_separable(node);
}

bool simt_accepts_concat(const struct ggml_tensor *node) {
    return ggml_fits_concat(node);
}

bool simt_accepts_get_rows(const struct ggml_tensor *node) {
    return ggml_fits_get_rows(node) && ggml_rows_separable(node->src[0]);
}

bool simt_accepts_set_rows(const struct ggml_tensor *node) {
    return ggml_fits_set_rows(node);
}

// A thread per column, which goes through the rows in order.
void simt_launch_set_rows(struct simt_work *l, const struct ggml_tensor *node) {
    const struct ggml_tensor *b = node->src[0];
    simt_launch_threads(l, b->ne[0] * b->ne[2] * b->ne[3]);
}

bool simt_accepts_set_rows_encoded(const struct ggml_tensor *node) {
    return ggml_fits_set_rows(node) && ggml_rows_separable(node);
}

// A thread per block of a row.
void simt_launch_set_rows_encoded(struct simt_work *l, const struct ggml_tensor *node) {
    const struct ggml_tensor *b = node->src[0];
    simt_launch_threads(l, b->ne[0] / ggml_blck_size(node->type) * b->ne[2] * b->ne[3]);
}

bool simt_accepts_diag(const struct ggml_tensor *node) {
    return ggml_fits_diag(node);
}

bool simt_accepts_tri(const struct ggml_tensor *node) {
    return ggml_fits_tri(node);
}

void simt_launch_triangle(struct simt_work *l, const struct ggml_tensor *node) {
    const long long minus_infinity = 0xff800000;
    l->args.numbers[0] = gpu_kept_columns(node);
    l->args.numbers[1] = node->op == GGML_OP_DIAG_MASK_INF ? minus_infinity : 0;
    simt_launch_elements(l, node);
}

// Nothing can be repeated of a source without elements.
bool simt_accepts_pad(const struct ggml_tensor *node) {
    return ggml_fits_pad(node) && (ggml_nelements(node->src[0]) > 0 || node->op_params[8] == 0);
}

bool simt_accepts_roll(const struct ggml_tensor *node) {
    return ggml_fits_roll(node);
}

// --- regions -------------------------------------------------------------------------------------

// Strides and offset of the part of the result that acc and set write, in bytes.
struct region {
    size_t nb[GGML_MAX_DIMS];
    size_t offset;
};

static struct region region_of(const struct ggml_tensor *node) {
    struct region r = {.nb = {ggml_type_size(node->type)}, .offset = (uint32_t)node->op_params[3]};
    for (int d = 1; d < GGML_MAX_DIMS; ++d)
        r.nb[d] = (uint32_t)node->op_params[d - 1];
    return r;
}

// Bytes to the end of the region; SIZE_MAX: more than there can be, or elements would lie between
// others.
static size_t region_end(const struct ggml_tensor *b, const struct region *r) {
    const size_t size = ggml_type_size(b->type);
    size_t end = r->offset + (size_t)b->ne[0] * size;
    if (r->offset % size != 0) return SIZE_MAX;
    for (int d = 1; d < GGML_MAX_DIMS; ++d) {
        const size_t steps = (size_t)(b->ne[d] - 1);
        if (steps == 0) continue;
        if (r->nb[d] % size != 0 || (r->nb[d] != 0 && steps > (SIZE_MAX - end) / r->nb[d]))
            return SIZE_MAX;
        end += steps * r->nb[d];
    }
    return end;
}

// Whether two rows of the region may have bytes in common.
static bool region_overlaps(const struct ggml_tensor *b, const struct region *r) {
    size_t extent = (size_t)b->ne[0] * ggml_type_size(b->type);
    for (int d = 1; d < GGML_MAX_DIMS; ++d) {
        if (b->ne[d] <= 1) continue;
        if (r->nb[d] < extent) return true;
        extent += (size_t)(b->ne[d] - 1) * r->nb[d];
    }
    return false;
}

bool simt_accepts_region(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0], *b = node->src[1];
    if (a->type != node->type || b->type != node->type || !ggml_are_same_shape(node, a) ||
        !ggml_is_packed(node) || !ggml_is_packed(a))
        return false;
    if (ggml_nelements(b) == 0) return true;
    if (b->ne[0] > ggml_nelements(node)) return false; // and sizes in bytes do not overflow
    const struct region r = region_of(node);
    return region_end(b, &r) <= (size_t)ggml_nelements(node) * ggml_type_size(node->type);
}

void simt_launch_region(struct simt_work *l, const struct ggml_tensor *node) {
    const struct region r = region_of(node);
    l->args.numbers[0] = node->op == GGML_OP_ACC;
    l->args.numbers[1] = region_overlaps(node->src[1], &r);
    simt_launch_elements(l, node);
}
