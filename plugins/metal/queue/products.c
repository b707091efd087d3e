// SPDX-License-Identifier: MIT
// Which products kernels/products.cpp takes: what they ask of addresses and strides is known when a
// graph is computed, not when support is asked for; whatever does not fit stays with the plain
// kernel. All of them multiply and add in F32, as that one does.
#include "gpu/base/shape.h"
#include "lists/type_set.h"
#include "queue/plan.h"

enum { VECTOR_ROWS = 4, TILE_ROWS = 64, TILE_COLUMNS = 32, THREADS = 128, FEW = METAL_MAX_COLUMNS };

// Weights are read four at a time, by words where the size of a block is a multiple of 4 bytes.
static bool takes_weights(const struct ggml_tensor *a) {
    const size_t size = ggml_type_size(a->type);
    const size_t unit = size % 4 == 0 ? 4 : size % 2 == 0 ? 2 : 1;
    return a->ne[0] > 0 && a->ne[0] % 4 == 0 && a->nb[0] == size &&
           (uintptr_t)a->data % unit == 0 && a->nb[1] % unit == 0 && a->nb[2] % unit == 0 &&
           a->nb[3] % unit == 0;
}

static bool takes_columns(const struct ggml_tensor *b) {
    return (T_FLOATS >> b->type & 1) && b->nb[0] == ggml_type_size(b->type);
}

static unsigned tiles(int64_t n, int64_t size) {
    return (unsigned)((n + size - 1) / size);
}

static void launch(struct metal_launch *l, enum metal_kernel kernel, int type, int columns) {
    l->variant = (struct metal_variant){(int)kernel, type, columns};
    l->step.work.threads = THREADS;
    l->step.work.args.numbers[0] = columns;
}

static void launch_vector(struct metal_launch *l, const struct ggml_tensor *node, bool with_experts,
                          int64_t planes) {
    launch(l, with_experts ? METAL_KERNEL_vector_id : METAL_KERNEL_vector, (int)node->src[0]->type,
           with_experts ? 1 : (int)node->ne[1]);
    l->step.work.grid[0] = tiles(node->ne[0], VECTOR_ROWS);
    l->step.work.grid[1] = (unsigned)planes;
    l->step.work.grid[2] = 1;
}

// With experts: tiles of columns for the average expert; a block goes on where there are more.
static void launch_matrix(struct metal_launch *l, const struct ggml_tensor *node, bool with_experts,
                          int64_t planes) {
    const int64_t experts = node->src[0]->ne[2] + 1;
    launch(l, with_experts ? METAL_KERNEL_matrix_id : METAL_KERNEL_matrix, (int)node->src[0]->type,
           0);
    l->step.work.grid[0] = tiles(node->ne[0], TILE_ROWS);
    l->step.work.grid[1] = tiles(with_experts ? planes / experts + 1 : node->ne[1], TILE_COLUMNS);
    l->step.work.grid[2] = (unsigned)(with_experts ? experts : planes);
    l->step.work.args.numbers[1] = l->step.work.grid[1];
}

void metal_choose_product(struct metal_launch *l, const struct ggml_tensor *node,
                          bool has_matrices) {
    if (node->op != GGML_OP_MUL_MAT && node->op != GGML_OP_MUL_MAT_ID) return;
    const struct ggml_tensor *a = node->src[0], *b = node->src[1];
    if (!takes_weights(a) || !takes_columns(b)) return;
    const bool with_experts = node->op == GGML_OP_MUL_MAT_ID;
    const int64_t planes = with_experts ? node->ne[1] * node->ne[2] : node->ne[2] * node->ne[3];
    // Weights are read once for each column with an expert, or once for each expert.
    const bool few = with_experts ? planes <= 2 * a->ne[2] : node->ne[1] <= FEW;
    if (planes > INT32_MAX || a->ne[2] >= INT32_MAX) return;
    if (few || (with_experts && !has_matrices))
        launch_vector(l, node, with_experts, planes);
    else if (has_matrices)
        launch_matrix(l, node, with_experts, planes);
}
