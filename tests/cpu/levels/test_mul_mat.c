// SPDX-License-Identifier: MIT
// mul_mat and mul_mat_id on the CPU: every type of weight, edges of blocks and strips,
// broadcasting, permuted views, and the rounding that a node permits.
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>

#include "fixture.h"
#include "support/setenv.h"

#include "ggml-alloc.h"

// Weights are decoded exactly up to one rounding and products are summed in F32: a relative error
// of about 2^-24 sqrt(k) per result, squared; a lone result may also cancel.
static const double EXACT = 1e-11;

// --- what is expected where columns are rounded --------------------------------------------------

enum { FEW = 4 }; // columns that share a matrix and are multiplied by kernels of their own

static bool level_multiplies_bytes(void) {
    const char *level = getenv("GGML_CPU_LEVEL");
    const bool best = !level || strcmp(level, "x86-64-v4-vnni") == 0;
    return best && ggml_cpu_has_avx512_vnni();
}

static bool level_is_wide(void) {
    const char *level = getenv("GGML_CPU_LEVEL");
    return (!level || strncmp(level, "x86-64-v4", 9) == 0) && ggml_cpu_has_avx512();
}

// x86-64-v3, or a newer one was asked for that this machine lacks.
static bool level_is_v3(void) {
    const char *level = getenv("GGML_CPU_LEVEL");
    const bool allowed = !level || (strncmp(level, "x86-64-v", 8) == 0 && level[8] >= '3');
    return allowed && ggml_cpu_has_avx2() && !level_is_wide();
}

// x86-64-v2 or later.
static bool level_is_x86(void) {
    const char *level = getenv("GGML_CPU_LEVEL");
    return (!level || strncmp(level, "x86-64-v", 8) == 0) && ggml_cpu_has_ssse3();
}

static bool level_has_dotprod(void) {
    const char *level = getenv("GGML_CPU_LEVEL");
    const bool allowed = !level || strcmp(level, "dotprod") == 0 || strcmp(level, "i8mm") == 0;
    return allowed && ggml_cpu_has_dotprod();
}

// Rows and columns from which on both operands are packed.
static bool product_is_packed(const struct ggml_tensor *node, int64_t columns) {
    const int64_t rows = node->src[0]->ne[1];
    return rows >= 48 && columns >= 16 && columns >= 4096 / rows;
}

// i8mm, which has products of BF16 too.
static bool level_is_i8mm(void) {
    const char *level = getenv("GGML_CPU_LEVEL");
    return (!level || strcmp(level, "i8mm") == 0) && ggml_cpu_has_matmul_int8();
}

static bool level_multiplies_bf16(void) {
    return !getenv("GGML_CPU_DISABLE_BF16") &&
           (level_is_i8mm() || (level_multiplies_bytes() && ggml_cpu_has_avx512_bf16()));
}

static bool is_rounded_to_bf16(const struct ggml_tensor *node, int64_t columns) {
    return node->src[0]->type == GGML_TYPE_BF16 && node->src[0]->ne[0] % 2 == 0 &&
           level_multiplies_bf16() && product_is_packed(node, columns);
}

static bool type_is_rounded(enum ggml_type type, int64_t columns) {
    const char *level = getenv("GGML_CPU_LEVEL");
    if (columns > FEW) return ggml_is_quantized(type) && (level_is_x86() || level_has_dotprod());
    if (level && strcmp(level, "scalar") == 0) return false;
    switch (type) {
    case GGML_TYPE_Q4_0:
    case GGML_TYPE_Q4_1:
    case GGML_TYPE_Q5_0:
    case GGML_TYPE_Q5_1:
    case GGML_TYPE_Q8_0:
    case GGML_TYPE_Q3_K:
    case GGML_TYPE_Q4_K:
    case GGML_TYPE_Q5_K:
    case GGML_TYPE_Q6_K:
    case GGML_TYPE_Q2_K:
    case GGML_TYPE_TQ2_0:
    case GGML_TYPE_MXFP4: return true;
    case GGML_TYPE_NVFP4: return level_is_wide();
    case GGML_TYPE_IQ4_NL:
    case GGML_TYPE_IQ4_XS: return !level_is_wide() || level_multiplies_bytes();
    default: return false;
    }
}

// Groups of 32 are rounded to 127 steps.
static void round_group(const double *x, float *y) {
    float largest = 0;
    for (int i = 0; i < 32; ++i)
        largest = fmaxf(largest, fabsf((float)x[i]));
    const float scale = largest / 127, inverse = largest > 0 ? 127 / largest : 0;
    for (int i = 0; i < 32; ++i)
        y[i] = rintf((float)x[i] * inverse) * scale;
}

// The number of columns that element i's matrix is multiplied with.
static int64_t columns_that_share(const struct ggml_tensor *node, int64_t i) {
    const struct ggml_tensor *a = node->src[0], *ids = node->src[2];
    if (!ids) return ggml_nrows(node->src[1]) / (a->ne[2] * a->ne[3]);
    int64_t i0, slot, token, i3, n = 0;
    ggml_unravel_index(node, i, &i0, &slot, &token, &i3);
    const double expert = oracle_value(ids, slot, token, 0, 0);
    for (int64_t j = 0; j < ids->ne[0] * ids->ne[1]; ++j)
        n += oracle_value(ids, j % ids->ne[0], j / ids->ne[0], 0, 0) == expert;
    return n;
}

