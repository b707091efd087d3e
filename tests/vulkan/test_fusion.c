// SPDX-License-Identifier: MIT
// Nodes that one launch computes together: which are recognised, and that the
// results are those of the nodes one by one.
#define _POSIX_C_SOURCE 200809L
#include <math.h>

#include "ggml-cpu.h"
#include "gpu/graph/reorder.h"
#include "plan/plan.h"
#include "support/node_order.h"
#include "support/seen.h"
#include "support/vulkan_test.h"

enum { WIDTH = 64, TOKENS = 5, HEADS = 4 };

static struct ggml_tensor *matrix(struct ggml_context *ctx, int64_t n, int64_t m) {
    return ggml_new_tensor_2d(ctx, GGML_TYPE_F32, n, m);
}

static struct ggml_tensor *make_norm(struct ggml_context *ctx) {
    struct ggml_tensor *y = ggml_rms_norm(ctx, matrix(ctx, WIDTH, TOKENS), 1e-5f);
    return ggml_mul(ctx, y, matrix(ctx, WIDTH, 1));
}

// Rows that no vector load fits, and a term for each token.
static struct ggml_tensor *make_norm_add(struct ggml_context *ctx) {
    struct ggml_tensor *y = ggml_rms_norm(ctx, matrix(ctx, WIDTH - 1, TOKENS), 1e-5f);
    y = ggml_mul(ctx, y, matrix(ctx, WIDTH - 1, 1));
    return ggml_add(ctx, y, matrix(ctx, WIDTH - 1, TOKENS));
}

static struct ggml_tensor *make_bias(struct ggml_context *ctx) {
    struct ggml_tensor *y = ggml_mul_mat(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F16, WIDTH, 40),
                                         matrix(ctx, WIDTH, TOKENS));
    return ggml_add(ctx, y, matrix(ctx, 40, 1));
}

static struct ggml_tensor *make_residual(struct ggml_context *ctx) {
    struct ggml_tensor *y = ggml_mul_mat(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_Q8_0, WIDTH, 40),
                                         matrix(ctx, WIDTH, TOKENS));
    return ggml_add(ctx, matrix(ctx, 40, TOKENS), y);
}

static struct ggml_tensor *make_glu_of(struct ggml_context *ctx, enum ggml_type type,
                                       enum ggml_glu_op op) {
    struct ggml_tensor *x = matrix(ctx, WIDTH, TOKENS);
    struct ggml_tensor *gate = ggml_mul_mat(ctx, ggml_new_tensor_2d(ctx, type, WIDTH, 37), x);
    struct ggml_tensor *up = ggml_mul_mat(ctx, ggml_new_tensor_2d(ctx, type, WIDTH, 37), x);
    return ggml_glu_split(ctx, gate, up, op);
}

static struct ggml_tensor *make_swiglu(struct ggml_context *ctx) {
    return make_glu_of(ctx, GGML_TYPE_Q4_0, GGML_GLU_OP_SWIGLU);
}

static struct ggml_tensor *make_geglu(struct ggml_context *ctx) {
    return make_glu_of(ctx, GGML_TYPE_F32, GGML_GLU_OP_GEGLU);
}

static struct ggml_tensor *make_chain(struct ggml_context *ctx) {
    struct ggml_tensor *y = matrix(ctx, WIDTH - 1, TOKENS);
    for (int i = 0; i < 5; ++i)
        y = ggml_add(ctx, y, matrix(ctx, WIDTH - 1, TOKENS));
    return y;
}

static struct ggml_tensor *make_rows(struct ggml_context *ctx) {
    struct ggml_tensor *y =
        ggml_rope(ctx, ggml_new_tensor_3d(ctx, GGML_TYPE_F32, WIDTH, HEADS, TOKENS),
                  ggml_new_tensor_1d(ctx, GGML_TYPE_I32, TOKENS), WIDTH - 8, GGML_ROPE_TYPE_NEOX);
    struct ggml_tensor *cache = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, WIDTH * HEADS, 11);
    return ggml_set_rows(ctx, cache, ggml_reshape_2d(ctx, y, WIDTH * HEADS, TOKENS),
                         ggml_new_tensor_1d(ctx, GGML_TYPE_I64, TOKENS));
}

static struct ggml_tensor *make_mask(struct ggml_context *ctx) {
    struct ggml_tensor *x = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 33, TOKENS, HEADS);
    struct ggml_tensor *y = ggml_add(ctx, ggml_scale(ctx, x, 0.3f), matrix(ctx, 33, TOKENS));
    return ggml_soft_max(ctx, y);
}

