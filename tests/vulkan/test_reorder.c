// SPDX-License-Identifier: MIT
// The order that the plugin prefers, without a device: legal, the same each time, better, and no
// more memory than is reasonable.
#define _POSIX_C_SOURCE 200809L
#include "gpu/graph/reorder.h"

#include "base/mem.h"
#include "ggml-cpu.h"
#include "plan/plan.h"
#include "support/node_order.h"
#include "support/seen.h"
#include "support/transformer.h"
#include "support/vulkan_test.h"

enum { WIDTH = 32, ROWS = 4, N_SEEDS = 60 };

static const struct gvk_features features = {
    .subgroup_arithmetic = true,
    .subgroup_size = 32,
    .max_group_size = 1024,
    .max_groups = {65535, 65535, 65535},
    .max_shared_bytes = 32768,
    .max_range_bytes = 1 << 27,
    .min_storage_alignment = 16,
};

static void reorder(struct ggml_cgraph *graph) {
    struct gvk_plan plan;
    struct ggml_graph view = seen(graph);
    gvk_plan_init(&plan, &features);
    gpu_reorder(&view, &plan.base);
    assert_int_equal(gvk_plan_count(&plan), 0);
    gvk_plan_free(&plan);
}

static int count_dispatches(const struct ggml_cgraph *graph) {
    struct gvk_plan plan;
    const struct ggml_graph view = seen(graph);
    gvk_plan_init(&plan, &features);
    assert_int_equal(gvk_plan_graph(&plan, &view), GGML_STATUS_SUCCESS);
    const int n = gvk_plan_count(&plan);
    gvk_plan_free(&plan);
    return n;
}

static struct ggml_context *new_context(void) {
    const struct ggml_init_params params = {.mem_size = 1 << 20, .no_alloc = true};
    return ggml_init(params);
}

