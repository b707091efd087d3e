// SPDX-License-Identifier: MIT
// Products on the Metal plugin: which kernels compute them, on GPUs with matrices of SIMD groups
// and without; experts of which some have many columns and some pairs have none.
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "metal_test.h"

enum { K = 68, M = 70, MOST = M * 96 };

// Pipelines of the plugin's own kernels are specialised, those of plugins/gpu are not.
static const char *const special = "newFunctionWithName:constantValues:error:";

struct product {
    int64_t k, m, n, experts, used; // experts 0: none; used: of each column of n
    enum ggml_type type;
};

static struct ggml_tensor *build(struct ggml_context *c, const struct product *p) {
    const int64_t experts = p->experts ? p->experts : 1;
    struct ggml_tensor *a = ggml_new_tensor_3d(c, p->type, p->k, p->m, experts);
    if (!p->experts) return ggml_mul_mat(c, a, ggml_new_tensor_2d(c, GGML_TYPE_F32, p->k, p->n));
    struct ggml_tensor *b = ggml_new_tensor_3d(c, GGML_TYPE_F32, p->k, p->used, p->n);
    struct ggml_tensor *ids = ggml_new_tensor_2d(c, GGML_TYPE_I32, p->used, p->n);
    return ggml_mul_mat_id(c, a, b, ids);
}

// Most columns go to the first expert, so that one has more than a tile of them. The last pair has
// an expert that there isn't.
static void fill_ids(struct ggml_tensor *ids, int64_t experts, bool all_known) {
    int32_t values[256];
    const int64_t n = ggml_nelements(ids);
    for (int64_t i = 0; i < n; ++i)
        values[i] = i % 5 ? 0 : (int32_t)(i / 5 % experts);
    if (!all_known) values[n - 1] = (int32_t)experts;
    ggml_backend_tensor_set(ids, values, 0, (size_t)n * sizeof(*values));
}

static void fill_weights(struct ggml_tensor *a) {
    const int64_t n = ggml_nelements(a);
    float *values = malloc((size_t)n * sizeof(*values));
    void *coded = malloc(ggml_nbytes(a));
    assert_true(values && coded);
    for (int64_t i = 0; i < n; ++i)
        values[i] = sinf((float)i * 0.37f);
    ggml_quantize_chunk(a->type, values, coded, 0, n / a->ne[0], a->ne[0], NULL);
    ggml_backend_tensor_set(a, coded, 0, ggml_nbytes(a));
    free(values);
    free(coded);
}

static void compute(ggml_backend_dev_t device, const struct product *p, bool all_known,
                    float *out) {
    struct ggml_context *c = metal_context();
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    struct ggml_tensor *y = build(c, p);
    struct ggml_cgraph *graph = ggml_new_graph(c);
    ggml_build_forward_expand(graph, y);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(c, stream);
    assert_non_null(buffer);
    ggml_backend_buffer_clear(buffer, 0xff);
    fill_weights(y->src[0]);
    metal_fill(y->src[1], 3);
    if (p->experts) fill_ids(y->src[2], p->experts, all_known);
    assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get(y, out, 0, ggml_nbytes(y));
    ggml_backend_buffer_free(buffer);
    ggml_backend_free(stream);
    ggml_free(c);
}

// Results of the device as those of the CPU device, by the plugin's own kernels or not.
static void check(const struct product *p, int family, bool is_own) {
    static float expected[MOST], got[MOST];
    char text[8];
    const int64_t n = p->m * p->n * (p->experts ? p->used : 1);
    assert_true(n <= MOST);
    setenv("GGML_CPU_DISABLE_ROUNDING", "1", 1);
    compute(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), p, true, expected);
    snprintf(text, sizeof(text), "%d", family);
    setenv("FAKE_METAL_APPLE", text, 1);
    setenv("FAKE_METAL_UNIFIED", family > 0 ? "1" : "0", 1); // AMD's have memory of their own
    ggml_backend_reg_t reg = metal_load();
    const long before = metal.calls(special);
    compute(metal_device(reg, 0), p, !p->experts, got);
    assert_int_equal(metal.calls(special) - before, is_own);
    metal_unload(reg);
    assert_int_equal(metal.live(), 0);
    for (int64_t i = 0; i < n; ++i) {
        if (p->experts && i >= n - p->m)
            assert_true(isnan(got[i]));
        else if (!(fabsf(got[i] - expected[i]) < 2e-4f))
            fail_msg("%g for %g at %d", (double)got[i], (double)expected[i], (int)i);
    }
}

static void test_tiles(void **state) {
    (void)state;
    check(&(struct product){K, M, 33, 0, 0, GGML_TYPE_F32}, 7, true);
    check(&(struct product){K, M, 33, 0, 0, GGML_TYPE_F32}, 6, false);
    check(&(struct product){K, M, 9, 0, 0, GGML_TYPE_BF16}, 7, true);
    check(&(struct product){64, M, 33, 0, 0, GGML_TYPE_Q4_0}, 7, true);
    check(&(struct product){256, M, 10, 0, 0, GGML_TYPE_Q6_K}, 7, true);
    check(&(struct product){67, M, 33, 0, 0, GGML_TYPE_F16}, 7, false); // no multiple of four
}

static void test_vectors(void **state) {
    (void)state;
    for (int64_t n = 1; n <= 8; n += 7) {
        check(&(struct product){K, M, n, 0, 0, GGML_TYPE_F16}, 7, true);
        check(&(struct product){256, M, n, 0, 0, GGML_TYPE_Q4_K}, 0, true);
    }
}

static void test_experts(void **state) {
    (void)state;
    check(&(struct product){K, M, 1, 4, 2, GGML_TYPE_F16}, 7, true);  // vectors
    check(&(struct product){K, M, 48, 4, 2, GGML_TYPE_F16}, 7, true); // tiles
    check(&(struct product){64, M, 48, 3, 2, GGML_TYPE_Q8_0}, 7, true);
    check(&(struct product){64, M, 48, 3, 2, GGML_TYPE_Q8_0}, 6, true); // vectors
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_experts),
    };
    metal_find_runtime();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
