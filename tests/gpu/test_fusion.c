// SPDX-License-Identifier: MIT
// What is found to be fused, the plan's bookkeeping, and the order, with a plugin that has a launch
// for everything and computes nothing.
#include <stdio.h>

#include "gpu/graph/plan.h"
#include "gpu/graph/reorder.h"
#include "gpu_test.h"
#include "support/node_order.h"
#include "support/seen.h"

enum { WIDTH = 64, TOKENS = 5, HEADS = 4, N_ORDERS = 12 };

// --- a plugin ------------------------------------------------------------------------------------

struct launch {
    const struct ggml_tensor *dst;
    struct gpu_fused fused; // n == 0: the node alone
};

static bool declines; // every fusion, after it has appended a launch

static bool add(struct gpu_plan *plan, const struct ggml_tensor *node) {
    struct launch *launch = gpu_plan_append(plan);
    if (!launch) return false;
    assert_int_equal(launch->fused.n, 0);
    launch->dst = node;
    return true;
}

static bool fuse(struct gpu_plan *plan, const struct gpu_fused *fused) {
    struct launch *launch = gpu_plan_append(plan);
    if (!launch) return false;
    launch->dst = fused->dst;
    launch->fused = *fused;
    return !declines;
}

static const struct gpu_planner planner = {
    .name = "test",
    .launch_bytes = sizeof(struct launch),
    .add = add,
    .fuse =
        {
#define GPU_FUSION_ROW(name, ...) [GPU_FUSION_##name] = fuse,
#include "gpu/graph/fuse_list.inl"
        },
};
static const struct gpu_planner planner_alone = {
    .name = "test", .launch_bytes = sizeof(struct launch), .add = add};

static struct launch *launch_at(const struct gpu_plan *plan, int i) {
    return &((struct launch *)plan->launches)[i];
}

// --- patterns ------------------------------------------------------------------------------------

static struct ggml_tensor *matrix(struct ggml_context *ctx, int64_t n, int64_t m) {
    return ggml_new_tensor_2d(ctx, GGML_TYPE_F32, n, m);
}

static struct ggml_tensor *make_norm(struct ggml_context *ctx) {
    struct ggml_tensor *y = ggml_rms_norm(ctx, matrix(ctx, WIDTH, TOKENS), 1e-5f);
    y = ggml_mul(ctx, y, matrix(ctx, WIDTH, 1));
    return ggml_add(ctx, y, matrix(ctx, WIDTH, TOKENS));
}

static struct ggml_tensor *make_bias(struct ggml_context *ctx) {
    struct ggml_tensor *y = ggml_mul_mat(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F16, WIDTH, 40),
                                         matrix(ctx, WIDTH, TOKENS));
    return ggml_add(ctx, matrix(ctx, 40, TOKENS), y);
}

static struct ggml_tensor *make_glu(struct ggml_context *ctx) {
    struct ggml_tensor *x = matrix(ctx, WIDTH, TOKENS);
    struct ggml_tensor *gate =
        ggml_mul_mat(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_Q4_0, WIDTH, 37), x);
    struct ggml_tensor *up =
        ggml_mul_mat(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_Q4_0, WIDTH, 37), x);
    return ggml_glu_split(ctx, gate, up, GGML_GLU_OP_SWIGLU);
}

static struct ggml_tensor *make_add_chain(struct ggml_context *ctx) {
    struct ggml_tensor *y = matrix(ctx, WIDTH - 1, TOKENS);
    for (int i = 0; i < 5; ++i)
        y = ggml_add(ctx, y, matrix(ctx, WIDTH - 1, TOKENS));
    return y;
}

