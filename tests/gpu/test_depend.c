// SPDX-License-Identifier: MIT
// Which nodes must come before which, against a comparison of every pair of them.
#include "gpu/graph/depend.h"
#include "gpu/graph/tracker.h"

#include "gpu_test.h"
#include "support/node_order.h"
#include "support/seen.h"

enum { WIDTH = 16, ROWS = 8, N_STEPS = 40, N_SEEDS = 40 };

static uint32_t next(uint32_t *seed, uint32_t n) {
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

static struct ggml_tensor *half_of(struct ggml_context *ctx, struct ggml_tensor *t, uint32_t part) {
    return ggml_view_2d(ctx, t, WIDTH, ROWS / 2, t->nb[1], part * (ROWS / 4) * t->nb[1]);
}

// Results of earlier nodes, halves of them, and writes into either.
static struct ggml_cgraph *random_graph(struct ggml_context *ctx, uint32_t seed) {
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    struct ggml_tensor *known[N_STEPS + 3];
    int n = 0;
    for (; n < 3; ++n)
        known[n] = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, WIDTH, ROWS);
    for (; n < N_STEPS + 3; ++n) {
        struct ggml_tensor *a = known[next(&seed, (uint32_t)n)],
                           *b = known[next(&seed, (uint32_t)n)];
        switch (next(&seed, 4)) {
        case 0: known[n] = ggml_add(ctx, a, b); break;
        case 1: known[n] = ggml_add_inplace(ctx, a, b); break;
        case 2: known[n] = ggml_neg(ctx, a); break;
        default:
            ggml_build_forward_expand(graph, ggml_cpy(ctx, half_of(ctx, b, next(&seed, 3)),
                                                      half_of(ctx, a, next(&seed, 3))));
            known[n] = ggml_abs(ctx, a);
        }
        ggml_build_forward_expand(graph, known[n]);
    }
    return graph;
}

// before[k][i]: i must come before k, be it through others.
static bool *reach(const struct gpu_depend *d) {
    const size_t n = (size_t)d->n;
    bool *before = calloc(n * n, sizeof(*before));
    assert_non_null(before);
    for (int32_t k = 0; k < d->n; ++k) {
        int32_t n_before;
        const int32_t *direct = gpu_depend_before(d, k, &n_before);
        for (int32_t i = 0; i < n_before; ++i) {
            assert_in_range(direct[i], 0, k - 1);
            before[(size_t)k * n + (size_t)direct[i]] = true;
            for (size_t j = 0; j < n; ++j)
                before[(size_t)k * n + j] |= before[(size_t)direct[i] * n + j];
        }
    }
    return before;
}

// Directly, or through nodes between them.
static bool *expected(const struct ggml_cgraph *graph) {
    const size_t n = (size_t)graph->n_nodes;
    bool *before = calloc(n * n, sizeof(*before));
    assert_non_null(before);
    for (size_t k = 0; k < n; ++k) {
        for (size_t i = 0; i < k; ++i) {
            if (!node_depends(graph->nodes[k], graph->nodes[i])) continue;
            before[k * n + i] = true;
            for (size_t j = 0; j < n; ++j)
                before[k * n + j] |= before[i * n + j];
        }
    }
    return before;
}

static void expect_same(const struct ggml_cgraph *graph) {
    struct gpu_depend depend;
    const struct ggml_graph view = seen(graph);
    assert_true(gpu_depend_make(&depend, &view));
    bool *got = reach(&depend), *wanted = expected(graph);
    for (int k = 0; k < graph->n_nodes; ++k) {
        for (int i = 0; i < k; ++i) {
            const size_t at = (size_t)k * (size_t)graph->n_nodes + (size_t)i;
            // More than needed would be safe, but would keep work in line that could run at once.
            if (got[at] != wanted[at])
                fail_msg("node %d (%s) %s wait for node %d (%s)", k,
                         ggml_op_name(graph->nodes[k]->op), wanted[at] ? "does not" : "need not", i,
                         ggml_op_name(graph->nodes[i]->op));
        }
    }
    free(got);
    free(wanted);
    gpu_depend_free(&depend);
}

static void test_random_graphs(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= N_SEEDS; ++seed) {
        struct ggml_context *ctx = gpu_test_context();
        expect_same(random_graph(ctx, seed));
        ggml_free(ctx);
    }
}

