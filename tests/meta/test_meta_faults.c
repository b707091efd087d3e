// SPDX-License-Identifier: MIT
// The meta device with arguments that make no sense, failures at every place, and data in and out
// of every kind of split.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "meta/meta.h"
#include "meta_test.h"

static struct virtual_host host;
static struct virtual_config config;

static void configure(void) {
    assert_true(host.configure(-1, &config));
}

// --- making one ----------------------------------------------------------------------------------

static void test_arguments(void **state) {
    (void)state;
    static struct split_plan plan = {.n_devices = 2, .weights = {1, 1}};
    ggml_backend_dev_t devices[17];
    for (size_t j = 0; j < 17; ++j)
        devices[j] = virtual_device(&host, j % 8);
    assert_null(ggml_backend_meta_device(NULL, 1, meta_test_split, &plan));
    assert_null(ggml_backend_meta_device(devices, 0, meta_test_split, &plan));
    assert_null(ggml_backend_meta_device(devices, 17, meta_test_split, &plan));
    assert_null(ggml_backend_meta_device(devices, 2, NULL, &plan));
    assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    ggml_backend_dev_t meta = ggml_backend_meta_device(devices, 2, meta_test_split, &plan);
    assert_non_null(meta);
    assert_ptr_equal(meta, ggml_backend_meta_device(devices, 2, meta_test_split, &plan));
    assert_ptr_not_equal(meta, ggml_backend_meta_device(devices, 3, meta_test_split, &plan));
    assert_ptr_not_equal(meta, ggml_backend_meta_device(devices, 2, meta_test_split, NULL));
    assert_null(ggml_backend_meta_device(&meta, 1, meta_test_split, &plan));
    devices[1] = NULL;
    assert_null(ggml_backend_meta_device(devices, 2, meta_test_split, &plan));
}

static void test_properties(void **state) {
    (void)state;
    static struct split_plan plan = {.n_devices = 2, .weights = {1, 1}};
    ggml_backend_dev_t devices[] = {virtual_device(&host, 0), virtual_device(&host, 1)};
    ggml_backend_dev_t meta = ggml_backend_meta_device(devices, 2, meta_test_split, &plan);
    struct ggml_backend_dev_props props;
    config.memory = 1 << 20;
    config.alignment = 64;
    assert_true(host.configure(0, &config));
    config.memory = 1 << 21;
    config.alignment = 512;
    assert_true(host.configure(1, &config));
    ggml_backend_dev_get_props(meta, &props);
    assert_string_equal(props.name, "Meta(VIRTUAL0,VIRTUAL1)");
    assert_int_equal(props.type, GGML_BACKEND_DEVICE_TYPE_META);
    assert_int_equal(props.memory_total, 3 << 20);
    assert_true(props.caps.async && !props.caps.events && !props.caps.buffer_from_host_ptr);
    ggml_backend_buffer_type_t buft = ggml_backend_dev_buffer_type(meta);
    assert_int_equal(ggml_backend_buft_get_alignment(buft), 512);
    assert_false(ggml_backend_buft_is_host(buft));
    assert_true(ggml_backend_dev_supports_buft(meta, buft));
    assert_false(ggml_backend_dev_supports_buft(meta, ggml_backend_dev_buffer_type(devices[0])));
    assert_null(ggml_backend_dev_backend_reg(meta));
    assert_string_equal(ggml_backend_meta_split_axis_name(GGML_BACKEND_SPLIT_AXIS_2), "2");
    assert_string_equal(ggml_backend_meta_split_axis_name(GGML_BACKEND_SPLIT_AXIS_MIRRORED),
                        "MIRRORED");
    assert_string_equal(ggml_backend_meta_split_axis_name((enum ggml_backend_meta_split_axis)55),
                        "UNKNOWN");
}

// Devices are told what their parts of a buffer are used for.
static void test_usage(void **state) {
    (void)state;
    static struct split_plan plan = {
        .n_devices = 2, .weights = {1, 1}, .rules = {{.prefix = "w", .axis = 1}}};
    ggml_backend_dev_t devices[] = {virtual_device(&host, 0), virtual_device(&host, 1)};
    ggml_backend_dev_t meta = ggml_backend_meta_device(devices, 2, meta_test_split, &plan);
    struct ggml_context *ctx = ggml_init((struct ggml_init_params){4096, NULL, true});
    struct ggml_tensor *w = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 8, 4);
    ggml_set_name(w, "w");
    ggml_backend_buffer_t buffer =
        ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_dev_buffer_type(meta));
    assert_non_null(buffer);
    ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    for (size_t j = 0; j < 2; ++j) {
        const struct meta_buffer *parts = meta_buffer_of(buffer);
        assert_int_equal(parts->n_members[j], 1);
        assert_int_equal(parts->members[j][0]->usage, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    }
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
}

