// SPDX-License-Identifier: MIT
// Pipelining: devices work on different graphs at the same time, and nothing changes but the time.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"

enum { DEVICES = 4, GRAPHS = 16, DELAY_US = 10000 };

static int64_t delay_of_stage(void *user, int device, const struct ggml_tensor *node) {
    (void)user;
    (void)device;
    return node->op == GGML_OP_SOFT_MAX ? DELAY_US * 1000 / 2 : 0; // two layers per device
}

static void slow_down(struct virtual_config *config) {
    config->node_ns = delay_of_stage;
}

struct flight {
    struct transformer_graph graphs[GRAPHS];
    float *logits[GRAPHS];
};

static void take_off(struct rig *rig, struct flight *flight) {
    for (int i = 0; i < GRAPHS; ++i) {
        struct transformer_graph *graph = &flight->graphs[i];
        assert_true(transformer_graph_build(rig->model, 1, i, graph));
        ggml_backend_sched_reset(rig->sched);
        assert_true(ggml_backend_sched_alloc_graph(rig->sched, graph->graph));
        transformer_set_inputs(rig->model, graph, (uint64_t)i);
        assert_int_equal(ggml_backend_sched_graph_compute_async(rig->sched, graph->graph),
                         GGML_STATUS_SUCCESS);
        flight->logits[i] = malloc(ggml_nbytes(graph->logits));
        ggml_backend_t stream = ggml_backend_sched_get_tensor_backend(rig->sched, graph->logits);
        ggml_backend_tensor_get_async(stream, graph->logits, flight->logits[i], 0,
                                      ggml_nbytes(graph->logits));
    }
    ggml_backend_sched_synchronize(rig->sched);
}

static void land(struct rig *rig, struct flight *flight, bool check) {
    for (int i = 0; i < GRAPHS; ++i) {
        float *expected = check ? rig_reference(rig, 1, i, (uint64_t)i) : NULL;
        if (check) {
            assert_memory_equal(flight->logits[i], expected, ggml_nbytes(flight->graphs[i].logits));
        }
        free(expected);
        free(flight->logits[i]);
        transformer_graph_free(&flight->graphs[i]);
    }
}

static uint64_t span_ns(const struct rig *rig) {
    struct virtual_record record;
    uint64_t begin = UINT64_MAX, end = 0;
    for (size_t i = 0; virtual_find(&rig->host, VIRTUAL_CALL_GRAPH, -1, i, &record); ++i) {
        if (record.begin_ns < begin) begin = record.begin_ns;
        if (record.end_ns > end) end = record.end_ns;
    }
    return end - begin;
}

// The largest number of graphs that were computed at the same moment.
static int most_at_once(const struct rig *rig) {
    struct virtual_record a, b;
    int most = 0;
    for (size_t i = 0; virtual_find(&rig->host, VIRTUAL_CALL_GRAPH, -1, i, &a); ++i) {
        int n = 0;
        for (size_t k = 0; virtual_find(&rig->host, VIRTUAL_CALL_GRAPH, -1, k, &b); ++k) {
            n += b.begin_ns <= a.begin_ns && a.begin_ns < b.end_ns;
        }
        if (n > most) most = n;
    }
    return most;
}

static void test_overlap(void **state) {
    (void)state;
    struct rig rig;
    struct flight flight;
    rig_open(&rig, DEVICES, &rig_shape, slow_down, true);
    struct transformer_graph largest;
    assert_true(transformer_graph_build(rig.model, 1, GRAPHS, &largest));
    assert_true(ggml_backend_sched_reserve(rig.sched, largest.graph));
    transformer_graph_free(&largest);
    rig.host.log_clear();
    take_off(&rig, &flight);
    // Each device needs DELAY_US per graph; the last begins when the first graph has passed the
    // others.
    const double ideal = (GRAPHS + DEVICES - 1) * (double)DELAY_US * 1000;
    print_message("# %.0f %% of the ideal overlap\n", 100 * ideal / (double)span_ns(&rig));
    assert_int_equal(most_at_once(&rig), DEVICES);
    land(&rig, &flight, true);
    rig_close(&rig);
}

static void test_repetitions(void **state) {
    (void)state;
    struct rig rig;
    struct flight flight;
    rig_open(&rig, DEVICES, &rig_shape, NULL, true);
    for (int i = 0; i < 25; ++i) {
        take_off(&rig, &flight);
        land(&rig, &flight, i % 6 == 0);
    }
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_repetitions),
    };
    return cmocka_run_group_tests_name("sched pipeline", tests, NULL, NULL);
}
