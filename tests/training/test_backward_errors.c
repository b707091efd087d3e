// SPDX-License-Identifier: MIT
// What has no gradient puts the graph in error with a message that names the operation.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml-host.h"

typedef struct ggml_tensor *tensor_t;

static struct ggml_context *ctx;

static int start(void **state) {
    (void)state;
    ctx = ggml_init((struct ggml_init_params){.mem_size = 1 << 20, .no_alloc = true});
    return ctx ? 0 : -1;
}

static int stop(void **state) {
    (void)state;
    ggml_free(ctx);
    return 0;
}

static tensor_t parameter(enum ggml_type type, int64_t ne0, int64_t ne1) {
    tensor_t x = ggml_new_tensor_2d(ctx, type, ne0, ne1);
    ggml_set_param(x);
    return ggml_set_name(x, "x");
}

static struct ggml_cgraph *graph_of(tensor_t y) {
    tensor_t loss = ggml_sum(ctx, y);
    ggml_set_loss(loss);
    struct ggml_cgraph *graph = ggml_new_graph_custom(ctx, 128, true);
    ggml_build_forward_expand(graph, loss);
    return graph;
}

static void expect_error(struct ggml_cgraph *graph, const char *words) {
    const char *message = ggml_graph_error(graph);
    if (!message || !strstr(message, words) || !strstr(message, "ggml_build_backward_expand")) {
        fail_msg("expected \"%s\", got \"%s\"", words, message ? message : "no error");
    }
    ggml_backend_t cpu = ggml_backend_cpu_init();
    assert_int_not_equal(ggml_backend_graph_compute(cpu, graph), GGML_STATUS_SUCCESS);
    ggml_backend_free(cpu);
    ggml_reset(ctx);
}

static void refuse(tensor_t y, const char *words) {
    struct ggml_cgraph *graph = graph_of(y);
    assert_null(ggml_graph_error(graph));
    ggml_build_backward_expand(ctx, graph, NULL);
    expect_error(graph, words);
}

static void test_operations_without_gradient(void **state) {
    (void)state;
    refuse(ggml_norm(ctx, parameter(GGML_TYPE_F32, 4, 4), 1e-5f), "NORM");
    refuse(ggml_hardswish(ctx, parameter(GGML_TYPE_F32, 4, 4)), "HARDSWISH");
    refuse(ggml_win_part(ctx, parameter(GGML_TYPE_F32, 4, 4), 2), "WIN_PART");
    refuse(ggml_concat(ctx, parameter(GGML_TYPE_F32, 4, 4), parameter(GGML_TYPE_F32, 4, 4), 0),
           "CONCAT");
    refuse(ggml_geglu(ctx, parameter(GGML_TYPE_F32, 4, 4)), "GEGLU");
    refuse(ggml_pool_1d(ctx, parameter(GGML_TYPE_F32, 4, 4), GGML_OP_POOL_AVG, 2, 2, 1), "POOL_1D");
    refuse(ggml_swiglu(ctx, parameter(GGML_TYPE_F32, 4, 4)), "SWIGLU");
}

static void test_operands_without_gradient(void **state) {
    (void)state;
    tensor_t x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 4, 4);
    refuse(ggml_soft_max_ext(ctx, x, parameter(GGML_TYPE_F32, 4, 4), 1.0f, 0.0f), "mask");
    x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 4, 4);
    refuse(ggml_cross_entropy_loss(ctx, x, parameter(GGML_TYPE_F32, 4, 4)), "labels");
    x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 4, 4);
    tensor_t places = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, 1);
    refuse(
        ggml_rope_ext(ctx, x, places, parameter(GGML_TYPE_F32, 2, 1), 4, 0, 0, 1e4f, 1, 0, 1, 0, 0),
        "frequency factors");
}

static void test_in_place_operations(void **state) {
    (void)state;
    refuse(ggml_sqr_inplace(ctx, ggml_neg(ctx, parameter(GGML_TYPE_F32, 4, 4))), "in place");
    refuse(ggml_clamp(ctx, ggml_neg(ctx, parameter(GGML_TYPE_F32, 4, 4)), 0, 1), "CLAMP");
}

static void test_parameters_of_other_types(void **state) {
    (void)state;
    tensor_t x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 32, 4);
    refuse(ggml_mul_mat(ctx, parameter(GGML_TYPE_Q4_0, 32, 4), x), "neither F32 nor F16");
}