// Tensors that are no views of each other, in places that an application has chosen.
static void test_memory_that_overlaps(void **state) {
    static char memory[4096];
    (void)state;
    struct ggml_context *ctx = gpu_test_context();
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    struct ggml_tensor *x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, WIDTH, ROWS);
    struct ggml_tensor *y = ggml_neg(ctx, x), *z = ggml_abs(ctx, x), *w = ggml_sqr(ctx, x);
    ggml_build_forward_expand(graph, y);
    ggml_build_forward_expand(graph, z);
    ggml_build_forward_expand(graph, w);
    x->data = memory;
    y->data = memory + 1024;
    z->data = memory + 1024 + 256; // over the end of y
    w->data = memory + 2048;
    expect_same(graph);
    z->data = memory + 1024 + 512; // behind it
    expect_same(graph);
    w->data = memory + 128; // over what all read
    expect_same(graph);
    ggml_free(ctx);
}

// m and v are sources that the step of AdamW writes: what reads or writes them keeps its side of
// it.
static void test_momenta_are_written_by_the_step(void **state) {
    static char memory[256];
    (void)state;
    struct ggml_context *ctx = gpu_test_context();
    struct ggml_tensor *leaf[5]; // weights, gradient, m, v, another that may lie upon v
    for (int i = 0; i < 5; ++i)
        leaf[i] = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, WIDTH);
    ggml_set_param(leaf[0]);
    struct ggml_tensor *hyper = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 7);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    struct ggml_tensor *half = ggml_view_1d(ctx, leaf[3], WIDTH / 2, 0);
    struct ggml_tensor *step =
        ggml_opt_step_adamw(ctx, leaf[0], ggml_neg(ctx, leaf[1]), leaf[2], leaf[3], hyper);
    struct ggml_tensor *nodes[] = {
        ggml_sqr(ctx, leaf[2]),
        ggml_abs(ctx, half),
        ggml_neg(ctx, leaf[4]),
        step,
        ggml_scale_inplace(ctx, leaf[2], 2),
        ggml_sqrt(ctx, leaf[2]),
        ggml_exp(ctx, leaf[4]),
    };
    for (int i = 0; i < 7; ++i)
        ggml_build_forward_expand(graph, nodes[i]);
    expect_same(graph);
    // Places are given, but to nothing that the nodes' results lie in.
    leaf[3]->data = half->data = memory;
    leaf[4]->data = memory + 16;
    expect_same(graph);
    ggml_free(ctx);
}

static void test_a_node_that_comes_twice_has_no_order(void **state) {
    (void)state;
    struct ggml_context *ctx = gpu_test_context();
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, WIDTH);
    ggml_build_forward_expand(graph, ggml_neg(ctx, ggml_neg(ctx, x)));
    struct ggml_graph view = seen(graph);
    struct gpu_depend depend;
    view.nodes[1] = view.nodes[0];
    assert_false(gpu_depend_make(&depend, &view));
    ggml_free(ctx);
}

// --- barriers ------------------------------------------------------------------------------------

static void test_only_dependent_work_waits(void **state) {
    static struct gpu_tracker tracker;
    const struct gpu_tracker_touch write_a = {1, 0, 100, true}, read_a = {1, 50, 60, false},
                                   read_beside = {1, 100, 200, false},
                                   read_other = {2, 0, 100, false}, write_other = {2, 0, 100, true};
    (void)state;
    gpu_tracker_clear(&tracker);
    assert_false(gpu_tracker_conflicts(&tracker, &write_a, 1));
    gpu_tracker_add(&tracker, &write_a, 1);
    assert_true(gpu_tracker_conflicts(&tracker, &read_a, 1));  // reads what was written
    assert_true(gpu_tracker_conflicts(&tracker, &write_a, 1)); // writes what was written
    assert_false(gpu_tracker_conflicts(&tracker, &read_beside, 1));
    assert_false(gpu_tracker_conflicts(&tracker, &read_other, 1));
    gpu_tracker_add(&tracker, &read_other, 1);
    assert_false(gpu_tracker_conflicts(&tracker, &read_other, 1)); // two readers
    assert_true(gpu_tracker_conflicts(&tracker, &write_other, 1)); // writes what was read
    gpu_tracker_clear(&tracker);
    assert_false(gpu_tracker_conflicts(&tracker, &write_other, 1));
    for (int i = 0; i < GPU_TRACKER_TOUCHES; ++i) {
        const struct gpu_tracker_touch touch = {3, (uint64_t)i, (uint64_t)i + 1, true};
        assert_false(gpu_tracker_conflicts(&tracker, &touch, 1));
        gpu_tracker_add(&tracker, &touch, 1);
    }
    assert_true(gpu_tracker_conflicts(&tracker, &read_other, 1)); // no room
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_memory_that_overlaps),
        cmocka_unit_test(test_momenta_are_written_by_the_step),
        cmocka_unit_test(test_a_node_that_comes_twice_has_no_order),
        cmocka_unit_test(test_only_dependent_work_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
