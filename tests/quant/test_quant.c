// SPDX-License-Identifier: MIT
// Encoders and decoders of block formats: exact decoding, bounded errors, importance, hostile
// input, known blocks, and tables that are made once.
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "conformance/oracle/oracle_quant.h"
#include "conformance/random.h"
#include "ggml-common.h"
#include "ggml-host.h"
#include "ggml-impl.h"
#include "quant/quant.h"

enum { N = 1024, MAX_ROW_BYTES = N * 4 };

// Types with both directions and the largest mean squared error, relative to the mean square, that
// their encoder may make on normally distributed data. With b bits over +-3 sigma the uniform step
// is 6/2^b sigma, hence an error of about 3/4^b sigma^2: 0.012 at 4 bits, 0.003 at 5, and so on;
// ternary and one-bit types keep little more than the sign.
static const struct {
    enum ggml_type type;
    double nmse;
} round_trips[] = {
    {GGML_TYPE_F16, 1e-6},     {GGML_TYPE_BF16, 1e-5},    {GGML_TYPE_Q8_0, 5e-5},
    {GGML_TYPE_Q6_K, 6e-4},    {GGML_TYPE_Q5_0, 3e-3},    {GGML_TYPE_Q5_1, 3e-3},
    {GGML_TYPE_Q5_K, 2e-3},    {GGML_TYPE_Q4_0, 1.2e-2},  {GGML_TYPE_Q4_1, 1e-2},
    {GGML_TYPE_Q4_K, 8e-3},    {GGML_TYPE_IQ4_NL, 8e-3},  {GGML_TYPE_IQ4_XS, 8e-3},
    {GGML_TYPE_MXFP4, 3e-2},   {GGML_TYPE_NVFP4, 1.5e-2}, {GGML_TYPE_Q3_K, 3e-2},
    {GGML_TYPE_Q2_K, 0.12},    {GGML_TYPE_Q1_0, 0.45},    {GGML_TYPE_Q2_0, 0.8},
    {GGML_TYPE_TQ1_0, 0.9},    {GGML_TYPE_TQ2_0, 0.9},    {GGML_TYPE_IQ3_S, 2.5e-2},
    {GGML_TYPE_IQ3_XXS, 4e-2}, {GGML_TYPE_IQ2_S, 9e-2},   {GGML_TYPE_IQ2_XS, 0.12},
    {GGML_TYPE_IQ2_XXS, 0.17}, {GGML_TYPE_IQ1_M, 0.26},   {GGML_TYPE_IQ1_S, 0.35},
};
enum { N_ROUND_TRIPS = sizeof(round_trips) / sizeof(round_trips[0]) };

// Without importance, or where the type needs it, with an equal one. Returns the size.
static size_t encode(enum ggml_type type, const float *x, uint8_t *row, int n_rows, int n_per_row) {
    float even[N];
    for (int i = 0; i < N; ++i)
        even[i] = 1.0f;
    return ggml_quantize_chunk(type, x, row, 0, n_rows, n_per_row,
                               ggml_quantize_requires_imatrix(type) ? even : NULL);
}

static void fill_normal(struct test_random *random, float *x, int n) {
    for (int i = 0; i < n; ++i)
        x[i] = random_normal(random);
}

static void test_decoders_follow_the_formats(void **state) {
    (void)state;
    struct test_random random = {1};
    uint8_t row[MAX_ROW_BYTES] = {0};
    float y[N];
    for (int type = 0; type < GGML_TYPE_COUNT; ++type) {
        const struct ggml_type_traits *traits = ggml_get_type_traits((enum ggml_type)type);
        if (!traits->to_float || isnan(oracle_element((enum ggml_type)type, row, 0))) continue;
        for (int round = 0; round < 20; ++round) {
            for (int i = 0; i < MAX_ROW_BYTES; ++i)
                row[i] = (uint8_t)random_u32(&random);
            traits->to_float(row, y, N);
            for (int i = 0; i < N; ++i) {
                const double expected = oracle_element((enum ggml_type)type, row, i);
                if (isnan(expected) || fabs(expected) > (double)FLT_MAX) continue;
                const double error = fabs(y[i] - expected);
                if (error > 1e-6 * fabs(expected) + 0.02) {
                    fail_msg("%s[%d] = %g, not %g", traits->type_name, i, (double)y[i], expected);
                }
            }
        }
    }
}

