// SPDX-License-Identifier: MIT
// Tables of converters by type: the plugin's own for numbers, Q8_1 and Q8_K, and those of the host
// for all other types.
#include "types/codec.h"

#include <math.h>

#include "ggml-common.h"

// Both ways between an integer type and a float type.
#define TO_REAL(name, integer, real)                                                               \
    static void name##_to_##real(const void *x, real *y, int64_t n) {                              \
        const integer *in = x;                                                                     \
        for (int64_t i = 0; i < n; ++i)                                                            \
            y[i] = (real)in[i];                                                                    \
    }
// `least` is exact in every float type, and -least is the first number that is too large.
#define FROM_REAL(name, integer, real, least, largest)                                             \
    static void name##_from_##real(const real *x, void *y, int64_t n) {                            \
        const real low = (real)(least);                                                            \
        integer *out = y;                                                                          \
        for (int64_t i = 0; i < n; ++i)                                                            \
            out[i] = x[i] >= -low ? (largest) : (x[i] >= low ? (integer)x[i] : (least));           \
    }
#define INTEGER_CODEC(name, integer, least, largest)                                               \
    TO_REAL(name, integer, float)                                                                  \
    TO_REAL(name, integer, double)                                                                 \
    FROM_REAL(name, integer, float, least, largest)                                                \
    FROM_REAL(name, integer, double, least, largest)
INTEGER_CODEC(i8, int8_t, INT8_MIN, INT8_MAX)
INTEGER_CODEC(i16, int16_t, INT16_MIN, INT16_MAX)
INTEGER_CODEC(i32, int32_t, INT32_MIN, INT32_MAX)
INTEGER_CODEC(i64, int64_t, INT64_MIN, INT64_MAX)

// Rounds to nearest.
static void f64_to_float(const void *x, float *y, int64_t n) {
    const double *in = x;
    for (int64_t i = 0; i < n; ++i)
        y[i] = (float)in[i];
}

// Exact.
static void f64_from_float(const float *x, void *y, int64_t n) {
    double *out = y;
    for (int64_t i = 0; i < n; ++i)
        out[i] = (double)x[i];
}

static void f32_to_float(const void *x, float *y, int64_t n) {
    memcpy(y, x, (size_t)n * sizeof(float));
}

static void f32_from_float(const float *x, void *y, int64_t n) {
    memcpy(y, x, (size_t)n * sizeof(float));
}

// The block's sum serves products only.
static void q8_1_to_float(const void *x, float *y, int64_t n) {
    const block_q8_1 *b = x;
    for (int64_t i = 0; i < n / QK8_1; ++i, ++b, y += QK8_1) {
        const float d = ggml_compute_fp16_to_fp32(b->d);
        for (int j = 0; j < QK8_1; ++j)
            y[j] = d * (float)b->qs[j];
    }
}

// An 8-bit number times the scale of its block.
static void q8_K_to_float(const void *x, float *y, int64_t n) {
    const block_q8_K *b = x;
    for (int64_t i = 0; i < n / QK_K; ++i, ++b, y += QK_K) {
        for (int j = 0; j < QK_K; ++j)
            y[j] = b->d * (float)b->qs[j];
    }
}

// Rounds to nearest, limited to -127 and 127; NaN gives -127.
static int round_to_7bit(float x) {
    const float rounded = rintf(x);
    return rounded >= 127.0f ? 127 : rounded >= -127.0f ? (int)rounded : -127;
}

// The element of largest magnitude becomes -127, so that d has the opposite of its sign.
static void pack_block_q8_K(const float *x, block_q8_K *b) {
    float max = 0.0f;
    for (int j = 0; j < QK_K; ++j)
        // With its sign.
        max = fabsf(x[j]) > fabsf(max) ? x[j] : max;
    memset(b, 0, sizeof(*b));
    if (max == 0.0f) return;
    const float inverse = -127.0f / max;
    for (int j = 0; j < QK_K; ++j) {
        b->qs[j] = (int8_t)round_to_7bit(inverse * x[j]);
        b->bsums[j / 16] = (int16_t)(b->bsums[j / 16] + b->qs[j]);
    }
    b->d = 1.0f / inverse;
}

static void q8_K_from_float(const float *x, void *y, int64_t n) {
    block_q8_K *b = y;
    for (int64_t i = 0; i < n / QK_K; ++i)
        pack_block_q8_K(x + i * QK_K, b + i);
}

