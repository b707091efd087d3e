// SPDX-License-Identifier: MIT
// sum, sum_rows, mean, argmax, cumsum, count_equal.
#include <string.h>

#include "gpu/base/shape.h"
#include "ops/group.h"

enum { MAX_PARTS = 256, SUM_GROUP = 64, SUM_ELEMENTS = 1024 };

bool gvk_accepts_sum(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return gpu_nelements(node) == 1;
}

bool gvk_accepts_count_equal(const struct gvk_features *features, const struct ggml_tensor *node) {
    return gvk_accepts_sum(features, node) && ggml_are_same_shape(node->src[0], node->src[1]);
}

// Constants that both launches share; `parts`: this is the first one.
static void add_sum_specs(struct gvk_dispatch *d, const struct ggml_tensor *node, bool parts,
                          uint32_t n_parts) {
    gvk_dispatch_spec(d, parts);
    gvk_dispatch_spec(d, node->op == GGML_OP_COUNT_EQUAL);
    gvk_dispatch_spec(d, node->src[0]->type);
    d->numbers[0] = n_parts;
}

// Groups sum parts into scratch memory, then one group adds those.
void gvk_encode_sum(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const uint64_t wanted = gpu_groups_of(gpu_nelements(node->src[0]), SUM_ELEMENTS);
    const uint32_t n_parts = (uint32_t)(wanted > MAX_PARTS ? MAX_PARTS : wanted ? wanted : 1);
    const size_t bytes = n_parts * sizeof(uint32_t);
    const size_t scratch = gvk_plan_scratch(plan, bytes);
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_sum, node, 2, SUM_GROUP);
    if (!d) return;
    gvk_dispatch_scratch(d, 0, scratch, bytes, true);
    add_sum_specs(d, node, true, n_parts);
    gvk_dispatch_groups(plan, d, n_parts);
    d = gvk_dispatch_new(plan, GVK_SHADER_sum, node, 2, SUM_GROUP);
    if (!d) return;
    gvk_dispatch_scratch(d, 1, scratch, bytes, false);
    add_sum_specs(d, node, false, n_parts);
}

bool gvk_accepts_sum_rows(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return node->ne[0] == 1 && ggml_same_shape_from(node, node->src[0], 1);
}

bool gvk_accepts_argmax(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_fits_argmax(node);
}

// sum_rows, mean and argmax by one shader; mean is the sum divided by the row's length.
void gvk_encode_reduce_rows(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const uint32_t group = gvk_row_group(gvk_plan_features(plan), a->ne[0], GVK_ROW_PASSES);
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_reduce_rows, node, 1, group);
    if (!d) return;
    const float divisor = node->op == GGML_OP_MEAN ? (float)a->ne[0] : 1.0f;
    memcpy(&d->numbers[0], &divisor, sizeof(divisor));
    gvk_dispatch_spec(d, node->op == GGML_OP_ARGMAX);
    gvk_dispatch_groups(plan, d, gpu_nrows(a));
}

bool gvk_accepts_cumsum(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    return ggml_are_same_shape(node, node->src[0]) && ggml_rows_dense(node) &&
           ggml_rows_dense(node->src[0]);
}

void gvk_encode_cumsum(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const uint32_t group = gvk_row_group(gvk_plan_features(plan), node->ne[0], GVK_CUMSUM_PASSES);
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_cumsum, node, 1, group);
    if (d) gvk_dispatch_groups(plan, d, gpu_nrows(node));
}
