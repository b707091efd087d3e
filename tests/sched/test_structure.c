// SPDX-License-Identifier: MIT
// What streams are told of a graph besides its nodes: use counts, structure, uid.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../tools/bench/idle.h"
#include "ggml-alloc.h"
#include "ggml-host.h"
#include "ggml-impl.h"
#include "ggml.h"

enum { N_STREAMS = 2, MOST_PARTS = 8, MOST_NODES = 32 };

// --- what streams were given

struct part {
    ggml_backend_t stream;
    uint64_t structure, uid;
    int n_nodes;
};

static struct part parts[MOST_PARTS];
static int n_parts;
static const struct ggml_cgraph *whole; // which the parts are of

static int32_t note_part(ggml_backend_t stream, const struct ggml_graph *graph) {
    assert_in_range(n_parts, 0, MOST_PARTS - 1);
    assert_int_equal(graph->size, sizeof(*graph));
    for (size_t i = 0; i < sizeof(graph->reserved) / sizeof(graph->reserved[0]); ++i)
        assert_null(graph->reserved[i]);
    for (int i = 0; i < graph->n_nodes; ++i) {
        int place = 0;
        while (place < whole->n_nodes && whole->nodes[place] != graph->nodes[i])
            ++place;
        assert_int_equal(ggml_graph_use_count(graph, i), ggml_node_get_use_count(whole, place));
    }
    parts[n_parts++] = (struct part){stream, graph->structure, graph->uid, graph->n_nodes};
    return GGML_HOST_OK;
}

// The first two nodes change places, which they may.
static int32_t swap_two(ggml_backend_t stream, struct ggml_graph *graph) {
    (void)stream;
    assert_true(graph->n_nodes >= 2);
    struct ggml_tensor *first = graph->nodes[0];
    graph->nodes[0] = graph->nodes[1];
    graph->nodes[1] = first;
    return GGML_HOST_OK;
}

// --- graphs

// How a graph differs from the others.
struct form {
    float scale;         // a parameter
    int64_t rows;        // an extent
    enum ggml_type type; // of a source
    int32_t flag;        // of a node
    bool other_edge;     // a node reads another one
    bool other_leaf;     // two sources are two leafs instead of one
    bool other_use;      // one more node reads a node
};

static const struct form plain = {.scale = 2, .rows = 4, .type = GGML_TYPE_F32};

static struct ggml_context *weights_ctx, *ctx;
static struct ggml_tensor *weights[3];
static ggml_backend_buffer_t buffers[N_STREAMS];
static ggml_backend_t streams[N_STREAMS];
static ggml_backend_sched_t sched;

static int start(void **state) {
    (void)state;
    const struct ggml_init_params params = {.mem_size = 1 << 16, .no_alloc = true};
    weights_ctx = ggml_init(params);
    for (int i = 0; i < 3; ++i) {
        weights[i] =
            ggml_new_tensor_2d(weights_ctx, i == 2 ? GGML_TYPE_F16 : GGML_TYPE_F32, 32, 32);
    }
    for (int i = 0; i < N_STREAMS; ++i) {
        streams[i] = idle_stream(1 - i); // the CPU last
        idle_compute_with(i, note_part);
        buffers[i] = ggml_backend_buft_alloc_buffer(idle_memory(1 - i), 1 << 16);
        ggml_backend_buffer_set_usage(buffers[i], GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    }
    for (int i = 0; i < 3; ++i) {
        char *base = ggml_backend_buffer_get_base(buffers[i % 2]);
        ggml_backend_tensor_alloc(buffers[i % 2], weights[i], base + i * 4096);
    }
    sched = ggml_backend_sched_new(streams, NULL, N_STREAMS, 256, false, true);
    assert_non_null(sched);
    ctx = NULL;
    return 0;
}

static int end(void **state) {
    (void)state;
    ggml_backend_sched_free(sched);
    for (int i = 0; i < N_STREAMS; ++i) {
        idle_compute_with(i, NULL);
        idle_optimize_with(i, NULL);
        ggml_backend_buffer_free(buffers[i]);
    }
    ggml_free(weights_ctx);
    ggml_free(ctx);
    return 0;
}

static struct ggml_cgraph *build(const struct form *form) {
    const struct ggml_init_params params = {.mem_size = 1 << 18, .no_alloc = true};
    struct ggml_context *old = ctx;
    ctx = ggml_init(params); // beside the old one: at other addresses
    ggml_free(old);
    struct ggml_tensor *first = weights[form->type == GGML_TYPE_F16 ? 2 : 0];
    struct ggml_tensor *x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 32, form->rows);
    struct ggml_tensor *z = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 32, form->rows);
    struct ggml_tensor *a = ggml_mul_mat(ctx, first, x);
    struct ggml_tensor *b = ggml_mul_mat(ctx, first, form->other_leaf ? z : x);
    struct ggml_tensor *c = ggml_scale(ctx, ggml_add(ctx, a, b), form->scale);
    struct ggml_tensor *d = ggml_mul(ctx, c, form->other_edge ? b : a);
    struct ggml_tensor *e = ggml_mul_mat(ctx, weights[1], d);
    d->flags |= form->flag;
    struct ggml_cgraph *graph = ggml_new_graph_custom(ctx, MOST_NODES, false);
    ggml_build_forward_expand(graph, ggml_add(ctx, e, z));
    if (form->other_use) ggml_build_forward_expand(graph, ggml_sqr(ctx, d));
    return graph;
}

