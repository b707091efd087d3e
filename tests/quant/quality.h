// SPDX-License-Identifier: MIT
// Elements of several distributions, and the error that an encoder makes on them. Sums, products,
// quotients and square roots only, so that every machine makes the same numbers.
#ifndef TEST_QUANT_QUALITY_H
#define TEST_QUANT_QUALITY_H

#include <stdbool.h>
#include <stddef.h>

#include "conformance/oracle/oracle_quant.h"
#include "conformance/random.h"

enum { QUALITY_ROWS = 16, QUALITY_COLUMNS = 512, QUALITY_ELEMENTS = 16 * 512 };

enum quality_distribution {
    QUALITY_NORMAL,
    QUALITY_LAPLACE,
    QUALITY_STUDENT,         // three degrees of freedom
    QUALITY_SCALED,          // normal, a scale per row and one per column
    QUALITY_OUTLIER_COLUMNS, // normal, one column in 64 is 20 times as large
    QUALITY_SMALL_GROUPS,    // normal, two groups of 16 in five are 0 or a thousandth
    QUALITY_OFFSET,          // normal, the mean is 1.5
    QUALITY_DISTRIBUTIONS
};

static const char *const quality_names[QUALITY_DISTRIBUTIONS] = {
    "NORMAL", "LAPLACE", "STUDENT", "SCALED", "OUTLIER_COLUMNS", "SMALL_GROUPS", "OFFSET",
};

// What is encoded, and the importance of each column.
struct quality_data {
    float x[QUALITY_ELEMENTS];
    float w[QUALITY_COLUMNS];
};

typedef size_t (*quality_quantize)(enum ggml_type type, const float *src, void *dst, int64_t start,
                                   int64_t nrows, int64_t n_per_row, const float *imatrix);

// Nearly normal: the sum of twelve uniform numbers.
static inline float quality_normal(struct test_random *random) {
    int32_t sum = 0;
    for (int i = 0; i < 12; ++i)
        sum += (int32_t)(random_u32(random) >> 12) - (1 << 19);
    return (float)sum * 0x1p-20f;
}

static inline float quality_laplace(struct test_random *random) {
    const float a = quality_normal(random) * quality_normal(random);
    const float b = quality_normal(random) * quality_normal(random);
    return a + b;
}

static inline float quality_student(struct test_random *random) {
    float sum = 0.0f;
    for (int i = 0; i < 3; ++i) {
        const float normal = quality_normal(random);
        const float square = normal * normal;
        sum += square;
    }
    const float x = quality_normal(random);
    return x / sqrtf(sum / 3.0f + 0x1p-20f);
}

// Nearly log-normal: powers of two, with straight lines between them.
static inline float quality_scale(struct test_random *random) {
    const float exponent = quality_normal(random);
    const float whole = floorf(exponent);
    return ldexpf(1.0f + (exponent - whole), (int)whole);
}

static inline float quality_element(struct test_random *random,
                                    enum quality_distribution distribution, float row_scale,
                                    float column_scale, int column) {
    switch (distribution) {
    case QUALITY_LAPLACE: return quality_laplace(random);
    case QUALITY_STUDENT: return quality_student(random);
    case QUALITY_SCALED: return quality_normal(random) * row_scale * column_scale;
    case QUALITY_OUTLIER_COLUMNS:
        return quality_normal(random) * (column % 64 == 37 ? 20.0f : 1.0f);
    case QUALITY_SMALL_GROUPS: {
        static const float scales[5] = {0.0f, 1.0f, 0.001f, 1.0f, 1.0f};
        return quality_normal(random) * scales[column / 16 % 5];
    }
    case QUALITY_OFFSET: return quality_normal(random) + 1.5f;
    default: return quality_normal(random);
    }
}

static inline void quality_fill(enum quality_distribution distribution, struct quality_data *data) {
    struct test_random random = {(uint64_t)distribution + 1};
    float column_scales[QUALITY_COLUMNS];
    for (int j = 0; j < QUALITY_COLUMNS; ++j)
        column_scales[j] = quality_scale(&random);
    for (int i = 0; i < QUALITY_ROWS; ++i) {
        const float row_scale = quality_scale(&random);
        for (int j = 0; j < QUALITY_COLUMNS; ++j) {
            data->x[i * QUALITY_COLUMNS + j] =
                quality_element(&random, distribution, row_scale, column_scales[j], j);
        }
    }
    // The mean squares of 32 activations in channels of very different magnitude.
    for (int j = 0; j < QUALITY_COLUMNS; ++j) {
        const float magnitude = quality_scale(&random) * quality_scale(&random);
        float sum = 0.0f;
        for (int k = 0; k < 32; ++k) {
            const float activation = magnitude * quality_normal(&random);
            const float square = activation * activation;
            sum += square;
        }
        data->w[j] = sum / 32.0f;
    }
}

// Encodes the data and returns the squared error relative to the squares, both weighted if
// is_weighted (which the encoder is told, too). *out_hash is FNV-1a of the bytes. Both are 0 if
// the type needs weights that it doesn't get.
static inline double quality_error(quality_quantize quantize, enum ggml_type type,
                                   const struct quality_data *data, bool is_weighted,
                                   uint64_t *out_hash) {
    uint8_t bytes[QUALITY_ELEMENTS * 2];
    const float *importance = is_weighted ? data->w : NULL;
    *out_hash = 0;
    if (!is_weighted && ggml_quantize_requires_imatrix(type)) return 0.0;
    const size_t size =
        quantize(type, data->x, bytes, 0, QUALITY_ROWS, QUALITY_COLUMNS, importance);
    *out_hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < size; ++i)
        *out_hash = (*out_hash ^ bytes[i]) * UINT64_C(1099511628211);
    double error = 0.0;
    double power = 0.0;
    for (int i = 0; i < QUALITY_ELEMENTS; ++i) {
        const double w = is_weighted ? (double)data->w[i % QUALITY_COLUMNS] : 1.0;
        const double diff = oracle_element(type, bytes, i) - data->x[i];
        error += w * diff * diff;
        power += w * data->x[i] * data->x[i];
    }
    return error / power;
}

#endif