static struct ggml_tensor *make_rope_rows(struct ggml_context *ctx) {
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

static const struct pattern {
    enum gpu_fusion_number fusion;
    struct ggml_tensor *(*make)(struct ggml_context *ctx);
    int n_nodes;    // that compute
    int n_fused;    // views included
    int n_operands; // beside the sources of the first
} patterns[] = {
    {GPU_FUSION_norm, make_norm, 3, 3, 2},
    {GPU_FUSION_glu, make_glu, 3, 3, 2},
    {GPU_FUSION_bias, make_bias, 2, 2, 1},
    {GPU_FUSION_add_chain, make_add_chain, 5, 5, 6},
    {GPU_FUSION_rope_rows, make_rope_rows, 2, 3, 1},
    {GPU_FUSION_mask, make_mask, 3, 3, 1},
};

enum { N_PATTERNS = sizeof(patterns) / sizeof(patterns[0]) };

static struct ggml_cgraph *graph_of(struct ggml_context *ctx, struct ggml_tensor *result) {
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, result);
    return graph;
}

static int count(const struct gpu_planner *plugin, const struct ggml_cgraph *graph,
                 uint32_t disabled) {
    struct gpu_plan plan;
    const struct ggml_graph view = seen(graph);
    gpu_plan_init(&plan, plugin, disabled);
    assert_int_equal(gpu_plan_graph(&plan, &view), GGML_STATUS_SUCCESS);
    const int n = plan.n_launches;
    gpu_plan_free(&plan);
    return n;
}

// --- tests ---------------------------------------------------------------------------------------

static void test_patterns_are_found(void **state) {
    (void)state;
    for (int i = 0; i < N_PATTERNS; ++i) {
        const struct pattern *p = &patterns[i];
        struct ggml_context *ctx = gpu_test_context();
        struct ggml_tensor *result = p->make(ctx);
        const struct ggml_graph view = seen(graph_of(ctx, result));
        struct gpu_plan plan;
        gpu_plan_init(&plan, &planner, 0);
        assert_int_equal(gpu_plan_graph(&plan, &view), GGML_STATUS_SUCCESS);
        assert_int_equal(plan.n_launches, 1);
        const struct gpu_fused *fused = &launch_at(&plan, 0)->fused;
        assert_int_equal(fused->fusion, p->fusion);
        assert_int_equal(fused->n, p->n_fused);
        assert_int_equal(fused->n_operands, p->n_operands);
        assert_ptr_equal(fused->dst, result);
        assert_false(fused->indirect);
        gpu_plan_free(&plan);
        ggml_free(ctx);
    }
}

// By name, by "1", because the plugin has no kernel, or because it declines this launch.
static void test_fusions_are_switched_off(void **state) {
    int n_fusions;
    const struct gpu_fusion *fusions = gpu_fusions(&n_fusions);
    (void)state;
    assert_int_equal(n_fusions, N_PATTERNS);
    assert_int_equal(gpu_fusions_named(""), 0);
    assert_int_equal(gpu_fusions_named("none,normal"), 0);
    for (int i = 0; i < N_PATTERNS; ++i) {
        const struct pattern *p = &patterns[i];
        struct ggml_context *ctx = gpu_test_context();
        struct ggml_cgraph *graph = graph_of(ctx, p->make(ctx));
        const uint32_t named = gpu_fusions_named(fusions[p->fusion].name);
        assert_int_equal(named, 1u << p->fusion);
        assert_int_equal(count(&planner, graph, ~named), 1);
        assert_true(count(&planner, graph, named) > 1);
        assert_int_equal(count(&planner, graph, gpu_fusions_named("1")), p->n_nodes);
        assert_int_equal(count(&planner_alone, graph, 0), p->n_nodes);
        declines = true;
        assert_int_equal(count(&planner, graph, 0), p->n_nodes);
        declines = false;
        ggml_free(ctx);
    }
}

// What is used elsewhere, or a result of the graph, has to be written.
static void test_used_results_are_not_fused(void **state) {
    (void)state;
    for (int i = 0; i < N_PATTERNS; ++i) {
        struct ggml_context *ctx = gpu_test_context();
        struct ggml_cgraph *graph = graph_of(ctx, patterns[i].make(ctx));
        int first = 0;
        while (ggml_op_is_empty(graph->nodes[first]->op))
            ++first;
        graph->nodes[first]->flags |= GGML_TENSOR_FLAG_OUTPUT;
        assert_true(count(&planner, graph, 0) > 1);
        graph->nodes[first]->flags &= ~GGML_TENSOR_FLAG_OUTPUT;
        ggml_build_forward_expand(graph, ggml_neg(ctx, graph->nodes[first]));
        assert_true(count(&planner, graph, 0) > 2);
        ggml_free(ctx);
    }
}