static void oracle_exact(const struct ggml_tensor *node, double *out) {
    (node->src[2] ? oracle_mul_mat_id : oracle_mul_mat)(node, out);
}

static void oracle_default(const struct ggml_tensor *node, double *out) {
    const int64_t n = ggml_nelements(node), n_x = ggml_nelements(node->src[1]);
    const bool to_bf16 = node->src[0]->type == GGML_TYPE_BF16;
    oracle_exact(node, out);
    if (!ggml_is_quantized(node->src[0]->type) && !to_bf16) return;
    if (node->src[1]->type != GGML_TYPE_F32) return;
    double *x = malloc((size_t)n_x * sizeof(*x)), *rounded = malloc((size_t)n * sizeof(*rounded));
    float *y = malloc((size_t)n_x * sizeof(*y));
    oracle_read(node->src[1], x);
    for (int64_t i = 0; i < n_x && to_bf16; ++i)
        y[i] = ggml_bf16_to_fp32(ggml_fp32_to_bf16((float)x[i]));
    for (int64_t i = 0; i < n_x && !to_bf16; i += 32)
        round_group(x + i, y + i);
    struct ggml_tensor b = *node->src[1], product = *node;
    b.data = y;
    b.nb[0] = sizeof(float);
    for (int d = 1; d < GGML_MAX_DIMS; ++d)
        b.nb[d] = b.nb[d - 1] * (size_t)b.ne[d - 1];
    product.src[1] = &b;
    oracle_exact(&product, rounded);
    for (int64_t i = 0; i < n; ++i) {
        const int64_t columns = columns_that_share(node, i);
        if (to_bf16 ? is_rounded_to_bf16(node, columns)
                    : type_is_rounded(node->src[0]->type, columns))
            out[i] = rounded[i];
    }
    free(x);
    free(rounded);
    free(y);
}

// With operands as they are, then with what the plugin makes of them by itself.
static void check(struct fixture *f, struct ggml_tensor *node) {
    assert_null(ggml_tensor_error(node));
    ggml_prec_set_src(node, GGML_PREC_F32, 1);
    fixture_check(f, node, oracle_exact, EXACT);
    ggml_prec_set_src(node, GGML_PREC_UNDEFINED, 1);
    fixture_check(f, node, oracle_default, EXACT);
}

// -------------------------------------------------------------------------------------------------

static void check_types(struct fixture *f, enum ggml_type a_type, enum ggml_type b_type,
                        int64_t k) {
    static const int64_t shapes[][2] = {{1, 1},   {1, 7},    {5, 1},  {13, 3},
                                        {37, 19}, {64, 130}, {129, 2}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); ++i) {
        struct ggml_tensor *a = fixture_tensor(f, a_type, k, shapes[i][0], 1, 1);
        struct ggml_tensor *b = fixture_tensor(f, b_type, k, shapes[i][1], 1, 1);
        check(f, ggml_mul_mat(f->ctx, a, b));
    }
}

static void test_every_weight_type(void **state) {
    for (int type = 0; type < GGML_TYPE_COUNT; ++type) {
        const struct ggml_type_traits *traits = ggml_get_type_traits((enum ggml_type)type);
        if (type != GGML_TYPE_F32 && !(traits->to_float && traits->from_float_ref)) continue;
        check_types(*state, (enum ggml_type)type, GGML_TYPE_F32, 256);
    }
}

// Few columns have kernels of their own, some of them up to 8 or 32: rows that do not fill them,
// rows of one block, several matrices, rows apart from each other.
static void test_few_columns(void **state) {
    static const int64_t n_rows[] = {3, 4, 6, 21};
    static const int64_t columns[] = {1, 2, 3, 4, 5, 6, 8, 9, 16, 31, 33};
    struct fixture *f = *state;
    for (int type = 0; type < GGML_TYPE_COUNT; ++type) {
        const struct ggml_type_traits *traits = ggml_get_type_traits((enum ggml_type)type);
        if (!traits->to_float || !traits->from_float_ref) continue;
        for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); ++i) {
            const int64_t n = columns[i], blocks = 2 * (n % 3) + 1;
            const int64_t k = traits->blck_size * (traits->blck_size == 1 ? 45 : blocks);
            struct ggml_tensor *a =
                fixture_tensor(f, (enum ggml_type)type, 2 * k, 2 * n_rows[n % 4], 3, 2);
            struct ggml_tensor *slice =
                ggml_view_4d(f->ctx, a, k, n_rows[n % 4], 3, 2, 2 * a->nb[1], a->nb[2], a->nb[3],
                             a->nb[1] + a->nb[1] / 2);
            struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, k, n, 3, 2);
            check(f, ggml_mul_mat(f->ctx, slice, b));
        }
        ggml_reset(f->ctx);
    }
}

