// SPDX-License-Identifier: MIT
// The virtual devices do what tests of others rely on.
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ggml-ext-comm.h"
#include "virtual_host.h"

enum { N = 1024 };

struct fixture {
    struct virtual_host host;
    struct virtual_config config;
    struct ggml_context *ctx;
    struct ggml_tensor *a[2], *b[2], *sum[2]; // on devices 0 and 1
    struct ggml_cgraph *graph[2];
    ggml_backend_buffer_t buffer[2];
    ggml_backend_t stream[2];
};

static void place(struct fixture *f, int i) {
    struct ggml_tensor *tensors[] = {f->a[i], f->b[i], f->sum[i]};
    f->buffer[i] = ggml_backend_alloc_buffer(f->stream[i], sizeof(float) * N * 3);
    assert_non_null(f->buffer[i]);
    char *base = ggml_backend_buffer_get_base(f->buffer[i]);
    for (size_t k = 0; k < 3; ++k) {
        assert_int_equal(ggml_backend_tensor_alloc(f->buffer[i], tensors[k], base + k * 4 * N), 0);
    }
}

static int begin(void **state) {
    struct fixture *f = calloc(1, sizeof(*f));
    virtual_open(&f->host, "devices=3,memory=1m");
    f->host.default_config(&f->config);
    f->config.memory = 1 << 20;
    f->ctx = ggml_init((struct ggml_init_params){.mem_size = 1 << 20, .no_alloc = true});
    for (int i = 0; i < 2; ++i) {
        f->stream[i] = ggml_backend_dev_init(virtual_device(&f->host, (size_t)i), NULL);
        assert_non_null(f->stream[i]);
        f->a[i] = ggml_new_tensor_1d(f->ctx, GGML_TYPE_F32, N);
        f->b[i] = ggml_new_tensor_1d(f->ctx, GGML_TYPE_F32, N);
        f->sum[i] = ggml_add(f->ctx, f->a[i], f->b[i]);
        f->graph[i] = ggml_new_graph(f->ctx);
        ggml_build_forward_expand(f->graph[i], f->sum[i]);
        place(f, i);
    }
    f->host.log_clear();
    *state = f;
    return 0;
}

static int end(void **state) {
    struct fixture *f = *state;
    for (int i = 0; i < 2; ++i) {
        ggml_backend_free(f->stream[i]);
        ggml_backend_buffer_free(f->buffer[i]);
    }
    ggml_free(f->ctx);
    const size_t n_violations = virtual_close(&f->host);
    free(f);
    return (int)n_violations;
}

static void fill(struct ggml_tensor *tensor, float value) {
    float values[N];
    for (int i = 0; i < N; ++i)
        values[i] = value;
    ggml_backend_tensor_set(tensor, values, 0, sizeof(values));
}

static float first(const struct ggml_tensor *tensor) {
    float value = 0;
    ggml_backend_tensor_get(tensor, &value, 0, sizeof(value));
    return value;
}

static struct virtual_record record(struct fixture *f, enum virtual_call call, int device,
                                    size_t i) {
    struct virtual_record found;
    assert_true(virtual_find(&f->host, call, device, i, &found));
    return found;
}

// Ends with 0 if reading the address works.
static void touch(const volatile float *address) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    const float value = *address;
    (void)value;
    _exit(0);
}

static int status_of_touching(const float *address) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) touch(address);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void test_host_access_faults(void **state) {
    struct fixture *f = *state;
    fill(f->a[0], 2.0f);
    const int status = status_of_touching(f->a[0]->data);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    const float *real = f->host.storage(f->a[0]);
    assert_int_equal(status_of_touching(real), 0);
    assert_true(real[N - 1] == 2.0f);
    assert_false(ggml_backend_buffer_is_host(f->buffer[0]));
}

static void test_new_memory_is_poisoned(void **state) {
    struct fixture *f = *state;
    const float value = first(f->a[0]);
    assert_true(value != value);
}

