// SPDX-License-Identifier: MIT
// The sequences of calls that clients make: reserve, reset, pins, reuse, callbacks, pipelining.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"

static struct rig rig;

static int end(void **state) {
    (void)state;
    rig_close(&rig);
    return 0;
}

static void open_two(void) {
    rig_open(&rig, 2, &rig_shape, NULL, false);
}

static float *compute(struct transformer_graph *graph, uint64_t seed) {
    transformer_set_inputs(rig.model, graph, seed);
    assert_int_equal(ggml_backend_sched_graph_compute(rig.sched, graph->graph),
                     GGML_STATUS_SUCCESS);
    float *logits = malloc(ggml_nbytes(graph->logits));
    ggml_backend_tensor_get(graph->logits, logits, 0, ggml_nbytes(graph->logits));
    return logits;
}

static void assert_reference(float *logits, int n_tokens, int n_past, uint64_t seed) {
    float *expected = rig_reference(&rig, n_tokens, n_past, seed);
    assert_memory_equal(logits, expected,
                        (size_t)n_tokens * (size_t)rig_shape.vocabulary * sizeof(float));
    free(logits);
    free(expected);
}

// After reserving for the largest graph smaller ones need no further memory.
static void test_reserve(void **state) {
    (void)state;
    open_two();
    struct transformer_graph largest;
    assert_true(transformer_graph_build(rig.model, 8, 20, &largest));
    size_t sizes[3] = {1, 1, 1};
    ggml_backend_sched_reserve_size(rig.sched, largest.graph, sizes);
    assert_int_equal(virtual_count(&rig.host, VIRTUAL_CALL_ALLOC, -1, NULL), 0);
    assert_int_equal(ggml_backend_sched_get_n_splits(rig.sched), 3);
    assert_true(ggml_backend_sched_reserve(rig.sched, largest.graph));
    for (int i = 0; i < 3; ++i) {
        assert_int_equal(ggml_backend_sched_get_buffer_size(rig.sched, rig.streams[i]), sizes[i]);
        assert_true(sizes[i] > 0);
    }
    rig.host.log_clear();
    // The reserved graph is untouched and can be computed itself.
    assert_null(largest.tokens->buffer);
    assert_true(ggml_backend_sched_alloc_graph(rig.sched, largest.graph));
    free(compute(&largest, 1));
    transformer_graph_free(&largest);
    rig_check(&rig, 8, 0, 3);
    rig_check(&rig, 1, 8, 4);
    rig_check(&rig, 1, 9, 5);
    assert_int_equal(virtual_count(&rig.host, VIRTUAL_CALL_ALLOC, -1, NULL), 0);
}

// The same graph again: without reset, and after one.
static void test_reuse(void **state) {
    (void)state;
    open_two();
    struct transformer_graph graph;
    assert_true(transformer_graph_build(rig.model, 4, 0, &graph));
    assert_true(ggml_backend_sched_alloc_graph(rig.sched, graph.graph));
    for (uint64_t seed = 1; seed < 4; ++seed) {
        assert_reference(compute(&graph, seed), 4, 0, seed);
    }
    struct ggml_tensor *src = ggml_graph_node(graph.graph, 10)->src[0];
    ggml_backend_sched_reset(rig.sched);
    assert_true(ggml_backend_sched_alloc_graph(rig.sched, graph.graph));
    assert_ptr_equal(ggml_graph_node(graph.graph, 10)->src[0], src);
    assert_reference(compute(&graph, 5), 4, 0, 5);
    // With a pin it is placed anew, from its own sources.
    ggml_backend_sched_reset(rig.sched);
    ggml_backend_sched_set_tensor_backend(rig.sched, graph.logits, rig.streams[2]);
    assert_true(ggml_backend_sched_alloc_graph(rig.sched, graph.graph));
    assert_int_equal(ggml_backend_sched_get_n_splits(rig.sched), 4);
    assert_reference(compute(&graph, 6), 4, 0, 6);
    transformer_graph_free(&graph);
}

static void test_another_graph_is_refused(void **state) {
    (void)state;
    open_two();
    struct transformer_graph first, second;
    assert_true(transformer_graph_build(rig.model, 4, 0, &first));
    assert_true(transformer_graph_build(rig.model, 2, 0, &second));
    assert_true(ggml_backend_sched_alloc_graph(rig.sched, first.graph));
    assert_false(ggml_backend_sched_alloc_graph(rig.sched, second.graph));
    assert_int_equal(ggml_backend_sched_graph_compute(rig.sched, second.graph), GGML_STATUS_FAILED);
    assert_non_null(strstr(ggml_last_error(), "not the graph that is allocated"));
    ggml_backend_sched_reset(rig.sched);
    assert_true(ggml_backend_sched_alloc_graph(rig.sched, second.graph));
    ggml_backend_sched_reset(rig.sched);
    // The first one's sources and addresses are gone.
    assert_false(ggml_backend_sched_alloc_graph(rig.sched, first.graph));
    assert_non_null(strstr(ggml_last_error(), "build a new one"));
    transformer_graph_free(&first);
    transformer_graph_free(&second);
    rig_check(&rig, 3, 0, 9);
}