// Threads have parts of the rows, which others may end: every result is there, and the same for any
// number of them. Rows fill no part, and parts go on from one matrix to the next.
static void test_few_columns_by_threads(void **state) {
    static const int64_t columns[] = {1, 2, 5, 9};
    struct fixture *f = *state;
    for (int type = 0; type < GGML_TYPE_COUNT; ++type) {
        const struct ggml_type_traits *traits = ggml_get_type_traits((enum ggml_type)type);
        if (!traits->to_float || !traits->from_float_ref) continue;
        for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); ++i) {
            struct ggml_tensor *a = fixture_tensor(f, (enum ggml_type)type, 256, 203, 3, 1);
            struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, 256, columns[i], 3, 1);
            struct ggml_tensor *node = ggml_mul_mat(f->ctx, a, b);
            float *alone = malloc(ggml_nbytes(node));
            assert_int_equal(fixture_compute(f, node, 1), GGML_STATUS_SUCCESS);
            memcpy(alone, node->data, ggml_nbytes(node));
            for (int n_threads = 2; n_threads <= 5; ++n_threads) {
                memset(node->data, 0xFF, ggml_nbytes(node));
                assert_int_equal(fixture_compute(f, node, n_threads), GGML_STATUS_SUCCESS);
                assert_memory_equal(node->data, alone, ggml_nbytes(node));
            }
            free(alone);
            ggml_reset(f->ctx);
        }
    }
}

static void test_half_activations(void **state) {
    check_types(*state, GGML_TYPE_F16, GGML_TYPE_F16, 96);
    check_types(*state, GGML_TYPE_BF16, GGML_TYPE_BF16, 96);
    check_types(*state, GGML_TYPE_Q8_0, GGML_TYPE_F16, 96);
}

static void test_any_depth(void **state) {
    static const int64_t depths[] = {1, 2, 3, 7, 15, 17, 31, 33, 511, 512, 513, 1031};
    for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); ++i) {
        struct fixture *f = *state;
        struct ggml_tensor *a = fixture_tensor(f, GGML_TYPE_F32, depths[i], 11, 1, 1);
        struct ggml_tensor *h = fixture_tensor(f, GGML_TYPE_F16, depths[i], 11, 1, 1);
        struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, depths[i], 5, 1, 1);
        check(f, ggml_mul_mat(f->ctx, a, b));
        check(f, ggml_mul_mat(f->ctx, h, b));
    }
    struct fixture *f = *state;
    struct ggml_tensor *q = fixture_tensor(f, GGML_TYPE_Q4_K, 1280, 9, 1, 1);
    struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, 1280, 3, 1, 1);
    check(f, ggml_mul_mat(f->ctx, q, b));
}

// Many columns are computed in panels of rows, strips of columns and parts of the depth, whose
// sizes depend on the level.
static void test_edges_of_blocks(void **state) {
    static const int64_t shapes[][3] = {
        {47, 96, 40},   {48, 85, 40},   {48, 86, 1},    {49, 87, 3},     {50, 88, 4},
        {51, 89, 5},    {59, 90, 255},  {60, 91, 256},  {61, 92, 257},   {71, 93, 31},
        {72, 94, 33},   {73, 95, 100},  {81, 96, 100},  {95, 97, 511},   {96, 98, 512},
        {97, 99, 513},  {143, 100, 7},  {145, 101, 13}, {256, 16, 9},    {257, 17, 70},
        {300, 15, 71},  {48, 511, 65},  {49, 512, 64},  {50, 513, 63},   {56, 520, 260},
        {48, 88, 1279}, {48, 87, 1280}, {52, 88, 1281}, {48, 1025, 257}, {50, 255, 513},
        {51, 256, 512}, {52, 257, 511},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); ++i) {
        const int64_t m = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
        struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, k, n, 1, 1);
        struct ggml_tensor *a = fixture_tensor(f, GGML_TYPE_F32, k, m, 1, 1);
        struct ggml_tensor *h = fixture_tensor(f, GGML_TYPE_BF16, k, m, 1, 1);
        check(f, ggml_mul_mat(f->ctx, a, b));
        check(f, ggml_mul_mat(f->ctx, h, b));
    }
    struct ggml_tensor *q = fixture_tensor(f, GGML_TYPE_Q4_K, 4352, 130, 1, 1);
    struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, 4352, 33, 1, 1);
    check(f, ggml_mul_mat(f->ctx, q, b));
}

// As on a processor of the level that has no instructions for BF16: columns keep F32.
static void test_bf16_without_its_instructions(void **state) {
    struct fixture *f = *state;
    setenv("GGML_CPU_DISABLE_BF16", "1", 1);
    for (int64_t columns = 16; columns <= 112; columns += 48) {
        struct ggml_tensor *a = fixture_tensor(f, GGML_TYPE_BF16, 96, 257, 1, 1);
        struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, 96, columns, 1, 1);
        check(f, ggml_mul_mat(f->ctx, a, b));
    }
    struct ggml_tensor *experts = fixture_tensor(f, GGML_TYPE_BF16, 64, 257, 2, 1);
    struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, 64, 1, 70, 1);
    check(f, ggml_mul_mat_id(f->ctx, experts, b, fixture_indices(f, 2, 1, 70, 1)));
    unsetenv("GGML_CPU_DISABLE_BF16");
}

// Rounded columns are computed in panels of 16 to 48 rows, strips of four columns, parts of 256
// elements, and in blocks of up to 512 columns.
static void test_edges_of_strips(void **state) {
    static const int64_t shapes[][3] = {
        {1, 5, 32},    {15, 6, 64},    {16, 7, 256},  {17, 8, 288},   {31, 9, 512},  {33, 15, 224},
        {47, 16, 768}, {48, 255, 544}, {49, 130, 32}, {97, 511, 256}, {64, 513, 96}, {52, 1030, 64},
    };
    static const enum ggml_type types[] = {GGML_TYPE_Q4_0, GGML_TYPE_Q8_0, GGML_TYPE_Q5_1,
                                           GGML_TYPE_IQ4_NL, GGML_TYPE_MXFP4};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); ++i) {
        const int64_t m = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
        const enum ggml_type type = types[i % (sizeof(types) / sizeof(types[0]))];
        struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, k, n, 1, 1);
        check(f, ggml_mul_mat(f->ctx, fixture_tensor(f, type, k, m, 1, 1), b));
    }
    static const enum ggml_type large[] = {GGML_TYPE_Q6_K, GGML_TYPE_IQ4_XS};
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); ++i) {
        struct ggml_tensor *q = fixture_tensor(f, large[i], 1280, 50, 2, 1);
        check(f, ggml_mul_mat(f->ctx, q, fixture_tensor(f, GGML_TYPE_F32, 1280, 70, 4, 3)));
    }
}

