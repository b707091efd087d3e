// SPDX-License-Identifier: MIT
// Streams, graphs, plans, events.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "device/stream.h"
#include "fake_device.h"
#include "ggml-impl.h"
#include "support/seen.h"

// sum = a + b on the fake device, allocated.
struct fixture {
    struct fake_device fake;
    ggml_backend_t stream;
    ggml_backend_buffer_t buffer;
    struct ggml_tensor a, b, sum;
    struct ggml_tensor *nodes[2];
    struct ggml_cgraph graph;
};

static struct fixture f;

static int set_up(void **state) {
    (void)state;
    memset(&f, 0, sizeof(f));
    fake_device_init(&f.fake, "FAKE");
    f.stream = ggml_backend_dev_init(&f.fake.device, NULL);
    f.buffer = ggml_backend_alloc_buffer(f.stream, 256);
    f.a = fake_tensor("a", 4, 1);
    f.b = fake_tensor("b", 4, 1);
    f.sum = fake_add(&f.a, &f.b);
    fake_place(f.buffer, &f.a, 0);
    fake_place(f.buffer, &f.b, 64);
    fake_place(f.buffer, &f.sum, 128);
    f.nodes[0] = &f.sum;
    f.graph.nodes = f.nodes;
    f.graph.n_nodes = 1;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    ggml_backend_free(f.stream);
    ggml_backend_buffer_free(f.buffer);
    return fake_device_alive(&f.fake);
}

static void test_stream_forwards(void **state) {
    (void)state;
    memcpy(f.fake.stream_table.guid, "0123456789abcdef", 16);
    assert_memory_equal(ggml_backend_guid(f.stream), "0123456789abcdef", 16);
    assert_string_equal(ggml_backend_name(f.stream), "FAKE");
    assert_ptr_equal(ggml_backend_get_device(f.stream), &f.fake.device);
    assert_ptr_equal(ggml_backend_get_default_buffer_type(f.stream), &f.fake.buft);
    assert_int_equal(ggml_backend_get_alignment(f.stream), 64);
    assert_int_equal(ggml_backend_get_max_size(f.stream), SIZE_MAX);
    assert_true(ggml_backend_supports_op(f.stream, &f.sum));
    assert_true(ggml_backend_supports_buft(f.stream, &f.fake.buft));
    assert_true(ggml_backend_offload_op(f.stream, &f.sum));
    struct ggml_graph view = seen(&f.graph);
    stream_graph_optimize(f.stream, &view);
    assert_int_equal(f.fake.calls.graph_optimize, 1);
}

static void test_null_stream(void **state) {
    (void)state;
    const int invalid = GGML_HOST_INVALID_ARGUMENT;
    assert_quiet(assert_string_equal(ggml_backend_name(NULL), "NULL"));
    assert_quiet(assert_null(ggml_backend_guid(NULL)));
    assert_quiet(ggml_backend_free(NULL));
    assert_refused(invalid, "get_device", assert_null(ggml_backend_get_device(NULL)));
    assert_refused(invalid, "NULL", assert_null(ggml_backend_get_default_buffer_type(NULL)));
    assert_refused(invalid, "NULL", assert_null(ggml_backend_alloc_buffer(NULL, 8)));
    assert_refused(invalid, "NULL", assert_int_equal(ggml_backend_get_alignment(NULL), 32));
    assert_refused(invalid, "NULL", assert_int_equal(ggml_backend_get_max_size(NULL), 0));
    assert_refused(invalid, "synchronize", ggml_backend_synchronize(NULL));
    assert_refused(invalid, "supports_op", assert_false(ggml_backend_supports_op(NULL, &f.sum)));
    assert_refused(invalid, "supports_buft",
                   assert_false(ggml_backend_supports_buft(NULL, &f.fake.buft)));
    assert_refused(invalid, "offload_op", assert_false(ggml_backend_offload_op(NULL, &f.sum)));
    struct ggml_graph view = seen(&f.graph);
    assert_refused(invalid, "optimize", stream_graph_optimize(NULL, &view));
    assert_refused(invalid, "optimize", stream_graph_optimize(f.stream, NULL));
}

