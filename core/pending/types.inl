// SPDX-License-Identifier: MIT
// Public functions of this area that are declared but not implemented yet: each answers `failure` and
// leaves a message. Rows only ever leave this list.
//
// GGML_PENDING(type, name, (parameters), failure)    GGML_PENDING_VOID(name, (parameters))
GGML_PENDING(float, ggml_fp16_to_fp32, (ggml_fp16_t arg0), 0)
GGML_PENDING(ggml_fp16_t, ggml_fp32_to_fp16, (float arg0), 0)
GGML_PENDING_VOID(ggml_fp16_to_fp32_row, (const ggml_fp16_t *arg0, float *arg1, int64_t arg2))
GGML_PENDING_VOID(ggml_fp32_to_fp16_row, (const float *arg0, ggml_fp16_t *arg1, int64_t arg2))
GGML_PENDING(ggml_bf16_t, ggml_fp32_to_bf16, (float arg0), (ggml_bf16_t){0})
GGML_PENDING(float, ggml_bf16_to_fp32, (ggml_bf16_t arg0), 0)
GGML_PENDING_VOID(ggml_bf16_to_fp32_row, (const ggml_bf16_t *arg0, float *arg1, int64_t arg2))
GGML_PENDING_VOID(ggml_fp32_to_bf16_row_ref, (const float *arg0, ggml_bf16_t *arg1, int64_t arg2))
GGML_PENDING_VOID(ggml_fp32_to_bf16_row, (const float *arg0, ggml_bf16_t *arg1, int64_t arg2))
GGML_PENDING(const struct ggml_type_traits *, ggml_get_type_traits, (enum ggml_type type), NULL)