// A product whose matrix is the other's result, or a view of it, has to wait for that one. A view
// need not name its tensor as a source.
static void test_dependent_products_are_not_fused(void **state) {
    (void)state;
    for (int i = 0; i < 4; ++i) {
        struct ggml_context *ctx = gpu_test_context();
        struct ggml_tensor *x = matrix(ctx, WIDTH, WIDTH), *view = matrix(ctx, WIDTH, WIDTH);
        struct ggml_tensor *first = ggml_mul_mat(ctx, matrix(ctx, WIDTH, WIDTH), x);
        struct ggml_tensor *second = ggml_mul_mat(ctx, i < 2 ? first : view, x);
        view->view_src = first;
        struct ggml_cgraph *graph = graph_of(ctx, first);
        ggml_build_forward_expand(graph,
                                  ggml_glu_split(ctx, i % 2 ? second : first,
                                                 i % 2 ? first : second, GGML_GLU_OP_SWIGLU));
        assert_int_equal(count(&planner, graph, 0), 3);
        ggml_free(ctx);
    }
}

// The result may not lie where the launch still reads; a glu is made in the place of a product
// then.
static void test_overlap(void **state) {
    static char memory[1 << 16];
    (void)state;
    struct ggml_context *ctx = gpu_test_context();
    struct ggml_tensor *y = make_bias(ctx), *product = y->src[1];
    struct ggml_cgraph *graph = graph_of(ctx, y);
    struct ggml_tensor *placed[] = {y->src[0], product->src[0], product->src[1], product};
    for (int i = 0; i < 4; ++i)
        placed[i]->data = memory + 8192 * i;
    y->data = product->data;
    assert_int_equal(count(&planner, graph, 0), 1);
    y->data = (char *)product->src[1]->data + 256;
    assert_int_equal(count(&planner, graph, 0), 2);
    y->data = y->src[0]->data; // element by element
    assert_int_equal(count(&planner, graph, 0), 1);
    y->data = (char *)y->src[0]->data + 16;
    assert_int_equal(count(&planner, graph, 0), 2);

    struct ggml_tensor *glu = make_glu(ctx), *x = glu->src[0], *gate = glu->src[1];
    graph = graph_of(ctx, glu);
    struct ggml_tensor *of_glu[] = {x->src[0], gate->src[0], x->src[1], x, gate};
    for (int i = 0; i < 5; ++i)
        of_glu[i]->data = memory + 8192 * i;
    glu->data = x->src[1]->data;
    const struct ggml_graph view = seen(graph);
    struct gpu_plan plan;
    gpu_plan_init(&plan, &planner, 0);
    assert_int_equal(gpu_plan_graph(&plan, &view), GGML_STATUS_SUCCESS);
    assert_int_equal(plan.n_launches, 1);
    assert_true(launch_at(&plan, 0)->fused.indirect);
    gpu_plan_free(&plan);
    x->data = glu->data; // no place is left
    assert_int_equal(count(&planner, graph, 0), 3);
    ggml_free(ctx);
}

static int count_in_order(struct ggml_cgraph *graph) {
    struct ggml_tensor **before = copy_nodes(graph);
    struct ggml_graph view = seen(graph);
    struct gpu_plan plan;
    gpu_plan_init(&plan, &planner, 0);
    gpu_reorder(&view, &plan);
    gpu_plan_free(&plan);
    expect_legal_order(before, graph);
    free(before);
    return count(&planner, graph, 0);
}

