// SPDX-License-Identifier: MIT
// One function per block format, which computes one element from the bytes of its block.
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

#include "oracle_grids.inl"

// Sign of element j of eight by a code of seven: an even number of them is negative.
static double sign_of(int code, int j) {
    int odd = 0;
    for (int k = 0; k < 7; ++k)
        odd ^= code >> k & 1;
    return (j < 7 ? code >> j & 1 : odd) ? -1 : 1;
}

static double iq2_value(const char *point, int j) {
    static const double value[3] = {8, 25, 43};
    return value[point[j] - '0'];
}

static double iq2_xxs(bytes_t b, int j) {
    bytes_t group = b + 2 + 8 * (j / 32);
    const int l = j % 32 / 8;
    const double scale = half_at(b, 0) * (0.5 + bits_at(group, 60, 4)) / 4;
    return scale * iq2_value(iq2_xxs_points[group[l]], j % 8) *
           sign_of(bits_at(group, 32 + 7 * l, 7), j % 8);
}

static double iq2_xs(bytes_t b, int j) {
    const double scale = half_at(b, 0) * (0.5 + bits_at(b + 66, j / 16 * 4, 4)) / 4;
    return scale * iq2_value(iq2_xs_points[bits_at(b + 2, j / 8 * 16, 9)], j % 8) *
           sign_of(bits_at(b + 2, j / 8 * 16 + 9, 7), j % 8);
}

static double iq2_s(bytes_t b, int j) {
    const double scale = half_at(b, 0) * (0.5 + bits_at(b + 74, j / 16 * 4, 4)) / 4;
    const int index = b[2 + j / 8] + 256 * bits_at(b + 66, j / 8 * 2, 2);
    return scale * iq2_value(iq2_s_points[index], j % 8) * (bits_at(b + 34, j, 1) ? -1 : 1);
}

static double iq3_xxs(bytes_t b, int j) {
    static const double value[8] = {4, 12, 20, 28, 36, 44, 52, 62};
    bytes_t codes = b + 66 + 4 * (j / 32);
    const double scale = half_at(b, 0) * (0.5 + bits_at(codes, 28, 4)) / 2;
    return scale * value[iq3_xxs_points[b[2 + j / 4]][j % 4] - '0'] *
           sign_of(bits_at(codes, j % 32 / 8 * 7, 7), j % 8);
}

static double iq3_s(bytes_t b, int j) {
    const double scale = half_at(b, 0) * (1 + 2 * bits_at(b + 106, j / 32 * 4, 4));
    const int index = b[2 + j / 4] + 256 * bits_at(b + 66, j / 4, 1);
    const int digit = iq3_s_points[index][j % 4] - '0';
    return scale * (1 + 2 * digit) * (bits_at(b + 74, j, 1) ? -1 : 1);
}

static double iq1_s(bytes_t b, int j) {
    bytes_t high = b + 34 + 2 * (j / 32);
    const double scale = half_at(b, 0) * (1 + 2 * bits_at(high, 12, 3));
    const int index = b[2 + j / 8] + 256 * bits_at(high, j % 32 / 8 * 3, 3);
    return scale * (iq1_s_points[index][j % 8] - '1' + (bits_at(high, 15, 1) ? -0.125 : 0.125));
}

static double iq1_m(bytes_t b, int j) {
    bytes_t scales = b + 48;
    const uint8_t d[2] = {(uint8_t)(scales[1] >> 4 | (scales[3] & 0xF0)),
                          (uint8_t)(scales[5] >> 4 | (scales[7] & 0xF0))};
    const double scale =
        half_at(d, 0) * (1 + 2 * bits_at(scales + 2 * (j / 64), j % 64 / 16 * 3, 3));
    const int index = b[j / 8] + 256 * bits_at(b + 32, j / 8 * 4, 3);
    const double delta = bits_at(b + 32, j / 8 * 4 + 3, 1) ? -0.125 : 0.125;
    return scale * (iq1_s_points[index][j % 8] - '1' + delta);
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

// clang-format off
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
    [GGML_TYPE_IQ4_XS] = {256, 136, iq4_xs}, [GGML_TYPE_IQ2_XXS] = {256, 66, iq2_xxs},
    [GGML_TYPE_IQ2_XS] = {256, 74, iq2_xs},  [GGML_TYPE_IQ2_S] = {256, 82, iq2_s},
    [GGML_TYPE_IQ3_XXS] = {256, 98, iq3_xxs}, [GGML_TYPE_IQ3_S] = {256, 110, iq3_s},
    [GGML_TYPE_IQ1_S] = {256, 50, iq1_s},    [GGML_TYPE_IQ1_M] = {256, 56, iq1_m},
};
// clang-format on

double oracle_element(enum ggml_type type, const void *row, int64_t i) {
    if (type < 0 || type >= GGML_TYPE_COUNT || !formats[type].element) return NAN;
    const struct format *format = &formats[type];
    return format->element((bytes_t)row + i / format->block * format->size,
                           (int)(i % format->block));
}