static void test_stream_without_entries(void **state) {
    (void)state;
    static const struct ggml_stream_table table = {.size = sizeof(table)};
    struct ggml_backend bare = {.table = &table};
    const int invalid = GGML_HOST_INVALID_ARGUMENT;
    assert_refused(GGML_HOST_BAD_PLUGIN, "no name",
                   assert_string_equal(ggml_backend_name(&bare), "unnamed"));
    assert_refused(GGML_HOST_UNSUPPORTED, "free", ggml_backend_free(&bare));
    assert_quiet(ggml_backend_synchronize(&bare));
    struct ggml_graph view = seen(&f.graph);
    assert_quiet(stream_graph_optimize(&bare, &view));
    assert_refused(invalid, "device is NULL", assert_null(ggml_backend_alloc_buffer(&bare, 8)));
    assert_refused(invalid, "device is NULL",
                   assert_false(ggml_backend_supports_op(&bare, &f.sum)));
    assert_refused(
        GGML_HOST_UNSUPPORTED, "graph_compute",
        assert_int_equal(ggml_backend_graph_compute(&bare, &f.graph), GGML_STATUS_FAILED));
}

static void test_compute(void **state) {
    (void)state;
    const float a[4] = {1, 2, 3, 4};
    const float b[4] = {10, 20, 30, 40};
    float sum[4];
    ggml_backend_tensor_set_async(f.stream, &f.a, a, 0, sizeof(a));
    ggml_backend_tensor_set_async(f.stream, &f.b, b, 0, sizeof(b));
    assert_int_equal(ggml_backend_graph_compute_async(f.stream, &f.graph), GGML_STATUS_SUCCESS);
    assert_int_equal(f.fake.n_queued, 3);
    assert_quiet(
        assert_int_equal(ggml_backend_graph_compute(f.stream, &f.graph), GGML_STATUS_SUCCESS));
    assert_int_equal(f.fake.n_queued, 0);
    ggml_backend_tensor_get(&f.sum, sum, 0, sizeof(sum));
    for (int i = 0; i < 4; ++i)
        assert_true(sum[i] == a[i] + b[i]);
}

static void refused_graph(const char *text) {
    const int invalid = GGML_HOST_INVALID_ARGUMENT;
    const int before = f.fake.calls.graph_compute + f.fake.calls.plan_create;
    assert_refused(
        invalid, text,
        assert_int_equal(ggml_backend_graph_compute(f.stream, &f.graph), GGML_STATUS_FAILED));
    assert_refused(
        invalid, text,
        assert_int_equal(ggml_backend_graph_compute_async(f.stream, &f.graph), GGML_STATUS_FAILED));
    assert_refused(invalid, text, assert_null(ggml_backend_graph_plan_create(f.stream, &f.graph)));
    assert_int_equal(f.fake.calls.graph_compute + f.fake.calls.plan_create, before);
}

static void test_compute_refuses(void **state) {
    (void)state;
    struct ggml_tensor faulty = fake_tensor("faulty", 0, 0);
    faulty.flags = GGML_TENSOR_FLAG_ERROR;
    faulty.extra = (void *)"impossible shapes";
    assert_refused(GGML_HOST_INVALID_ARGUMENT, "stream",
                   ggml_backend_graph_compute(NULL, &f.graph));
    assert_refused(GGML_HOST_INVALID_ARGUMENT, "graph", ggml_backend_graph_compute(f.stream, NULL));
    f.graph.error = "the graph is full";
    refused_graph("the graph is full");
    f.graph.error = NULL;
    f.graph.n_nodes = 2;
    refused_graph("node of the graph is NULL");
    f.nodes[1] = &faulty;
    refused_graph("impossible shapes");
    f.graph.n_nodes = 1;
    f.sum.src[2] = &faulty;
    refused_graph("impossible shapes");
    f.sum.src[2] = NULL;
    f.graph.nodes = NULL;
    refused_graph("list of nodes");
}

static void test_compute_refuses_unallocated(void **state) {
    (void)state;
    void *data = f.sum.data;
    f.sum.data = NULL;
    refused_graph("'sum' has no data");
    f.sum.data = data;
    f.a.data = NULL;
    refused_graph("'a' has no data");
    f.a.data = f.graph.nodes;
    f.a.buffer = NULL;
    refused_graph("'a' lies in no buffer");
    struct ggml_tensor root = f.a;
    f.a.view_src = &root;
    f.a.view_offs = 4;
    refused_graph("'a' is a view that reaches beyond the end");
    f.a.view_src = NULL;
    f.sum.flags = 0; // not computed, so nothing is needed
    assert_quiet(
        assert_int_equal(ggml_backend_graph_compute(f.stream, &f.graph), GGML_STATUS_SUCCESS));
}