// Whatever the bits are: all products fit into a float.
static void test_grid_decoders_are_exact(void **state) {
    (void)state;
    static const enum ggml_type grids[] = {GGML_TYPE_IQ2_XXS, GGML_TYPE_IQ2_XS, GGML_TYPE_IQ2_S,
                                           GGML_TYPE_IQ3_XXS, GGML_TYPE_IQ3_S,  GGML_TYPE_IQ1_S,
                                           GGML_TYPE_IQ1_M};
    struct test_random random = {11};
    uint8_t row[MAX_ROW_BYTES];
    float y[N];
    for (int round = 0; round < 50 * 7; ++round) {
        const enum ggml_type type = grids[round % 7];
        int n_checked = 0;
        for (int i = 0; i < MAX_ROW_BYTES; ++i)
            row[i] = (uint8_t)random_u32(&random);
        ggml_get_type_traits(type)->to_float(row, y, N);
        for (int i = 0; i < N; ++i) {
            const double expected = oracle_element(type, row, i);
            n_checked += isfinite(expected);
            if (isfinite(expected) && (double)y[i] != expected)
                fail_msg("%s[%d] = %g, not %g", ggml_type_name(type), i, (double)y[i], expected);
        }
        assert_true(n_checked >= N / 4);
    }
}

static void test_decoders_are_exact_on_small_scales(void **state) {
    (void)state;
    struct test_random random = {2};
    float x[N];
    uint8_t row[MAX_ROW_BYTES];
    float y[N];
    for (int t = 0; t < N_ROUND_TRIPS; ++t) {
        const struct ggml_type_traits *traits = ggml_get_type_traits(round_trips[t].type);
        fill_normal(&random, x, N);
        encode(round_trips[t].type, x, row, 1, N);
        traits->to_float(row, y, N);
        for (int i = 0; i < N; ++i) {
            const double expected = oracle_element(round_trips[t].type, row, i);
            if (!(fabs(y[i] - expected) <= 1e-6)) {
                fail_msg("%s[%d] = %g, not %g", traits->type_name, i, (double)y[i], expected);
            }
        }
    }
}

static void test_round_trip_error_is_bounded(void **state) {
    (void)state;
    struct test_random random = {3};
    float x[N];
    uint8_t row[MAX_ROW_BYTES];
    for (int t = 0; t < N_ROUND_TRIPS; ++t) {
        double error = 0;
        double power = 0;
        for (int round = 0; round < 8; ++round) {
            fill_normal(&random, x, N);
            const size_t size = ggml_row_size(round_trips[t].type, N);
            assert_int_equal(encode(round_trips[t].type, x, row, 2, N / 2), size);
            for (int i = 0; i < N; ++i) {
                const double diff = oracle_element(round_trips[t].type, row, i) - x[i];
                error += diff * diff;
                power += (double)x[i] * x[i];
            }
        }
        print_message("# %s: nmse %.3g\n", ggml_type_name(round_trips[t].type), error / power);
        if (!(error <= round_trips[t].nmse * power)) {
            fail_msg("%s: nmse %g", ggml_type_name(round_trips[t].type), error / power);
        }
    }
}

static double weighted_error(enum ggml_type type, const uint8_t *row, const float *x,
                             const float *w, int n_per_row) {
    double sum = 0;
    for (int i = 0; i < N; ++i) {
        const double diff = oracle_element(type, row, i) - x[i];
        sum += w[i % n_per_row] * diff * diff;
    }
    return sum;
}

