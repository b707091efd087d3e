// SPDX-License-Identifier: MIT
// ggml's names for conversions of rows between F32, F16, BF16 and I32. They are computed here,
// without the plugin.
#include "ggml-cpu.h"
#include "ggml-impl.h"

void ggml_cpu_fp32_to_fp32(const float *x, float *y, int64_t n) {
    // memmove: in ggml x and y may be the same row.
    if (n > 0) memmove(y, x, (size_t)n * sizeof(float));
}

// Values that no int32_t holds become the nearest one, NaN becomes 0.
void ggml_cpu_fp32_to_i32(const float *x, int32_t *y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        const float v = x[i];
        // 2147483648.0f is 2^31, the smallest float above INT32_MAX. All floats below it, down to
        // -2^31, fit.
        y[i] = v >= 2147483648.0f    ? INT32_MAX
               : v <= -2147483648.0f ? INT32_MIN
               : v == v              ? (int32_t)v
                                     : 0;
    }
}

void ggml_cpu_fp32_to_fp16(const float *x, ggml_fp16_t *y, int64_t n) {
    ggml_fp32_to_fp16_row(x, y, n);
}

void ggml_cpu_fp16_to_fp32(const ggml_fp16_t *x, float *y, int64_t n) {
    ggml_fp16_to_fp32_row(x, y, n);
}

void ggml_cpu_fp32_to_bf16(const float *x, ggml_bf16_t *y, int64_t n) {
    ggml_fp32_to_bf16_row(x, y, n);
}

void ggml_cpu_bf16_to_fp32(const ggml_bf16_t *x, float *y, int64_t n) {
    ggml_bf16_to_fp32_row(x, y, n);
}