static void test_compute_status(void **state) {
    (void)state;
    f.fake.answer = GGML_HOST_ABORTED;
    assert_refused(
        GGML_HOST_ABORTED, "FAKE",
        assert_int_equal(ggml_backend_graph_compute(f.stream, &f.graph), GGML_STATUS_ABORTED));
    f.fake.answer = GGML_HOST_OUT_OF_MEMORY;
    assert_refused(
        GGML_HOST_OUT_OF_MEMORY, "out of memory",
        assert_int_equal(ggml_backend_graph_compute(f.stream, &f.graph), GGML_STATUS_ALLOC_FAILED));
    f.fake.answer = GGML_HOST_DEVICE_LOST;
    assert_refused(
        GGML_HOST_DEVICE_LOST, "device lost",
        assert_int_equal(ggml_backend_graph_compute(f.stream, &f.graph), GGML_STATUS_FAILED));
    f.fake.answer = GGML_HOST_FAILED;
    assert_refused(GGML_HOST_FAILED, "FAKE", ggml_backend_graph_compute(f.stream, &f.graph));
    f.fake.answer = 12345;
    assert_refused(
        GGML_HOST_BAD_PLUGIN, "12345",
        assert_int_equal(ggml_backend_graph_compute(f.stream, &f.graph), GGML_STATUS_FAILED));
}

static int32_t failing_synchronize(ggml_backend_t stream) {
    (void)stream;
    return GGML_HOST_OUT_OF_MEMORY;
}

static int32_t failing_wait(ggml_backend_t stream, ggml_backend_event_t event) {
    (void)stream, (void)event;
    return GGML_HOST_DEVICE_LOST;
}

// By a status alone, as of work that another thread did.
static void test_late_failures(void **state) {
    (void)state;
    ggml_backend_event_t event = ggml_backend_event_new(&f.fake.device);
    f.fake.stream_table.synchronize = failing_synchronize;
    assert_refused(
        GGML_HOST_OUT_OF_MEMORY, "FAKE",
        assert_int_equal(ggml_backend_graph_compute(f.stream, &f.graph), GGML_STATUS_ALLOC_FAILED));
    assert_refused(GGML_HOST_OUT_OF_MEMORY, "FAKE", ggml_backend_synchronize(f.stream));
    f.fake.stream_table.event_wait = failing_wait;
    assert_refused(GGML_HOST_DEVICE_LOST, "FAKE", ggml_backend_event_wait(f.stream, event));
    assert_int_equal(f.fake.calls.event_synchronize, 0);
    ggml_backend_event_free(event);
}

static void test_streams_and_events_need_tables(void **state) {
    (void)state;
    f.fake.stream_table.size = 40;
    assert_refused(GGML_HOST_BAD_PLUGIN, "table",
                   assert_null(ggml_backend_dev_init(&f.fake.device, NULL)));
    ggml_mem_free(f.fake.last); // nobody else can
    f.fake.event_table.size = 8;
    assert_refused(GGML_HOST_BAD_PLUGIN, "table",
                   assert_null(ggml_backend_event_new(&f.fake.device)));
    assert_int_equal(f.fake.n_streams, 2);
    assert_int_equal(f.fake.n_events, 1);
    ggml_mem_free(f.fake.last);
    f.fake.n_streams = 1;
    f.fake.n_events = 0;
}

static void test_plans(void **state) {
    (void)state;
    ggml_backend_graph_plan_t plan = ggml_backend_graph_plan_create(f.stream, &f.graph);
    assert_non_null(plan);
    assert_int_equal(ggml_backend_graph_plan_compute(f.stream, plan), GGML_STATUS_SUCCESS);
    assert_refused(GGML_HOST_INVALID_ARGUMENT, "plan is NULL",
                   ggml_backend_graph_plan_compute(f.stream, NULL));
    assert_refused(GGML_HOST_INVALID_ARGUMENT, "stream is NULL",
                   ggml_backend_graph_plan_compute(NULL, plan));
    assert_refused(GGML_HOST_INVALID_ARGUMENT, "stream is NULL",
                   ggml_backend_graph_plan_free(NULL, plan));
    assert_quiet(ggml_backend_graph_plan_free(f.stream, NULL));
    ggml_backend_graph_plan_free(f.stream, plan);
    f.fake.fails = true;
    assert_refused(GGML_HOST_FAILED, "FAKE",
                   assert_null(ggml_backend_graph_plan_create(f.stream, &f.graph)));
    f.fake.stream_table.graph_plan_compute = NULL;
    assert_refused(GGML_HOST_UNSUPPORTED, "graph plans",
                   assert_null(ggml_backend_graph_plan_create(f.stream, &f.graph)));
    f.fake.fails = false;
}