// Infinities and NaN stay in the rows and columns that they belong to.
static void test_many_columns_keep_nan_apart(void **state) {
    enum { M = 50, N = 97, K = 70 };
    struct fixture *f = *state;
    struct ggml_tensor *a = fixture_tensor(f, GGML_TYPE_F32, K, M, 1, 1);
    struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, K, N, 1, 1);
    ((float *)a->data)[(M - 1) * K + 69] = INFINITY;
    ((float *)b->data)[(N - 1) * K + 3] = NAN;
    struct ggml_tensor *node = ggml_mul_mat(f->ctx, a, b);
    assert_int_equal(fixture_compute(f, node, 2), GGML_STATUS_SUCCESS);
    for (int c = 0; c < N; ++c) {
        for (int r = 0; r < M; ++r) {
            const float y = ((float *)node->data)[c * M + r];
            assert_int_equal(isnan(y) != 0, c == N - 1);
            if (c < N - 1) assert_int_equal(isinf(y) != 0, r == M - 1);
        }
    }
}

static void test_broadcast_divides(void **state) {
    struct fixture *f = *state;
    struct ggml_tensor *a = fixture_tensor(f, GGML_TYPE_F16, 64, 17, 2, 3);
    struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, 64, 5, 6, 6);
    check(f, ggml_mul_mat(f->ctx, a, b));
    struct ggml_tensor *one = fixture_tensor(f, GGML_TYPE_Q4_0, 64, 54, 1, 1);
    check(f, ggml_mul_mat(f->ctx, one, b));
    struct ggml_tensor *tall = fixture_tensor(f, GGML_TYPE_F16, 64, 70, 2, 3);
    struct ggml_tensor *wide = fixture_tensor(f, GGML_TYPE_F16, 64, 19, 6, 6);
    check(f, ggml_mul_mat(f->ctx, tall, wide));
    check(f, ggml_mul_mat(f->ctx, one, wide));
}

static void test_permuted_views(void **state) {
    struct fixture *f = *state;
    // [64, 5, 4, 2] stored as [64, 4, 5, 2], the layout of attention heads
    struct ggml_tensor *a =
        ggml_permute(f->ctx, fixture_tensor(f, GGML_TYPE_F16, 64, 4, 5, 2), 0, 2, 1, 3);
    struct ggml_tensor *b =
        ggml_permute(f->ctx, fixture_tensor(f, GGML_TYPE_F32, 64, 8, 9, 2), 0, 2, 1, 3);
    check(f, ggml_mul_mat(f->ctx, a, b));
    // Activations whose dim 0 is strided, in F32 and F16
    struct ggml_tensor *w = fixture_tensor(f, GGML_TYPE_F32, 24, 10, 1, 1);
    struct ggml_tensor *t = ggml_transpose(f->ctx, fixture_tensor(f, GGML_TYPE_F32, 7, 24, 1, 1));
    struct ggml_tensor *h = ggml_transpose(f->ctx, fixture_tensor(f, GGML_TYPE_F16, 7, 24, 1, 1));
    check(f, ggml_mul_mat(f->ctx, w, t));
    check(f, ggml_mul_mat(f->ctx, w, h));
    // A slice of rows of a quantised matrix
    struct ggml_tensor *q = fixture_tensor(f, GGML_TYPE_Q8_0, 64, 30, 1, 1);
    struct ggml_tensor *slice = ggml_view_2d(f->ctx, q, 32, 11, 2 * q->nb[1], q->nb[1] + q->nb[0]);
    struct ggml_tensor *c = fixture_tensor(f, GGML_TYPE_F32, 32, 4, 1, 1);
    check(f, ggml_mul_mat(f->ctx, slice, c));
}

// Whether two precisions of src1 and of the sums give the same bits.
static bool same_result(struct fixture *f, struct ggml_tensor *node, enum ggml_prec src1,
                        enum ggml_prec sums, const float *expected) {
    assert_true(ggml_prec_set_src(node, src1, 1) && ggml_prec_set_acc(node, sums));
    assert_int_equal(fixture_compute(f, node, 2), GGML_STATUS_SUCCESS);
    return memcmp(node->data, expected, ggml_nbytes(node)) == 0;
}