// Nodes that belong together are brought together, wherever they stand, and nothing overtakes what
// it depends on.
static void test_order(void **state) {
    (void)state;
    for (int i = 0; i < N_PATTERNS; ++i) {
        int n_scattered = 0;
        for (uint32_t seed = 0; seed < N_ORDERS; ++seed) {
            struct ggml_context *ctx = gpu_test_context();
            struct ggml_cgraph *graph = graph_of(ctx, patterns[i].make(ctx));
            for (int k = 0; k < 3; ++k)
                ggml_build_forward_expand(graph, ggml_abs(ctx, ggml_neg(ctx, matrix(ctx, 8, 8))));
            shuffle_nodes(graph, seed);
            n_scattered += count(&planner, graph, 0) > 7;
            assert_int_equal(count_in_order(graph), 7);
            ggml_free(ctx);
        }
        assert_true(n_scattered > 0);
    }
}

// What stands between the nodes of a fusion goes before them if they need it.
static void test_what_is_needed_goes_first(void **state) {
    (void)state;
    struct ggml_context *ctx = gpu_test_context();
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    struct ggml_tensor *norm = ggml_rms_norm(ctx, matrix(ctx, WIDTH, TOKENS), 1e-5f);
    ggml_build_forward_expand(graph, norm);
    struct ggml_tensor *weight = ggml_neg(ctx, matrix(ctx, WIDTH, 1));
    ggml_build_forward_expand(graph, weight);
    ggml_build_forward_expand(graph, ggml_abs(ctx, matrix(ctx, WIDTH, TOKENS)));
    ggml_build_forward_expand(graph, ggml_mul(ctx, norm, weight));
    assert_int_equal(count(&planner, graph, 0), 4);
    assert_int_equal(count_in_order(graph), 3);
    assert_ptr_equal(graph->nodes[0], weight);
    ggml_free(ctx);
}

// Nodes stay apart if one between them is needed by the second and has to come after the first: it
// writes what the first reads.
static void test_what_can_not_be_moved(void **state) {
    (void)state;
    struct ggml_context *ctx = gpu_test_context();
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    struct ggml_tensor *x = matrix(ctx, WIDTH, TOKENS);
    struct ggml_tensor *norm = ggml_rms_norm(ctx, x, 1e-5f);
    ggml_build_forward_expand(graph, norm);
    struct ggml_tensor *weight = ggml_neg_inplace(ctx, x);
    ggml_build_forward_expand(graph, weight);
    ggml_build_forward_expand(graph, ggml_mul(ctx, norm, weight));
    assert_int_equal(count_in_order(graph), 3);
    assert_ptr_equal(graph->nodes[0], norm);
    ggml_free(ctx);
}

// More launches than there is room for at first are kept; scratch memory is counted per node.
static void test_plans_grow(void **state) {
    enum { N = 1000 };
    struct gpu_plan plan;
    struct ggml_tensor node = {.type = GGML_TYPE_F32};
    (void)state;
    gpu_plan_init(&plan, &planner, 0);
    for (int i = 0; i < N; ++i) {
        assert_true(add(&plan, &node));
        launch_at(&plan, i)->fused.n_operands = i;
    }
    assert_int_equal(plan.n_launches, N);
    for (int i = 0; i < N; ++i)
        assert_int_equal(launch_at(&plan, i)->fused.n_operands, i);
    assert_int_equal(gpu_plan_scratch(&plan, 1), 0);
    assert_int_equal(gpu_plan_scratch(&plan, 257), 256);
    assert_int_equal(plan.scratch_bytes, 768);
    plan.scratch_used = 0; // the next node
    assert_int_equal(gpu_plan_scratch(&plan, 100), 0);
    assert_int_equal(plan.scratch_bytes, 768);
    gpu_plan_clear(&plan);
    assert_int_equal(plan.n_launches, 0);
    assert_int_equal(plan.scratch_bytes, 0);
    gpu_plan_free(&plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns_are_found),
        cmocka_unit_test(test_fusions_are_switched_off),
        cmocka_unit_test(test_used_results_are_not_fused),
        cmocka_unit_test(test_dependent_products_are_not_fused),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_what_is_needed_goes_first),
        cmocka_unit_test(test_what_can_not_be_moved),
        cmocka_unit_test(test_plans_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
