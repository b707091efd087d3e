// SPDX-License-Identifier: MIT
// What one stream reads in the memory of another is overwritten only when it has been read: within
// a run, from one run to the next, and by the application.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "virtual_host.h"

enum { N = 64, DELAY_US = 30000, MOST_STREAMS = 3, RUNS = 3 };

// Streams on virtual devices, the CPU's last, and graphs of vectors of N numbers.
struct fixture {
    struct virtual_host host;
    struct virtual_config config;
    ggml_backend_t streams[MOST_STREAMS];
    int n_streams;
    ggml_backend_sched_t sched;
    struct ggml_context *context;
    struct ggml_cgraph *graph;
    ggml_backend_buffer_t buffer; // of what lies on the first device
    float data[N];
};

static int64_t delay_of(void *user, int device, const struct ggml_tensor *node) {
    (void)user;
    (void)device;
    return node->op == GGML_OP_SCALE ? DELAY_US * 1000 : 0;
}

// Opens a stream on each of n_devices devices, which take long to scale a vector.
static void open_streams(struct fixture *f, int n_devices, void (*change)(struct virtual_config *),
                         bool parallel) {
    char options[32];
    memset(f, 0, sizeof(*f));
    snprintf(options, sizeof(options), "devices=%d", n_devices);
    virtual_open(&f->host, options);
    f->host.default_config(&f->config);
    f->config.node_ns = delay_of;
    change(&f->config);
    assert_true(f->host.configure(-1, &f->config));
    for (int i = 0; i < n_devices; ++i) {
        ggml_backend_dev_t device = virtual_device(&f->host, (size_t)i);
        f->streams[i] = ggml_backend_dev_init(device, NULL);
    }
    f->streams[n_devices] = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    f->n_streams = n_devices + 1;
    f->sched = ggml_backend_sched_new(f->streams, NULL, f->n_streams, 64, parallel, false);
    assert_non_null(f->sched);
    f->context = ggml_init((struct ggml_init_params){.mem_size = 1 << 20, .no_alloc = true});
    f->graph = ggml_new_graph(f->context);
}

static void close_streams(struct fixture *f) {
    ggml_backend_sched_free(f->sched);
    ggml_backend_buffer_free(f->buffer);
    ggml_free(f->context);
    for (int i = 0; i < f->n_streams; ++i) {
        ggml_backend_free(f->streams[i]);
    }
    assert_int_equal(virtual_close(&f->host), 0);
}

static struct ggml_tensor *vector(struct fixture *f, const char *name) {
    return ggml_set_name(ggml_new_tensor_1d(f->context, GGML_TYPE_F32, N), name);
}

static struct ggml_tensor *input(struct fixture *f, const char *name) {
    struct ggml_tensor *tensor = vector(f, name);
    ggml_set_input(tensor);
    return tensor;
}

// Puts a node on a stream.
static struct ggml_tensor *on(struct fixture *f, int stream, struct ggml_tensor *node) {
    ggml_backend_sched_set_tensor_backend(f->sched, node, f->streams[stream]);
    return node;
}

static void fill(struct fixture *f, struct ggml_tensor *tensor, float value) {
    for (int i = 0; i < N; ++i) {
        f->data[i] = value;
    }
    ggml_backend_tensor_set(tensor, f->data, 0, sizeof(f->data));
}

static void expect(const float *data, float value) {
    for (int i = 0; i < N; ++i) {
        assert_float_equal(data[i], value, 0);
    }
}

static void run_async(struct fixture *f) {
    const enum ggml_status status = ggml_backend_sched_graph_compute_async(f->sched, f->graph);
    if (status != GGML_STATUS_SUCCESS) fail_msg("%s", ggml_last_error());
}

// Queues the copy of a result to the host, behind what its stream has queued.
static void get(struct fixture *f, struct ggml_tensor *tensor, float *data) {
    ggml_backend_t stream = ggml_backend_sched_get_tensor_backend(f->sched, tensor);
    ggml_backend_tensor_get_async(stream, tensor, data, 0, N * sizeof(data[0]));
}

static void read_host(struct virtual_config *config) {
    config->reads_host = 1;
}

static void read_peers(struct virtual_config *config) {
    config->reads_peers = 1;
}

static void as_they_are(struct virtual_config *config) {
    (void)config;
}