static void check_permits(struct fixture *f, int64_t columns) {
    enum { M = 13, MOST = 40 };
    struct ggml_tensor *a = fixture_tensor(f, GGML_TYPE_Q4_K, 512, M, 1, 1);
    struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, 512, columns, 1, 1);
    struct ggml_tensor *node = ggml_mul_mat(f->ctx, a, b);
    float exact[M * MOST], rounded[M * MOST];
    assert_true(columns <= MOST);
    assert_int_equal(fixture_compute(f, node, 1), GGML_STATUS_SUCCESS);
    memcpy(rounded, node->data, ggml_nbytes(node));
    ggml_prec_set_src(node, GGML_PREC_F32, 1);
    assert_int_equal(fixture_compute(f, node, 1), GGML_STATUS_SUCCESS);
    memcpy(exact, node->data, ggml_nbytes(node));
    const bool rounds = memcmp(exact, rounded, ggml_nbytes(node)) != 0;
    assert_int_equal(rounds, type_is_rounded(GGML_TYPE_Q4_K, columns));
    assert_true(same_result(f, node, GGML_PREC_F16, GGML_PREC_UNDEFINED, exact));
    assert_true(same_result(f, node, GGML_PREC_BF16, GGML_PREC_F16, exact));
    assert_true(same_result(f, node, GGML_PREC_UNDEFINED, GGML_PREC_F32, exact));
    assert_true(same_result(f, node, GGML_PREC_Q8, GGML_PREC_F32, rounded));
    assert_true(same_result(f, node, GGML_PREC_Q4, GGML_PREC_UNDEFINED, rounded));
    ggml_backend_cpu_set_use_ref(f->cpu, true);
    assert_true(same_result(f, node, GGML_PREC_UNDEFINED, GGML_PREC_UNDEFINED, rounded));
    ggml_backend_cpu_set_use_ref(f->cpu, false);
    assert_true(same_result(f, node, GGML_PREC_UNDEFINED, GGML_PREC_UNDEFINED, rounded));
}

static void test_rounding_is_what_the_node_permits(void **state) {
    check_permits(*state, 2);
    check_permits(*state, 40);
}

// Of any magnitude; what is no number stays in its column.
static void check_magnitudes(struct fixture *f, const int n) {
    enum { M = 6, MOST = 22, K = 96 };
    static const float factors[] = {0x1p-110f, 0x1p-60f, 0x1p100f, 0};
    struct ggml_tensor *a = fixture_tensor(f, GGML_TYPE_Q8_0, K, M, 1, 1);
    struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, K, n, 1, 1);
    struct ggml_tensor *node = ggml_mul_mat(f->ctx, a, b);
    double expected[M * MOST], actual[M * MOST];
    assert_true(n <= MOST);
    for (size_t i = 0; i < sizeof(factors) / sizeof(factors[0]); ++i) {
        fixture_fill(f, b);
        oracle_default(node, expected);
        for (int j = 0; j < n * K; ++j)
            ((float *)b->data)[j] *= factors[i];
        assert_int_equal(fixture_compute(f, node, 1), GGML_STATUS_SUCCESS);
        oracle_read(node, actual);
        for (int j = 0; j < M * n; ++j) {
            if (factors[i] > 0)
                actual[j] /= (double)factors[i];
            else
                assert_true(actual[j] == 0);
        }
        if (factors[i] > 0) assert_true(oracle_nmse(actual, expected, M * n) <= EXACT);
    }
    fixture_fill(f, b);
    ((float *)b->data)[K + 40] = NAN;
    ((float *)b->data)[3 * K] = -INFINITY;
    assert_int_equal(fixture_compute(f, node, 1), GGML_STATUS_SUCCESS);
    oracle_read(node, actual);
    for (int j = 0; j < M * n; ++j)
        assert_int_equal(isfinite(actual[j]) != 0, j / M != 1 && j / M != 3);
}

// All numbers of rows and of columns as large as they get, of one sign: sums in 16 bits must hold
// that.
static void test_largest_sums(void **state) {
    enum { K = 512, M = 50 };
    static const int64_t columns[] = {1, 2, 4, 8, 40};
    struct fixture *f = *state;
    static float row[K];
    for (int type = 0; type < GGML_TYPE_COUNT; ++type) {
        const struct ggml_type_traits *traits = ggml_get_type_traits((enum ggml_type)type);
        if (!traits->is_quantized || !traits->to_float || !traits->from_float_ref) continue;
        struct ggml_tensor *a = fixture_tensor(f, (enum ggml_type)type, K, M, 1, 1);
        for (int r = 0; r < M; ++r) {
            const float sign = r % 2 ? -1 : 1;
            for (int i = 0; i < K; ++i)
                row[i] = sign * (i % 16 == 0 ? -1.0f : 0.96f);
            ggml_quantize_chunk(a->type, row, (char *)a->data + (size_t)r * a->nb[1], 0, 1, K,
                                NULL);
        }
        for (size_t n = 0; n < sizeof(columns) / sizeof(columns[0]); ++n) {
            // Sums of floats of one sign are off by more than EXACT.
            if (!type_is_rounded((enum ggml_type)type, columns[n])) continue;
            struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, K, columns[n], 1, 1);
            for (int64_t i = 0; i < K * columns[n]; ++i)
                ((float *)b->data)[i] = i / K % 2 ? -1 : 1;
            check(f, ggml_mul_mat(f->ctx, a, b));
        }
        ggml_reset(f->ctx);
    }
}

static void test_rounded_magnitudes(void **state) {
    check_magnitudes(*state, 4);
    check_magnitudes(*state, 22);
}

static void test_empty_operands(void **state) {
    struct fixture *f = *state;
    struct ggml_tensor *a = fixture_tensor(f, GGML_TYPE_F32, 8, 4, 1, 1);
    struct ggml_tensor *none = fixture_tensor(f, GGML_TYPE_F32, 8, 0, 1, 1);
    assert_int_equal(fixture_compute(f, ggml_mul_mat(f->ctx, a, none), 2), GGML_STATUS_SUCCESS);
}

