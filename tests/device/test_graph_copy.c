// SPDX-License-Identifier: MIT
// A graph duplicated on another device, and the two compared.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "fake_device.h"
#include "ggml-impl.h"

// On the first device: sum = a + b, half = view of a's second row, twice = half + half. sum also
// refers to itself, as a cast does.
enum { N_NODES = 3 };

struct fixture {
    struct fake_device fake[2];
    ggml_backend_t stream[2];
    ggml_backend_buffer_t buffer;
    struct ggml_tensor a, b, sum, half, twice;
    struct ggml_tensor *nodes[N_NODES];
    struct ggml_cgraph graph;
};

static struct fixture f;

static int set_up(void **state) {
    (void)state;
    const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    memset(&f, 0, sizeof(f));
    fake_device_init(&f.fake[0], "FAKE0");
    fake_device_init(&f.fake[1], "FAKE1");
    for (int i = 0; i < 2; ++i)
        f.stream[i] = ggml_backend_dev_init(&f.fake[i].device, NULL);
    f.buffer = ggml_backend_buft_alloc_buffer(&f.fake[0].buft, 256);
    f.a = fake_tensor("a", 4, 2);
    f.b = fake_tensor("b", 4, 2);
    f.sum = fake_add(&f.a, &f.b);
    f.half = fake_view(&f.a, 4, 16);
    f.twice = fake_add(&f.half, &f.half);
    f.sum.src[2] = &f.sum;
    f.sum.op_params[3] = 42;
    fake_place(f.buffer, &f.a, 0);
    fake_place(f.buffer, &f.b, 64);
    fake_place(f.buffer, &f.sum, 128);
    fake_place(f.buffer, &f.twice, 192);
    ggml_backend_view_init(&f.half);
    ggml_backend_tensor_set(&f.a, values, 0, sizeof(values));
    ggml_backend_tensor_set(&f.b, values, 0, sizeof(values));
    f.nodes[0] = &f.sum;
    f.nodes[1] = &f.half;
    f.nodes[2] = &f.twice;
    f.graph.nodes = f.nodes;
    f.graph.n_nodes = N_NODES;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    ggml_backend_free(f.stream[0]);
    ggml_backend_free(f.stream[1]);
    ggml_backend_buffer_free(f.buffer);
    return fake_device_alive(&f.fake[0]) + fake_device_alive(&f.fake[1]);
}

static bool is_nothing(struct ggml_backend_graph_copy copy) {
    return !copy.buffer && !copy.ctx_allocated && !copy.ctx_unallocated && !copy.graph;
}

static void test_copy_is_complete(void **state) {
    (void)state;
    struct ggml_backend_graph_copy copy = ggml_backend_graph_copy(f.stream[1], &f.graph);
    assert_non_null(copy.graph);
    assert_int_equal(copy.graph->n_nodes, N_NODES);
    const struct ggml_tensor *sum = copy.graph->nodes[0];
    const struct ggml_tensor *half = copy.graph->nodes[1];
    const struct ggml_tensor *twice = copy.graph->nodes[2];
    assert_string_equal(sum->name, "sum");
    assert_int_equal(sum->op, GGML_OP_ADD);
    assert_int_equal(sum->flags, GGML_TENSOR_FLAG_COMPUTE);
    assert_int_equal(sum->op_params[3], 42);
    assert_ptr_equal(sum->src[2], sum);
    assert_ptr_equal(half->view_src, sum->src[0]);
    assert_ptr_equal(half->data, (char *)sum->src[0]->data + 16);
    assert_ptr_equal(twice->src[0], half);
    assert_ptr_equal(twice->src[1], half);
    assert_ptr_equal(sum->buffer->buft, &f.fake[1].buft);
    assert_memory_equal(fake_memory(sum->src[1]->data), fake_memory(f.b.data), 32);
    assert_int_equal(ggml_backend_graph_compute(f.stream[1], copy.graph), GGML_STATUS_SUCCESS);
    assert_true(((float *)fake_memory(twice->data))[3] == 16);
    ggml_backend_graph_copy_free(copy);
}