static void test_computes(void **state) {
    struct fixture *f = *state;
    fill(f->a[0], 2.0f);
    fill(f->b[0], 3.0f);
    assert_int_equal(ggml_backend_graph_compute(f->stream[0], f->graph[0]), GGML_STATUS_SUCCESS);
    assert_true(first(f->sum[0]) == 5.0f);
    assert_int_equal(record(f, VIRTUAL_CALL_GRAPH, 0, 0).n_nodes, 1);
    assert_int_equal(record(f, VIRTUAL_CALL_NODE, 0, 0).op, GGML_OP_ADD);
}

static void test_queued_work_keeps_its_order(void **state) {
    struct fixture *f = *state;
    float ones[N], result[N] = {0};
    for (int i = 0; i < N; ++i)
        ones[i] = 1.0f;
    f->config.graph_delay_us = 2000;
    assert_true(f->host.configure(0, &f->config));
    ggml_backend_tensor_set_async(f->stream[0], f->a[0], ones, 0, sizeof(ones));
    ggml_backend_tensor_set_async(f->stream[0], f->b[0], ones, 0, sizeof(ones));
    assert_int_equal(ggml_backend_graph_compute_async(f->stream[0], f->graph[0]),
                     GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get_async(f->stream[0], f->sum[0], result, 0, sizeof(result));
    ggml_backend_synchronize(f->stream[0]);
    assert_true(result[N - 1] == 2.0f);
    const struct virtual_record graph = record(f, VIRTUAL_CALL_GRAPH, 0, 0);
    const struct virtual_record get = record(f, VIRTUAL_CALL_GET, 0, 0);
    assert_true(graph.end_ns - graph.begin_ns >= 2000000);
    assert_true(get.called_ns < graph.end_ns && get.begin_ns >= graph.end_ns);
    assert_int_equal(get.bytes, sizeof(result));
}

static void test_devices_overlap(void **state) {
    struct fixture *f = *state;
    f->config.graph_delay_us = 30000;
    assert_true(f->host.configure(-1, &f->config));
    for (int i = 0; i < 2; ++i) {
        fill(f->a[i], 1.0f);
        fill(f->b[i], 1.0f);
    }
    for (int i = 0; i < 2; ++i)
        ggml_backend_graph_compute_async(f->stream[i], f->graph[i]);
    for (int i = 0; i < 2; ++i)
        ggml_backend_synchronize(f->stream[i]);
    const struct virtual_record a = record(f, VIRTUAL_CALL_GRAPH, 0, 0);
    const struct virtual_record b = record(f, VIRTUAL_CALL_GRAPH, 1, 0);
    assert_true(a.begin_ns < b.end_ns && b.begin_ns < a.end_ns);
}

static void test_events_order_streams(void **state) {
    struct fixture *f = *state;
    ggml_backend_event_t event = ggml_backend_event_new(virtual_device(&f->host, 0));
    assert_non_null(event);
    ggml_backend_event_wait(f->stream[1], event); // never recorded: does not block
    ggml_backend_synchronize(f->stream[1]);
    f->config.graph_delay_us = 5000;
    assert_true(f->host.configure(0, &f->config));
    ggml_backend_graph_compute_async(f->stream[0], f->graph[0]);
    ggml_backend_event_record(event, f->stream[0]);
    ggml_backend_event_wait(f->stream[1], event);
    ggml_backend_graph_compute_async(f->stream[1], f->graph[1]);
    ggml_backend_event_synchronize(event);
    assert_true(record(f, VIRTUAL_CALL_GRAPH, 0, 0).end_ns != 0);
    ggml_backend_event_free(event);
    ggml_backend_synchronize(f->stream[1]);
    assert_true(record(f, VIRTUAL_CALL_GRAPH, 1, 0).begin_ns >=
                record(f, VIRTUAL_CALL_GRAPH, 0, 0).end_ns);
}

static void test_peer_copies(void **state) {
    struct fixture *f = *state;
    fill(f->a[0], 7.0f);
    fill(f->b[1], 1.0f);
    f->config.copy_delay_us = 2000;
    assert_true(f->host.configure(-1, &f->config));
    f->host.log_clear();
    ggml_backend_tensor_copy_async(f->stream[0], f->stream[1], f->a[0], f->a[1]);
    ggml_backend_graph_compute_async(f->stream[1], f->graph[1]);
    ggml_backend_synchronize(f->stream[1]);
    assert_true(first(f->sum[1]) == 8.0f);
    const struct virtual_record copy = record(f, VIRTUAL_CALL_COPY, 1, 0);
    assert_int_equal(copy.peer, 0);
    assert_int_equal(copy.bytes, 4 * N);
    f->config.peer_copy = 0;
    assert_true(f->host.configure(-1, &f->config));
    f->host.log_clear();
    ggml_backend_tensor_copy_async(f->stream[0], f->stream[1], f->a[0], f->a[1]);
    assert_int_equal(virtual_count(&f->host, VIRTUAL_CALL_COPY, -1, NULL), 0);
    assert_int_equal(virtual_count(&f->host, VIRTUAL_CALL_SET, 1, NULL), 1);
}

static void test_memory_limit(void **state) {
    struct fixture *f = *state;
    ggml_backend_buffer_type_t buft = ggml_backend_get_default_buffer_type(f->stream[0]);
    size_t free_bytes, total;
    ggml_backend_dev_memory(virtual_device(&f->host, 0), &free_bytes, &total);
    assert_int_equal(total, 1 << 20);
    assert_int_equal(free_bytes, (1 << 20) - 12 * N);
    assert_null(ggml_backend_buft_alloc_buffer(buft, free_bytes + 1));
    assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_MEMORY);
    ggml_backend_buffer_t rest = ggml_backend_buft_alloc_buffer(buft, free_bytes);
    assert_non_null(rest);
    ggml_backend_buffer_free(rest);
    ggml_backend_dev_memory(virtual_device(&f->host, 0), &free_bytes, &total);
    assert_int_equal(free_bytes, (1 << 20) - 12 * N);
}