// Sums of nothing are 0 whatever way is taken: by few columns, strips or panels.
static void test_no_depth(void **state) {
    static const enum ggml_type types[] = {GGML_TYPE_F32,  GGML_TYPE_F16,  GGML_TYPE_BF16,
                                           GGML_TYPE_Q8_0, GGML_TYPE_Q4_K, GGML_TYPE_IQ3_S};
    static const int64_t n_columns[] = {1, 4, 7, 20, 70};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); ++i) {
        for (size_t c = 0; c < sizeof(n_columns) / sizeof(n_columns[0]); ++c) {
            const int64_t n = n_columns[c];
            struct ggml_tensor *rows = fixture_tensor(f, types[i], 256, 53, 1, 1);
            struct ggml_tensor *columns = fixture_tensor(f, GGML_TYPE_F32, 256, n, 1, 1);
            const size_t step = columns->nb[1];
            struct ggml_tensor *a = ggml_view_2d(f->ctx, rows, 0, 53, rows->nb[1], 0);
            struct ggml_tensor *b = ggml_view_2d(f->ctx, columns, 0, n, step, 0);
            struct ggml_tensor *each = ggml_view_3d(f->ctx, columns, 0, 1, n, step, step, 0);
            struct ggml_tensor *ids = fixture_indices(f, 1, 1, n, 1);
            struct ggml_tensor *nodes[] = {ggml_mul_mat(f->ctx, a, b),
                                           ggml_mul_mat_id(f->ctx, a, each, ids)};
            for (int k = 0; k < 2; ++k) {
                ggml_set_f32(nodes[k], 7);
                assert_int_equal(fixture_compute(f, nodes[k], 2), GGML_STATUS_SUCCESS);
                for (int64_t e = 0; e < ggml_nelements(nodes[k]); ++e)
                    assert_float_equal(ggml_get_f32_1d(nodes[k], (int)e), 0, 0);
            }
        }
    }
}

static void check_experts(struct fixture *f, enum ggml_type type, int64_t n_experts, int64_t slots,
                          int64_t shared, int64_t tokens) {
    struct ggml_tensor *a = fixture_tensor(f, type, 256, 53, n_experts, 1);
    struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, 256, shared ? 1 : slots, tokens, 1);
    struct ggml_tensor *ids = fixture_indices(f, n_experts, slots + 3, tokens, 1);
    struct ggml_tensor *used = ggml_view_2d(f->ctx, ids, slots, tokens, ids->nb[1], 4);
    check(f, ggml_mul_mat_id(f->ctx, a, b, used));
}

static void test_experts(void **state) {
    struct fixture *f = *state;
    check_experts(f, GGML_TYPE_F32, 1, 1, 0, 1);
    check_experts(f, GGML_TYPE_F32, 8, 2, 1, 17);
    check_experts(f, GGML_TYPE_Q4_K, 8, 3, 0, 40);
    check_experts(f, GGML_TYPE_Q5_K, 8, 3, 0, 4);
    check_experts(f, GGML_TYPE_F16, 2, 2, 1, 150);
    check_experts(f, GGML_TYPE_Q8_0, 8, 3, 0, 90);
    check_experts(f, GGML_TYPE_Q2_K, 3, 2, 1, 450);
    check_experts(f, GGML_TYPE_F32, 1, 1, 0, 600);
    struct ggml_tensor *a = fixture_tensor(f, GGML_TYPE_Q8_0, 64, 8, 4, 1);
    struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F16, 64, 2, 5, 1);
    struct ggml_tensor *ids = fixture_indices(f, 4, 2, 5, 1);
    check(f, ggml_mul_mat_id(f->ctx, a, b, ids));
}

static void test_unknown_expert_fails_the_graph(void **state) {
    struct fixture *f = *state;
    struct ggml_tensor *a = fixture_tensor(f, GGML_TYPE_F32, 64, 64, 4, 1);
    struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, 64, 1, 9, 1);
    struct ggml_tensor *ids = fixture_indices(f, 4, 2, 9, 1);
    struct ggml_tensor *node = ggml_mul_mat_id(f->ctx, a, b, ids);
    static const int32_t bad[] = {-1, 4, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 4; ++i) {
        ((int32_t *)ids->data)[11] = bad[i];
        ggml_clear_error();
        assert_int_equal(fixture_compute(f, node, 3), GGML_STATUS_FAILED);
        assert_true(strlen(ggml_last_error()) > 0);
    }
    ((int32_t *)ids->data)[11] = 3;
    check(f, node);
}

// What the builder allows but no kernel computes is told beforehand.
static void test_unsupported_layouts_are_refused(void **state) {
    struct fixture *f = *state;
    struct ggml_tensor *x = fixture_tensor(f, GGML_TYPE_F32, 6, 4, 5, 1);
    struct ggml_tensor *a = ggml_permute(f->ctx, x, 1, 0, 2, 3);
    a->nb[1] = a->nb[0];
    struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, 4, 3, 5, 1);
    struct ggml_tensor *node = ggml_mul_mat(f->ctx, a, b);
    if (!ggml_tensor_error(node)) assert_false(ggml_backend_supports_op(f->cpu, node));
}

// --- repacked weights ----------------------------------------------------------------------------

