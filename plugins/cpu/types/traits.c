// SPDX-License-Identifier: MIT
// This level's conversions and dot products by type: what ggml_get_type_traits_cpu() returns.
#include "ggml-cpu.h"
#include "ggml-shape.h"
#include "simd/simd.h"
#include "types/quant_dot.h"
#include "types/unpack.h"

enum { CHUNK = 512 }; // whole blocks of every type

// A dot product's operand: its type and a row of it.
struct operand {
    enum ggml_type type;
    const char *row;
};

// Unpacks n elements from i0 on, which is a whole number of blocks; the result is in `buffer`.
static const float *load(float *buffer, struct operand from, int64_t i0, int64_t n) {
    const struct ggml_type_traits *type = ggml_get_type_traits(from.type);
    CPU_FN(cpu_unpack)
    (from.type)(from.row + (size_t)(i0 / type->blck_size) * type->type_size, buffer, n);
    return buffer;
}

// Inner product of two rows of any types, through chunks of floats. Chunks are added in double.
static float dot(struct operand x, struct operand y, int64_t n) {
    float x_buffer[CHUNK];
    float y_buffer[CHUNK];
    double sum = 0.0;
    for (int64_t i0 = 0; i0 < n; i0 += CHUNK) {
        const int64_t count = MIN(n - i0, CHUNK);
        const float *a = load(x_buffer, x, i0, count);
        const float *b = load(y_buffer, y, i0, count);
        vf part = {0};
        int64_t i = 0;
        for (; i + LANES <= count; i += LANES)
            part += vf_load(a + i) * vf_load(b + i);
        part += vf_load_part(a + i, count - i) * vf_load_part(b + i, count - i);
        sum += (double)vf_sum(part);
    }
    return (float)sum;
}

// Four kinds of types: with both functions, with a dot product of whole rows, only decoded, and
// only encoded.
#define CPU_ENCODER_ROW(name, activation)                                                          \
    static void from_float_##name(const float *x, void *y, int64_t n) {                            \
        CPU_FN(cpu_pack)(GGML_TYPE_##name)(x, y, n);                                               \
    }
#define CPU_TRAITS_ROW CPU_ENCODER_ROW
#define CPU_WHOLE_ROW CPU_ENCODER_ROW
#define CPU_DECODED_ROW(name, activation)
#include "types/traits_list.inl"

// nrc rows of x with as many of y: result s[r + c * bs], rows bx and by bytes apart.
#define CPU_TRAITS_ROW(name, activation)                                                           \
    static void vec_dot_##name(int n, float *s, size_t bs, const void *x, size_t bx,               \
                               const void *y, size_t by, int nrc) {                                \
        for (int i = 0; i < nrc * nrc; ++i) {                                                      \
            const size_t r = (size_t)(i % nrc), c = (size_t)(i / nrc);                             \
            const struct operand a = {GGML_TYPE_##name, (const char *)x + r * bx};                 \
            s[r + c * bs] =                                                                        \
                dot(a, (struct operand){GGML_TYPE_##activation, (const char *)y + c * by}, n);     \
        }                                                                                          \
    }
#define CPU_DECODED_ROW CPU_TRAITS_ROW
#define CPU_ENCODER_ROW(name, activation)
#define CPU_WHOLE_ROW(name, activation)
#include "types/traits_list.inl"

extern const struct ggml_type_traits_cpu CPU_FN(cpu_type_traits)[];
const struct ggml_type_traits_cpu CPU_FN(cpu_type_traits)[GGML_TYPE_COUNT] = {
#define CPU_TRAITS_ROW(name, activation)                                                           \
    [GGML_TYPE_##name] = {from_float_##name, vec_dot_##name, GGML_TYPE_##activation, 1},
#define CPU_WHOLE_ROW(name, activation)                                                            \
    [GGML_TYPE_##name] = {from_float_##name, CPU_FN(cpu_quant_dot_##name), GGML_TYPE_##activation, \
                          CPU_DOT_ROWS},
#define CPU_DECODED_ROW(name, activation)                                                          \
    [GGML_TYPE_##name] = {NULL, vec_dot_##name, GGML_TYPE_##activation, 1},
#define CPU_ENCODER_ROW(name, activation)                                                          \
    [GGML_TYPE_##name] = {from_float_##name, NULL, GGML_TYPE_##activation, 1},
#include "types/traits_list.inl"
};
