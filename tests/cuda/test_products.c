// SPDX-License-Identifier: MIT
// Products on tensor cores where rounding activations to F16 is not simple, and which kernel is
// chosen. The conformance cases see to ordinary numbers.
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <math.h>

#include "ggml-shape.h"
#include "tensor_run.h"

enum { M = 33, HOPPER = SIMT_TENSOR_CORES | SIMT_WARPGROUPS };

struct operands {
    struct ggml_tensor a, b, y;
};

static int64_t depth = 96;

static float weight_of(int64_t m, int64_t k) {
    return (float)((m * 7 + k * 5) % 13 - 6) / 4.0f; // exact in F16 and BF16
}
static float activation_of(int64_t n, int64_t k) {
    return (float)((n * 3 + k * 11) % 17 - 8) / 16.0f;
}

static struct operands new_operands(enum ggml_type type, int64_t n, const float *factors) {
    struct operands o = {new_tensor(type, depth, M), new_tensor(GGML_TYPE_F32, depth, n),
                         new_tensor(GGML_TYPE_F32, M, n)};
    for (int64_t m = 0; m < M; ++m) {
        for (int64_t k = 0; k < depth; ++k) {
            uint16_t *to = &((uint16_t *)o.a.data)[m * depth + k];
            *to = type == GGML_TYPE_F16 ? ggml_fp32_to_fp16(weight_of(m, k))
                                        : ggml_fp32_to_bf16(weight_of(m, k)).bits;
        }
    }
    for (int64_t j = 0; j < n; ++j) {
        for (int64_t k = 0; k < depth; ++k)
            ((float *)o.b.data)[j * depth + k] = activation_of(j, k) * factors[j % 4];
    }
    o.y.op = GGML_OP_MUL_MAT;
    return o;
}

static void free_operands(const struct operands *o) {
    free_tensor(&o->a);
    free_tensor(&o->b);
    free_tensor(&o->y);
}

// Columns of sizes that F16 does not have, each with its own; all activations are exact in it after
// a power of two, and so are the sums in F32.
static void check_sizes(enum ggml_type type, int64_t n, const char *kernel, unsigned features) {
    const float factors[4] = {1.0f, ldexpf(1.0f, 70), ldexpf(1.0f, -60), 0.0f};
    struct operands o = new_operands(type, n, factors);
    o.y.src[0] = &o.a;
    o.y.src[1] = &o.b;
    run_node_with(&o.y, kernel, features);
    for (int64_t j = 0; j < n; ++j) {
        for (int64_t m = 0; m < M; ++m) {
            double sum = 0.0;
            for (int64_t k = 0; k < depth; ++k)
                sum += (double)weight_of(m, k) * (double)activation_of(j, k);
            const float expected = (float)sum * factors[j % 4],
                        actual = ((float *)o.y.data)[j * M + m];
            if (actual != expected)
                fail_msg("%s, column %d, row %d: %g, not %g", kernel, (int)j, (int)m,
                         (double)actual, (double)expected);
        }
    }
    free_operands(&o);
}

static void test_sizes(void **state) {
    (void)state;
    check_sizes(GGML_TYPE_F16, 1, "kernel_few_", SIMT_TENSOR_CORES);
    check_sizes(GGML_TYPE_F16, 7, "kernel_few_", SIMT_TENSOR_CORES);
    check_sizes(GGML_TYPE_BF16, 7, "kernel_few_", SIMT_TENSOR_CORES);
    check_sizes(GGML_TYPE_F16, 70, "kernel_tile_", SIMT_TENSOR_CORES);
    check_sizes(GGML_TYPE_BF16, 70, "kernel_tile_", SIMT_TENSOR_CORES);
    check_sizes(GGML_TYPE_F16, 70, "kernel_wide_columns", HOPPER);
    check_sizes(GGML_TYPE_BF16, 130, "kernel_wide_columns", HOPPER);
}

// Rows that take several steps, the last of them not a whole one.
static void check_steps(enum ggml_type type, unsigned features) {
    depth = 2080;
    check_sizes(type, 1, "kernel_few_", features);
    check_sizes(type, 7, "kernel_few_", features);
    check_sizes(type, 9, "kernel_tile_", features);
    depth = 96;
}

