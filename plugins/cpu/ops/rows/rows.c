// SPDX-License-Identifier: MIT
// get_rows and set_rows: rows picked by index. An index outside the tensor fails the node before
// anything is read or written through it.
#include "ggml-shape.h"
#include "simd/convert.h"
#include "types/unpack.h"

// The index at (i0, i1, i2), I32 or I64.
static int64_t index_at(const struct ggml_tensor *ids, int64_t i0, int64_t i1, int64_t i2) {
    const char *at = ggml_row_data(ids, (struct ggml_row){i1, i2, 0}) + (size_t)i0 * ids->nb[0];
    int64_t wide;
    int32_t narrow;
    if (ids->type == GGML_TYPE_I64) {
        memcpy(&wide, at, sizeof(wide));
    } else {
        memcpy(&narrow, at, sizeof(narrow));
        wide = narrow;
    }
    CPU_READ_ONCE(wide);
    return wide;
}

// Rows are copied or unpacked to F32. An index outside of the matrix fails the graph instead of
// reading foreign memory.
enum ggml_status CPU_FN(cpu_get_rows)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const struct ggml_tensor *a = dst->src[0];
    const bool copies = a->type == dst->type;
    const cpu_unpack_fn unpack = CPU_FN(cpu_unpack)(a->type);
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t row = begin; row < end; ++row) {
        const struct ggml_row to = ggml_row_at(dst, row);
        const int64_t index = index_at(dst->src[1], to.i1, to.i2, to.i3);
        if (index < 0 || index >= a->ne[1]) return GGML_STATUS_FAILED;
        const char *x = ggml_row_data(a, (struct ggml_row){index, to.i2, to.i3});
        char *y = ggml_row_data(dst, to);
        if (copies) {
            memcpy(y, x, (size_t)a->ne[0] * sizeof(float));
        } else {
            unpack(x, (float *)(void *)y, a->ne[0]);
        }
    }
    return GGML_STATUS_SUCCESS;
}

// A row of F32 or F16 to a row of any type, through a chunk of floats.
static void convert_row(const struct ggml_tensor *b, const char *x, char *y, enum ggml_type type,
                        cpu_pack_fn pack) {
    const struct ggml_type_traits *size = ggml_get_type_traits(type);
    float buffer[CPU_CHUNK];
    for (int64_t i = 0; i < b->ne[0]; i += CPU_CHUNK) {
        const int64_t n = MIN(b->ne[0] - i, CPU_CHUNK);
        pack(cpu_load(buffer, x, b->type, i, n),
             y + (size_t)(i / size->blck_size) * size->type_size, n);
    }
}

// Indices repeat over the two outer dimensions of the source.
static int64_t target_row(const struct ggml_tensor *ids, struct ggml_row from) {
    return index_at(ids, from.i1, from.i2 % ids->ne[1], from.i3 % ids->ne[2]);
}

// Checked before anything is written, so that a failing graph leaves the destination as it was.
static bool indices_fit(const struct ggml_tensor *b, const struct ggml_tensor *ids,
                        int64_t n_rows) {
    for (int64_t row = 0; row < ggml_nrows(b); ++row) {
        const int64_t index = target_row(ids, ggml_row_at(b, row));
        if (index < 0 || index >= n_rows) return false;
    }
    return true;
}

// A target row belongs to one thread, which writes it in the order of the sources: of rows with the
// same index the last one stays.
enum ggml_status CPU_FN(cpu_set_rows)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const struct ggml_tensor *b = dst->src[0];
    const struct ggml_tensor *ids = dst->src[1];
    const cpu_pack_fn pack = CPU_FN(cpu_pack)(dst->type);
    if (!indices_fit(b, ids, dst->ne[1])) return GGML_STATUS_FAILED;
    for (int64_t row = 0; row < ggml_nrows(b); ++row) {
        const struct ggml_row from = ggml_row_at(b, row);
        const struct ggml_row to = {target_row(ids, from), from.i2, from.i3};
        if (to.i1 < 0 || to.i1 >= dst->ne[1]) return GGML_STATUS_FAILED; // it has changed
        if ((to.i1 + from.i2 + from.i3) % task->nth != task->ith) continue;
        convert_row(b, ggml_row_data(b, from), ggml_row_data(dst, to), dst->type, pack);
    }
    return GGML_STATUS_SUCCESS;
}