// --- splits that make no sense -------------------------------------------------------------------

static struct ggml_backend_meta_split_state given(const struct ggml_tensor *tensor, void *user) {
    (void)tensor;
    return *(struct ggml_backend_meta_split_state *)user;
}

static void test_bad_splits(void **state) {
    (void)state;
    static struct ggml_backend_meta_split_state bad[] = {
        {.axis = GGML_BACKEND_SPLIT_AXIS_0, .n_segments = 1, .nr = {1}, .ne = {32, 64}},
        {.axis = GGML_BACKEND_SPLIT_AXIS_0, .n_segments = 1, .nr = {1}, .ne = {-32, 96}},
        {.axis = GGML_BACKEND_SPLIT_AXIS_0, .n_segments = 1, .nr = {1}, .ne = {16, 48}},
        {.axis = GGML_BACKEND_SPLIT_AXIS_0, .n_segments = 0, .nr = {1}, .ne = {32, 32}},
        {.axis = GGML_BACKEND_SPLIT_AXIS_1, .n_segments = 17, .nr = {1}, .ne = {1, 1}},
        {.axis = GGML_BACKEND_SPLIT_AXIS_1, .n_segments = 1, .nr = {UINT32_MAX}, .ne = {1, 1}},
        {.axis = GGML_BACKEND_SPLIT_AXIS_1, .n_segments = 1, .nr = {2}, .ne = {INT64_MAX, 3}},
        {.axis = GGML_BACKEND_SPLIT_AXIS_UNKNOWN, .n_segments = 1, .nr = {1}},
        {.axis = (enum ggml_backend_meta_split_axis)7, .n_segments = 1, .nr = {1}},
        {.axis = (enum ggml_backend_meta_split_axis) - 1, .n_segments = 1, .nr = {1}},
    };
    ggml_backend_dev_t devices[] = {virtual_device(&host, 0), virtual_device(&host, 1)};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        ggml_backend_dev_t meta = ggml_backend_meta_device(devices, 2, given, &bad[i]);
        struct ggml_context *ctx = ggml_init((struct ggml_init_params){4096, NULL, true});
        struct ggml_tensor *tensor = ggml_new_tensor_2d(ctx, GGML_TYPE_Q8_0, 64, 6);
        ggml_clear_error();
        assert_null(
            ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_dev_buffer_type(meta)));
        assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
        assert_null(tensor->buffer);
        ggml_free(ctx);
    }
}

// --- data ----------------------------------------------------------------------------------------

struct data_case {
    enum ggml_type type;
    int64_t ne[4];
    struct ggml_backend_meta_split_state state;
};

#define AXIS(a) .axis = GGML_BACKEND_SPLIT_AXIS_##a
static struct data_case data_cases[] = {
    {GGML_TYPE_F32, {12, 5, 3, 2}, {AXIS(0), .n_segments = 1, .nr = {1}, .ne = {5, 0, 7}}},
    {GGML_TYPE_F32, {12, 5, 3, 2}, {AXIS(1), .n_segments = 1, .nr = {1}, .ne = {1, 4, 0}}},
    {GGML_TYPE_F16, {12, 5, 3, 2}, {AXIS(2), .n_segments = 1, .nr = {1}, .ne = {1, 1, 1}}},
    {GGML_TYPE_F32, {12, 5, 3, 2}, {AXIS(3), .n_segments = 1, .nr = {1}, .ne = {0, 1, 1}}},
    {GGML_TYPE_Q8_0, {128, 5, 3, 2}, {AXIS(0), .n_segments = 1, .nr = {1}, .ne = {32, 64, 32}}},
    {GGML_TYPE_F32,
     {24, 5, 3, 2},
     {AXIS(0), .n_segments = 3, .nr = {2, 1, 3}, .ne = {1, 2, 3, 4, 0, 2, 0, 1, 1}}},
    {GGML_TYPE_F32,
     {4, 24, 3, 2},
     {AXIS(1), .n_segments = 3, .nr = {2, 1, 3}, .ne = {1, 2, 3, 4, 0, 2, 0, 1, 1}}},
    {GGML_TYPE_F32, {4, 5, 3, 2}, {AXIS(MIRRORED), .n_segments = 1, .nr = {1}}},
    {GGML_TYPE_F32, {4, 5, 3, 2}, {AXIS(PARTIAL), .n_segments = 1, .nr = {1}}},
};