// Memory that the device offers besides its own, or NULL.
static ggml_backend_buffer_type_t repacked_memory(const struct fixture *f) {
    ggml_backend_dev_t device = ggml_backend_get_device(f->cpu);
    void *entry = ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device),
                                                    "ggml_backend_dev_get_extra_bufts");
    ggml_backend_dev_get_extra_bufts_t get;
    memcpy(&get, &entry, sizeof(get));
    assert_non_null(get);
    return get(device)[0];
}

// A tensor that is repacked, with the data of a plain one.
struct weights {
    struct ggml_context *ctx;
    ggml_backend_buffer_t buffer;
    struct ggml_tensor *tensor;
};

static void open_weights(struct weights *w, const struct fixture *f,
                         const struct ggml_tensor *plain) {
    const size_t size = ggml_nbytes(plain);
    char *data = malloc(size);
    w->ctx = ggml_init((struct ggml_init_params){.mem_size = 4096, .no_alloc = true});
    w->tensor = ggml_dup_tensor(w->ctx, plain);
    w->buffer = ggml_backend_alloc_ctx_tensors_from_buft(w->ctx, repacked_memory(f));
    assert_non_null(w->buffer);
    ggml_backend_tensor_set(w->tensor, plain->data, 0, size);
    ggml_backend_tensor_get(w->tensor, data, 0, size);
    assert_memory_equal(data, plain->data, size);
    free(data);
}

static void close_weights(struct weights *w) {
    ggml_backend_buffer_free(w->buffer);
    ggml_free(w->ctx);
}

// The node with repacked weights is as that with plain ones, but for the order of sums.
static void check_repacked(struct fixture *f, struct ggml_tensor *plain, struct ggml_tensor *node) {
    struct weights w;
    open_weights(&w, f, plain);
    const size_t n = (size_t)ggml_nelements(node);
    double *expected = malloc(n * sizeof(double)), *actual = malloc(n * sizeof(double));
    float *again = malloc(n * sizeof(float));
    assert_int_equal(fixture_compute(f, node, 2), GGML_STATUS_SUCCESS);
    oracle_read(node, expected);
    node->src[0] = w.tensor;
    assert_true(ggml_backend_supports_op(f->cpu, node));
    assert_int_equal(fixture_compute(f, node, 1), GGML_STATUS_SUCCESS);
    oracle_read(node, actual);
    memcpy(again, node->data, n * sizeof(float));
    assert_true(oracle_nmse(actual, expected, (int64_t)n) <= EXACT);
    for (int n_threads = 2; n_threads <= 3; ++n_threads) {
        assert_int_equal(fixture_compute(f, node, n_threads), GGML_STATUS_SUCCESS);
        assert_memory_equal(node->data, again, n * sizeof(float));
    }
    free(expected), free(actual), free(again);
    close_weights(&w);
}

// In the order of what they need: two AVX2, seven AVX-512, two VNNI as well, two DOTPROD.
static const enum ggml_type repacked_types[] = {
    GGML_TYPE_Q2_K,   GGML_TYPE_Q3_K, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1,  GGML_TYPE_Q5_0,
    GGML_TYPE_Q5_1,   GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_TQ2_0, GGML_TYPE_IQ4_NL,
    GGML_TYPE_IQ4_XS, GGML_TYPE_Q8_0, GGML_TYPE_Q6_K};

static int n_repacked_types(void) {
    const int n = (int)(sizeof(repacked_types) / sizeof(repacked_types[0]));
    if (level_has_dotprod()) return n;
    if (level_is_wide()) return level_multiplies_bytes() ? n - 2 : n - 4;
    return level_is_v3() ? 2 : 0;
}

// Rows that fill no panel.
static int64_t odd_rows(void) {
    if (level_has_dotprod()) return 68;
    return level_is_v3() ? 72 : 80;
}

static void test_repacked_weights(void **state) {
    static const int64_t columns[] = {1, 2, 3, 4, 5, 6, 8, 15, 16, 17, 40};
    struct fixture *f = *state;
    assert_true(!repacked_memory(f) == (n_repacked_types() == 0));
    for (int i = 0; i < n_repacked_types(); ++i) {
        const enum ggml_type type = repacked_types[i];
        for (size_t k = 0; k < sizeof(columns) / sizeof(columns[0]); ++k) {
            const int64_t depth = ggml_blck_size(type) == 32 && k % 2 ? 288 : 768;
            struct ggml_tensor *a = fixture_tensor(f, type, depth, odd_rows(), 1, 1);
            struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, depth, columns[k], 1, 1);
            check_repacked(f, a, ggml_mul_mat(f->ctx, a, b));
            struct ggml_tensor *exact = ggml_mul_mat(f->ctx, a, b);
            ggml_prec_set_acc(exact, GGML_PREC_F32);
            check_repacked(f, a, exact);
        }
        ggml_reset(f->ctx);
    }
}

static void test_repacked_experts(void **state) {
    struct fixture *f = *state;
    for (int i = 0; i < n_repacked_types(); ++i) {
        for (int64_t tokens = 1; tokens <= 31; tokens += 15) {
            struct ggml_tensor *a = fixture_tensor(f, repacked_types[i], 256, odd_rows(), 4, 1);
            struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, 256, 1, tokens, 1);
            struct ggml_tensor *ids = fixture_indices(f, 4, 2, tokens, 1);
            check_repacked(f, a, ggml_mul_mat_id(f->ctx, a, b, ids));
        }
    }
}

