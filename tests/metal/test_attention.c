// SPDX-License-Identifier: MIT
// Attention on the Metal plugin: which kernels compute it, on GPUs with matrices of SIMD groups and
// without; keys in parts; what hidden keys have.
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "metal_test.h"

enum { MOST = 1 << 16 };

// Pipelines of the plugin's own kernels are specialised, those of plugins/gpu are not.
static const char *const special = "newFunctionWithName:constantValues:error:";

struct attention {
    int64_t dk, dv, n, keys, heads, kv_heads, sequences;
    enum ggml_type k_type, v_type;
    bool mask, sinks;
    float max_bias, softcap;
};

static struct ggml_tensor *build(struct ggml_context *c, const struct attention *a) {
    struct ggml_tensor *q =
        ggml_new_tensor_4d(c, GGML_TYPE_F32, a->dk, a->n, a->heads, a->sequences);
    struct ggml_tensor *k =
        ggml_new_tensor_4d(c, a->k_type, a->dk, a->keys, a->kv_heads, a->sequences);
    struct ggml_tensor *v =
        ggml_new_tensor_4d(c, a->v_type, a->dv, a->keys, a->kv_heads, a->sequences);
    struct ggml_tensor *mask = a->mask ? ggml_new_tensor_2d(c, GGML_TYPE_F16, a->keys, a->n) : NULL;
    struct ggml_tensor *out =
        ggml_flash_attn_ext(c, q, k, v, mask, 1.0f / sqrtf((float)a->dk), a->max_bias, a->softcap);
    if (a->sinks)
        ggml_flash_attn_ext_add_sinks(out, ggml_new_tensor_1d(c, GGML_TYPE_F32, a->heads));
    return out;
}

// Values that follow from the element's number, by ggml's own encoders.
static void fill(struct ggml_tensor *t) {
    const int64_t n = ggml_nelements(t);
    float *values = malloc((size_t)n * sizeof(*values));
    void *coded = malloc(ggml_nbytes(t));
    assert_true(values && coded);
    for (int64_t i = 0; i < n; ++i)
        values[i] = sinf((float)i * 0.37f + (float)(i / t->ne[0]) * 0.11f);
    ggml_quantize_chunk(t->type, values, coded, 0, n / t->ne[0], t->ne[0], NULL);
    ggml_backend_tensor_set(t, coded, 0, ggml_nbytes(t));
    free(values);
    free(coded);
}

// Query i sees the keys up to that many from the end, but for every seventh.
static bool is_hidden(const struct attention *a, int64_t query, int64_t key) {
    return key > a->keys - a->n + query || key % 7 == 3;
}

static void fill_mask(struct ggml_tensor *t, const struct attention *a) {
    for (int64_t i = 0; i < a->n; ++i) {
        for (int64_t j = 0; j < a->keys; ++j) {
            const ggml_fp16_t x =
                ggml_fp32_to_fp16(is_hidden(a, i, j) ? -INFINITY : -0.125f * (float)(j % 5));
            ggml_backend_tensor_set(t, &x, (size_t)(i * a->keys + j) * sizeof(x), sizeof(x));
        }
    }
}

// V of key 3, which nobody sees, and of the last key, which the last query alone sees. F32.
static void spoil(struct ggml_tensor *v, bool last) {
    const float nan = NAN;
    const int64_t key = last ? v->ne[1] - 1 : 3;
    ggml_backend_tensor_set(v, &nan, (size_t)key * v->nb[1] + 4, sizeof(nan));
}

enum { CLEAN, HIDDEN, LAST }; // what is not a number

static bool is_full; // the device has no memory left when the graph is computed

// As much as there is, but for a kilobyte.
static ggml_backend_buffer_t fill_device(ggml_backend_dev_t device) {
    size_t left, total;
    ggml_backend_dev_memory(device, &left, &total);
    return ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(device), left - 1024);
}

