// SPDX-License-Identifier: MIT
// Where the scheduler puts tensors: never two at one place at the same time, and near the least
// that is possible. The devices compute nothing and their memory is addresses only.
#define _POSIX_C_SOURCE 200809L // setenv
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../tools/bench/families.h"
#include "../../tools/bench/idle.h"
#include "ggml-alloc.h"
#include "ggml-host.h"
#include "ggml-impl.h"
#include "support/setenv.h"

enum { MAX_NODES = 120, MAX_ROOTS = 4000, MOST_CHECKED = 1200, N_DEVICES = 4 };

static uint64_t random_state;

static uint32_t next_random(uint32_t limit) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % limit;
}

// --- what is where at which time

struct root {
    const struct ggml_tensor *tensor;
    int first, last; // times: node i is computed at 2 i + 2, the copies for it are made before
};

static struct root roots[MAX_ROOTS];
static int n_roots;

static struct root *root_of(const struct ggml_tensor *tensor, int time) {
    const struct ggml_tensor *root = tensor->view_src ? tensor->view_src : tensor;
    for (int i = 0; i < n_roots; ++i) {
        if (roots[i].tensor == root) return &roots[i];
    }
    assert_true(n_roots < MAX_ROOTS);
    roots[n_roots] = (struct root){root, time, time};
    return &roots[n_roots++];
}

static const struct ggml_tensor *results[MAX_ROOTS]; // that nobody uses
static int n_results;

static bool is_used(const struct ggml_cgraph *graph, const struct ggml_tensor *tensor) {
    for (int i = 0; i < graph->n_nodes; ++i) {
        for (int k = 0; k < GGML_MAX_SRC; ++k) {
            if (graph->nodes[i]->src[k] == tensor) return true;
        }
    }
    return false;
}

// Before the graph is split, as then some use copies.
static void note_results(const struct ggml_cgraph *graph) {
    n_results = 0;
    for (int i = 0; i < graph->n_nodes + graph->n_leafs; ++i) {
        const bool node = i < graph->n_nodes;
        const struct ggml_tensor *tensor =
            node ? graph->nodes[i] : graph->leafs[i - graph->n_nodes];
        const bool output = tensor->flags & GGML_TENSOR_FLAG_OUTPUT;
        if (output || !is_used(graph, tensor)) results[n_results++] = tensor;
    }
}

// Sources that are not in the graph are copies: they begin when they are used first.
static void find_roots(const struct ggml_cgraph *graph) {
    n_roots = 0;
    for (int i = 0; i < graph->n_leafs; ++i) {
        root_of(graph->leafs[i], 0);
    }
    for (int i = 0; i < graph->n_nodes; ++i) {
        const struct ggml_tensor *node = graph->nodes[i];
        const bool input = node->flags & GGML_TENSOR_FLAG_INPUT;
        for (int k = 0; k < GGML_MAX_SRC; ++k) {
            if (node->src[k]) root_of(node->src[k], 2 * i + 1)->last = 2 * i + 2;
        }
        root_of(node, input ? 0 : 2 * i + 2)->last = 2 * i + 2;
    }
    for (int i = 0; i < n_results; ++i) {
        root_of(results[i], 0)->last = INT32_MAX;
    }
}

static bool may_share(const struct root *a, const struct root *b) {
    const struct root *later = a->first > b->first ? a : b, *earlier = later == a ? b : a;
    return later->tensor->data == earlier->tensor->data && earlier->last == later->first &&
           ggml_op_can_inplace(later->tensor->op);
}

