// SPDX-License-Identifier: MIT
// concat: two operands one after the other along a dimension; any type.
#include "base/kernel.h"
#include "ggml-shape.h"

// A row, or for types without blocks elements at any stride.
static void copy_row(char *y, const char *x, const struct ggml_tensor *src) {
    const struct ggml_type_traits *type = ggml_get_type_traits(src->type);
    if (ggml_rows_dense(src)) {
        memcpy(y, x, (size_t)(src->ne[0] / type->blck_size) * type->type_size);
        return;
    }
    for (int64_t i = 0; i < src->ne[0]; ++i)
        memcpy(y + (size_t)i * type->type_size, x + (size_t)i * src->nb[0], type->type_size);
}

// Along dimension 0, the rows of both operands follow each other in each row of the result.
static void concat_rows(const struct ggml_tensor *dst, struct ggml_row at) {
    const struct ggml_tensor *a = dst->src[0];
    const struct ggml_type_traits *type = ggml_get_type_traits(dst->type);
    char *y = ggml_row_data(dst, at);
    copy_row(y, ggml_row_data(a, at), a);
    copy_row(y + (size_t)(a->ne[0] / type->blck_size) * type->type_size,
             ggml_row_data(dst->src[1], at), dst->src[1]);
}

// Along the other dimensions, a row of the result is a row of one operand: of the second one from
// the first one's extent on.
static void choose_row(const struct ggml_tensor *dst, struct ggml_row at, int dim) {
    const struct ggml_tensor *a = dst->src[0];
    int64_t *along = dim == 1 ? &at.i1 : dim == 2 ? &at.i2 : &at.i3;
    char *y = ggml_row_data(dst, at);
    const bool second = *along >= a->ne[dim];
    if (second) *along -= a->ne[dim];
    const struct ggml_tensor *src = dst->src[second ? 1 : 0];
    copy_row(y, ggml_row_data(src, at), src);
}

// Rows are copied as bytes: the type is the same, and quantised rows consist of whole blocks.
enum ggml_status CPU_FN(cpu_concat)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const int dim = ggml_get_op_params_i32(dst, 0);
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        if (dim == 0)
            concat_rows(dst, ggml_row_at(dst, r));
        else
            choose_row(dst, ggml_row_at(dst, r), dim);
    }
    return GGML_STATUS_SUCCESS;
}
