// SPDX-License-Identifier: MIT
// pad (zeros or wrapped), pad_reflect_1d, roll; elements of any size without blocks.
#include "simd/strided.h"

// Index modulo n, for an index that is off by less than n.
static int64_t wrap(int64_t i, int64_t n) {
    return i < 0 ? i + n : i >= n ? i - n : i;
}

// Elements at any stride, copied as bytes.
static void copy_elements(const struct ggml_tensor *a, char *y, const char *row, int64_t from,
                          int64_t n) {
    cpu_gather(y, row + (size_t)from * a->nb[0], a->nb[0], ggml_type_size(a->type), n);
}

// The source row of row `at` of the result; false if it is all padding.
static bool padded_from(const struct ggml_tensor *dst, struct ggml_row at, bool circular,
                        struct ggml_row *out_from) {
    const struct ggml_tensor *a = dst->src[0];
    int64_t i[3] = {at.i1, at.i2, at.i3};
    for (uint32_t d = 0; d < 3; ++d) {
        i[d] -= ggml_get_op_params_i32(dst, 2 * d + 2);
        if (circular) i[d] = wrap(i[d], a->ne[d + 1]);
        if (i[d] < 0 || i[d] >= a->ne[d + 1]) return false;
    }
    *out_from = (struct ggml_row){i[0], i[1], i[2]};
    return true;
}

// Elements `begin` to `end` of the result come from the source row; a negative padding cuts off.
static void pad_row(const struct ggml_tensor *dst, struct ggml_row at, bool circular) {
    const struct ggml_tensor *a = dst->src[0];
    const size_t size = ggml_type_size(dst->type);
    const int64_t left = ggml_get_op_params_i32(dst, 0);
    const int64_t n = a->ne[0];
    // begin and end are clamped: a negative padding cuts off source elements at either side.
    const int64_t begin = MIN(MAX(left, 0), dst->ne[0]);
    const int64_t end = MAX(MIN(left + n, dst->ne[0]), begin);
    char *y = ggml_row_data(dst, at);
    struct ggml_row from;
    if (!padded_from(dst, at, circular, &from)) {
        memset(y, 0, (size_t)dst->ne[0] * size);
        return;
    }
    const char *x = ggml_row_data(a, from);
    copy_elements(a, y + (size_t)begin * size, x, begin - left, end - begin);
    if (circular) {
        // The source's end before its beginning, and the reverse.
        copy_elements(a, y, x, n - begin, begin);
        copy_elements(a, y + (size_t)end * size, x, 0, dst->ne[0] - end);
    } else {
        memset(y, 0, (size_t)begin * size);
        memset(y + (size_t)end * size, 0, (size_t)(dst->ne[0] - end) * size);
    }
}

// Threads share rows of the result; a row outside of the source is 0, or wrapped.
enum ggml_status CPU_FN(cpu_pad)(const struct cpu_task *task) {
    const bool circular = ggml_get_op_params_i32(task->dst, 8) != 0;
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(task->dst), &begin, &end);
    for (int64_t r = begin; r < end; ++r)
        pad_row(task->dst, ggml_row_at(task->dst, r), circular);
    return GGML_STATUS_SUCCESS;
}

// Copies a row, then mirrors it at its first and last element.
enum ggml_status CPU_FN(cpu_pad_reflect_1d)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const struct ggml_tensor *a = dst->src[0];
    const int64_t left = ggml_get_op_params_i32(dst, 0);
    const int64_t right = ggml_get_op_params_i32(dst, 1);
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(dst, r);
        float *y = (float *)(void *)ggml_row_data(dst, at) + left;
        copy_elements(a, (char *)y, ggml_row_data(a, at), 0, a->ne[0]);
        // The edge itself isn't repeated: y[-1] = y[1].
        for (int64_t i = 1; i <= left; ++i)
            y[-i] = y[i];
        float *last = y + a->ne[0] - 1;
        for (int64_t i = 1; i <= right; ++i)
            last[i] = last[-i];
    }
    return GGML_STATUS_SUCCESS;
}

// Each row comes in two pieces: what is rolled over the end comes first.
enum ggml_status CPU_FN(cpu_roll)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const struct ggml_tensor *a = dst->src[0];
    const size_t size = ggml_type_size(dst->type);
    int64_t shift[GGML_MAX_DIMS];
    for (uint32_t d = 0; d < GGML_MAX_DIMS; ++d)
        // ggml's shifts are between -ne and ne.
        shift[d] = wrap(ggml_get_op_params_i32(dst, d), a->ne[d]);
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(dst, r);
        const struct ggml_row from = {wrap(at.i1 - shift[1], a->ne[1]),
                                      wrap(at.i2 - shift[2], a->ne[2]),
                                      wrap(at.i3 - shift[3], a->ne[3])};
        const char *x = ggml_row_data(a, from);
        char *y = ggml_row_data(dst, at);
        copy_elements(a, y, x, a->ne[0] - shift[0], shift[0]);
        copy_elements(a, y + (size_t)shift[0] * size, x, 0, a->ne[0] - shift[0]);
    }
    return GGML_STATUS_SUCCESS;
}