static uint32_t next(uint32_t *seed, uint32_t n) {
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

// --- random graphs

enum { N_ROOTS = 6, N_STEPS = 60 };

struct random_graph {
    struct ggml_context *ctx;
    struct ggml_cgraph *graph;
    struct ggml_tensor *roots[N_ROOTS];           // given from outside
    struct ggml_tensor *known[N_STEPS + N_ROOTS]; // of WIDTH x ROWS
    struct ggml_tensor *ids;
    int n_known;
    uint32_t seed;
};

static struct ggml_tensor *any(struct random_graph *r) {
    const int recent = 10 < r->n_known ? 10 : r->n_known;
    const bool old = next(&r->seed, 4) == 0;
    return r->known[old ? (int)next(&r->seed, (uint32_t)r->n_known)
                        : r->n_known - 1 - (int)next(&r->seed, (uint32_t)recent)];
}

static struct ggml_tensor *half_of(struct random_graph *r, struct ggml_tensor *t) {
    const size_t offset = next(&r->seed, 3) * (ROWS / 4) * t->nb[1];
    return ggml_view_2d(r->ctx, t, t->ne[0], ROWS / 2, t->nb[1], offset);
}

// What a node that writes into memory of others returns is used like any result, or not at all.
static struct ggml_tensor *write_step(struct random_graph *r) {
    struct ggml_context *ctx = r->ctx;
    struct ggml_tensor *into = r->roots[next(&r->seed, N_ROOTS)];
    switch (next(&r->seed, 4)) {
    case 0: return ggml_set_rows(ctx, into, half_of(r, any(r)), r->ids);
    case 1:
        ggml_build_forward_expand(r->graph, ggml_cpy(ctx, half_of(r, any(r)), half_of(r, into)));
        return ggml_abs(ctx, any(r));
    case 2: return ggml_add_inplace(ctx, into, any(r));
    default:
        return ggml_set_inplace(ctx, into, half_of(r, any(r)), into->nb[1], into->nb[2],
                                into->nb[3], into->nb[1]);
    }
}

static struct ggml_tensor *step(struct random_graph *r) {
    struct ggml_context *ctx = r->ctx;
    switch (next(&r->seed, 9)) {
    case 0: return ggml_mul(ctx, ggml_rms_norm(ctx, any(r), 1e-5f), any(r));
    case 1: return ggml_add(ctx, ggml_add(ctx, any(r), any(r)), any(r));
    case 2: return ggml_soft_max(ctx, ggml_add(ctx, ggml_scale(ctx, any(r), 0.5f), any(r)));
    case 3: return ggml_reshape_2d(ctx, ggml_neg(ctx, any(r)), WIDTH, ROWS);
    case 4: return ggml_add(ctx, any(r), any(r));
    case 5: return ggml_cont_2d(ctx, ggml_transpose(ctx, any(r)), WIDTH, ROWS);
    case 6: return ggml_neg(ctx, any(r));
    default: return write_step(r);
    }
}

static void make_random(struct random_graph *r, uint32_t seed) {
    memset(r, 0, sizeof(*r));
    r->seed = seed;
    r->ctx = new_context();
    r->graph = ggml_new_graph(r->ctx);
    r->ids = ggml_new_tensor_1d(r->ctx, GGML_TYPE_I32, ROWS / 2);
    ggml_set_input(r->ids);
    for (int i = 0; i < N_ROOTS; ++i) {
        r->roots[i] = ggml_new_tensor_2d(r->ctx, GGML_TYPE_F32, WIDTH, ROWS);
        ggml_set_input(r->roots[i]);
        ggml_set_output(r->roots[i]);
        r->known[r->n_known++] = r->roots[i];
    }
    for (int i = 0; i < N_STEPS; ++i) {
        struct ggml_tensor *t = step(r);
        ggml_build_forward_expand(r->graph, t);
        if (next(&r->seed, 8) == 0) ggml_set_output(t);
        r->known[r->n_known++] = t;
    }
}

static void fill_roots(struct random_graph *r) {
    const int32_t ids[ROWS / 2] = {3, 1};
    float values[WIDTH * ROWS];
    uint32_t seed = 7;
    ggml_backend_tensor_set(r->ids, ids, 0, sizeof(ids));
    for (int i = 0; i < N_ROOTS; ++i) {
        for (int k = 0; k < WIDTH * ROWS; ++k)
            values[k] = (float)next(&seed, 2000) / 1000 - 1;
        if (r->roots[i]->buffer) ggml_backend_tensor_set(r->roots[i], values, 0, sizeof(values));
    }
}

static void test_random_orders_are_legal(void **state) {
    (void)state;
    int n_changed = 0;
    for (uint32_t seed = 0; seed < N_SEEDS; ++seed) {
        struct random_graph r;
        make_random(&r, seed);
        shuffle_nodes(r.graph, seed);
        struct ggml_tensor **before = copy_nodes(r.graph);
        const int n_nodes = r.graph->n_nodes, n_dispatches = count_dispatches(r.graph);
        reorder(r.graph);
        assert_int_equal(r.graph->n_nodes, n_nodes);
        expect_legal_order(before, r.graph);
        assert_true(count_dispatches(r.graph) <= n_dispatches);
        struct ggml_tensor **once = copy_nodes(r.graph);
        n_changed += memcmp(before, once, (size_t)n_nodes * sizeof(*once)) != 0;
        memcpy(r.graph->nodes, before, (size_t)n_nodes * sizeof(*before));
        reorder(r.graph);
        assert_memory_equal(r.graph->nodes, once, (size_t)n_nodes * sizeof(*once));
        free(once);
        free(before);
        ggml_free(r.ctx);
    }
    assert_true(n_changed > N_SEEDS / 2);
}

// Values of the roots and results after the graph was computed; the caller frees them.
static float *compute(ggml_backend_t cpu, struct random_graph *r) {
    const size_t bytes = WIDTH * ROWS * sizeof(float);
    char *values = calloc((size_t)r->n_known, bytes);
    assert_non_null(values);
    fill_roots(r);
    assert_int_equal(ggml_backend_graph_compute(cpu, r->graph), GGML_STATUS_SUCCESS);
    for (int i = 0; i < r->n_known; ++i) {
        if (r->known[i]->flags & GGML_TENSOR_FLAG_OUTPUT)
            ggml_backend_tensor_get(r->known[i], values + (size_t)i * bytes, 0, bytes);
    }
    return (float *)(void *)values;
}

// Tensors that lie where the graph's allocator put them, or each in a place of its own.
static void check_results(ggml_backend_t cpu, uint32_t seed, bool shared_memory) {
    struct random_graph r;
    make_random(&r, seed);
    shuffle_nodes(r.graph, seed);
    ggml_gallocr_t galloc = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    ggml_backend_buffer_t buffer = NULL;
    if (shared_memory)
        assert_true(ggml_gallocr_alloc_graph(galloc, r.graph));
    else
        buffer = ggml_backend_alloc_ctx_tensors(r.ctx, cpu);
    struct ggml_tensor **before = copy_nodes(r.graph);
    float *expected = compute(cpu, &r);
    reorder(r.graph);
    expect_legal_order(before, r.graph);
    float *got = compute(cpu, &r);
    assert_memory_equal(got, expected, (size_t)r.n_known * WIDTH * ROWS * sizeof(float));
    free(got);
    free(expected);
    free(before);
    ggml_backend_buffer_free(buffer);
    ggml_gallocr_free(galloc);
    ggml_free(r.ctx);
}

static void test_results_are_the_same(void **state) {
    (void)state;
    setenv("GGML_CPU_DISABLE_FUSION", "1", 1);
    ggml_backend_t cpu = ggml_backend_cpu_init();
    assert_non_null(cpu);
    for (uint32_t seed = 0; seed < N_SEEDS; ++seed)
        check_results(cpu, seed, seed % 2);
    ggml_backend_free(cpu);
    unsetenv("GGML_CPU_DISABLE_FUSION");
}

// --- what is gained

enum { LAYERS = 3, TOKENS = 2, HEADS = 2, HEAD = 16, CACHE = 8 };

static struct ggml_tensor *product(struct ggml_context *ctx, struct ggml_tensor *x, int n) {
    return ggml_mul_mat(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F16, x->ne[0], n), x);
}