// The CPU has a result read in place, and could reuse its memory for the next one at once.
static void test_within_a_run(void **state) {
    (void)state;
    struct fixture f;
    float read[N];
    open_streams(&f, 1, read_host, false);
    struct ggml_tensor *a = input(&f, "a"), *b = input(&f, "b"), *c = input(&f, "c");
    struct ggml_tensor *x = on(&f, 1, ggml_repeat(f.context, a, a));
    // The input c is copied for the same split.
    struct ggml_tensor *y =
        on(&f, 0, ggml_add(f.context, on(&f, 0, ggml_scale(f.context, x, 10)), c));
    struct ggml_tensor *z = on(&f, 1, ggml_repeat(f.context, b, b));
    ggml_set_output(y);
    ggml_build_forward_expand(f.graph, y);
    ggml_build_forward_expand(f.graph, z);
    assert_true(ggml_backend_sched_alloc_graph(f.sched, f.graph));
    assert_ptr_equal(x->data, z->data);
    fill(&f, a, 1);
    fill(&f, b, 5);
    fill(&f, c, 100);
    run_async(&f);
    get(&f, y, read);
    ggml_backend_sched_synchronize(f.sched);
    expect(read, 110);
    close_streams(&f);
}

// The device writes to memory of the CPU in place, and reads it again after a node of the CPU,
// which has waited for the write, but not for the read.
static void test_written_in_place(void **state) {
    (void)state;
    struct fixture f;
    float read[N];
    open_streams(&f, 1, read_host, false);
    struct ggml_tensor *a = input(&f, "a"), *b = input(&f, "b"), *c = input(&f, "c");
    struct ggml_tensor *x = on(&f, 1, ggml_repeat(f.context, a, a));
    struct ggml_tensor *w = on(&f, 0, ggml_sqr_inplace(f.context, x));
    struct ggml_tensor *other = on(&f, 1, ggml_repeat(f.context, b, b));
    struct ggml_tensor *y = on(&f, 0, ggml_scale(f.context, w, 10));
    struct ggml_tensor *z = on(&f, 1, ggml_repeat(f.context, c, c));
    ggml_set_output(other);
    ggml_set_output(y);
    ggml_build_forward_expand(f.graph, w);
    ggml_build_forward_expand(f.graph, other);
    ggml_build_forward_expand(f.graph, y);
    ggml_build_forward_expand(f.graph, z);
    assert_true(ggml_backend_sched_alloc_graph(f.sched, f.graph));
    assert_ptr_equal(x->data, z->data);
    fill(&f, a, 3);
    fill(&f, b, 5);
    fill(&f, c, 7);
    run_async(&f);
    get(&f, y, read);
    ggml_backend_sched_synchronize(f.sched);
    expect(read, 90);
    close_streams(&f);
}

// The same memory again in the next run.
static void test_across_runs(void **state) {
    (void)state;
    struct fixture f;
    float read[RUNS][N];
    open_streams(&f, 1, read_host, false);
    struct ggml_tensor *a = input(&f, "a");
    struct ggml_tensor *x = on(&f, 1, ggml_scale(f.context, a, 2));
    struct ggml_tensor *y = on(&f, 0, ggml_scale(f.context, x, 10));
    ggml_build_forward_expand(f.graph, y);
    assert_true(ggml_backend_sched_alloc_graph(f.sched, f.graph));
    for (int i = 0; i < RUNS; ++i) {
        fill(&f, a, (float)i);
        run_async(&f);
        get(&f, y, read[i]);
    }
    ggml_backend_sched_synchronize(f.sched);
    for (int i = 0; i < RUNS; ++i) {
        expect(read[i], 20 * (float)i);
    }
    close_streams(&f);
}

