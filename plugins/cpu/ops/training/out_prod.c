// SPDX-License-Identifier: MIT
// out_prod: dst[i, j] = sum over t of a[i, t] * b[j, t]; and get_rows_back. A piece of a row of
// src0, of any type, is unpacked once for all rows of the result that it is added to.
#include "ggml-shape.h"
#include "simd/convert.h"
#include "types/unpack.h"

enum { COLUMNS = 16 }; // rows of the result per unit, which then stay in the cache

// Elements [i0, i0 + n) of a dense row; F32 is not copied.
static const float *load(float *buffer, const struct ggml_tensor *a, const char *row, int64_t i0,
                         int64_t n) {
    const struct ggml_type_traits *type = ggml_get_type_traits(a->type);
    const char *x = row + (size_t)(i0 / type->blck_size) * type->type_size;
    if (a->type == GGML_TYPE_F32) return (const float *)(const void *)x;
    CPU_FN(cpu_unpack)(a->type)(x, buffer, n);
    return buffer;
}

// The inner loop of both operations.
static void add_scaled(float *y, const float *x, float factor, int64_t n) {
    CPU_INDEPENDENT
    for (int64_t i = 0; i < n; ++i)
        y[i] += x[i] * factor;
}

struct out_prod_unit {
    struct ggml_row first; // of the result
    int64_t n_rows;
    int64_t i0, n;
};

// Rows of the result for one piece of dimension 0: clears them, then adds each row of a times
// its factor.
static void compute_unit(const struct ggml_tensor *dst, const struct out_prod_unit *unit) {
    const struct ggml_tensor *a = dst->src[0];
    const struct ggml_tensor *b = dst->src[1];
    struct ggml_row from = {0, unit->first.i2 / (b->ne[2] / a->ne[2]),
                            unit->first.i3 / (b->ne[3] / a->ne[3])};
    float *rows[COLUMNS];
    for (int64_t j = 0; j < unit->n_rows; ++j) {
        const struct ggml_row at = {unit->first.i1 + j, unit->first.i2, unit->first.i3};
        rows[j] = (float *)(void *)ggml_row_data(dst, at) + unit->i0;
        memset(rows[j], 0, (size_t)unit->n * sizeof(float));
    }
    float buffer[CPU_CHUNK];
    for (; from.i1 < a->ne[1]; ++from.i1) {
        const float *x = load(buffer, a, ggml_row_data(a, from), unit->i0, unit->n);
        const char *factors =
            ggml_row_data(b, (struct ggml_row){from.i1, unit->first.i2, unit->first.i3});
        for (int64_t j = 0; j < unit->n_rows; ++j) {
            float one;
            const char *at = factors + (size_t)(unit->first.i1 + j) * b->nb[0];
            add_scaled(rows[j], x, *cpu_load(&one, at, b->type, 0, 1), unit->n);
        }
    }
}

// Threads share pieces of rows of the result. O(ne0 ne1 t); F32 operands aren't copied.
enum ggml_status CPU_FN(cpu_out_prod)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const int64_t chunks = (dst->ne[0] + CPU_CHUNK - 1) / CPU_CHUNK;
    const int64_t blocks = (dst->ne[1] + COLUMNS - 1) / COLUMNS;
    int64_t begin, end;
    cpu_task_range(task, chunks * blocks * dst->ne[2] * dst->ne[3], &begin, &end);
    for (int64_t u = begin; u < end; ++u) {
        const int64_t matrix = u / chunks / blocks;
        const int64_t row = u / chunks % blocks * COLUMNS;
        const int64_t i0 = u % chunks * CPU_CHUNK;
        const struct out_prod_unit unit = {
            .first = {row, matrix % dst->ne[2], matrix / dst->ne[2]},
            .n_rows = MIN(dst->ne[1] - row, COLUMNS),
            .i0 = i0,
            .n = MIN(dst->ne[0] - i0, CPU_CHUNK),
        };
        compute_unit(dst, &unit);
    }
    return GGML_STATUS_SUCCESS;
}

// Read exactly once: the application may change the tensor meanwhile, and the checked index has to
// be the one that is used.
static int32_t id_at(const struct ggml_tensor *ids, int64_t i) {
    int32_t id;
    memcpy(&id, (const char *)ids->data + (size_t)i * ids->nb[0], sizeof(id));
    CPU_READ_ONCE(id);
    return id;
}

// Whether every index names a row of the result.
static bool ids_fit(const struct ggml_tensor *ids, int64_t n_rows) {
    for (int64_t i = 0; i < ids->ne[0]; ++i) {
        const int32_t id = id_at(ids, i);
        if (id < 0 || id >= n_rows) return false;
    }
    return true;
}

// dst[:, ids[i]] += a[:, i] in the order of i, from 0. A row of the result belongs to one thread.
enum ggml_status CPU_FN(cpu_get_rows_back)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const struct ggml_tensor *a = dst->src[0];
    const struct ggml_tensor *ids = dst->src[1];
    if (!ids_fit(ids, dst->ne[1])) return GGML_STATUS_FAILED;
    float buffer[CPU_CHUNK];
    // The thread's rows of the result; each thread goes through all indices.
    int64_t begin, end;
    cpu_task_range(task, dst->ne[1], &begin, &end);
    for (int64_t r = begin; r < end; ++r)
        memset((char *)dst->data + (size_t)r * dst->nb[1], 0, (size_t)dst->ne[0] * sizeof(float));
    for (int64_t r = 0; r < ids->ne[0]; ++r) {
        const int32_t id = id_at(ids, r);
        if (id < begin || id >= end) continue;
        const char *x = (const char *)a->data + (size_t)r * a->nb[1];
        float *y = (float *)(void *)((char *)dst->data + (size_t)id * dst->nb[1]);
        for (int64_t i = 0; i < dst->ne[0]; i += CPU_CHUNK) {
            const int64_t n = MIN(dst->ne[0] - i, CPU_CHUNK);
            add_scaled(y + i, load(buffer, a, x, i, n), 1.0f, n);
        }
    }
    return GGML_STATUS_SUCCESS;
}
