// SPDX-License-Identifier: MIT
// ggml_validate_row_data(): whether the floats and block scales of packed data are finite numbers.
#include "base/status.h"
#include "quant/quant_block.h"

// All bits of the exponent set: infinity or NaN. Bytes may be unaligned, hence memcpy().
static bool is_f16_finite(const char *bytes) {
    uint16_t bits;
    memcpy(&bits, bytes, sizeof(bits));
    return (bits & 0x7C00u) != 0x7C00u;
}

static bool is_bf16_finite(const char *bytes) {
    uint16_t bits;
    memcpy(&bits, bytes, sizeof(bits));
    return (bits & 0x7F80u) != 0x7F80u;
}

static bool is_f32_finite(const char *bytes) {
    uint32_t bits;
    memcpy(&bits, bytes, sizeof(bits));
    return (bits & 0x7F800000u) != 0x7F800000u;
}

static bool is_f64_finite(const char *bytes) {
    uint64_t bits;
    memcpy(&bits, bytes, sizeof(bits));
    return (bits >> 52 & 0x7FFu) != 0x7FFu;
}

// E8M0 has one NaN and no infinity.
static bool is_e8m0_finite(const char *bytes) {
    return (uint8_t)*bytes != 0xFF;
}

// Checks the F16 that is spread over the scales.
static bool is_iq1_m_finite(const char *bytes) {
    uint16_t scales[QK_K / 64];
    memcpy(scales, bytes, sizeof(scales));
    return (quant_iq1_m_scale(scales) & 0x7C00u) != 0x7C00u;
}

// Where a block keeps a number that must be finite.
struct scale_field {
    enum ggml_type type;
    size_t offset;
    bool (*is_finite)(const char *bytes);
};

#define HALF_SCALE(name, block, member)                                                            \
    { GGML_TYPE_##name, offsetof(block_##block, member), is_f16_finite }
// A linear list: types with two numbers have two rows, and those without any, such as NVFP4, none.
// Searched once per call.
static const struct scale_field scale_fields[] = {
    {GGML_TYPE_F32, 0, is_f32_finite},
    {GGML_TYPE_F64, 0, is_f64_finite},
    {GGML_TYPE_F16, 0, is_f16_finite},
    {GGML_TYPE_BF16, 0, is_bf16_finite},
    HALF_SCALE(Q1_0, q1_0, d),
    HALF_SCALE(Q2_0, q2_0, d),
    HALF_SCALE(Q4_0, q4_0, d),
    HALF_SCALE(Q4_1, q4_1, d),
    HALF_SCALE(Q4_1, q4_1, m),
    HALF_SCALE(Q5_0, q5_0, d),
    HALF_SCALE(Q5_1, q5_1, d),
    HALF_SCALE(Q5_1, q5_1, m),
    HALF_SCALE(Q8_0, q8_0, d),
    HALF_SCALE(Q8_1, q8_1, d),
    HALF_SCALE(Q8_1, q8_1, s),
    HALF_SCALE(TQ1_0, tq1_0, d),
    HALF_SCALE(TQ2_0, tq2_0, d),
    HALF_SCALE(Q2_K, q2_K, d),
    HALF_SCALE(Q2_K, q2_K, dmin),
    HALF_SCALE(Q3_K, q3_K, d),
    HALF_SCALE(Q4_K, q4_K, d),
    HALF_SCALE(Q4_K, q4_K, dmin),
    HALF_SCALE(Q5_K, q5_K, d),
    HALF_SCALE(Q5_K, q5_K, dmin),
    HALF_SCALE(Q6_K, q6_K, d),
    {GGML_TYPE_Q8_K, offsetof(block_q8_K, d), is_f32_finite},
    HALF_SCALE(IQ2_XXS, iq2_xxs, d),
    HALF_SCALE(IQ2_XS, iq2_xs, d),
    HALF_SCALE(IQ2_S, iq2_s, d),
    HALF_SCALE(IQ3_XXS, iq3_xxs, d),
    HALF_SCALE(IQ3_S, iq3_s, d),
    HALF_SCALE(IQ1_S, iq1_s, d),
    {GGML_TYPE_IQ1_M, offsetof(block_iq1_m, scales), is_iq1_m_finite},
    HALF_SCALE(IQ4_NL, iq4_nl, d),
    HALF_SCALE(IQ4_XS, iq4_xs, d),
    {GGML_TYPE_MXFP4, offsetof(block_mxfp4, e), is_e8m0_finite},
};

// Stops at the first, and names its block.
static bool check_field(const struct scale_field *field, const char *data, size_t n_blocks,
                        size_t block_size) {
    for (size_t i = 0; i < n_blocks; ++i) {
        if (!field->is_finite(data + i * block_size + field->offset)) {
            ggml_fail(GGML_HOST_DAMAGED_FILE,
                      "ggml_validate_row_data: block %zu of the %s data holds NaN or infinity", i,
                      ggml_type_name(field->type));
            return false;
        }
    }
    return true;
}

// Checks scales, not quants: any bits of quants are numbers. The loader of files calls it, since
// one NaN in a weight makes all results NaN. O(blocks).
bool ggml_validate_row_data(enum ggml_type type, const void *data, size_t nbytes) {
    const size_t block_size = ggml_type_size(type);
    if (block_size == 0) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_validate_row_data: %d is no type", (int)type);
        return false;
    }
    if (nbytes % block_size != 0) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "ggml_validate_row_data: %zu bytes are not a multiple of the %zu of a %s block",
                  nbytes, block_size, ggml_type_name(type));
        return false;
    }
    if (!data && nbytes > 0) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_validate_row_data: data is NULL");
        return false;
    }
    const size_t n_fields = sizeof(scale_fields) / sizeof(scale_fields[0]);
    for (size_t f = 0; f < n_fields; ++f) {
        if (scale_fields[f].type != type) continue;
        if (!check_field(&scale_fields[f], data, nbytes / block_size, block_size)) return false;
    }
    return true;
}
