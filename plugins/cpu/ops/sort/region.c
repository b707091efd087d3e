// SPDX-License-Identifier: MIT
// acc and set: a copy of src0 with a region of it, which has src1's shape and strides of its own,
// added to or overwritten.
#include "ops/sort/region.h"

#include "simd/convert.h"

// Adds floats at any address: the region's strides are the application's.
static void accumulate(char *y, const char *x, size_t step, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        float sum, term;
        memcpy(&sum, y + (size_t)i * sizeof(sum), sizeof(sum));
        memcpy(&term, x + (size_t)i * step, sizeof(term));
        sum += term;
        memcpy(y + (size_t)i * sizeof(sum), &sum, sizeof(sum));
    }
}

// Copies a row of src1, whole if it is dense.
static void assign(char *y, const struct ggml_tensor *b, const char *x) {
    const struct ggml_type_traits *type = ggml_get_type_traits(b->type);
    if (ggml_rows_dense(b)) {
        memmove(y, x, (size_t)(b->ne[0] / type->blck_size) * type->type_size);
        return;
    }
    for (int64_t i = 0; i < b->ne[0]; ++i)
        memcpy(y + (size_t)i * type->type_size, x + (size_t)i * b->nb[0], type->type_size);
}

// Copies src0 to the result; the threads share the work, and a barrier has to follow.
static void copy_source(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const struct ggml_type_traits *type = ggml_get_type_traits(dst->type);
    const size_t row = (size_t)(dst->ne[0] / type->blck_size) * type->type_size;
    if (dst->data == dst->src[0]->data) return;
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    memmove((char *)dst->data + (size_t)begin * row,
            (const char *)dst->src[0]->data + (size_t)begin * row, (size_t)(end - begin) * row);
}

// Rows that may overlap are written by one thread, in order: the result is then the same with any
// number of threads.
static enum ggml_status write_region(const struct cpu_task *task, bool adds) {
    const struct ggml_tensor *dst = task->dst;
    const struct ggml_tensor *b = dst->src[1];
    const struct region region = region_of(dst);
    copy_source(task);
    cpu_team_barrier(task->team, task->ith);
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(b), &begin, &end);
    if (region_overlaps(b, &region)) {
        begin = 0;
        end = task->ith == 0 ? ggml_nrows(b) : 0;
    }
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(b, r);
        char *y = (char *)dst->data + region.offset + (size_t)at.i1 * region.nb[1] +
                  (size_t)at.i2 * region.nb[2] + (size_t)at.i3 * region.nb[3];
        if (adds)
            accumulate(y, ggml_row_data(b, at), b->nb[0], b->ne[0]);
        else
            assign(y, b, ggml_row_data(b, at));
    }
    return GGML_STATUS_SUCCESS;
}

// The result is src0 with a region added to.
enum ggml_status CPU_FN(cpu_acc)(const struct cpu_task *task) {
    return write_region(task, true);
}

// The result is src0 with a region overwritten.
enum ggml_status CPU_FN(cpu_set)(const struct cpu_task *task) {
    return write_region(task, false);
}
