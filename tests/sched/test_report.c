// SPDX-License-Identifier: MIT
// Placement reports: what they say is what happens.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/mem.h"
#include "rig.h"

static struct rig rig;
static struct transformer_graph graph;

static int begin(void **state) {
    (void)state;
    rig_open(&rig, 2, &rig_shape, NULL, false);
    return transformer_graph_build(rig.model, 4, 0, &graph) ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    transformer_graph_free(&graph);
    rig_close(&rig);
    return 0;
}

static void test_plan_is_exact(void **state) {
    (void)state;
    ggml_sched_report_t report = ggml_sched_report_new(rig.sched, graph.graph);
    assert_non_null(report);
    assert_int_equal(virtual_count(&rig.host, VIRTUAL_CALL_ALLOC, -1, NULL), 0);
    assert_true(ggml_backend_sched_alloc_graph(rig.sched, graph.graph));
    assert_int_equal(ggml_sched_report_stream_count(report), 3);
    for (size_t i = 0; i < 3; ++i) {
        const struct ggml_sched_stream_info *stream = ggml_sched_report_stream(report, i);
        assert_int_equal(stream->bytes,
                         ggml_backend_sched_get_buffer_size(rig.sched, rig.streams[i]));
    }
    assert_string_equal(ggml_sched_report_stream(report, 1)->memory, "VIRTUAL1");
    assert_null(ggml_sched_report_stream(report, 3));
    ggml_sched_report_free(report);
}

// Splits cover the nodes; copies are those that the devices see.
static void test_splits(void **state) {
    (void)state;
    ggml_sched_report_t report = ggml_sched_report_new(rig.sched, graph.graph);
    size_t bytes = 0;
    int next = 0;
    assert_int_equal(ggml_sched_report_split_count(report), 3);
    for (size_t i = 0; i < 3; ++i) {
        const struct ggml_sched_split_info *split = ggml_sched_report_split(report, i);
        assert_int_equal(split->first_node, next);
        next += split->n_nodes;
        bytes += split->copied_bytes;
        for (int k = split->first_node; k < next; ++k) {
            const struct ggml_sched_node_info *node = ggml_sched_report_node(report, (size_t)k);
            assert_int_equal(node->split, i);
            assert_string_equal(node->device, split->device);
        }
    }
    assert_int_equal(next, ggml_sched_report_node_count(report));
    assert_string_equal(ggml_sched_report_split(report, 0)->copies[0].tensor, "tokens");
    assert_string_equal(ggml_sched_report_split(report, 0)->copies[0].from, "CPU");
    assert_string_equal(ggml_sched_report_split(report, 0)->copies[0].reason,
                        "an input of the graph");
    ggml_sched_report_free(report);

    rig.host.log_clear();
    rig_check(&rig, 4, 0, 1);
    uint64_t set_bytes, copied_bytes;
    virtual_count(&rig.host, VIRTUAL_CALL_SET, -1, &set_bytes);
    virtual_count(&rig.host, VIRTUAL_CALL_COPY, -1, &copied_bytes);
    assert_int_equal(bytes, set_bytes + copied_bytes);
}

static const char *reason_of(ggml_sched_report_t report, const char *op) {
    for (size_t i = 0; i < ggml_sched_report_node_count(report); ++i) {
        const struct ggml_sched_node_info *node = ggml_sched_report_node(report, i);
        if (strcmp(node->op, op) == 0) return node->reason;
    }
    return NULL;
}

static void test_reasons(void **state) {
    (void)state;
    ggml_backend_sched_set_tensor_backend(rig.sched, graph.logits, rig.streams[0]);
    ggml_sched_report_t report = ggml_sched_report_new(rig.sched, graph.graph);
    const size_t last = ggml_sched_report_node_count(report) - 1;
    assert_string_equal(ggml_sched_report_node(report, last)->reason, "pinned by the caller");
    assert_string_equal(reason_of(report, "GET_ROWS"), "its weight is there");
    assert_string_equal(reason_of(report, "RMS_NORM"), "follows its neighbours");
    assert_string_equal(reason_of(report, "CPY"), "its memory is there");
    assert_string_equal(reason_of(report, "RESHAPE"), "moves no data");
    ggml_sched_report_free(report);
}

static void test_written(void **state) {
    (void)state;
    ggml_set_name(graph.logits, "lo\"g\nits");
    ggml_sched_report_t report = ggml_sched_report_new(rig.sched, graph.graph);
    const char *text = ggml_sched_report_text(report);
    assert_non_null(strstr(text, "split 1 on VIRTUAL0"));
    assert_non_null(strstr(text, "copy mask from CPU, 64 bytes: an input of the graph"));
    assert_ptr_equal(ggml_sched_report_text(report), text);
    json_error_t error;
    json_t *json = json_loads(ggml_sched_report_json(report), 0, &error);
    if (!json) fail_msg("line %d: %s", error.line, error.text);
    assert_int_equal(json_array_size(json_object_get(json, "splits")), 3);
    assert_int_equal(json_array_size(json_object_get(json, "nodes")),
                     ggml_sched_report_node_count(report));
    json_t *stream = json_array_get(json_object_get(json, "streams"), 0);
    assert_string_equal(json_string_value(json_object_get(stream, "device")), "VIRTUAL0");
    json_decref(json);
    ggml_sched_report_free(report);
}