static void test_limits_of_support(void **state) {
    struct fixture *f = *state;
    ggml_backend_dev_t device = virtual_device(&f->host, 0);
    assert_true(ggml_backend_dev_supports_op(device, f->sum[0]));
    f->config.refused_ops[GGML_OP_ADD / 64] |= UINT64_C(1) << (GGML_OP_ADD % 64);
    assert_true(f->host.configure(0, &f->config));
    assert_false(ggml_backend_dev_supports_op(device, f->sum[0]));
    assert_true(ggml_backend_dev_supports_op(virtual_device(&f->host, 1), f->sum[0]));
    memset(f->config.refused_ops, 0, sizeof(f->config.refused_ops));
    f->config.refused_types[0] |= UINT64_C(1) << GGML_TYPE_F32;
    assert_true(f->host.configure(0, &f->config));
    assert_false(ggml_backend_dev_supports_op(device, f->sum[0]));
    f->config.alignment = 3;
    assert_false(f->host.configure(0, &f->config));
}

static void test_injected_failures(void **state) {
    struct fixture *f = *state;
    f->config.fail_compute_after = 1;
    assert_true(f->host.configure(0, &f->config));
    const enum ggml_status wanted[] = {GGML_STATUS_SUCCESS, GGML_STATUS_FAILED,
                                       GGML_STATUS_SUCCESS};
    for (int i = 0; i < 3; ++i) {
        assert_int_equal(ggml_backend_graph_compute(f->stream[0], f->graph[0]), wanted[i]);
    }
    f->config.fail_compute_after = -1;
    f->config.fail_copy_after = 0;
    assert_true(f->host.configure(0, &f->config));
    ggml_clear_error();
    fill(f->a[0], 1.0f);
    assert_int_equal(ggml_last_status(), GGML_HOST_FAILED);
    f->config.fail_copy_after = -1;
    f->config.fail_alloc_after = 0;
    assert_true(f->host.configure(0, &f->config));
    assert_null(ggml_backend_alloc_buffer(f->stream[0], 256));
    ggml_backend_buffer_t buffer = ggml_backend_alloc_buffer(f->stream[0], 256);
    assert_non_null(buffer);
    ggml_backend_buffer_free(buffer);
}