static const struct {
    const char *fusion;
    struct ggml_tensor *(*make)(struct ggml_context *ctx);
    int n_nodes; // that compute
} patterns[] = {
    {"norm", make_norm, 2},       {"norm", make_norm_add, 3},  {"bias", make_bias, 2},
    {"bias", make_residual, 2},   {"glu", make_swiglu, 3},     {"glu", make_geglu, 3},
    {"add_chain", make_chain, 5}, {"rope_rows", make_rows, 2}, {"mask", make_mask, 3},
};

enum { N_PATTERNS = sizeof(patterns) / sizeof(patterns[0]) };

static struct ggml_context *new_context(void) {
    const struct ggml_init_params params = {.mem_size = 1 << 20, .no_alloc = true};
    return ggml_init(params);
}

static struct ggml_cgraph *graph_of(struct ggml_context *ctx, struct ggml_tensor *result) {
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, result);
    return graph;
}

// --- what is recognised --------------------------------------------------------------------------

static const struct gvk_features features = {
    .subgroup_arithmetic = true,
    .cpu = true,
    .subgroup_size = 8,
    .max_group_size = 1024,
    .max_groups = {65535, 65535, 65535},
    .max_shared_bytes = 32768,
    .max_range_bytes = 1 << 27,
    .min_storage_alignment = 16,
};

static int count_dispatches(const struct ggml_cgraph *graph, uint32_t disabled) {
    struct gvk_plan plan;
    const struct ggml_graph view = seen(graph);
    gvk_plan_init(&plan, &features);
    plan.base.fusions_disabled = disabled;
    assert_int_equal(gvk_plan_graph(&plan, &view), GGML_STATUS_SUCCESS);
    const int n = gvk_plan_count(&plan);
    gvk_plan_free(&plan);
    return n;
}

static void test_patterns_are_one_launch(void **state) {
    (void)state;
    for (int i = 0; i < N_PATTERNS; ++i) {
        struct ggml_context *ctx = new_context();
        struct ggml_cgraph *graph = graph_of(ctx, patterns[i].make(ctx));
        assert_int_equal(count_dispatches(graph, 0), 1);
        assert_int_equal(count_dispatches(graph, UINT32_MAX), patterns[i].n_nodes);
        ggml_free(ctx);
    }
}

// What is used elsewhere, or a result of the graph, has to be written.
static void test_used_results_are_not_fused(void **state) {
    (void)state;
    for (int i = 0; i < N_PATTERNS; ++i) {
        struct ggml_context *ctx = new_context();
        struct ggml_cgraph *graph = graph_of(ctx, patterns[i].make(ctx));
        int first = 0;
        while (ggml_op_is_empty(graph->nodes[first]->op))
            ++first;
        graph->nodes[first]->flags |= GGML_TENSOR_FLAG_OUTPUT;
        assert_true(count_dispatches(graph, 0) > 1);
        graph->nodes[first]->flags &= ~GGML_TENSOR_FLAG_OUTPUT;
        ggml_build_forward_expand(graph, ggml_neg(ctx, graph->nodes[first]));
        assert_true(count_dispatches(graph, 0) > 2);
        ggml_free(ctx);
    }
}

// The result may not lie where the launch still reads.
static void test_overlap_is_not_fused(void **state) {
    static char memory[1 << 16];
    (void)state;
    struct ggml_context *ctx = new_context();
    struct ggml_tensor *y = make_bias(ctx);
    struct ggml_cgraph *graph = graph_of(ctx, y);
    struct ggml_tensor *product = y->src[0];
    y->src[1]->data = memory;
    product->src[0]->data = memory + 8192;
    product->src[1]->data = memory + 32768;
    product->data = memory + 49152;
    y->data = product->data;
    assert_int_equal(count_dispatches(graph, 0), 1);
    y->data = (char *)product->src[1]->data + 256;
    assert_int_equal(count_dispatches(graph, 0), 2);
    ggml_free(ctx);
}