static struct ggml_tensor *biased(struct ggml_context *ctx, struct ggml_tensor *x, int n) {
    return ggml_add(ctx, product(ctx, x, n), ggml_new_tensor_1d(ctx, GGML_TYPE_F32, n));
}

static struct ggml_tensor *normed(struct ggml_context *ctx, struct ggml_tensor *x) {
    return ggml_mul(ctx, ggml_rms_norm(ctx, x, 1e-5f),
                    ggml_new_tensor_1d(ctx, GGML_TYPE_F32, x->ne[0]));
}

static struct ggml_tensor *heads(struct ggml_context *ctx, struct ggml_tensor *x) {
    return ggml_reshape_3d(ctx, x, HEAD, HEADS, TOKENS);
}

// Keys and values go to the cache by row, after all three products, as applications like to do.
static struct ggml_tensor *add_layer(struct ggml_context *ctx, struct ggml_cgraph *graph,
                                     struct ggml_tensor *x, struct ggml_tensor *positions,
                                     struct ggml_tensor *ids) {
    struct ggml_tensor *k_cache = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, WIDTH, CACHE);
    struct ggml_tensor *v_cache = ggml_new_tensor_2d(ctx, GGML_TYPE_F16, WIDTH, CACHE);
    struct ggml_tensor *h = normed(ctx, x);
    struct ggml_tensor *q = heads(ctx, biased(ctx, h, WIDTH));
    struct ggml_tensor *k = heads(ctx, biased(ctx, h, WIDTH));
    struct ggml_tensor *v = biased(ctx, h, WIDTH);
    q = ggml_rope(ctx, q, positions, HEAD, GGML_ROPE_TYPE_NEOX);
    k = ggml_rope(ctx, k, positions, HEAD, GGML_ROPE_TYPE_NEOX);
    ggml_build_forward_expand(graph, q);
    ggml_build_forward_expand(graph, k);
    ggml_build_forward_expand(graph, v);
    k = ggml_reshape_2d(ctx, k, WIDTH, TOKENS);
    ggml_build_forward_expand(graph, ggml_set_rows(ctx, k_cache, k, ids));
    ggml_build_forward_expand(graph, ggml_set_rows(ctx, v_cache, v, ids));
    struct ggml_tensor *keys =
        ggml_permute(ctx, ggml_reshape_3d(ctx, k_cache, HEAD, HEADS, CACHE), 0, 2, 1, 3);
    struct ggml_tensor *values =
        ggml_permute(ctx, ggml_reshape_3d(ctx, v_cache, HEAD, HEADS, CACHE), 0, 2, 1, 3);
    struct ggml_tensor *y =
        ggml_flash_attn_ext(ctx, ggml_permute(ctx, q, 0, 2, 1, 3), keys, values, NULL, 0.25f, 0, 0);
    x = ggml_add(ctx, product(ctx, ggml_reshape_2d(ctx, y, WIDTH, TOKENS), WIDTH), x);
    h = normed(ctx, x);
    y = ggml_swiglu_split(ctx, product(ctx, h, 2 * WIDTH), product(ctx, h, 2 * WIDTH));
    return ggml_add(ctx, product(ctx, y, WIDTH), x);
}