// NULL for types that can't be decoded.
ggml_to_float_t cpu_to_float(enum ggml_type type) {
    switch (type) {
    case GGML_TYPE_F32: return f32_to_float;
    case GGML_TYPE_F64: return f64_to_float;
    case GGML_TYPE_I8: return i8_to_float;
    case GGML_TYPE_I16: return i16_to_float;
    case GGML_TYPE_I32: return i32_to_float;
    case GGML_TYPE_I64: return i64_to_float;
    case GGML_TYPE_Q8_1: return q8_1_to_float;
    case GGML_TYPE_Q8_K: return q8_K_to_float;
    default: return ggml_get_type_traits(type)->to_float;
    }
}

// NULL for types that can't be encoded without importance.
ggml_from_float_t cpu_from_float(enum ggml_type type) {
    switch (type) {
    case GGML_TYPE_F32: return f32_from_float;
    case GGML_TYPE_F64: return f64_from_float;
    case GGML_TYPE_I8: return i8_from_float;
    case GGML_TYPE_I16: return i16_from_float;
    case GGML_TYPE_I32: return i32_from_float;
    case GGML_TYPE_I64: return i64_from_float;
    case GGML_TYPE_Q8_K: return q8_K_from_float;
    default: return ggml_get_type_traits(type)->from_float_ref;
    }
}

// Types that F32 doesn't hold exactly.
static bool is_wide(enum ggml_type type) {
    return type == GGML_TYPE_F64 || type == GGML_TYPE_I32 || type == GGML_TYPE_I64;
}

static bool is_half(enum ggml_type type) {
    return type == GGML_TYPE_F16 || type == GGML_TYPE_BF16;
}

bool cpu_converts_wide(enum ggml_type from, enum ggml_type to) {
    return is_wide(from) && (is_wide(to) || is_half(to));
}

// Rounds to the neighbour with an odd mantissa. Rounding once more, to a shorter type, then gives
// the same result as rounding once (Boldo and Melquiond, 2008).
static float round_to_odd(double x) {
    float y = (float)x;
    if ((double)y == x || x != x) return y;
    uint32_t bits;
    memcpy(&bits, &y, sizeof(bits));
    // One step towards or away from 0, whichever leads to x.
    if (bits % 2 == 0) bits += fabs((double)y) > fabs(x) ? UINT32_MAX : 1;
    memcpy(&y, &bits, sizeof(y));
    return y;
}

// At most CPU_WIDE_CHUNK elements. Types that F32 holds exactly are converted through F32.
void cpu_to_double(enum ggml_type type, const void *x, double *y, int64_t n) {
    float narrow[CPU_WIDE_CHUNK];
    switch (type) {
    case GGML_TYPE_F64: memcpy(y, x, (size_t)n * sizeof(double)); return;
    case GGML_TYPE_I8: i8_to_double(x, y, n); return;
    case GGML_TYPE_I16: i16_to_double(x, y, n); return;
    case GGML_TYPE_I32: i32_to_double(x, y, n); return;
    case GGML_TYPE_I64: i64_to_double(x, y, n); return;
    default: break;
    }
    cpu_to_float(type)(x, narrow, n);
    for (int64_t i = 0; i < n; ++i)
        y[i] = (double)narrow[i];
}

// At most CPU_WIDE_CHUNK elements. Half types are converted through an F32 that is rounded to odd,
// so that rounding twice equals rounding once.
void cpu_from_double(enum ggml_type type, const double *x, void *y, int64_t n) {
    float narrow[CPU_WIDE_CHUNK];
    switch (type) {
    case GGML_TYPE_F64: memcpy(y, x, (size_t)n * sizeof(double)); return;
    case GGML_TYPE_I8: i8_from_double(x, y, n); return;
    case GGML_TYPE_I16: i16_from_double(x, y, n); return;
    case GGML_TYPE_I32: i32_from_double(x, y, n); return;
    case GGML_TYPE_I64: i64_from_double(x, y, n); return;
    default: break;
    }
    for (int64_t i = 0; i < n; ++i)
        narrow[i] = is_half(type) ? round_to_odd(x[i]) : (float)x[i];
    cpu_from_float(type)(narrow, y, n);
}