static void compute(const struct ggml_cgraph *counted, struct ggml_cgraph *graph) {
    n_parts = 0;
    whole = counted;
    ggml_backend_sched_reset(sched);
    assert_true(ggml_backend_sched_alloc_graph(sched, graph));
    assert_int_equal(ggml_backend_sched_graph_compute(sched, graph), GGML_STATUS_SUCCESS);
}

static void compute_form(const struct form *form) {
    struct ggml_cgraph *graph = build(form);
    compute(graph, graph);
}

// Until the scheduler has learnt the form.
static void settle(const struct form *form) {
    for (int i = 0; i < 4; ++i)
        compute_form(form);
}

// --- tests

static void test_a_repeated_graph_has_the_same_structure(void **state) {
    (void)state;
    struct part before[MOST_PARTS];
    settle(&plain);
    assert_int_equal(n_parts, 2);
    assert_ptr_not_equal(parts[0].stream, parts[1].stream);
    for (int round = 0; round < 3; ++round) {
        memcpy(before, parts, sizeof(before));
        compute_form(&plain);
        assert_int_equal(n_parts, 2);
        for (int i = 0; i < n_parts; ++i) {
            assert_ptr_equal(parts[i].stream, before[i].stream);
            assert_int_not_equal(parts[i].structure, 0);
            assert_int_equal(parts[i].structure, before[i].structure);
            assert_int_not_equal(parts[i].uid, 0);
            assert_int_not_equal(parts[i].uid, before[i].uid); // the tensors are others
        }
    }
}

static void test_the_same_graph_again_has_the_same_uid(void **state) {
    (void)state;
    settle(&plain);
    const struct part before = parts[0];
    n_parts = 0;
    struct ggml_cgraph *graph = (struct ggml_cgraph *)(uintptr_t)whole;
    assert_int_equal(ggml_backend_sched_graph_compute(sched, graph), GGML_STATUS_SUCCESS);
    assert_int_equal(parts[0].uid, before.uid);
    assert_int_equal(parts[0].structure, before.structure);
}

static bool is_new(uint64_t structure, const struct part *known, int n) {
    for (int i = 0; i < n; ++i) {
        if (known[i].structure == structure) return false;
    }
    return true;
}

static void test_a_changed_graph_has_another_structure(void **state) {
    (void)state;
    struct form forms[] = {plain, plain, plain, plain, plain, plain, plain};
    forms[0].scale = 3;
    forms[1].rows = 5;
    forms[2].type = GGML_TYPE_F16;
    forms[3].flag = GGML_TENSOR_FLAG_OUTPUT;
    forms[4].other_edge = true;
    forms[5].other_leaf = true;
    forms[6].other_use = true;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); ++i) {
        struct part known[MOST_PARTS];
        settle(&plain);
        memcpy(known, parts, sizeof(known));
        compute_form(&plain);
        assert_int_equal(parts[0].structure, known[0].structure);
        for (int again = 0; again < 4; ++again) {
            compute_form(&forms[i]);
            assert_true(is_new(parts[0].structure, known, 2));
        }
    }
}

