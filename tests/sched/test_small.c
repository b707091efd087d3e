// SPDX-License-Identifier: MIT
// Small graphs over one virtual device and the CPU: experts of weights in host memory, results
// written in place, rules that change between two calls.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "virtual_host.h"

enum { N = 64, EXPERTS = 4, GAP = 32 }; // GAP: rows between the experts

struct fixture {
    struct virtual_host host;
    struct virtual_config config;
    ggml_backend_t streams[2]; // the device's, the CPU's
    ggml_backend_sched_t sched;
    struct ggml_context *context;         // of graphs
    struct ggml_context *weights_context; // of weights, which lie in host memory
    ggml_backend_buffer_t weights;
};

static void begin(struct fixture *f, bool offload) {
    const struct ggml_init_params params = {.mem_size = 1 << 20, .no_alloc = true};
    memset(f, 0, sizeof(*f));
    virtual_open(&f->host, "devices=1");
    f->host.default_config(&f->config);
    f->config.offload = offload;
    assert_true(f->host.configure(-1, &f->config));
    f->streams[0] = ggml_backend_dev_init(virtual_device(&f->host, 0), NULL);
    f->streams[1] = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    f->sched = ggml_backend_sched_new(f->streams, NULL, 2, 64, false, offload);
    assert_non_null(f->sched);
    f->context = ggml_init(params);
    f->weights_context = ggml_init(params);
}

static void end(struct fixture *f) {
    ggml_backend_sched_free(f->sched);
    ggml_backend_buffer_free(f->weights);
    ggml_free(f->context);
    ggml_free(f->weights_context);
    ggml_backend_free(f->streams[0]);
    ggml_backend_free(f->streams[1]);
    assert_int_equal(virtual_close(&f->host), 0);
}

static struct ggml_tensor *input(struct fixture *f, enum ggml_type type, int64_t n, int64_t m) {
    struct ggml_tensor *tensor = ggml_new_tensor_2d(f->context, type, n, m);
    ggml_set_input(tensor);
    return tensor;
}

static void compute(struct fixture *f, struct ggml_cgraph *graph) {
    const enum ggml_status status = ggml_backend_sched_graph_compute(f->sched, graph);
    if (status != GGML_STATUS_SUCCESS) fail_msg("%s", ggml_last_error());
}