// Without a graph: of what is allocated.
static void test_of_allocated(void **state) {
    (void)state;
    assert_null(ggml_sched_report_new(rig.sched, NULL));
    assert_null(ggml_sched_report_new(NULL, graph.graph));
    assert_true(ggml_backend_sched_alloc_graph(rig.sched, graph.graph));
    ggml_sched_report_t report = ggml_sched_report_new(rig.sched, NULL);
    assert_int_equal(ggml_sched_report_split_count(report), 3);
    assert_true(ggml_sched_report_stream(report, 0)->bytes > 0);
    transformer_set_inputs(rig.model, &graph, 1);
    assert_int_equal(ggml_backend_sched_graph_compute(rig.sched, graph.graph), GGML_STATUS_SUCCESS);
    ggml_sched_report_free(report);
    ggml_sched_report_free(NULL);
}

static void test_allowed(void **state) {
    (void)state;
    assert_int_equal(ggml_sched_set_allowed(rig.sched, rig.streams, 1), GGML_HOST_OK);
    assert_false(ggml_backend_sched_alloc_graph(rig.sched, graph.graph));
    assert_int_equal(ggml_last_status(), GGML_HOST_UNSUPPORTED);
    assert_non_null(strstr(ggml_last_error(), "would run on VIRTUAL1"));
    assert_int_equal(ggml_sched_set_allowed(rig.sched, rig.streams, 2), GGML_HOST_OK);
    rig_check(&rig, 4, 0, 1);
    // The CPU is needed for what a device does not support.
    struct virtual_config config = rig.config;
    config.refused_ops[GGML_OP_SOFT_MAX / 64] |= (uint64_t)1 << (GGML_OP_SOFT_MAX % 64);
    assert_true(rig.host.configure(1, &config));
    ggml_backend_sched_reset(rig.sched);
    transformer_graph_free(&graph);
    assert_true(transformer_graph_build(rig.model, 3, 0, &graph));
    assert_false(ggml_backend_sched_alloc_graph(rig.sched, graph.graph));
    assert_non_null(strstr(ggml_last_error(), "(SOFT_MAX) would run on"));
    assert_int_equal(ggml_sched_set_allowed(rig.sched, NULL, 0), GGML_HOST_OK);
    rig_check(&rig, 3, 0, 1);
    ggml_backend_t foreign[] = {NULL};
    assert_int_equal(ggml_sched_set_allowed(rig.sched, foreign, 1), GGML_HOST_INVALID_ARGUMENT);
}

static long allocations_left;

static bool may_allocate(void *context) {
    (void)context;
    return allocations_left-- > 0;
}

static void test_no_memory(void **state) {
    (void)state;
    bool done = false;
    for (long n = 0; !done; ++n) {
        allocations_left = n;
        ggml_clear_error();
        ggml_mem_set_fault_hook(may_allocate, NULL);
        ggml_sched_report_t report = ggml_sched_report_new(rig.sched, graph.graph);
        done = report && ggml_sched_report_json(report) && ggml_sched_report_text(report);
        ggml_mem_set_fault_hook(NULL, NULL);
        if (!done) assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_MEMORY);
        ggml_sched_report_free(report);
    }
}

// A report on a graph with as many pipeline copies, but on other streams, changes no plan.
static void test_between_graphs(void **state) {
    (void)state;
    rig_open(&rig, 2, &rig_shape, NULL, true);
    for (int d = 0; d < 2; ++d) {
        float values[8] = {1, 2, 3};
        struct ggml_context *ctx =
            ggml_init((struct ggml_init_params){.mem_size = 1 << 18, .no_alloc = true});
        struct ggml_tensor *a = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 8);
        ggml_set_input(a);
        struct ggml_tensor *b = ggml_sqr(ctx, a);
        struct ggml_cgraph *small = ggml_new_graph(ctx);
        ggml_build_forward_expand(small, b);
        ggml_backend_sched_set_tensor_backend(rig.sched, b, rig.streams[d]);
        ggml_sched_report_free(ggml_sched_report_new(rig.sched, small));
        ggml_backend_sched_set_tensor_backend(rig.sched, b, rig.streams[d]);
        assert_true(ggml_backend_sched_alloc_graph(rig.sched, small));
        ggml_backend_tensor_set(a, values, 0, sizeof(values));
        assert_int_equal(ggml_backend_sched_graph_compute(rig.sched, small), GGML_STATUS_SUCCESS);
        ggml_backend_tensor_get(b, values, 0, sizeof(values));
        assert_true(values[2] == 9);
        ggml_backend_sched_reset(rig.sched);
        ggml_free(ctx);
    }
    rig_close(&rig);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_plan_is_exact), TEST(test_splits),
        TEST(test_reasons),       TEST(test_written),
        TEST(test_of_allocated),  TEST(test_allowed),
        TEST(test_no_memory),     cmocka_unit_test(test_between_graphs),
    };
    return cmocka_run_group_tests_name("sched report", tests, NULL, NULL);
}
