// SPDX-License-Identifier: MIT
// A scheduler that remembers earlier graphs against one that doesn't (GGML_SCHED_CACHE=0): the same
// splits, the same streams and the same logits, in as much memory, and the same refusals.
#define _POSIX_C_SOURCE 200809L // setenv
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"
#include "support/setenv.h"

static struct rig rig;
static ggml_backend_sched_t without; // beside rig.sched

static int begin(void **state) {
    (void)state;
    rig_open(&rig, 2, &rig_shape, NULL, false);
    setenv("GGML_SCHED_CACHE", "0", 1);
    without = ggml_backend_sched_new(rig.streams, NULL, 3, 100, false, false);
    unsetenv("GGML_SCHED_CACHE");
    return without ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    ggml_backend_sched_free(without);
    rig_close(&rig);
    return 0;
}

// What a graph of the sequence is: equal ones follow each other, as tokens of a generation do.
struct request {
    int n_tokens, n_past;
    uint64_t seed;
    bool reserve; // a graph of its structure, and smaller, before it
    bool pin;     // the logits to the CPU
};

static struct request request_of(int step) {
    static const struct request runs[] = {
        {12, 20, 0, true, false}, {1, 4, 0, false, false}, {1, 4, 0, false, true},
        {1, 4, 0, false, false},  {4, 4, 0, false, false}, {12, 4, 0, false, false},
        {2, 9, 0, false, false},  {2, 3, 0, false, false}, {1, 10, 0, false, false},
    };
    struct request request = runs[step / 4 % (int)(sizeof(runs) / sizeof(runs[0]))];
    request.seed = (uint64_t)step + 1;
    request.reserve &= step % 4 == 0;
    return request;
}

// What the scheduler made of it.
struct outcome {
    int n_splits, n_nodes;
    ggml_backend_t streams[512]; // by node
    float *logits;
    size_t n_logits;
};

static void note_streams(ggml_backend_sched_t sched, struct ggml_cgraph *graph,
                         struct outcome *outcome) {
    outcome->n_splits = ggml_backend_sched_get_n_splits(sched);
    outcome->n_nodes = ggml_graph_n_nodes(graph);
    assert_in_range(outcome->n_nodes, 1, 512);
    for (int i = 0; i < outcome->n_nodes; ++i) {
        outcome->streams[i] =
            ggml_backend_sched_get_tensor_backend(sched, ggml_graph_node(graph, i));
    }
}

static void reserve_smaller(ggml_backend_sched_t sched) {
    struct transformer_graph graph;
    assert_true(transformer_graph_build(rig.model, 8, 20, &graph));
    assert_true(ggml_backend_sched_reserve(sched, graph.graph));
    transformer_graph_free(&graph);
}

static void run(ggml_backend_sched_t sched, const struct request *request,
                struct outcome *outcome) {
    struct transformer_graph graph;
    ggml_backend_sched_reset(sched);
    if (request->reserve) reserve_smaller(sched);
    assert_true(transformer_graph_build(rig.model, request->n_tokens, request->n_past, &graph));
    if (request->pin) ggml_backend_sched_set_tensor_backend(sched, graph.logits, rig.streams[2]);
    assert_true(ggml_backend_sched_alloc_graph(sched, graph.graph));
    note_streams(sched, graph.graph, outcome);
    transformer_set_inputs(rig.model, &graph, request->seed);
    assert_int_equal(ggml_backend_sched_graph_compute(sched, graph.graph), GGML_STATUS_SUCCESS);
    outcome->n_logits = ggml_nbytes(graph.logits);
    outcome->logits = malloc(outcome->n_logits);
    assert_non_null(outcome->logits);
    ggml_backend_tensor_get(graph.logits, outcome->logits, 0, outcome->n_logits);
    transformer_graph_free(&graph);
}

// The cache of keys and values is the model's and both write the same there.
static void test_results_are_the_same(void **state) {
    (void)state;
    for (int step = 0; step < 72; ++step) {
        const struct request request = request_of(step);
        struct outcome with = {0}, other = {0};
        run(rig.sched, &request, &with);
        run(without, &request, &other);
        assert_int_equal(with.n_splits, other.n_splits);
        assert_int_equal(with.n_nodes, other.n_nodes);
        assert_memory_equal(with.streams, other.streams,
                            (size_t)with.n_nodes * sizeof(with.streams[0]));
        assert_int_equal(with.n_logits, other.n_logits);
        assert_memory_equal(with.logits, other.logits, with.n_logits);
        free(with.logits);
        free(other.logits);
    }
}

static void test_memory_is_the_same(void **state) {
    (void)state;
    for (int step = 0; step < 72; ++step) {
        const struct request request = request_of(step);
        ggml_backend_sched_t scheds[] = {rig.sched, without};
        for (int i = 0; i < 2; ++i) {
            struct outcome outcome = {0};
            run(scheds[i], &request, &outcome);
            free(outcome.logits);
        }
        for (int i = 0; i < 3; ++i) {
            assert_int_equal(ggml_backend_sched_get_buffer_size(rig.sched, rig.streams[i]),
                             ggml_backend_sched_get_buffer_size(without, rig.streams[i]));
        }
    }
}

// A graph that was split before another one is refused by both, however often it is tried.
static void test_stale_graphs_are_refused_by_both(void **state) {
    (void)state;
    ggml_backend_sched_t scheds[] = {rig.sched, without};
    for (int i = 0; i < 2; ++i) {
        struct transformer_graph graphs[4];
        for (int k = 0; k < 4; ++k) {
            assert_true(transformer_graph_build(rig.model, 1, 4, &graphs[k]));
            ggml_backend_sched_reset(scheds[i]);
            assert_true(ggml_backend_sched_alloc_graph(scheds[i], graphs[k].graph));
        }
        for (int k = 0; k < 3; ++k) {
            ggml_backend_sched_reset(scheds[i]);
            assert_false(ggml_backend_sched_alloc_graph(scheds[i], graphs[k].graph));
        }
        assert_true(ggml_backend_sched_alloc_graph(scheds[i], graphs[3].graph));
        for (int k = 0; k < 4; ++k) {
            transformer_graph_free(&graphs[k]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_results_are_the_same, begin, end),
        cmocka_unit_test_setup_teardown(test_memory_is_the_same, begin, end),
        cmocka_unit_test_setup_teardown(test_stale_graphs_are_refused_by_both, begin, end),
    };
    return cmocka_run_group_tests_name("sched cache", tests, NULL, NULL);
}
