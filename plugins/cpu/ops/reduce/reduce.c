// SPDX-License-Identifier: MIT
// sum, sum_rows, mean, argmax, cumsum.
#include <math.h>

#include "ggml-shape.h"
#include "ops/reduce/sum_piece.h"
#include "simd/convert.h"
#include "simd/strided.h"
#include "simd/sums.h"

// Sum of elements [i0, i0 + n) of a row.
static double sum_range(const struct ggml_tensor *src, const char *row, int64_t i0, int64_t n) {
    float buffer[CPU_CHUNK];
    const bool dense = ggml_rows_dense(src);
    double sum = 0.0;
    for (int64_t i = i0; i < i0 + n; i += CPU_CHUNK) {
        const int64_t count = MIN(i0 + n - i, CPU_CHUNK);
        const float *x = buffer;
        if (dense) {
            x = cpu_load(buffer, row, src->type, i, count);
        } else {
            cpu_gather_floats(buffer, row + (size_t)i * src->nb[0], src->nb[0], src->type, count);
        }
        sum += cpu_sum(x, count);
    }
    return sum;
}

// Sum of one piece: a part of a long row, or several short rows. Pieces don't depend on the number
// of threads, so that sums have the same bits with any number.
static double sum_piece(const struct ggml_tensor *src, struct cpu_sum_pieces pieces,
                        int64_t piece) {
    if (pieces.per_row > 1) {
        const int64_t i0 = piece % pieces.per_row * CPU_SUM_PIECE;
        const char *row = ggml_row_data(src, ggml_row_at(src, piece / pieces.per_row));
        return sum_range(src, row, i0, MIN(src->ne[0] - i0, CPU_SUM_PIECE));
    }
    double sum = 0.0;
    const int64_t last = MIN((piece + 1) * pieces.rows_each, ggml_nrows(src));
    for (int64_t r = piece * pieces.rows_each; r < last; ++r)
        sum += sum_range(src, ggml_row_data(src, ggml_row_at(src, r)), 0, src->ne[0]);
    return sum;
}

// The pieces' sums are added in order by one thread, so that the number of threads does not matter.
enum ggml_status CPU_FN(cpu_sum_all)(const struct cpu_task *task) {
    const struct ggml_tensor *src = task->dst->src[0];
    const struct cpu_sum_pieces pieces = cpu_sum_pieces(src);
    double *sums = task->work;
    int64_t begin, end;
    cpu_task_range(task, pieces.count, &begin, &end);
    for (int64_t piece = begin; piece < end; ++piece)
        sums[piece] = sum_piece(src, pieces, piece);
    cpu_team_barrier(task->team, task->ith);
    // All sums are complete here; the rest takes one thread.
    if (task->ith != 0) return GGML_STATUS_SUCCESS;
    double total = 0.0;
    for (int64_t piece = 0; piece < pieces.count; ++piece)
        total += sums[piece];
    float buffer;
    *cpu_target(&buffer, task->dst->data, task->dst->type, 0) = (float)total;
    cpu_store(task->dst->data, task->dst->type, 0, &buffer, 1);
    return GGML_STATUS_SUCCESS;
}

// One value per row: its sum divided by `divisor`.
static enum ggml_status sum_rows(const struct cpu_task *task, double divisor) {
    const struct ggml_tensor *src = task->dst->src[0];
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(src), &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(src, r);
        float *y = (float *)(void *)ggml_row_data(task->dst, at);
        *y = (float)(sum_range(src, ggml_row_data(src, at), 0, src->ne[0]) / divisor);
    }
    return GGML_STATUS_SUCCESS;
}

enum ggml_status CPU_FN(cpu_sum_rows)(const struct cpu_task *task) {
    return sum_rows(task, 1.0);
}

// The mean is the sum divided by the row's extent.
enum ggml_status CPU_FN(cpu_mean)(const struct cpu_task *task) {
    return sum_rows(task, (double)task->dst->src[0]->ne[0]);
}

// Whether any of n numbers is as large. Vectors compare them.
static bool any_reaches(const float *x, int64_t n, float limit) {
    int reaches = 0;
    for (int64_t i = 0; i < n; ++i)
        reaches |= x[i] >= limit;
    return reaches != 0;
}

// Index of the largest of n numbers that lie `step` apart: the last of equal ones, as in ggml; NaN
// is never one.
static int32_t last_largest(const float *x, int64_t step, int64_t n) {
    enum { AT_ONCE = 32 };
    float max = -INFINITY;
    int64_t index = 0;
    for (int64_t first = 0; first < n; first += AT_ONCE) {
        const int64_t end = MIN(first + AT_ONCE, n);
        if (first > 0 && step == 1 && !any_reaches(x + first, end - first, max)) continue;
        for (int64_t i = first; i < end; ++i) {
            if (!(x[i * step] >= max)) continue;
            max = x[i * step];
            index = i;
        }
    }
    return (int32_t)index;
}

enum ggml_status CPU_FN(cpu_argmax)(const struct cpu_task *task) {
    const struct ggml_tensor *src = task->dst->src[0];
    const int64_t step = (int64_t)(src->nb[0] / sizeof(float));
    int64_t begin, end;
    cpu_task_range(task, src->ne[1], &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        const float *x =
            (const float *)(const void *)((const char *)src->data + (size_t)r * src->nb[1]);
        int32_t *y = (int32_t *)(void *)((char *)task->dst->data + (size_t)r * task->dst->nb[0]);
        *y = last_largest(x, step, src->ne[0]);
    }
    return GGML_STATUS_SUCCESS;
}

// Sums in double, rounded for each element.
enum ggml_status CPU_FN(cpu_cumsum)(const struct cpu_task *task) {
    const struct ggml_tensor *src = task->dst->src[0];
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(src), &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(src, r);
        const float *x = (const float *)(const void *)ggml_row_data(src, at);
        float *y = (float *)(void *)ggml_row_data(task->dst, at);
        double sum = 0.0;
        for (int64_t i = 0; i < src->ne[0]; ++i) {
            sum += (double)x[i];
            y[i] = (float)sum;
        }
    }
    return GGML_STATUS_SUCCESS;
}
