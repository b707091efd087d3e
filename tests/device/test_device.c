// SPDX-License-Identifier: MIT
// Devices, and the count of what lives on them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "device/check.h"
#include "fake_device.h"
#include "ggml-impl.h"
#include "plugin/registry/live.h"

// The linker sends the wrappers' calls here.
void __wrap_host_live_add(ggml_backend_dev_t device);
void __wrap_host_live_remove(ggml_backend_dev_t device);

static int live;

void __wrap_host_live_add(ggml_backend_dev_t device) {
    if (device) live++;
}

void __wrap_host_live_remove(ggml_backend_dev_t device) {
    if (device) live--;
}

static struct fake_device fake;

static int set_up(void **state) {
    (void)state;
    fake_device_init(&fake, "FAKE");
    live = 0;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    return fake_device_alive(&fake) + live;
}

static void test_queries(void **state) {
    (void)state;
    struct ggml_backend_dev_props props;
    size_t available;
    size_t total;
    assert_string_equal(ggml_backend_dev_name(&fake.device), "FAKE");
    assert_string_equal(ggml_backend_dev_description(&fake.device), "FAKE");
    ggml_backend_dev_memory(&fake.device, &available, &total);
    assert_true(available == 10 && total == 20);
    assert_quiet(ggml_backend_dev_memory(&fake.device, NULL, NULL));
    assert_int_equal(ggml_backend_dev_type(&fake.device), GGML_BACKEND_DEVICE_TYPE_GPU);
    assert_quiet(ggml_backend_dev_get_props(&fake.device, &props));
    assert_int_equal(props.memory_total, 20);
    assert_null(props.device_id);
    assert_ptr_equal(ggml_backend_dev_backend_reg(&fake.device), &fake.reg);
    assert_ptr_equal(ggml_backend_dev_buffer_type(&fake.device), &fake.buft);
    assert_ptr_equal(ggml_backend_dev_host_buffer_type(&fake.device), &fake.host_buft);
}

static void test_null_device(void **state) {
    (void)state;
    struct ggml_backend_dev_props props;
    const struct ggml_tensor op = fake_tensor("op", 1, 1);
    size_t available = 1;
    size_t total = 1;
    char memory[8];
    const int invalid = GGML_HOST_INVALID_ARGUMENT;
    assert_refused(invalid, "dev_name", assert_non_null(ggml_backend_dev_name(NULL)));
    assert_refused(invalid, "description", assert_non_null(ggml_backend_dev_description(NULL)));
    assert_refused(invalid, "memory", ggml_backend_dev_memory(NULL, &available, &total));
    assert_true(available == 0 && total == 0);
    assert_refused(invalid, "dev_type", assert_int_equal(ggml_backend_dev_type(NULL), 0));
    assert_refused(invalid, "props", ggml_backend_dev_get_props(NULL, &props));
    assert_non_null(props.name);
    assert_refused(invalid, "props", ggml_backend_dev_get_props(&fake.device, NULL));
    assert_refused(invalid, "reg", assert_null(ggml_backend_dev_backend_reg(NULL)));
    assert_refused(invalid, "init", assert_null(ggml_backend_dev_init(NULL, NULL)));
    assert_refused(invalid, "buffer_type", assert_null(ggml_backend_dev_buffer_type(NULL)));
    assert_refused(invalid, "host_buffer", assert_null(ggml_backend_dev_host_buffer_type(NULL)));
    assert_refused(invalid, "host_ptr",
                   assert_null(ggml_backend_dev_buffer_from_host_ptr(NULL, memory, 8, 8)));
    assert_refused(invalid, "host_ptr",
                   assert_null(ggml_backend_dev_buffer_from_host_ptr(&fake.device, NULL, 8, 8)));
    assert_refused(invalid, "supports_op", assert_false(ggml_backend_dev_supports_op(NULL, &op)));
    assert_refused(invalid, "supports_buft",
                   assert_false(ggml_backend_dev_supports_buft(NULL, &fake.buft)));
    assert_refused(invalid, "supports_buft",
                   assert_false(ggml_backend_dev_supports_buft(&fake.device, NULL)));
    assert_refused(invalid, "offload_op", assert_false(ggml_backend_dev_offload_op(NULL, &op)));
}