static void check_places(const struct ggml_cgraph *graph) {
    find_roots(graph);
    for (int i = 0; i < n_roots; ++i) {
        const struct root *a = &roots[i];
        const uintptr_t low = (uintptr_t)a->tensor->data;
        assert_non_null(a->tensor->buffer);
        if (a->tensor->buffer->usage != GGML_BACKEND_BUFFER_USAGE_COMPUTE) continue;
        assert_true(low + ggml_nbytes(a->tensor) <=
                    (uintptr_t)ggml_backend_buffer_get_base(a->tensor->buffer) +
                        ggml_backend_buffer_get_size(a->tensor->buffer));
        for (int k = 0; k < i; ++k) {
            const struct root *b = &roots[k];
            const uintptr_t other = (uintptr_t)b->tensor->data;
            const bool same_time = a->first <= b->last && b->first <= a->last;
            const bool same_place = a->tensor->buffer == b->tensor->buffer &&
                                    low < other + ggml_nbytes(b->tensor) &&
                                    other < low + ggml_nbytes(a->tensor);
            if (!same_time || !same_place || may_share(a, b)) continue;
            fail_msg("%s (%s, %d-%d) and %s (%s, %d-%d) overlap", a->tensor->name,
                     ggml_op_name(a->tensor->op), a->first, a->last, b->tensor->name,
                     ggml_op_name(b->tensor->op), b->first, b->last);
        }
    }
}

// --- random graphs

struct setup {
    ggml_backend_sched_t sched;
    ggml_backend_buffer_t weights[N_DEVICES];
    struct ggml_context *ctx;
};