static struct ggml_cgraph *make_layers(struct ggml_context *ctx, int n_layers) {
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    struct ggml_tensor *x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, WIDTH, TOKENS);
    struct ggml_tensor *positions = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, TOKENS);
    struct ggml_tensor *ids = ggml_new_tensor_1d(ctx, GGML_TYPE_I64, TOKENS);
    for (int i = 0; i < n_layers; ++i)
        x = add_layer(ctx, graph, x, positions, ids);
    ggml_build_forward_expand(graph, x);
    return graph;
}

struct figures {
    int n_dispatches;
    int n_waits; // for launches that were begun since the last wait
};

static bool conflict(const struct gvk_dispatch *a, const struct gvk_dispatch *b) {
    for (int i = 0; i < a->n_operands; ++i) {
        for (int k = 0; k < b->n_operands; ++k) {
            if (((a->writes >> i | b->writes >> k) & 1) &&
                share_memory(a->operands[i].tensor, b->operands[k].tensor))
                return true;
        }
    }
    return false;
}

static struct figures figures_of(const struct ggml_cgraph *graph) {
    struct gvk_plan plan;
    int n_waits = 0, begin = 0;
    const struct ggml_graph view = seen(graph);
    gvk_plan_init(&plan, &features);
    assert_int_equal(gvk_plan_graph(&plan, &view), GGML_STATUS_SUCCESS);
    for (int k = 0; k < gvk_plan_count(&plan); ++k) {
        bool waits = false;
        for (int i = begin; i < k; ++i)
            waits |= conflict(gvk_plan_at(&plan, i), gvk_plan_at(&plan, k));
        if (!waits) continue;
        n_waits++;
        begin = k;
    }
    const struct figures figures = {gvk_plan_count(&plan), n_waits};
    gvk_plan_free(&plan);
    return figures;
}

static void expect_settled(struct ggml_cgraph *graph) {
    struct ggml_tensor **before = copy_nodes(graph);
    reorder(graph);
    assert_memory_equal(graph->nodes, before, (size_t)graph->n_nodes * sizeof(*before));
    free(before);
}

static void test_layers_take_fewer_launches(void **state) {
    (void)state;
    struct ggml_context *ctx = new_context();
    struct ggml_cgraph *graph = make_layers(ctx, LAYERS);
    const struct figures before = figures_of(graph);
    struct ggml_tensor **nodes = copy_nodes(graph);
    reorder(graph);
    expect_legal_order(nodes, graph);
    const struct figures after = figures_of(graph);
    printf("# %d layers: %d launches, %d waits; %d launches, %d waits\n", LAYERS,
           before.n_dispatches, before.n_waits, after.n_dispatches, after.n_waits);
    assert_true(after.n_dispatches <= before.n_dispatches - LAYERS);
    assert_true(after.n_waits <= before.n_waits - 2 * LAYERS);
    expect_settled(graph);
    // From whatever order it began.
    for (uint32_t seed = 0; seed < 20; ++seed) {
        shuffle_nodes(graph, seed);
        reorder(graph);
        expect_legal_order(nodes, graph);
        assert_int_equal(count_dispatches(graph), after.n_dispatches);
    }
    free(nodes);
    ggml_free(ctx);
}

static ggml_backend_buffer_type_t nowhere(void *user, int layer) {
    (void)user;
    (void)layer;
    return NULL;
}