// Every number of expert e is e + 1.
static void fill_experts(struct fixture *f) {
    f->weights = ggml_backend_alloc_ctx_tensors(f->weights_context, f->streams[1]);
    assert_non_null(f->weights);
    ggml_backend_buffer_set_usage(f->weights, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    struct ggml_tensor *weight = ggml_get_first_tensor(f->weights_context);
    for (; weight; weight = ggml_get_next_tensor(f->weights_context, weight)) {
        float *data = weight->data;
        for (int64_t i = 0; i < ggml_nelements(weight); ++i) {
            data[i] = (float)(i / (weight->ne[0] * weight->ne[1]) + 1);
        }
    }
}

static struct ggml_tensor *experts(struct fixture *f, int64_t rows, int64_t n) {
    return ggml_new_tensor_3d(f->weights_context, GGML_TYPE_F32, N, rows, n);
}

static void set_all(struct ggml_tensor *tensor, float value) {
    float data[N];
    for (int i = 0; i < N; ++i) {
        data[i] = value;
    }
    assert_int_equal(ggml_nbytes(tensor), sizeof(data));
    ggml_backend_tensor_set(tensor, data, 0, sizeof(data));
}

static void expect(const struct ggml_tensor *tensor, float value) {
    float data[N];
    assert_int_equal(ggml_nbytes(tensor), sizeof(data));
    ggml_backend_tensor_get(tensor, data, 0, sizeof(data));
    for (int i = 0; i < N; ++i) {
        assert_float_equal(data[i], value, 0);
    }
}

static struct ggml_tensor *on(struct fixture *f, int stream, struct ggml_tensor *node) {
    ggml_backend_sched_set_tensor_backend(f->sched, node, f->streams[stream]);
    return node;
}

// The ids are copied to the device for the first product; those on the host decide what is copied
// of the second weight, which has more experts, after a node of the CPU that could have their
// memory.
static void test_ids_are_kept(void **state) {
    (void)state;
    struct fixture f;
    begin(&f, true);
    struct ggml_tensor *first = experts(&f, N, EXPERTS);
    struct ggml_tensor *second = experts(&f, N, 2 * EXPERTS);
    fill_experts(&f);
    struct ggml_tensor *x = input(&f, GGML_TYPE_F32, N, 1);
    ggml_set_output(x); // so that its memory is not free
    struct ggml_tensor *ids = input(&f, GGML_TYPE_I32, 1, 1);
    struct ggml_tensor *rows = ggml_reshape_3d(f.context, x, N, 1, 1);
    struct ggml_tensor *y = ggml_mul_mat_id(f.context, first, rows, ids);
    struct ggml_tensor *sum = on(&f, 1, ggml_sum(f.context, y)); // as large as the ids
    struct ggml_tensor *more = ggml_add(f.context, y, sum);
    struct ggml_tensor *z = ggml_mul_mat_id(f.context, second, more, ids);
    struct ggml_cgraph *graph = ggml_new_graph(f.context);
    ggml_build_forward_expand(graph, z);
    assert_true(ggml_backend_sched_alloc_graph(f.sched, graph));
    assert_ptr_equal(ggml_backend_sched_get_tensor_backend(f.sched, z), f.streams[0]);
    set_all(x, 1);
    ggml_backend_tensor_set(ids, (const int32_t[]){2}, 0, sizeof(int32_t));
    compute(&f, graph);
    const float product = 3 * N; // of expert 2 with ones
    expect(z, 3 * N * (product + N * product));
    end(&f);
}

// Of experts with gaps between them the last one ends before its gap.
static void test_experts_with_gaps(void **state) {
    (void)state;
    struct fixture f;
    begin(&f, true);
    struct ggml_tensor *whole = experts(&f, N + GAP, EXPERTS);
    fill_experts(&f);
    struct ggml_tensor *weight = ggml_view_3d(f.context, whole, N, N, EXPERTS, whole->nb[1],
                                              whole->nb[2], GAP * whole->nb[1]);
    weight->buffer = whole->buffer; // as loaders make views of weights
    struct ggml_tensor *x = input(&f, GGML_TYPE_F32, N, 1);
    struct ggml_tensor *ids = input(&f, GGML_TYPE_I32, 1, 1);
    struct ggml_tensor *rows = ggml_reshape_3d(f.context, x, N, 1, 1);
    struct ggml_tensor *y = ggml_mul_mat_id(f.context, weight, rows, ids);
    struct ggml_cgraph *graph = ggml_new_graph(f.context);
    ggml_build_forward_expand(graph, y);
    assert_true(ggml_backend_sched_alloc_graph(f.sched, graph));
    assert_ptr_equal(ggml_backend_sched_get_tensor_backend(f.sched, y), f.streams[0]);
    set_all(x, 1);
    ggml_backend_tensor_set(ids, (const int32_t[]){EXPERTS - 1}, 0, sizeof(int32_t));
    compute(&f, graph);
    expect(y, EXPERTS * N);
    end(&f);
}

// Experts of an alternative that is not chosen are not looked up: its ids are never computed.
static void test_alternative_experts(void **state) {
    (void)state;
    struct fixture f;
    begin(&f, true);
    struct ggml_tensor *weight = experts(&f, N, EXPERTS);
    fill_experts(&f);
    struct ggml_tensor *x = input(&f, GGML_TYPE_F32, N, 1);
    struct ggml_tensor *ids = input(&f, GGML_TYPE_I32, 1, 1);
    struct ggml_tensor *rows = ggml_reshape_3d(f.context, x, N, 1, 1);
    struct ggml_tensor *results[] = {ggml_mul_mat_id(f.context, weight, rows, ids),
                                     ggml_scale(f.context, rows, 2)};
    struct ggml_cgraph *graph = ggml_new_graph(f.context);
    struct ggml_tensor *y = ggml_build_forward_select(graph, results, 2, 1);
    assert_true(ggml_backend_sched_alloc_graph(f.sched, graph));
    set_all(x, 1);
    ggml_backend_tensor_set(ids, (const int32_t[]){-7}, 0, sizeof(int32_t));
    compute(&f, graph);
    expect(y, 2);
    end(&f);
}

static bool no_sqrt(void *user, int device, const struct ggml_tensor *node) {
    (void)user;
    (void)device;
    return node->op != GGML_OP_SQRT;
}

static void refuse_sqrt(struct fixture *f) {
    f->config.supports_op = no_sqrt;
    assert_true(f->host.configure(-1, &f->config));
}

// An operation in place computes where the memory is, whatever surrounds it.
static void test_in_place(void **state) {
    (void)state;
    struct fixture f;
    begin(&f, false);
    struct ggml_tensor *x = input(&f, GGML_TYPE_F32, N, 1);
    struct ggml_tensor *y = on(&f, 0, ggml_scale(f.context, x, 2));
    struct ggml_tensor *z = on(&f, 1, ggml_sqr_inplace(f.context, y));
    struct ggml_cgraph *graph = ggml_new_graph(f.context);
    ggml_build_forward_expand(graph, z);
    assert_true(ggml_backend_sched_alloc_graph(f.sched, graph));
    set_all(x, 3);
    compute(&f, graph);
    expect(z, 36);
    end(&f);
}

// What no stream can do there is an error, not a write to an address of the device.
static void test_in_place_out_of_reach(void **state) {
    (void)state;
    struct fixture f;
    begin(&f, false);
    refuse_sqrt(&f);
    struct ggml_tensor *x = input(&f, GGML_TYPE_F32, N, 1);
    struct ggml_tensor *y = on(&f, 0, ggml_scale(f.context, x, 2));
    struct ggml_tensor *z = ggml_sqrt_inplace(f.context, y);
    struct ggml_cgraph *graph = ggml_new_graph(f.context);
    ggml_build_forward_expand(graph, z);
    assert_false(ggml_backend_sched_alloc_graph(f.sched, graph));
    assert_int_equal(ggml_last_status(), GGML_HOST_UNSUPPORTED);
    assert_non_null(strstr(ggml_last_error(), "writes to the memory of"));
    ggml_clear_error();
    end(&f);
}

// A value that is read on another stream, written, and read there again.
static void test_copy_is_renewed(void **state) {
    (void)state;
    struct fixture f;
    begin(&f, false);
    struct ggml_tensor *x = ggml_new_tensor_1d(f.weights_context, GGML_TYPE_F32, N);
    struct ggml_tensor *y = ggml_new_tensor_1d(f.weights_context, GGML_TYPE_F32, N);
    f.weights = ggml_backend_alloc_ctx_tensors(f.weights_context, f.streams[1]);
    struct ggml_tensor *before = on(&f, 0, ggml_scale(f.context, x, 10));
    struct ggml_tensor *write = ggml_cpy(f.context, y, x);
    struct ggml_tensor *after = on(&f, 0, ggml_scale(f.context, x, 10));
    ggml_set_output(before);
    ggml_set_output(after);
    struct ggml_cgraph *graph = ggml_new_graph(f.context);
    ggml_build_forward_expand(graph, before);
    ggml_build_forward_expand(graph, write);
    ggml_build_forward_expand(graph, after);
    assert_true(ggml_backend_sched_alloc_graph(f.sched, graph));
    set_all(x, 1);
    set_all(y, 2);
    compute(&f, graph);
    expect(before, 10);
    expect(after, 20);
    end(&f);
}

static ggml_backend_t stream_of(struct fixture *f, struct ggml_cgraph *graph,
                                struct ggml_tensor *node) {
    ggml_backend_sched_reset(f->sched);
    assert_true(ggml_backend_sched_alloc_graph(f->sched, graph));
    return ggml_backend_sched_get_tensor_backend(f->sched, node);
}

// The same graph again, without a pin that it had, and then with fewer streams.
static void test_rules_change(void **state) {
    (void)state;
    struct fixture f;
    begin(&f, false);
    struct ggml_tensor *x = ggml_new_tensor_1d(f.context, GGML_TYPE_F32, N);
    struct ggml_tensor *y = ggml_scale(f.context, x, 2);
    struct ggml_cgraph *graph = ggml_new_graph(f.context);
    ggml_build_forward_expand(graph, y);
    on(&f, 1, y);
    assert_true(ggml_backend_sched_alloc_graph(f.sched, graph));
    assert_ptr_equal(ggml_backend_sched_get_tensor_backend(f.sched, y), f.streams[1]);
    assert_ptr_equal(stream_of(&f, graph, y), f.streams[0]);
    assert_int_equal(ggml_sched_set_allowed(f.sched, &f.streams[1], 1), GGML_HOST_OK);
    ggml_backend_sched_reset(f.sched);
    assert_false(ggml_backend_sched_alloc_graph(f.sched, graph));
    ggml_clear_error();
    assert_int_equal(ggml_sched_set_allowed(f.sched, NULL, 0), GGML_HOST_OK);
    assert_ptr_equal(stream_of(&f, graph, y), f.streams[0]);
    set_all(x, 3);
    compute(&f, graph);
    expect(y, 6);
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids_are_kept),          cmocka_unit_test(test_experts_with_gaps),
        cmocka_unit_test(test_alternative_experts),   cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_in_place_out_of_reach), cmocka_unit_test(test_copy_is_renewed),
        cmocka_unit_test(test_rules_change),
    };
    return cmocka_run_group_tests_name("sched small", tests, NULL, NULL);
}