static void test_copy_refuses(void **state) {
    (void)state;
    struct ggml_tensor nested = fake_view(&f.half, 4, 0);
    const int invalid = GGML_HOST_INVALID_ARGUMENT;
    assert_refused(invalid, "stream",
                   assert_true(is_nothing(ggml_backend_graph_copy(NULL, &f.graph))));
    assert_refused(invalid, "graph",
                   assert_true(is_nothing(ggml_backend_graph_copy(f.stream[1], NULL))));
    nested.data = f.half.data;
    nested.buffer = f.buffer;
    f.nodes[1] = &nested;
    assert_refused(invalid, "view of a view",
                   assert_true(is_nothing(ggml_backend_graph_copy(f.stream[1], &f.graph))));
    f.nodes[1] = &f.half;
    f.b.data = NULL;
    assert_refused(invalid, "'b' has no data",
                   assert_true(is_nothing(ggml_backend_graph_copy(f.stream[1], &f.graph))));
    f.graph.error = "it is full";
    assert_refused(invalid, "it is full",
                   assert_true(is_nothing(ggml_backend_graph_copy(f.stream[1], &f.graph))));
    f.graph.error = NULL;
    f.graph.n_nodes = 0;
    assert_refused(invalid, "no nodes",
                   assert_true(is_nothing(ggml_backend_graph_copy(f.stream[1], &f.graph))));
}

static void test_copy_that_fails_on_the_way(void **state) {
    (void)state;
    f.fake[1].buffer_table.set_tensor = NULL;
    f.fake[1].refuses_copy = true;
    assert_refused(GGML_HOST_UNSUPPORTED, "set_tensor",
                   assert_true(is_nothing(ggml_backend_graph_copy(f.stream[1], &f.graph))));
    fake_device_init(&f.fake[1], "FAKE1");
    f.fake[1].n_streams = 1;
    f.fake[1].init_answer = GGML_HOST_FAILED;
    assert_true(is_nothing(ggml_backend_graph_copy(f.stream[1], &f.graph)));
    f.fake[1].init_answer = GGML_HOST_OK;
    f.fake[1].fails = true;
    assert_true(is_nothing(ggml_backend_graph_copy(f.stream[1], &f.graph)));
    f.fake[1].fails = false;
    struct ggml_backend_graph_copy copy = ggml_backend_graph_copy(f.stream[1], &f.graph);
    assert_non_null(copy.graph);
    ggml_backend_graph_copy_free(copy);
}

static bool countdown(void *context) {
    int *left = context;
    return (*left)-- > 0;
}

static void test_copy_survives_failing_allocations(void **state) {
    (void)state;
    for (int budget = 0;; ++budget) {
        int left = budget;
        assert_in_range(budget, 0, 100);
        ggml_mem_set_fault_hook(countdown, &left);
        struct ggml_backend_graph_copy copy = ggml_backend_graph_copy(f.stream[1], &f.graph);
        ggml_mem_set_fault_hook(NULL, NULL);
        if (copy.graph) {
            ggml_backend_graph_copy_free(copy);
            break;
        }
        assert_true(is_nothing(copy));
        assert_int_equal(f.fake[1].n_buffers, 0);
    }
}

// Deep enough to exhaust the stack if the copy recursed.
static void test_copy_of_a_deep_graph(void **state) {
    (void)state;
    enum { DEPTH = 50000 };
    struct ggml_tensor *chain = calloc(DEPTH, sizeof(*chain));
    struct ggml_tensor **nodes = calloc(DEPTH, sizeof(struct ggml_tensor *));
    for (int i = 0; i < DEPTH; ++i) {
        chain[i] = i > 0 ? fake_add(&chain[i - 1], &f.a) : fake_add(&f.a, &f.b);
        chain[i].buffer = f.buffer;
        chain[i].data = f.sum.data;
        nodes[i] = &chain[i];
    }
    struct ggml_cgraph graph = {.n_nodes = 1, .nodes = &nodes[DEPTH - 1]};
    struct ggml_backend_graph_copy copy = ggml_backend_graph_copy(f.stream[1], &graph);
    assert_non_null(copy.graph);
    int depth = 0;
    const struct ggml_tensor *tensor = copy.graph->nodes[0];
    while (tensor->src[0]) {
        tensor = tensor->src[0];
        ++depth;
    }
    assert_int_equal(depth, DEPTH);
    ggml_backend_graph_copy_free(copy);
    free(nodes);
    free(chain);
}