static void test_events(void **state) {
    (void)state;
    f.fake.forgets_device = true;
    ggml_backend_event_t event = ggml_backend_event_new(&f.fake.device);
    assert_quiet(ggml_backend_event_record(event, f.stream));
    assert_quiet(ggml_backend_event_wait(f.stream, event));
    assert_quiet(ggml_backend_event_synchronize(event));
    assert_int_equal(f.fake.calls.event_record, 1);
    assert_int_equal(f.fake.calls.event_wait, 1);
    assert_int_equal(f.fake.calls.event_synchronize, 1);
    f.fake.stream_table.event_wait = NULL;
    f.fake.stream_table.event_record = NULL;
    assert_quiet(ggml_backend_event_wait(f.stream, event));
    assert_int_equal(f.fake.calls.event_synchronize, 2);
    assert_refused(GGML_HOST_UNSUPPORTED, "event_record",
                   ggml_backend_event_record(event, f.stream));
    f.fake.event_table.synchronize = NULL;
    assert_refused(GGML_HOST_UNSUPPORTED, "waiting for events",
                   ggml_backend_event_synchronize(event));
    ggml_backend_event_free(event);
    assert_quiet(ggml_backend_event_free(NULL));
}

static void test_events_refuse(void **state) {
    (void)state;
    const int invalid = GGML_HOST_INVALID_ARGUMENT;
    ggml_backend_event_t event = ggml_backend_event_new(&f.fake.device);
    assert_refused(invalid, "event_new", assert_null(ggml_backend_event_new(NULL)));
    assert_refused(invalid, "event_record", ggml_backend_event_record(NULL, f.stream));
    assert_refused(invalid, "event_record", ggml_backend_event_record(event, NULL));
    assert_refused(invalid, "event_wait", ggml_backend_event_wait(f.stream, NULL));
    assert_refused(invalid, "event_wait", ggml_backend_event_wait(NULL, event));
    assert_refused(invalid, "event_synchronize", ggml_backend_event_synchronize(NULL));
    ggml_backend_event_free(event);
    f.fake.fails = true;
    assert_refused(GGML_HOST_FAILED, "FAKE", assert_null(ggml_backend_event_new(&f.fake.device)));
    f.fake.device_table.event_new = NULL;
    assert_refused(GGML_HOST_UNSUPPORTED, "events",
                   assert_null(ggml_backend_event_new(&f.fake.device)));
    f.fake.fails = false;
}

static void test_events_of_other_devices(void **state) {
    (void)state;
    struct fake_device other;
    fake_device_init(&other, "OTHER");
    ggml_backend_event_t event = ggml_backend_event_new(&other.device);
    assert_refused(GGML_HOST_INVALID_ARGUMENT, "OTHER", ggml_backend_event_record(event, f.stream));
    assert_quiet(ggml_backend_event_wait(f.stream, event));
    assert_int_equal(f.fake.calls.event_wait, 0);
    assert_int_equal(other.calls.event_synchronize, 1);
    other.device.reg = &f.fake.reg;
    ggml_backend_event_wait(f.stream, event);
    assert_int_equal(f.fake.calls.event_wait, 1);
    ggml_backend_event_free(event);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_stream_forwards),
        TEST(test_null_stream),
        TEST(test_stream_without_entries),
        TEST(test_compute),
        TEST(test_compute_refuses),
        TEST(test_compute_refuses_unallocated),
        TEST(test_compute_status),
        TEST(test_late_failures),
        TEST(test_streams_and_events_need_tables),
        TEST(test_plans),
        TEST(test_events),
        TEST(test_events_refuse),
        TEST(test_events_of_other_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
