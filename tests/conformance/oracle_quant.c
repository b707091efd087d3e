// SPDX-License-Identifier: MIT
#include "oracle_quant.h"

#include <math.h>
#include <string.h>

// Bytes of one block, read by offset.
typedef const uint8_t *bytes_t;

static double half_at(bytes_t b, int offset) {
    const int bits = b[offset] | b[offset + 1] << 8;
    const int exponent = bits >> 10 & 31;
    const double mantissa = bits & 1023;
    const double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == 31) return mantissa != 0 ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(mantissa, -24);
    return sign * ldexp(1024 + mantissa, exponent - 25);
}

// Bits [first, first + count) of a little-endian bit string.
static int bits_at(bytes_t b, int first, int count) {
    int value = 0;
    for (int k = 0; k < count; ++k) {
        const int bit = first + k;
        value |= (b[bit / 8] >> (bit % 8) & 1) << k;
    }
    return value;
}

// Nibble j of n, the first half of the block in the low nibbles.
static int nibble(bytes_t qs, int j, int n) {
    return j < n / 2 ? qs[j] & 15 : qs[j - n / 2] >> 4;
}

static double fp4(int code) {
    static const double value[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return code & 8 ? -value[code & 7] : value[code & 7];
}

static double e4m3(int code) {
    if (code == 0 || code == 0x7F) return 0;
    const int exponent = code >> 3 & 15;
    return exponent == 0 ? ldexp(code & 7, -9) : ldexp(8 + (code & 7), exponent - 10);
}

static double iq4(int code) {
    static const double value[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};
    return value[code];
}

static double q1_0(bytes_t b, int j) {
    return bits_at(b + 2, j, 1) ? half_at(b, 0) : -half_at(b, 0);
}

static double q2_0(bytes_t b, int j) {
    return half_at(b, 0) * (bits_at(b + 2, 2 * j, 2) - 1);
}

static double q4_0(bytes_t b, int j) {
    return half_at(b, 0) * (nibble(b + 2, j, 32) - 8);
}

static double q4_1(bytes_t b, int j) {
    return half_at(b, 0) * nibble(b + 4, j, 32) + half_at(b, 2);
}

static double q5_0(bytes_t b, int j) {
    return half_at(b, 0) * (nibble(b + 6, j, 32) + 16 * bits_at(b + 2, j, 1) - 16);
}

static double q5_1(bytes_t b, int j) {
    return half_at(b, 0) * (nibble(b + 8, j, 32) + 16 * bits_at(b + 4, j, 1)) + half_at(b, 2);
}

static double q8_0(bytes_t b, int j) {
    return half_at(b, 0) * (int8_t)b[2 + j];
}

static double q8_1(bytes_t b, int j) {
    return half_at(b, 0) * (int8_t)b[4 + j];
}

static double mxfp4(bytes_t b, int j) {
    return fp4(nibble(b + 1, j, 32)) * (b[0] == 255 ? INFINITY : ldexp(1, b[0] - 127));
}

static double nvfp4(bytes_t b, int j) {
    return fp4(nibble(b + 4 + 8 * (j / 16), j % 16, 16)) * e4m3(b[j / 16]);
}

// Digit n of five, most significant first, of a byte that holds ceil(value * 256 / 243).
static int ternary_digit(int byte, int n) {
    int value = byte * 243 / 256;
    for (int k = 4; k > n; --k)
        value /= 3;
    return value % 3;
}

static double tq1_0(bytes_t b, int j) {
    int digit;
    if (j < 160) {
        digit = ternary_digit(b[j % 32], j / 32);
    } else if (j < 240) {
        digit = ternary_digit(b[32 + (j - 160) % 16], (j - 160) / 16);
    } else {
        digit = ternary_digit(b[48 + (j - 240) % 4], (j - 240) / 4);
    }
    return half_at(b, 52) * (digit - 1);
}

static double tq2_0(bytes_t b, int j) {
    const int byte = b[32 * (j / 128) + j % 32];
    return half_at(b, 64) * ((byte >> 2 * (j / 32 % 4) & 3) - 1);
}

static double q2_K(bytes_t b, int j) {
    const int half = j / 128;
    const int shift = j % 128 / 32;
    const int scales = b[8 * half + 2 * shift + j % 32 / 16];
    const int q = b[16 + 32 * half + j % 32] >> 2 * shift & 3;
    return half_at(b, 80) * (scales & 15) * q - half_at(b, 82) * (scales >> 4);
}

static double q3_K(bytes_t b, int j) {
    bytes_t scales = b + 96;
    const int g = j / 16;
    const int low = g < 8 ? scales[g] & 15 : scales[g - 8] >> 4;
    const int scale = low + 16 * (scales[8 + g % 4] >> 2 * (g / 4) & 3) - 32;
    int q = b[32 + 32 * (j / 128) + j % 32] >> 2 * (j % 128 / 32) & 3;
    if (!(b[j % 32] >> j / 32 & 1)) q -= 4;
    return half_at(b, 108) * scale * q;
}

static void six_bit_pair(bytes_t scales, int g, int *scale, int *min) {
    if (g < 4) {
        *scale = scales[g] % 64;
        *min = scales[g + 4] % 64;
        return;
    }
    *scale = scales[g + 4] % 16 + 16 * (scales[g - 4] / 64);
    *min = scales[g + 4] / 16 + 16 * (scales[g] / 64);
}

static double q4_K(bytes_t b, int j) {
    int scale, min;
    six_bit_pair(b + 4, j / 32, &scale, &min);
    const int q = nibble(b + 16 + 32 * (j / 64), j % 64, 64);
    return half_at(b, 0) * scale * q - half_at(b, 2) * min;
}

static double q5_K(bytes_t b, int j) {
    int scale, min;
    six_bit_pair(b + 4, j / 32, &scale, &min);
    const int high = b[16 + j % 32] >> j / 32 & 1;
    const int q = nibble(b + 48 + 32 * (j / 64), j % 64, 64) + 16 * high;
    return half_at(b, 0) * scale * q - half_at(b, 2) * min;
}

static double q6_K(bytes_t b, int j) {
    const int half = j / 128;
    const int in_half = j % 128;
    const int low = nibble(b + 64 * half, in_half, 128);
    const int high = b[128 + 32 * half + in_half % 32] >> 2 * (in_half / 32) & 3;
    return half_at(b, 208) * (int8_t)b[192 + j / 16] * (low + 16 * high - 32);
}

static double q8_K(bytes_t b, int j) {
    float d;
    memcpy(&d, b, sizeof(d));
    return (double)d * (int8_t)b[4 + j];
}

static double iq4_nl(bytes_t b, int j) {
    return half_at(b, 0) * iq4(nibble(b + 2, j, 32));
}

static double iq4_xs(bytes_t b, int j) {
    const int g = j / 32;
    const int scale = bits_at(b + 4, 4 * g, 4) + 16 * bits_at(b + 2, 2 * g, 2) - 32;
    return half_at(b, 0) * scale * iq4(nibble(b + 8 + 16 * g, j % 32, 32));
}

static double f16(bytes_t b, int j) {
    (void)j;
    return half_at(b, 0);
}

static double bf16(bytes_t b, int j) {
    (void)j;
    const uint32_t bits = (uint32_t)(b[0] | b[1] << 8) << 16;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static double f32(bytes_t b, int j) {
    (void)j;
    float value;
    memcpy(&value, b, sizeof(value));
    return value;
}

static double i32(bytes_t b, int j) {
    (void)j;
    int32_t value;
    memcpy(&value, b, sizeof(value));
    return value;
}

static double i64(bytes_t b, int j) {
    (void)j;
    int64_t value;
    memcpy(&value, b, sizeof(value));
    return (double)value;
}

static double i16(bytes_t b, int j) {
    (void)j;
    int16_t value;
    memcpy(&value, b, sizeof(value));
    return value;
}

static double i8(bytes_t b, int j) {
    (void)j;
    return (int8_t)b[0];
}

static double f64(bytes_t b, int j) {
    (void)j;
    double value;
    memcpy(&value, b, sizeof(value));
    return value;
}

struct format {
    int block;
    int size;
    double (*element)(bytes_t block, int j);
};

static const struct format formats[GGML_TYPE_COUNT] = {
    [GGML_TYPE_F32] = {1, 4, f32},           [GGML_TYPE_F16] = {1, 2, f16},
    [GGML_TYPE_BF16] = {1, 2, bf16},         [GGML_TYPE_I32] = {1, 4, i32},
    [GGML_TYPE_I8] = {1, 1, i8},             [GGML_TYPE_I16] = {1, 2, i16},
    [GGML_TYPE_F64] = {1, 8, f64},
    [GGML_TYPE_I64] = {1, 8, i64},           [GGML_TYPE_Q1_0] = {128, 18, q1_0},
    [GGML_TYPE_Q2_0] = {64, 18, q2_0},       [GGML_TYPE_Q4_0] = {32, 18, q4_0},
    [GGML_TYPE_Q4_1] = {32, 20, q4_1},       [GGML_TYPE_Q5_0] = {32, 22, q5_0},
    [GGML_TYPE_Q5_1] = {32, 24, q5_1},       [GGML_TYPE_Q8_0] = {32, 34, q8_0},
    [GGML_TYPE_Q8_1] = {32, 36, q8_1},       [GGML_TYPE_MXFP4] = {32, 17, mxfp4},
    [GGML_TYPE_NVFP4] = {64, 36, nvfp4},     [GGML_TYPE_TQ1_0] = {256, 54, tq1_0},
    [GGML_TYPE_TQ2_0] = {256, 66, tq2_0},    [GGML_TYPE_Q2_K] = {256, 84, q2_K},
    [GGML_TYPE_Q3_K] = {256, 110, q3_K},     [GGML_TYPE_Q4_K] = {256, 144, q4_K},
    [GGML_TYPE_Q5_K] = {256, 176, q5_K},     [GGML_TYPE_Q6_K] = {256, 210, q6_K},
    [GGML_TYPE_Q8_K] = {256, 292, q8_K},     [GGML_TYPE_IQ4_NL] = {32, 18, iq4_nl},
    [GGML_TYPE_IQ4_XS] = {256, 136, iq4_xs},
};

double oracle_element(enum ggml_type type, const void *row, int64_t i) {
    if (type < 0 || type >= GGML_TYPE_COUNT || !formats[type].element) return NAN;
    const struct format *format = &formats[type];
    return format->element((bytes_t)row + i / format->block * format->size,
                           (int)(i % format->block));
}
