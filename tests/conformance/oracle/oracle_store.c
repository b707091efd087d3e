// SPDX-License-Identifier: MIT
// Rounding to nearest even by scaling with powers of two (frexp, ldexp), without the tricks with
// bits that the library uses.
#include "oracle_store.h"

#include <math.h>
#include <string.h>

#include "oracle_quant.h"

// Nearest number with so many bits after the leading one, ties to even; exponents below
// min_exponent have fewer.
static double round_bits(double value, int bits, int min_exponent) {
    int exponent;
    if (value == 0 || !isfinite(value)) return value;
    (void)frexp(value, &exponent);
    exponent = exponent - 1 < min_exponent ? min_exponent : exponent - 1;
    return ldexp(nearbyint(ldexp(value, bits - exponent)), exponent - bits);
}

static uint16_t half_bits(double value) {
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value)) return sign | 0x7E00;
    const double magnitude = fabs(round_bits(value, 10, -14));
    if (magnitude >= 65536) return sign | 0x7C00;
    if (magnitude < 0x1p-14) return sign | (uint16_t)ldexp(magnitude, 24);
    int exponent;
    const double mantissa = frexp(magnitude, &exponent);
    return sign | (uint16_t)((exponent + 14) << 10) | ((uint16_t)ldexp(mantissa, 11) & 1023);
}

static uint16_t bfloat_bits(double value) {
    const float rounded = (float)round_bits(value, 7, -126);
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof(bits));
    return (uint16_t)(bits >> 16) | (isnan(value) ? 0x40 : 0);
}

bool oracle_is_plain(enum ggml_type type) {
    switch (type) {
    case GGML_TYPE_F32:
    case GGML_TYPE_F16:
    case GGML_TYPE_BF16:
    case GGML_TYPE_F64:
    case GGML_TYPE_I8:
    case GGML_TYPE_I16:
    case GGML_TYPE_I32:
    case GGML_TYPE_I64: return true;
    default: return false;
    }
}

static void store_integer(void *element, double value, size_t size) {
    const double limit = ldexp(1, (int)size * 8 - 1);
    int64_t whole = size == 8 ? INT64_MAX : (int64_t)limit - 1;
    if (isnan(value)) whole = 0;
    if (value < limit) whole = value <= -limit ? (int64_t)-limit : (int64_t)value;
    for (size_t k = 0; k < size && k < sizeof(whole); ++k)
        ((uint8_t *)element)[k] = (uint8_t)((uint64_t)whole >> 8 * k);
}

void oracle_store(enum ggml_type type, void *element, double value) {
    const float single = (float)value;
    uint16_t bits;
    switch (type) {
    case GGML_TYPE_F64: memcpy(element, &value, sizeof(value)); break;
    case GGML_TYPE_F32: memcpy(element, &single, sizeof(single)); break;
    case GGML_TYPE_F16:
        bits = half_bits(value);
        memcpy(element, &bits, sizeof(bits));
        break;
    case GGML_TYPE_BF16:
        bits = bfloat_bits(value);
        memcpy(element, &bits, sizeof(bits));
        break;
    default: store_integer(element, value, ggml_type_size(type)); break;
    }
}

double oracle_round(enum ggml_type type, double value) {
    uint8_t element[8];
    oracle_store(type, element, value);
    return oracle_element(type, element, 0);
}

double oracle_smallest(enum ggml_type type) {
    switch (type) {
    case GGML_TYPE_F16: return 0x1p-14;
    case GGML_TYPE_F32:
    case GGML_TYPE_BF16: return 0x1p-126;
    default: return 0;
    }
}