static void check_ranges(struct ggml_tensor *tensor, ggml_backend_t stream) {
    const size_t bytes = ggml_nbytes(tensor);
    uint8_t *wanted = malloc(bytes), *got = malloc(bytes);
    uint32_t random = 1;
    for (size_t i = 0; i < bytes; ++i)
        wanted[i] = (uint8_t)(i * 37 + i / 256);
    ggml_backend_tensor_set(tensor, wanted, 0, bytes);
    for (int i = 0; i < 60; ++i) {
        random = random * 1664525u + 1013904223u;
        const size_t offset = random % bytes;
        const size_t size = 1 + (random >> 12) % (bytes - offset);
        memset(got, 0, bytes);
        ggml_backend_tensor_get_async(stream, tensor, got, offset, size);
        ggml_backend_synchronize(stream);
        assert_memory_equal(got, wanted + offset, size);
        for (size_t k = 0; k < size; ++k)
            wanted[offset + k] = (uint8_t)(random >> (k % 24));
        ggml_backend_tensor_set_async(stream, tensor, wanted + offset, offset, size);
        ggml_backend_synchronize(stream);
    }
    ggml_backend_tensor_get(tensor, got, 0, bytes);
    assert_memory_equal(got, wanted, bytes);
    ggml_backend_tensor_memset(tensor, 3, bytes / 3, bytes / 2);
    memset(wanted + bytes / 3, 3, bytes / 2);
    ggml_backend_tensor_get(tensor, got, 0, bytes);
    assert_memory_equal(got, wanted, bytes);
    free(wanted);
    free(got);
}

static void test_data_of_every_split(void **state) {
    (void)state;
    ggml_backend_dev_t devices[] = {virtual_device(&host, 0), virtual_device(&host, 1),
                                    virtual_device(&host, 2)};
    for (size_t i = 0; i < sizeof(data_cases) / sizeof(data_cases[0]); ++i) {
        struct data_case *c = &data_cases[i];
        ggml_backend_dev_t meta = ggml_backend_meta_device(devices, 3, given, &c->state);
        ggml_backend_t stream = ggml_backend_dev_init(meta, NULL);
        struct ggml_context *ctx = ggml_init((struct ggml_init_params){4096, NULL, true});
        struct ggml_tensor *tensor = ggml_new_tensor(ctx, c->type, 4, c->ne);
        ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, stream);
        if (!buffer) fail_msg("case %zu: %s", i, ggml_last_error());
        check_ranges(tensor, stream);
        ggml_backend_buffer_free(buffer);
        ggml_backend_free(stream);
        ggml_free(ctx);
    }
}

// --- failures ------------------------------------------------------------------------------------

static struct split_plan fault_plan = {
    .n_devices = 3,
    .weights = {1, 2, 1},
    .rules = {{.prefix = "up", .axis = 1}, {.prefix = "down", .axis = 0}}};

static struct ggml_tensor *two_layers(struct meta_run *run, void *user) {
    (void)user;
    struct ggml_tensor *x = meta_leaf(run, "x", GGML_TYPE_F32, 32, 3, 1, 1);
    struct ggml_tensor *up = meta_leaf(run, "up", GGML_TYPE_F32, 32, 64, 1, 1);
    struct ggml_tensor *down = meta_leaf(run, "down", GGML_TYPE_F32, 64, 32, 1, 1);
    struct ggml_tensor *h = ggml_soft_max(run->nodes, ggml_mul_mat(run->nodes, up, x)); // gathered
    h = ggml_mul(run->nodes, h, ggml_mul_mat(run->nodes, up, x));
    return ggml_sqr(run->nodes, ggml_mul_mat(run->nodes, down, h));
}

// What a failure of one kind at place n does; false once nothing fails any more.
static bool fails_at(int64_t *limit, int64_t n, bool must_say_lost) {
    struct meta_run run;
    meta_run_begin(&run, &host, &fault_plan, two_layers, NULL);
    float *expected = meta_run_result(&run);
    *limit = n;
    assert_true(host.configure(1, &config));
    ggml_clear_error();
    const enum ggml_status status = ggml_backend_graph_compute(run.stream, run.graph);
    const bool failed = status != GGML_STATUS_SUCCESS || ggml_last_status() != GGML_HOST_OK;
    if (failed && must_say_lost) {
        if (ggml_last_status() != GGML_HOST_DEVICE_LOST)
            fail_msg("%d: %s", (int)n, ggml_last_error());
        assert_non_null(strstr(ggml_last_error(), "VIRTUAL1"));
    }
    *limit = -1;
    configure();
    float *values = meta_run_result(&run);
    assert_memory_equal(values, expected, ggml_nbytes(run.result));
    free(values);
    free(expected);
    meta_run_end(&run);
    return failed;
}

