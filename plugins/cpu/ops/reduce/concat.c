// SPDX-License-Identifier: MIT
// concat: two operands one after the other along a dimension; any type.
#include "base/kernel.h"
#include "gemm/interleave.h"
#include "ggml-shape.h"

enum { TRANSPOSED_ROWS = 64 }; // that are written together: lines of the cache stay in it

// n rows of `bytes` bytes, a constant where rows are short: a call for each would take longer.
CPU_INLINE void copy_short(char *y, size_t y_stride, const char *x, size_t x_stride, int64_t n,
                           const size_t bytes) {
    for (int64_t i = 0; i < n; ++i)
        memcpy(y + (size_t)i * y_stride, x + (size_t)i * x_stride, bytes);
}

static void copy_dense(char *y, size_t y_stride, const char *x, size_t x_stride, int64_t n,
                       size_t bytes) {
    switch (bytes) {
    case 4: copy_short(y, y_stride, x, x_stride, n, 4); break;
    case 8: copy_short(y, y_stride, x, x_stride, n, 8); break;
    case 12: copy_short(y, y_stride, x, x_stride, n, 12); break;
    case 16: copy_short(y, y_stride, x, x_stride, n, 16); break;
    default: copy_short(y, y_stride, x, x_stride, n, bytes);
    }
}

// n rows of floats whose columns are dense: four elements of four rows at a time.
static void copy_transposed(char *y, size_t y_stride, const char *x, size_t x_step, int64_t n0,
                            int64_t n) {
    const int64_t stride = (int64_t)(y_stride / sizeof(float));
    for (int64_t i0 = 0; i0 + QUAD <= n0; i0 += QUAD) {
        const float *columns[QUAD];
        for (int i = 0; i < QUAD; ++i)
            columns[i] = (const float *)(const void *)(x + (size_t)(i0 + i) * x_step);
        interleave_4(columns, n, (float *)(void *)y + i0, stride);
    }
    for (int64_t i0 = n0 - n0 % QUAD; i0 < n0; ++i0)
        copy_short(y + (size_t)i0 * sizeof(float), y_stride, x + (size_t)i0 * x_step, sizeof(float),
                   n, sizeof(float));
}

// n rows of src from `at` on, which are in one matrix, to rows y_stride bytes apart.
static void copy_rows(char *y, size_t y_stride, const struct ggml_tensor *src, struct ggml_row at,
                      int64_t n) {
    const struct ggml_type_traits *type = ggml_get_type_traits(src->type);
    const size_t size = type->type_size;
    const int64_t n0 = src->ne[0] / type->blck_size;
    const char *x = ggml_row_data(src, at);
    if (ggml_rows_dense(src)) {
        copy_dense(y, y_stride, x, src->nb[1], n, (size_t)n0 * size);
        return;
    }
    const bool is_transposed =
        src->type == GGML_TYPE_F32 && src->nb[1] == size && src->nb[0] % size == 0;
    for (int64_t i = 0; i < n; i += TRANSPOSED_ROWS) {
        const int64_t rows = MIN(n - i, TRANSPOSED_ROWS);
        char *to = y + (size_t)i * y_stride;
        const char *from = x + (size_t)i * src->nb[1];
        if (is_transposed && y_stride % size == 0) {
            copy_transposed(to, y_stride, from, src->nb[0], n0, rows);
            continue;
        }
        for (int64_t i0 = 0; i0 < n0; ++i0)
            copy_short(to + (size_t)i0 * size, y_stride, from + (size_t)i0 * src->nb[0], src->nb[1],
                       rows, size);
    }
}

// Rows of a matrix from `at` on, at most n, that come from the same operands; returns how many were
// copied. Along dimension 0 rows of both operands follow each other in each row of the result,
// along the others a row is one of the second operand from the first one's extent on.
static int64_t copy_run(const struct ggml_tensor *dst, struct ggml_row at, int64_t n, int dim) {
    const struct ggml_tensor *a = dst->src[0], *b = dst->src[1];
    char *y = ggml_row_data(dst, at);
    if (dim == 0) {
        const struct ggml_type_traits *type = ggml_get_type_traits(dst->type);
        copy_rows(y, dst->nb[1], a, at, n);
        y += (size_t)(a->ne[0] / type->blck_size) * type->type_size;
        copy_rows(y, dst->nb[1], b, at, n);
        return n;
    }
    int64_t *along = dim == 1 ? &at.i1 : dim == 2 ? &at.i2 : &at.i3;
    const bool second = *along >= a->ne[dim];
    if (dim == 1 && !second) n = MIN(n, a->ne[1] - at.i1);
    if (second) *along -= a->ne[dim];
    copy_rows(y, dst->nb[1], second ? b : a, at, n);
    return n;
}

// Rows are copied as bytes: the type is the same, and quantised rows consist of whole blocks.
enum ggml_status CPU_FN(cpu_concat)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const int dim = ggml_get_op_params_i32(dst, 0);
    int64_t row, end;
    cpu_task_range(task, ggml_nrows(dst), &row, &end);
    while (row < end) {
        const struct ggml_row at = ggml_row_at(dst, row);
        row += copy_run(dst, at, MIN(end - row, dst->ne[1] - at.i1), dim);
    }
    return GGML_STATUS_SUCCESS;
}