static void test_late_failure(void **state) {
    struct fixture *f = *state;
    f->config.fail_compute_after = 0;
    f->config.fail_late = 1;
    assert_true(f->host.configure(0, &f->config));
    assert_int_equal(ggml_backend_graph_compute_async(f->stream[0], f->graph[0]),
                     GGML_STATUS_SUCCESS);
    ggml_clear_error();
    ggml_backend_synchronize(f->stream[0]);
    assert_int_equal(ggml_last_status(), GGML_HOST_FAILED);
    assert_int_equal(ggml_backend_graph_compute(f->stream[0], f->graph[0]), GGML_STATUS_SUCCESS);
}

static void test_lost_device(void **state) {
    struct fixture *f = *state;
    f->config.lose_after = 1;
    assert_true(f->host.configure(0, &f->config));
    assert_int_equal(ggml_backend_graph_compute(f->stream[0], f->graph[0]), GGML_STATUS_SUCCESS);
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(ggml_backend_graph_compute(f->stream[0], f->graph[0]), GGML_STATUS_FAILED);
        assert_int_equal(ggml_last_status(), GGML_HOST_DEVICE_LOST);
        assert_non_null(strstr(ggml_last_error(), "VIRTUAL0"));
    }
    assert_null(ggml_backend_alloc_buffer(f->stream[0], 256));
    assert_int_equal(ggml_backend_graph_compute(f->stream[1], f->graph[1]), GGML_STATUS_SUCCESS);
    f->config.lose_after = -1;
    assert_true(f->host.configure(0, &f->config));
    assert_int_equal(ggml_backend_graph_compute(f->stream[0], f->graph[0]), GGML_STATUS_SUCCESS);
}

// The host writes what queued work is going to read.
static void test_race_with_the_host(void **state) {
    struct fixture *f = *state;
    f->config.graph_delay_us = 500000; // whatever else runs on the machine
    f->config.copy_delay_us = 50000;   // the graph starts while the host writes
    assert_true(f->host.configure(0, &f->config));
    ggml_backend_graph_compute_async(f->stream[0], f->graph[0]);
    fill(f->a[0], 1.0f);
    ggml_backend_synchronize(f->stream[0]);
    assert_int_equal(f->host.violations(), 1);
    assert_non_null(strstr(record(f, VIRTUAL_CALL_VIOLATION, 0, 0).text, "race"));
    fill(f->a[0], 1.0f);
    assert_int_equal(f->host.violations(), 1);
    f->host.log_clear();
}

static void test_foreign_memory(void **state) {
    struct fixture *f = *state;
    assert_int_equal(ggml_backend_graph_compute(f->stream[1], f->graph[0]), GGML_STATUS_FAILED);
    assert_int_equal(f->host.violations(), 1);
    f->host.log_clear();
    f->config.reads_peers = 1;
    assert_true(f->host.configure(1, &f->config));
    assert_int_equal(ggml_backend_graph_compute(f->stream[1], f->graph[0]), GGML_STATUS_SUCCESS);
}

static void test_host_memory_options(void **state) {
    struct fixture *f = *state;
    float memory[64] __attribute__((aligned(256))) = {3.0f};
    ggml_backend_dev_t device = virtual_device(&f->host, 2);
    assert_null(ggml_backend_dev_buffer_from_host_ptr(device, memory, sizeof(memory), 256));
    f->config.host_import = 1;
    f->config.host_buffers = 1;
    assert_true(f->host.configure(2, &f->config));
    ggml_backend_buffer_t buffer =
        ggml_backend_dev_buffer_from_host_ptr(device, memory, sizeof(memory), 256);
    assert_non_null(buffer);
    struct ggml_tensor *tensor = ggml_new_tensor_1d(f->ctx, GGML_TYPE_F32, 64);
    ggml_backend_tensor_alloc(buffer, tensor, ggml_backend_buffer_get_base(buffer));
    assert_ptr_not_equal(tensor->data, memory);
    assert_true(first(tensor) == 3.0f);
    ggml_backend_buffer_free(buffer);
    ggml_backend_buffer_type_t pinned = ggml_backend_dev_host_buffer_type(device);
    assert_true(ggml_backend_buft_is_host(pinned));
    buffer = ggml_backend_buft_alloc_buffer(pinned, 256);
    memset(ggml_backend_buffer_get_base(buffer), 0, 256);
    ggml_backend_buffer_free(buffer);
}

