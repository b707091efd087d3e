// SPDX-License-Identifier: MIT
// repeat: the operand tiled to the result's shape; any type.
#include "base/kernel.h"
#include "ggml-shape.h"

// Repeats rows in dimension 0 by copying them; the other dimensions are repeated by addressing.
enum ggml_status CPU_FN(cpu_repeat)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const struct ggml_tensor *src = dst->src[0];
    const struct ggml_type_traits *type = ggml_get_type_traits(src->type);
    const size_t row = (size_t)(src->ne[0] / type->blck_size) * type->type_size;
    const int64_t tiles = dst->ne[0] / src->ne[0];
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(dst, r);
        char *y = ggml_row_data(dst, at);
        const char *x = ggml_row_data_repeated(src, at);
        for (int64_t tile = 0; tile < tiles; ++tile)
            memcpy(y + (size_t)tile * row, x, row);
    }
    return GGML_STATUS_SUCCESS;
}