static void test_what_padding_says_is_not_compared(void **state) {
    (void)state;
    settle(&plain);
    const uint64_t before = parts[0].structure;
    struct ggml_cgraph *graph = build(&plain);
    memset(graph->nodes[0]->padding, 1, sizeof(graph->nodes[0]->padding));
    compute(graph, graph);
    assert_int_not_equal(parts[0].structure, before);
}

// The counts belong to the order that the device has chosen; note_part() looks at them.
static void test_counts_follow_the_order(void **state) {
    (void)state;
    for (int i = 0; i < N_STREAMS; ++i)
        idle_optimize_with(i, i == 1 ? swap_two : NULL);
    const struct form form = {.scale = 2, .rows = 4, .other_edge = true};
    settle(&form);
    const struct part before = parts[0];
    compute_form(&form);
    assert_int_equal(parts[0].structure, before.structure);
}

// Of a part of a graph the uses outside count too, and they may change without it.
static void test_parts_of_graphs_count_all_uses(void **state) {
    (void)state;
    uint64_t known[8] = {0};
    for (int i = 0; i < 8; ++i) {
        struct form form = plain;
        form.other_use = i % 2 == 1;
        struct ggml_cgraph *graph = build(&form);
        struct ggml_cgraph view = ggml_graph_view(graph, 0, 5);
        compute(graph, &view);
        known[i] = parts[0].structure;
        assert_true(i == 0 || known[i] != known[i - 1]);
    }
}

// All that such a part refers to is in it, as in a whole graph.
static void test_parts_without_sources_count_all_uses(void **state) {
    (void)state;
    for (int i = 0; i < 8; ++i) {
        const struct ggml_init_params params = {.mem_size = 1 << 18, .no_alloc = true};
        ggml_free(ctx);
        ctx = ggml_init(params);
        struct ggml_tensor *a = ggml_arange(ctx, 0, 32, 1), *b = ggml_arange(ctx, 0, 32, 1);
        struct ggml_cgraph *graph = ggml_new_graph_custom(ctx, MOST_NODES, false);
        ggml_build_forward_expand(graph, ggml_add(ctx, a, b));
        if (i % 2 == 1) ggml_build_forward_expand(graph, ggml_sqr(ctx, a));
        struct ggml_cgraph view = ggml_graph_view(graph, 0, 2);
        compute(graph, &view);
    }
}

static void test_a_graph_of_an_application(void **state) {
    (void)state;
    struct ggml_cgraph *graph = build(&plain);
    const struct ggml_graph none = {0};
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors_from_buft(ctx, idle_memory(1));
    assert_non_null(buffer);
    n_parts = 0;
    whole = graph;
    assert_int_equal(ggml_backend_graph_compute(streams[0], graph), GGML_STATUS_SUCCESS);
    assert_int_equal(n_parts, 1);
    assert_int_equal(parts[0].n_nodes, graph->n_nodes);
    assert_int_equal(parts[0].structure, 0);
    assert_int_equal(parts[0].uid, 0);
    assert_int_equal(ggml_graph_use_count(&none, 0), 0);
    ggml_backend_buffer_free(buffer);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {
        TEST(test_a_repeated_graph_has_the_same_structure),
        TEST(test_the_same_graph_again_has_the_same_uid),
        TEST(test_a_changed_graph_has_another_structure),
        TEST(test_what_padding_says_is_not_compared),
        TEST(test_counts_follow_the_order),
        TEST(test_parts_of_graphs_count_all_uses),
        TEST(test_parts_without_sources_count_all_uses),
        TEST(test_a_graph_of_an_application),
    };
    return cmocka_run_group_tests_name("sched structure", tests, NULL, NULL);
}