static void compute(ggml_backend_dev_t device, const struct attention *a, int spoiled, float *out) {
    struct ggml_context *c = metal_context();
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    struct ggml_tensor *y = build(c, a);
    struct ggml_cgraph *graph = ggml_new_graph(c);
    ggml_build_forward_expand(graph, y);
    assert_true(ggml_nelements(y) <= MOST);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(c, stream);
    assert_non_null(buffer);
    ggml_backend_buffer_clear(buffer, 0xff);
    for (int s = 0; s < 3; ++s)
        fill(y->src[s]);
    if (a->mask) fill_mask(y->src[3], a);
    if (a->sinks) fill(y->src[4]);
    if (spoiled) spoil(y->src[2], spoiled == LAST);
    ggml_backend_buffer_t rest = is_full ? fill_device(device) : NULL;
    assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get(y, out, 0, ggml_nbytes(y));
    ggml_backend_buffer_free(rest);
    ggml_backend_buffer_free(buffer);
    ggml_backend_free(stream);
    ggml_free(c);
}

// On the device, by so many kernels of the plugin's own.
static void run(const struct attention *a, int family, int spoiled, int n_own, float *out) {
    char text[8];
    snprintf(text, sizeof(text), "%d", family);
    setenv("FAKE_METAL_APPLE", text, 1);
    setenv("FAKE_METAL_UNIFIED", family > 0 ? "1" : "0", 1); // AMD's have memory of their own
    ggml_backend_reg_t reg = metal_load();
    const long before = metal.calls(special);
    compute(metal_device(reg, 0), a, spoiled, out);
    assert_int_equal(metal.calls(special) - before, n_own);
    metal_unload(reg);
    assert_int_equal(metal.live(), 0);
}

// As the CPU device does it, which rounds some of it to halves.
static void check_where(bool full, const struct attention *a, int family, int n_own) {
    static float expected[MOST], got[MOST];
    compute(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), a, CLEAN, expected);
    is_full = full;
    run(a, family, CLEAN, n_own, got);
    is_full = false;
    for (int64_t i = 0; i < a->dv * a->n * a->heads * a->sequences; ++i) {
        if (!(fabsf(got[i] - expected[i]) < 3e-3f))
            fail_msg("%g for %g at %d", (double)got[i], (double)expected[i], (int)i);
    }
}

static void check(const struct attention *a, int family, int n_own) {
    check_where(false, a, family, n_own);
}

#define F32 GGML_TYPE_F32
#define F16 GGML_TYPE_F16
#define Q8 GGML_TYPE_Q8_0
#define Q4 GGML_TYPE_Q4_0

static void test_tokens(void **state) {
    (void)state;
    check(&(struct attention){64, 64, 1, 65, 4, 4, 1, F16, F16, true, false, 0, 0}, 7, 1);
    check(&(struct attention){128, 128, 1, 40, 8, 1, 2, Q8, Q8, true, true, 0, 3}, 7, 1);
    check(&(struct attention){128, 64, 2, 300, 2, 1, 1, Q4, F16, true, false, 8, 0}, 0, 1);
    check(&(struct attention){72, 136, 3, 33, 2, 1, 1, F32, F32, false, true, 0, 0}, 7, 1);
    check(&(struct attention){576, 512, 1, 37, 4, 1, 1, F16, F16, false, false, 0, 0}, 7, 1);
}

// Two kernels where parts are added up.
static void test_parts(void **state) {
    (void)state;
    check(&(struct attention){64, 64, 1, 700, 4, 2, 1, F16, Q8, true, true, 0, 0}, 7, 2);
    check(&(struct attention){64, 32, 20, 600, 2, 1, 1, F16, F16, true, false, 0, 0}, 7, 2);
    check(&(struct attention){64, 32, 20, 600, 2, 1, 1, F16, F16, true, false, 0, 0}, 6, 2);
}

// Without scratch memory keys are not split.
static void test_full(void **state) {
    (void)state;
    setenv("FAKE_METAL_MEMORY", "2000000", 1);
    check_where(true, &(struct attention){64, 32, 20, 600, 2, 1, 1, F16, F16, true, false, 0, 0}, 6,
                1);
    unsetenv("FAKE_METAL_MEMORY");
}

// Nor where the device has no buffer that is large enough.
static void test_no_large_buffer(void **state) {
    (void)state;
    setenv("FAKE_METAL_MAX_BUFFER", "300000", 1);
    check(&(struct attention){32, 128, 1, 2560, 64, 1, 1, Q4, Q4, false, false, 0, 0}, 6, 1);
    unsetenv("FAKE_METAL_MAX_BUFFER");
}