// A graph whose plan is not that of the buffers, and then one whose plan is: its inputs lie where
// the device still reads a result of the first.
static void test_two_plans(void **state) {
    (void)state;
    struct fixture f;
    float read[N];
    open_streams(&f, 1, read_host, false);
    struct ggml_cgraph *large = ggml_new_graph(f.context);
    struct ggml_tensor *a[] = {input(&f, "a0"), input(&f, "a1"), input(&f, "a2")};
    struct ggml_tensor *sum = ggml_add(f.context, ggml_add(f.context, a[0], a[1]), a[2]);
    struct ggml_tensor *last = ggml_scale(f.context, sum, 1);
    ggml_build_forward_expand(large, last);
    on(&f, 1, sum->src[0]), on(&f, 1, sum), on(&f, 0, last);
    assert_true(ggml_backend_sched_reserve(f.sched, large));
    struct ggml_tensor *b = input(&f, "b");
    struct ggml_tensor *x = on(&f, 1, ggml_repeat(f.context, b, b));
    struct ggml_tensor *y = on(&f, 0, ggml_scale(f.context, x, 10));
    ggml_build_forward_expand(f.graph, y);
    assert_true(ggml_backend_sched_alloc_graph(f.sched, f.graph));
    fill(&f, b, 2);
    run_async(&f);
    get(&f, y, read);
    ggml_backend_sched_reset(f.sched);
    on(&f, 1, sum->src[0]), on(&f, 1, sum), on(&f, 0, last);
    assert_true(ggml_backend_sched_alloc_graph(f.sched, large));
    for (int i = 0; i < 3; ++i) {
        fill(&f, a[i], 7);
    }
    ggml_backend_sched_synchronize(f.sched);
    expect(read, 20);
    close_streams(&f);
}

// Inputs may be overwritten as soon as the graph is queued, also where a device could read them in
// place.
static void test_inputs(void **state) {
    (void)state;
    struct fixture f;
    float read[RUNS][N];
    open_streams(&f, 1, read_host, false);
    struct ggml_tensor *a = input(&f, "a");
    struct ggml_tensor *y = on(&f, 0, ggml_scale(f.context, a, 10));
    ggml_build_forward_expand(f.graph, y);
    assert_true(ggml_backend_sched_alloc_graph(f.sched, f.graph));
    for (int i = 0; i < RUNS; ++i) {
        fill(&f, a, (float)i);
        run_async(&f);
        get(&f, y, read[i]);
    }
    ggml_backend_sched_synchronize(f.sched);
    for (int i = 0; i < RUNS; ++i) {
        expect(read[i], 10 * (float)i);
    }
    close_streams(&f);
}

// A vector on the first device goes through both own streams, the second of which is slow, and is
// another one in each run.
static void run_chain(void (*change)(struct virtual_config *), bool parallel) {
    struct fixture f;
    float given[RUNS][N], read[RUNS][N];
    open_streams(&f, 2, change, parallel);
    struct ggml_tensor *a = vector(&f, "a");
    f.buffer = ggml_backend_alloc_buffer(f.streams[0], sizeof(given[0]));
    assert_int_equal(ggml_backend_tensor_alloc(f.buffer, a, ggml_backend_buffer_get_base(f.buffer)),
                     GGML_STATUS_SUCCESS);
    struct ggml_tensor *x = on(&f, 0, ggml_repeat(f.context, a, a));
    struct ggml_tensor *y = on(&f, 1, ggml_scale(f.context, x, 10));
    ggml_build_forward_expand(f.graph, y);
    assert_true(ggml_backend_sched_alloc_graph(f.sched, f.graph));
    for (int i = 0; i < RUNS; ++i) {
        for (int k = 0; k < N; ++k) {
            given[i][k] = (float)i;
        }
        ggml_backend_tensor_set_async(f.streams[0], a, given[i], 0, sizeof(given[i]));
        run_async(&f);
        get(&f, y, read[i]);
    }
    ggml_backend_sched_synchronize(f.sched);
    for (int i = 0; i < RUNS; ++i) {
        expect(read[i], 10 * (float)i);
    }
    close_streams(&f);
}

static void test_peers(void **state) {
    (void)state;
    run_chain(read_peers, false);
}

static void test_peers_in_pipeline(void **state) {
    (void)state;
    run_chain(read_peers, true);
}

// The copy on the second device is overwritten by the first one's stream.
static void test_copies(void **state) {
    (void)state;
    run_chain(as_they_are, false);
}

static void test_copies_in_pipeline(void **state) {
    (void)state;
    run_chain(as_they_are, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_within_a_run),
        cmocka_unit_test(test_written_in_place),
        cmocka_unit_test(test_across_runs),
        cmocka_unit_test(test_two_plans),
        cmocka_unit_test(test_inputs),
        cmocka_unit_test(test_peers),
        cmocka_unit_test(test_peers_in_pipeline),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_copies_in_pipeline),
    };
    return cmocka_run_group_tests_name("sched order", tests, NULL, NULL);
}
