// SPDX-License-Identifier: MIT
// Cost-aware placement against the usual one and against trying everything.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"

enum { NODES = 6, STREAMS = 3, CASES = 40 };

static uint64_t random_state;

static uint32_t draw(uint32_t below) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

struct small {
    struct ggml_context *ctx;
    struct ggml_cgraph *graph;
    struct ggml_tensor *nodes[NODES];
};

// Each node adds two tensors before it, or squares one.
static void build(struct small *small) {
    struct ggml_tensor *made[NODES + 2];
    small->ctx = ggml_init((struct ggml_init_params){.mem_size = 1 << 18, .no_alloc = true});
    small->graph = ggml_new_graph(small->ctx);
    made[0] = ggml_new_tensor_1d(small->ctx, GGML_TYPE_F32, 1024);
    made[1] = ggml_new_tensor_1d(small->ctx, GGML_TYPE_F32, 1024);
    ggml_set_input(made[0]);
    ggml_set_input(made[1]);
    for (uint32_t i = 0; i < NODES; ++i) {
        struct ggml_tensor *a = made[draw(i + 2)], *b = made[draw(i + 2)];
        made[i + 2] = draw(2) ? ggml_add(small->ctx, a, b) : ggml_sqr(small->ctx, a);
        small->nodes[i] = made[i + 2];
        ggml_build_forward_expand(small->graph, made[i + 2]);
    }
}

static void draw_costs(struct ggml_sched_cost *costs) {
    for (int b = 0; b < STREAMS; ++b) {
        costs[b] = (struct ggml_sched_cost){
            .flops = 1e9 * (1 + draw(50)),
            .bytes_per_second = 1e9 * (1 + draw(50)),
            .launch_seconds = 1e-7 * draw(30),
            .link_bytes_per_second = 1e9 * (1 + draw(20)),
            .link_seconds = 1e-7 * draw(30),
        };
    }
}

static double predict(struct rig *rig, struct small *small) {
    ggml_sched_report_t report = ggml_sched_report_new(rig->sched, small->graph);
    if (!report) fail_msg("%s", ggml_last_error());
    const double seconds = ggml_sched_report_seconds(report);
    ggml_sched_report_free(report);
    return seconds;
}

// Number `code` names a stream for each node.
static double predict_pinned(struct rig *rig, struct small *small, int code) {
    for (int i = 0; i < NODES; ++i, code /= STREAMS) {
        ggml_backend_sched_set_tensor_backend(rig->sched, small->nodes[i],
                                              rig->streams[code % STREAMS]);
    }
    return predict(rig, small);
}

static double predict_best(struct rig *rig, struct small *small) {
    double best = predict_pinned(rig, small, 0);
    for (int code = 1; code < 729; ++code) {
        const double seconds = predict_pinned(rig, small, code);
        if (seconds < best) best = seconds;
    }
    return best;
}

static void test_against_everything(void **state) {
    (void)state;
    struct rig rig;
    rig_open(&rig, STREAMS - 1, &rig_shape, NULL, false);
    random_state = 20;
    int optimal = 0;
    for (int i = 0; i < CASES; ++i) {
        struct small small;
        struct ggml_sched_cost costs[STREAMS];
        build(&small);
        draw_costs(costs);
        assert_int_equal(ggml_sched_set_costs(rig.sched, costs), GGML_HOST_OK);
        const double found = predict(&rig, &small);
        const double best = predict_best(&rig, &small);
        assert_true(found >= best * (1 - 1e-9));
        optimal += found <= best * (1 + 1e-9);
        ggml_free(small.ctx);
    }
    print_message("# optimal in %d of %d cases\n", optimal, CASES);
    assert_true(optimal * 100 >= CASES * 95);
    rig_close(&rig);
}

// Where one device is far better, everything goes there, and the results are the same.
static void test_model(void **state) {
    (void)state;
    struct rig rig;
    rig_open(&rig, 2, &rig_shape, NULL, false);
    struct ggml_sched_cost costs[STREAMS] = {
        {1e12, 1e12, 1e-6, 1e10, 1e-5, 0},
        {1e12, 1e12, 1e-6, 1e10, 1e-5, 0},
        {1e9, 1e9, 1e-6, 1e10, 1e-5, 0},
    };
    assert_int_equal(ggml_sched_set_costs(rig.sched, costs), GGML_HOST_OK);
    rig_check(&rig, 4, 0, 1);
    rig_check(&rig, 1, 4, 2);
    rig_check(&rig, 1, 5, 3);
    costs[1].flops = 1e6; // so slow that its weights are copied to the other
    costs[1].bytes_per_second = 1e6;
    assert_int_equal(ggml_sched_set_costs(rig.sched, costs), GGML_HOST_OK);
    rig.host.log_clear();
    rig_check(&rig, 2, 6, 4);
    const size_t on_slow = virtual_count(&rig.host, VIRTUAL_CALL_NODE, 1, NULL);
    const size_t on_fast = virtual_count(&rig.host, VIRTUAL_CALL_NODE, 0, NULL);
    assert_true(on_slow * 4 < on_fast);
    costs[1].flops = 0;
    assert_int_equal(ggml_sched_set_costs(rig.sched, costs), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(ggml_sched_set_costs(NULL, costs), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(ggml_sched_set_costs(rig.sched, NULL), GGML_HOST_OK);
    rig_check(&rig, 2, 8, 5);
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_everything),
        cmocka_unit_test(test_model),
    };
    return cmocka_run_group_tests_name("sched cost", tests, NULL, NULL);
}