// --- groups of streams ---------------------------------------------------------------------------

static const struct ggml_extension_comm *comm_of(struct fixture *f) {
    const struct ggml_extension_comm *comm =
        ggml_backend_reg_get_extension(f->host.reg, GGML_EXTENSION_COMM, 1);
    assert_non_null(comm);
    return comm;
}

static ggml_comm_group_t group_of(struct fixture *f) {
    const struct ggml_comm_ranks ranks = {
        .size = sizeof(ranks), .n_ranks = 2, .n_streams = 2, .streams = f->stream};
    ggml_comm_group_t group = NULL;
    assert_int_equal(comm_of(f)->group_new(&ranks, &group), GGML_HOST_OK);
    return group;
}

static void queue_sums(struct fixture *f) {
    for (int i = 0; i < 2; ++i) {
        fill(f->a[i], 1.0f + (float)i);
        fill(f->b[i], 10.0f);
        ggml_backend_graph_compute_async(f->stream[i], f->graph[i]);
    }
}

static void test_all_reduce(void **state) {
    struct fixture *f = *state;
    const struct ggml_extension_comm *comm = comm_of(f);
    ggml_comm_group_t group = group_of(f);
    queue_sums(f);
    assert_int_equal(comm->all_reduce(group, GGML_COMM_SUM, f->sum, NULL), GGML_HOST_OK);
    for (int i = 0; i < 2; ++i) {
        ggml_backend_synchronize(f->stream[i]);
        assert_true(first(f->sum[i]) == 23.0f);
    }
    assert_int_equal(virtual_count(&f->host, VIRTUAL_CALL_REDUCE, -1, NULL), 2);
    comm->group_free(group);
}

static void test_exchanges_follow_queued_work(void **state) {
    struct fixture *f = *state;
    const struct ggml_extension_comm *comm = comm_of(f);
    ggml_comm_group_t group = group_of(f);
    f->config.graph_delay_us = 2000;
    assert_true(f->host.configure(-1, &f->config));
    queue_sums(f);
    assert_int_equal(comm->send(group, 0, 1, f->sum[0]), GGML_HOST_OK);
    assert_int_equal(comm->receive(group, 1, 0, f->a[1]), GGML_HOST_OK);
    assert_int_equal(comm->broadcast(group, 1, f->sum), GGML_HOST_OK);
    comm->group_free(group); // what is queued goes on
    ggml_backend_graph_compute_async(f->stream[1], f->graph[1]);
    for (int i = 0; i < 2; ++i)
        ggml_backend_synchronize(f->stream[i]);
    assert_true(first(f->a[1]) == 11.0f);
    assert_true(first(f->sum[0]) == 12.0f);
    assert_true(first(f->sum[1]) == 21.0f);
    assert_int_equal(virtual_count(&f->host, VIRTUAL_CALL_EXCHANGE, -1, NULL), 4);
}

// The others don't wait for a rank whose work fails: they are told, and so are later calls.
static void test_a_rank_fails(void **state) {
    struct fixture *f = *state;
    const struct ggml_extension_comm *comm = comm_of(f);
    for (int late = 0; late < 2; ++late) {
        ggml_comm_group_t group = group_of(f);
        queue_sums(f);
        for (int i = 0; i < 2; ++i)
            ggml_backend_synchronize(f->stream[i]);
        f->config.fail_late = late;
        f->config.fail_copy_after = 0;
        assert_true(f->host.configure(1, &f->config));
        const int32_t status = comm->all_reduce(group, GGML_COMM_SUM, f->sum, NULL);
        assert_int_equal(status, late ? GGML_HOST_OK : GGML_HOST_FAILED);
        for (int i = 0; i < 2; ++i) {
            ggml_clear_error();
            ggml_backend_synchronize(f->stream[i]);
            assert_int_equal(ggml_last_status(), late ? GGML_HOST_FAILED : GGML_HOST_OK);
        }
        assert_int_equal(comm->broadcast(group, 0, f->sum), GGML_HOST_FAILED);
        comm->group_free(group);
        f->config.fail_late = 0;
        f->config.fail_copy_after = -1;
        assert_true(f->host.configure(1, &f->config));
        group = group_of(f);
        assert_int_equal(comm->broadcast(group, 1, f->sum), GGML_HOST_OK);
        for (int i = 0; i < 2; ++i)
            ggml_backend_synchronize(f->stream[i]);
        assert_true(first(f->sum[0]) == 12.0f);
        comm->group_free(group);
    }
}

