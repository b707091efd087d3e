// SPDX-License-Identifier: MIT
#include "unpack.h"

#include "codec.h"
#include "convert.h"
#include "k_quants.h"
#include "simd.h"

#if defined(__GNUC__) && !defined(__clang__)
#define CPU_ROLLED _Pragma("GCC unroll 1")
#else
#define CPU_ROLLED
#endif

static float half(ggml_half h) {
    float f;
    cpu_f16_to_f32(&f, &h, 1);
    return f;
}

static void unpack_f32(const void *x, float *y, int64_t n) {
    memcpy(y, x, (size_t)n * sizeof(float));
}

static void unpack_f16(const void *x, float *y, int64_t n) {
    cpu_f16_to_f32(y, x, n);
}

static void unpack_bf16(const void *x, float *y, int64_t n) {
    cpu_bf16_to_f32(y, x, n);
}

static void unpack_i32(const void *x, float *y, int64_t n) {
    const int32_t *in = x;
    for (int64_t i = 0; i < n; ++i)
        y[i] = (float)in[i];
}

// y = scale * q for 32 whole numbers, one scale per half. Shorter loops are not turned into
// vectors.
static inline void scale_bytes(float *restrict y, const int8_t *q, float first, float second) {
    for (int j = 0; j < 32; ++j)
        y[j] = (j < 16 ? first : second) * (float)q[j];
}

// Unrolled, the loops would not be turned into vectors.
static void unpack_q4_0(const void *x, float *restrict y, int64_t n) {
    const block_q4_0 *b = x;
    for (int64_t i = 0; i < n / QK4_0; ++i, ++b, y += QK4_0) {
        const float d = half(b->d);
        CPU_ROLLED
        for (int j = 0; j < QK4_0 / 2; ++j)
            y[j] = d * (float)((b->qs[j] & 15) - 8);
        CPU_ROLLED
        for (int j = 0; j < QK4_0 / 2; ++j)
            y[j + QK4_0 / 2] = d * (float)((b->qs[j] >> 4) - 8);
    }
}

static void unpack_q8_0(const void *x, float *restrict y, int64_t n) {
    const block_q8_0 *b = x;
    for (int64_t i = 0; i < n / QK8_0; ++i, ++b, y += QK8_0) {
        const float d = half(b->d);
        scale_bytes(y, b->qs, d, d);
    }
}

static void unpack_q6_K(const void *x, float *restrict y, int64_t n) {
    const block_q6_K *b = x;
    for (int64_t i = 0; i < n / QK_K; ++i, ++b, y += QK_K) {
        int8_t q[QK_K];
        cpu_q6_K_numbers(b, q);
        const float d = half(b->d);
        for (int g = 0; g < QK_K / 32; ++g) {
            const int8_t *scales = b->scales + 2 * g;
            scale_bytes(y + 32 * g, q + 32 * g, d * (float)scales[0], d * (float)scales[1]);
        }
    }
}

static void unpack_q4_K(const void *x, float *restrict y, int64_t n) {
    const block_q4_K *b = x;
    for (int64_t i = 0; i < n / QK_K; ++i, ++b) {
        uint8_t scales[8];
        uint8_t mins[8];
        cpu_q4_K_scales(b->scales, scales, mins);
        const float d = half(b->d);
        const float dmin = half(b->dmin);
        for (int g = 0; g < 8; g += 2, y += 64) {
            const uint8_t *qs = b->qs + 16 * g;
            for (int l = 0; l < 32; ++l)
                y[l] = d * (float)scales[g] * (float)(qs[l] & 15) - dmin * (float)mins[g];
            for (int l = 0; l < 32; ++l)
                y[l + 32] =
                    d * (float)scales[g + 1] * (float)(qs[l] >> 4) - dmin * (float)mins[g + 1];
        }
    }
}

cpu_unpack_fn CPU_FN(cpu_unpack)(enum ggml_type type) {
    switch (type) {
    case GGML_TYPE_F32: return unpack_f32;
    case GGML_TYPE_F16: return unpack_f16;
    case GGML_TYPE_BF16: return unpack_bf16;
    case GGML_TYPE_I32: return unpack_i32;
    case GGML_TYPE_Q4_0: return unpack_q4_0;
    case GGML_TYPE_Q8_0: return unpack_q8_0;
    case GGML_TYPE_Q4_K: return unpack_q4_K;
    case GGML_TYPE_Q6_K: return unpack_q6_K;
    default: return cpu_to_float(type);
    }
}

static void pack_f32(const float *x, void *y, int64_t n) {
    memcpy(y, x, (size_t)n * sizeof(float));
}

static void pack_f16(const float *x, void *y, int64_t n) {
    cpu_f32_to_f16(y, x, n);
}

static void pack_bf16(const float *x, void *y, int64_t n) {
    cpu_f32_to_bf16(y, x, n);
}

// Truncates; what does not fit becomes the nearest that does, NaN the lowest.
static void pack_i32(const float *x, void *y, int64_t n) {
    int32_t *out = y;
    for (int64_t i = 0; i < n; ++i) {
        const bool fits = x[i] >= -2147483648.0f && x[i] < 2147483648.0f;
        out[i] = fits ? (int32_t)x[i] : x[i] > 0.0f ? INT32_MAX : INT32_MIN;
    }
}

cpu_pack_fn CPU_FN(cpu_pack)(enum ggml_type type) {
    switch (type) {
    case GGML_TYPE_F32: return pack_f32;
    case GGML_TYPE_F16: return pack_f16;
    case GGML_TYPE_BF16: return pack_bf16;
    case GGML_TYPE_I32: return pack_i32;
    default: return cpu_from_float(type);
    }
}
