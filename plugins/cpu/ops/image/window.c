// SPDX-License-Identifier: MIT
// win_part, win_unpart and the relative positions of windowed attention.
#include "simd/strided.h"

static void copy_row(const struct ggml_tensor *a, struct ggml_row from, char *y) {
    cpu_gather(y, ggml_row_data(a, from), a->nb[0], ggml_type_size(a->type), a->ne[0]);
}

// Cuts the image into windows of w x w; what lies outside of the image is 0.
enum ggml_status CPU_FN(cpu_win_part)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const struct ggml_tensor *a = dst->src[0];
    const int64_t npx = ggml_get_op_params_i32(dst, 0);
    const int64_t w = ggml_get_op_params_i32(dst, 2);
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(dst, r);
        // Window i3 is at column i3 % npx and row i3 / npx of the grid of windows.
        const struct ggml_row from = {at.i3 % npx * w + at.i1, at.i3 / npx * w + at.i2, 0};
        char *y = ggml_row_data(dst, at);
        if (from.i1 < a->ne[1] && from.i2 < a->ne[2])
            copy_row(a, from, y);
        else
            memset(y, 0, (size_t)dst->ne[0] * ggml_type_size(dst->type));
    }
    return GGML_STATUS_SUCCESS;
}

// Puts windows together again, without their padding.
enum ggml_status CPU_FN(cpu_win_unpart)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const int64_t w = ggml_get_op_params_i32(dst, 0);
    // Windows per row of the grid.
    const int64_t npx = (dst->ne[1] + w - 1) / w;
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(dst, r);
        const struct ggml_row from = {at.i1 % w, at.i2 % w, at.i2 / w * npx + at.i1 / w};
        copy_row(dst->src[0], from, ggml_row_data(dst, at));
    }
    return GGML_STATUS_SUCCESS;
}

// Row (q, k) is the embedding of their distance.
enum ggml_status CPU_FN(cpu_get_rel_pos)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(dst, r);
        // The table begins with the largest negative distance.
        const struct ggml_row from = {dst->ne[1] - 1 - at.i1 + at.i2, 0, 0};
        copy_row(dst->src[0], from, ggml_row_data(dst, at));
    }
    return GGML_STATUS_SUCCESS;
}

// The result may be in place of src0.
enum ggml_status CPU_FN(cpu_add_rel_pos)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const float *a = dst->src[0]->data;
    const float *pw = dst->src[1]->data;
    const float *ph = dst->src[2]->data;
    float *y = dst->data;
    const int64_t n = dst->src[1]->ne[0];
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst) * n, &begin, &end);
    for (int64_t line = begin; line < end; ++line) {
        const float *w = pw + line / n * n;
        CPU_INDEPENDENT
        for (int64_t j = 0; j < n; ++j)
            y[line * n + j] = a[line * n + j] + ph[line] + w[j];
    }
    return GGML_STATUS_SUCCESS;
}