// Importance that varies by a factor of 100 lowers the weighted error: at least to 0.97 of what the
// reference makes. Little can be chosen in MXFP4, with powers of two as scales, and in Q1_0.
static void test_importance_lowers_the_weighted_error(void **state) {
    (void)state;
    struct test_random random = {9};
    float x[N];
    float w[N / 2];
    uint8_t plain[MAX_ROW_BYTES];
    uint8_t weighted[MAX_ROW_BYTES];
    fill_normal(&random, x, N);
    for (int i = 0; i < N / 2; ++i)
        w[i] = powf(10.0f, random_uniform(&random, -1.0f, 1.0f));
    for (int t = 0; t < N_ROUND_TRIPS; ++t) {
        const enum ggml_type type = round_trips[t].type;
        const size_t size = encode(type, x, plain, 2, N / 2);
        assert_int_equal(ggml_quantize_chunk(type, x, weighted, 0, 2, N / 2, w), size);
        assert_true(ggml_validate_row_data(type, weighted, size));
        const double ratio =
            weighted_error(type, weighted, x, w, N / 2) / weighted_error(type, plain, x, w, N / 2);
        print_message("# %s: weighted error %.3f of the reference's\n", ggml_type_name(type),
                      ratio);
        const bool is_fixed =
            type == GGML_TYPE_F16 || type == GGML_TYPE_BF16 || type == GGML_TYPE_Q8_0;
        const bool is_rigid = type == GGML_TYPE_MXFP4 || type == GGML_TYPE_Q1_0;
        const double bound = is_rigid ? 0.995 : 0.97;
        assert_true(is_fixed ? ratio == 1.0 : ratio < bound);
    }
}

// Weights that say nothing, or nonsense, give what the reference gives or better.
static void test_odd_importance_is_harmless(void **state) {
    (void)state;
    static const float odd[] = {0.0f, INFINITY, NAN, -1.0f, 1e38f};
    struct test_random random = {10};
    float x[N];
    float w[N];
    uint8_t row[MAX_ROW_BYTES];
    for (int t = 0; t < N_ROUND_TRIPS; ++t) {
        const enum ggml_type type = round_trips[t].type;
        for (size_t k = 0; k < sizeof(odd) / sizeof(odd[0]); ++k) {
            fill_normal(&random, x, N);
            for (int i = 0; i < N; ++i)
                w[i] = k == 4 && i % 2 ? 0.0f : odd[k];
            const size_t size = ggml_quantize_chunk(type, x, row, 0, 1, N, w);
            assert_int_equal(size, ggml_row_size(type, N));
            assert_true(ggml_validate_row_data(type, row, size));
        }
    }
}

static void test_encoders_keep_zero(void **state) {
    (void)state;
    const float x[N] = {0};
    uint8_t row[MAX_ROW_BYTES];
    for (int t = 0; t < N_ROUND_TRIPS; ++t) {
        memset(row, 0xAA, sizeof(row));
        encode(round_trips[t].type, x, row, 1, N);
        for (int i = 0; i < N; ++i) {
            assert_true(oracle_element(round_trips[t].type, row, i) == 0);
        }
    }
}

// NaN, infinity and huge numbers anywhere: the encoder returns, and writes no more than its row.
static void test_encoders_survive_any_input(void **state) {
    (void)state;
    static const float poison[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-45f, -0.0f};
    struct test_random random = {4};
    float x[N];
    uint8_t row[MAX_ROW_BYTES + 64];
    for (int type = 0; type < GGML_TYPE_COUNT; ++type) {
        const struct ggml_type_traits *traits = ggml_get_type_traits((enum ggml_type)type);
        const bool is_encoded =
            traits->from_float_ref || ggml_quantize_requires_imatrix((enum ggml_type)type);
        if (!is_encoded) continue;
        const size_t size = ggml_row_size((enum ggml_type)type, N);
        for (int p = 0; p < (int)(sizeof(poison) / sizeof(poison[0])); ++p) {
            fill_normal(&random, x, N);
            for (int k = 0; k < 40; ++k)
                x[random_below(&random, N)] = poison[p];
            for (int i = 0; i < 256; ++i)
                x[i] = poison[p];
            memset(row, 0x5A, sizeof(row));
            if (traits->from_float_ref)
                traits->from_float_ref(x, row, N);
            else
                encode((enum ggml_type)type, x, row, 1, N);
            for (int i = 0; i < 64; ++i)
                assert_int_equal(row[size + (size_t)i], 0x5A);
        }
    }
}

