// SPDX-License-Identifier: MIT
// solve_tri: forward substitution. Columns do not depend on each other: threads share blocks of
// them.
#include "base/kernel.h"
#include "ggml-shape.h"

// columns of a block: its row of unknowns stays in the first-level cache
enum { SOLVE_COLUMNS = 64 };

// Forward substitution of a lower triangular matrix with several right-hand sides: the row of
// unknowns r is (b_r - sum of a_rt x_t for t < r) / a_rr. Columns are independent and make up the
// vectors. O(n^2 columns).
static void solve(const float *a, const float *b, float *x, int64_t n, int64_t stride,
                  int64_t columns) {
    float row[SOLVE_COLUMNS];
    for (int64_t r = 0; r < n; ++r) {
        memcpy(row, b + r * stride, (size_t)columns * sizeof(float));
        for (int64_t t = 0; t < r; ++t) {
            const float factor = a[r * n + t];
            const float *known = x + t * stride;
            for (int64_t c = 0; c < columns; ++c)
                row[c] -= factor * known[c];
        }
        const float diagonal = a[r * n + r];
        for (int64_t c = 0; c < columns; ++c)
            x[r * stride + c] = row[c] / diagonal;
    }
}

// A matrix's right-hand sides are cut into blocks of columns, so that a single large matrix
// occupies all threads.
enum ggml_status CPU_FN(cpu_solve_tri)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const int64_t k = dst->ne[0];
    const int64_t n = dst->ne[1];
    const int64_t blocks = (k + SOLVE_COLUMNS - 1) / SOLVE_COLUMNS;
    int64_t begin, end;
    cpu_task_range(task, blocks * dst->ne[2] * dst->ne[3], &begin, &end);
    for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t matrix = unit / blocks;
        const int64_t first = unit % blocks * SOLVE_COLUMNS;
        const int64_t offset = matrix * n * k + first;
        solve((const float *)dst->src[0]->data + matrix * n * n,
              (const float *)dst->src[1]->data + offset, (float *)dst->data + offset, n, k,
              MIN(k - first, SOLVE_COLUMNS));
    }
    return GGML_STATUS_SUCCESS;
}
