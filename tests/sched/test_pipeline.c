// SPDX-License-Identifier: MIT
// Pipelining: devices work on different graphs at the same time, and nothing changes but the time.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"

enum {
    DEVICES = 4,
    GRAPHS = 10,
    DELAY_US = 30000,
    MOST_FLIGHTS = 10,
    REPETITIONS = 100,
    FEW_GRAPHS = 6, // more than there are copies, so that these are used again
};

static int64_t delay_of_stage(void *user, int device, const struct ggml_tensor *node) {
    (void)user;
    (void)device;
    return node->op == GGML_OP_SOFT_MAX ? DELAY_US * 1000 : 0; // one layer per device
}

static void slow_down(struct virtual_config *config) {
    config->node_ns = delay_of_stage;
}

struct flight {
    struct transformer_graph graphs[GRAPHS];
    float *logits[GRAPHS];
};

// Queues the first n graphs, without waiting in between, and then waits for all.
static void take_off(struct rig *rig, struct flight *flight, int n) {
    for (int i = 0; i < n; ++i) {
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

static void open_pipeline(struct rig *rig, void (*change)(struct virtual_config *config)) {
    struct transformer_shape shape = rig_shape;
    shape.layers = DEVICES;
    rig_open(rig, DEVICES, &shape, change, true);
    // Idle threads of the CPU that wait for work would keep the devices from theirs.
    ggml_backend_reg_t reg =
        ggml_backend_dev_backend_reg(ggml_backend_get_device(rig->streams[DEVICES]));
    ggml_backend_set_n_threads_t set_n_threads;
    void *address = ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads");
    assert_non_null(address);
    memcpy(&set_n_threads, &address, sizeof(address));
    set_n_threads(rig->streams[DEVICES], 1);
}

// What the CPU alone computes, the same in every repetition.
static void expect(struct rig *rig, float **out_expected, int n) {
    for (int i = 0; i < n; ++i) {
        out_expected[i] = rig_reference(rig, 1, i, (uint64_t)i);
    }
}

static void land(struct flight *flight, float *const *expected, int n) {
    for (int i = 0; i < n; ++i) {
        assert_memory_equal(flight->logits[i], expected[i], ggml_nbytes(flight->graphs[i].logits));
        free(flight->logits[i]);
        transformer_graph_free(&flight->graphs[i]);
    }
}

static void forget(float **expected, int n) {
    for (int i = 0; i < n; ++i) {
        free(expected[i]);
    }
}

// From the first graph's begin to the last one's end, in what one graph takes on average, which is
// DELAY_US and what the machine, or an emulator, needs to compute it.
static double span_in_graphs(const struct rig *rig) {
    struct virtual_record record;
    uint64_t begin = UINT64_MAX, end = 0, busy = 0;
    size_t n = 0;
    for (; virtual_find(&rig->host, VIRTUAL_CALL_GRAPH, -1, n, &record); ++n) {
        if (record.begin_ns < begin) begin = record.begin_ns;
        if (record.end_ns > end) end = record.end_ns;
        busy += record.end_ns - record.begin_ns;
    }
    return (double)(end - begin) * (double)n / (double)busy;
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

// Share of the ideal that one flight reaches.
static double fly(struct rig *rig, float *const *expected) {
    struct flight flight;
    rig->host.log_clear();
    take_off(rig, &flight, GRAPHS);
    // The last device begins when the first graph has passed the others.
    const double share = (GRAPHS + DEVICES - 1) / span_in_graphs(rig);
    assert_int_equal(most_at_once(rig), DEVICES);
    land(&flight, expected, GRAPHS);
    return share;
}

// Other work on the machine makes a flight longer, so the best of several counts.
static void test_overlap(void **state) {
    (void)state;
    struct rig rig;
    float *expected[GRAPHS];
    open_pipeline(&rig, slow_down);
    struct transformer_graph largest;
    assert_true(transformer_graph_build(rig.model, 1, GRAPHS, &largest));
    assert_true(ggml_backend_sched_reserve(rig.sched, largest.graph));
    transformer_graph_free(&largest);
    expect(&rig, expected, GRAPHS);
    double best = 0;
    for (int i = 0; i < MOST_FLIGHTS && best < 0.8; ++i) {
        const double share = fly(&rig, expected);
        print_message("# %.0f %% of the ideal overlap\n", 100 * share);
        if (share > best) best = share;
    }
    assert_true(best >= 0.8);
    forget(expected, GRAPHS);
    rig_close(&rig);
}

static void test_repetitions(void **state) {
    (void)state;
    struct rig rig;
    struct flight flight;
    float *expected[FEW_GRAPHS];
    open_pipeline(&rig, NULL);
    expect(&rig, expected, FEW_GRAPHS);
    for (int i = 0; i < REPETITIONS; ++i) {
        take_off(&rig, &flight, FEW_GRAPHS);
        land(&flight, expected, FEW_GRAPHS);
    }
    forget(expected, FEW_GRAPHS);
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_repetitions),
    };
    return cmocka_run_group_tests_name("sched pipeline", tests, NULL, NULL);
}