static void test_q4_0_known_block(void **state) {
    (void)state;
    float x[32] = {0};
    x[3] = -8.0f;
    x[4] = 7.4f;
    x[20] = 1.0f;
    block_q4_0 block;
    quantize_row_q4_0_ref(x, &block, 32);
    assert_int_equal(block.d, 0x3C00); // 1.0
    assert_int_equal(block.qs[3], 0x80);
    assert_int_equal(block.qs[4], 0x9F);
    assert_int_equal(block.qs[0], 0x88);
}

static void test_q8_1_keeps_the_sum(void **state) {
    (void)state;
    float x[32];
    for (int i = 0; i < 32; ++i)
        x[i] = (float)(i - 4);
    x[0] = 127.0f;
    block_q8_1 block;
    quantize_row_q8_1_ref(x, &block, 32);
    int sum = 0;
    for (int i = 0; i < 32; ++i)
        sum += block.qs[i];
    assert_int_equal(block.qs[0], 127);
    assert_int_equal(block.qs[31], 27);
    assert_int_equal(block.d, 0x3C00);
    assert_true(fabsf(GGML_FP16_TO_FP32(block.s) - (float)sum) < 0.5f);
}

static void test_q8_K_sums_groups(void **state) {
    (void)state;
    struct test_random random = {5};
    float x[QK_K];
    fill_normal(&random, x, QK_K);
    block_q8_K block;
    quantize_row_q8_K_ref(x, &block, QK_K);
    for (int g = 0; g < QK_K / 16; ++g) {
        int sum = 0;
        for (int i = 0; i < 16; ++i)
            sum += block.qs[16 * g + i];
        assert_int_equal(block.bsums[g], sum);
    }
    for (int i = 0; i < QK_K; ++i) {
        assert_true(fabsf(block.d * (float)block.qs[i] - x[i]) <= 0.51f * fabsf(block.d));
    }
}

static void test_chunk_writes_its_rows_only(void **state) {
    (void)state;
    struct test_random random = {6};
    float x[N];
    uint8_t whole[MAX_ROW_BYTES];
    uint8_t parts[MAX_ROW_BYTES];
    fill_normal(&random, x, N);
    memset(parts, 0, sizeof(parts));
    const size_t row_size = ggml_row_size(GGML_TYPE_Q4_K, 256);
    assert_int_equal(ggml_quantize_chunk(GGML_TYPE_Q4_K, x, whole, 0, 4, 256, NULL), 4 * row_size);
    assert_int_equal(ggml_quantize_chunk(GGML_TYPE_Q4_K, x, parts, 512, 1, 256, NULL), row_size);
    assert_int_equal(parts[2 * row_size - 1], 0);
    assert_int_equal(parts[3 * row_size], 0);
    assert_memory_equal(parts + 2 * row_size, whole + 2 * row_size, row_size);
}

// The first encoders of these types, in several threads at once, find their tables.
struct grid_job {
    pthread_t thread;
    enum ggml_type type;
    const float *x;
    uint8_t row[MAX_ROW_BYTES];
};

static void *run_grid_job(void *argument) {
    struct grid_job *job = argument;
    encode(job->type, job->x, job->row, 1, N);
    return NULL;
}

static void test_tables_are_made_once(void **state) {
    (void)state;
    static struct grid_job jobs[8];
    struct test_random random = {12};
    float x[N];
    fill_normal(&random, x, N);
    for (int k = 0; k < 8; ++k) {
        jobs[k].type = k % 2 ? GGML_TYPE_IQ2_S : GGML_TYPE_IQ1_S;
        jobs[k].x = x;
        assert_int_equal(pthread_create(&jobs[k].thread, NULL, run_grid_job, &jobs[k]), 0);
    }
    for (int k = 0; k < 8; ++k)
        assert_int_equal(pthread_join(jobs[k].thread, NULL), 0);
    for (int k = 2; k < 8; ++k)
        assert_memory_equal(jobs[k].row, jobs[k % 2].row, sizeof(jobs[k].row));
}