struct seen {
    int n_nodes;
    int last;
    int stop_at;
    float difference;
};

static bool note(int i, struct ggml_tensor *t1, struct ggml_tensor *t2, void *user_data) {
    struct seen *seen = user_data;
    float x;
    float y;
    ggml_backend_tensor_get(t1, &x, 0, sizeof(x));
    ggml_backend_tensor_get(t2, &y, 0, sizeof(y));
    seen->n_nodes++;
    seen->last = i;
    seen->difference += y - x;
    return i != seen->stop_at;
}

static bool compare(struct seen *seen, struct ggml_tensor const *const *nodes, size_t n_nodes) {
    return ggml_backend_compare_graph_backend(f.stream[0], f.stream[1], &f.graph, note, seen, nodes,
                                              n_nodes);
}

static void test_compare_node_by_node(void **state) {
    (void)state;
    struct seen seen = {.stop_at = -1};
    assert_true(compare(&seen, NULL, 0));
    assert_int_equal(seen.n_nodes, 2); // not the view
    assert_true(seen.difference == 0);
    assert_int_equal(f.fake[1].calls.graph_compute, 2);
    f.fake[1].error = 0.5f;
    seen = (struct seen){.stop_at = -1};
    assert_true(compare(&seen, NULL, 0));
    assert_true(seen.difference == 1);
    seen = (struct seen){.stop_at = 0};
    assert_true(compare(&seen, NULL, 0));
    assert_int_equal(seen.n_nodes, 1);
}

static void test_compare_whole(void **state) {
    (void)state;
    const struct ggml_tensor *listed[] = {&f.twice, &f.b};
    struct seen seen = {.stop_at = 2};
    assert_true(compare(&seen, (struct ggml_tensor const *const *)listed, 2));
    assert_int_equal(seen.n_nodes, 1);
    assert_int_equal(seen.last, 2);
    assert_int_equal(f.fake[1].calls.graph_compute, 1);
    listed[0] = &f.a;
    assert_refused(GGML_HOST_INVALID_ARGUMENT, "none of the 2",
                   assert_false(compare(&seen, (struct ggml_tensor const *const *)listed, 2)));
}

static void test_compare_refuses(void **state) {
    (void)state;
    struct seen seen = {.stop_at = -1};
    const int invalid = GGML_HOST_INVALID_ARGUMENT;
    assert_refused(
        invalid, "first stream",
        ggml_backend_compare_graph_backend(NULL, f.stream[1], &f.graph, note, &seen, NULL, 0));
    assert_refused(
        invalid, "second stream",
        ggml_backend_compare_graph_backend(f.stream[0], NULL, &f.graph, note, &seen, NULL, 0));
    assert_refused(invalid, "callback",
                   ggml_backend_compare_graph_backend(f.stream[0], f.stream[1], &f.graph, NULL,
                                                      &seen, NULL, 0));
    assert_refused(invalid, "nodes to test", assert_false(compare(&seen, NULL, 1)));
    f.fake[1].stream_table.graph_compute = NULL;
    assert_refused(GGML_HOST_UNSUPPORTED, "graph_compute", assert_false(compare(&seen, NULL, 0)));
    f.fake[1].fails = true;
    assert_false(compare(&seen, NULL, 0));
    f.fake[1].fails = false;
    assert_int_equal(seen.n_nodes, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_copy_is_complete),
        TEST(test_copy_refuses),
        TEST(test_copy_that_fails_on_the_way),
        TEST(test_copy_survives_failing_allocations),
        TEST(test_copy_of_a_deep_graph),
        TEST(test_compare_node_by_node),
        TEST(test_compare_whole),
        TEST(test_compare_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