static void open_scheduler(struct setup *setup, bool parallel, bool op_offload) {
    ggml_backend_t streams[N_DEVICES];
    for (int i = 0; i < N_DEVICES; ++i) {
        streams[i] = idle_stream((i + 1) % N_DEVICES); // the CPU is the last
        setup->weights[i] = ggml_backend_buft_alloc_buffer(idle_memory(i), 1 << 20);
        ggml_backend_buffer_set_usage(setup->weights[i], GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    }
    setup->sched = ggml_backend_sched_new(streams, NULL, N_DEVICES, 64, parallel, op_offload);
    setup->ctx = ggml_init((struct ggml_init_params){1 << 20, NULL, true});
    assert_true(setup->sched && setup->ctx);
}

static void open_setup(struct setup *setup, bool parallel) {
    open_scheduler(setup, parallel, false);
}

static void close_setup(struct setup *setup) {
    ggml_backend_sched_free(setup->sched);
    for (int i = 0; i < N_DEVICES; ++i) {
        ggml_backend_buffer_free(setup->weights[i]);
    }
    ggml_free(setup->ctx);
}

static struct ggml_tensor *random_leaf(struct setup *setup) {
    struct ggml_tensor *leaf = ggml_new_tensor_2d(setup->ctx, GGML_TYPE_F32, 8, 8);
    const uint32_t kind = next_random(3);
    if (kind == 0) {
        ggml_set_input(leaf);
    } else if (kind == 1) {
        ggml_backend_buffer_t buffer = setup->weights[next_random(N_DEVICES)];
        ggml_backend_tensor_alloc(buffer, leaf, ggml_backend_buffer_get_base(buffer));
    }
    return leaf;
}

static struct ggml_tensor *random_node(struct setup *setup, struct ggml_tensor **known,
                                       uint32_t n) {
    struct ggml_context *ctx = setup->ctx;
    struct ggml_tensor *a = known[n - 1 - next_random(n < 8 ? n : 8)];
    struct ggml_tensor *b = known[next_random(n)];
    switch (next_random(8)) {
    case 0: return ggml_add(ctx, a, b);
    case 1: return ggml_mul(ctx, a, b);
    case 2: return ggml_silu(ctx, a);
    case 3: return ggml_cont(ctx, ggml_transpose(ctx, a));
    case 4: return ggml_reshape_2d(ctx, a, 8, 8);
    case 5: return ggml_view_2d(ctx, b, 8, 8, b->nb[1], 0);
    case 6: return ggml_mul_mat(ctx, b, a);
    default: return ggml_scale(ctx, a, 2.0f);
    }
}

static struct ggml_cgraph *random_graph(struct setup *setup, uint32_t seed) {
    struct ggml_tensor *known[MAX_NODES];
    uint32_t n = 0;
    random_state = seed;
    ggml_reset(setup->ctx);
    struct ggml_cgraph *graph = ggml_new_graph_custom(setup->ctx, 512, false);
    const uint32_t n_leafs = 2 + next_random(6), n_nodes = 10 + next_random(80);
    while (n < n_leafs) {
        known[n++] = random_leaf(setup);
    }
    while (n < n_leafs + n_nodes) {
        struct ggml_tensor *node = ggml_cont(setup->ctx, known[n - 1]);
        if (next_random(5) > 0) node = random_node(setup, known, n);
        if (!ggml_is_contiguous(node)) node = ggml_cont(setup->ctx, node);
        if (next_random(12) == 0) ggml_set_output(node);
        known[n++] = node;
        if (next_random(4) == 0) ggml_build_forward_expand(graph, node);
    }
    ggml_build_forward_expand(graph, known[n - 1]);
    return graph;
}

// Nodes in another order than that of their uses are allowed too.
static void shuffle_some(struct ggml_cgraph *graph) {
    const int i = (int)next_random((uint32_t)graph->n_nodes - 1);
    struct ggml_tensor *node = graph->nodes[i];
    graph->nodes[i] = graph->nodes[i + 1];
    graph->nodes[i + 1] = node;
}

static void check_random_graphs(bool parallel, bool reserve) {
    struct setup setup;
    open_setup(&setup, parallel);
    for (uint32_t seed = 0; seed < 150; ++seed) {
        struct ggml_cgraph *graph = random_graph(&setup, seed / 3); // some are the same again
        note_results(graph);
        ggml_backend_sched_reset(setup.sched);
        if (reserve) assert_true(ggml_backend_sched_reserve(setup.sched, graph));
        if (!ggml_backend_sched_alloc_graph(setup.sched, graph)) {
            fail_msg("seed %u: %s", seed, ggml_last_error());
        }
        check_places(graph);
    }
    close_setup(&setup);
}

static void test_random_graphs(void **state) {
    (void)state;
    check_random_graphs(false, false);
}

static void test_random_graphs_after_reserving(void **state) {
    (void)state;
    check_random_graphs(false, true);
}

static void test_random_graphs_in_flight(void **state) {
    (void)state;
    check_random_graphs(true, false);
}

static void test_any_order(void **state) {
    (void)state;
    struct setup setup;
    open_setup(&setup, false);
    for (uint32_t seed = 0; seed < 100; ++seed) {
        struct ggml_cgraph *graph = random_graph(&setup, seed);
        for (int i = 0; i < 3; ++i) {
            shuffle_some(graph);
        }
        ggml_backend_sched_reset(setup.sched);
        assert_true(ggml_backend_sched_alloc_graph(setup.sched, graph));
        for (int i = 0; i < graph->n_nodes; ++i) {
            const struct ggml_tensor *node = graph->nodes[i];
            assert_true((uintptr_t)node->data + ggml_nbytes(node) <=
                        (uintptr_t)ggml_backend_buffer_get_base(node->buffer) +
                            ggml_backend_buffer_get_size(node->buffer));
        }
    }
    close_setup(&setup);
}

// --- with a cache and without

enum { MAX_QUESTIONS = 4 * MAX_ROOTS };

static struct question {
    ggml_backend_dev_t device;
    const struct ggml_tensor *tensor;
} questions[MAX_QUESTIONS];
static int n_questions;

// Each device but the CPU refuses something else; nothing is asked twice.
static bool picky_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    for (int i = 0; i < n_questions; ++i) {
        assert_false(questions[i].device == device && questions[i].tensor == op);
    }
    assert_true(n_questions < MAX_QUESTIONS);
    questions[n_questions++] = (struct question){device, op};
    if (device == idle_stream(1)->device) return op->op != GGML_OP_MUL && op->op != GGML_OP_SCALE;
    if (device == idle_stream(2)->device) return op->op != GGML_OP_ADD;
    return device != idle_stream(3)->device || op->op != GGML_OP_MUL_MAT;
}