static void test_chunk_refuses_the_impossible(void **state) {
    (void)state;
    float x[256] = {0};
    uint8_t row[1024];
    static const struct {
        enum ggml_type type;
        int64_t start, nrows, n_per_row;
    } bad[] = {
        {GGML_TYPE_Q4_0, 0, 1, 33},
        {GGML_TYPE_Q4_0, 16, 1, 32},
        {GGML_TYPE_Q4_0, -32, 1, 32},
        {GGML_TYPE_Q4_0, 0, -1, 32},
        {GGML_TYPE_Q4_0, 0, 1, 0},
        {GGML_TYPE_IQ2_XXS, 0, 1, 256},
        {GGML_TYPE_I32, 0, 1, 32},
        {(enum ggml_type)4, 0, 1, 32},
        {(enum ggml_type)9999, 0, 1, 32},
        {(enum ggml_type) - 1, 0, 1, 32},
        {GGML_TYPE_F32, 0, INT64_MAX / 32, 64},
        {GGML_TYPE_Q4_0, INT64_MAX / 32 * 32, 1, 32},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        ggml_clear_error();
        assert_int_equal(ggml_quantize_chunk(bad[i].type, x, row, bad[i].start, bad[i].nrows,
                                             bad[i].n_per_row, NULL),
                         0);
        assert_true(strlen(ggml_last_error()) > 0);
    }
    assert_int_equal(ggml_quantize_chunk(GGML_TYPE_F32, x, row, 0, 0, 32, NULL), 0);
}

static void test_validate_finds_bad_scales(void **state) {
    (void)state;
    struct test_random random = {7};
    float x[N];
    uint8_t row[MAX_ROW_BYTES];
    fill_normal(&random, x, N);
    for (int t = 0; t < N_ROUND_TRIPS; ++t) {
        const enum ggml_type type = round_trips[t].type;
        const size_t size = ggml_row_size(type, N);
        encode(type, x, row, 1, N);
        assert_true(ggml_validate_row_data(type, row, size));
        assert_false(ggml_validate_row_data(type, row, size - 1));
        memset(row, 0xFF, size);
        assert_int_equal(ggml_validate_row_data(type, row, size), type == GGML_TYPE_NVFP4);
    }
    const float bad[2] = {1.0f, INFINITY};
    assert_false(ggml_validate_row_data(GGML_TYPE_F32, bad, sizeof(bad)));
    assert_true(ggml_validate_row_data(GGML_TYPE_I8, bad, sizeof(bad)));
    assert_false(ggml_validate_row_data(GGML_TYPE_COUNT, bad, sizeof(bad)));
    assert_false(ggml_validate_row_data((enum ggml_type)5, bad, 0));
    assert_false(ggml_validate_row_data(GGML_TYPE_F32, NULL, 4));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_are_made_once),
        cmocka_unit_test(test_decoders_follow_the_formats),
        cmocka_unit_test(test_grid_decoders_are_exact),
        cmocka_unit_test(test_decoders_are_exact_on_small_scales),
        cmocka_unit_test(test_round_trip_error_is_bounded),
        cmocka_unit_test(test_importance_lowers_the_weighted_error),
        cmocka_unit_test(test_odd_importance_is_harmless),
        cmocka_unit_test(test_encoders_keep_zero),
        cmocka_unit_test(test_encoders_survive_any_input),
        cmocka_unit_test(test_q4_0_known_block),
        cmocka_unit_test(test_q8_1_keeps_the_sum),
        cmocka_unit_test(test_q8_K_sums_groups),
        cmocka_unit_test(test_chunk_writes_its_rows_only),
        cmocka_unit_test(test_chunk_refuses_the_impossible),
        cmocka_unit_test(test_validate_finds_bad_scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