static void test_steps(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 3; ++seed) {
        simt_set_seed(seed);
        check_steps(GGML_TYPE_F16, SIMT_TENSOR_CORES);
        check_steps(GGML_TYPE_BF16, SIMT_TENSOR_CORES);
        simt_set_capability(75);
        check_steps(GGML_TYPE_F16, SIMT_TENSOR_F16);
        simt_set_capability(90);
    }
    simt_set_seed(0);
}

// On capability 7.5, which has no BF16.
static void test_turing(void **state) {
    (void)state;
    simt_set_capability(75);
    check_sizes(GGML_TYPE_F16, 1, "kernel_few_", SIMT_TENSOR_F16);
    check_sizes(GGML_TYPE_F16, 7, "kernel_few_", SIMT_TENSOR_F16);
    check_sizes(GGML_TYPE_F16, 70, "kernel_tile_", SIMT_TENSOR_F16);
    check_sizes(GGML_TYPE_BF16, 7, "kernel_mul_mat", SIMT_TENSOR_F16);
    check_sizes(GGML_TYPE_BF16, 70, "kernel_mul_mat", SIMT_TENSOR_F16);
    simt_set_capability(90);
}

// Any bytes but for the halves that are scales.
static void fill_blocks(struct ggml_tensor *t) {
    const size_t size = ggml_type_size(t->type), n = ggml_nbytes(t) / size;
    uint8_t *bytes = t->data;
    uint32_t seed = 3;
    for (size_t i = 0; i < n * size; ++i) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(seed >> 24);
    }
    for (size_t i = 0; i < n; ++i) {
        const uint16_t scale = ggml_fp32_to_fp16(0.01f + 0.001f * (float)(i % 7));
        memcpy(bytes + i * size + (t->type == GGML_TYPE_Q6_K ? 208 : 0), &scale, sizeof(scale));
        if (t->type == GGML_TYPE_Q4_K) memcpy(bytes + i * size + 2, &scale, sizeof(scale));
    }
}

// The same sums in the same order as of mma.sync, bit by bit, also of rows that begin anywhere in a
// sector, and in tiles of both widths; planes share weights.
static void check_alike(enum ggml_type type, int64_t k, int64_t m, int64_t n, int64_t planes,
                        const char *second) {
    struct ggml_tensor a = new_tensor(type, k, m), b = new_tensor_3d(GGML_TYPE_F32, k, n, planes),
                       x = new_tensor_3d(GGML_TYPE_F32, m, n, planes),
                       y = new_tensor_3d(GGML_TYPE_F32, m, n, planes);
    struct simt_work first, finish;
    fill_blocks(&a);
    for (int64_t i = 0; i < k * n * planes; ++i)
        ((float *)b.data)[i] = activation_of(i / k, i % k);
    x.op = y.op = GGML_OP_MUL_MAT;
    x.src[0] = y.src[0] = &a;
    x.src[1] = y.src[1] = &b;
    assert_true(simt_kernel_prepare_for(&first, &y, HOPPER));
    assert_true(simt_kernel_finish(&finish, &first));
    assert_string_equal(simt_kernel_names[finish.kernel], second);
    assert_int_equal(finish.shared, simt_kernel_shared(finish.kernel, HOPPER));
    run_node(&x, "kernel_tile_");
    assert_int_equal(run_node_with(&y, "kernel_wide_columns", HOPPER), 2);
    if (memcmp(x.data, y.data, ggml_nbytes(&y)) != 0) fail_msg("%s: other sums", second);
    free_tensor(&a);
    free_tensor(&b);
    free_tensor(&x);
    free_tensor(&y);
}

static void test_warpgroups(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 3; ++seed) {
        simt_set_seed(seed);
        check_alike(GGML_TYPE_Q4_0, 1120, 130, 70, 1, "kernel_wide_128_Q4_0");
    }
    simt_set_seed(0);
    check_alike(GGML_TYPE_Q8_0, 1120, 130, 130, 1, "kernel_wide_128_Q8_0");
    check_alike(GGML_TYPE_Q4_0, 96, 40, 70, 3, "kernel_wide_128_Q4_0");
    check_alike(GGML_TYPE_Q4_K, 1024, 130, 70, 1, "kernel_wide_128_Q4_K");
    check_alike(GGML_TYPE_Q6_K, 1024, 130, 70, 1, "kernel_wide_128_Q6_K");
    check_alike(GGML_TYPE_Q4_0, 64, 128 * 64, 257, 1, "kernel_wide_256_Q4_0");
}