// A glu that lies where the operand of its products was is made elsewhere and copied.
static void test_glu_over_its_operand(void **state) {
    static char memory[1 << 16];
    (void)state;
    struct ggml_context *ctx = new_context();
    struct ggml_tensor *y = make_swiglu(ctx), *x = y->src[0], *gate = y->src[1];
    struct ggml_cgraph *graph = graph_of(ctx, y);
    struct ggml_tensor *placed[] = {x->src[0], gate->src[0], x->src[1], x, gate};
    for (int i = 0; i < 5; ++i)
        placed[i]->data = memory + 8192 * i;
    y->data = x->src[1]->data;
    struct gvk_plan plan;
    const struct ggml_graph view = seen(graph);
    gvk_plan_init(&plan, &features);
    assert_int_equal(gvk_plan_graph(&plan, &view), GGML_STATUS_SUCCESS);
    assert_int_equal(gvk_plan_count(&plan), 2);
    assert_ptr_equal(gvk_plan_at(&plan, 0)->operands[0].tensor, x);
    assert_ptr_equal(gvk_plan_at(&plan, 1)->operands[0].tensor, y);
    assert_ptr_equal(gvk_plan_at(&plan, 1)->operands[1].tensor, x);
    gvk_plan_free(&plan);
    x->data = y->data; // no place is left
    assert_int_equal(count_dispatches(graph, 0), 3);
    ggml_free(ctx);
}

// --- what is brought together

enum { N_OTHERS = 6, N_ORDERS = 12 };

// The pattern among nodes that have nothing to do with it, in an order that the seed decides.
static struct ggml_cgraph *scatter(struct ggml_context *ctx, int pattern, uint32_t seed,
                                   struct ggml_tensor **out_result) {
    *out_result = patterns[pattern].make(ctx);
    struct ggml_cgraph *graph = graph_of(ctx, *out_result);
    for (int i = 0; i < N_OTHERS / 2; ++i)
        ggml_build_forward_expand(graph, ggml_abs(ctx, ggml_neg(ctx, matrix(ctx, WIDTH, TOKENS))));
    shuffle_nodes(graph, seed);
    return graph;
}

static void reorder(struct ggml_cgraph *graph, uint32_t disabled) {
    struct gvk_plan plan;
    struct ggml_graph view = seen(graph);
    gvk_plan_init(&plan, &features);
    plan.base.fusions_disabled = disabled;
    gpu_reorder(&view, &plan.base);
    gvk_plan_free(&plan);
}

static void test_scattered_patterns_are_one_launch(void **state) {
    (void)state;
    for (int i = 0; i < N_PATTERNS; ++i) {
        int n_scattered = 0;
        for (uint32_t seed = 0; seed < N_ORDERS; ++seed) {
            struct ggml_tensor *result;
            struct ggml_context *ctx = new_context();
            struct ggml_cgraph *graph = scatter(ctx, i, seed, &result);
            struct ggml_tensor **before = copy_nodes(graph);
            n_scattered += count_dispatches(graph, 0) > 1 + N_OTHERS;
            reorder(graph, 0);
            expect_legal_order(before, graph);
            assert_int_equal(count_dispatches(graph, 0), 1 + N_OTHERS);
            free(before);
            ggml_free(ctx);
        }
        assert_true(n_scattered > N_ORDERS / 2);
    }
}

// Chains side by side, two nodes apart everywhere: only fusion is a reason to move any.
static void test_disabled_fusions_move_nothing(void **state) {
    (void)state;
    struct ggml_context *ctx = new_context();
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    struct ggml_tensor *a = matrix(ctx, WIDTH, TOKENS), *b = matrix(ctx, WIDTH, TOKENS);
    for (int i = 0; i < 5; ++i) {
        a = ggml_add(ctx, a, matrix(ctx, WIDTH, TOKENS));
        b = ggml_neg(ctx, b);
        ggml_build_forward_expand(graph, a);
        ggml_build_forward_expand(graph, b);
    }
    struct ggml_tensor **before = copy_nodes(graph);
    const size_t bytes = (size_t)graph->n_nodes * sizeof(*before);
    reorder(graph, UINT32_MAX);
    assert_memory_equal(graph->nodes, before, bytes);
    reorder(graph, 0);
    assert_memory_not_equal(graph->nodes, before, bytes);
    assert_int_equal(count_dispatches(graph, 0), 1 + 5);
    free(before);
    ggml_free(ctx);
}

// A node between that needs the first and is needed by the last can't go anywhere.
static void test_what_is_needed_between_stays(void **state) {
    (void)state;
    struct ggml_context *ctx = new_context();
    struct ggml_tensor *x = matrix(ctx, WIDTH, TOKENS);
    struct ggml_tensor *sum = ggml_add(ctx, x, matrix(ctx, WIDTH, TOKENS));
    struct ggml_tensor *view = ggml_view_tensor(ctx, x);
    struct ggml_cgraph *graph = graph_of(ctx, sum);
    ggml_build_forward_expand(graph, ggml_cpy(ctx, matrix(ctx, WIDTH, TOKENS), x));
    ggml_build_forward_expand(graph, ggml_add(ctx, sum, view));
    struct ggml_tensor **before = copy_nodes(graph);
    reorder(graph, 0);
    expect_legal_order(before, graph);
    assert_int_equal(count_dispatches(graph, 0), 3);
    free(before);
    ggml_free(ctx);
}

