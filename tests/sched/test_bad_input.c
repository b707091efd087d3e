// SPDX-License-Identifier: MIT
// Whatever goes wrong: a status, a message, and a scheduler that works afterwards.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "ggml-impl.h"
#include "rig.h"

static struct rig rig;

static int begin(void **state) {
    (void)state;
    rig_open(&rig, 2, &rig_shape, NULL, false);
    return 0;
}

static int end(void **state) {
    (void)state;
    rig_close(&rig);
    return 0;
}

static void assert_message(enum ggml_host_status status, const char *text) {
    if (!strstr(ggml_last_error(), text)) fail_msg("no '%s' in: %s", text, ggml_last_error());
    assert_int_equal(ggml_last_status(), status);
    ggml_clear_error();
}

static void assert_not_made(ggml_backend_t *streams, int n, const char *text) {
    assert_null(ggml_backend_sched_new(streams, NULL, n, 100, false, false));
    assert_message(GGML_HOST_INVALID_ARGUMENT, text);
}

static void test_streams(void **state) {
    (void)state;
    ggml_backend_t cpu = rig.streams[2], device = rig.streams[0];
    assert_not_made(NULL, 1, "no streams");
    assert_not_made(rig.streams, 0, "no streams");
    assert_not_made((ggml_backend_t[]){device, NULL}, 2, "stream 1 is NULL");
    assert_not_made((ggml_backend_t[]){cpu, device}, 2, "must be on a CPU device");
    ggml_backend_buffer_type_t types[] = {ggml_backend_get_default_buffer_type(rig.streams[1]),
                                          NULL};
    ggml_backend_t streams[] = {device, cpu};
    assert_null(ggml_backend_sched_new(streams, types, 2, 100, false, false));
    assert_message(GGML_HOST_INVALID_ARGUMENT, "can't use the VIRTUAL1 memory");
    ggml_backend_sched_free(NULL);
}

static void test_null(void **state) {
    (void)state;
    size_t sizes[3];
    assert_false(ggml_backend_sched_alloc_graph(NULL, NULL));
    assert_false(ggml_backend_sched_alloc_graph(rig.sched, NULL));
    assert_false(ggml_backend_sched_reserve(rig.sched, NULL));
    assert_int_equal(ggml_backend_sched_graph_compute(rig.sched, NULL), GGML_STATUS_FAILED);
    assert_int_equal(ggml_backend_sched_graph_compute(NULL, NULL), GGML_STATUS_FAILED);
    ggml_backend_sched_reserve_size(rig.sched, NULL, sizes);
    ggml_backend_sched_split_graph(rig.sched, NULL);
    ggml_backend_sched_reset(NULL);
    ggml_backend_sched_synchronize(NULL);
    ggml_backend_sched_set_eval_callback(NULL, NULL, NULL);
    ggml_backend_sched_set_tensor_backend(rig.sched, NULL, rig.streams[0]);
    assert_null(ggml_backend_sched_get_tensor_backend(rig.sched, NULL));
    assert_null(ggml_backend_sched_get_backend(rig.sched, 3));
    assert_null(ggml_backend_sched_get_backend(rig.sched, -1));
    assert_ptr_equal(ggml_backend_sched_get_backend(rig.sched, 2), rig.streams[2]);
    assert_int_equal(ggml_backend_sched_get_n_backends(rig.sched), 3);
    assert_int_equal(ggml_backend_sched_get_buffer_size(rig.sched, NULL), 0);
    struct ggml_tensor node = {0};
    ggml_backend_sched_set_tensor_backend(rig.sched, &node, NULL);
    assert_message(GGML_HOST_INVALID_ARGUMENT, "stream is NULL");
    rig_check(&rig, 2, 0, 1);
}

static struct ggml_context *small_context(void) {
    return ggml_init((struct ggml_init_params){.mem_size = 1 << 20, .no_alloc = true});
}

static void assert_cannot_split(struct ggml_cgraph *graph, enum ggml_host_status status,
                                const char *text) {
    size_t sizes[3] = {7, 7, 7};
    ggml_backend_sched_reset(rig.sched);
    assert_false(ggml_backend_sched_alloc_graph(rig.sched, graph));
    assert_message(status, text);
    assert_int_equal(ggml_backend_sched_graph_compute(rig.sched, graph), GGML_STATUS_ALLOC_FAILED);
    assert_message(status, text);
    assert_false(ggml_backend_sched_reserve(rig.sched, graph));
    assert_message(status, text);
    ggml_backend_sched_reserve_size(rig.sched, graph, sizes);
    assert_message(status, text);
    assert_int_equal(sizes[0] + sizes[1] + sizes[2], 0);
    ggml_backend_sched_split_graph(rig.sched, graph);
    assert_message(status, text);
    rig_check(&rig, 2, 0, 1);
}