static void test_prompts(void **state) {
    (void)state;
    check(&(struct attention){64, 64, 40, 70, 4, 2, 1, F16, F16, true, false, 0, 0}, 7, 1);
    check(&(struct attention){128, 128, 9, 33, 4, 4, 1, Q8, Q4, true, true, 4, 5}, 7, 1);
    check(&(struct attention){68, 200, 33, 32, 1, 1, 2, F32, F16, false, false, 0, 0}, 7, 1);
    check(&(struct attention){64, 64, 40, 70, 4, 2, 1, F16, F16, true, false, 0, 0}, 6, 1);
    check(&(struct attention){66, 64, 40, 70, 4, 2, 1, F16, F16, true, false, 0, 0}, 7, 0);
}

// A hidden key's NaN is nowhere, another's is with those who see it.
static void test_hidden(void **state) {
    static float clean[MOST], got[MOST];
    const struct attention a = {64, 64, 40, 70, 2, 1, 1, F32, F32, true, false, 0, 0};
    (void)state;
    for (int family = 6; family <= 7; ++family) {
        run(&a, family, CLEAN, 1, clean);
        run(&a, family, HIDDEN, 1, got);
        for (int64_t i = 0; i < a.dv * a.heads * a.n; ++i)
            assert_true(fabsf(got[i] - clean[i]) < 1e-6f);
        run(&a, family, LAST, 1, got);
        for (int64_t i = 0; i < a.dv * a.heads * a.n; ++i) {
            const bool sees = i >= a.dv * a.heads * (a.n - 1) && i % a.dv == 1;
            assert_true(sees ? isnan(got[i]) : fabsf(got[i] - clean[i]) < 1e-6f);
        }
    }
}

// A graph and a plan of it; whether both were computed.
static bool try_both(ggml_backend_dev_t device, const struct attention *a) {
    struct ggml_context *c = metal_context();
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    struct ggml_tensor *y = build(c, a);
    struct ggml_cgraph *graph = ggml_new_graph(c);
    ggml_build_forward_expand(graph, y);
    ggml_backend_buffer_t buffer = stream ? ggml_backend_alloc_ctx_tensors(c, stream) : NULL;
    bool right = buffer && ggml_backend_graph_compute(stream, graph) == GGML_STATUS_SUCCESS;
    ggml_backend_graph_plan_t plan = buffer ? ggml_backend_graph_plan_create(stream, graph) : NULL;
    if (plan) {
        right &= ggml_backend_graph_plan_compute(stream, plan) == GGML_STATUS_SUCCESS;
        ggml_backend_synchronize(stream);
        ggml_backend_graph_plan_free(stream, plan);
    }
    ggml_backend_buffer_free(buffer);
    ggml_backend_free(stream);
    ggml_free(c);
    return right && plan;
}

// Wherever a call fails, with scratch memory and two kernels on the way, it is told and nothing is
// left.
static void test_faults(void **state) {
    const struct attention a = {64, 64, 1, 700, 4, 2, 1, F16, Q8, true, true, 0, 0};
    const int codes[] = {FAKE_METAL_OUT_OF_MEMORY, FAKE_METAL_DEVICE_REMOVED};
    (void)state;
    for (int i = 0; i < 2; ++i) {
        const char *failed = "";
        for (long n = 0; failed; ++n) {
            metal.fail_after(n, codes[i]);
            ggml_clear_error();
            ggml_backend_reg_t reg = metal_load();
            const bool right = reg && ggml_backend_reg_dev_count(reg) > 0 &&
                               try_both(ggml_backend_reg_dev_get(reg, 0), &a);
            const bool told = ggml_last_status() != GGML_HOST_OK;
            failed = metal.failed();
            metal_unload(reg);
            metal.fail_after(-1, 0);
            assert_int_equal(metal.live(), 0);
            if (!failed && !right) fail_msg("%s", ggml_last_error());
            if (!right && !told) fail_msg("a failure of %s is not told", failed);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens),          cmocka_unit_test(test_parts),
        cmocka_unit_test(test_prompts),         cmocka_unit_test(test_hidden),
        cmocka_unit_test(test_faults),          cmocka_unit_test(test_full),
        cmocka_unit_test(test_no_large_buffer),
    };
    metal_find_runtime();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
