// SPDX-License-Identifier: MIT
// Which kernels a device gets, by its compute capability and by what the image has code for: names
// of launches, each of which the emulator runs by the rules of that capability.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_test.h"

enum { MOST = 1 << 16, DEPTH = 256, ROWS = 24, N_EXPERTS = 4, KEYS = 40 };

// Plain kernels; mma.sync of F16; of BF16, too; and wgmma.
enum { PLAIN, TURING, AMPERE, HOPPER, FORMS };

// A node: a product of weights with so many columns, one with experts, one whose bias is added by
// the same launch on tensor cores, or attention of so many queries with channels of K and V. Its
// kernel, without "kernel_", by form.
struct node {
    enum { PRODUCT, BIAS, EXPERTS, ATTENTION } op;
    enum ggml_type type;
    int columns, n_k, n_v;
    const char *kernels[FORMS];
};
static const struct node nodes[] = {
#define NODE(op, type, columns, n_k, n_v, ...)                                                     \
    {op, GGML_TYPE_##type, columns, n_k, n_v, {__VA_ARGS__}},
#include "capability_nodes.inl"
};
enum { N_NODES = sizeof(nodes) / sizeof(nodes[0]) };

static struct ggml_tensor *node_of(struct ggml_context *ctx, const struct node *n) {
    const int64_t experts = n->op == EXPERTS ? N_EXPERTS : 1;
    struct ggml_tensor *a =
        n->op == ATTENTION ? NULL : ggml_new_tensor_3d(ctx, n->type, DEPTH, ROWS, experts);
    switch (n->op) {
    case PRODUCT:
        return ggml_mul_mat(ctx, a, ggml_new_tensor_2d(ctx, GGML_TYPE_F32, DEPTH, n->columns));
    case BIAS:
        return ggml_add(
            ctx, ggml_mul_mat(ctx, a, ggml_new_tensor_2d(ctx, GGML_TYPE_F32, DEPTH, n->columns)),
            ggml_new_tensor_1d(ctx, GGML_TYPE_F32, ROWS));
    case EXPERTS:
        return ggml_mul_mat_id(ctx, a, ggml_new_tensor_3d(ctx, GGML_TYPE_F32, DEPTH, 1, n->columns),
                               ggml_new_tensor_2d(ctx, GGML_TYPE_I32, 1, n->columns));
    default:
        return ggml_flash_attn_ext(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F32, n->n_k, n->columns),
                                   ggml_new_tensor_2d(ctx, n->type, n->n_k, KEYS),
                                   ggml_new_tensor_2d(ctx, n->type, n->n_v, KEYS), NULL, 0.1f, 0.0f,
                                   0.0f);
    }
}

// The node alone. Returns how far it is off `expected`, or with none writes its result to `out`.
static double compute(ggml_backend_t stream, const struct node *n, const float *expected,
                      float *out) {
    struct ggml_context *ctx = cuda_context();
    struct ggml_tensor *node = node_of(ctx, n);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, node);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, stream);
    assert_non_null(buffer);
    assert_in_range(ggml_nelements(node), 1, MOST);
    ggml_backend_buffer_clear(buffer, 0xff);
    uint32_t seed = 0;
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        if (t->op == GGML_OP_NONE) cuda_fill(t, ++seed);
    }
    if (ggml_backend_graph_compute(stream, graph) != GGML_STATUS_SUCCESS)
        fail_msg("%s", ggml_last_error());
    const double worst = expected ? cuda_worst(node, expected) : 0.0;
    if (out) cuda_read(node, out);
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
    return worst;
}

static float expected[N_NODES][MOST];

static void find_expected(void) {
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    ggml_backend_t backend = ggml_backend_dev_init(cpu, NULL);
    assert_non_null(backend);
    for (int i = 0; i < N_NODES; ++i)
        compute(backend, &nodes[i], NULL, expected[i]);
    ggml_backend_free(backend);
}

// Activations, weights and what the CPU makes of activations have up to 7 bits after the first.
static double bound_of(const struct node *n) {
    return n->op == ATTENTION ? 0.02 : DEPTH * 3.0 / 256.0;
}

static long count_launches(void) {
    return driver.calls("cuGraphAddKernelNode") + driver.calls("cuLaunchKernel");
}

static void check(const char *capability, int form) {
    setenv("FAKE_CUDA_CAPABILITY", capability, 1);
    ggml_backend_t stream = ggml_backend_dev_init(cuda_device(0), NULL);
    if (!stream) fail_msg("%s: %s", capability, ggml_last_error());
    for (int i = 0; i < N_NODES; ++i) {
        char kernel[64];
        snprintf(kernel, sizeof(kernel), "kernel_%s", nodes[i].kernels[form]);
        const long before = driver.launches(kernel), all_before = count_launches();
        const bool has_own_bias = strstr(kernel, "few_") != NULL;
        const double worst = compute(stream, &nodes[i], expected[i], NULL);
        if (!(worst < bound_of(&nodes[i]))) fail_msg("%s, node %d: %g off", capability, i, worst);
        if (driver.launches(kernel) != before + 1)
            fail_msg("%s, node %d: not by %s", capability, i, kernel);
        if (nodes[i].op == BIAS) assert_int_equal(count_launches() - all_before, 2 - has_own_bias);
    }
    ggml_backend_free(stream);
    cuda_unload();
    unsetenv("FAKE_CUDA_CAPABILITY");
}

static void test_capabilities(void **state) {
    (void)state;
    check("60", PLAIN);
    check("72", PLAIN);
    check("75", TURING);
    check("80", AMPERE);
    check("86", AMPERE);
    check("89", AMPERE);
    check("90", HOPPER);
    check("100", AMPERE);
    check("120", AMPERE);
}

// A driver that takes only images without code for sm_90a, or without tensor cores.
static void test_old_drivers(void **state) {
    (void)state;
    setenv("FAKE_CUDA_PTX", "85", 1);
    check("75", TURING);
    check("90", AMPERE);
    setenv("FAKE_CUDA_PTX", "74", 1);
    check("75", PLAIN);
    check("90", PLAIN);
    unsetenv("FAKE_CUDA_PTX");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_capabilities),
        cmocka_unit_test(test_old_drivers),
    };
    ggml_backend_load_all();
    cuda_find_driver();
    find_expected();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
