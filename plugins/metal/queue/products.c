// SPDX-License-Identifier: MIT
// Which products kernels/products.cpp takes: what they ask of addresses and strides is known when a
// graph is computed, not when support is asked for; whatever does not fit stays with the plain
// kernel. All of them multiply and add in F32, as that one does.
#include "gpu/base/shape.h"
#include "queue/choose.h"
#include "simt/rows.h"

enum { VECTOR_ROWS = 4, TILE_ROWS = 64, TILE_COLUMNS = 32, THREADS = 128, FEW = 8 };

// By words where the size of a block is a multiple of 4 bytes.
bool metal_takes_fours(const struct ggml_tensor *a) {
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
    metal_specialise(l, &(struct metal_variant){(int)kernel, {type, columns}});
    l->step.work.threads = THREADS;
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
                          const struct metal_planner *planner) {
    if (node->op != GGML_OP_MUL_MAT && node->op != GGML_OP_MUL_MAT_ID) return;
    const struct ggml_tensor *a = node->src[0], *b = node->src[1];
    if (!metal_takes_fours(a) || !takes_columns(b)) return;
    const bool with_experts = node->op == GGML_OP_MUL_MAT_ID;
    const int64_t planes = with_experts ? node->ne[1] * node->ne[2] : node->ne[2] * node->ne[3];
    // Weights are read once for each column with an expert, or once for each expert.
    const bool few = with_experts ? planes <= 2 * a->ne[2] : node->ne[1] <= FEW;
    if (planes > INT32_MAX || a->ne[2] >= INT32_MAX) return;
    if (few || (with_experts && !planner->has_matrices))
        launch_vector(l, node, with_experts, planes);
    else if (planner->has_matrices)
        launch_matrix(l, node, with_experts, planes);
}

// --- with what comes after -----------------------------------------------------------------------

bool metal_add_bias(struct metal_launch *l, const struct ggml_tensor *bias,
                    const struct ggml_tensor *sum) {
    if (l->variant.kernel != METAL_KERNEL_vector && l->variant.kernel != METAL_KERNEL_matrix)
        return false;
    simt_operand(&l->step.work.args.operands[0], sum);
    simt_operand(&l->step.work.args.operands[4], bias);
    return true;
}

// Few columns alone: with many of them each product is large enough by itself.
bool metal_add_gate(struct metal_launch *l, const struct ggml_tensor *x,
                    const struct ggml_tensor *gate, const struct ggml_tensor *glu) {
    const struct ggml_tensor *a = x->src[0], *b = gate->src[0];
    if (l->variant.kernel != METAL_KERNEL_vector || a->type != b->type ||
        !ggml_are_same_shape(a, b) || !metal_takes_fours(b) || !ggml_are_same_shape(x, glu))
        return false;
    struct metal_variant variant = l->variant;
    variant.kernel = METAL_KERNEL_vector_glu;
    metal_specialise(l, &variant);
    simt_operand(&l->step.work.args.operands[3], b);
    memcpy(l->step.work.args.params, glu->op_params, sizeof(l->step.work.args.params));
    return true;
}
