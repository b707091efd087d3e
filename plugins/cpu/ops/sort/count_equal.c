// SPDX-License-Identifier: MIT
// count_equal: how many elements of two tensors of integers are the same.
#include "base/kernel.h"
#include "ggml-shape.h"

// Elements of 32 bits that are equal at the same place.
static int64_t count_row(const char *a, size_t a_step, const char *b, size_t b_step, int64_t n) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i)
        count += memcmp(a + (size_t)i * a_step, b + (size_t)i * b_step, sizeof(int32_t)) == 0;
    return count;
}

// Each thread counts its rows; the first adds these up after a barrier.
enum ggml_status CPU_FN(cpu_count_equal)(const struct cpu_task *task) {
    const struct ggml_tensor *a = task->dst->src[0];
    const struct ggml_tensor *b = task->dst->src[1];
    int64_t *counts = task->work;
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(a), &begin, &end);
    counts[task->ith] = 0;
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(a, r);
        counts[task->ith] +=
            count_row(ggml_row_data(a, at), a->nb[0], ggml_row_data(b, at), b->nb[0], a->ne[0]);
    }
    cpu_team_barrier(task->team, task->ith);
    if (task->ith != 0) return GGML_STATUS_SUCCESS;
    int64_t total = 0;
    for (int i = 0; i < task->nth; ++i)
        total += counts[i];
    memcpy(task->dst->data, &total, sizeof(total));
    return GGML_STATUS_SUCCESS;
}
