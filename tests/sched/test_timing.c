// SPDX-License-Identifier: MIT
// What cost-aware placement predicts is what devices with known delays take. Delays are slept, and
// long beside what this machine needs; the shortest of several runs counts, since other work on
// the machine only ever makes them longer.
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "rig.h"

enum { DEVICES = 2, WIDTH = 64, NODES = 10, MOST_RUNS = 20 };

static const double tolerance = 0.2;

static uint64_t random_state;

static uint32_t draw(uint32_t below) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

static double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// A product of 64 x 64 matrices takes 4 ms of computing on device 0, 16 on device 1; a copy of one
// 3 ms. Device 0 squares nothing, so that graphs have to pass from one to the other.
static void set_delays(struct rig *rig) {
    rig->config.node_delay_us = 2000;
    rig->config.node_ns_per_mflop = 8000000;
    rig->config.copy_delay_us = 2000;
    rig->config.copy_ns_per_kib = 64000;
    rig->config.refused_ops[GGML_OP_SQR / 64] = UINT64_C(1) << (GGML_OP_SQR % 64);
    assert_true(rig->host.configure(0, &rig->config));
    rig->config.refused_ops[GGML_OP_SQR / 64] = 0;
    rig->config.node_ns_per_mflop = 32000000;
    rig->config.node_delay_us = 1000;
    assert_true(rig->host.configure(1, &rig->config));
}

// The devices' own figures; the CPU is said to be so slow that nothing goes there.
static void use_declared(struct rig *rig) {
    const struct ggml_device_figures cpu = {
        .size = sizeof(cpu), .flops = 1e15, .bytes_per_second = 1e15, .launch_seconds = 1};
    const struct ggml_device_figures *figures[DEVICES + 1] = {NULL, NULL, &cpu};
    assert_int_equal(ggml_sched_set_costs(rig->sched, figures), GGML_HOST_OK);
}

struct random_graph {
    struct ggml_context *ctx;
    struct ggml_cgraph *graph;
    struct ggml_tensor *input;
};

// Each node goes on from the one before, or with `wide` from any.
static void build(struct random_graph *random, bool wide) {
    struct ggml_tensor *made[NODES + 1];
    random->ctx = ggml_init((struct ggml_init_params){.mem_size = 1 << 18, .no_alloc = true});
    random->graph = ggml_new_graph(random->ctx);
    made[0] = random->input = ggml_new_tensor_2d(random->ctx, GGML_TYPE_F32, WIDTH, WIDTH);
    ggml_set_input(made[0]);
    for (uint32_t i = 1; i <= NODES; ++i) {
        struct ggml_tensor *a = made[draw(i)], *b = made[wide ? draw(i) : i - 1];
        const uint32_t op = draw(3);
        made[i] = op == 0   ? ggml_mul_mat(random->ctx, a, b)
                  : op == 1 ? ggml_add(random->ctx, a, b)
                            : ggml_sqr(random->ctx, b);
        ggml_build_forward_expand(random->graph, made[i]);
    }
}

static double predict(struct rig *rig, struct ggml_cgraph *graph) {
    ggml_sched_report_t report = ggml_sched_report_new(rig->sched, graph);
    if (!report) fail_msg("%s", ggml_last_error());
    const double seconds = ggml_sched_report_elapsed(report);
    assert_true(seconds <= ggml_sched_report_seconds(report) * (1 + 1e-9));
    ggml_sched_report_free(report);
    return seconds;
}

static double run_once(struct rig *rig, struct ggml_cgraph *graph) {
    const double start = now_seconds();
    if (ggml_backend_sched_graph_compute(rig->sched, graph) != GGML_STATUS_SUCCESS) {
        virtual_print_violations(&rig->host);
        fail_msg("%s", ggml_last_error());
    }
    return now_seconds() - start;
}

// Runs the allocated graph until it took no longer than predicted, within the tolerance.
static void compare(struct rig *rig, struct ggml_cgraph *graph, double predicted,
                    const char *name) {
    double best = 0;
    for (int i = 0; i < MOST_RUNS && (i < 2 || best > predicted * (1 + tolerance)); ++i) {
        const double seconds = run_once(rig, graph);
        if (i == 0 || seconds < best) best = seconds;
    }
    print_message("# %s: predicted %.1f ms, measured %.1f ms, %d splits\n", name, predicted * 1e3,
                  best * 1e3, ggml_backend_sched_get_n_splits(rig->sched));
    assert_true(best >= predicted * (1 - tolerance));
    assert_true(best <= predicted * (1 + tolerance));
}

static void compare_random_graphs(bool wide, bool parallel) {
    struct rig rig;
    rig_open(&rig, DEVICES, &rig_shape, NULL, parallel);
    set_delays(&rig);
    use_declared(&rig);
    random_state = 5;
    for (int i = 0; i < 6; ++i) {
        struct random_graph random;
        build(&random, wide);
        const double predicted = predict(&rig, random.graph);
        ggml_backend_sched_reset(rig.sched);
        assert_true(ggml_backend_sched_alloc_graph(rig.sched, random.graph));
        ggml_backend_tensor_memset(random.input, 0, 0, ggml_nbytes(random.input));
        compare(&rig, random.graph, predicted, "random graph");
        ggml_backend_sched_reset(rig.sched);
        ggml_free(random.ctx);
    }
    rig_close(&rig);
}

static void test_chains(void **state) {
    (void)state;
    compare_random_graphs(false, false);
}

// Parts that don't need each other.
static void test_branches(void **state) {
    (void)state;
    compare_random_graphs(true, false);
}

static void test_branches_with_events(void **state) {
    (void)state;
    compare_random_graphs(true, true);
}

// Weights on both devices.
static void test_transformer(void **state) {
    (void)state;
    struct rig rig;
    struct transformer_shape shape = rig_shape;
    struct transformer_graph graph;
    shape.layers = 2;
    rig_open(&rig, DEVICES, &shape, NULL, false);
    set_delays(&rig);
    use_declared(&rig);
    assert_true(transformer_graph_build(rig.model, 4, 0, &graph));
    const double predicted = predict(&rig, graph.graph);
    assert_true(ggml_backend_sched_alloc_graph(rig.sched, graph.graph));
    transformer_set_inputs(rig.model, &graph, 1);
    compare(&rig, graph.graph, predicted, "transformer");
    transformer_graph_free(&graph);
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chains),
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_branches_with_events),
        cmocka_unit_test(test_transformer),
    };
    return cmocka_run_group_tests_name("sched timing", tests, NULL, NULL);
}
