// SPDX-License-Identifier: MIT
// Reference codecs: k elements, whole blocks only, between float and the packed form. x and y don't
// overlap; k <= 0 does nothing. Encoders give a result for every input, NaN and infinity
// included, but only finite input is encoded faithfully. [any-thread]
#ifndef GGML_QUANT_QUANT_H
#define GGML_QUANT_QUANT_H

#include <stdint.h>

void dequantize_row_f16(const void *x, float *y, int64_t k);
void dequantize_row_bf16(const void *x, float *y, int64_t k);
void dequantize_row_q1_0(const void *x, float *y, int64_t k);
void dequantize_row_q2_0(const void *x, float *y, int64_t k);
void dequantize_row_q4_0(const void *x, float *y, int64_t k);
void dequantize_row_q4_1(const void *x, float *y, int64_t k);
void dequantize_row_q5_0(const void *x, float *y, int64_t k);
void dequantize_row_q5_1(const void *x, float *y, int64_t k);
void dequantize_row_q8_0(const void *x, float *y, int64_t k);
void dequantize_row_mxfp4(const void *x, float *y, int64_t k);
void dequantize_row_nvfp4(const void *x, float *y, int64_t k);
void dequantize_row_tq1_0(const void *x, float *y, int64_t k);
void dequantize_row_tq2_0(const void *x, float *y, int64_t k);
void dequantize_row_q2_K(const void *x, float *y, int64_t k);
void dequantize_row_q3_K(const void *x, float *y, int64_t k);
void dequantize_row_q4_K(const void *x, float *y, int64_t k);
void dequantize_row_q5_K(const void *x, float *y, int64_t k);
void dequantize_row_q6_K(const void *x, float *y, int64_t k);
void dequantize_row_iq4_nl(const void *x, float *y, int64_t k);
void dequantize_row_iq4_xs(const void *x, float *y, int64_t k);
void dequantize_row_iq2_xxs(const void *x, float *y, int64_t k);
void dequantize_row_iq2_xs(const void *x, float *y, int64_t k);
void dequantize_row_iq2_s(const void *x, float *y, int64_t k);
void dequantize_row_iq3_xxs(const void *x, float *y, int64_t k);
void dequantize_row_iq3_s(const void *x, float *y, int64_t k);
void dequantize_row_iq1_s(const void *x, float *y, int64_t k);
void dequantize_row_iq1_m(const void *x, float *y, int64_t k);

void quantize_row_f16_ref(const float *x, void *y, int64_t k);
void quantize_row_bf16_ref(const float *x, void *y, int64_t k);
void quantize_row_q1_0_ref(const float *x, void *y, int64_t k);
void quantize_row_q2_0_ref(const float *x, void *y, int64_t k);
void quantize_row_q4_0_ref(const float *x, void *y, int64_t k);
void quantize_row_q4_1_ref(const float *x, void *y, int64_t k);
void quantize_row_q5_0_ref(const float *x, void *y, int64_t k);
void quantize_row_q5_1_ref(const float *x, void *y, int64_t k);
void quantize_row_q8_0_ref(const float *x, void *y, int64_t k);
void quantize_row_q8_1_ref(const float *x, void *y, int64_t k);
void quantize_row_q8_K_ref(const float *x, void *y, int64_t k);
void quantize_row_mxfp4_ref(const float *x, void *y, int64_t k);
void quantize_row_nvfp4_ref(const float *x, void *y, int64_t k);
void quantize_row_tq1_0_ref(const float *x, void *y, int64_t k);
void quantize_row_tq2_0_ref(const float *x, void *y, int64_t k);
void quantize_row_q2_K_ref(const float *x, void *y, int64_t k);
void quantize_row_q3_K_ref(const float *x, void *y, int64_t k);
void quantize_row_q4_K_ref(const float *x, void *y, int64_t k);
void quantize_row_q5_K_ref(const float *x, void *y, int64_t k);
void quantize_row_q6_K_ref(const float *x, void *y, int64_t k);
void quantize_row_iq4_nl_ref(const float *x, void *y, int64_t k);
void quantize_row_iq4_xs_ref(const float *x, void *y, int64_t k);
void quantize_row_iq2_s_ref(const float *x, void *y, int64_t k);
void quantize_row_iq3_xxs_ref(const float *x, void *y, int64_t k);
void quantize_row_iq3_s_ref(const float *x, void *y, int64_t k);
void quantize_row_iq1_m_ref(const float *x, void *y, int64_t k);

// With an importance >= 0 per element, which weighs its squared error.
void quantize_row_q1_0_weighted(const float *x, const float *w, void *y, int64_t k);
void quantize_row_q2_0_weighted(const float *x, const float *w, void *y, int64_t k);
void quantize_row_q4_0_weighted(const float *x, const float *w, void *y, int64_t k);
void quantize_row_q4_1_weighted(const float *x, const float *w, void *y, int64_t k);
void quantize_row_q5_0_weighted(const float *x, const float *w, void *y, int64_t k);
void quantize_row_q5_1_weighted(const float *x, const float *w, void *y, int64_t k);
void quantize_row_mxfp4_weighted(const float *x, const float *w, void *y, int64_t k);
void quantize_row_nvfp4_weighted(const float *x, const float *w, void *y, int64_t k);
void quantize_row_tq1_0_weighted(const float *x, const float *w, void *y, int64_t k);
void quantize_row_tq2_0_weighted(const float *x, const float *w, void *y, int64_t k);
void quantize_row_q2_K_weighted(const float *x, const float *w, void *y, int64_t k);
void quantize_row_q3_K_weighted(const float *x, const float *w, void *y, int64_t k);
void quantize_row_q4_K_weighted(const float *x, const float *w, void *y, int64_t k);
void quantize_row_q5_K_weighted(const float *x, const float *w, void *y, int64_t k);
void quantize_row_q6_K_weighted(const float *x, const float *w, void *y, int64_t k);
void quantize_row_iq4_nl_weighted(const float *x, const float *w, void *y, int64_t k);
void quantize_row_iq4_xs_weighted(const float *x, const float *w, void *y, int64_t k);
void quantize_row_iq2_xxs_weighted(const float *x, const float *w, void *y, int64_t k);
void quantize_row_iq2_xs_weighted(const float *x, const float *w, void *y, int64_t k);
void quantize_row_iq2_s_weighted(const float *x, const float *w, void *y, int64_t k);
void quantize_row_iq3_xxs_weighted(const float *x, const float *w, void *y, int64_t k);
void quantize_row_iq3_s_weighted(const float *x, const float *w, void *y, int64_t k);
void quantize_row_iq1_s_weighted(const float *x, const float *w, void *y, int64_t k);
void quantize_row_iq1_m_weighted(const float *x, const float *w, void *y, int64_t k);

#endif