// --- fused ---------------------------------------------------------------------------------------

// The kernel of fused nodes has to be this one.
static void run_fused(const struct gpu_fused *fused, const char *kernel) {
    struct simt_work work;
    assert_true(simt_fuse_prepare(&work, fused, SIMT_TENSOR_CORES));
    if (strncmp(simt_kernel_names[work.kernel], kernel, strlen(kernel)) != 0)
        fail_msg("%s is chosen, not %s", simt_kernel_names[work.kernel], kernel);
    run_work(&work);
}

static void fill_floats(struct ggml_tensor *t, int64_t first) {
    for (int64_t i = 0; i < ggml_nelements(t); ++i)
        ((float *)t->data)[i] = activation_of(first + i, 3 * i);
}

// The sum of a product and a bias has the bits of the two, one after the other; the bias has a
// column for all or one for each.
static void check_bias(enum ggml_type type, int64_t n, int64_t bias_columns, const char *kernel) {
    const float factors[4] = {1.0f, ldexpf(1.0f, 20), 1.0f, 0.5f};
    struct operands o = new_operands(type, n, factors);
    struct ggml_tensor bias = new_tensor(GGML_TYPE_F32, M, bias_columns),
                       sum = new_tensor(GGML_TYPE_F32, M, n);
    o.y.src[0] = &o.a;
    o.y.src[1] = &o.b;
    fill_floats(&bias, 5);
    run_node(&o.y, kernel);
    const struct gpu_fused fused = {.fusion = GPU_FUSION_bias,
                                    .n = 2,
                                    .nodes = {&o.y, &sum},
                                    .dst = &sum,
                                    .n_operands = 1,
                                    .operands = {&bias}};
    run_fused(&fused, kernel);
    for (int64_t i = 0; i < M * n; ++i) {
        const float expected =
            ((float *)o.y.data)[i] + ((float *)bias.data)[bias_columns > 1 ? i : i % M];
        if (((float *)sum.data)[i] != expected) fail_msg("%s: element %d", kernel, (int)i);
    }
    free_tensor(&bias);
    free_tensor(&sum);
    free_operands(&o);
}

static void test_bias(void **state) {
    (void)state;
    check_bias(GGML_TYPE_F16, 1, 1, "kernel_few_");
    check_bias(GGML_TYPE_F16, 7, 1, "kernel_few_");
    check_bias(GGML_TYPE_BF16, 7, 7, "kernel_few_");
    check_bias(GGML_TYPE_F16, 70, 1, "kernel_tile_");
    check_bias(GGML_TYPE_BF16, 70, 70, "kernel_tile_");
}

// The function of two products has the bits of the three nodes. Sizes of columns that need a scale
// of their own are in both products.
static void check_gated(enum ggml_type type, int64_t k, int64_t m, int64_t n, enum ggml_glu_op op) {
    struct ggml_tensor a = new_tensor(type, k, m), c = new_tensor(type, k, m),
                       b = new_tensor(GGML_TYPE_F32, k, n), x = new_tensor(GGML_TYPE_F32, m, n),
                       gate = new_tensor(GGML_TYPE_F32, m, n),
                       expected = new_tensor(GGML_TYPE_F32, m, n),
                       actual = new_tensor(GGML_TYPE_F32, m, n);
    fill_blocks(&a);
    for (size_t i = 0; i < ggml_nbytes(&c); i += ggml_type_size(type)) // another order of blocks
        memcpy((char *)c.data + i, (char *)a.data + ggml_nbytes(&c) - ggml_type_size(type) - i,
               ggml_type_size(type));
    fill_floats(&b, 1);
    ((float *)b.data)[k / 2] = ldexpf(1.0f, 30);
    x.op = gate.op = GGML_OP_MUL_MAT;
    x.src[0] = &a;
    gate.src[0] = &c;
    x.src[1] = gate.src[1] = &b;
    expected.op = actual.op = GGML_OP_GLU;
    expected.src[0] = actual.src[0] = &x;
    expected.src[1] = actual.src[1] = &gate;
    expected.op_params[0] = actual.op_params[0] = (int32_t)op;
    run_node(&x, "kernel_few_");
    run_node(&gate, "kernel_few_");
    run_node(&expected, "kernel_glu");
    const struct gpu_fused fused = {.fusion = GPU_FUSION_glu,
                                    .n = 3,
                                    .nodes = {&x, &gate, &actual},
                                    .dst = &actual,
                                    .n_operands = 2,
                                    .operands = {&x, &gate}};
    run_fused(&fused, "kernel_few_");
    assert_memory_equal(actual.data, expected.data, ggml_nbytes(&actual));
    const struct ggml_tensor *all[] = {&a, &c, &b, &x, &gate, &expected, &actual};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i)
        free_tensor(all[i]);
}

