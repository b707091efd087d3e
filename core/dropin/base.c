// SPDX-License-Identifier: MIT
// libggml-base.so.0: the functions that ggml's library of that name exports and no public header
// declares. Programs and backends that were built with ggml use them; everything else is found in
// libggml-host's library, which this one needs.
#include <stdio.h>

#include "ggml-backend.h"
#include "ggml-impl.h"
#include "gguf/gguf_impl.h"
#include "quant/block_q8_k.h"

#define DROPIN_API GGML_API

// --- rows of quantised types ---------------------------------------------------------------------
// k elements, whole blocks, between floats and blocks; quantize_<name> encodes rows with an
// importance per column, or NULL, and returns the bytes written. [any-thread]

#define DROPIN_DECODER(name, NAME)                                                                 \
    DROPIN_API void dequantize_row_##name(const void *x, float *y, int64_t k);                     \
    void dequantize_row_##name(const void *x, float *y, int64_t k) {                               \
        ggml_get_type_traits(GGML_TYPE_##NAME)->to_float(x, y, k);                                 \
    }
#define DROPIN_ENCODER(name, NAME)                                                                 \
    DROPIN_API void quantize_row_##name##_ref(const float *x, void *y, int64_t k);                 \
    void quantize_row_##name##_ref(const float *x, void *y, int64_t k) {                           \
        ggml_get_type_traits(GGML_TYPE_##NAME)->from_float_ref(x, y, k);                           \
    }
#define DROPIN_CHUNK(name, NAME)                                                                   \
    DROPIN_API size_t quantize_##name(const float *src, void *dst, int64_t nrows,                  \
                                      int64_t n_per_row, const float *imatrix);                    \
    size_t quantize_##name(const float *src, void *dst, int64_t nrows, int64_t n_per_row,          \
                           const float *imatrix) {                                                 \
        return ggml_quantize_chunk(GGML_TYPE_##NAME, src, dst, 0, nrows, n_per_row, imatrix);      \
    }
#include "codec_names.inl"

DROPIN_API void quantize_row_q8_K_ref(const float *x, void *y, int64_t k);
void quantize_row_q8_K_ref(const float *x, void *y, int64_t k) {
    block_q8_K *blocks = y;
    for (int64_t i = 0; i < k / QK_K; ++i)
        encode_block_q8_K(x + i * QK_K, &blocks[i]);
}
DROPIN_API void dequantize_row_q8_K(const void *x, float *y, int64_t k);
void dequantize_row_q8_K(const void *x, float *y, int64_t k) {
    const block_q8_K *blocks = x;
    for (int64_t i = 0; i < k / QK_K; ++i)
        decode_block_q8_K(&blocks[i], y + i * QK_K);
}

// The tables of the grid types, which ggml_quantize_chunk() makes when it needs them.
DROPIN_API void iq2xs_init_impl(enum ggml_type type);
void iq2xs_init_impl(enum ggml_type type) {
    ggml_quantize_init(type);
}
DROPIN_API void iq3xs_init_impl(int grid_size);
void iq3xs_init_impl(int grid_size) {
    ggml_quantize_init(grid_size == 256 ? GGML_TYPE_IQ3_XXS : GGML_TYPE_IQ3_S);
}
// They are freed together, by ggml_quantize_free().
DROPIN_API void iq2xs_free_impl(enum ggml_type type);
void iq2xs_free_impl(enum ggml_type type) {
    (void)type;
}
DROPIN_API void iq3xs_free_impl(int grid_size);
void iq3xs_free_impl(int grid_size) {
    (void)grid_size;
}

// --- others --------------------------------------------------------------------------------------

DROPIN_API void ggml_log_callback_default(enum ggml_log_level level, const char *text,
                                          void *user_data);
void ggml_log_callback_default(enum ggml_log_level level, const char *text, void *user_data) {
    (void)level;
    (void)user_data;
    fputs(text, stderr);
    fflush(stderr);
}

// Whether some backend of ggml 0.27 asks for more memory than ggml_nbytes() for results of the
// operation; measured.
DROPIN_API bool ggml_op_alloc_size_may_expand(enum ggml_op op);
bool ggml_op_alloc_size_may_expand(enum ggml_op op) {
    return op == GGML_OP_CUMSUM || op == GGML_OP_MUL_MAT || op == GGML_OP_MUL_MAT_ID ||
           op == GGML_OP_ARGSORT || op == GGML_OP_TOP_K || op == GGML_OP_FLASH_ATTN_EXT;
}

// The function of C++ that its header declares without extern "C".
DROPIN_API size_t
dropin_gguf_type_size(enum gguf_type type) __asm__("_Z14gguf_type_size9gguf_type");
size_t dropin_gguf_type_size(enum gguf_type type) {
    return gguf_type_size(type);
}

// Devices made of several, by what public functions tell of them.
static bool is_meta(ggml_backend_dev_t device) {
    return device != NULL && ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_META;
}
DROPIN_API bool ggml_backend_is_meta(ggml_backend_t backend);
bool ggml_backend_is_meta(ggml_backend_t backend) {
    return is_meta(ggml_backend_get_device(backend));
}
DROPIN_API bool ggml_backend_buft_is_meta(ggml_backend_buffer_type_t buft);
bool ggml_backend_buft_is_meta(ggml_backend_buffer_type_t buft) {
    return is_meta(ggml_backend_buft_get_device(buft));
}
DROPIN_API bool ggml_backend_buffer_is_meta(ggml_backend_buffer_t buffer);
bool ggml_backend_buffer_is_meta(ggml_backend_buffer_t buffer) {
    return ggml_backend_buft_is_meta(ggml_backend_buffer_get_type(buffer));
}

// --- buffers of backends -------------------------------------------------------------------------

// Called by backends alone, with a table of ggml's by value: their objects are not this library's.
// NULL, after logging what to do instead. [any-thread]
DROPIN_API ggml_backend_buffer_t ggml_backend_buffer_init(ggml_backend_buffer_type_t buft, ...);
ggml_backend_buffer_t ggml_backend_buffer_init(ggml_backend_buffer_type_t buft, ...) {
    (void)buft;
    ggml_log_internal(GGML_LOG_LEVEL_ERROR,
                      "ggml_backend_buffer_init: a backend that was built for ggml is loaded by "
                      "GGML_FOREIGN_PATH, not linked\n");
    return NULL;
}
