// SPDX-License-Identifier: MIT
// Rows of F32, F16 and BF16 to and from float, in loops that the compiler turns into vectors.
#ifndef CPU_CONVERT_H
#define CPU_CONVERT_H

#include "base/kernel.h"
#include "ggml-shape.h"

// Elements converted at a time: buffers of 2 KiB on the stack.
enum { CPU_CHUNK = 512 };

// Computes n <= CPU_CHUNK elements of a row of dst, from i0 on.
typedef void (*cpu_chunk_fn)(const struct ggml_tensor *dst, struct ggml_row at, int64_t i0,
                             int64_t n, const void *argument);

// Threads share chunks of rows, so that a single long row is split too.
static inline enum ggml_status cpu_each_chunk(const struct cpu_task *task, cpu_chunk_fn fn,
                                              const void *argument) {
    const struct ggml_tensor *dst = task->dst;
    const int64_t n = dst->ne[0];
    const int64_t chunks = (n + CPU_CHUNK - 1) / CPU_CHUNK;
    int64_t begin, end;
    cpu_task_range(task, chunks * ggml_nrows(dst), &begin, &end);
    for (int64_t chunk = begin; chunk < end; ++chunk) {
        const int64_t i0 = chunk % chunks * CPU_CHUNK;
        fn(dst, ggml_row_at(dst, chunk / chunks), i0, MIN(n - i0, CPU_CHUNK), argument);
    }
    return GGML_STATUS_SUCCESS;
}

// The bits of a float, and back below. memcpy() is the defined way in C.
static inline uint32_t cpu_float_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

static inline float cpu_bits_float(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

#if defined(__F16C__)
#include <immintrin.h>

// Exact. By F16C where the level has it.
static inline void cpu_f16_to_f32(float *y, const ggml_fp16_t *x, int64_t n) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(y + i,
                         _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(x + i))));
    }
    for (; i < n; ++i)
        y[i] = _cvtsh_ss(x[i]);
}

// Rounds to nearest, ties to even.
static inline void cpu_f32_to_f16(ggml_fp16_t *y, const float *x, int64_t n) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm_storeu_si128((__m128i *)(void *)(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), 0));
    }
    for (; i < n; ++i)
        y[i] = (ggml_fp16_t)_cvtss_sh(x[i], 0);
}
#elif defined(CPU_NEON)
#include <arm_neon.h>

// Four at a time. The rest is converted by the same instruction, so that a value doesn't depend on
// its position.
static inline void cpu_f16_to_f32(float *y, const ggml_fp16_t *x, int64_t n) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(y + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(x + i))));
    for (; i < n; ++i)
        y[i] = vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(x[i]))), 0);
}

// As above; rounds to nearest, ties to even.
static inline void cpu_f32_to_f16(ggml_fp16_t *y, const float *x, int64_t n) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1_u16(y + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(x + i))));
    for (; i < n; ++i)
        y[i] = vget_lane_u16(vreinterpret_u16_f16(vcvt_f16_f32(vdupq_n_f32(x[i]))), 0);
}
#else
static inline void cpu_f16_to_f32(float *y, const ggml_fp16_t *x, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
        y[i] = ggml_compute_fp16_to_fp32(x[i]);
}

static inline void cpu_f32_to_f16(ggml_fp16_t *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
        y[i] = ggml_compute_fp32_to_fp16(x[i]);
}
#endif

// Exact: the lower half of the bits is 0.
static inline void cpu_bf16_to_f32(float *y, const ggml_bf16_t *x, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
        y[i] = cpu_bits_float((uint32_t)x[i].bits << 16);
}

// Rounds to nearest, ties to even; NaN stays NaN, with its upper bits.
static inline void cpu_f32_to_bf16(ggml_bf16_t *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        const uint32_t bits = cpu_float_bits(x[i]);
        const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
        const uint32_t quiet = (bits >> 16) | 64u;
        y[i].bits = (uint16_t)((bits & 0x7FFFFFFFu) > 0x7F800000u ? quiet : rounded);
    }
}

// Element i0 of a dense row of a floating-point type.
static inline const void *cpu_element(const void *row, enum ggml_type type, int64_t i0) {
    return (const char *)row + i0 * (type == GGML_TYPE_F32 ? 4 : 2);
}

// n > 0 elements from element i0 of a dense row; F32 is not copied. `buffer` holds n floats.
static inline const float *cpu_load(float *buffer, const void *row, enum ggml_type type, int64_t i0,
                                    int64_t n) {
    const void *x = cpu_element(row, type, i0);
    if (n <= 0) GGML_UNREACHABLE();
    if (type == GGML_TYPE_F32) return x;
    if (type == GGML_TYPE_F16)
        cpu_f16_to_f32(buffer, x, n);
    else
        cpu_bf16_to_f32(buffer, x, n);
    return buffer;
}

// Address at which to compute n elements that cpu_store() puts at element i0: in place for F32.
static inline float *cpu_target(float *buffer, void *row, enum ggml_type type, int64_t i0) {
    return type == GGML_TYPE_F32 ? (float *)row + i0 : buffer;
}

// Stores n floats as elements from i0 on; nothing for F32, where they were computed in place
// (cpu_target()).
static inline void cpu_store(void *row, enum ggml_type type, int64_t i0, const float *x,
                             int64_t n) {
    void *y = (char *)row + i0 * (type == GGML_TYPE_F32 ? 4 : 2);
    if (type == GGML_TYPE_F16)
        cpu_f32_to_f16(y, x, n);
    else if (type == GGML_TYPE_BF16)
        cpu_f32_to_bf16(y, x, n);
}

#endif