static void sweep(int64_t *limit, bool must_say_lost) {
    int64_t n = 0;
    while (fails_at(limit, n, must_say_lost))
        ++n;
    assert_true(n > 0 && n < 100);
}

static void test_failing_devices(void **state) {
    (void)state;
    for (int communicator = 0; communicator < 2; ++communicator) {
        config.communicator = communicator;
        configure();
        sweep(&config.fail_alloc_after, false);
        sweep(&config.fail_compute_after, false);
        sweep(&config.fail_copy_after, false);
        sweep(&config.lose_after, true);
    }
}

// A rank fails while the sum is made: the graph fails, and the next has a group again.
static void test_failing_group(void **state) {
    (void)state;
    struct meta_run run;
    struct virtual_config of_one = config;
    meta_run_begin(&run, &host, &fault_plan, two_layers, NULL);
    float *expected = meta_run_result(&run);
    assert_true(virtual_count(&host, VIRTUAL_CALL_REDUCE, -1, NULL) > 0);
    of_one.fail_late = 1;
    of_one.fail_copy_after = 0;
    assert_true(host.configure(1, &of_one));
    assert_int_equal(ggml_backend_graph_compute(run.stream, run.graph), GGML_STATUS_FAILED);
    configure();
    host.log_clear();
    assert_int_equal(ggml_backend_graph_compute(run.stream, run.graph), GGML_STATUS_SUCCESS);
    assert_true(virtual_count(&host, VIRTUAL_CALL_REDUCE, -1, NULL) > 0);
    float *values = meta_run_result(&run);
    assert_memory_equal(values, expected, ggml_nbytes(run.result));
    free(values);
    free(expected);
    meta_run_end(&run);
}

// An extension that lacks something is as if it weren't there, and so is one that makes no group; a
// status that is none is told as the plugin's.
static void test_a_hostile_communicator(void **state) {
    (void)state;
    struct meta_run run;
    config.communicator = 0;
    configure();
    meta_run_begin(&run, &host, &fault_plan, two_layers, NULL);
    float *expected = meta_run_result(&run);
    meta_run_end(&run);
    config.communicator = 1;
    for (int kind = HOSTILE_COMM_NO_NEW; kind < HOSTILE_COMM_COUNT; ++kind) {
        config.hostile_comm = kind;
        configure();
        meta_run_begin(&run, &host, &fault_plan, two_layers, NULL);
        float *values = meta_run_result(&run);
        assert_memory_equal(values, expected, ggml_nbytes(run.result));
        free(values);
        meta_run_end(&run);
    }
    config.hostile_comm = 0;
    configure();
    meta_run_begin(&run, &host, &fault_plan, two_layers, NULL);
    config.hostile_comm = HOSTILE_COMM_NO_STATUS;
    configure();
    ggml_backend_t stream = ggml_backend_dev_init(ggml_backend_get_device(run.stream), NULL);
    assert_non_null(stream);
    ggml_clear_error();
    assert_int_equal(ggml_backend_graph_compute(stream, run.graph), GGML_STATUS_FAILED);
    assert_int_equal(ggml_last_status(), GGML_HOST_BAD_PLUGIN);
    assert_non_null(strstr(ggml_last_error(), "12345"));
    ggml_backend_free(stream);
    config.hostile_comm = 0;
    configure();
    free(expected);
    meta_run_end(&run);
}

// Nothing was filled: whatever was computed is finite all the same, as the inputs are zero.
static void check_result(const struct meta_run *run) {
    float value = 1.0f;
    ggml_backend_tensor_get(run->result, &value, 0, sizeof(value));
    if (value != 0.0f) fail_msg("%g: %s", (double)value, ggml_last_error());
}

static bool may_allocate(void *context) {
    atomic_int *left = context; // workers of the devices allocate too
    return atomic_fetch_sub(left, 1) != 0;
}