static const struct ggml_cgraph *allocate_random(struct setup *setup, uint32_t seed) {
    struct ggml_cgraph *graph = random_graph(setup, seed);
    ggml_backend_sched_reset(setup->sched);
    n_questions = 0;
    note_results(graph);
    assert_true(ggml_backend_sched_alloc_graph(setup->sched, graph));
    check_places(graph);
    return graph;
}

static int make_picky(void **state) {
    (void)state;
    idle_support_with(picky_supports_op);
    return 0;
}

static int make_usual(void **state) {
    (void)state;
    idle_support_with(NULL);
    return 0;
}

// Devices that compute only some operations: each is asked about a node once.
static void test_picky_devices(void **state) {
    (void)state;
    for (int op_offload = 0; op_offload < 2; ++op_offload) {
        struct setup setup;
        open_scheduler(&setup, false, op_offload);
        for (uint32_t seed = 0; seed < 300; ++seed) {
            allocate_random(&setup, seed);
            assert_true(n_questions > 0);
        }
        close_setup(&setup);
    }
}

// The third of three equal graphs is replayed, which asks no device, however often others come
// between.
static void test_recurring_graphs(void **state) {
    struct setup setup;
    (void)state;
    open_setup(&setup, false);
    for (int i = 0; i < 20; ++i) {
        allocate_random(&setup, 1);
        assert_true(n_questions > 0);
        for (int k = 0; k < 3; ++k) {
            allocate_random(&setup, 2);
        }
        assert_int_equal(n_questions, 0);
    }
    close_setup(&setup);
}

static size_t offset_of(const struct ggml_tensor *tensor) {
    return (size_t)((char *)tensor->data - (char *)ggml_backend_buffer_get_base(tensor->buffer));
}

// The same splits, streams, sizes of buffers and places in them.
static void expect_same(const struct setup *a, const struct ggml_cgraph *graph,
                        const struct setup *b, const struct ggml_cgraph *other) {
    assert_int_equal(ggml_backend_sched_get_n_splits(a->sched),
                     ggml_backend_sched_get_n_splits(b->sched));
    for (int i = 0; i < N_DEVICES; ++i) {
        assert_int_equal(ggml_backend_sched_get_buffer_size(a->sched, idle_stream(i)),
                         ggml_backend_sched_get_buffer_size(b->sched, idle_stream(i)));
    }
    assert_int_equal(graph->n_nodes, other->n_nodes);
    for (int i = 0; i < graph->n_nodes; ++i) {
        assert_ptr_equal(ggml_backend_sched_get_tensor_backend(a->sched, graph->nodes[i]),
                         ggml_backend_sched_get_tensor_backend(b->sched, other->nodes[i]));
        assert_ptr_equal(graph->nodes[i]->buffer->buft, other->nodes[i]->buffer->buft);
        assert_int_equal(offset_of(graph->nodes[i]), offset_of(other->nodes[i]));
    }
}

// A scheduler that remembers nothing asks devices about each graph, and does with it what one that
// remembers does. Some graphs come again at once, some later.
static void test_without_cache(void **state) {
    (void)state;
    struct setup with, without;
    open_setup(&with, false);
    setenv("GGML_SCHED_CACHE", "0", 1);
    open_setup(&without, false);
    unsetenv("GGML_SCHED_CACHE");
    for (uint32_t step = 0; step < 240; ++step) {
        const uint32_t seed = step / 4 * 2654435761u >> 28;
        const struct ggml_cgraph *graph = allocate_random(&with, seed);
        assert_true(step % 4 < 3 || n_questions == 0);
        const struct ggml_cgraph *same = allocate_random(&without, seed);
        assert_true(n_questions > 0);
        expect_same(&with, graph, &without, same);
    }
    close_setup(&with);
    close_setup(&without);
}

