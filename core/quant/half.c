// SPDX-License-Identifier: MIT
// Scalar and row conversions of the 16-bit floating-point types. The row functions are portable
// references; the CPU plugin has vectorised ones.
#include "ggml-impl.h"
#include "quant/quant.h"

float ggml_fp16_to_fp32(ggml_fp16_t h) {
    return GGML_FP16_TO_FP32(h);
}

ggml_fp16_t ggml_fp32_to_fp16(float f) {
    return GGML_FP32_TO_FP16(f);
}

float ggml_bf16_to_fp32(ggml_bf16_t h) {
    return GGML_BF16_TO_FP32(h);
}

ggml_bf16_t ggml_fp32_to_bf16(float f) {
    return GGML_FP32_TO_BF16(f);
}

void ggml_fp16_to_fp32_row(const ggml_fp16_t *x, float *y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        y[i] = GGML_FP16_TO_FP32(x[i]);
    }
}

void ggml_fp32_to_fp16_row(const float *x, ggml_fp16_t *y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        y[i] = GGML_FP32_TO_FP16(x[i]);
    }
}

void ggml_bf16_to_fp32_row(const ggml_bf16_t *x, float *y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        y[i] = GGML_BF16_TO_FP32(x[i]);
    }
}

void ggml_fp32_to_bf16_row_ref(const float *x, ggml_bf16_t *y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        y[i] = GGML_FP32_TO_BF16(x[i]);
    }
}

// The reference and the default are the same here.
void ggml_fp32_to_bf16_row(const float *x, ggml_bf16_t *y, int64_t n) {
    ggml_fp32_to_bf16_row_ref(x, y, n);
}

// The same in the signature that codec_list.inl has for all types.
void dequantize_row_f16(const void *x, float *y, int64_t k) {
    ggml_fp16_to_fp32_row(x, y, k);
}

void dequantize_row_bf16(const void *x, float *y, int64_t k) {
    ggml_bf16_to_fp32_row(x, y, k);
}

void quantize_row_f16_ref(const float *x, void *y, int64_t k) {
    ggml_fp32_to_fp16_row(x, y, k);
}

void quantize_row_bf16_ref(const float *x, void *y, int64_t k) {
    ggml_fp32_to_bf16_row_ref(x, y, k);
}