// --- what comes out ------------------------------------------------------------------------------

// Small numbers, different in each tensor; as positions and rows 0, 1, 2 ...
static void fill(struct ggml_tensor *t, uint32_t seed) {
    const int64_t n = ggml_nelements(t);
    float *numbers = malloc((size_t)n * sizeof(float));
    char *data = calloc(1, ggml_nbytes(t));
    for (int64_t i = 0; i < n; ++i) {
        seed = seed * 1664525u + 1013904223u;
        numbers[i] = (float)(seed >> 8) / (float)(1 << 23) - 1;
        if (t->type == GGML_TYPE_I32) ((int32_t *)(void *)data)[i] = (int32_t)i;
        if (t->type == GGML_TYPE_I64) ((int64_t *)(void *)data)[i] = (i * 3 + 1) % 11;
    }
    if (t->type == GGML_TYPE_F32) {
        memcpy(data, numbers, ggml_nbytes(t));
    } else if (t->type != GGML_TYPE_I32 && t->type != GGML_TYPE_I64) {
        ggml_quantize_chunk(t->type, numbers, data, 0, ggml_nrows(t), t->ne[0], NULL);
    }
    ggml_backend_tensor_set(t, data, 0, ggml_nbytes(t));
    free(numbers);
    free(data);
}

// The caller frees them.
static float *read_floats(const struct ggml_tensor *t) {
    const int64_t n = ggml_nelements(t);
    float *numbers = malloc((size_t)n * sizeof(float));
    char *data = malloc(ggml_nbytes(t));
    ggml_backend_tensor_get(t, data, 0, ggml_nbytes(t));
    if (t->type == GGML_TYPE_F16)
        ggml_fp16_to_fp32_row((const ggml_fp16_t *)(const void *)data, numbers, n);
    else
        memcpy(numbers, data, ggml_nbytes(t));
    free(data);
    return numbers;
}

static void expect_close(int pattern, const float *got, const float *expected, int64_t n) {
    for (int64_t k = 0; k < n; ++k) {
        if (!(fabsf(got[k] - expected[k]) <= 1e-5f * fmaxf(1, fabsf(expected[k]))))
            fail_msg("%s %d, element %d: %g, not %g", patterns[pattern].fusion, pattern, (int)k,
                     (double)got[k], (double)expected[k]);
    }
}

// The result as floats; the caller frees it.
static float *compute(ggml_backend_dev_t device, struct ggml_tensor *(*make)(struct ggml_context *),
                      bool over_operand, int64_t *out_n) {
    struct ggml_context *ctx = new_context();
    struct ggml_tensor *result = make(ctx);
    struct ggml_cgraph *graph = graph_of(ctx, result);
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    assert_non_null(stream);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, stream);
    assert_non_null(buffer);
    if (over_operand) result->data = result->src[0]->src[1]->data;
    uint32_t seed = 1;
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        if (t->op == GGML_OP_NONE) fill(t, seed++);
    }
    assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
    *out_n = ggml_nelements(result);
    float *numbers = read_floats(result);
    ggml_backend_free(stream);
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
    return numbers;
}

static void test_results_are_the_same(void **state) {
    (void)state;
    ggml_backend_dev_t device = vulkan_device(vulkan_start("none", ""));
    for (int i = 0; device && i < N_PATTERNS; ++i) {
        int64_t n, same_n;
        setenv("GGML_VULKAN_DISABLE_FUSION", "", 1);
        float *fused = compute(device, patterns[i].make, false, &n);
        setenv("GGML_VULKAN_DISABLE_FUSION", i % 2 ? "1" : patterns[i].fusion, 1);
        float *alone = compute(device, patterns[i].make, false, &same_n);
        assert_int_equal(n, same_n);
        expect_close(i, fused, alone, n);
        free(fused);
        free(alone);
    }
    unsetenv("GGML_VULKAN_DISABLE_FUSION");
    vulkan_stop();
}