// The graph's own order comes back when it is only measured.
static void expect_order_kept(struct setup *setup, struct ggml_cgraph *graph) {
    struct ggml_tensor *nodes[MAX_NODES];
    const size_t bytes = (size_t)graph->n_nodes * sizeof(nodes[0]);
    assert_in_range(graph->n_nodes, 1, MAX_NODES);
    memcpy(nodes, graph->nodes, bytes);
    assert_true(ggml_backend_sched_reserve(setup->sched, graph));
    assert_memory_equal(graph->nodes, nodes, bytes);
}

// A node that is computed after its only reader still writes its memory: nothing else may lie
// there.
static void test_computed_after_its_reader(void **state) {
    (void)state;
    struct setup setup;
    open_setup(&setup, false);
    struct ggml_tensor *leaf = ggml_new_tensor_2d(setup.ctx, GGML_TYPE_F32, 64, 64);
    struct ggml_tensor *late = ggml_mul_mat(setup.ctx, leaf, leaf);
    struct ggml_tensor *reader = ggml_mul_mat(setup.ctx, leaf, late);
    struct ggml_tensor *between = ggml_mul_mat(setup.ctx, leaf, reader);
    struct ggml_tensor *last = ggml_mul_mat(setup.ctx, leaf, between);
    struct ggml_cgraph *graph = ggml_new_graph(setup.ctx);
    ggml_build_forward_expand(graph, last);
    assert_int_equal(ggml_graph_n_nodes(graph), 4);
    graph->nodes[0] = reader;
    graph->nodes[1] = between;
    graph->nodes[2] = late;
    assert_true(ggml_backend_sched_alloc_graph(setup.sched, graph));
    assert_ptr_equal(late->buffer, between->buffer);
    const size_t size = ggml_nbytes(late);
    const char *a = late->data, *b = between->data;
    assert_true(a + size <= b || b + size <= a);
    close_setup(&setup);
}

// Reversing views and what computes nothing is an order that every device may choose.
static int32_t reverse_views(ggml_backend_t stream, struct ggml_graph *part) {
    (void)stream;
    for (int i = 0; i + 1 < part->n_nodes; ++i) {
        struct ggml_tensor *a = part->nodes[i], *b = part->nodes[i + 1];
        bool independent = true;
        for (int k = 0; k < GGML_MAX_SRC; ++k) {
            independent &= b->src[k] != a && (!b->src[k] || b->src[k]->view_src != a);
        }
        if (!independent || b->view_src == a) continue;
        part->nodes[i] = b;
        part->nodes[i + 1] = a;
        ++i;
    }
    return GGML_HOST_OK;
}

static void test_reordering_devices(void **state) {
    (void)state;
    struct setup setup;
    for (int i = 0; i < N_DEVICES; ++i) {
        idle_optimize_with(i, reverse_views);
    }
    open_setup(&setup, false);
    for (uint32_t seed = 0; seed < 150; ++seed) {
        struct ggml_cgraph *graph = random_graph(&setup, seed / 5);
        note_results(graph);
        ggml_backend_sched_reset(setup.sched);
        if (seed % 10 == 0) expect_order_kept(&setup, graph);
        assert_true(ggml_backend_sched_alloc_graph(setup.sched, graph));
        check_places(graph);
    }
    close_setup(&setup);
    for (int i = 0; i < N_DEVICES; ++i) {
        idle_optimize_with(i, NULL);
    }
}

// --- the shapes of models

static void check_peak(enum family family, int size, const char *who, size_t peak,
                       struct ggml_cgraph *graph) {
    const size_t bound = family_bound(graph, IDLE_ALIGNMENT);
    assert_true(bound > 0 && peak >= bound);
    // Models hold 1.05. Random graphs are no model: this only tells that a planner got much worse.
    if (peak <= bound + bound / (family == FAMILY_RANDOM ? 4 : 20)) return;
    fail_msg("%s, %d %s, %s: %zu bytes, bound %zu", family_name(family), size, family_unit(family),
             who, peak, bound);
}

