// SPDX-License-Identifier: MIT
// Size, block size, name and conversions of each type: a table from type_list.inl and
// codec_list.inl, looked up in O(1).
#include "base/status.h"
#include "ggml-impl.h"
#include "quant/quant.h"

static const struct ggml_type_traits type_traits[GGML_TYPE_COUNT] = {
#define GGML_TYPE_ROW(number, id, name, block, size, quantized, since)                             \
    [number].type_name = name, [number].blck_size = block, [number].type_size = size,              \
    [number].is_quantized = quantized,
#define GGML_TYPE_REMOVED(number, name) [number].type_name = name,
#include "type_list.inl"
#define GGML_CODEC_ROW(id, decode, encode, weighted)                                               \
    [GGML_TYPE_##id].to_float = decode, [GGML_TYPE_##id].from_float_ref = encode,
#include "quant/codec_list.inl"
};

// for numbers that a newer file may have; size 0 makes every use fail
static const struct ggml_type_traits unknown_type = {.type_name = "NONE"};

const struct ggml_type_traits *ggml_get_type_traits(enum ggml_type type) {
    return (unsigned)type < GGML_TYPE_COUNT ? &type_traits[type] : &unknown_type;
}

int64_t ggml_blck_size(enum ggml_type type) {
    return ggml_get_type_traits(type)->blck_size;
}

size_t ggml_type_size(enum ggml_type type) {
    return ggml_get_type_traits(type)->type_size;
}

const char *ggml_type_name(enum ggml_type type) {
    return ggml_get_type_traits(type)->type_name;
}

bool ggml_is_quantized(enum ggml_type type) {
    return ggml_get_type_traits(type)->is_quantized;
}

// Bytes per element, a fraction for types with blocks.
double ggml_type_sizef(enum ggml_type type) {
    const struct ggml_type_traits *traits = ggml_get_type_traits(type);
    return traits->blck_size > 0 ? (double)traits->type_size / (double)traits->blck_size : 0.0;
}

// What doesn't fit gives a size that no allocation can satisfy and that padding can't
// wrap.
size_t ggml_row_size(enum ggml_type type, int64_t ne) {
    const struct ggml_type_traits *traits = ggml_get_type_traits(type);
    if (traits->blck_size == 0 || ne <= 0) return 0;
    const uint64_t blocks = (uint64_t)(ne / traits->blck_size);
    const uint64_t rest = (uint64_t)(ne % traits->blck_size);
    const size_t limit = SIZE_MAX / 2;
    if (blocks >= limit / traits->type_size) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE, "ggml_row_size: a row of %lld %s elements is too large",
                  (long long)ne, traits->type_name);
        return limit;
    }
    return (size_t)blocks * traits->type_size +
           (size_t)(rest * traits->type_size / (uint64_t)traits->blck_size);
}

// The type of most tensors in a file of that kind; GGML_TYPE_COUNT with a message for unknown ones.
enum ggml_type ggml_ftype_to_ggml_type(enum ggml_ftype ftype) {
    switch (ftype) {
    case GGML_FTYPE_ALL_F32: return GGML_TYPE_F32;
    case GGML_FTYPE_MOSTLY_F16: return GGML_TYPE_F16;
    case GGML_FTYPE_MOSTLY_BF16: return GGML_TYPE_BF16;
    case GGML_FTYPE_MOSTLY_Q4_0: return GGML_TYPE_Q4_0;
    case GGML_FTYPE_MOSTLY_Q4_1: return GGML_TYPE_Q4_1;
    case GGML_FTYPE_MOSTLY_Q5_0: return GGML_TYPE_Q5_0;
    case GGML_FTYPE_MOSTLY_Q5_1: return GGML_TYPE_Q5_1;
    case GGML_FTYPE_MOSTLY_Q8_0: return GGML_TYPE_Q8_0;
    case GGML_FTYPE_MOSTLY_Q2_K: return GGML_TYPE_Q2_K;
    case GGML_FTYPE_MOSTLY_Q3_K: return GGML_TYPE_Q3_K;
    case GGML_FTYPE_MOSTLY_Q4_K: return GGML_TYPE_Q4_K;
    case GGML_FTYPE_MOSTLY_Q5_K: return GGML_TYPE_Q5_K;
    case GGML_FTYPE_MOSTLY_Q6_K: return GGML_TYPE_Q6_K;
    case GGML_FTYPE_MOSTLY_IQ2_XXS: return GGML_TYPE_IQ2_XXS;
    case GGML_FTYPE_MOSTLY_IQ2_XS: return GGML_TYPE_IQ2_XS;
    case GGML_FTYPE_MOSTLY_IQ3_XXS: return GGML_TYPE_IQ3_XXS;
    case GGML_FTYPE_MOSTLY_IQ1_S: return GGML_TYPE_IQ1_S;
    case GGML_FTYPE_MOSTLY_IQ4_NL: return GGML_TYPE_IQ4_NL;
    case GGML_FTYPE_MOSTLY_IQ3_S: return GGML_TYPE_IQ3_S;
    case GGML_FTYPE_MOSTLY_IQ2_S: return GGML_TYPE_IQ2_S;
    case GGML_FTYPE_MOSTLY_IQ4_XS: return GGML_TYPE_IQ4_XS;
    case GGML_FTYPE_MOSTLY_IQ1_M: return GGML_TYPE_IQ1_M;
    case GGML_FTYPE_MOSTLY_MXFP4: return GGML_TYPE_MXFP4;
    case GGML_FTYPE_MOSTLY_NVFP4: return GGML_TYPE_NVFP4;
    case GGML_FTYPE_MOSTLY_Q1_0: return GGML_TYPE_Q1_0;
    case GGML_FTYPE_MOSTLY_Q2_0: return GGML_TYPE_Q2_0;
    default: break;
    }
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_ftype_to_ggml_type: no type for file type %d",
              (int)ftype);
    return GGML_TYPE_COUNT;
}