// Everything from the first stream to the result, with allocation n of the core and the plugin
// failing; false if there are not so many.
static bool runs_into_failure(int n) {
    atomic_int left = n;
    struct meta_run run = {0};
    const struct ggml_init_params params = {.mem_size = 128 << 10, .no_alloc = true};
    ggml_backend_dev_t devices[] = {virtual_device(&host, 0), virtual_device(&host, 1),
                                    virtual_device(&host, 2)};
    ggml_backend_dev_t meta = ggml_backend_meta_device(devices, 3, meta_test_split, &fault_plan);
    run.leafs = ggml_init(params);
    run.nodes = ggml_init(params);
    run.result = two_layers(&run, NULL);
    run.graph = ggml_new_graph_custom(run.nodes, 64, false);
    ggml_build_forward_expand(run.graph, run.result);
    bool done = false;
    ggml_mem_set_fault_hook(may_allocate, &left);
    run.stream = ggml_backend_dev_init(meta, NULL);
    if (run.stream) {
        ggml_backend_buffer_type_t buft = ggml_backend_dev_buffer_type(meta);
        run.memory = ggml_backend_alloc_ctx_tensors_from_buft(run.leafs, buft);
        run.galloc = ggml_gallocr_new(buft);
        if (run.memory) ggml_backend_buffer_clear(run.memory, 0);
        done = run.memory && run.galloc && ggml_gallocr_alloc_graph(run.galloc, run.graph) &&
               ggml_backend_graph_compute(run.stream, run.graph) == GGML_STATUS_SUCCESS;
    }
    ggml_mem_set_fault_hook(NULL, NULL);
    if (done)
        check_result(&run);
    else if (!*ggml_last_error() || ggml_last_status() == GGML_HOST_BAD_PLUGIN)
        fail_msg("allocation %d: '%s'", n, ggml_last_error());
    meta_run_end(&run);
    ggml_clear_error();
    return atomic_load(&left) < 0;
}

static void test_failing_allocations(void **state) {
    (void)state;
    int n = 0;
    while (runs_into_failure(n) && n < 2000)
        ++n;
    assert_true(n > 50 && n < 2000);
}

// More than can be allocated with the room to align it.
static void test_too_large_a_buffer(void **state) {
    (void)state;
    static struct split_plan plan = {.n_devices = 2, .weights = {1, 1}};
    ggml_backend_dev_t devices[] = {virtual_device(&host, 0), virtual_device(&host, 1)};
    ggml_backend_dev_t meta = ggml_backend_meta_device(devices, 2, meta_test_split, &plan);
    ggml_backend_buffer_type_t buft = ggml_backend_dev_buffer_type(meta);
    ggml_clear_error();
    assert_null(ggml_backend_buft_alloc_buffer(buft, SIZE_MAX - 1));
    assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_MEMORY);
    ggml_clear_error();
}

// A view that begins inside a device's share can be computed with, but has no bytes of its own.
static void test_view_across_devices(void **state) {
    (void)state;
    struct meta_run run;
    float values[3];
    meta_run_begin(&run, &host, &fault_plan, two_layers, NULL);
    struct ggml_tensor *up = ggml_get_first_tensor(run.leafs);
    while (strcmp(up->name, "up") != 0)
        up = ggml_get_next_tensor(run.leafs, up);
    struct ggml_tensor *view = ggml_view_1d(run.nodes, up, 3, 15 * up->nb[1]);
    assert_int_equal(ggml_backend_view_init(view), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get(view, values, 0, sizeof(values));
    assert_int_equal(ggml_last_status(), GGML_HOST_UNSUPPORTED);
    meta_run_end(&run);
}

static int begin(void **state) {
    (void)state;
    virtual_open(&host, "devices=8");
    return 0;
}

static int begin_test(void **state) {
    (void)state;
    host.default_config(&config);
    configure();
    host.log_clear();
    return 0;
}

static int end_test(void **state) {
    (void)state;
    return (int)virtual_print_violations(&host);
}

static int end(void **state) {
    (void)state;
    return (int)virtual_close(&host);
}

static void ignore(enum ggml_log_level level, const char *text, void *user) {
    (void)level;
    (void)text;
    (void)user;
}

#define FAULT_TEST(test) cmocka_unit_test_setup_teardown(test, begin_test, end_test)

int main(void) {
    const struct CMUnitTest tests[] = {
        FAULT_TEST(test_arguments),
        FAULT_TEST(test_properties),
        FAULT_TEST(test_bad_splits),
        FAULT_TEST(test_data_of_every_split),
        FAULT_TEST(test_view_across_devices),
        FAULT_TEST(test_failing_devices),
        FAULT_TEST(test_failing_allocations),
        FAULT_TEST(test_usage),
        FAULT_TEST(test_too_large_a_buffer),
        FAULT_TEST(test_failing_group),
        FAULT_TEST(test_a_hostile_communicator),
    };
    ggml_log_set(ignore, NULL);
    return cmocka_run_group_tests(tests, begin, end);
}