static void test_graphs_that_cannot_be_used(void **state) {
    (void)state;
    ggml_build_backward_expand(ctx, NULL, NULL);
    ggml_build_backward_expand(NULL, graph_of(parameter(GGML_TYPE_F32, 4, 1)), NULL);
    assert_non_null(strstr(ggml_last_error(), "NULL"));
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, ggml_neg(ctx, parameter(GGML_TYPE_F32, 4, 1)));
    ggml_build_backward_expand(ctx, graph, NULL);
    expect_error(graph, "made without gradients");
    graph = ggml_new_graph_custom(ctx, 16, true);
    ggml_build_backward_expand(ctx, graph, NULL);
    expect_error(graph, "no nodes");
    graph = ggml_new_graph_custom(ctx, 16, true);
    ggml_build_forward_expand(graph, ggml_neg(ctx, parameter(GGML_TYPE_F32, 4, 1)));
    ggml_build_backward_expand(ctx, graph, NULL);
    expect_error(graph, "ggml_set_loss");
    graph = graph_of(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4));
    ggml_build_backward_expand(ctx, graph, NULL);
    expect_error(graph, "ggml_set_param");
}

static void test_bad_accumulator(void **state) {
    (void)state;
    tensor_t accumulators[8] = {ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 3)};
    struct ggml_cgraph *graph = graph_of(ggml_neg(ctx, parameter(GGML_TYPE_F32, 4, 1)));
    ggml_build_backward_expand(ctx, graph, accumulators);
    expect_error(graph, "accumulator");
}

// A graph or a context that is too small for the gradients, in every size.
static void test_too_little_room(void **state) {
    (void)state;
    for (size_t size = 3; size < 9; ++size) {
        tensor_t loss = ggml_sum(ctx, ggml_sqr(ctx, parameter(GGML_TYPE_F32, 4, 1)));
        ggml_set_loss(loss);
        struct ggml_cgraph *graph = ggml_new_graph_custom(ctx, size, true);
        ggml_build_forward_expand(graph, loss);
        ggml_build_backward_expand(ctx, graph, NULL);
        assert_int_equal(ggml_graph_error(graph) != NULL, size < 6);
        ggml_reset(ctx);
    }
    struct ggml_context *large = ctx;
    for (size_t n = 3; n < 9; ++n) {
        const size_t graph_size = ggml_graph_overhead_custom(64, true);
        ctx = ggml_init((struct ggml_init_params){
            .mem_size = graph_size + n * ggml_tensor_overhead(), .no_alloc = true});
        struct ggml_cgraph *graph = ggml_new_graph_custom(ctx, 64, true);
        tensor_t loss = ggml_sum(ctx, ggml_sqr(ctx, parameter(GGML_TYPE_F32, 4, 1)));
        ggml_set_loss(loss);
        ggml_build_forward_expand(graph, loss);
        ggml_build_backward_expand(ctx, graph, NULL);
        assert_int_equal(ggml_graph_error(graph) != NULL, n < 7);
        ggml_free(ctx);
    }
    ctx = large;
}

static bool never(void *context) {
    (void)context;
    return false;
}

static void test_no_memory(void **state) {
    (void)state;
    struct ggml_cgraph *graph = graph_of(ggml_neg(ctx, parameter(GGML_TYPE_F32, 4, 1)));
    ggml_mem_set_fault_hook(never, NULL);
    ggml_build_backward_expand(ctx, graph, NULL);
    ggml_mem_set_fault_hook(NULL, NULL);
    expect_error(graph, "no memory");
}

// What does not depend on a parameter costs nothing.
static void test_only_what_is_needed(void **state) {
    (void)state;
    tensor_t x = parameter(GGML_TYPE_F32, 4, 1);
    tensor_t input = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
    tensor_t features = ggml_norm(ctx, ggml_gelu(ctx, input), 1e-5f);
    struct ggml_cgraph *graph = graph_of(ggml_mul(ctx, x, features));
    ggml_build_backward_expand(ctx, graph, NULL);
    assert_null(ggml_graph_error(graph));
    assert_non_null(ggml_graph_get_grad(graph, x));
    assert_null(ggml_graph_get_grad(graph, features));
    assert_null(ggml_graph_get_grad(graph, input));
    assert_string_equal(ggml_graph_get_grad(graph, x)->name, "grad for x");
    ggml_reset(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations_without_gradient),
        cmocka_unit_test(test_operands_without_gradient),
        cmocka_unit_test(test_in_place_operations),
        cmocka_unit_test(test_parameters_of_other_types),
        cmocka_unit_test(test_graphs_that_cannot_be_used),
        cmocka_unit_test(test_bad_accumulator),
        cmocka_unit_test(test_too_little_room),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_only_what_is_needed),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
