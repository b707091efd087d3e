// SPDX-License-Identifier: MIT
// tri and diag: parts of matrices kept or filled, the rest 0.
#include "base/kernel.h"
#include "ggml-shape.h"

// A range of columns.
struct columns {
    int64_t begin, end;
};

// The columns of row r that stay.
static struct columns kept_columns(enum ggml_tri_type type, int64_t r, int64_t n) {
    switch (type) {
    case GGML_TRI_TYPE_UPPER_DIAG: return (struct columns){MIN(r, n), n};
    case GGML_TRI_TYPE_UPPER: return (struct columns){MIN(r + 1, n), n};
    case GGML_TRI_TYPE_LOWER_DIAG: return (struct columns){0, MIN(r + 1, n)};
    default: return (struct columns){0, MIN(r, n)};
    }
}

// What is kept of a row is one run of columns.
enum ggml_status CPU_FN(cpu_tri)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const enum ggml_tri_type type = (enum ggml_tri_type)ggml_get_op_params_i32(dst, 0);
    const size_t size = ggml_type_size(dst->type);
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(dst, r);
        const struct columns kept = kept_columns(type, at.i1, dst->ne[0]);
        const size_t first = (size_t)kept.begin * size;
        const size_t last = (size_t)kept.end * size;
        const char *x = ggml_row_data(dst->src[0], at);
        char *y = ggml_row_data(dst, at);
        memset(y, 0, first);
        if (x != y) memcpy(y + first, x + first, last - first);
        memset(y + last, 0, (size_t)dst->ne[0] * size - last);
    }
    return GGML_STATUS_SUCCESS;
}

// A type that the kernel accepts represents 0 by zero bits.
enum ggml_status CPU_FN(cpu_diag)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const struct ggml_tensor *src = dst->src[0];
    const size_t size = ggml_type_size(dst->type);
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(dst, r);
        char *y = ggml_row_data(dst, at);
        memset(y, 0, (size_t)dst->ne[0] * size);
        memcpy(y + (size_t)at.i1 * size,
               ggml_row_data(src, (struct ggml_row){0, at.i2, at.i3}) + (size_t)at.i1 * src->nb[0],
               size);
    }
    return GGML_STATUS_SUCCESS;
}