static void test_unsupported_node(void **state) {
    (void)state;
    struct ggml_context *ctx = small_context();
    struct ggml_tensor *a = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 8);
    struct ggml_tensor *node = ggml_sqr(ctx, a);
    node->type = GGML_TYPE_I8; // no device squares bytes
    ggml_set_name(node, "odd");
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, node);
    assert_cannot_split(graph, GGML_HOST_UNSUPPORTED, "'odd' (SQR, i8) is supported by none");
    assert_non_null(ggml_graph_error(graph));
    ggml_free(ctx);
}

static void test_error_tensor(void **state) {
    (void)state;
    struct ggml_context *ctx = small_context();
    struct ggml_tensor *a = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 8);
    struct ggml_tensor *b = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 7);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, ggml_add(ctx, a, b));
    assert_cannot_split(graph, GGML_HOST_INVALID_ARGUMENT, "in error");
    ggml_free(ctx);
}

static void test_damaged_graph(void **state) {
    (void)state;
    struct ggml_context *ctx = small_context();
    struct ggml_tensor *a = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 8);
    struct ggml_tensor *b = ggml_sqr(ctx, a);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, b);
    ggml_graph_add_node(graph, b);
    assert_cannot_split(graph, GGML_HOST_INVALID_ARGUMENT, "twice");
    graph->error = NULL;
    graph->nodes[1] = NULL;
    assert_cannot_split(graph, GGML_HOST_INVALID_ARGUMENT, "lists NULL");
    graph->error = NULL;
    graph->n_nodes = 1;
    b->op = (enum ggml_op)12345;
    assert_cannot_split(graph, GGML_HOST_INVALID_ARGUMENT, "unknown");
    ggml_free(ctx);
}

// Memory of a device that is not among the streams.
static void test_foreign_memory(void **state) {
    (void)state;
    struct ggml_context *ctx = small_context();
    struct ggml_tensor *a = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 8);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, rig.streams[1]);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, ggml_sqr(ctx, a));
    ggml_backend_t streams[] = {rig.streams[0], rig.streams[2]};
    ggml_backend_sched_t sched = ggml_backend_sched_new(streams, NULL, 2, 100, false, false);
    assert_false(ggml_backend_sched_alloc_graph(sched, graph));
    assert_message(GGML_HOST_UNSUPPORTED, "lies in VIRTUAL1 memory");
    ggml_backend_sched_free(sched);
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
}

static void test_empty_graph(void **state) {
    (void)state;
    struct ggml_context *ctx = small_context();
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    assert_true(ggml_backend_sched_reserve(rig.sched, graph));
    assert_int_equal(ggml_backend_sched_graph_compute(rig.sched, graph), GGML_STATUS_SUCCESS);
    assert_int_equal(ggml_backend_sched_get_n_splits(rig.sched), 0);
    ggml_backend_sched_reset(rig.sched);
    // Nothing but views.
    struct ggml_tensor *a = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 8);
    struct ggml_tensor *view = ggml_view_1d(ctx, a, 4, 0);
    graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, view);
    assert_int_equal(ggml_backend_sched_graph_compute(rig.sched, graph), GGML_STATUS_SUCCESS);
    assert_ptr_equal(view->data, a->data);
    ggml_free(ctx);
}

// --- things that fail at every point in turn

static long allocations_left;

static bool may_allocate(void *context) {
    (void)context;
    return allocations_left-- > 0;
}

static bool run_once(struct transformer_graph *graph) {
    ggml_backend_sched_t sched = ggml_backend_sched_new(rig.streams, NULL, 3, 0, true, false);
    if (!sched) return false;
    const bool done = ggml_backend_sched_reserve(sched, graph->graph) &&
                      ggml_backend_sched_alloc_graph(sched, graph->graph);
    ggml_backend_sched_free(sched);
    return done;
}

static void test_no_memory(void **state) {
    (void)state;
    bool done = false;
    long n = 0;
    for (; !done; ++n) {
        struct transformer_graph graph;
        assert_true(transformer_graph_build(rig.model, 2, 0, &graph));
        ggml_clear_error();
        allocations_left = n;
        ggml_mem_set_fault_hook(may_allocate, NULL);
        done = run_once(&graph);
        ggml_mem_set_fault_hook(NULL, NULL);
        if (!done) assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_MEMORY);
        transformer_graph_free(&graph);
    }
    assert_true(n > 50);
}

// The same scheduler goes on after each failure.
static void test_no_memory_later(void **state) {
    (void)state;
    bool done = false;
    for (long n = 0; !done; ++n) {
        struct transformer_graph graph;
        assert_true(transformer_graph_build(rig.model, 1 + (int)(n % 5), 0, &graph));
        ggml_backend_sched_reset(rig.sched);
        allocations_left = n;
        ggml_mem_set_fault_hook(may_allocate, NULL);
        done = ggml_backend_sched_alloc_graph(rig.sched, graph.graph);
        ggml_mem_set_fault_hook(NULL, NULL);
        if (!done) assert_true(ggml_backend_sched_alloc_graph(rig.sched, graph.graph));
        ggml_backend_sched_reset(rig.sched);
        transformer_graph_free(&graph);
        done = done && n > 20; // small graphs may fit what is there
    }
    rig_check(&rig, 4, 0, 1);
}