static void test_ops(void **state) {
    (void)state;
    struct ggml_tensor op = fake_tensor("op", 1, 1);
    const int invalid = GGML_HOST_INVALID_ARGUMENT;
    assert_quiet(assert_false(ggml_backend_dev_supports_op(&fake.device, &op)));
    op.op = GGML_OP_ADD;
    assert_true(ggml_backend_dev_supports_op(&fake.device, &op));
    assert_true(ggml_backend_dev_supports_buft(&fake.device, &fake.buft));
    assert_true(ggml_backend_dev_offload_op(&fake.device, &op));
    assert_refused(invalid, "tensor",
                   assert_false(ggml_backend_dev_supports_op(&fake.device, NULL)));
    assert_refused(invalid, "tensor",
                   assert_false(ggml_backend_dev_offload_op(&fake.device, NULL)));
    op.flags = GGML_TENSOR_FLAG_ERROR;
    op.extra = (void *)"impossible";
    assert_refused(invalid, "impossible",
                   assert_false(ggml_backend_dev_supports_op(&fake.device, &op)));
    assert_int_equal(fake.calls.supports_op, 2);
}

static void test_missing_entries(void **state) {
    (void)state;
    struct ggml_backend_dev_props props;
    static const struct ggml_device_table table = {.size = sizeof(table)};
    struct ggml_backend_device bare = {.table = &table};
    const struct ggml_tensor op = fake_tensor("op", 1, 1);
    size_t available = 1;
    size_t total = 1;
    char memory[8];
    const int bad = GGML_HOST_BAD_PLUGIN;
    const int unsupported = GGML_HOST_UNSUPPORTED;
    assert_refused(bad, "name", assert_string_equal(ggml_backend_dev_name(&bare), "unnamed"));
    assert_refused(bad, "description", assert_non_null(ggml_backend_dev_description(&bare)));
    assert_quiet(ggml_backend_dev_memory(&bare, &available, &total));
    assert_true(available == 0 && total == 0);
    assert_refused(bad, "type",
                   assert_int_equal(ggml_backend_dev_type(&bare), GGML_BACKEND_DEVICE_TYPE_ACCEL));
    ggml_backend_dev_get_props(&bare, &props);
    assert_non_null(props.name);
    assert_non_null(props.description);
    assert_refused(unsupported, "init_backend", assert_null(ggml_backend_dev_init(&bare, NULL)));
    assert_refused(bad, "buffer type", assert_null(ggml_backend_dev_buffer_type(&bare)));
    assert_quiet(assert_null(ggml_backend_dev_host_buffer_type(&bare)));
    assert_refused(unsupported, "host_ptr",
                   assert_null(ggml_backend_dev_buffer_from_host_ptr(&bare, memory, 8, 8)));
    assert_refused(unsupported, "supports_op",
                   assert_false(ggml_backend_dev_supports_op(&bare, &op)));
    assert_refused(unsupported, "supports_buft",
                   assert_false(ggml_backend_dev_supports_buft(&bare, &fake.buft)));
    assert_quiet(assert_false(ggml_backend_dev_offload_op(&bare, &op)));
    fake.device_table.get_props = NULL;
    assert_quiet(ggml_backend_dev_get_props(&fake.device, &props));
    assert_int_equal(props.type, GGML_BACKEND_DEVICE_TYPE_GPU);
    assert_int_equal(props.memory_free, 10);
}

static void test_device_misbehaves(void **state) {
    (void)state;
    struct ggml_backend_dev_props props;
    size_t available;
    size_t total;
    const int bad = GGML_HOST_BAD_PLUGIN;
    fake.memory_free = 21;
    assert_refused(bad, "21 free bytes of 20",
                   ggml_backend_dev_memory(&fake.device, &available, &total));
    assert_int_equal(available, 20);
    assert_refused(bad, "21 free", ggml_backend_dev_get_props(&fake.device, &props));
    assert_int_equal(props.memory_free, 20);
    fake.memory_free = 0;
    fake.type = 99;
    assert_refused(
        bad, "FAKE",
        assert_int_equal(ggml_backend_dev_type(&fake.device), GGML_BACKEND_DEVICE_TYPE_ACCEL));
    assert_refused(bad, "FAKE", ggml_backend_dev_get_props(&fake.device, &props));
    assert_int_equal(props.type, GGML_BACKEND_DEVICE_TYPE_ACCEL);
    fake.name = NULL;
    assert_refused(bad, "name",
                   assert_string_equal(ggml_backend_dev_name(&fake.device), "unnamed"));
    ggml_backend_dev_get_props(&fake.device, &props);
    assert_string_equal(props.name, "unnamed");
    assert_string_equal(props.description, "unnamed");
    fake.fails = true;
    assert_refused(bad, "buffer type", assert_null(ggml_backend_dev_buffer_type(&fake.device)));
    assert_refused(GGML_HOST_FAILED, "stream",
                   assert_null(ggml_backend_dev_init(&fake.device, "x")));
    fake.reason = "no such queue";
    assert_refused(GGML_HOST_DEVICE_LOST, "no such queue",
                   assert_null(ggml_backend_dev_init(&fake.device, NULL)));
}