static void test_no_groups(void **state) {
    struct fixture *f = *state;
    const struct ggml_comm_ranks ranks = {
        .size = sizeof(ranks), .n_ranks = 2, .n_streams = 2, .streams = f->stream};
    ggml_comm_group_t group = NULL;
    f->config.communicator = 0;
    assert_true(f->host.configure(1, &f->config));
    assert_int_equal(comm_of(f)->group_new(&ranks, &group), GGML_HOST_UNSUPPORTED);
    assert_null(group);
}

static void test_streams_that_do_not_queue(void **state) {
    struct fixture *f = *state;
    f->config.async = 0;
    f->config.graph_delay_us = 1000;
    assert_true(f->host.configure(0, &f->config));
    ggml_backend_free(f->stream[0]);
    f->stream[0] = ggml_backend_dev_init(virtual_device(&f->host, 0), NULL);
    assert_non_null(f->stream[0]);
    assert_int_equal(ggml_backend_graph_compute_async(f->stream[0], f->graph[0]),
                     GGML_STATUS_SUCCESS);
    assert_true(record(f, VIRTUAL_CALL_GRAPH, 0, 0).end_ns != 0);
}

static void test_bad_options_are_refused(void **state) {
    (void)state;
    const char *bad[] = {"devices=0", "devices=257", "speed=3",
                         "memory",    "memory=x",    "alignment=3"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        ggml_backend_reg_t reg;
        setenv("GGML_VIRTUAL", bad[i], 1);
        assert_int_not_equal(ggml_plugin_load(VIRTUAL_PLUGIN, &reg), GGML_HOST_OK);
    }
}

#define VIRTUAL_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

