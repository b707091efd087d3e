// SPDX-License-Identifier: MIT
// repeat_back: the tiles of src0 added up.
#include "base/kernel.h"
#include "ggml-shape.h"

enum { CHUNK = 128 }; // elements of the result at a time: their sums take 1 KiB

// Adds elements [i0, i0 + n) of every tile of a row.
static void add_tiles(double *sums, const struct ggml_tensor *src, const char *row, int64_t width,
                      int64_t i0, int64_t n) {
    for (int64_t tile = 0; tile < src->ne[0]; tile += width) {
        const char *x = row + (size_t)(tile + i0) * src->nb[0];
        for (int64_t i = 0; i < n; ++i) {
            float term;
            memcpy(&term, x + (size_t)i * src->nb[0], sizeof(term));
            sums[i] += (double)term;
        }
    }
}

// Adds the rows of all tiles that fall on one row of the result.
static void add_rows(double *sums, const struct ggml_tensor *dst, struct ggml_row at, int64_t i0,
                     int64_t n) {
    const struct ggml_tensor *src = dst->src[0];
    struct ggml_row from;
    for (from.i3 = at.i3; from.i3 < src->ne[3]; from.i3 += dst->ne[3]) {
        for (from.i2 = at.i2; from.i2 < src->ne[2]; from.i2 += dst->ne[2]) {
            for (from.i1 = at.i1; from.i1 < src->ne[1]; from.i1 += dst->ne[1])
                add_tiles(sums, src, ggml_row_data(src, from), dst->ne[0], i0, n);
        }
    }
}

// Sums in double, as there may be many tiles; threads share chunks of the result.
enum ggml_status CPU_FN(cpu_repeat_back)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const int64_t chunks = (dst->ne[0] + CHUNK - 1) / CHUNK;
    int64_t begin, end;
    cpu_task_range(task, chunks * ggml_nrows(dst), &begin, &end);
    for (int64_t chunk = begin; chunk < end; ++chunk) {
        const struct ggml_row at = ggml_row_at(dst, chunk / chunks);
        const int64_t i0 = chunk % chunks * CHUNK;
        const int64_t n = MIN(dst->ne[0] - i0, CHUNK);
        double sums[CHUNK] = {0.0};
        add_rows(sums, dst, at, i0, n);
        float *y = (float *)(void *)ggml_row_data(dst, at) + i0;
        for (int64_t i = 0; i < n; ++i)
            y[i] = (float)sums[i];
    }
    return GGML_STATUS_SUCCESS;
}