static void test_the_transformer_waits_less(void **state) {
    (void)state;
    struct transformer *model = transformer_new(&transformer_small, 1, nowhere, NULL, NULL);
    struct transformer_graph graph;
    assert_non_null(model);
    assert_true(transformer_graph_build(model, 1, 5, &graph));
    const struct figures before = figures_of(graph.graph);
    struct ggml_tensor **nodes = copy_nodes(graph.graph);
    reorder(graph.graph);
    expect_legal_order(nodes, graph.graph);
    const struct figures after = figures_of(graph.graph);
    printf("# %d layers: %d launches, %d waits; %d launches, %d waits\n", transformer_small.layers,
           before.n_dispatches, before.n_waits, after.n_dispatches, after.n_waits);
    assert_true(after.n_dispatches <= before.n_dispatches);
    assert_true(after.n_waits <= before.n_waits - 3 * transformer_small.layers);
    expect_settled(graph.graph);
    shuffle_nodes(graph.graph, 3);
    assert_true(count_dispatches(graph.graph) > after.n_dispatches);
    reorder(graph.graph);
    expect_legal_order(nodes, graph.graph);
    assert_int_equal(count_dispatches(graph.graph), after.n_dispatches);
    free(nodes);
    transformer_graph_free(&graph);
    transformer_free(model);
}

// --- what it costs

// Bytes that the allocator needs for the graph.
static size_t size_of(struct ggml_cgraph *graph) {
    ggml_gallocr_t galloc = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    size_t size = 0;
    ggml_gallocr_reserve_n_size(galloc, graph, NULL, NULL, &size);
    ggml_gallocr_free(galloc);
    return size;
}

// One after the other the branches need the memory of two tensors; side by side, of all.
static void test_memory_hardly_grows(void **state) {
    enum { BRANCHES = 30, LENGTH = 6, MIB = 1 << 20 };
    (void)state;
    struct ggml_context *ctx = new_context();
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, MIB);
    ggml_set_input(x);
    for (int i = 0; i < BRANCHES; ++i) {
        struct ggml_tensor *t = x;
        for (int k = 0; k < LENGTH; ++k)
            t = ggml_cont(ctx, k % 2 ? ggml_neg(ctx, t) : ggml_abs(ctx, t));
        ggml_build_forward_expand(graph, ggml_sum(ctx, t));
    }
    const size_t before = size_of(graph);
    reorder(graph);
    assert_true(size_of(graph) <= before + before / 8 + 2 * MIB);
    ggml_free(ctx);
}

static bool may_allocate(void *left) {
    return --*(long *)left >= 0;
}

static void test_without_memory_nothing_changes(void **state) {
    (void)state;
    struct ggml_context *ctx = new_context();
    struct ggml_cgraph *graph = make_layers(ctx, 1);
    struct ggml_tensor **before = copy_nodes(graph);
    const size_t bytes = (size_t)graph->n_nodes * sizeof(*before);
    bool changed = false;
    for (long n = 0; !changed; ++n) {
        long left = n;
        assert_true(n < 100);
        ggml_mem_set_fault_hook(may_allocate, &left);
        reorder(graph);
        ggml_mem_set_fault_hook(NULL, NULL);
        changed = left >= 0;
        if (n < 3) assert_memory_equal(graph->nodes, before, bytes);
        expect_legal_order(before, graph);
        if (!changed) memcpy(graph->nodes, before, bytes);
    }
    assert_memory_not_equal(graph->nodes, before, bytes);
    free(before);
    ggml_free(ctx);
}

static void test_odd_graphs(void **state) {
    (void)state;
    struct ggml_context *ctx = new_context();
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    reorder(graph);
    assert_int_equal(graph->n_nodes, 0);
    ggml_build_forward_expand(graph, ggml_abs(ctx, ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4)));
    reorder(graph);
    for (int i = 0; i < 4; ++i)
        graph->nodes[graph->n_nodes++] = graph->nodes[0]; // the same again
    reorder(graph);
    assert_int_equal(graph->n_nodes, 5);
    ggml_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_orders_are_legal),
        cmocka_unit_test(test_results_are_the_same),
        cmocka_unit_test(test_layers_take_fewer_launches),
        cmocka_unit_test(test_the_transformer_waits_less),
        cmocka_unit_test(test_memory_hardly_grows),
        cmocka_unit_test(test_without_memory_nothing_changes),
        cmocka_unit_test(test_odd_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
