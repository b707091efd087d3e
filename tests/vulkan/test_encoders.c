// SPDX-License-Identifier: MIT
// Blocks that CPY and SET_ROWS write have the bytes that ggml_quantize_chunk() writes.
#define _POSIX_C_SOURCE 200809L
#include <math.h>

#include "support/vulkan_test.h"

enum { ROW = 768, ROWS = 48 };

static const enum ggml_type types[] = {
    GGML_TYPE_Q4_0,   GGML_TYPE_Q4_1,   GGML_TYPE_Q5_0,  GGML_TYPE_Q5_1,  GGML_TYPE_Q8_0,
    GGML_TYPE_Q2_K,   GGML_TYPE_Q3_K,   GGML_TYPE_Q4_K,  GGML_TYPE_Q5_K,  GGML_TYPE_Q6_K,
    GGML_TYPE_IQ4_NL, GGML_TYPE_IQ4_XS, GGML_TYPE_TQ1_0, GGML_TYPE_TQ2_0, GGML_TYPE_MXFP4,
    GGML_TYPE_NVFP4,  GGML_TYPE_Q1_0,   GGML_TYPE_Q2_0,
};

static ggml_backend_dev_t device;
static float numbers[ROW * ROWS];

static float next_uniform(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(*seed >> 8) / 8388608.0f - 1.0f;
}

// Rows of uniform and of normal numbers, of few values (ties), of one sign, tiny, large, and with
// zeros.
static void fill_numbers(void) {
    uint32_t seed = 7;
    for (int i = 0; i < ROW * ROWS; ++i) {
        const float u = next_uniform(&seed);
        const float sum = u + next_uniform(&seed) + next_uniform(&seed) + next_uniform(&seed);
        switch (i / ROW % 8) {
        case 0: numbers[i] = u; break;
        case 1: numbers[i] = sum; break;
        case 2: numbers[i] = rintf(4.0f * u) / 4.0f; break;
        case 3: numbers[i] = fabsf(sum) + 0.5f; break;
        case 4: numbers[i] = sum * 1e-6f; break;
        case 5: numbers[i] = u * 1000.0f; break;
        case 6: numbers[i] = i % 3 == 0 ? 0.0f : -fabsf(u); break;
        default: numbers[i] = i / 32 % 2 ? sum : 0.0f; break;
        }
    }
}

// What the type keeps of the numbers, as floats.
static void round_numbers(enum ggml_type type, float *out) {
    for (int i = 0; i < ROW * ROWS; ++i) {
        out[i] = numbers[i];
        if (type == GGML_TYPE_F16) out[i] = ggml_fp16_to_fp32(ggml_fp32_to_fp16(numbers[i]));
        if (type == GGML_TYPE_BF16) out[i] = ggml_bf16_to_fp32(ggml_fp32_to_bf16(numbers[i]));
    }
}

static int count_different_blocks(enum ggml_type type, const uint8_t *a, const uint8_t *b) {
    const size_t size = ggml_type_size(type);
    const size_t n = ROW * ROWS / (size_t)ggml_blck_size(type);
    int n_different = 0;
    for (size_t i = 0; i < n; ++i)
        n_different += memcmp(a + i * size, b + i * size, size) != 0;
    return n_different;
}

// Computes the node on the device and compares its bytes.
static void check_node(struct ggml_context *ctx, struct ggml_tensor *node, struct ggml_tensor *a,
                       struct ggml_tensor *rows) {
    static float source[ROW * ROWS];
    static uint8_t expected[ROW * ROWS * 2], actual[ROW * ROWS * 2];
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    ggml_build_forward_expand(graph, node);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, stream);
    assert_non_null(buffer);
    round_numbers(a->type, source);
    vulkan_set(a, source);
    for (int32_t i = 0; rows && i < ROWS; ++i)
        ggml_backend_tensor_set(rows, &i, (size_t)i * sizeof(i), sizeof(i));
    assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get(node, actual, 0, ggml_nbytes(node));
    ggml_quantize_chunk(node->type, source, expected, 0, ROWS, ROW, NULL);
    const int n_different = count_different_blocks(node->type, actual, expected);
    if (n_different > 0)
        fail_msg("%s of %s to %s: %d blocks of %d differ", ggml_op_name(node->op),
                 ggml_type_name(a->type), ggml_type_name(node->type), n_different,
                 (int)(ROW * ROWS / ggml_blck_size(node->type)));
    ggml_backend_buffer_free(buffer);
    ggml_backend_free(stream);
}

static struct ggml_context *new_context(void) {
    return ggml_init((struct ggml_init_params){.mem_size = 1 << 18, .no_alloc = true});
}

static void test_copies(void **state) {
    static const enum ggml_type sources[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16};
    (void)state;
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); ++t) {
        struct ggml_context *ctx = new_context();
        struct ggml_tensor *a = ggml_new_tensor_2d(ctx, sources[t % 3], ROW, ROWS);
        struct ggml_tensor *b = ggml_new_tensor_2d(ctx, types[t], ROW, ROWS);
        check_node(ctx, ggml_cpy(ctx, a, b), a, NULL);
        ggml_free(ctx);
    }
}

static void test_rows(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); ++t) {
        struct ggml_context *ctx = new_context();
        struct ggml_tensor *a = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, ROW, ROWS);
        struct ggml_tensor *b = ggml_new_tensor_2d(ctx, types[t], ROW, ROWS);
        struct ggml_tensor *rows = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, ROWS);
        check_node(ctx, ggml_set_rows(ctx, b, a, rows), a, rows);
        ggml_free(ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_rows),
    };
    ggml_backend_reg_t reg = vulkan_start("none", "");
    if (!reg) return fprintf(stderr, "%s\n", ggml_last_error()), 1;
    device = vulkan_device(reg);
    fill_numbers();
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    vulkan_stop();
    return n_failed;
}