static void test_pins(void **state) {
    (void)state;
    open_two();
    struct transformer_graph graph;
    assert_true(transformer_graph_build(rig.model, 4, 0, &graph));
    assert_null(ggml_backend_sched_get_tensor_backend(rig.sched, graph.logits));
    ggml_backend_sched_set_tensor_backend(rig.sched, graph.logits, rig.streams[1]);
    ggml_backend_sched_set_tensor_backend(rig.sched, graph.logits, rig.streams[0]);
    assert_ptr_equal(ggml_backend_sched_get_tensor_backend(rig.sched, graph.logits),
                     rig.streams[0]);
    ggml_backend_sched_split_graph(rig.sched, graph.graph);
    assert_ptr_equal(ggml_backend_sched_get_tensor_backend(rig.sched, graph.logits),
                     rig.streams[0]);
    assert_ptr_equal(ggml_backend_sched_get_tensor_backend(rig.sched, graph.tokens),
                     rig.streams[2]);
    assert_true(ggml_backend_sched_alloc_graph(rig.sched, graph.graph));
    assert_reference(compute(&graph, 1), 4, 0, 1);
    ggml_backend_sched_reset(rig.sched);
    assert_null(ggml_backend_sched_get_tensor_backend(rig.sched, graph.logits));
    transformer_graph_free(&graph);
}

struct observer {
    int asked, shown, stop_after;
    const char *wanted;
};

static bool observe(struct ggml_tensor *tensor, bool ask, void *user) {
    struct observer *observer = user;
    if (ask) {
        observer->asked++;
        return tensor->op == GGML_OP_SOFT_MAX;
    }
    float value;
    ggml_backend_tensor_get(tensor, &value, 0, sizeof(value));
    assert_true(value >= 0 && value <= 1);
    return ++observer->shown != observer->stop_after;
}

static void test_callback(void **state) {
    (void)state;
    open_two();
    struct observer observer = {0};
    ggml_backend_sched_set_eval_callback(rig.sched, observe, &observer);
    rig_check(&rig, 4, 0, 1);
    assert_int_equal(observer.shown, rig_shape.layers);
    const int n_nodes = observer.asked;
    // false stops everything, not only one split.
    observer = (struct observer){.stop_after = 2};
    assert_null(rig_run(&rig, 4, 0, 1));
    assert_int_equal(ggml_last_status(), GGML_HOST_ABORTED);
    assert_int_equal(observer.shown, 2);
    assert_true(observer.asked < n_nodes);
    ggml_backend_sched_set_eval_callback(rig.sched, NULL, NULL);
    rig_check(&rig, 4, 0, 1);
}

static void copy_slowly(struct virtual_config *config) {
    config->node_delay_us = 20;
}

// Several graphs in flight: results as ever, also where a graph is computed again.
static void test_pipeline(void **state) {
    (void)state;
    rig_open(&rig, 4, &rig_shape, copy_slowly, true);
    assert_int_equal(ggml_backend_sched_get_n_copies(rig.sched), 4);
    enum { N = 6 };
    struct transformer_graph graphs[N];
    float *logits[N];
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < N; ++i) {
            ggml_backend_sched_reset(rig.sched);
            assert_true(transformer_graph_build(rig.model, 2, 2 * i, &graphs[i]));
            assert_true(ggml_backend_sched_alloc_graph(rig.sched, graphs[i].graph));
            transformer_set_inputs(rig.model, &graphs[i], (uint64_t)i);
            assert_int_equal(ggml_backend_sched_graph_compute_async(rig.sched, graphs[i].graph),
                             GGML_STATUS_SUCCESS);
            const size_t size = ggml_nbytes(graphs[i].logits);
            logits[i] = malloc(size);
            ggml_backend_t stream =
                ggml_backend_sched_get_tensor_backend(rig.sched, graphs[i].logits);
            ggml_backend_tensor_get_async(stream, graphs[i].logits, logits[i], 0, size);
        }
        ggml_backend_sched_synchronize(rig.sched);
        for (int i = 0; i < N; ++i) {
            assert_reference(logits[i], 2, 2 * i, (uint64_t)i);
        }
        assert_reference(compute(&graphs[N - 1], 77), 2, 2 * (N - 1), 77);
        for (int i = 0; i < N; ++i) {
            transformer_graph_free(&graphs[i]);
        }
    }
}