enum fault { FAULT_ALLOC, FAULT_COPY, FAULT_COMPUTE, FAULT_LOSS };

static void inject(enum fault fault, int64_t after, bool late) {
    struct virtual_config config = rig.config;
    config.fail_late = late;
    if (fault == FAULT_ALLOC) config.fail_alloc_after = after;
    if (fault == FAULT_COPY) config.fail_copy_after = after;
    if (fault == FAULT_COMPUTE) config.fail_compute_after = after;
    if (fault == FAULT_LOSS) config.lose_after = after;
    assert_true(rig.host.configure(1, &config));
}

static void fail_everywhere(enum fault fault, bool late) {
    const int n_tokens = 2;
    bool failed = true;
    int n = 0;
    for (; failed; ++n) {
        ggml_backend_sched_free(rig.sched);
        rig.sched = ggml_backend_sched_new(rig.streams, NULL, 3, 0, false, false);
        assert_non_null(rig.sched);
        ggml_clear_error();
        inject(fault, n, late);
        float *logits = rig_run(&rig, n_tokens, 0, 1);
        // Reading the result is a copy that can fail too.
        failed = ggml_last_status() != GGML_HOST_OK;
        if (failed && fault == FAULT_LOSS) {
            assert_int_equal(ggml_last_status(), GGML_HOST_DEVICE_LOST);
            assert_non_null(strstr(ggml_last_error(), "VIRTUAL1"));
        }
        free(logits);
        inject(FAULT_ALLOC, -1, false);
        rig_check(&rig, n_tokens, 0, 2);
    }
    assert_true(n > 1);
}

static void test_device_without_memory(void **state) {
    (void)state;
    fail_everywhere(FAULT_ALLOC, false);
}

static void test_failing_copies(void **state) {
    (void)state;
    fail_everywhere(FAULT_COPY, false);
    fail_everywhere(FAULT_COPY, true);
}

static void test_failing_graphs(void **state) {
    (void)state;
    fail_everywhere(FAULT_COMPUTE, false);
    fail_everywhere(FAULT_COMPUTE, true);
}

static void test_dying_device(void **state) {
    (void)state;
    fail_everywhere(FAULT_LOSS, false);
    fail_everywhere(FAULT_LOSS, true);
}

// A device is lost: the caller goes on without it.
static void test_going_on_without(void **state) {
    (void)state;
    rig_check(&rig, 2, 0, 1);
    inject(FAULT_LOSS, 0, false);
    assert_null(rig_run(&rig, 2, 0, 1));
    assert_int_equal(ggml_last_status(), GGML_HOST_DEVICE_LOST);
    assert_non_null(strstr(ggml_last_error(), "VIRTUAL1"));
    ggml_backend_t streams[] = {rig.streams[0], rig.streams[2]};
    ggml_backend_sched_free(rig.sched);
    rig.sched = ggml_backend_sched_new(streams, NULL, 2, 0, false, false);
    struct transformer *model = rig.model;
    rig.model = rig.reference; // weights that are still there
    rig_check(&rig, 2, 0, 1);
    rig.model = model;
}

// No graph is split after one was refused: nothing is known any more of nodes of the one before.
static void test_nodes_after_a_refusal(void **state) {
    (void)state;
    struct transformer_graph split, refused;
    assert_true(transformer_graph_build(rig.model, 2, 0, &split));
    assert_true(transformer_graph_build(rig.model, 3, 0, &refused));
    ggml_backend_sched_split_graph(rig.sched, split.graph);
    const int last = ggml_graph_n_nodes(split.graph) - 1;
    struct ggml_tensor *node = ggml_graph_node(split.graph, last);
    assert_non_null(ggml_backend_sched_get_tensor_backend(rig.sched, node));
    refused.graph->error = "made up";
    assert_false(ggml_backend_sched_alloc_graph(rig.sched, refused.graph));
    assert_message(GGML_HOST_INVALID_ARGUMENT, "made up");
    for (int i = 0; i <= last; ++i) {
        node = ggml_graph_node(split.graph, i);
        assert_null(ggml_backend_sched_get_tensor_backend(rig.sched, node));
    }
    ggml_backend_sched_reset(rig.sched);
    transformer_graph_free(&split);
    transformer_graph_free(&refused);
    rig_check(&rig, 2, 0, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_streams),
        TEST(test_null),
        TEST(test_unsupported_node),
        TEST(test_error_tensor),
        TEST(test_damaged_graph),
        TEST(test_foreign_memory),
        TEST(test_empty_graph),
        TEST(test_no_memory),
        TEST(test_no_memory_later),
        TEST(test_device_without_memory),
        TEST(test_failing_copies),
        TEST(test_failing_graphs),
        TEST(test_dying_device),
        TEST(test_going_on_without),
        TEST(test_nodes_after_a_refusal),
    };
    return cmocka_run_group_tests_name("sched bad input", tests, NULL, NULL);
}
