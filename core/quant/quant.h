// SPDX-License-Identifier: MIT
// Reference codecs: k elements, whole blocks only, between float and the packed form. x and y don't
// overlap; k <= 0 does nothing. [any-thread]
#ifndef GGML_QUANT_QUANT_H
#define GGML_QUANT_QUANT_H

#include <stdint.h>

void dequantize_row_f16(const void *x, float *y, int64_t k);
void dequantize_row_bf16(const void *x, float *y, int64_t k);

void quantize_row_f16_ref(const float *x, void *y, int64_t k);
void quantize_row_bf16_ref(const float *x, void *y, int64_t k);

#endif