static void test_gated(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 3; ++seed) {
        simt_set_seed(seed);
        check_gated(GGML_TYPE_Q4_0, 1120, 40, 3, GGML_GLU_OP_SWIGLU);
    }
    simt_set_seed(0);
    check_gated(GGML_TYPE_Q4_K, 512, 33, 8, GGML_GLU_OP_GEGLU);
    check_gated(GGML_TYPE_Q6_K, 256, 17, 1, GGML_GLU_OP_REGLU);
}

// What has no kernel for both: columns for tiles, weights of two types, no tensor cores.
static void test_not_fused(void **state) {
    const float factors[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    struct simt_work work;
    (void)state;
    struct operands x = new_operands(GGML_TYPE_F16, 4, factors),
                    gate = new_operands(GGML_TYPE_F16, 4, factors);
    struct ggml_tensor y = x.y;
    x.y.src[0] = &x.a;
    gate.y.src[0] = &gate.a;
    x.y.src[1] = gate.y.src[1] = &x.b;
    struct gpu_fused fused = {.fusion = GPU_FUSION_glu,
                              .n = 3,
                              .nodes = {&x.y, &gate.y, &y},
                              .dst = &y,
                              .n_operands = 2,
                              .operands = {&x.y, &gate.y}};
    assert_true(simt_fuse_prepare(&work, &fused, SIMT_TENSOR_CORES));
    assert_false(simt_fuse_prepare(&work, &fused, 0));
    gate.a.type = GGML_TYPE_BF16;
    assert_false(simt_fuse_prepare(&work, &fused, SIMT_TENSOR_CORES));
    gate.a.type = GGML_TYPE_F16;
    x.b.ne[1] = x.y.ne[1] = gate.y.ne[1] = y.ne[1] = 9;
    assert_false(simt_fuse_prepare(&work, &fused, SIMT_TENSOR_CORES));
    struct ggml_tensor bias = {.type = GGML_TYPE_F32, .ne = {M, 3, 1, 1}, .nb = {4, 4 * M}};
    fused.fusion = GPU_FUSION_bias;
    fused.operands[0] = &bias;
    assert_false(simt_fuse_prepare(&work, &fused, SIMT_TENSOR_CORES)); // 3 columns for 9
    x.b.ne[1] = x.y.ne[1] = gate.y.ne[1] = y.ne[1] = 4;
    free_operands(&x);
    free_operands(&gate);
}

// Infinities and NaN stay in their column.
static void test_not_finite(void **state) {
    (void)state;
    static const int64_t columns[] = {4, 12};
    for (size_t i = 0; i < 2; ++i) {
        const float factors[4] = {1.0f, INFINITY, NAN, 1.0f};
        const int64_t n = columns[i];
        struct operands o = new_operands(GGML_TYPE_F16, n, factors);
        o.y.src[0] = &o.a;
        o.y.src[1] = &o.b;
        run_node(&o.y, n <= 8 ? "kernel_few_" : "kernel_tile_");
        for (int64_t j = 0; j < n; ++j) {
            for (int64_t m = 0; m < M; ++m) {
                const float actual = ((float *)o.y.data)[j * M + m];
                assert_int_equal(isfinite(actual) != 0, j % 4 == 0 || j % 4 == 3);
            }
        }
        free_operands(&o);
    }
}

// A node that asks for F32, and operands that lie in odd places, stay with the plain kernel.
static void test_choice(void **state) {
    (void)state;
    const float factors[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    struct operands o = new_operands(GGML_TYPE_F16, 4, factors);
    o.y.src[0] = &o.a;
    o.y.src[1] = &o.b;
    run_node(&o.y, "kernel_few_F16");
    o.y.op_params[0] = GGML_PREC_F32;
    run_node(&o.y, "kernel_mul_mat");
    o.y.op_params[0] = GGML_PREC_UNDEFINED;
    o.y.op_params[3] = GGML_PREC_F32;
    run_node(&o.y, "kernel_mul_mat");
    o.y.op_params[3] = GGML_PREC_F16;
    run_node(&o.y, "kernel_few_F16");
    o.b.data = (char *)o.b.data + 4;
    o.b.ne[1] = o.y.ne[1] = 3;
    run_node(&o.y, "kernel_mul_mat");
    o.b.data = (char *)o.b.data - 4;
    free_operands(&o);
    o = new_operands(GGML_TYPE_F16, 65, factors); // more columns than a tile of mma.sync has
    o.y.src[0] = &o.a;
    o.y.src[1] = &o.b;
    run_node_with(&o.y, "kernel_wide_columns", HOPPER);
    o.b.ne[1] = o.y.ne[1] = 64;
    run_node_with(&o.y, "kernel_tile_F16", HOPPER);
    free_operands(&o);
}

// Rounded activations are for the plain kernel.
static void test_rounded_activations(void **state) {
    (void)state;
    struct ggml_tensor a = new_tensor(GGML_TYPE_Q4_0, 64, 32),
                       b = new_tensor(GGML_TYPE_Q8_0, 64, 1), y = new_tensor(GGML_TYPE_F32, 32, 1);
    y.op = GGML_OP_MUL_MAT;
    y.src[0] = &a;
    y.src[1] = &b;
    run_node(&y, "kernel_mul_mat_vec");
    free_tensor(&a);
    free_tensor(&b);
    free_tensor(&y);
}

// A block for each of more rows than a grid has blocks.
static void test_uncountable(void **state) {
    (void)state;
    struct ggml_tensor x = {.type = GGML_TYPE_F32, .ne = {1, INT32_MAX, 1, 1}, .nb = {4, 4}};
    x.nb[2] = x.nb[3] = 4 * (size_t)INT32_MAX;
    struct ggml_tensor y = x;
    y.op = GGML_OP_RMS_NORM;
    y.src[0] = &x;
    assert_true(simt_supports_op(&y));
    x.ne[1] = y.ne[1] = (int64_t)INT32_MAX + 1;
    assert_false(simt_supports_op(&y));
}

// 64 x 64 elements whose rows, or columns, lie side by side.
static struct ggml_tensor square(enum ggml_type type, bool turned) {
    const size_t size = ggml_type_size(type), row = 64 / (size_t)ggml_blck_size(type) * size;
    struct ggml_tensor t = {.type = type, .ne = {64, 64, 1, 1}};
    t.nb[0] = turned ? row : size;
    t.nb[1] = turned ? size : row;
    t.nb[2] = t.nb[3] = 64 * row;
    return t;
}

static bool copies(enum ggml_op op, enum ggml_type type, bool from_turned, bool to_turned) {
    struct ggml_tensor a = square(type, from_turned), node = square(type, to_turned);
    node.op = op;
    node.src[0] = &a;
    return simt_supports_op(&node);
}

// Blocks that don't lie side by side in a row have no elements that could be copied.
static void test_transposed_blocks(void **state) {
    static const enum ggml_op ops[] = {GGML_OP_CONT, GGML_OP_CPY, GGML_OP_DUP};
    (void)state;
    for (int i = 0; i < 3; ++i) {
        assert_true(copies(ops[i], GGML_TYPE_Q8_0, false, false));
        assert_false(copies(ops[i], GGML_TYPE_Q8_0, true, false));
        assert_false(copies(ops[i], GGML_TYPE_Q8_0, false, true));
        assert_true(copies(ops[i], GGML_TYPE_F32, true, false));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),       cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_choice),      cmocka_unit_test(test_rounded_activations),
        cmocka_unit_test(test_uncountable), cmocka_unit_test(test_warpgroups),
        cmocka_unit_test(test_bias),        cmocka_unit_test(test_gated),
        cmocka_unit_test(test_not_fused),   cmocka_unit_test(test_turing),
        cmocka_unit_test(test_steps),       cmocka_unit_test(test_transposed_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