static void check_family(enum family family, int size) {
    ggml_backend_t stream = idle_stream(0);
    ggml_backend_buffer_t weights = ggml_backend_buft_alloc_buffer(idle_memory(0), 1 << 28);
    ggml_backend_buffer_set_usage(weights, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    ggml_backend_sched_t sched = ggml_backend_sched_new(&stream, NULL, 1, 64, false, false);
    ggml_gallocr_t galloc = ggml_gallocr_new(idle_memory(0));
    struct ggml_context *ctx = family_context(family, size);
    struct ggml_cgraph *graph = family_build(ctx, family, size, weights);
    const bool checked = ggml_graph_n_nodes(graph) <= MOST_CHECKED;
    size_t measured = 0;
    if (checked) note_results(graph);
    ggml_backend_sched_reserve_size(sched, graph, &measured);
    ggml_backend_sched_reset(sched);
    assert_true(ggml_backend_sched_alloc_graph(sched, graph));
    const size_t peak = ggml_backend_sched_get_buffer_size(sched, stream);
    if (peak != measured) {
        fail_msg("%s, %d: measured %zu, allocated %zu", family_name(family), size, measured, peak);
    }
    check_peak(family, size, "scheduler", peak, graph);
    if (checked) check_places(graph);
    ggml_free(ctx);
    ctx = family_context(family, size);
    graph = family_build(ctx, family, size, weights);
    if (checked) note_results(graph);
    assert_true(ggml_gallocr_alloc_graph(galloc, graph));
    if (checked) check_places(graph);
    check_peak(family, size, "allocator", ggml_gallocr_get_buffer_size(galloc, 0), graph);
    ggml_free(ctx);
    ggml_gallocr_free(galloc);
    ggml_backend_sched_free(sched);
    ggml_backend_buffer_free(weights);
}

static void test_models_stay_near_the_lower_bound(void **state) {
    (void)state;
    for (int family = 0; family < FAMILY_COUNT; ++family) {
        const int *sizes = family_sizes((enum family)family);
        for (int i = 0; sizes[i] > 0; ++i) {
            check_family((enum family)family, sizes[i]);
        }
    }
}

// What was reserved holds smaller graphs of the same structure in the buffers as they are.
static void test_reserved_buffers_stay(void **state) {
    (void)state;
    struct setup setup;
    open_setup(&setup, false);
    for (uint32_t seed = 0; seed < 40; ++seed) {
        struct ggml_cgraph *graph = random_graph(&setup, seed);
        assert_true(ggml_backend_sched_reserve(setup.sched, graph));
        size_t before[N_DEVICES];
        for (int i = 0; i < N_DEVICES; ++i) {
            before[i] = ggml_backend_sched_get_buffer_size(setup.sched, idle_stream(i));
        }
        graph = random_graph(&setup, seed);
        ggml_backend_sched_reset(setup.sched);
        assert_true(ggml_backend_sched_alloc_graph(setup.sched, graph));
        for (int i = 0; i < N_DEVICES; ++i) {
            assert_int_equal(ggml_backend_sched_get_buffer_size(setup.sched, idle_stream(i)),
                             before[i]);
        }
    }
    close_setup(&setup);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_random_graphs_after_reserving),
        cmocka_unit_test(test_random_graphs_in_flight),
        cmocka_unit_test(test_any_order),
        cmocka_unit_test_setup_teardown(test_picky_devices, make_picky, make_usual),
        cmocka_unit_test_setup_teardown(test_recurring_graphs, make_picky, make_usual),
        cmocka_unit_test_setup_teardown(test_without_cache, make_picky, make_usual),
        cmocka_unit_test(test_computed_after_its_reader),
        cmocka_unit_test(test_reordering_devices),
        cmocka_unit_test(test_models_stay_near_the_lower_bound),
        cmocka_unit_test(test_reserved_buffers_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
