// SPDX-License-Identifier: MIT
// add, sub, mul, div: dst = a . b with b repeated to a's shape, computed in F32; and add_id.
#include "ggml-shape.h"
#include "simd/convert.h"
#include "types/unpack.h"

// Both operands have n elements.
typedef void (*binary_fn)(float *y, const float *a, const float *b, int64_t n);

// The same with one b for all.
typedef void (*binary_scalar_fn)(float *y, const float *a, float b, int64_t n);

#define BINARY_ROW(name, op)                                                                       \
    static void name##_row(float *y, const float *a, const float *b, int64_t n) {                  \
        CPU_INDEPENDENT                                                                            \
        for (int64_t i = 0; i < n; ++i)                                                            \
            y[i] = a[i] op b[i];                                                                   \
    }
#define BINARY_SCALAR(name, op)                                                                    \
    static void name##_scalar(float *y, const float *a, float b, int64_t n) {                      \
        CPU_INDEPENDENT                                                                            \
        for (int64_t i = 0; i < n; ++i)                                                            \
            y[i] = a[i] op b;                                                                      \
    }
BINARY_ROW(add, +)
BINARY_ROW(sub, -)
BINARY_ROW(mul, *)
BINARY_ROW(div, /)
BINARY_SCALAR(add, +)
BINARY_SCALAR(sub, -)
BINARY_SCALAR(mul, *)
BINARY_SCALAR(div, /)

// The two loops of an operation.
struct binary_op {
    binary_fn row;
    binary_scalar_fn scalar;
};

// n elements of b's row from element i0 of the result on, repeated and gathered as need be.
static const float *load_b(float *buffer, const struct ggml_tensor *b, const char *row, int64_t i0,
                           int64_t n) {
    // The piece lies within one repetition of b: no copy is needed for F32.
    if (ggml_rows_dense(b) && i0 % b->ne[0] + n <= b->ne[0]) {
        return cpu_load(buffer, row, b->type, i0 % b->ne[0], n);
    }
    // Element by element: b may be as narrow as one element, or have gaps between elements.
    int64_t j = i0 % b->ne[0];
    for (int64_t i = 0; i < n; ++i) {
        float one;
        buffer[i] = *cpu_load(&one, row + (size_t)j * b->nb[0], b->type, 0, 1);
        if (++j == b->ne[0]) j = 0;
    }
    return buffer;
}

// Elements [i0, i0 + n) of a row. A b of one element per row is a scalar; otherwise it is loaded
// repeated.
static void compute_chunk(const struct ggml_tensor *dst, struct ggml_row at, int64_t i0, int64_t n,
                          const void *argument) {
    const struct binary_op op = *(const struct binary_op *)argument;
    float a_buffer[CPU_CHUNK];
    float b_buffer[CPU_CHUNK];
    float y_buffer[CPU_CHUNK];
    const struct ggml_tensor *b = dst->src[1];
    char *y_row = ggml_row_data(dst, at);
    const char *b_row = ggml_row_data_repeated(b, at);
    const float *x = cpu_load(a_buffer, ggml_row_data(dst->src[0], at), dst->src[0]->type, i0, n);
    float *y = cpu_target(y_buffer, y_row, dst->type, i0);
    if (b->ne[0] == 1) {
        op.scalar(y, x, *cpu_load(b_buffer, b_row, b->type, 0, 1), n);
    } else {
        op.row(y, x, load_b(b_buffer, b, b_row, i0, n), n);
    }
    cpu_store(y_row, dst->type, i0, y, n);
}

#define BINARY_KERNEL(name)                                                                        \
    enum ggml_status CPU_FN(cpu_##name)(const struct cpu_task *task) {                             \
        const struct binary_op op = {name##_row, name##_scalar};                                   \
        return cpu_each_chunk(task, compute_chunk, &op);                                           \
    }
BINARY_KERNEL(add)
BINARY_KERNEL(sub)
BINARY_KERNEL(mul)
BINARY_KERNEL(div)

// Element i0, which begins a block, of a dense row of any type.
static char *block_at(const struct ggml_tensor *t, struct ggml_row at, int64_t i0) {
    const struct ggml_type_traits *type = ggml_get_type_traits(t->type);
    return ggml_row_data(t, at) + (size_t)(i0 / type->blck_size) * type->type_size;
}

// add where src0 or the result has a type that needs unpacking and packing: in pieces of CPU_CHUNK,
// which all block sizes divide.
enum ggml_status CPU_FN(cpu_add_packed)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const struct ggml_tensor *b = dst->src[1];
    const cpu_unpack_fn unpack = CPU_FN(cpu_unpack)(dst->src[0]->type);
    const cpu_pack_fn pack = CPU_FN(cpu_pack)(dst->type);
    const int64_t chunks = (dst->ne[0] + CPU_CHUNK - 1) / CPU_CHUNK;
    float a_buffer[CPU_CHUNK];
    float b_buffer[CPU_CHUNK];
    int64_t begin, end;
    cpu_task_range(task, chunks * ggml_nrows(dst), &begin, &end);
    for (int64_t chunk = begin; chunk < end; ++chunk) {
        const struct ggml_row at = ggml_row_at(dst, chunk / chunks);
        const int64_t i0 = chunk % chunks * CPU_CHUNK;
        const int64_t n = MIN(dst->ne[0] - i0, CPU_CHUNK);
        unpack(block_at(dst->src[0], at, i0), a_buffer, n);
        add_row(a_buffer, a_buffer, load_b(b_buffer, b, ggml_row_data_repeated(b, at), i0, n), n);
        pack(a_buffer, block_at(dst, at, i0), n);
    }
    return GGML_STATUS_SUCCESS;
}

// dst[:, u, t] = a[:, u, t] + b[:, ids[u, t]]. FAILED for an id that b does not have.
enum ggml_status CPU_FN(cpu_add_id)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const struct ggml_tensor *b = dst->src[1];
    const struct ggml_tensor *ids = dst->src[2];
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(dst, r);
        int32_t id;
        memcpy(&id,
               (const char *)ids->data + (size_t)at.i1 * ids->nb[0] + (size_t)at.i2 * ids->nb[1],
               sizeof(id));
        // Other threads may change the tensor: the checked value must be the used one.
        CPU_READ_ONCE(id);
        if (id < 0 || id >= b->ne[1]) return GGML_STATUS_FAILED;
        const char *bias = (const char *)b->data + (size_t)id * b->nb[1];
        add_row((float *)(void *)ggml_row_data(dst, at),
                (const float *)(const void *)ggml_row_data(dst->src[0], at),
                (const float *)(const void *)bias, dst->ne[0]);
    }
    return GGML_STATUS_SUCCESS;
}