// A column's results have the same bits whatever columns are beside it.
static void test_repacked_columns_are_alike(void **state) {
    struct fixture *f = *state;
    const int64_t in_fours = level_has_dotprod() ? FEW : 2 * FEW; // not in strips
    for (int i = 0; i < n_repacked_types(); ++i) {
        struct ggml_tensor *a = fixture_tensor(f, repacked_types[i], 512, 16, 1, 1);
        struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, 512, in_fours, 1, 1);
        struct weights w;
        open_weights(&w, f, a);
        struct ggml_tensor *all = ggml_mul_mat(f->ctx, w.tensor, b);
        assert_int_equal(fixture_compute(f, all, 1), GGML_STATUS_SUCCESS);
        for (int64_t n = 1; n < in_fours; ++n) {
            struct ggml_tensor *some = ggml_view_2d(f->ctx, b, 512, n, b->nb[1], 0);
            struct ggml_tensor *node = ggml_mul_mat(f->ctx, w.tensor, some);
            assert_int_equal(fixture_compute(f, node, 1), GGML_STATUS_SUCCESS);
            assert_memory_equal(node->data, all->data, ggml_nbytes(node));
        }
        close_weights(&w);
    }
}

// Only products take repacked weights, and only whole ones.
static void test_what_repacked_weights_are_refused_for(void **state) {
    struct fixture *f = *state;
    if (!repacked_memory(f)) return;
    struct ggml_tensor *a = fixture_tensor(f, GGML_TYPE_Q2_K, 256, 16, 1, 1);
    struct ggml_tensor *odd = fixture_tensor(f, GGML_TYPE_Q2_K, 256, 10, 1, 1);
    struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, 256, 2, 1, 1);
    struct weights w, x;
    open_weights(&w, f, a);
    open_weights(&x, f, odd);
    struct ggml_tensor *part = ggml_view_2d(f->ctx, w.tensor, 256, 8, w.tensor->nb[1], 0);
    struct ggml_tensor *refused[] = {
        ggml_get_rows(f->ctx, w.tensor, fixture_indices(f, 16, 3, 1, 1)),
        ggml_mul_mat(f->ctx, part, b),
        ggml_mul_mat(f->ctx, x.tensor, b),
    };
    for (int i = 0; i < 3; ++i) {
        assert_false(ggml_backend_supports_op(f->cpu, refused[i]));
        assert_int_equal(fixture_compute(f, refused[i], 2), GGML_STATUS_FAILED);
        ggml_clear_error();
    }
    close_weights(&w);
    close_weights(&x);
}

// Of weights that were changed by hand (finding F23 of a security review).
static void test_f23_repacked_weights_outside_their_buffer(void **state) {
    struct fixture *f = *state;
    if (!repacked_memory(f)) return;
    struct ggml_tensor *a = fixture_tensor(f, GGML_TYPE_Q2_K, 256, 16, 1, 1);
    struct ggml_tensor *b = fixture_tensor(f, GGML_TYPE_F32, 256, 2, 1, 1);
    struct weights w;
    open_weights(&w, f, a);
    struct ggml_tensor *node = ggml_mul_mat(f->ctx, w.tensor, b);
    const struct ggml_tensor sound = *w.tensor;
    for (int way = 0; way < 4; ++way) {
        struct ggml_tensor *tensor = w.tensor;
        if (way == 0) tensor->data = (char *)tensor->data + ((size_t)1 << 30);
        if (way == 1) tensor->data = (char *)tensor->data - ((size_t)1 << 30);
        if (way == 2) tensor->ne[2] = INT64_MAX / 2, tensor->nb[3] = 0;
        if (way == 3) tensor->data = (char *)tensor->data + ggml_nbytes(tensor);
        assert_int_equal(fixture_compute(f, node, 1), GGML_STATUS_FAILED);
        assert_non_null(strstr(ggml_last_error(), "beyond its buffer"));
        ggml_clear_error();
        ggml_backend_tensor_set(tensor, a->data, 0, ggml_nbytes(a));
        assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_RANGE);
        ggml_clear_error();
        ggml_backend_tensor_get(tensor, a->data, 0, ggml_nbytes(a));
        assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_RANGE);
        ggml_clear_error();
        *tensor = sound;
    }
    close_weights(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cpu_test_large(test_every_weight_type),
        cpu_test_large(test_few_columns),
        cpu_test(test_few_columns_by_threads),
        cpu_test(test_half_activations),
        cpu_test(test_any_depth),
        cpu_test_large(test_edges_of_blocks),
        cpu_test_large(test_bf16_without_its_instructions),
        cpu_test(test_edges_of_strips),
        cpu_test(test_many_columns_keep_nan_apart),
        cpu_test(test_broadcast_divides),
        cpu_test(test_permuted_views),
        cpu_test(test_rounding_is_what_the_node_permits),
        cpu_test(test_rounded_magnitudes),
        cpu_test(test_largest_sums),
        cpu_test(test_empty_operands),
        cpu_test(test_no_depth),
        cpu_test(test_experts),
        cpu_test(test_unknown_expert_fails_the_graph),
        cpu_test(test_unsupported_layouts_are_refused),
        cpu_test(test_repacked_weights),
        cpu_test(test_repacked_experts),
        cpu_test(test_repacked_columns_are_alike),
        cpu_test(test_what_repacked_weights_are_refused_for),
        cpu_test(test_f23_repacked_weights_outside_their_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