static void test_stream_gets_its_device(void **state) {
    (void)state;
    fake.forgets_device = true;
    ggml_backend_t stream = ggml_backend_dev_init(&fake.device, NULL);
    assert_ptr_equal(ggml_backend_get_device(stream), &fake.device);
    ggml_backend_free(stream);
}

static void test_host_pointer(void **state) {
    (void)state;
    char memory[16] = "0123456789abcde";
    ggml_backend_buffer_t buffer =
        ggml_backend_dev_buffer_from_host_ptr(&fake.device, memory, 16, 16);
    assert_int_equal(ggml_backend_buffer_get_size(buffer), 16);
    assert_int_equal(live, 1);
    ggml_backend_buffer_free(buffer);
    fake.fails = true;
    assert_refused(
        GGML_HOST_FAILED, "16 bytes",
        assert_null(ggml_backend_dev_buffer_from_host_ptr(&fake.device, memory, 16, 16)));
}

static void test_every_object_is_counted(void **state) {
    (void)state;
    struct ggml_cgraph graph = {0};
    ggml_backend_t stream = ggml_backend_dev_init(&fake.device, NULL);
    assert_int_equal(live, 1);
    ggml_backend_buffer_t members[] = {ggml_backend_buft_alloc_buffer(&fake.buft, 8),
                                       ggml_backend_buft_alloc_buffer(&fake.host_buft, 0)};
    assert_int_equal(live, 3);
    ggml_backend_event_t event = ggml_backend_event_new(&fake.device);
    ggml_backend_graph_plan_t plan = ggml_backend_graph_plan_create(stream, &graph);
    assert_int_equal(live, 5);
    ggml_backend_buffer_t multi = ggml_backend_multi_buffer_alloc_buffer(members, 2);
    ggml_backend_buffer_t local = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), 8);
    assert_int_equal(live, 5);
    ggml_backend_buffer_free(local);
    ggml_backend_buffer_free(multi);
    assert_int_equal(live, 3);
    ggml_backend_graph_plan_free(stream, plan);
    ggml_backend_event_free(event);
    ggml_backend_free(stream);
    assert_int_equal(live, 0);
}

static void test_objects_made_without_a_wrapper_do_not_count(void **state) {
    (void)state;
    ggml_backend_t stream = NULL;
    assert_int_equal(fake.device_table.init_backend(&fake.device, NULL, &stream), GGML_HOST_OK);
    ggml_backend_buffer_t buffer = NULL;
    assert_int_equal(fake.buft_table.alloc_buffer(&fake.buft, 8, &buffer), GGML_HOST_OK);
    ggml_backend_event_t event = NULL;
    assert_int_equal(fake.device_table.event_new(&fake.device, &event), GGML_HOST_OK);
    assert_int_equal(live, 0);
    ggml_backend_free(stream);
    ggml_backend_buffer_free(buffer);
    ggml_backend_event_free(event);
    assert_int_equal(live, 0);
}

static bool countdown(void *context) {
    int *left = context;
    return (*left)-- > 0;
}

static void test_failing_allocations_are_balanced(void **state) {
    (void)state;
    for (int budget = 0;; ++budget) {
        int left = budget;
        assert_in_range(budget, 0, 20);
        ggml_mem_set_fault_hook(countdown, &left);
        struct ggml_cgraph graph = {0};
        ggml_backend_t stream = ggml_backend_dev_init(&fake.device, NULL);
        ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(&fake.buft, 8);
        ggml_backend_event_t event = ggml_backend_event_new(&fake.device);
        ggml_backend_graph_plan_t plan =
            stream ? ggml_backend_graph_plan_create(stream, &graph) : NULL;
        ggml_mem_set_fault_hook(NULL, NULL);
        const bool complete = stream && buffer && event && plan;
        assert_int_equal(live, fake_device_alive(&fake));
        ggml_backend_graph_plan_free(stream, plan);
        ggml_backend_event_free(event);
        ggml_backend_buffer_free(buffer);
        ggml_backend_free(stream);
        assert_int_equal(live + fake_device_alive(&fake), 0);
        if (complete) break;
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_queries),
        TEST(test_null_device),
        TEST(test_ops),
        TEST(test_missing_entries),
        TEST(test_device_misbehaves),
        TEST(test_stream_gets_its_device),
        TEST(test_host_pointer),
        TEST(test_every_object_is_counted),
        TEST(test_objects_made_without_a_wrapper_do_not_count),
        TEST(test_failing_allocations_are_balanced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