static void test_glu_over_its_operand_is_right(void **state) {
    (void)state;
    ggml_backend_dev_t device = vulkan_device(vulkan_start("record", ""));
    for (int i = 0; device && i < N_PATTERNS; ++i) {
        if (strcmp(patterns[i].fusion, "glu") != 0) continue;
        int64_t n, same_n;
        float *apart = compute(device, patterns[i].make, false, &n);
        const int n_dispatches = vulkan_n_dispatches();
        float *over = compute(device, patterns[i].make, true, &same_n);
        assert_int_equal(vulkan_n_dispatches() - n_dispatches, 2);
        assert_memory_equal(over, apart, (size_t)n * sizeof(float));
        free(over);
        free(apart);
    }
    vulkan_stop();
}

// What a scattered pattern computes through a scheduler, twice; the caller frees it.
static float *compute_scattered(ggml_backend_dev_t device, int pattern, int64_t *out_n) {
    struct ggml_tensor *result;
    struct ggml_context *ctx = new_context();
    struct ggml_cgraph *graph = scatter(ctx, pattern, 5, &result);
    ggml_backend_t streams[2] = {ggml_backend_dev_init(device, NULL), ggml_backend_cpu_init()};
    ggml_backend_buffer_t buffer =
        ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(device), 1 << 20);
    ggml_backend_sched_t sched = ggml_backend_sched_new(streams, NULL, 2, 0, false, false);
    assert_true(streams[0] && streams[1] && buffer && sched);
    struct ggml_tallocr places = ggml_tallocr_new(buffer);
    uint32_t seed = 1;
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        if (t->op != GGML_OP_NONE) continue;
        assert_int_equal(ggml_tallocr_alloc(&places, t), GGML_STATUS_SUCCESS);
        fill(t, seed++);
    }
    ggml_set_output(result);
    const int n_recorded = vulkan_n_recorded();
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(ggml_backend_sched_graph_compute(sched, graph), GGML_STATUS_SUCCESS);
        ggml_backend_sched_reset(sched);
    }
    assert_int_equal(vulkan_n_recorded(), n_recorded + 1);
    *out_n = ggml_nelements(result);
    float *numbers = read_floats(result);
    ggml_backend_sched_free(sched);
    ggml_backend_free(streams[0]);
    ggml_backend_free(streams[1]);
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
    return numbers;
}

static void test_scattered_results_are_the_same(void **state) {
    (void)state;
    ggml_backend_dev_t device = vulkan_device(vulkan_start("record", ""));
    for (int i = 0; device && i < N_PATTERNS; ++i) {
        int64_t n, same_n;
        int n_dispatches = vulkan_n_dispatches();
        float *together = compute_scattered(device, i, &n);
        assert_int_equal(vulkan_n_dispatches() - n_dispatches, 1 + N_OTHERS);
        setenv("GGML_VULKAN_DISABLE_REORDER", "1", 1);
        n_dispatches = vulkan_n_dispatches();
        float *apart = compute_scattered(device, i, &same_n);
        assert_true(vulkan_n_dispatches() - n_dispatches > 1 + N_OTHERS);
        unsetenv("GGML_VULKAN_DISABLE_REORDER");
        assert_int_equal(n, same_n);
        expect_close(i, together, apart, n);
        free(together);
        free(apart);
    }
    vulkan_stop();
}

static void test_names(void **state) {
    (void)state;
    ggml_backend_dev_count(); // attaches the host
    vulkan_start("none", "");
    setenv("GGML_VULKAN_DISABLE_FUSION", "1", 1);
    assert_int_equal(gvk_fusions_disabled(), UINT32_MAX);
    for (int i = 0; i < N_PATTERNS; ++i) {
        struct ggml_context *ctx = new_context();
        struct ggml_cgraph *graph = graph_of(ctx, patterns[i].make(ctx));
        setenv("GGML_VULKAN_DISABLE_FUSION", patterns[i].fusion, 1);
        assert_true(count_dispatches(graph, gvk_fusions_disabled()) > 1);
        ggml_free(ctx);
    }
    unsetenv("GGML_VULKAN_DISABLE_FUSION");
    assert_int_equal(gvk_fusions_disabled(), 0);
    vulkan_stop();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns_are_one_launch),
        cmocka_unit_test(test_used_results_are_not_fused),
        cmocka_unit_test(test_overlap_is_not_fused),
        cmocka_unit_test(test_glu_over_its_operand),
        cmocka_unit_test(test_scattered_patterns_are_one_launch),
        cmocka_unit_test(test_disabled_fusions_move_nothing),
        cmocka_unit_test(test_what_is_needed_between_stays),
        cmocka_unit_test(test_results_are_the_same),
        cmocka_unit_test(test_glu_over_its_operand_is_right),
        cmocka_unit_test(test_scattered_results_are_the_same),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
