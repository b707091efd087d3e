// SPDX-License-Identifier: MIT
// Public functions of this area that are declared but not implemented yet: each answers `failure` and
// leaves a message. Rows only ever leave this list.
//
// GGML_PENDING(type, name, (parameters), failure)    GGML_PENDING_VOID(name, (parameters))
GGML_PENDING(bool, ggml_validate_row_data, (enum ggml_type type, const void *data, size_t nbytes),
             false)
GGML_PENDING_VOID(ggml_quantize_init, (enum ggml_type type))
GGML_PENDING_VOID(ggml_quantize_free, (void))
GGML_PENDING(bool, ggml_quantize_requires_imatrix, (enum ggml_type type), false)
GGML_PENDING(size_t, ggml_quantize_chunk, (enum ggml_type type, const float *src, void *dst, int64_t
             start, int64_t nrows, int64_t n_per_row, const float *imatrix), 0)