// What the delays amount to is what the device declares.
static void test_figures(void **state) {
    struct fixture *f = *state;
    struct ggml_device_figures figures = {.size = sizeof(figures), .flops = 1};
    ggml_backend_dev_t device = virtual_device(&f->host, 1);
    assert_int_equal(ggml_backend_dev_figures(device, &figures), GGML_HOST_UNSUPPORTED);
    assert_true(figures.flops == 0 && figures.size == sizeof(figures));
    f->config.node_delay_us = 20;
    f->config.node_ns_per_kib = 1024;
    f->config.node_ns_per_mflop = 1000;
    f->config.quant_ns_per_mflop = 500;
    f->config.copy_delay_us = 7;
    f->config.copy_ns_per_kib = 512;
    assert_true(f->host.configure(1, &f->config));
    assert_int_equal(ggml_backend_dev_figures(device, &figures), GGML_HOST_OK);
    assert_int_equal(figures.flags, GGML_DEVICE_FIGURES_DIRECT_COPY);
    assert_float_equal(figures.flops, 1e12, 1);
    assert_float_equal(figures.flops_of[GGML_TYPE_Q4_0], 2e12, 1);
    assert_true(figures.flops_of[GGML_TYPE_F16] == 0);
    assert_float_equal(figures.bytes_per_second, 1e9, 1);
    assert_float_equal(figures.launch_seconds, 20e-6, 1e-9);
    assert_float_equal(figures.link_bytes_per_second, 2e9, 1);
    assert_float_equal(figures.link_seconds, 7e-6, 1e-9);
    assert_int_equal(figures.memory_bytes, f->config.memory);
    // A caller that knows fewer members.
    struct ggml_device_figures old = {.size = offsetof(struct ggml_device_figures, flops_of)};
    old.flops_of[GGML_TYPE_Q4_0] = 5;
    assert_int_equal(ggml_backend_dev_figures(device, &old), GGML_HOST_OK);
    assert_true(old.flops_of[GGML_TYPE_Q4_0] == 5);
    old.size = 4;
    assert_int_equal(ggml_backend_dev_figures(device, &old), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(ggml_backend_dev_figures(device, NULL), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(ggml_backend_dev_figures(NULL, &figures), GGML_HOST_INVALID_ARGUMENT);
    struct ggml_backend_device other = *device;
    assert_int_equal(ggml_backend_dev_figures(&other, &figures), GGML_HOST_INVALID_ARGUMENT);
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (cpu) assert_int_equal(ggml_backend_dev_figures(cpu, &figures), GGML_HOST_UNSUPPORTED);
}

// Links between hosts, as the options say, and what is refused.
static void test_links(void **state) {
    struct fixture *f = *state;
    ggml_backend_dev_t one = virtual_device(&f->host, 0), other = virtual_device(&f->host, 1);
    struct ggml_device_link link = {.size = sizeof(link), .seconds = 1};
    assert_int_equal(ggml_backend_dev_link(one, other, &link), GGML_HOST_UNSUPPORTED);
    assert_true(link.seconds == 0 && link.size == sizeof(link));
    f->config.hosts = 2;
    f->config.far_delay_us = 30;
    f->config.far_ns_per_kib = 512;
    assert_true(f->host.configure(0, &f->config));
    assert_int_equal(ggml_backend_dev_link(one, NULL, &link), GGML_HOST_OK);
    assert_int_equal(ggml_backend_dev_link(one, one, &link), GGML_HOST_UNSUPPORTED);
    assert_int_equal(ggml_backend_dev_link(one, other, &link), GGML_HOST_OK);
    assert_float_equal(link.seconds, 30e-6, 1e-9);
    assert_float_equal(link.bytes_per_second, 2e9, 1);
    f->config.hostile_link = 1;
    assert_true(f->host.configure(1, &f->config));
    assert_int_equal(ggml_backend_dev_link(one, other, &link), GGML_HOST_BAD_PLUGIN);
    assert_true(link.seconds == 0 && link.bytes_per_second == 0);
    struct ggml_backend_device stranger = {.table = one->table, .reg = one->reg};
    assert_int_equal(ggml_backend_dev_link(one, &stranger, &link), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(ggml_backend_dev_link(NULL, NULL, &link), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(ggml_backend_dev_link(one, other, NULL), GGML_HOST_INVALID_ARGUMENT);
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (cpu) assert_int_equal(ggml_backend_dev_link(one, cpu, &link), GGML_HOST_UNSUPPORTED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_options_are_refused),
        VIRTUAL_TEST(test_host_access_faults),
        VIRTUAL_TEST(test_new_memory_is_poisoned),
        VIRTUAL_TEST(test_computes),
        VIRTUAL_TEST(test_queued_work_keeps_its_order),
        VIRTUAL_TEST(test_devices_overlap),
        VIRTUAL_TEST(test_events_order_streams),
        VIRTUAL_TEST(test_peer_copies),
        VIRTUAL_TEST(test_memory_limit),
        VIRTUAL_TEST(test_limits_of_support),
        VIRTUAL_TEST(test_injected_failures),
        VIRTUAL_TEST(test_late_failure),
        VIRTUAL_TEST(test_lost_device),
        VIRTUAL_TEST(test_race_with_the_host),
        VIRTUAL_TEST(test_foreign_memory),
        VIRTUAL_TEST(test_host_memory_options),
        VIRTUAL_TEST(test_all_reduce),
        VIRTUAL_TEST(test_exchanges_follow_queued_work),
        VIRTUAL_TEST(test_a_rank_fails),
        VIRTUAL_TEST(test_no_groups),
        VIRTUAL_TEST(test_streams_that_do_not_queue),
        VIRTUAL_TEST(test_figures),
        VIRTUAL_TEST(test_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