// Without events everything is waited for on the host.
static void no_events(struct virtual_config *config) {
    config->events = 0;
    config->peer_copy = 0;
}

static void test_without_events(void **state) {
    (void)state;
    rig_open(&rig, 2, &rig_shape, no_events, true);
    rig_check(&rig, 4, 0, 1);
    rig_check(&rig, 1, 4, 2);
    rig_check(&rig, 1, 5, 3);
}

struct realloc_calls {
    int calls;
    bool ids_changed, size_changed; // of the last
};

static void count_realloc(ggml_backend_sched_t sched, struct ggml_cgraph *graph, bool ids_changed,
                          bool size_changed, void *user_data) {
    struct realloc_calls *counted = user_data;
    assert_ptr_equal(sched, rig.sched);
    assert_true(ggml_graph_n_nodes(graph) > 0);
    *counted = (struct realloc_calls){counted->calls + 1, ids_changed, size_changed};
}

static void test_realloc_callback(void **state) {
    (void)state;
    struct realloc_calls counted = {0};
    open_two();
    ggml_backend_sched_set_realloc_callback(rig.sched, count_realloc, &counted);
    rig_check(&rig, 1, 0, 1);
    assert_int_equal(counted.calls, 1);
    assert_true(counted.size_changed);
    rig_check(&rig, 1, 1, 2); // fits
    assert_int_equal(counted.calls, 1);
    rig_check(&rig, 8, 0, 3); // the same nodes, larger
    assert_int_equal(counted.calls, 2);
    assert_false(counted.ids_changed);
    assert_false(counted.size_changed);
    ggml_backend_sched_set_realloc_callback(rig.sched, NULL, NULL);
    rig_check(&rig, 16, 0, 4);
    assert_int_equal(counted.calls, 2);
}

// Streams and scheduler may be freed in any order.
static void test_streams_are_freed_first(void **state) {
    (void)state;
    open_two();
    rig_check(&rig, 4, 0, 1);
    struct transformer_graph graph;
    assert_true(transformer_graph_build(rig.model, 2, 4, &graph));
    ggml_backend_t stream = rig.streams[1];
    rig.streams[1] = ggml_backend_dev_init(virtual_device(&rig.host, 1), NULL);
    ggml_backend_free(stream);
    assert_null(ggml_backend_sched_get_backend(rig.sched, 1));
    assert_non_null(ggml_backend_sched_get_backend(rig.sched, 0));
    assert_false(ggml_backend_sched_alloc_graph(rig.sched, graph.graph));
    assert_non_null(strstr(ggml_last_error(), "has been freed"));
    assert_int_equal(ggml_backend_sched_graph_compute(rig.sched, graph.graph), GGML_STATUS_FAILED);
    ggml_backend_sched_synchronize(rig.sched);
    ggml_backend_sched_reset(rig.sched);
    transformer_graph_free(&graph);
    for (int i = 0; i < 3; ++i) {
        ggml_backend_free(rig.streams[i]);
        rig.streams[i] = NULL;
    }
    ggml_backend_sched_free(rig.sched); // with work that was queued on streams that are gone
    rig.sched = NULL;
}

static void test_a_stream_twice(void **state) {
    (void)state;
    open_two();
    ggml_backend_t streams[] = {rig.streams[0], rig.streams[2], rig.streams[2]};
    ggml_backend_sched_free(rig.sched);
    rig.sched = ggml_backend_sched_new(streams, NULL, 3, 100, false, false);
    assert_non_null(rig.sched);
    assert_ptr_equal(ggml_backend_sched_get_backend(rig.sched, 1), rig.streams[2]);
    assert_ptr_equal(ggml_backend_sched_get_backend(rig.sched, 2), rig.streams[2]);
    struct transformer *model = rig.model;
    rig.model = rig.reference; // in the CPU's memory
    rig_check(&rig, 4, 0, 1);
    rig_check(&rig, 1, 4, 2);
    rig.model = model;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_reserve, end),
        cmocka_unit_test_teardown(test_reuse, end),
        cmocka_unit_test_teardown(test_another_graph_is_refused, end),
        cmocka_unit_test_teardown(test_pins, end),
        cmocka_unit_test_teardown(test_callback, end),
        cmocka_unit_test_teardown(test_pipeline, end),
        cmocka_unit_test_teardown(test_without_events, end),
        cmocka_unit_test_teardown(test_realloc_callback, end),
        cmocka_unit_test_teardown(test_streams_are_freed_first, end),
        cmocka_unit_test_teardown(test_a_stream_twice, end),
    };
    return cmocka_run_group_tests_name("sched sequence", tests, NULL, NULL);
}
